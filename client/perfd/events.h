/*
 * The daemon's events: what runs, what this host offers, and changes of it. Each function here waits for its answer, for as
 * long as perfd_client_set_timeout() says. ret_result is to be freed by perfd_result_free(); where its rows are of no interest
 * it may be NULL.
 *
 * All of a list is changed, or nothing. Names are names, globs, "#ID" or "@GROUP". All functions: PERFD_E_REFUSED, _CLOSED,
 * _PROTOCOL, _STATE, _INVALID, _TIMEOUT, -ENOMEM.
 */
#pragma once

#include "client.h"
#include "declarations.h"
#include "descriptor.h"
#include "field.h"
#include "result.h"

PERFD_BEGIN_DECLARATIONS

/* What is to be counted or sampled. NULL and "" are the same. */
typedef struct perfd_event_spec {
        size_t size;
        const char *event;  /* as in perf list: "sched:sched_switch", "cpu-clock" */
        const char *name;   /* "": the event's own name */
        const char *filter; /* the kernel's filter language, tracepoints only */
        const char *target; /* a target of the configuration; then no pids, tids, cpus */
        const uint32_t *pids; /* processes with all their threads; none of pids and tids: the whole host */
        size_t n_pids;
        const uint32_t *tids; /* single threads */
        size_t n_tids;
        const char *cpus;   /* a CPU list, "0-3,8"; "": all online CPUs */
        bool no_inherit;    /* do not follow children and new threads */
        uint64_t period;    /* a sample each so many events; at most one of period and frequency */
        uint64_t frequency; /* samples per second */
        perfd_callchain callchain;
        bool disabled;      /* added, but not counting before perfd_enable() */
        bool include_self;  /* perfd's own activity too */
        const char *const *cgroups; /* paths or globs, which are followed */
        size_t n_cgroups;
        const char *const *containers; /* full or short ids, names, globs of names */
        size_t n_containers;
        const char *const *units; /* of systemd */
        size_t n_units;
        const char *args;   /* probes: fetch args, "file=%di:x64 name=+0(%si):string" */
        uint32_t maxactive; /* kretprobe: calls at the same time that are followed; 0: the kernel's default */
        uint64_t interval;  /* ns: the counts are read and sent so often; 0: not at all */
        const char *fallback; /* "cpu-clock": taken if this machine cannot count the hardware event */
        const char *const *attr; /* fields of perf_event_attr, "exclude-user=true": perfd.yaml(5) */
        size_t n_attr;
        const char *const *fields; /* external events only: "user:text", "code:u32" */
        size_t n_fields;
        const char *group; /* to be changed as one, by "@GROUP"; "": "default" */
} perfd_event_spec;

#define PERFD_EVENT_SPEC_INIT { .size = sizeof(perfd_event_spec) }

/* An event that runs, or is pending. Sizes of lists are numbers, `lost` and `delivered` are samples. */
typedef struct perfd_event_row {
        uint32_t id;
        const perfd_event_spec *spec; /* spec->name and spec->group are always set */
        bool enabled, configured;     /* configured: comes from the configuration, not from a client */
        uint32_t n_fds;
        uint64_t delivered, lost;
        bool fallen_back;   /* spec->fallback is counted instead */
        const char *place;  /* probes: what resolved, with file and build id */
        uint64_t n_targets; /* tasks or cgroups that it has fds on; 0: whole CPUs */
        bool persistent;    /* the next daemon adds it again: perfd_add_persistent() */
        const char *pending; /* why it cannot be opened now; configured or persistent, and without an id; "": it runs */
        const char *absent;  /* which of its cgroups, containers and units is not there now; "": all are */
        const perfd_field *fields; /* perfd_list_with_fields() */
        size_t n_fields;
        bool has_uid;       /* a client has added it */
        uint32_t uid;       /* the client's, whose quota it counts for; of a temporary event that of who has held it for longest */
        const perfd_count *losses; /* what lost is the sum of; those that are not 0 */
        size_t n_losses;
        uint64_t n_postponed; /* multiples of spec->interval, of each CPU, at which its counts were not read in time */
        uint64_t n_ended;     /* of n_targets, tasks that have ended: their counts stay in the event's */
        bool temporary;       /* it ends with the last of the connections that hold it: perfd_add_temporary() */
        bool limited;         /* the caller may not see all of its samples: delivered, lost, losses and n_postponed are not told, and 0 */
} perfd_event_row;

