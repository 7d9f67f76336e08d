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
        _Atomic(nsec_t) along_until; /* CLOCK_MONOTONIC, the dispatcher's: its watermark is waited for at every tick until then */
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
                       .view = &r->view, .cpu = r->cpu, .along_until = &r->along_until };
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
/* The thread, or its backup, with the lock, before it sleeps until `due`: sets the timer that tells the stall monitor if it does not wake. */
void reader_watch(Reader *r, nsec_t due);
/* The thread, without the lock: back to its CPU. */
void reader_go_home(Reader *r);
/* Either of them behind a sleep. False, without the lock: it is a backup that is not needed any more. */
bool reader_acquire_lock(Reader *r, bool as_backup, bool *ret_is_back);
/* Whether mails are to be followed here and now, or by the reader itself, which may run in a moment. */
bool reader_may_execute(Reader *r);
nsec_t reader_cpu_time(const Reader *r);
/* The backup, which was told to stop, with the lock: the thread, which cannot run on its CPU to be told, may end on this one. */
void reader_let_end(const Reader *r);
/* reader/reader.c: the loop, for the thread and its backup, with the lock, which it releases at the end. Negative: fatal. */
int reader_loop(Reader *r, bool as_backup);
void reader_set_priority(const Reader *r);
/* A reader that cannot go on. */
_Noreturn void reader_abort(const Reader *r, int error);

/* reader/drain.c: on the thread, or by a test or benchmark that has no thread. */
enum {
        READER_E_STARVED = 1, /* no free batch: records stay in the ring */
        READER_E_NO_ROOM,     /* what is left of the batch is too small; inside of the reader */
        READER_E_UNDECODABLE, /* the same */
};
int reader_drain(Reader *r);
/* reader/batch.c: a batch to fill. READER_E_STARVED if the dispatcher has them all; it then asks when one is back. */
int reader_take_batch(Reader *r);
/* Makes sure that there is one. */
static inline int reader_need_batch(Reader *r) {
        return r->batch ? 0 : reader_take_batch(r);
}
/* In the middle of a drain: the record at the tail is not in it. */
void reader_push_full_batch(Reader *r);
/* reader/route.c: a table that has its routes becomes what readers need. -ENOMEM */
int reader_finish_routes(RouteTable *t);
/* reader/take.c: one record into the batch that there is. READER_E_NO_ROOM. */
int reader_take(Reader *r, const uint8_t *bytes, size_t length, bool *ret_is_sample);
/* One that does not fit into an empty batch is lost, and said so. */
void reader_lose(Reader *r, const uint8_t *bytes, size_t length, bool is_sample);
/*
 * reader/run.c: behind a sample of `stream`, which is common, those that are of it too, whole, as long, and before `until`, as
 * far as they can be taken one like the other. How many: 0 and more; what ended the run is the next record.
 */
uint64_t reader_take_run(Reader *r, Ring *ring, uint64_t until, const SnapshotStream *stream, size_t length);
/* reader/interleaved.c: the same where streams change, until one stays; `stream` becomes the last taken sample's. */
uint64_t reader_take_interleaved(Reader *r, Ring *ring, uint64_t until, const SnapshotStream **stream);
/*
 * reader/dispatch.c: a batch was pushed. It is passed on at the end of a drain, but the dispatcher is woken when so many wait
 * that it should begin before.
 */
void reader_pushed(Reader *r);
/* After a drain: what was pushed goes on, by the dispatcher, or here and now if there is time for it. Negative: fatal. */
int reader_hand_off(Reader *r, bool can_dispatch);
/* CLOCK_MONOTONIC: when it has to pass on what others may have pushed; UINT64_MAX: that is not up to this reader. */
nsec_t reader_next_cycle(const Reader *r);
/* The dispatcher owns the timer from now on. */
void reader_release_timer(Reader *r);
/* reader/interval.c: reads and sends the counts that are due; when the next ones are. READER_E_STARVED, -errno. */
int reader_read_intervals(Reader *r, nsec_t *ret_next);
/* What heirs have counted on this CPU until now, others have counted too. -errno. */
int reader_hand_over(Reader *r);
/*
 * reader/ring.c: from one ring to another. Drained are both, the old one first. Both are settled if the reader has seen all
 * that was written until now, at one moment: what fires afterwards is behind this place in each of them.
 */
