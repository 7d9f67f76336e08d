/*
 * libperfd: the client of perfd, the daemon that owns a host's perf events. libperfd(3) explains it with an example.
 *
 * What holds everywhere:
 *  - A function that can fail returns 0, a negative -errno (memory, a socket that breaks in an unforeseen way), or a
 *    positive PERFD_E_*; perfd_client_error() then says more. Outputs (ret_*) are untouched on failure.
 *  - A client and all that comes from it belong to one thread at a time. The caller owns the loop: nothing here starts
 *    a thread, installs a signal handler, writes a log or ends the process.
 *  - Times are nanoseconds of the stream's clock, sizes are bytes. Text that comes from the traced host is perfd_text:
 *    any bytes, with a length and without a terminating zero. Every `const char *` is a C string, never NULL.
 *  - Structures that the library hands out by pointer may grow at their end; those that the caller fills begin with
 *    `size`, which their PERFD_*_INIT sets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

typedef struct perfd_client perfd_client;
typedef struct perfd_result perfd_result;
typedef struct perfd_item perfd_item;

enum {
        PERFD_E_REFUSED = 1, /* the daemon says no: perfd_error.refusal, reason, message, position */
        PERFD_E_UNREACHABLE, /* nobody listens there, or we may not connect */
        PERFD_E_CLOSED,      /* the daemon closed the connection without a word */
        PERFD_E_PROTOCOL,    /* the daemon sent what the protocol does not allow; the connection is of no use any more */
        PERFD_E_ENDED,       /* the stream has ended, after its `end` callback: nothing more will come */
        PERFD_E_STATE,       /* not connected, connected already, or the connection is a stream */
        PERFD_E_INVALID,     /* an argument that cannot be right; nothing was sent */
        PERFD_E_TIMEOUT,     /* no answer within perfd_client_set_timeout() */
};

/* Why the daemon refused: the kind of mistake. */
typedef enum perfd_refusal {
        PERFD_REFUSED_NOT = 0,
        PERFD_REFUSED_INVALID = 1,     /* the request cannot be right */
        PERFD_REFUSED_NOT_FOUND = 2,
        PERFD_REFUSED_EXISTS = 3,
        PERFD_REFUSED_DENIED = 4,      /* this connection, or the daemon itself, may not */
        PERFD_REFUSED_EXHAUSTED = 5,   /* a limit or quota: reason names it */
        PERFD_REFUSED_UNSUPPORTED = 6, /* this kernel or machine cannot */
        PERFD_REFUSED_INTERNAL = 7,    /* perfd's fault: see its log */
        PERFD_REFUSED_VERSION = 8,     /* protocol version not spoken */
} perfd_refusal;

typedef struct perfd_error {
        int code;              /* what the function returned; 0 if nothing failed yet */
        perfd_refusal refusal; /* with PERFD_E_REFUSED */
        const char *reason;    /* for programs: a stable word, e.g. "unknown-event", "unreachable" */
        const char *message;   /* for people: what, where, what to do */
        unsigned position;     /* 1 + byte offset of the mistake in an expression, filter or YAML text; 0 is none */
} perfd_error;

/* Bytes from the traced host. */
typedef struct perfd_text {
        const char *bytes;
        size_t length;
} perfd_text;

typedef enum perfd_kind {
        PERFD_UNSIGNED = 0,
        PERFD_SIGNED = 1, /* two's complement: cast to int64_t */
        PERFD_POINTER = 2,
        PERFD_BOOL = 3,
        PERFD_TEXT = 4,   /* up to its terminating zero */
        PERFD_BYTES = 5,  /* all bytes */
} perfd_kind;

/* ---- connection ---------------------------------------------------------------------------------------------------*/

/* program: a word for the daemon's log, e.g. "mytool 1.2". NULL: no memory. */
perfd_client *perfd_client_new(const char *program);
/* Takes NULL. Closes the connection; results stay valid, items, events and errors do not. */
void perfd_client_free(perfd_client *client);

/* Most milliseconds that one of the waiting calls below may take; -1, as at first, is for ever. */
void perfd_client_set_timeout(perfd_client *client, int milliseconds);
/* Waits for the daemon's greeting. PERFD_E_UNREACHABLE, PERFD_E_REFUSED, PERFD_E_CLOSED, PERFD_E_PROTOCOL, _TIMEOUT. */
int perfd_client_connect(perfd_client *client, const char *path);
/*
 * The same on a stream socket that is connected already, e.g. through a tunnel; the fd is the client's from now on. Streams
 * share memory with the daemon only if ring_bytes says so.
 */
int perfd_client_connect_fd(perfd_client *client, int fd);

/* Of the last function that failed; valid until the next call on this client. */
const perfd_error *perfd_client_error(const perfd_client *client);
/* The daemon's version, "" before it is known; and whether this connection may change anything. */
const char *perfd_client_version(const perfd_client *client);
bool perfd_client_may_change(const perfd_client *client);

/* ---- requests: each waits for its answer --------------------------------------------------------------------------*/

