/*
 * A reader thread: drains the ring of its CPU into batches. It is pinned to that CPU if the CPU is to have a reader. From start
 * to join, everything here except the functions marked "Main" belongs to the thread or, while it does not run, to its backup
 * (reader/failover.c).
 */
#pragma once

#include <stdint.h>

#include "daemon/base/clock.h"
#include "daemon/base/doorbell.h"
#include "daemon/base/heartbeat.h"
#include "daemon/base/mailbox.h"
#include "daemon/base/thread.h"
#include "daemon/base/owner-lock.h"
#include "daemon/decode/record.h"
#include "daemon/model/batch.h"
#include "daemon/model/comm-table.h"
#include "daemon/model/counters.h"
#include "daemon/model/cut-scope.h"
#include "daemon/model/dispatching.h"
#include "daemon/model/process-tree.h"
#include "daemon/model/batch-pipe.h"
#include "daemon/model/loss-bell.h"
#include "daemon/model/snapshot.h"
#include "daemon/ring/ring.h"
#include "daemon/ring/ring-view.h"

typedef enum ReaderCommandKind {
        /* a new snapshot, with a cut at its position; acknowledged when everything before the position was read with the old one */
        READER_SET_SNAPSHOT,
        READER_SWITCH, /* enable or disable fds of this CPU, between two of its occurrences */
        /* the same, disabling; and subtracts what their successors have counted until now from the counts that are sent */
        READER_CUTOVER,
        READER_CUT,   /* fills the cut of every event of its scope and of the ring, at one position, where a batch ends */
        READER_RING,  /* a second ring; the present one is drained until READER_RETIRE */
        READER_RETIRE, /* nothing is written to the old ring any more: reads its last records and unmaps it */
        READER_STOP,  /* pushes the last batch and ends */
} ReaderCommandKind;

/* An fd of an event that becomes active, or ceases to be. */
typedef struct TurnedStream {
        const SnapshotStream *stream;
        ReadCount before, now; /* its counts before and behind the position where this happens */
        bool is_apart;         /* the leader of a group that could not be read */
} TurnedStream;

typedef struct ReaderCommand {
        ReaderCommandKind kind;
        uint64_t sequence;  /* grows with each command; acknowledged by Reader.acknowledged */
        /* READER_CUT, READER_SET_SNAPSHOT: number of the cut, which later batches carry; 0: a snapshot without a cut */
        uint64_t cut;
        CutScope *scope;    /* of that cut, a reference that moves to the reader; NULL: all events */
        Snapshot *snapshot; /* READER_SET_SNAPSHOT: a reference that moves to the reader */
        /* READER_SET_SNAPSHOT: borrowed until acknowledged, with room for all of its streams; NULL: no fd changes its role */
        TurnedStream *turned;
        const int *fds;     /* READER_SWITCH, READER_CUTOVER: own_fds, or borrowed until acknowledged */
        size_t n_fds;
        bool on;
        int *ret_error; /* READER_SWITCH, _CUTOVER, _RING: main's; gets the first error, and is otherwise unchanged */
        struct ReaderRing *ring; /* READER_RING: main's until acknowledged; its contents move */
        ReadBudget *budget; /* whose request makes it do this, a reference that moves to the reader; NULL: nobody's that is limited */
        size_t n_switched;  /* the reader's: of fds */
        bool is_resumed;    /* the reader's: a cut that it had no batch for in the first attempt */
        int own_fds[];
} ReaderCommand;

/* The lowest time of the records in each chunk of the ring: reader/backlog.c. */
#define BACKLOG_CHUNK ((uint64_t)16 * 1024) /* bytes of ring */
typedef struct Backlog {
        nsec_t *least;
        size_t n_chunks;
        uint64_t scanned; /* each record that begins before it is included in the lowest time of its chunk */
        uint64_t chunk;   /* the last chunk that was begun */
} Backlog;

/* Fields of the internal event that reports cgroup migrations: cgroup:cgroup_attach_task. */
typedef struct MoveFields {
        uint64_t id;      /* of the stream; 0: there is none */
        Plan *plan;       /* borrowed */
        const PlanField *hierarchy, *cgroup, *tid, *path;
        uint64_t wanted;  /* id of the hierarchy that perf events use */
        SampleLayout layout;
} MoveFields;

#define READER_MORE_BATCHES 128 /* beside the pool, to execute a command */
/* of a ring: if less than this share is full when the kernel wakes the reader, it waits for the next tick */
#define READER_EARLY_SHARE 8

