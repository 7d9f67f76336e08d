/*
 * A reader thread: drains the ring of its CPU, on which it is pinned if that CPU is to have a reader, into batches.
 * Everything here but the functions marked for main belongs to the thread from start to join; or, while that does not run, to
 * its backup (reader/failover.c).
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
#include "daemon/model/dispatching.h"
#include "daemon/model/process-tree.h"
#include "daemon/model/batch-pipe.h"
#include "daemon/model/loss-bell.h"
#include "daemon/model/snapshot.h"
#include "daemon/ring/ring.h"
#include "daemon/ring/ring-view.h"

typedef enum ReaderCommandKind {
        READER_SET_SNAPSHOT, /* a snapshot; acknowledged when everything before this moment was read with the old one; with a cut just there */
        READER_SWITCH, /* enable or disable streams of this CPU, between two of its events */
        READER_CUTOVER, /* the same, off; and what their heirs have counted until now is taken off what is sent of counts */
        READER_CUT,   /* fill the cut of every event and of the ring, of one place, where a batch ends */
        READER_RING,  /* another ring beside the present one, which is drained until READER_RETIRE */
        READER_RETIRE, /* nothing is written into the old ring any more: its last records, then it is unmapped */
        READER_STOP,  /* last batch, then end */
} ReaderCommandKind;

/* An fd of an event that becomes active in the place of another one, or the other one. */
typedef struct TurnedStream {
        const SnapshotStream *stream;
        ReadCount before, now; /* what it has counted before the place where that is, and behind it */
        bool is_apart;         /* a group's leader that could not be read */
} TurnedStream;

typedef struct ReaderCommand {
        ReaderCommandKind kind;
        uint64_t sequence;  /* grows with each mail; acknowledged by Reader.acknowledged */
        uint64_t cut;       /* CUT, ADOPT: the cut's number, which is what batches have from there on; 0: ADOPT without one */
        Snapshot *snapshot; /* ADOPT: a reference that moves to the reader */
        TurnedStream *turned; /* ADOPT: borrowed until then too, room for all of its streams; NULL: none changes over */
        const int *fds;     /* SWITCH, HAND_OVER: of own_fds, or borrowed until the acknowledgement */
        size_t n_fds;
        bool on;
        int *ret_error; /* SWITCH, HAND_OVER, RING: where the first failure goes, main's; untouched without one */
        struct ReaderRing *ring; /* RING: main's until the acknowledgement; its contents move */
        int own_fds[];
} ReaderCommand;

/* Least times of what lies in the ring, by chunks of it: reader/backlog.c. */
#define BACKLOG_CHUNK ((uint64_t)16 * 1024) /* bytes of ring */
typedef struct Backlog {
        nsec_t *least;
        size_t n_chunks;
        uint64_t scanned; /* every record that begins before it is in a chunk's least */
        uint64_t chunk;   /* the last one that was begun */
} Backlog;

/* The internal stream that says who moves to which cgroup: cgroup:cgroup_attach_task. */
typedef struct MoveFields {
        uint64_t id;      /* of the stream; 0: there is none */
        Plan *plan;       /* borrowed */
        const PlanField *hierarchy, *cgroup, *tid, *path;
        uint64_t wanted;  /* hierarchy: that of perf events */
        SampleLayout layout;
} MoveFields;

#define READER_MORE_BATCHES 128 /* beside the pool, for a mail */
#define READER_EARLY_SHARE 8 /* of a ring: what its watermark finds, if it is less, waits for the next tick */
#define READER_FLUSH (3 * NSEC_PER_MSEC) /* with the way behind it, half of all samples are there within 2 ms */

/* A ring with its carrier: what one CPU has, or gets. */
typedef struct ReaderRing {
        Ring ring;
        Backlog backlog;
        int carrier_fd;      /* borrowed; polled, and read at a cut */
        uint64_t carrier_id; /* stream id of the side records */
        uint64_t carrier_read_format; /* of its attr */
} ReaderRing;

