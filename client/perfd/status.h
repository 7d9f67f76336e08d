/*
 * The daemon itself, and what its host lets it do. Each function here waits for its answer, for as long as
 * perfd_client_set_timeout() says. ret_result is to be freed by perfd_result_free(); where its rows are of no interest it may
 * be NULL. All functions: PERFD_E_REFUSED, _CLOSED, _PROTOCOL, _STATE, _INVALID, _TIMEOUT, -ENOMEM.
 */
#pragma once

#include "client.h"
#include "declarations.h"
#include "result.h"

PERFD_BEGIN_DECLARATIONS

/* What the daemon's access.rules grant to this client. */
typedef struct perfd_access {
        bool is_limited;   /* false: no rule decides, and it may what its socket allows */
        uint32_t rule;     /* that decides, from 1; 0: none is for it */
        const char *place; /* of the rule: "PATH:LINE" */
        bool status;       /* all that perfd_status_row has, lists, ledgers and what the host offers */
        char *const *subscribe; /* names of events and globs */
        size_t n_subscribe;
        const char *where; /* joined to the condition of a subscription; "": none */
        char *const *emit; /* names of external events and globs */
        size_t n_emit;
        bool stat;          /* events that are only counted may be added */
        bool own_processes; /* and events on processes of one's own */
} perfd_access;

/* Times are ns, sizes bytes; n_samples and n_lost are of all events since perfd was started. */
typedef struct perfd_status_row {
        const char *version;
        uint32_t pid;
        uint64_t uptime; /* ns */
        const char *clock;
        const char *kernel;
        const char *config; /* "" without one */
        uint32_t n_events, n_enabled, n_subscribers, n_connections;
        uint64_t ring_size; /* of each CPU */
        uint64_t rss;       /* as VmRSS of /proc/PID/status */
        uint32_t n_fds;
        uint64_t n_samples, n_lost;
        bool loss_exact;    /* false: the kernel's losses are a lower bound */
        uint32_t n_closing; /* fds that trace nothing any more and wait to be closed */
        uint32_t n_fallen_back;     /* events for which another one is counted */
        uint32_t n_pending;         /* events that are to run and cannot be opened now */
        uint64_t n_tasks_forgotten; /* tasks without a name, for lack of room */
        uint64_t dispatcher_stalled; /* ns since when the dispatcher does not answer; 0: it does */
        const perfd_count *losses;   /* what n_lost is the sum of; those that are not 0 */
        size_t n_losses;
        const perfd_access *access; /* without its `status` only version and clock are set; NULL: a daemon that has no rules yet */
        const char *applied;  /* what the configuration of an apply is called, which holds instead of `config`; "": none does */
        uint64_t config_read; /* when what holds was read: CLOCK_REALTIME, ns; 0: it is the defaults */
        bool config_changed;  /* its files are others now: a reload reads them */
} perfd_status_row;

/* The reader of a CPU. */
typedef struct perfd_cpu_row {
        uint32_t cpu;
        uint64_t n_records, n_wakeups, n_batches;
        uint64_t cpu_time; /* ns, of its reader */
        uint64_t n_pool_waits; /* drains that stopped because the dispatcher had all batches */
        uint64_t n_failovers;  /* times that its ring was read from another CPU, because its reader did not run */
        uint64_t stalled;      /* ns since when its reader does not answer; 0: it does */
} perfd_cpu_row;

/* One thing that was tried. */
typedef struct perfd_doctor_row {
        const char *topic;  /* "events", "probes", "targets", "limits", "service" */
        const char *what;   /* "kprobes", "PERF_FORMAT_LOST" */
        bool works;
        const char *found;  /* what was tried and what Linux said */
        const char *remedy; /* the smallest one; "" if it works */
} perfd_doctor_row;

/* perfd_result_status(), and perfd_result_cpu() of each reader. */
int perfd_status(perfd_client *client, perfd_result **ret_result);

/* What this host lets the daemon do, perfd_result_doctor(): it tries each thing, which takes a moment. */
int perfd_doctor(perfd_client *client, perfd_result **ret_result);

/* NULL: of another request. */
const perfd_status_row *perfd_result_status(const perfd_result *result);

/* Row i, or NULL behind the last one and where the request has no such rows; the result's own. */
const perfd_cpu_row *perfd_result_cpu(const perfd_result *result, size_t i);
const perfd_doctor_row *perfd_result_doctor(const perfd_result *result, size_t i);

PERFD_END_DECLARATIONS
