/*
 * What an event is (EventSpec), and its identity while it lives (Event). Both are immutable once made; the fds and
 * whether it is enabled belong to the supervisor (supervisor-events.c), the numbers to their writers (counters.h).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/cleanup.h"
#include "daemon/model/counters.h"
#include "daemon/model/plan.h"

enum {
        CALLCHAIN_KERNEL = 1 << 0,
        CALLCHAIN_USER = 1 << 1,
};

/* What a user asked for, by YAML or by a request. Strings are owned, NULL if absent. */
typedef struct EventSpec {
        char *event; /* as in perf list */
        char *name;
        char *target; /* a name of the configuration, only to be shown: the fields below say what it means */
        uint32_t *pids;
        size_t n_pids;
        uint32_t *tids;
        size_t n_tids;
        char *cpus; /* CPU list; NULL is all */
        bool no_inherit;
        char *filter;
        uint64_t period; /* 0 and frequency 0: each occurrence, or the event's default */
        uint64_t frequency;
        unsigned callchain; /* CALLCHAIN_ */
        bool disabled;
        bool include_self;
        bool configured; /* comes from the configuration */
} EventSpec;

#define EVENT_SPEC_NULL ((EventSpec){ .event = NULL })

void event_spec_deinit(EventSpec *s);
/* -ENOMEM */
int event_spec_copy(const EventSpec *from, EventSpec *ret);
/* All that a user can ask for is the same, but not where it comes from. */
bool event_spec_equal(const EventSpec *a, const EventSpec *b);

typedef struct Event {
        _Atomic(unsigned) n_refs;
        uint32_t id; /* from 1, never used again */
        EventSpec spec;
        Plan *plan; /* NULL for what has no format */
        uint64_t sample_type;
        bool exact;       /* one sample for each occurrence: the kernel's count is the left side of the ledger */
        bool in_ns;       /* the kernel's count is time */
        uint64_t period;  /* effective: what the kernel was told; 0 if by frequency */
        uint32_t n_cpus;  /* entries of counters, by CPU slot */
        EventCounters *counters;
} Event;

/* Takes the contents of `spec` (null afterwards) and a reference to `plan`. NULL: no memory, nothing taken. */
Event *event_new(uint32_t id, EventSpec *spec, Plan *plan, uint32_t n_cpus);
Event *event_ref(Event *e);
Event *event_unref(Event *e);
DEFINE_CLEANUP(Event *, event_unref)