typedef enum perfd_callchain {
        PERFD_CALLCHAIN_NONE = 0,
        PERFD_CALLCHAIN_KERNEL = 1,
        PERFD_CALLCHAIN_USER = 2,
        PERFD_CALLCHAIN_BOTH = 3,
} perfd_callchain;

/* NULL and "" are the same. */
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

/* A value of an external event's field; of the kind that its type asks for ("s32": PERFD_SIGNED). */
typedef struct perfd_external_value {
        perfd_kind kind; /* PERFD_UNSIGNED, _SIGNED, _BOOL: number; PERFD_TEXT, _BYTES: text */
        uint64_t number; /* two's complement if signed */
        perfd_text text;
} perfd_external_value;

typedef struct perfd_external_sample {
        size_t size;
        const char *event; /* the name of a running external event */
        uint64_t time;
        uint32_t pid, tid, cpu;
        const perfd_external_value *values; /* in the order of the event's fields, all of them */
        size_t n_values;
} perfd_external_sample;

#define PERFD_EXTERNAL_SAMPLE_INIT { .size = sizeof(perfd_external_sample) }

/*
 * ret_result is to be freed; where a request's rows are of no interest it may be NULL. All of a list is changed, or
 * nothing. Names are names, globs, "#ID" or "@GROUP". All: PERFD_E_REFUSED, _CLOSED, _PROTOCOL, _STATE, _INVALID, _TIMEOUT.
 */
int perfd_status(perfd_client *client, perfd_result **ret_result);
int perfd_list(perfd_client *client, const char *glob, perfd_result **ret_result);
/* The same, with the fields of each event. */
int perfd_list_with_fields(perfd_client *client, const char *glob, perfd_result **ret_result);
int perfd_available(perfd_client *client, const char *glob, bool fields, perfd_result **ret_result);
int perfd_add(perfd_client *client, const perfd_event_spec *specs, size_t n_specs, perfd_result **ret_result);
/* The same, but they are removed when this connection closes. */
int perfd_add_temporary(perfd_client *client, const perfd_event_spec *specs, size_t n_specs, perfd_result **ret_result);
/* The same, but they are there again after a restart of the daemon. */
int perfd_add_kept(perfd_client *client, const perfd_event_spec *specs, size_t n_specs, perfd_result **ret_result);
int perfd_remove(perfd_client *client, const char *const *names, size_t n_names, perfd_result **ret_result);
int perfd_enable(perfd_client *client, const char *const *names, size_t n_names, perfd_result **ret_result);
int perfd_disable(perfd_client *client, const char *const *names, size_t n_names, perfd_result **ret_result);
int perfd_set_filter(perfd_client *client, const char *name, const char *filter); /* "" removes it */
/* One of both is 0. */
int perfd_set_period(perfd_client *client, const char *name, uint64_t period, uint64_t frequency);
int perfd_ledger(perfd_client *client, perfd_result **ret_result);
/* Only of these events, by names, globs, "#ID" or "@GROUP", and of the subscribers that have asked for one of them. */
int perfd_ledger_of(perfd_client *client, const char *const *events, size_t n_events, perfd_result **ret_result);
/* Mistakes are rows of the result, not an error. A zero byte in the text is PERFD_E_INVALID with its position. */
int perfd_validate(perfd_client *client, const char *yaml, size_t length, perfd_result **ret_result);
typedef struct perfd_config_text {
        const char *path; /* how messages call it */
        const char *yaml;
        size_t length;
} perfd_config_text;
/*
 * The same of a configuration with its drop-ins, in the order in which they are read; the first of n is the main file.
 * PERFD_E_PROTOCOL too: the daemon is older, and looks at the main file only.
 */
int perfd_validate_all(perfd_client *client, const perfd_config_text *texts, size_t n, perfd_result **ret_result);
int perfd_reload(perfd_client *client, perfd_result **ret_result);
/*
 * A text as the daemon's configuration until the next reload, and what that would do. `path` is how messages call it. What is
 * wrong with it is PERFD_E_REFUSED; a zero byte is as for perfd_validate().
 */
int perfd_plan(perfd_client *client, const char *yaml, size_t length, const char *path, perfd_result **ret_result);
/* What perfd_apply() with the same arguments would do. */
int perfd_plan_apply(perfd_client *client, const char *yaml, size_t length, const char *path, bool may_wait,
                     perfd_result **ret_result);
/* may_wait: events that cannot be opened now are pending, instead of PERFD_E_REFUSED for all. */
int perfd_apply(perfd_client *client, const char *yaml, size_t length, const char *path, bool may_wait,
                perfd_result **ret_result);
/* What this host lets the daemon do: it tries each thing, which takes a moment. */
int perfd_doctor(perfd_client *client, perfd_result **ret_result);
/*
 * Samples of running external events: if one of them is wrong, none is taken. The times are of perfd_status_row.clock, and
 * not 0. What became of them is in perfd_result_emitted(); those that are neither taken nor lost are of disabled events.
 */
int perfd_emit(perfd_client *client, const perfd_external_sample *samples, size_t n_samples, perfd_result **ret_result);

/* ---- results ------------------------------------------------------------------------------------------------------*/

