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
#include "daemon/supervisor/events/pending.h"
#include "daemon/supervisor/loop.h"
#include "daemon/supervisor/notify/notifier.h"
#include "daemon/supervisor/operations/operations.h"
#include "daemon/supervisor/readers/publish.h"
#include "daemon/supervisor/subscriptions/memory.h"
#include "daemon/supervisor/subscriptions/routes.h"
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

/* supervisor/requests/requests.c */
int supervisor_on_request(void *userdata, Connection *c, const Perfd__V1__Request *request);
