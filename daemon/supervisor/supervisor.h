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
#include "daemon/supervisor/events/targets.h"
#include "daemon/watchdog.h"

#define MAX_EVENTS 10000
#define WATERMARK_SHARE 2          /* of a ring, that wakes its reader before the flush time */
#define OWNER_GONE UINT64_MAX      /* instead of a connection's id: the event is about to be removed */

/* The fds of one event, opened together. */
typedef struct Stream {
        uint32_t slot;   /* of its CPU */
        uint32_t member; /* of its group; 0: the leader, or alone */
        int fd;
        uint64_t id;
        nsec_t since;    /* before it was opened: who is born later inherits it */
        uint64_t whom;   /* tid, inode of a cgroup, or 0: the whole CPU */
        bool is_cgroup;
        bool is_successor;    /* as in SnapshotStream, until opened_hand_over() */
        bool leaves;     /* what it observes is gone: supervisor_retract() */
        bool awaits_exec; /* its task enables it, by its next exec: opened_enable() leaves it alone until then */
        bool is_breakpoint;
        bool is_sampling; /* as in SnapshotStream, as the next two */
        uint64_t period;
        uint64_t read_format;
} Stream;

typedef struct Opened {
        Stream *streams;
        size_t n;
        Event *event;         /* whose they are, by its origin, which lives as long as these; NULL: carriers */
        nsec_t whole, listed; /* when all were open, and when it was looked whether that is everybody; 0: long ago */
} Opened;

#define OPENED_NULL ((Opened){ .streams = NULL })

/* An event while it is registered. */
struct Registration {
        struct Registration *next, *previous; /* previous: of what is registered */
        bool is_registered; /* else it is about to be, or only looked at */
        bool was_registered; /* readers may know it, or have known it */
        uint64_t position;  /* in the order of registration */
        Event *event; /* another one from each live change on, with the same id and numbers */
        AttrPlan plan;
        Probe *probe;      /* or NULL: defined as long as this lives */
        char *cpus;        /* CPU list: where its PMU can count; NULL: everywhere */
        bool of_glob;      /* one of several that a glob of tracepoints means */
        bool like_first;   /* of a glob, behind the first of them: it differs in nothing but the tracepoint */
        bool fallen_back;  /* spec.fallback is counted */
        bool is_followed;  /* its cgroups come and go: a glob, a container, a unit */
        bool may_be_absent; /* none of them need be there when it is opened for the first time */
        char *absent;      /* of these names, what has no cgroup now, for people; NULL: all of them have one */
        uint64_t owner;    /* id of the connection that it ends with; 0: none; OWNER_GONE */
        bool can_sample;   /* as attr_plan() takes it */
        SampleLayout *layout;         /* of what speaks; NULL of external events */
        SampleLayout *pending_layout; /* of `pending`; NULL: the same */
        Opened opened;  /* what speaks */
        Opened pending; /* on standby: the replacement before the switch, what was replaced after it */
        bool enabled;
        bool kept;         /* stands in the state file */
        bool is_selected;  /* while a change is prepared: it is in the change's list already */
        bool is_planned;   /* the configuration that is looked at has it: supervisor/configuration/reload.c */
        bool exclude_self; /* by the reader */
        uint64_t said_lost[_LOSS_MAX]; /* in the log: supervisor/ledger/losses.c */
        nsec_t latest;     /* of the times of what clients emitted for it: they may be ahead of the clock */
        void (*free_routes)(struct Registration *g); /* of those who have set them; NULL: there are none */
        EventRoute *routes; /* of all subscriptions that select it, in no order */
        size_t n_routes, n_routes_allocated;
        EventEncoding *encodings; /* theirs */
        size_t n_encodings;
        RouteTable *table;  /* made of them for the last snapshot; NULL: to be made, or there are none */
};

/* Events that were removed while streams were there, the oldest first: supervisor/ledger/removed.h. */
typedef struct RemovedEvents {
        struct RemovedEvent *first, *last;
        size_t n_bytes;
        uint64_t forgotten; /* last subscriber that was there when the last one went that there is no room for; 0: none */
} RemovedEvents;

/* The stream of each CPU that says who moves between cgroups: cgroup:cgroup_attach_task. */
typedef struct CgroupMigrations {
        Plan *plan;        /* NULL: there is none */
        MoveFields fields; /* as the readers have it, but for the id */
        int *fds;          /* by slot, -1: it has none */
} CgroupMigrations;

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
 * supervisor/readers/cpus.c: for each CPU that can be there a slot, for each that is online a carrier, a ring, batches and a reader.
 * Refused: with the limit or the privilege that is in the way.
 */
