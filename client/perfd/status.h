/*
 * The daemon itself, and what its host lets it do. Each function here waits for its answer, for as long as
 * perfd_client_set_timeout() says. ret_result is to be freed by perfd_result_free(); where its rows are of no interest it may
 * be NULL. All functions: PERFD_E_REFUSED, _CLOSED, _PROTOCOL, _STATE, _INVALID, _TIMEOUT, -ENOMEM.
 */
#pragma once

#include "client.h"
#include "declarations.h"
#include "field.h"
#include "result.h"

PERFD_BEGIN_DECLARATIONS

/* How this connection is limited, as by a relay: what this does not grant is not granted, whatever rules do. */
typedef struct perfd_limit {
        const char *name; /* whom the connection is for */
        char *const *subscribe; /* names of events and globs */
        size_t n_subscribe;
        const char *where; /* combined by && with the predicate of each subscription; "": none */
        bool status;       /* as in perfd_access */
        bool raw;          /* payloads with raw bytes */
        uint64_t queue_bytes; /* the largest queue of a subscription; 0: as for everybody */
} perfd_limit;

/* What the daemon's access.rules grant to this client. */
typedef struct perfd_access {
        bool is_limited;   /* false: neither rules nor a limit apply, and the client may do what its socket allows */
        uint32_t rule;     /* number of the rule that applies, from 1; 0: none matches, or none applies */
        const char *place; /* of the rule: "PATH:LINE" */
        bool status;       /* all that perfd_status_row has, lists, ledgers and what the host offers */
        char *const *subscribe; /* names of events and globs */
        size_t n_subscribe;
        const char *where; /* combined by && with the predicate of each subscription; "": none */
        char *const *emit; /* names of external events and globs */
        size_t n_emit;
        bool stat;          /* events that are only counted may be added */
        bool own_processes; /* and events on the client's own processes */
        const perfd_limit *limit; /* NULL: the connection has none */
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
        uint32_t n_closing; /* disabled fds that wait to be closed */
        uint32_t n_fallen_back;     /* events whose fallback is counted */
        uint32_t n_pending;         /* events that cannot be opened now: perfd_event_row.pending */
        uint64_t n_tasks_forgotten; /* tasks without a name, for lack of room */
        uint64_t dispatcher_stalled; /* ns for which the dispatcher has not responded; 0: it responds */
        const perfd_count *losses;   /* what n_lost is the sum of; those that are not 0 */
        size_t n_losses;
        /* without its `status` only version, clock and time are set; NULL: an older daemon without access rules */
        const perfd_access *access;
        const char *applied;  /* name of the text of an apply that is in effect instead of `config`; "": none */
        uint64_t config_read; /* CLOCK_REALTIME, ns: when the configuration in effect was read; 0: it is the defaults */
        bool config_changed;  /* its files have changed since: a reload reads them */
        const char *applied_without; /* the part of `applied` that is not in effect, "access.rules"; "": all is */
        uint64_t time; /* ns of `clock` when the daemon answered; 0: an older daemon */
        const char *state_unstored; /* why persistent events are not stored as they are now; "": they are */
} perfd_status_row;

/* The reader of a CPU. */
typedef struct perfd_cpu_row {
        uint32_t cpu;
        uint64_t n_records, n_wakeups, n_batches;
        uint64_t cpu_time; /* ns, of its reader */
        uint64_t n_pool_waits; /* drains that stopped because the dispatcher had all batches */
        uint64_t n_failovers;  /* times that its ring was read from another CPU, because its reader did not run */
        uint64_t stalled;      /* ns for which its reader has not responded; 0: it responds */
} perfd_cpu_row;

/* One thing that was tried. */
typedef struct perfd_doctor_row {
        const char *topic;  /* "events", "probes", "targets", "limits", "service" */
        const char *what;   /* "kprobes", "PERF_FORMAT_LOST" */
        bool works;
        const char *found;  /* what was tried and what Linux said */
        const char *remedy; /* the smallest one; "" if it works */
} perfd_doctor_row;

/* A function of the kernel. Lengths are 0 for what there is none of. */
typedef struct perfd_kernel_name {
        perfd_text symbol, module; /* module: "ext4", "bpf"; the kernel's own has none */
        uint64_t offset;           /* bytes of the address from the beginning of the symbol */
        uint64_t size;             /* bytes from there up to the next symbol; 0: not known */
} perfd_kernel_name;

/* By which numbers the kernel knows an event, and how its samples are laid out. */
typedef struct perfd_event_format {
        uint32_t id;
        bool has_attr;             /* false: an external event, or a group, and the rest is not set */
        uint32_t type, bp_type;    /* of perf_event_attr, as the configs */
        uint64_t config, config1, config2; /* of a probe by the PMU, the last two are 0 */
        const char *tracepoint;    /* "sched:sched_switch", a probe by its name in tracefs; "": it is none */
        perfd_text format;         /* of a tracepoint: the text of events/SYSTEM/NAME/format of tracefs */
} perfd_event_format;

/* The host that such events are of. */
typedef struct perfd_format_host {
        perfd_text header_page, header_event; /* of tracefs; empty: none of the events is a tracepoint */
        uint32_t page_bytes, long_bytes;
        bool big_endian;
        const char *machine;       /* uname -m */
        uint32_t n_cpus, n_online_cpus;
} perfd_format_host;

/* perfd_result_status(), and perfd_result_cpu() of each reader. */
int perfd_status(perfd_client *client, perfd_result **ret_result);

/* What this host lets the daemon do, perfd_result_doctor(): it tries each thing, which takes a moment. */
int perfd_doctor(perfd_client *client, perfd_result **ret_result);

/*
 * What is at these addresses of the kernel that the daemon observes, perfd_result_kernel_name() of each, in the same order: for who may not read
 * /proc/kallsyms, or is on another host. At most 4096. Refused to whom it delivers no samples with addresses of the kernel.
 */
int perfd_kernel_names(perfd_client *client, const uint64_t *addresses, size_t n_addresses, perfd_result **ret_result);

/*
 * Of running events, by their ids: perfd_result_event_format() of each, in the same order, and perfd_result_format_host(), for who writes a
 * recording and may not read tracefs, or is on another host. At most 64. Refused if samples of one of them are not granted.
 */
int perfd_formats(perfd_client *client, const uint32_t *ids, size_t n_ids, perfd_result **ret_result);

/* NULL: of another request. */
const perfd_format_host *perfd_result_format_host(const perfd_result *result);
const perfd_status_row *perfd_result_status(const perfd_result *result);

/* Row i, or NULL behind the last one and where the request has no such rows; the result's own. */
const perfd_cpu_row *perfd_result_cpu(const perfd_result *result, size_t i);
const perfd_doctor_row *perfd_result_doctor(const perfd_result *result, size_t i);
const perfd_kernel_name *perfd_result_kernel_name(const perfd_result *result, size_t i);
const perfd_event_format *perfd_result_event_format(const perfd_result *result, size_t i);

PERFD_END_DECLARATIONS
