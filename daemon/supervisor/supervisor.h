/*
 * The supervisor: owns the configuration, what is traced, every perf fd, and the other threads. Main thread only, all
 * of it; what it shares with other threads are snapshots, mails and counters.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "config/config.h"
#include "config/parse/load.h"
#include "config/event-name/event-name.h"
#include "daemon/base/error.h"
#include "daemon/base/index.h"
#include "daemon/closer.h"
#include "daemon/control/control.h"
#include "daemon/dispatcher/dispatcher.h"
#include "daemon/encode/item.h"
#include "daemon/kernel/event/attr.h"
#include "daemon/kernel/cgroup/cgroup.h"
#include "daemon/kernel/privileges/privileges.h"
#include "daemon/kernel/probe/probe.h"
#include "daemon/kernel/tracefs/tracing.h"
#include "daemon/model/comm-table.h"
#include "daemon/model/snapshot.h"
#include "daemon/reader/reader.h"
#include "daemon/route/match.h"
#include "daemon/reader/stall-monitor.h"
#include "daemon/supervisor/readers/births.h"
#include "daemon/supervisor/readers/emit-pipe.h"
#include "daemon/supervisor/readers/hooks.h"
#include "daemon/supervisor/ledger/losses.h"
#include "daemon/supervisor/streams/memory.h"
#include "daemon/supervisor/loop.h"
#include "daemon/supervisor/notify/notifier.h"
#include "daemon/supervisor/operations/operations.h"
#include "daemon/supervisor/events/pending.h"
#include "daemon/supervisor/streams/routes.h"
#include "daemon/supervisor/readers/publish.h"
#include "daemon/supervisor/readers/stall.h"
#include "daemon/supervisor/events/open.h"
#include "daemon/supervisor/events/registered.h"
#include "daemon/supervisor/events/registration.h"
#include "daemon/supervisor/events/select.h"
#include "daemon/supervisor/events/targets.h"
#include "daemon/supervisor/ledger/removed.h"
#include "daemon/supervisor/readers/perf-fd.h"
#include "daemon/supervisor/readers/readers.h"
#include "daemon/supervisor/readers/switch.h"
#include "daemon/supervisor/readers/tasks.h"
#include "daemon/supervisor/resolve/resolve.h"
#include "daemon/watchdog.h"

#define MAX_EVENTS 10000
#define WATERMARK_SHARE 2          /* of a ring, that wakes its reader before the flush time */

typedef struct Supervisor {
        sd_event *event;
        Config *config;
        Config *access;       /* whose access.rules hold: of perfd's own file, whatever was applied since */
        Config *started_with; /* what its keys with .restart say holds until the end */
        char *config_path; /* NULL: defaults */
        char *runtime_directory; /* overrides the paths of the sockets */
        int ready_fd; /* -1: nobody waits */
        PrivilegesReport privileges; /* .keep is asked for by an option */
        nsec_t started;

        Tracing tracing;
        KernelSymbolIndex kernel_symbols;
        bool is_in_pid_namespace; /* other than the kernel's own */
        CgroupHierarchy cgroups; /* path NULL: not looked for yet */
        CgroupWatch *cgroup_watch; /* NULL: no event follows cgroups */
        AttrBase attr;
        uint32_t *cpus; /* by slot: every CPU that can be there */
        bool *online;   /* by slot: it has a reader and a ring */
        size_t n_cpus;  /* slots */
        int *carriers;          /* by slot */
        Opened carrier_streams; /* the same, to be switched; owns none of them */
        CgroupMigrations migrations;            /* between cgroups; on and off with the carriers */
        CommTable comms;
        ProcessTree kin;    /* of tasks that events with children are open on */
        Reader *readers; /* by slot */
        BatchPipe *pipes;     /* by slot: of the readers, and behind them our own; for the dispatcher */
        EmitPipe own;
        ReaderHooks hooks;
        int hotplug_fd;  /* -1: CPUs are not followed */
        Closer closer;
        Dispatcher dispatcher;
        IdleCpus *idle; /* NULL: cannot be seen here */
        Explanation no_idle; /* why */
        bool dispatcher_started;
        int acknowledge_fd;
        Stalls answering; /* readers that do not answer */
        struct {
                nsec_t since; /* CLOCK_MONOTONIC: what the dispatcher was asked first and does not answer; 0: it does */
                struct DispatcherAsk *look; /* asked by supervisor_look_at_dispatcher(), not answered yet; or NULL */
                nsec_t looked;              /* when, or when it has moved last since then */
                uint64_t seen;              /* of its heartbeat, then */
        } unanswered;
        uint64_t sequence, generation; /* of the last mail to readers, and the last published snapshot */
        uint64_t n_cuts; /* the number of the last cut */
        bool active; /* the carriers are enabled */
        bool wants_tasks; /* somebody is subscribed, or about to be */
        bool tells_notes; /* readers tell the dispatcher of tasks: the last published snapshot says so */
        bool knows_tasks; /* the dispatcher has heard of those that were there before */
        char *self_filter; /* excludes our threads in the kernel's filter language; NULL: the reader does it */

        Registration *registrations, *last_registration;
        size_t n_registrations;
        Index registered_names, registered_ids;
        uint64_t last_position;
        char *state_path;     /* of kept events */
        char *state_unusable; /* why it must not be written; NULL: it may */
        PendingEvents pending;
        BirthDoubts births;
        uint32_t last_event_id;
        Subscription *subscriptions;
        Subscription *by_number[SUBSCRIPTIONS_MAX]; /* the same; NULL: the number is free */
        size_t n_subscriptions;
        bool owes_snapshot; /* some have ended since the last one */
        uint64_t last_subscriber_id;
        Admission *admissions; /* of every subscriber */
        SubscriberMemory memory;
        Losses losses;
        size_t base_bytes;     /* that these have in `base` */
        RemovedEvents removed; /* since the oldest stream began */
        size_t n_subscribers, subscribers_max; /* what the dispatcher was made for */
        Control control;
        Operations operations;
        struct UidCharge *charges; /* supervisor/events/quota.c */
        UncountedSaid uncounted_said;
        bool loads_own_config; /* a reload: root's file, whoever asks for it */
        bool stopping;
        int exit_code;
        sd_event_source *feeding, *goodbye; /* while a service manager watches; off until perfd stops */
        Notifier notifier;
        Watchdog watchdog;
        StallMonitor stalls;
        uint32_t *reader_cpus, *dispatcher_cpus; /* as configured at the start; none: all */
        size_t n_reader_cpus, n_dispatcher_cpus;
} Supervisor;