/* A ring with its carrier, of one CPU. */
typedef struct ReaderRing {
        Ring ring;
        Backlog backlog;
        int carrier_fd;      /* borrowed; polled, and read at a cut */
        uint64_t carrier_id; /* stream id of the side records */
        uint64_t carrier_read_format; /* of its attr */
} ReaderRing;

/* The state of the thread that reads in place of the reader's own. Protected by the lock. */
typedef enum ReaderBackup {
        BACKUP_NONE,      /* there is none, or it is ending */
        BACKUP_READS,
        BACKUP_DISMISSED, /* the reader runs again: the backup ends when it wakes next */
} ReaderBackup;

typedef struct Reader {
        /* set by main before the thread starts */
        Thread thread;
        uint32_t cpu, slot;
        clockid_t clock;
        int carrier_fd;      /* borrowed; polled, and read at a cut */
        uint64_t carrier_id; /* stream id of the side records */
        uint64_t carrier_read_format; /* of its attr */
        uint32_t own_pid;
        bool has_no_pids; /* tasks outside of perfd's pid namespace have tid 0 in records */
        nsec_t base_tick;    /* ns: READER_TICK; tests have others */
        ThreadPriority priority;
        nsec_t guard;        /* ns: for a ring that is read from another CPU; 0: it is read on its own */
        const uint32_t *remote_cpus; /* with a guard: the CPUs that the thread may run on; borrowed */
        size_t n_remote_cpus;
        /* ns: the guard of a reader on its ring's CPU for the time that a backup reads the ring; 0: no backup ever does */
        nsec_t away_guard;
        int overdue_fd;      /* timerfd of the stall monitor that expires when this thread is late; -1: there is none */
        int stall_fd;        /* epoll(7) fd of the stall monitor; -1: there is none */
        Ring ring;
        CommTable *comms;
        ProcessTree *process_tree; /* NULL: births of processes are not recorded */
        Dispatching *dispatching; /* how batches that were pushed are dispatched */
        LossBell *losses;      /* told when samples are lost; NULL: nothing is */
        int acknowledge_fd;    /* eventfd of main, written after each acknowledgement */
        SampleLayout side_layout;
        MoveFields moves;

        /*
         * Shared between threads. is_backup is written with the lock, and is a hint for threads without it. `acknowledged` is
         * stored with release order after a command was executed, and loaded with acquire order by main, which then sees the
         * counters, the cuts and command_error. cpu_time is not ordered with anything.
         */
        /* its owner is the thread; its holder, the thread or its backup, may use all fields of "the thread's own" */
        OwnerLock lock;
        atomic_bool is_backup;  /* the last holder was the backup */
        atomic_bool is_moved;   /* the stall monitor has moved the thread to other CPUs in the middle of a cycle */
        atomic_bool is_watched; /* the stall monitor is woken when half of the ring has been written */
        Mailbox mailbox;  /* commands of main, asks of any thread */
        Queue full, free; /* batches to the dispatcher, and back */
        RingView view; /* open while the thread runs on its CPU and has one ring */
        /* CLOCK_MONOTONIC, set by the dispatcher: the reader reports a watermark at each tick until then */
        _Atomic(nsec_t) reports_until;
        _Atomic(nsec_t) told_tick; /* ns: how often it drains while records come, or would; read by the dispatcher */
        atomic_bool needs_batch; /* it waits for a free batch: the dispatcher asks READER_ASK_BATCHES when it returns one */
        _Atomic(uint64_t) acknowledged;
        atomic_bool is_abandoned;
        atomic_bool is_at_end; /* of the thread, not its backup: set with release order when it has nothing left to do */
        Counter n_slices;    /* that its commands have had: main waits for who goes on; ordered with nothing */
        int command_error;   /* of the last command; main reads it after the acknowledgement */
        Heartbeat heartbeat;
        RingCounters counters;
        _Atomic(uint64_t) cpu_time; /* ns of CPU time of the thread until the last cut */

        /* the thread's own */
        Snapshot *snapshot;
        Batch *batch;      /* the batch being filled, or NULL */
        Record in_place;      /* reused for each sample that is taken in place */
        Batch **spare;     /* free batches; the last one returned is used first, because it is still in the cache */
        size_t n_spare;
        size_t n_pool;     /* number of batches of the pool */
        size_t n_more;     /* number of batches in use beside the pool; they are freed when they come back */
        uint64_t cut;      /* number of the last cut; main's while there is no thread */
        nsec_t watermark;  /* of the last whole drain */
        nsec_t began;      /* of this drain: the time before its heads were read */
        nsec_t given;      /* the latest watermark of its batches: records that come later into a ring are not older */
        nsec_t shared_time; /* time of the last sample of a software event */
        uint64_t told_times; /* RingCounters.foreign_times when it was last logged */
        nsec_t told_times_at; /* CLOCK_MONOTONIC: when that was */
        Backlog backlog;
        nsec_t wait;       /* ns: the reader wakes at multiples of this */
        nsec_t tick;               /* ns, `wait` while records come; */
        nsec_t tick_min, tick_max; /* between these */
        bool is_in_vain;           /* the last drain found nothing */
        /* the ring's tail at CLOCK_MONOTONIC paced_at, from where on the rate is measured; paced_at 0: from the next drain on */
        uint64_t paced_tail;
        nsec_t paced_at;
        nsec_t next_look;  /* CLOCK_MONOTONIC: the next multiple of `wait`, as of when it last went to sleep */
        bool is_asked;     /* a watermark was asked for, which the present batch answers */
        uint32_t asks;     /* bits that have been asked and not answered: nothing is asked twice */
        bool has_stopped;
        nsec_t overdue_at; /* CLOCK_MONOTONIC: when it is late if it has not run; UINT64_MAX: it need not run */
        ReaderBackup backup_state;
        Thread backup;
        nsec_t failed_over_at; /* CLOCK_MONOTONIC */
        bool has_said;         /* the failover at `failed_over_at` has been logged */
        nsec_t said_at;        /* CLOCK_MONOTONIC: when one was last logged */
        _Atomic(clockid_t) cpu_clock; /* CPU-time clock of the thread; the stall monitor reads it without the lock */
        nsec_t backup_cpu_time; /* ns, of backups that have ended */
        bool has_read_early; /* it has read records since the tick before next_look */
        size_t not_notified;     /* batches that the dispatcher has not been woken for */
        bool has_rung;     /* it has woken the dispatcher in this drain */
        nsec_t cycle_due;   /* CLOCK_MONOTONIC, while it owns the timer: when the dispatcher's next cycle is due */
        uint64_t read_pass; /* how often all events were looked at for counts that are due */
        nsec_t next_read;  /* ns: when counts are to be read next; UINT64_MAX: never */
        ReaderCommand *command;  /* a command that waits for a whole drain */
        nsec_t slice_began, paused; /* CLOCK_MONOTONIC, while it is executed: this slice, and when others last had the CPU */
        bool holds;        /* until then, no space of the ring is given back to the kernel */
        Ring retiring;     /* the previous ring, while events still write to it; else null */
        uint64_t retiring_id; /* stream id of its carrier */
        uint64_t comm_version;
        uint32_t comm_tid;
        char comm[COMM_SIZE];
} Reader;