int supervisor_start_cpus(Supervisor *s, Explanation *e);
int supervisor_start_readers(Supervisor *s, Explanation *e);
int supervisor_explain_thread(int r, Explanation *e);
/*
 * supervisor/readers/idle.c: what it takes, with the privileges of the beginning, which end with it; why not, if *ret is NULL then.
 * -ENOMEM. Behind it, before the dispatcher starts, all CPUs that are online; and one that came.
 */
int supervisor_open_idle(IdleCpus **ret, Explanation *why);
void supervisor_start_idle(Supervisor *s);
void supervisor_find_idle(Supervisor *s, uint32_t slot);
/*
 * supervisor/readers/place.c: tells every reader and the dispatcher, before they start, where they run and how urgently. Refused: a
 * list of CPUs has none that is online.
 */
int supervisor_place_threads(Supervisor *s, Explanation *e);
/* Some ring is read by a thread on another CPU than its own. */
bool supervisor_reads_remotely(const Supervisor *s);
void supervisor_free_places(Supervisor *s);
/* Disabled. Side records that this kernel does not know are done without. Also OPEN_E_OFFLINE. */
int supervisor_open_carrier(Supervisor *s, uint32_t slot, int *ret_fd, uint64_t *ret_read_format, Explanation *e);
/*
 * supervisor/changes/rings.c: rings of another size on all CPUs; no sample is lost or doubled. Refused: as before. A failure of the
 * kernel in the middle is fatal: negative.
 */
int supervisor_resize_rings(Supervisor *s, size_t size, Explanation *e);
/*
 * One CPU's carrier and ring, and the reader's own parts unless it has them from the last time that the CPU was there.
 * Half of it is left if it fails: supervisor_close_ring().
 */
int supervisor_open_ring(Supervisor *s, uint32_t slot, Explanation *e);
void supervisor_close_ring(Supervisor *s, uint32_t slot);
int supervisor_start_reader(Supervisor *s, uint32_t slot, Explanation *e);
/* What is on while something is traced: the carrier, and who moves between cgroups. At most two. */
size_t supervisor_list_carrier(const Supervisor *s, uint32_t slot, Stream *to);
/* The same of all online CPUs, into s->carrier_streams. */
void supervisor_list_carriers(Supervisor *s);
/* supervisor/changes/hotplug.c: CPUs that come and go from now on. Where the kernel does not tell it is said on the log. */
int supervisor_follow_cpus(Supervisor *s);
/* Of a CPU that went while its reader did not answer, which it does now. */
int supervisor_end_reader(Supervisor *s, uint32_t slot);
size_t supervisor_count_online(const Supervisor *s);
void supervisor_stop_readers(Supervisor *s);
/* Accepts what was half started. The threads have ended. */
void supervisor_free_cpus(Supervisor *s);

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

/*
 * supervisor/events/open.c: the fds of one registration, disabled, filtered, in their rings. All or none. There may be none for an
 * event that is registered already, and whose tasks or CPUs are gone; and none in a trial (supervisor/operations/operations.h), which closes
 * what it has opened.
 */
int supervisor_open(Supervisor *s, const Registration *r, const char *filter, Opened *ret, Explanation *e);
/* The same on some CPUs, given by their slots. Not for external events. */
int supervisor_open_on(Supervisor *s, const Registration *r, const char *filter, const uint32_t *slots, size_t n_slots,
                       Opened *ret, Explanation *e);
/* All of a list that is not registered yet. Those of a glob that the kernel never lets be sampled are left out, and said. */
int supervisor_open_list(Supervisor *s, Registration **list, Explanation *e);
/* For those only, without a second look at who is there. */
int supervisor_open_at(Supervisor *s, const Registration *r, const char *filter, const Whoms *whoms,
                       const uint32_t *slots, size_t n_slots, Opened *ret, Explanation *e);