typedef struct perfd_value_name {
        uint64_t value;
        const char *name;
} perfd_value_name;

typedef struct perfd_field {
        const char *name;
        const char *type;  /* as declared: "unsigned long args[6]" */
        perfd_kind kind;   /* of the elements, if it is an array */
        uint32_t size;     /* bytes of one element in the kernel's record */
        uint32_t count;    /* 1: scalar, n: fixed array, 0: dynamic array */
        const perfd_value_name *values;
        size_t n_values;
        bool flags;        /* values are bits or'ed together */
        const char *delimiter;
        bool hex;          /* the kernel's own format shows it as hexadecimal */
        size_t index;      /* in the list of fields that it comes from */
} perfd_field;

typedef struct perfd_count {
        const char *reason;
        uint64_t count;
} perfd_count;

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

typedef struct perfd_cpu_row {
        uint32_t cpu;
        uint64_t n_records, n_wakeups, n_batches;
        uint64_t cpu_time; /* ns, of its reader */
        uint64_t n_pool_waits; /* drains that stopped because the dispatcher had all batches */
        uint64_t n_failovers;  /* times that its ring was read from another CPU, because its reader did not run */
        uint64_t stalled;      /* ns since when its reader does not answer; 0: it does */
} perfd_cpu_row;

typedef struct perfd_event_row {
        uint32_t id;
        const perfd_event_spec *spec; /* spec->name and spec->group are always set */
        bool enabled, configured;     /* configured: comes from the configuration, not from a client */
        uint32_t n_fds;
        uint64_t delivered, lost;
        bool fallen_back;   /* spec->fallback is counted instead */
        const char *place;  /* probes: what resolved, with file and build id */
        uint64_t n_targets; /* tasks or cgroups that it has fds on; 0: whole CPUs */
        bool kept;          /* it is there again after a restart of the daemon */
        const char *waiting; /* pending: why it cannot be opened now; configured or kept, and without an id; "": it runs */
        const char *absent;  /* which of its cgroups, containers and units is not there now; "": all are */
        const perfd_field *fields; /* perfd_list_with_fields() */
        size_t n_fields;
        bool has_uid;       /* a client has added it */
        uint32_t uid;       /* the client's, whose quota it counts for */
        const perfd_count *losses; /* what lost is the sum of; those that are not 0 */
        size_t n_losses;
} perfd_event_row;

typedef struct perfd_available_row {
        const char *event;
        const char *kind;          /* "tracepoint", "software" */
        const perfd_field *fields; /* if asked for */
        size_t n_fields;
        const char *help;          /* often "" */
        const char *unit;          /* of its count: "ns", "events" */
} perfd_available_row;

typedef struct perfd_ref_row {
        uint32_t id;
        const char *name;
} perfd_ref_row;

typedef struct perfd_mistake_row {
        const char *path;
        uint32_t line, column;
        const char *text;
        const char *reason; /* of a warning: why an event would be pending, for programs; else "" */
} perfd_mistake_row;

typedef struct perfd_reload_row {
        uint32_t added, removed, changed, kept;
        uint32_t pending; /* that cannot be opened now: perfd_event_row.waiting */
        uint64_t ring_size; /* bytes that each ring has now, if that was changed; 0: it is as before */
} perfd_reload_row;

/* What differs between an event that runs and what it would be; or a setting of the configuration. */
typedef struct perfd_difference {
        const char *field;          /* as perfd.yaml calls it: "filter", "rings.size" */
        const char *before, *after; /* "": not there */
        bool restart;               /* a setting that holds only when perfd has been started anew */
} perfd_difference;

typedef enum perfd_change {
        PERFD_CHANGE_ADDED,
        PERFD_CHANGE_REMOVED,
        PERFD_CHANGE_CHANGED,
        PERFD_CHANGE_KEPT,
        PERFD_CHANGE_PENDING, /* it cannot be opened now */
} perfd_change;

typedef struct perfd_planned_row {
        perfd_change change;
        uint32_t id;    /* of the running event; 0: there is none */
        const char *name;
        const char *event;
        const char *group;
        bool replaced;  /* changed by a new event with a new id, whose counts begin at 0 */
        const perfd_difference *differences;
        size_t n_differences;
        const char *why, *reason; /* of a pending one: for people, with its place, and for programs; else "" */
} perfd_planned_row;

typedef struct perfd_emitted_row {
        uint32_t taken;
        uint32_t late; /* of these: older than what the streams in the order of time had delivered */
        uint32_t lost; /* not taken: the daemon had no room for them; the ledger has them as batch_pool */
} perfd_emitted_row;

typedef struct perfd_doctor_row {
        const char *topic;  /* "events", "probes", "targets", "limits", "service" */
        const char *what;   /* "kprobes", "PERF_FORMAT_LOST" */
        bool works;
        const char *found;  /* what was tried and what Linux said */
        const char *remedy; /* the smallest one; "" if it works */
} perfd_doctor_row;