/* The thread that reads in place of a reader's own: with the lock. */
typedef enum ReaderBackup {
        BACKUP_NONE,      /* there is none, or it is at its end */
        BACKUP_READS,
        BACKUP_DISMISSED, /* the reader itself runs again: it ends when it looks next */
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
        bool has_no_pids; /* of whoever is outside of our pid namespace, who is told as tid 0 */
        nsec_t flush;        /* how long a sample may lie in the ring while it is busy, if nobody asks for less */
        ThreadPriority priority;
        nsec_t guard;        /* of a ring that is read from another CPU; 0: it is not */
        const uint32_t *remote_cpus; /* the CPUs that it may be read from then; borrowed */
        size_t n_remote_cpus;
        nsec_t away_guard;   /* of a reader on its ring's CPU, while the ring is read from another one all the same; 0: it never is */
        int overdue_fd;      /* timerfd of the stall monitor, for when this thread should have run; -1: there is none */
        int stall_fd;        /* epoll(7) of the stall monitor, or -1 */
        Ring ring;
        CommTable *comms;
        ProcessTree *kin; /* NULL: nobody asks who descends from whom */
        Dispatching *dispatching; /* what becomes of batches that were queued */
        LossBell *losses;      /* for who says what was lost; NULL: nobody does */
        int acknowledge_fd;    /* eventfd of main, written after an acknowledgement */
        SampleLayout side_layout;
        MoveFields moves;

        /*
         * Between threads. is_backup is written with the lock, and is a hint to who has it not. `acknowledged` is stored with release
         * behind what the mail did, and loaded with acquire by main: counters, cuts and mail_error are seen with it. cpu_time
         * stands alone.
         */
        OwnerLock lock; /* its holder, the thread, which is its owner, or its backup, has all of "the thread's own" */
        atomic_bool is_backup;  /* the backup had it last */
        atomic_bool is_moved;   /* the stall monitor took the thread off its CPU, in the middle of a cycle */
        atomic_bool is_watched; /* the stall monitor is woken when half of the ring was written */
        Mailbox mailbox;  /* mails from main, asks from any */
        Queue full, free; /* batches to the dispatcher and back */
        RingView view; /* open while the thread runs on its CPU, and has one ring */
        _Atomic(nsec_t) reports_until; /* CLOCK_MONOTONIC, the dispatcher's: its watermark is waited for at every tick until then */
        atomic_bool needs_batch; /* waits for a free batch: the dispatcher is to ask READER_ASK_BATCHES */
        _Atomic(uint64_t) acknowledged;
        atomic_bool is_abandoned;
        atomic_bool is_at_end; /* the thread, not its backup: set with release behind all that it does */
        int mail_error;   /* of the last mail; main looks at it when that is acknowledged */
        Heartbeat heartbeat;
        RingCounters counters;
        _Atomic(uint64_t) cpu_time; /* ns, of the thread, as of the last cut */

        /* the thread's own */
        Snapshot *snapshot;
        Batch *batch;      /* being filled, or NULL */
        Record in_place;      /* used again for each sample that is taken in place */
        Batch **spare;     /* those that came back, the last one on top: it is still in the cache */
        size_t n_spare;
        size_t n_pool;     /* batches that it has in all */
        size_t n_more;     /* batches beside those of the pool, as long as they are on their way */
        uint64_t cut;      /* number of the last one; main's while there is no thread */
        nsec_t watermark;  /* of the last whole drain */
        nsec_t began;      /* of this drain: when its heads had not been read yet */
        nsec_t given;      /* the youngest watermark of its batches: what comes later into a ring is not older */
        nsec_t shared_time; /* of the last sample of a software event */
        uint64_t told_times; /* RingCounters.foreign_times when the log was told of it, */
        nsec_t told_times_at; /* CLOCK_MONOTONIC: then */
        Backlog backlog;
        nsec_t wait;       /* at which multiples it looks again */
        nsec_t tick, along_tick, idle_wait; /* what `wait` is while records come, while it goes along, and at most */
        nsec_t next_look;  /* CLOCK_MONOTONIC: the next of these multiples, when it last went to sleep */
        bool is_asked;     /* for what it pushes now */
        uint32_t asks;     /* what was asked stands until it is answered: it is not asked twice */
        bool has_stopped;
        nsec_t overdue_at; /* CLOCK_MONOTONIC: when it should have run again; UINT64_MAX: it need not */
        ReaderBackup backup_state;
        Thread backup;
        nsec_t failed_over_at; /* CLOCK_MONOTONIC */
        bool has_said;         /* that it did, in the log */
        nsec_t said_at;        /* the last time */
        _Atomic(clockid_t) cpu_clock; /* of the thread; the stall monitor reads it without the lock */
        nsec_t backup_cpu_time; /* of backups that ended */
        bool has_read_early; /* records, since that tick's one before */
        bool is_slack;     /* the thread's timers may be late */
        size_t not_notified;     /* batches that the dispatcher was not woken for */
        bool has_rung;     /* in this drain */
        nsec_t cycle_due;   /* CLOCK_MONOTONIC: while it owns the timer: when the dispatcher's next cycle is due */
        nsec_t next_read;  /* when counts are to be read, UINT64_MAX: never */
        ReaderCommand *mail;  /* begun, waits for a whole drain */
        bool holds;        /* nothing that was read goes back to the kernel before such a one */
        Ring retiring;     /* the ring before this one, while events still write there; else null */
        uint64_t retiring_id; /* of its carrier */
        uint64_t comm_version;
        uint32_t comm_tid;
        char comm[COMM_SIZE];
} Reader;