/* supervisor/events/close.c: by the closer, and charged to whom what runs is charged. Disabled, and no reader knows them (any more); of stalled ones it waits for that. */
void opened_close(Supervisor *s, Opened *o);
/* Whether the closer also closes what was opened and is not wanted (open_close()). */
void supervisor_give_closer(Supervisor *s, bool is_there);
/* The same as opened_close(), charged to a uid. */
void opened_close_of(Supervisor *s, Opened *o, uint32_t uid);
/* The same, of what no reader was ever told of: it waits for none. */
void opened_close_unknown(Supervisor *s, Opened *o, uint32_t uid);
/*
 * supervisor/events/counts.c: what the fds have counted, which are disabled and will be closed, stays in the ledger and, but for heirs that come to
 * nothing, in what is sent of counts. is_standby: others were active when they were disabled, which a reader that does not answer
 * may not have come to know. -errno
 */
int registration_keep_counts(const Supervisor *s, Registration *r, const Opened *o, bool is_standby);

/*
 * supervisor/readers/switch.c: all of the list, by the readers. Refused: all are disabled; `what` is for the explanation.
 * Negative: memory.
 */
int opened_enable(Supervisor *s, Opened *const *list, size_t n, const char *what, Explanation *e);
int opened_disable(Supervisor *s, Opened *const *list, size_t n);
/* Fds that are to replace others, before anything is published of them. */
void opened_set_successor(Opened *o, bool is_successor);
/* What is opened beside `before`, and not enabled yet, awaits no exec of a task that had its exec. -errno */
int opened_follow_exec(Opened *o, const Opened *before);
/*
 * Disables `list`, whose heirs are known to the readers: what these have counted until then, which the others have counted
 * too, is never sent. They are heirs no more, but for the snapshot, up to the next one.
 */
int opened_hand_over(Supervisor *s, Opened *const *list, size_t n);
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
typedef struct EventRef {
        uint32_t id;
        char *name;
} EventRef;
typedef struct EventRefs {
        EventRef *refs;
        size_t n;
} EventRefs;
void event_refs_deinit(EventRefs *r);
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

/* supervisor/events/select.c */
int event_refs_add(EventRefs *r, uint32_t id, const char *name);
/* A name, a glob, "#ID" or "@GROUP". Each name selects at least one; in malloc'ed memory, in the order of registration, none twice. */
int supervisor_select(const Supervisor *s, char *const *names, size_t n, Registration ***ret, size_t *ret_n,
                      Explanation *e);
/* What a change is about, and what its answer says if it succeeds. With kept ones that wait: they have no id. */
int supervisor_select_with_refs(const Supervisor *s, char *const *names, size_t n, bool waiting_too, Registration ***ret,
                                size_t *ret_n, EventRefs *ret_refs, Explanation *e);

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
Registration *supervisor_find(const Supervisor *s, const char *name);
/* An event or a glob, parsed and looked up: what would be opened for it. supervisor/resolve/resolve.c */
int supervisor_resolve(Supervisor *s, EventSpec *spec, Registration **ret_list, Explanation *e);
/* Its cgroups, containers and units may all come later: it is open on those that are there. */
void registration_allow_absence(Registration *r);
Registration *registration_free(Supervisor *s, Registration *r);
void registrations_free(Supervisor *s, Registration *list);
/* A list that is resolved and opened, of names that nobody has. It moves; refused: it is closed and freed. */
int supervisor_register(Supervisor *s, Registration *list, size_t n, Explanation *e);
/* Takes it out again, the last of what is registered, and frees it. Negative */
int supervisor_unregister(Supervisor *s, Registration *list, size_t n);
/* Nothing of this can be refused: all are disabled, read to their end by every reader, and freed. */
int supervisor_remove_selected(Supervisor *s, Registration *const *selected, size_t n, Explanation *e);
/* A layout of its own for what the plan's leader writes. -ENOMEM, refused. */
int plan_layout_new(const AttrPlan *plan, SampleLayout **ret);

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

/*
 * supervisor/readers/tasks.c: before a stream begins, and when the carriers were enabled while somebody is subscribed: the
 * dispatcher hears of all tasks that are there. Does nothing if it knows them. REFUSED_CANCELLED, negative.
 */
int supervisor_learn_tasks(Supervisor *s);
/* Once, before the rings: the stream of moves between cgroups, if this kernel has it. */
int supervisor_find_migrations(Supervisor *s);
/* Opens it in a ring that has a carrier, before its reader starts. If it cannot be opened it is simply not there. */
int supervisor_open_migrations(Supervisor *s, uint32_t slot, Explanation *e);
/* After its reader ended. */
void supervisor_close_migrations(Supervisor *s, uint32_t slot);
void supervisor_free_migrations(Supervisor *s);

/* supervisor/requests/requests.c */
int supervisor_on_request(void *userdata, Connection *c, const Perfd__V1__Request *request);