/* At the end of a stream: what of a row's numbers was from where the stream began to where it ended. The same sum. */
typedef struct perfd_ledger_since {
        uint64_t occurred, delivered, filtered;
        const perfd_count *lost;
        size_t n_lost;
} perfd_ledger_since;

/*
 * `balanced` in the three ledgers: the daemon says so, and the sum, done again here, agrees.
 * An event on one CPU: occurred = delivered + filtered + all of lost.
 */
typedef struct perfd_event_ledger {
        uint32_t id;
        const char *name;
        uint32_t cpu;
        uint64_t occurred, delivered, filtered;
        const perfd_count *lost;
        size_t n_lost;
        bool balanced;
        bool exact;       /* occurred is the kernel's own count */
        uint64_t count;   /* the kernel's count, in the event's unit */
        uint64_t doubled; /* counted twice during a live change, lost or not, and delivered at most once; not part of occurred */
        bool external;    /* emitted by clients: of no CPU */
        bool removed;     /* at the end of a stream: it was removed while the stream was there */
        const perfd_ledger_since *since; /* NULL: not at the end of a stream, or not known */
        bool stalled;     /* the reader of this CPU does not answer: what was read until now, and never balanced */
} perfd_event_ledger;

/* A CPU's ring: records = samples + side_records + lost "unknown_id" and "undecodable". */
typedef struct perfd_ring_ledger {
        uint32_t cpu;
        uint64_t records, samples, side_records;
        const perfd_count *lost;
        size_t n_lost;
        bool balanced;
        const perfd_count *lost_since; /* at the end of a stream: of `lost`, while it was there */
        size_t n_lost_since;
        bool stalled; /* its reader does not answer: no number of this CPU is of the moment of the others */
        uint64_t foreign_times; /* samples that had the time of another tool's clock, and have that of the one before them */
} perfd_ring_ledger;

/* A subscriber: matched = sent + all of dropped + queued. */
typedef struct perfd_subscriber_ledger {
        uint64_t id;
        const char *peer;
        uint64_t matched, sent;
        const perfd_count *dropped;
        size_t n_dropped;
        uint64_t queued;
        bool balanced;
        const char *order; /* "time", "cpu" */
} perfd_subscriber_ledger;

/* What the kernel itself could not even count: hits of a probe while it was busy. Of the whole host. */
typedef struct perfd_probe_ledger {
        uint32_t id; /* of the event */
        const char *name;
        uint64_t hits, missed;
        bool known;  /* false: this kernel does not count them for this kind of probe */
        uint64_t missed_since; /* at the end of a stream: of `missed`, while it was there */
} perfd_probe_ledger;

/* Takes NULL. */
void perfd_result_free(perfd_result *result);

/* Row i of its kind, or NULL behind the last one and where the request has no such rows; the result's own. */
const perfd_status_row *perfd_result_status(const perfd_result *result);
const perfd_cpu_row *perfd_result_cpu(const perfd_result *result, size_t i);                     /* perfd_status() */
const perfd_event_row *perfd_result_event(const perfd_result *result, size_t i);                 /* perfd_list() */
const perfd_available_row *perfd_result_available(const perfd_result *result, size_t i);
const perfd_ref_row *perfd_result_ref(const perfd_result *result, size_t i);                     /* what was changed */
const perfd_mistake_row *perfd_result_mistake(const perfd_result *result, size_t i);
const perfd_mistake_row *perfd_result_warning(const perfd_result *result, size_t i);             /* valid all the same */
const perfd_reload_row *perfd_result_reload(const perfd_result *result);
const perfd_event_ledger *perfd_result_event_ledger(const perfd_result *result, size_t i);
const perfd_ring_ledger *perfd_result_ring_ledger(const perfd_result *result, size_t i);
const perfd_subscriber_ledger *perfd_result_subscriber_ledger(const perfd_result *result, size_t i);
const perfd_probe_ledger *perfd_result_probe_ledger(const perfd_result *result, size_t i);
const perfd_planned_row *perfd_result_planned(const perfd_result *result, size_t i);             /* perfd_plan() */
/* Of a plan what differs beside the events; of perfd_reload() and perfd_apply() what holds only when perfd has been started anew. */
const perfd_difference *perfd_result_setting(const perfd_result *result, size_t i);
const perfd_emitted_row *perfd_result_emitted(const perfd_result *result);
const perfd_doctor_row *perfd_result_doctor(const perfd_result *result, size_t i);
/* perfd_add(): what is worth to be known of what was added, for people: that a CPU is offline now. */
const char *perfd_result_note(const perfd_result *result, size_t i);

/*
 * perfd_available(): more match than fit in an answer. A ledger: rows of events are left out, because there are more than
 * fit, or because too many events were removed while the stream was there.
 */
bool perfd_result_is_truncated(const perfd_result *result);
/* A ledger: every row is balanced; and the kernel's losses are exact, not a lower bound. */
bool perfd_result_is_balanced(const perfd_result *result);
bool perfd_result_is_loss_exact(const perfd_result *result);

/* ---- streams ------------------------------------------------------------------------------------------------------*/

typedef enum perfd_order {
        PERFD_ORDER_TIME = 0, /* by time across CPUs */
        PERFD_ORDER_CPU = 1,  /* of each CPU as it comes: cheapest */
} perfd_order;

