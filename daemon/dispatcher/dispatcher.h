/*
 * The dispatcher: takes batches from all readers, orders them, and gives every subscriber what is his. It owns the
 * subscribers and their sockets; main speaks with it by mails only, and it never waits for main or for a peer. It has a
 * thread; while that sleeps a reader may run its cycles.
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
#include "daemon/model/counters.h"
#include "daemon/model/batch-pipe.h"
#include "daemon/model/dispatching.h"
#include "daemon/model/loss-bell.h"
#include "daemon/model/task-table.h"
#include "daemon/route/merge.h"

#define DISPATCHER_NOT_WAITED_FOR UINT64_MAX /* the watermark of a batch pipe that the merge does not wait for */

/* How a CPU is heard of. Times are of CLOCK_MONOTONIC, watermarks are not. */
typedef struct PipeProgress {
        bool is_asked;      /* a watermark is on its way */
        bool is_told;       /* main knows that it has been for long */
        bool is_behind;     /* it has missed cuts: what comes may be from before any of them */
        uint8_t n_silent;   /* looks at a batch pipe that was asked, SILENT_LOOK apart and more */
        nsec_t silent_at;   /* the last of them, or when it was asked */
        uint8_t along;      /* ticks for which it went along when it was asked last; halved when it is seen to be idle */
        nsec_t asked_at;    /* when last */
        nsec_t seen;        /* the last watermark that was not said but seen */
        nsec_t put_off_for; /* the watermark behind which it is not asked before it was looked at again, */
        nsec_t put_off_to;  /* then */
} PipeProgress;

/* It has answered, or nobody is there any more. */
static inline void hearing_answered(PipeProgress *h) {
        h->is_asked = h->is_told = false;
}

typedef struct Dispatcher {
        /* set by main before the thread starts */
        Thread thread;
        BatchPipe *pipes; /* by slot of the CPU */
        uint32_t n_pipes;
        clockid_t clock;
        ThreadPriority priority;
        const uint32_t *cpus; /* that it may run on, borrowed; none: wherever main may */
        size_t n_cpus;
        LossBell *losses; /* borrowed; NULL: nobody says what came too late */
        IdleCpus *idle; /* borrowed; NULL: only who runs on a CPU can say that it is quiet */
        bool *live;      /* by slot: the batch pipe has somebody at its other end; the thread's own afterwards */

        /* between threads */
        Mailbox mailbox; /* mails from main */
        Mailbox words;   /* to main */
        Dispatching dispatching;
        Heartbeat heartbeat;
        Counter wakeups, items;
        /* relaxed: each stands alone, and who sees an older value acts on it a moment later; queues_told has fences at its uses */
        _Atomic(nsec_t) released_until; /* what is older comes too late for streams in the order of time */
        _Atomic(nsec_t) tick; /* of readers, the shortest of all; written by main: a CPU is not asked more often */
        _Atomic(nsec_t) window; /* how long samples of clients are waited for; written by main, 0 without such events */
        Counter n_late_samples; /* of all that LateRow counts */
        Counter tasks_forgotten; /* that had not ended: TASKS_MAX of them are there */
        QueueAccount queues;     /* of all subscribers */
        atomic_bool queues_told; /* that they grew; main clears it before it looks */
        atomic_bool silent_told; /* PIPE_SILENT, of whichever: acquired by who says it, released by main when it has it */

        atomic_bool wants_room; /* main: HAS_ROOM is to be said; a fence between it and the queue of mails on both sides */

        /* main's */
        DispatcherMails unposted; /* behind those in the mailbox */
        bool expects_room;        /* HAS_ROOM is on its way, or will be */

        /* the holder's of dispatching.lock */
        sd_event *event;
        bool quit;
        bool is_closing_all; /* no buffer is written any more: whoever has ended need not have read them */
        bool in_cycle;
        Channel *owing; /* for what comes in a cycle their subscribers in shared memory are woken at its end */
        SharedTick tick_told; /* what they are told in this cycle */
        Channel *channels;
        Channel *unflushed; /* those that a flush has something to do for */
        ChannelGroup groups[_STREAM_ORDER_MAX][BATCH_GROUPS];
        size_t n_channels[_STREAM_ORDER_MAX];
        uint64_t n_channel_changes;
        DispatcherMails following; /* read, and still to be followed */
        PacketPool packets;
        size_t queues_mark; /* above it, main hears of how much queues hold */
        uint64_t freed_bytes; /* by packets that were dropped, since free memory was last given back */
        Merge merge;
        bool confirms_cgroups, reads_proc; /* before dispatcher_init(): moves are not told, in a pid namespace; /proc is of that */
        const char *cgroups; /* where they are mounted, main's; or NULL */
        TaskTable tasks[_STREAM_ORDER_MAX]; /* as of the last item of this order */
        nsec_t *watermarks;  /* by slot */
        PipeProgress *progress;   /* by slot */
        nsec_t released;     /* no time-ordered item older than that will be delivered */
        nsec_t unwindowed;   /* up to here clients are not waited for: dispatcher_unblock() */
        uint32_t here;       /* slot of the CPU on which this cycle looked; n_pipes: it has none */
        nsec_t released_then; /* `released` when the batch pipes were last told to go along */
        nsec_t waiting_since; /* CLOCK_MONOTONIC: the merge waits for some CPU; 0: it does not */
        LateRow *late;
        size_t n_late;
        unsigned n_closing;
        uint64_t side[_STREAM_ORDER_MAX]; /* cut of the batches whose items are in open packets, while there are edges */
        unsigned n_edges; /* beginnings and ends of streams between which and the merge some batch may lie */
        unsigned n_behind; /* batch pipes that are */
        DispatcherMails removals; /* REMOVED, waiting for the merge, in the order of `at` */
} Dispatcher;

/* Main. Batch pipes are the caller's, filled before start; max_subscribers bounds the words on their way. -ENOMEM, errno. */
int dispatcher_init(Dispatcher *d, BatchPipe *pipes, uint32_t n_pipes, size_t max_subscribers);
/* Main, before start: a batch pipe that nobody serves yet, or one that the merge does not wait for. All are served and waited for. */
void dispatcher_set_pipe(Dispatcher *d, uint32_t slot, bool live, bool waited_for);
int dispatcher_start(Dispatcher *d);
int dispatcher_join(Dispatcher *d);
/* False: it has not ended. */
bool dispatcher_join_within(Dispatcher *d, nsec_t most);
void dispatcher_deinit(Dispatcher *d);
/* Main. The mail moves. While thousands are on their way this waits for a while, and then keeps it. */
void dispatcher_post(Dispatcher *d, DispatcherCommand *mail);
/* Main, on HAS_ROOM: posts what was kept. */
void dispatcher_post_rest(Dispatcher *d);

/* By whoever has dispatching.lock, on a reader's thread, whose CPU is anything but quiet: Dispatching.work. */
int dispatcher_assist(void *userdata, nsec_t *ret_wait);