int reader_begin_ring(Reader *r, ReaderRing *ring, bool on);
int reader_retire(Reader *r);
/* Main: room for the backlog of a ring of so many bytes. -ENOMEM */
int backlog_init(Backlog *h, size_t ring_size);
/* reader/backlog.c: nothing that is still in the ring before `head`, nor behind it, is older. -ENOMEM. */
int reader_init_backlog(Reader *r);
nsec_t reader_backlog_watermark(Reader *r, uint64_t head);
/* The least time of the next n records in each ring, or of as many as there are. UINT64_MAX: none has one. */
nsec_t reader_least_ahead(const Reader *r, unsigned n);
/* Of one of its rings: the next record's time, 0 if it has none. UINT64_MAX: there is no record before `head`. */
nsec_t reader_next_time(const Reader *r, const Ring *of, uint64_t head);
/* Where its next record begins that is younger than `time`; `head`: none is. */
uint64_t reader_find_younger(const Reader *r, const Ring *of, uint64_t head, nsec_t time);
/*
 * After a whole drain: what there is, with the watermark up to which it was read; an empty batch if there is nothing.
 * READER_E_STARVED: there is nothing, and no batch to say so in.
 */
int reader_push_batch(Reader *r);
/* reader/time.c: a time that can be right, in the place of one that cannot. is_shared: SnapshotStream.is_shared. */
nsec_t reader_mend_time(const Reader *r, bool is_shared, nsec_t time);
/* Behind a drain that found such times: tells the log, now and then. */
void reader_tell_times(Reader *r);
/*
 * Of a batch that is in order: nothing of it is younger than the clock, whoever said so, neither for the merge nor for who gets it.
 */
void reader_keep_behind_clock(const Reader *r, Batch *b);
/* reader/take.c: whose sample it is that has this id, or has its own one elsewhere. NULL: nobody's. */
const SnapshotStream *reader_find_sample(const Reader *r, uint64_t id, const uint8_t *bytes, size_t length);
/* reader/cut.c */
int reader_cut(Reader *r);
/* reader/remote.c, for readers on their ring's CPU too. What is older is in the ring when its head is read next. */
nsec_t reader_visible(const Reader *r);
/* How long to wait for what happens on the ring's CPU, as of where this is called; 0 on that CPU. */
nsec_t reader_guard(const Reader *r);
/* Of both rings, if there are two, nothing is unread. */
bool reader_has_seen_all(const Reader *r);
/* Until what has begun by now is in the ring, or will be late. On the ring's CPU it does not wait. */
void reader_wait_guard(const Reader *r);
/* After a whole drain: its end is between two occurrences, and is still the end of the ring. Waits for a guard. */
bool reader_is_quiescent(const Reader *r);
/*
 * reader/cutover.c: before `next` is adopted, which changes which fds of an event are active: drains up to a place between two
 * occurrences, and keeps what these fds have counted there; or marks the events of which an occurrence may be cut in two.
 * READER_E_STARVED, -errno: nothing was kept.
 */
int reader_find_boundary(Reader *r, const Snapshot *next, TurnedStream *turned);
/* reader/note.c: what a record of the host says of tasks, for the dispatcher. READER_E_NO_ROOM: nothing was appended. */
int reader_note(Reader *r, const Record *record);
/* The same of a sample of the stream of moves. Also READER_E_UNDECODABLE. */
int reader_note_move(Reader *r, const Record *record);
/* The name of a thread, for conditions: what the last record with the same tid had, the table's, or /proc's. */
const char *reader_comm(Reader *r, uint32_t tid, nsec_t time);
/* What COMM and FORK say of names, FORK and EXIT of descendants. */
void reader_learn_comm(Reader *r, const Record *record);