typedef enum perfd_payload {
        PERFD_PAYLOAD_FIELDS = 0,
        PERFD_PAYLOAD_RAW = 1,
        PERFD_PAYLOAD_BOTH = 2,
} perfd_payload;

/* What the daemon does when this subscriber is too slow for its queue. */
typedef enum perfd_overflow {
        PERFD_OVERFLOW_DROP_OLDEST = 0,
        PERFD_OVERFLOW_DROP_NEWEST = 1,
        PERFD_OVERFLOW_DISCONNECT = 2,
} perfd_overflow;

/* What an item is: a sample, or a side record with the meaning of perf_event_open(2). */
typedef enum perfd_record {
        PERFD_SAMPLE,
        PERFD_COMM,
        PERFD_FORK,
        PERFD_EXIT,
        PERFD_MMAP2,
        PERFD_LOST,
        PERFD_LOST_SAMPLES,
        PERFD_THROTTLE,
        PERFD_UNTHROTTLE,
        PERFD_SWITCH,
        PERFD_NAMESPACES,
        PERFD_KSYMBOL,
        PERFD_BPF_EVENT,
        PERFD_CGROUP,
        PERFD_TEXT_POKE,
        PERFD_AUX,
        PERFD_ITRACE_START,
        PERFD_AUX_OUTPUT_HW_ID,
        PERFD_READ,    /* the counters of an event, read at its interval or when a thread ended */
        PERFD_UNKNOWN, /* a record of the kernel that the daemon does not know */
} perfd_record;

/* LOST, LOST_SAMPLES, THROTTLE and UNTHROTTLE have none: they come always. */
#define PERFD_RECORD_BIT(record)                                                                                       \
        ((uint32_t)1 << ((record) < PERFD_SWITCH ? (record) - PERFD_COMM : (record) - PERFD_SWITCH + 4))

typedef struct perfd_subscription {
        size_t size;
        const char *const *events; /* names or globs; none: every event, also those added later */
        size_t n_events;
        const char *where;         /* filter expression, evaluated in the daemon */
        const char *const *fields; /* only these of each event; none: all */
        size_t n_fields;
        perfd_order order;
        perfd_payload payload;
        perfd_overflow overflow;
        uint64_t queue_bytes;      /* 0: the daemon's default */
        uint32_t records;          /* PERFD_RECORD_BIT() of each side record wanted */
        uint64_t latency;          /* ns that a sample may lie in its CPU's ring; 0: what costs the host least */
        uint32_t ring_bytes;       /* of memory shared with the daemon, a power of two, 64 KiB to 16 MiB; 0: what is best */
} perfd_subscription;

#define PERFD_NO_RING UINT32_MAX /* ring_bytes: the stream comes by the socket */

#define PERFD_SUBSCRIPTION_INIT { .size = sizeof(perfd_subscription) }

typedef struct perfd_start {
        const char *clock;   /* "monotonic", "monotonic-raw", "boottime", "realtime" */
        int64_t wall_offset; /* add it to a time to get nanoseconds since 1970 */
        const char *host;
        const char *kernel;
        uint32_t n_cpus;
        perfd_order order;
        perfd_payload payload;
        perfd_overflow overflow;
        uint64_t queue_bytes;
        uint32_t ring_bytes; /* 0: the stream comes by the socket */
} perfd_start;

typedef struct perfd_counter {
        const char *event; /* as in perf list */
        const char *unit;  /* of its value: "events", "ns", "Joules" */
        double scale;      /* value times this is in `unit` */
} perfd_counter;

/* Valid until the `removed` callback for it returned, another `event` with this id, or the client's end. */
typedef struct perfd_event {
        uint32_t id;
        const char *name;
        const char *event;  /* as in perf list */
        const perfd_field *fields;
        size_t n_fields;
        uint64_t period;    /* of every sample; 0 if by frequency */
        uint64_t frequency;
        const char *unit;   /* of period: "events", "ns" */
        const perfd_counter *counters; /* what perfd_item_read() gives, in its order */
        size_t n_counters;
        uint64_t interval;  /* ns between two PERFD_READ items; 0: none come */
} perfd_event;

typedef struct perfd_gap_event {
        uint32_t id;      /* 0: side records of the host */
        const char *name; /* "" for these, and where no descriptor came */
        uint64_t items;
} perfd_gap_event;

/* What this subscriber did not get. */
typedef struct perfd_gap {
        const char *reason; /* "outbox", "memory" */
        uint64_t first_sequence, last_sequence;
        uint64_t items;
        uint64_t from, to;  /* times of the first and of the last item that is missing */
        const perfd_gap_event *events;
        size_t n_events;
} perfd_gap;