/*
 * Main, before start: everything but the fields "set by main" gets its null image; pool: bytes of batches, allocated
 * here, at least two. -ENOMEM or what eventfd(2) says.
 */
int reader_init(Reader *r, size_t pool);
/* Main. Starts it with `snapshot` (a reference moves). Negative: from thread_start(). */
int reader_start(Reader *r, Snapshot *snapshot);
/* Main, after READER_STOP was posted: waits for the end. */
int reader_join(Reader *r);
/* The same for so many ns at most. False: its thread, or its backup's, has not ended; nothing has changed. */
bool reader_join_within(Reader *r, nsec_t most);
/* Main: its thread has nothing left to do but to end, and has said so by acknowledge_fd. */
bool reader_is_at_end(const Reader *r);
/* Main, instead of join, before the process ends: what it looks at may go, and that it fails then is no news. */
void reader_abandon(Reader *r);
/* Main, after join: ready to be started again, on a new ring. */
void reader_renew(Reader *r);
/* Main, after join; accepts half-built ones. Batches that are on the way must have come back or be freed by main. */
void reader_deinit(Reader *r);

/* What the dispatcher sees of it. */
static inline BatchPipe reader_pipe(Reader *r) {
        return (BatchPipe){ .full = &r->full, .free = &r->free, .needs_batch = &r->needs_batch, .reader = &r->mailbox,
                       .view = &r->view, .cpu = r->cpu, .reports_until = &r->reports_until };
}

/* Main: posts a mail whose memory moves. */
void reader_post(Reader *r, ReaderCommand *mail);

/*
 * reader/failover.c: the stall monitor, with the lock: a backup reads from one of these CPUs, none of which is the ring's.
 * Negative, from thread_start(): nobody does.
 */
int reader_fail_over(Reader *r, const uint32_t *cpus, size_t n_cpus);
/* The holder of the lock: the reader should have run, and did not. */
bool reader_is_overdue(const Reader *r);
/* reader/route.c: a table that has its routes becomes what readers need. -ENOMEM */
int reader_finish_routes(RouteTable *t);
/* Main: room for the backlog of a ring of so many bytes. -ENOMEM */
int backlog_init(Backlog *h, size_t ring_size);
