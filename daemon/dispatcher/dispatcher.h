/*
 * The dispatcher: takes batches from all readers, orders them, and gives each subscriber its items. It owns the subscribers and
 * their sockets. Main sends it commands, and it never waits for main or for a peer. It has a thread; while that sleeps, a reader
 * may run its cycles.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "daemon/base/clock.h"
#include "daemon/base/doorbell.h"
#include "daemon/base/heartbeat.h"
#include "daemon/base/mailbox.h"
#include "daemon/base/thread.h"
#include "daemon/dispatcher/command.h"
#include "daemon/dispatcher/subscriber.h"
#include "daemon/kernel/host/idle-cpus.h"
#include "daemon/kernel/host/wall-clock.h"
#include "daemon/model/counters.h"
#include "daemon/model/batch-pipe.h"
#include "daemon/model/dispatching.h"
#include "daemon/model/loss-bell.h"
#include "daemon/model/task-table.h"
#include "daemon/model/uid-changes.h"
#include "daemon/route/merge.h"

#define WALL_FIELD_MAX ((size_t)64) /* bytes of an encoded perfd.v1.WallReading, as a field of a packet */
#define DISPATCHER_NOT_WAITED_FOR UINT64_MAX /* the watermark of a batch pipe that the merge does not wait for */

/* How far a CPU has reported. Times are of CLOCK_MONOTONIC, except watermarks. */
typedef struct PipeProgress {
        bool is_asked;      /* its reader was asked for a watermark, and has not answered yet */
        bool is_told;       /* main was notified that it does not answer */
        bool is_behind;     /* it has missed cuts: what it pushes may be from before any of them */
        uint8_t n_silent;   /* number of checks since it was asked, at least SILENT_LOOK apart */
        nsec_t silent_at;   /* when the last check was, or when it was asked */
        uint8_t report_ticks;      /* ticks for which it was last told to report; halved when the CPU is found idle */
        nsec_t asked_at;    /* when it was last asked */
        nsec_t seen;        /* the last watermark that was observed rather than reported */
        nsec_t put_off_for; /* a CPU with this watermark is not asked before it was examined again, */
        nsec_t put_off_to;  /* at this time */
} PipeProgress;

/* It has answered, or its reader has ended. */
static inline void pipe_progress_answered(PipeProgress *h) {
        h->is_asked = h->is_told = false;
}