typedef struct perfd_end {
        const char *reason;         /* "stopped", "shutdown", "overflow", "limit" */
        uint64_t received;          /* items that came, counted here: has to be own->sent */
        uint64_t missed;            /* items of all gaps: has to be own->dropped "outbox" and "memory" */
        const perfd_result *ledger; /* the closing ledger, valid during the callback */
        const perfd_subscriber_ledger *own; /* the row of this stream; NULL if there is none */
        /*
         * What was lost while the stream was there, at all stages, of what it has asked for: a count for each reason, only of
         * those above 0. "outbox" and "late" are of this stream; "probe_missed" are hits that the kernel could not count;
         * "side_records" is what a full ring lost of its side records, which say who tasks are.
         */
        const perfd_count *lost;
        size_t n_lost;
} perfd_end;

/*
 * Called from perfd_client_process(), in the order of the stream; any may be NULL. What they are given is valid until
 * they return, but for events. They must not free the client; perfd_stream_stop() is allowed.
 */
typedef struct perfd_callbacks {
        size_t size;
        void (*start)(void *userdata, const perfd_start *start);
        void (*event)(void *userdata, const perfd_event *event); /* before its first item */
        void (*item)(void *userdata, const perfd_item *item);
        void (*gap)(void *userdata, const perfd_gap *gap);       /* at the place of what is missing */
        void (*removed)(void *userdata, uint32_t id, const char *name);
        void (*end)(void *userdata, const perfd_end *end);
} perfd_callbacks;

#define PERFD_CALLBACKS_INIT { .size = sizeof(perfd_callbacks) }

/*
 * Waits for the daemon's yes; from then on the connection is this stream, which comes by perfd_client_process().
 * On PERFD_E_REFUSED the connection stays usable for other requests.
 */
int perfd_subscribe(perfd_client *client, const perfd_subscription *subscription, const perfd_callbacks *callbacks,
                    void *userdata);
/* Asks for the end; what is on its way and the `end` callback still come. A second one does nothing. PERFD_E_STATE. */
int perfd_stream_stop(perfd_client *client);

/* For poll(2): the socket, -1 if there is none, and what to wait for (POLLIN, POLLOUT). */
int perfd_client_fd(const perfd_client *client);
short perfd_client_events(const perfd_client *client);
/*
 * Reads and writes what can be without waiting, at most about a megabyte and a ring, and calls back for what came. 0: go on
 * waiting; PERFD_E_ENDED, PERFD_E_CLOSED, PERFD_E_PROTOCOL (also for a gap in the sequence that nobody explains).
 */
int perfd_client_process(perfd_client *client);
/*
 * For ppoll(2): when perfd_client_process() is to be called at the latest, also if nothing can be read; ns of CLOCK_MONOTONIC,
 * UINT64_MAX: only when something can. Ask for it each time before waiting, or never: who asks promises to call it by then,
 * whatever else may happen, so that the daemon need not wake it at each tick, which costs the traced host more than what is
 * done with the samples.
 */
uint64_t perfd_client_due(perfd_client *client);
/*
 * Waits until perfd_client_process() is to be called, for whom nothing else is to be waited for: by the fd, the events and the
 * time above. 0, also after a signal: call it then; what ppoll(2) says, PERFD_E_STATE without a connection.
 */
int perfd_client_wait(perfd_client *client);

/* ---- tasks: who did it, valid during the item callback ------------------------------------------------------------*/

typedef struct perfd_process {
        uint32_t pid;
        uint32_t parent;       /* pid of who made it; 0: not known */
        bool has_uid;          /* uid is known: its own when perfd first saw it, or its parent's */
        uint32_t uid;
        uint64_t start;        /* ns of the stream's clock, to 10 ms if it is older than the stream; 0: not known */
        perfd_text executable; /* path, as the process itself sees it; empty: a kernel thread, or not known */
        perfd_text cgroup;     /* path in the hierarchy that perf events use; empty: not known */
        uint64_t cgroup_id;    /* 0: not known */
        const char *container; /* id; this and what follows: what the cgroup's path says, "" if nothing */
        const char *runtime;   /* "docker", "containerd", "cri-o", "podman" */
        const char *pod_uid;   /* Kubernetes */
        const char *unit;      /* systemd: "nginx.service" */
} perfd_process;

typedef struct perfd_task {
        uint32_t pid, tid;
        perfd_text comm;
        uint64_t since; /* ns: comm holds since then; 0: since before the stream knew of it */
        const perfd_process *process; /* never NULL */
} perfd_task;

/* ---- items: valid during the item callback ------------------------------------------------------------------------*/

perfd_record perfd_item_record(const perfd_item *item);
/* NULL for side records of the host. */
const perfd_event *perfd_item_event(const perfd_item *item);
uint64_t perfd_item_time(const perfd_item *item);
uint32_t perfd_item_cpu(const perfd_item *item);
uint32_t perfd_item_pid(const perfd_item *item);
uint32_t perfd_item_tid(const perfd_item *item);
/*
 * Name of the thread: of perfd_item_task(), or that of the idle thread of its CPU, "swapper/1"; empty if not known. Where
 * perfd runs in a pid namespace, whoever is outside of it has tid 0 too, and all of these are "idle-or-outside". A tid of 0
 * and an empty name are those of nobody: of PERFD_READ items, and of samples that a client emitted without a tid.
 */