/*
 * Main, before start: initializes everything except the fields "set by main"; pool: bytes of batches, allocated here, at least
 * two batches. -ENOMEM, -errno of eventfd(2).
 */
int reader_init(Reader *r, size_t pool);
/* Main. Starts the thread with `snapshot`, a reference that moves. Negative: from thread_start(). */
int reader_start(Reader *r, Snapshot *snapshot);
/* Main, after READER_STOP was posted: waits for the end. */
int reader_join(Reader *r);
/* The same, for at most so many ns. False: its thread or its backup has not ended; nothing has changed. */
bool reader_join_within(Reader *r, nsec_t most);
/* Main: true if its thread has nothing left to do; it has written to acknowledge_fd then. */
bool reader_is_at_end(const Reader *r);
/* Main, instead of join, before the process ends: objects that the thread uses may be freed, and its errors are ignored then. */
void reader_abandon(Reader *r);
/* Main, after join: prepares it to be started again, on a new ring. */
void reader_renew(Reader *r);
/* Main, after join; accepts partly initialized readers. Batches must have come back, or be freed by main. */
void reader_deinit(Reader *r);

/* The dispatcher's end of its queues. */
static inline BatchPipe reader_pipe(Reader *r) {
        return (BatchPipe){ .full = &r->full, .free = &r->free, .needs_batch = &r->needs_batch, .reader = &r->mailbox,
                       .view = &r->view, .cpu = r->cpu, .reports_until = &r->reports_until,
                       .tick = &r->told_tick };
}

/* Main: posts a command, which moves. */
void reader_post(Reader *r, ReaderCommand *command);

/*
 * reader/failover.c, by the stall monitor, with the lock: starts a backup that reads from one of these CPUs, none of which is the
 * ring's. Negative: from thread_start(); there is no backup then.
 */
int reader_fail_over(Reader *r, const uint32_t *cpus, size_t n_cpus);
/* By the holder of the lock: true if the reader is late. */
bool reader_is_overdue(const Reader *r);
/* Main: allocates the backlog of a ring of so many bytes. -ENOMEM */
int backlog_init(Backlog *h, size_t ring_size);