/* supervisor/supervisor.c: start and stop, one list and its mirror. */
int supervisor_start(Supervisor *s, Explanation *e);
/* False: a reader that does not answer was left as it is, with all that it may look at. The process has to end by _exit(2). */
bool supervisor_stop(Supervisor *s);

/* supervisor/loop.c: the loop that main runs, its signals, the watchdog. Negative. */
int supervisor_start_loop(Supervisor *s);
/* Runs until it is told to stop; the exit code. */
int supervisor_run(Supervisor *s);
int supervisor_start_watchdog(Supervisor *s); /* for while main waits for the kernel */

/*
 * supervisor/changes/rings.c: rings of another size on all CPUs; no sample is lost or doubled. Refused: as before. A failure of the
 * kernel in the middle is fatal: negative.
 */
int supervisor_resize_rings(Supervisor *s, size_t size, Explanation *e);
/* supervisor/changes/hotplug.c: CPUs that come and go from now on. Where the kernel does not tell it is said on the log. */
int supervisor_follow_cpus(Supervisor *s);
/* Of a CPU that went while its reader did not answer, which it does now. */
int supervisor_end_reader(Supervisor *s, uint32_t slot);
/* supervisor/configuration/validate.c: a YAML text against this host: everything is opened once, disabled, and closed. 0, REFUSED_INVALID or _CANCELLED, negative. */
int supervisor_validate(Supervisor *s, const ConfigText *texts, size_t n, ConfigDiagnostics *m);

/* supervisor/configuration/reload.c: from what is configured to another configuration, all of it or, refused, nothing. */
int supervisor_apply_config(Supervisor *s, Explanation *e); /* the one that it was started with */
int supervisor_reload(Supervisor *s, Perfd__V1__ReloadReply *ret, Explanation *e);
/*
 * A text as the configuration until the next reload; `path` is for messages. may_wait: what cannot be opened now is pending,
 * and refuses nothing.
 */
int supervisor_apply(Supervisor *s, const char *yaml, const char *path, bool may_wait, Perfd__V1__ReloadReply *ret, Explanation *e);
/* Those of the configuration that holds now which perfd was started without, and that a restart would let hold. -ENOMEM */
int supervisor_add_restart_settings(const Supervisor *s, Perfd__V1__ReloadReply *ret);
/* What that would do. The reply's strings and arrays are malloc'ed, for free_unpacked(), also when it fails. */
int supervisor_plan(Supervisor *s, const char *yaml, const char *path, bool may_wait, Perfd__V1__PlanReply *ret, Explanation *e);

/* supervisor/changes/follow.c: from now on the events of a registered list follow what their globs, containers and units name. */
int supervisor_follow_cgroups(Supervisor *s, Registration *list, Explanation *e);
/* One of them goes: its names are watched no longer, unless another event has them too. */
void supervisor_unfollow_event(Supervisor *s, const Registration *r);
void supervisor_unfollow_cgroups(Supervisor *s);

/*
 * supervisor/changes/extend.c: events that stay, while some of what they observe comes or goes. New fds of registrations, opened by
 * supervisor_open_at() and disabled, move into them and are enabled where these are: all, or none. Streams of the same
 * registration that leave do so as the new ones begin to speak. Refused: they stay in the list, disabled, and no reader knows
 * them; what leaves has not left.
 */
typedef struct FdDelta {
        Registration *registration; /* in one list only once */
        Opened more;
} FdDelta;