perfd_text perfd_item_comm(const perfd_item *item);
/*
 * The thread and the process that did it, as they were then; in the order of time exactly, in that of each CPU as far as
 * was known when it came. NULL if nothing is known of them, and for the idle thread.
 */
const perfd_task *perfd_item_task(const perfd_item *item);
const perfd_process *perfd_item_process(const perfd_item *item);
/* The tracepoint's raw bytes, if the subscription asked for them. */
perfd_text perfd_item_raw(const perfd_item *item);
/* PERFD_CALLCHAIN_KERNEL or _USER: addresses, innermost first. */
size_t perfd_item_callchain(const perfd_item *item, perfd_callchain part, const uint64_t **ret_addresses);
uint64_t perfd_item_ip(const perfd_item *item);
uint64_t perfd_item_address(const perfd_item *item);
uint64_t perfd_item_period(const perfd_item *item); /* how many of perfd_event.unit it stands for; 0 is 1 */

typedef struct perfd_value {
        const perfd_field *field;
        const uint64_t *numbers; /* number kinds: `count` of them, widened to 64 bits */
        size_t count;
        perfd_text text;         /* PERFD_TEXT, PERFD_BYTES */
} perfd_value;

/* Field i of perfd_item_event()->fields, or by its name. False: there is none. */
bool perfd_item_get(const perfd_item *item, size_t i, perfd_value *ret_value);
bool perfd_item_find(const perfd_item *item, const char *name, perfd_value *ret_value);

/*
 * As people read it: names of values and flags, hexadecimal where the kernel's format is, arrays in braces; texts as
 * they are. Like snprintf(3): never more than `size` bytes, always ended by a zero, and the return value is the length
 * that the whole text has.
 */
size_t perfd_value_render(const perfd_value *value, char *to, size_t size);

typedef struct perfd_symbol {
        const char *name, *module; /* module: "" if it is in none */
        uint64_t address, size;    /* where it begins, and its bytes up to the next one */
} perfd_symbol;

/* What the caller knows of the addresses of the kernel that the stream comes from. */
typedef struct perfd_symbols {
        size_t size;
        bool (*find)(void *userdata, uint64_t address, perfd_symbol *ret_symbol); /* false: not known */
        void *userdata;
} perfd_symbols;

#define PERFD_SYMBOLS_INIT { .size = sizeof(perfd_symbols) }

/*
 * Field i of perfd_item_event()->fields as the event's own print format shows it: "8,0" of a device, "127.0.0.1:80", the name of
 * a function if `symbols`, which may be NULL, knows it. Numbers in hexadecimal begin with 0x, octal ones with 0, also where the format has none.
 * What the format does not show, or computes under another name, is that of perfd_value_render(), PERFD_BYTES in hexadecimal; so
 * is all, if the event has no print format. The rest as there; 0 also if there is no such field.
 */
size_t perfd_item_render(const perfd_item *item, size_t i, const perfd_symbols *symbols, char *to, size_t size);
/* The name of one number of this field, as perfd_value_render() has it; 0 if the format has no name for it. */
size_t perfd_field_render(const perfd_field *field, uint64_t number, char *to, size_t size);

typedef struct perfd_comm_record {
        uint32_t pid, tid;
        perfd_text comm;
        bool exec;
} perfd_comm_record;

typedef struct perfd_task_record {
        uint32_t pid, ppid, tid, ptid;
} perfd_task_record;

typedef struct perfd_mmap2_record {
        uint32_t pid, tid;
        uint64_t addr, len, pgoff;
        uint32_t maj, min;
        uint64_t ino, ino_generation;
        perfd_text build_id; /* instead of maj, min, ino, ino_generation */
        uint32_t prot, flags;
        perfd_text filename;
} perfd_mmap2_record;

typedef struct perfd_switch_record { /* the item's thread got the CPU, or left it */
        bool out, preempted;
        bool cpu_wide; /* then the next two are there */
        uint32_t next_prev_pid, next_prev_tid;
} perfd_switch_record;

typedef struct perfd_namespace {
        uint64_t dev, inode;
} perfd_namespace;

typedef struct perfd_namespaces_record {
        uint32_t pid, tid;
        const perfd_namespace *namespaces; /* net, uts, ipc, pid, user, mnt, cgroup */
        size_t n_namespaces;
} perfd_namespaces_record;

typedef struct perfd_ksymbol_record {
        uint64_t addr;
        uint32_t len, type, flags;
        perfd_text name;
} perfd_ksymbol_record;

typedef struct perfd_bpf_event_record {
        uint32_t type, flags, id;
        perfd_text tag;
} perfd_bpf_event_record;

typedef struct perfd_cgroup_record {
        uint64_t id;
        perfd_text path;
} perfd_cgroup_record;

typedef struct perfd_text_poke_record {
        uint64_t addr;
        perfd_text old_bytes, new_bytes;
} perfd_text_poke_record;

typedef struct perfd_aux_record {
        uint64_t offset, size, flags;
} perfd_aux_record;

typedef struct perfd_unknown_record {
        uint32_t type, misc;
        perfd_text bytes;
} perfd_unknown_record;

