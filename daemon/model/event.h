/*
 * What an event is (EventSpec), and its identity while it lives (Event). Both are immutable once others know of them: a live
 * change of a filter, a period or a group makes another Event of the same id, which shares the numbers. The fds and whether
 * it is enabled belong to the supervisor (supervisor/changes/events.c), the numbers to their writers (counters.h).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/strings.h"
#include "daemon/model/counters.h"
#include "daemon/model/plan.h"
#include "daemon/model/record.h"

enum {
        CALLCHAIN_KERNEL = 1 << 0,
        CALLCHAIN_USER = 1 << 1,
        CALLCHAIN_DWARF = 1 << 2, /* user space's is unwound of a copy of its stack; with CALLCHAIN_USER alone, without the kernel's */
};

/* What a user requested, in YAML or by a request. Strings are owned, NULL if absent. */
typedef struct EventSpec {
        char *event; /* as in perf list */
        char *name;
        char *group;  /* NULL: EVENT_GROUP_DEFAULT */
        char *target; /* a name of the configuration, only to be shown: the fields below say what it means */
        uint32_t *pids;
        size_t n_pids;
        uint32_t *tids;
        size_t n_tids;
        Strings cgroups, containers, units; /* as the user names them; with pids and tids all empty: whole CPUs */
        char *cpus; /* CPU list; NULL is all */
        bool no_inherit;
        char *filter;
        char *args;         /* probes: fetch args */
        uint32_t maxactive; /* kretprobe */
        nsec_t interval;    /* ns between two reads of the counts; 0: never */
        char *fallback;     /* what is counted instead of a hardware event that this machine does not have */
        Strings attr;       /* "exclude-user=true": attr-setting.h */
        Strings fields;     /* external: "user:text", "code:u32" */
        uint64_t period; /* 0 and frequency 0: each occurrence, or the event's default */
        uint64_t frequency; /* Hz */
        unsigned callchain; /* CALLCHAIN_ */
        bool disabled;
        bool include_self;
        bool configured; /* comes from the configuration */
        bool has_uid;
        uint32_t uid;    /* of the client that added it */
        bool is_granted; /* by a rule of access, on the stream socket; and then the group of that client */
        uint32_t gid;
} EventSpec;

#define EVENT_GROUP_DEFAULT "default" /* of events that name none */
#define EVENT_SPEC_NULL ((EventSpec){ .event = NULL })

void event_spec_deinit(EventSpec *s);
/* Its group, or EVENT_GROUP_DEFAULT. */
const char *event_spec_group(const EventSpec *s);
/* Its fds are on whole CPUs, not on tasks or cgroups. */
bool event_spec_is_host(const EventSpec *s);
/* CALLCHAIN_KERNEL and CALLCHAIN_USER: those that the kernel is to walk. */
unsigned event_spec_callchain(const EventSpec *s);
/* Both observe the same: pids, tids, cgroups, containers, units and CPUs. */
bool event_spec_same_target(const EventSpec *a, const EventSpec *b);
/* -ENOMEM */
int event_spec_copy(const EventSpec *from, EventSpec *ret);
/* All that a user can ask for is the same, but not where it comes from. */
bool event_spec_equal(const EventSpec *a, const EventSpec *b);

/* Nothing differs but what can be changed while an event runs: filter, period, frequency, interval, group. */
bool event_spec_can_become(const EventSpec *a, const EventSpec *b);

/* One of the counts that an event has: its own, or in a group those of all members, the leader's first. */
typedef struct EventCounter {
        char *event; /* as in perf list */
        char *unit;
        double scale;
} EventCounter;

typedef struct Event {
        _Atomic(unsigned) n_refs; /* incremented relaxed by a holder of a reference, decremented with acq_rel */
        struct Event *origin; /* whose members and numbers these are, a reference; NULL: its own */
        uint32_t id; /* from 1, never used again by another one */
        EventSpec spec;
        Plan *plan; /* NULL for what has no format */
        bool external; /* clients emit its samples; it has no fds */
        EventCounter *members;
        size_t n_members; /* above 1: a group */
        bool exact;       /* one sample for each occurrence: the kernel's count is the left side of the ledger */
        bool in_ns;       /* the kernel's count is time */
        uint64_t period;  /* effective: what the kernel was told; 0 if by frequency, or if there are no samples */
        uint32_t n_slots; /* entries of counters: one for each CPU, and the last one for what clients emit */
        EventCounters *counters;
        ReadCount *closed_reads; /* of fds that are closed, less what was counted twice: n_members for each slot; written by the
                                    supervisor, or by the slot's reader while it waits for that */
} Event;

/* Takes the contents of `spec` (null afterwards) and a reference to `plan`. NULL: no memory, nothing taken. */
Event *event_new(uint32_t id, EventSpec *spec, Plan *plan, uint32_t n_slots);
/*
 * The same event, which has another spec from now on: its own contents are taken (null afterwards). NULL: no memory, nothing
 * taken.
 */
Event *event_new_changed(Event *from, EventSpec *spec);
/* Copies; before the event is shared. -ENOMEM */
int event_add_member(Event *e, const char *event, const char *unit, double scale);
Event *event_ref(Event *e);
Event *event_unref(Event *e);
DEFINE_CLEANUP(Event *, event_unref)