void fd_deltas_deinit(Supervisor *s, FdDelta *list, size_t n);
int supervisor_extend(Supervisor *s, FdDelta *list, size_t n, Explanation *e);
/* All at once or, if that is refused, one by one, and refused() is told of each that is. */
typedef void (*ExtensionRefused)(const Supervisor *s, const Registration *r, const Explanation *e, const void *userdata);
int supervisor_extend_each(Supervisor *s, FdDelta *list, size_t n, ExtensionRefused refused, const void *userdata);
/* Streams that leave, of all registrations, end; what they have counted stays in the ledger. Their readers are told. */
int supervisor_retract(Supervisor *s);

/*
 * supervisor/changes/events.c: what is traced. Each call is done whole or not at all. Specs move into the registrations on
 * success. ret_refs: those that were changed, in malloc'ed memory.
 */
/* How long they stay, if not until they are removed. */
typedef struct AddOptions {
        uint64_t owner;  /* id of the connection with which they end; 0: none */
        bool keep;       /* over restarts */
        bool is_written; /* they come from there, or from the configuration: nobody waits for an answer */
} AddOptions;
int supervisor_add(Supervisor *s, EventSpec *specs, size_t n, const AddOptions *adding, EventRefs *ret_refs, Explanation *e);
/* Control.gone: its request waits no longer, and the events that end with it are to be removed. */
void supervisor_on_connection_gone(void *userdata, uint64_t id);
int supervisor_remove(Supervisor *s, char *const *names, size_t n, EventRefs *ret_refs, Explanation *e);
int supervisor_enable(Supervisor *s, char *const *names, size_t n, bool on, EventRefs *ret_refs, Explanation *e);

/* supervisor/changes/replace.c */
/* For the end: nothing fires any more. */
int supervisor_disable_all(Supervisor *s);
int supervisor_set_filter(Supervisor *s, const char *name, const char *filter, Explanation *e);
/* Samples each `period` occurrences, or `frequency` times a second: one of both is not 0. */
int supervisor_set_period(Supervisor *s, const char *name, uint64_t period, uint64_t frequency, Explanation *e);
/* What an event is about to become, which keeps its id. */
typedef struct Replacement {
        Registration *registration;
        Event *event;   /* what it will be */
        bool has_rate;  /* period, frequency or interval change, and with them the next two */
        AttrPlan plan;
        SampleLayout *layout;
        bool needs_fds; /* something changes that fds know */
        Opened opened;  /* disabled */
} Replacement;

#define REPLACEMENT_NULL ((Replacement){ .registration = NULL })

/* From the event's spec to `wanted`, which event_spec_can_become() is true of. Opens it; nothing is changed. */
int replacement_prepare(Supervisor *s, Registration *r, const EventSpec *wanted, Replacement *ret, Explanation *e);
void replacement_deinit(Supervisor *s, Replacement *p);
/* All of them speak in the place of what is open, or, refused, none of them. Their contents move. */
int supervisor_replace(Supervisor *s, Replacement *list, size_t n, Explanation *e);
/* A list that is resolved and opened, of names that nobody has. It moves; refused: it is closed and freed. */
int supervisor_register(Supervisor *s, Registration *list, size_t n, Explanation *e);
/* Takes it out again, the last of what is registered, and frees it. Negative */
int supervisor_unregister(Supervisor *s, Registration *list, size_t n);
/* Nothing of this can be refused: all are disabled, read to their end by every reader, and freed. */
int supervisor_remove_selected(Supervisor *s, Registration *const *selected, size_t n, Explanation *e);
/* supervisor/streams/subscription.c */
bool subscription_selects(const Subscription *u, const Event *event); /* by its patterns: it need not have a route */
struct Access;
/* Refused: access.rules do not grant it (supervisor/requests/access.h). */
int subscription_parse(const Perfd__V1__SubscribeRequest *q, const struct Access *access, Subscription **ret, Explanation *e);
/* Each pattern and each field has to mean something now, or it is a mistake; later events may add to it. */
int subscription_check(const Supervisor *s, const Subscription *u, Explanation *e);
/* Compiles it for every event that it selects. Refused if it fits none of them. */
int subscription_compile(const Supervisor *s, Subscription *u, Explanation *e);

/* The descriptors of routes from *first on, as fields of a packet: as many as fit, at least one. -ENOMEM. */
int subscription_describe(const Subscription *u, size_t *first, uint8_t **ret_bytes, size_t *ret_n);
Subscription *subscription_free(Subscription *u);
DEFINE_CLEANUP(Subscription *, subscription_free)

/* supervisor/streams/subscribe.c */
int supervisor_subscribe(Supervisor *s, Connection *c, const Perfd__V1__Request *request, Explanation *e);
/* supervisor/streams/subscription.c: routes of a new event in all subscriptions, and descriptors to their subscribers. */
int supervisor_route_event(Supervisor *s, Registration *r);
/* Its descriptor anew to all who have it. -ENOMEM */
int supervisor_describe_event(Supervisor *s, const Registration *r);
void supervisor_tell_removed(Supervisor *s, const Registration *g);
void supervisor_free_subscriptions(Supervisor *s);

/* supervisor/requests/requests.c */
int supervisor_on_request(void *userdata, Connection *c, const Perfd__V1__Request *request);