/* An event that could be added. */
typedef struct perfd_available_row {
        const char *event;
        const char *kind;          /* "tracepoint", "software" */
        const perfd_field *fields; /* if asked for */
        size_t n_fields;
        const char *help;          /* often "" */
        const char *unit;          /* of its count: "ns", "events" */
} perfd_available_row;

/* An event that was added or changed. */
typedef struct perfd_ref_row {
        uint32_t id;
        const char *name;
} perfd_ref_row;

/* Running and pending events whose name fits: perfd_result_event(). NULL and "" are all. */
int perfd_list(perfd_client *client, const char *glob, perfd_result **ret_result);
/* The same, with the fields of each event. */
int perfd_list_with_fields(perfd_client *client, const char *glob, perfd_result **ret_result);
/* What this host offers, by its name in perf list: perfd_result_available(). perfd_result_is_truncated(): there is more. */
int perfd_available(perfd_client *client, const char *glob, bool fields, perfd_result **ret_result);
/*
 * Events to be opened, all or none: perfd_result_ref() has their ids, in the order of `specs`, perfd_result_note() what is worth to
 * be known. They stay until they are removed, or the daemon ends. PERFD_E_INVALID too: a setting without '=', a field without ':'.
 */
int perfd_add(perfd_client *client, const perfd_event_spec *specs, size_t n_specs, perfd_result **ret_result);
/*
 * The same, but they are removed when this connection closes. A temporary event of the same name that is equal, of the whole host or
 * of CPUs, and enabled, is shared instead of refused: it is removed when the last of the connections that added it closes.
 */
int perfd_add_temporary(perfd_client *client, const perfd_event_spec *specs, size_t n_specs, perfd_result **ret_result);
/* The same, but they are there again after a restart of the daemon. */
int perfd_add_persistent(perfd_client *client, const perfd_event_spec *specs, size_t n_specs, perfd_result **ret_result);
/* All that are named, or none: perfd_result_ref(). They close their fds; what they counted stays in the ledger. */
int perfd_remove(perfd_client *client, const char *const *names, size_t n_names, perfd_result **ret_result);
/* Start and stop counting, of all events that are named, or none: perfd_result_ref(). */
int perfd_enable(perfd_client *client, const char *const *names, size_t n_names, perfd_result **ret_result);
int perfd_disable(perfd_client *client, const char *const *names, size_t n_names, perfd_result **ret_result);
/* The kernel's filter of one event, without a gap; "" removes it. */
int perfd_set_filter(perfd_client *client, const char *name, const char *filter);
/* How often one event is sampled: each `period` events, or `frequency` times a second; one of both is 0. */
int perfd_set_period(perfd_client *client, const char *name, uint64_t period, uint64_t frequency);

/* Row i, or NULL behind the last one and where the request has no such rows; the result's own. */
const perfd_event_row *perfd_result_event(const perfd_result *result, size_t i);
const perfd_available_row *perfd_result_available(const perfd_result *result, size_t i);
const perfd_ref_row *perfd_result_ref(const perfd_result *result, size_t i);

/*
 * perfd_add(), perfd_apply(): what is worth to be known of what was added or applied, for people: that a CPU is offline now, that
 * rules of access are not applied. perfd_remove(), perfd_disable(): that this is not stored.
 */
const char *perfd_result_note(const perfd_result *result, size_t i);

PERFD_END_DECLARATIONS