typedef struct Dispatcher {
        /* set by main before the thread starts */
        Thread thread;
        BatchPipe *pipes; /* by slot */
        uint32_t n_pipes;
        clockid_t clock;
        ThreadPriority priority;
        const uint32_t *cpus; /* the CPUs that it may run on, borrowed; none: those of main */
        size_t n_cpus;
        LossBell *losses; /* borrowed; NULL: late samples are not reported to main */
        IdleCpus *idle; /* borrowed; NULL: idle CPUs cannot be detected, except the present one */
        bool *live;      /* by slot: the pipe has a reader; set by main before the start, later by the holder of the lock */

        /* shared between threads */
        Mailbox mailbox; /* commands of main */
        Mailbox notices; /* notices to main */
        Dispatching dispatching;
        Heartbeat heartbeat;
        Counter wakeups, items;
        /*
         * relaxed: each is independent of the others, and acting on an older value is harmless; queues_told has fences at its
         * uses
         */
        _Atomic(nsec_t) released_until; /* older items are too late for streams ordered by time */
        _Atomic(nsec_t) window; /* ns to wait for samples of clients; written by main, 0 without external events */
        Counter n_late_samples; /* the sum of all LateRows */
        Counter tasks_forgotten; /* tasks that were forgotten before they ended, because the table had TASKS_MAX */
        QueueAccount queues;     /* of all subscribers */
        atomic_bool queues_told; /* main was notified of growth; it clears the flag before it reads the queues */
        /* a PIPE_SILENT is pending: set with acquire order before it is posted, cleared by main with release order */
        atomic_bool silent_told;

        atomic_bool wants_room; /* main waits for HAS_ROOM; both sides have a fence between this flag and the mailbox */

        /* of main */
        DispatcherCommandList unposted; /* commands behind those in the mailbox */
        bool expects_room;        /* HAS_ROOM is pending, or will be posted */

        /* of the holder of dispatching.lock */
        sd_event *event;
        bool quit;
        bool is_closing_all; /* perfd exits, and no buffer is reused: streams that ended need not have been read */
        bool in_cycle;
        Channel *to_wake; /* channels whose subscribers are to be woken at the end of the cycle, or of one at their next tick */
        nsec_t next_wakeup; /* CLOCK_MONOTONIC: the earliest of these ticks; UINT64_MAX: none waits for one */
        SharedTick tick_told; /* what these subscribers are told of ticks in this cycle */
        /* ns: of longer ticks they are told nothing: a wakeup costs little then, and what comes between ticks would wait for one */
        nsec_t told_tick_max;
        Channel *channels;
        Channel *unflushed; /* channels for which a flush has something to do */
        ChannelGroup groups[_STREAM_ORDER_MAX][BATCH_GROUPS];
        size_t n_channels[_STREAM_ORDER_MAX];
        uint64_t n_channel_changes;
        DispatcherCommandList commands; /* read from the mailbox, and still to be executed */
        PacketPool packets;
        size_t queues_mark; /* bytes of all queues above which main is notified */
        uint64_t freed_bytes; /* bytes of dropped packets since malloc_trim(3) was last called */
        Merge merge;
        /* set before dispatcher_init(): in a pid namespace, cgroup moves are not reported; /proc is of perfd's pid namespace */
        bool confirms_cgroups, reads_proc;
        const int *uid_socket; /* the kernel's reports of uids that change, main's; NULL: there are none, and /proc is read instead */
        const WallSource *wall_source; /* set before dispatcher_init(); NULL: streams get no readings of wall time */
        const char *cgroups; /* mount point of the cgroup hierarchy, main's; or NULL */
        WallClock wall;
        uint8_t wall_field[WALL_FIELD_MAX]; /* its last reading, encoded, n_wall_field bytes */
        size_t n_wall_field;
        uint64_t n_readings; /* of these */
        int wall_fd;         /* timerfd: readable when wall time was set */
        bool is_wall_set;    /* it was; not told yet */
        TaskTable tasks[_STREAM_ORDER_MAX]; /* as of the last item of this order */
        UidChanges uids;     /* that the table of STREAM_BY_TIME does not have yet */
        bool uids_are_behind; /* the socket was not read to its end */
        nsec_t merged_until; /* the limit of merge_next() so far */
        nsec_t *watermarks;  /* by slot */
        PipeProgress *progress;   /* by slot */
        nsec_t released;     /* no older item will be delivered to streams ordered by time */
        nsec_t unwindowed;   /* up to this time samples of clients are not waited for: dispatcher_unblock() */
        uint32_t here;       /* slot of the CPU on which this cycle runs; n_pipes: it has none */
        nsec_t released_then; /* `released` when reports at each tick were last extended */
        uint64_t n_dormant; /* Dispatching.n_dormant when their rings were last looked at */
        nsec_t waiting_since; /* CLOCK_MONOTONIC: since when the merge waits for a CPU; 0: it does not */
        LateRow *late;
        size_t n_late;
        unsigned n_closing;
        uint64_t side[_STREAM_ORDER_MAX]; /* while there are edges: cut of the batches whose items are in open packets */
        unsigned n_edges; /* beginnings and ends of streams at cuts that some batches have not passed yet */
        unsigned n_behind; /* number of pipes with is_behind */
        DispatcherCommandList removals; /* REMOVED commands that wait for the merge, sorted by `at` */
} Dispatcher;

/*
 * Main. The caller owns the pipes, filled before the start; max_subscribers limits the notices that can be pending. -ENOMEM,
 * -errno.
 */
int dispatcher_init(Dispatcher *d, BatchPipe *pipes, uint32_t n_pipes, size_t max_subscribers);
/*
 * Main, before the start: a pipe without a reader, or one that the merge does not wait for. By default all have readers and are
 * waited for.
 */
void dispatcher_set_pipe(Dispatcher *d, uint32_t slot, bool live, bool waited_for);
int dispatcher_start(Dispatcher *d);
int dispatcher_join(Dispatcher *d);
/* False: it has not ended within so many ns. */
bool dispatcher_join_within(Dispatcher *d, nsec_t most);
void dispatcher_deinit(Dispatcher *d);
/* Main. The command moves. If the mailbox is full, waits for up to a second, and then keeps the command for later. */
void dispatcher_post(Dispatcher *d, DispatcherCommand *command);
/* Main, on HAS_ROOM: posts the commands that were kept. */
void dispatcher_post_rest(Dispatcher *d);

/* Dispatching.work: a cycle on a reader's thread, which holds dispatching.lock. */
int dispatcher_assist(void *userdata, nsec_t *ret_wait);