/* NULL if the item is another record. */
const perfd_comm_record *perfd_item_comm_record(const perfd_item *item);
const perfd_task_record *perfd_item_task_record(const perfd_item *item); /* FORK, EXIT; ITRACE_START, READ: pid, tid */
const perfd_mmap2_record *perfd_item_mmap2_record(const perfd_item *item);
const perfd_switch_record *perfd_item_switch_record(const perfd_item *item);
const perfd_namespaces_record *perfd_item_namespaces_record(const perfd_item *item);
const perfd_ksymbol_record *perfd_item_ksymbol_record(const perfd_item *item);
const perfd_bpf_event_record *perfd_item_bpf_event_record(const perfd_item *item);
const perfd_cgroup_record *perfd_item_cgroup_record(const perfd_item *item);
const perfd_text_poke_record *perfd_item_text_poke_record(const perfd_item *item);
const perfd_aux_record *perfd_item_aux_record(const perfd_item *item);
const perfd_unknown_record *perfd_item_unknown_record(const perfd_item *item);
/* LOST, LOST_SAMPLES: how many the kernel could not write before this place. */
uint64_t perfd_item_lost(const perfd_item *item);
/* THROTTLE, UNTHROTTLE: of which stream; samples: PERF_SAMPLE_STREAM_ID. */
uint64_t perfd_item_stream_id(const perfd_item *item);
/* AUX_OUTPUT_HW_ID */
uint64_t perfd_item_hw_id(const perfd_item *item);

/* ---- parts of samples that an event's attr asked for; 0, NULL or empty where it did not ---------------------------*/

/* running < enabled: scale by enabled / running. running 0: not counted, which is not 0. */
typedef struct perfd_read_value {
        uint64_t value;
        uint64_t enabled, running; /* ns */
        uint64_t lost;             /* samples of it that the kernel could not write */
} perfd_read_value;

typedef struct perfd_branch {
        uint64_t from, to;
        bool mispredicted, predicted; /* neither: not known */
        bool in_transaction, abort;
        uint32_t cycles;              /* since the branch before; 0: not known */
        uint32_t type, spec, new_type, privilege; /* PERF_BR_*, _SPEC_*, _NEW_*, _PRIV_* of linux/perf_event.h */
        uint64_t counters;            /* as the CPU packs them */
} perfd_branch;

typedef struct perfd_registers {
        uint32_t abi;     /* PERF_SAMPLE_REGS_ABI_*; 0: there were none */
        uint32_t machine; /* EM_* of elf.h */
        uint64_t mask;
        const uint64_t *values; /* by rising bit of mask */
        size_t n_values;
} perfd_registers;

typedef struct perfd_weight {
        uint64_t full;             /* PERF_SAMPLE_WEIGHT; or the others, PERF_SAMPLE_WEIGHT_STRUCT */
        uint32_t var1, var2, var3;
} perfd_weight;

/* union perf_mem_data_src */
typedef struct perfd_data_source {
        uint64_t raw;
        uint32_t op, level, snoop, lock, dtlb, level_number, remote, snoop_extra, blocked, hops;
} perfd_data_source;

typedef struct perfd_transaction {
        uint32_t flags; /* PERF_TXN_* */
        uint32_t abort_code;
} perfd_transaction;

/* Of a sample, or of a PERFD_READ item: in the order of perfd_item_event()->counters. */
size_t perfd_item_read(const perfd_item *item, const perfd_read_value **ret_values);
/* Newest first. */
size_t perfd_item_branches(const perfd_item *item, const perfd_branch **ret_branches);
/* Which of the hardware's entries the newest branch is; false: not known. */
bool perfd_item_branch_hw_index(const perfd_item *item, uint64_t *ret_index);
const perfd_registers *perfd_item_user_registers(const perfd_item *item);
const perfd_registers *perfd_item_interrupt_registers(const perfd_item *item);
/* Of a bit of perfd_registers.mask, as perf-script(1) calls it: "IP", "x0"; NULL: not known. */
const char *perfd_register_name(uint32_t machine, unsigned bit);
/* From the stack pointer upwards. */
perfd_text perfd_item_user_stack(const perfd_item *item);
const perfd_weight *perfd_item_weight(const perfd_item *item);
const perfd_data_source *perfd_item_data_source(const perfd_item *item);
const perfd_transaction *perfd_item_transaction(const perfd_item *item);
uint64_t perfd_item_physical_address(const perfd_item *item);
uint64_t perfd_item_cgroup_id(const perfd_item *item);
uint64_t perfd_item_data_page_size(const perfd_item *item);
uint64_t perfd_item_code_page_size(const perfd_item *item);
perfd_text perfd_item_aux_bytes(const perfd_item *item);
uint64_t perfd_item_sample_id(const perfd_item *item);

#pragma GCC visibility pop

/* For __attribute__((cleanup)). */
static inline void perfd_client_freep(perfd_client **client) {
        perfd_client_free(*client);
}

static inline void perfd_result_freep(perfd_result **result) {
        perfd_result_free(*result);
}

#ifdef __cplusplus
}
#endif
