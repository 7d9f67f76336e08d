/*
 * For the files of the reader and their tests: what the reader's thread does between start and join or, while it does not run,
 * its backup (reader/failover.c), with the lock.
 */
#pragma once

#include "daemon/reader/reader.h"

/*
 * By the thread, with the lock, before it sleeps until `due`: sets the timer that tells the stall monitor if it does not wake.
 * may_fill: its ring may, meanwhile.
 */
void reader_watch(Reader *r, nsec_t due, bool may_fill);
/* By the thread, without the lock: returns to its CPU. */
void reader_go_home(Reader *r);
/* By either of them after a sleep. False, without the lock: this backup is no longer needed. */
bool reader_acquire_lock(Reader *r, bool as_backup, bool *ret_is_back);
/* True if commands are to be executed now; false if they wait for the thread itself, which may run in a moment. */
bool reader_may_execute(Reader *r);
nsec_t reader_cpu_time(const Reader *r);
/* By a backup that was told to stop, with the lock: lets the thread run on this CPU, because it cannot run on its own to end. */
void reader_let_end(const Reader *r);
/* reader/reader.c: what is done between two sleeps. Also called by tests, which have no thread. Negative: fatal. */
int reader_read(Reader *r, bool *ret_is_starved);
/* The loop, for the thread and its backup, with the lock, which it releases at the end. Negative: fatal. */
int reader_loop(Reader *r, bool as_backup);
/* reader/pace.c: as if nobody waited for anything. */
void reader_set_default_pace(Reader *r);
/* By who waits for what comes into this ring; behind another snapshot. */
void reader_set_pace(Reader *r);
/* After a drain: when it looks again. along: somebody waits for what this CPU says, records or not. */
void reader_choose_wait(Reader *r, bool along, bool had_records);
/* CLOCK_MONOTONIC */
nsec_t reader_next_tick(const Reader *r, nsec_t now);
/* True if it may sleep without a timeout, because the dispatcher looks at its ring. */
bool reader_can_be_dormant(const Reader *r);
/* Batch.due of what is pushed now. */
nsec_t reader_due(const Reader *r);
void reader_set_priority(const Reader *r);
/* A fatal error: aborts perfd. */
_Noreturn void reader_abort(const Reader *r, int error);

/* reader/drain.c. Also called by tests and benchmarks, which have no thread. */
enum {
        READER_E_STARVED = 1, /* no free batch: records stay in the ring */
        READER_E_NO_ROOM,     /* the rest of the batch is too small; only inside of the reader */
        READER_E_UNDECODABLE, /* the record cannot be decoded; only inside of the reader */
};
int reader_drain(Reader *r);
/*
 * reader/batch.c: a batch to fill. READER_E_STARVED if the dispatcher has them all; it then asks READER_ASK_BATCHES when one is
 * back.
 */
int reader_take_batch(Reader *r);
/* Makes sure that there is a batch to fill. */
static inline int reader_need_batch(Reader *r) {
        return r->batch ? 0 : reader_take_batch(r);
}
/* In the middle of a drain: the batch does not have the record at the tail. */
void reader_push_full_batch(Reader *r);
/* reader/take.c: encodes one record into the current batch. READER_E_NO_ROOM. */
int reader_take(Reader *r, const uint8_t *bytes, size_t length, bool *ret_is_sample);
/* Counts the loss of a record that does not fit even into an empty batch. */
void reader_lose(Reader *r, const uint8_t *bytes, size_t length, bool is_sample);
/*
 * reader/run.c: after a sample of `stream`, takes the following samples of the same stream and length, before `until`, as far as
 * they can be taken in the same way. Returns how many, 0 or more. The record that ended the run is the next one.
 */
uint64_t reader_take_run(Reader *r, Ring *ring, uint64_t until, const SnapshotStream *stream, size_t length);
/*
 * reader/interleaved.c: the same while streams alternate, until one of them stays. `stream` becomes that of the last sample
 * taken.
 */
uint64_t reader_take_interleaved(Reader *r, Ring *ring, uint64_t until, const SnapshotStream **stream);
/*
 * reader/dispatch.c: a batch was pushed. The dispatcher is notified at the end of a drain, or earlier if so many batches wait
 * that it should begin.
 */
void reader_pushed(Reader *r);
/* It is about to sleep without a timeout: somebody looks at its ring instead. */
void reader_become_dormant(Reader *r);
/*
 * After a drain: batches that were pushed are dispatched, by the dispatcher or, if there is time for it, by this thread.
 * Negative: fatal.
 */
int reader_hand_off(Reader *r, bool can_dispatch);
/* CLOCK_MONOTONIC: when this reader has to run a cycle for work that becomes due later; UINT64_MAX: it does not own the timer. */
nsec_t reader_next_cycle(const Reader *r);
/* The dispatcher owns the timer from now on. */
void reader_release_timer(Reader *r);
/* reader/interval.c: reads and sends counts that are due. Stores when the next ones are. READER_E_STARVED, -errno. */
int reader_read_intervals(Reader *r, nsec_t *ret_next);
/* Before `next` is adopted: sends the last counts of what is disabled in it. READER_E_STARVED, -errno. */
int reader_read_disabled(Reader *r, const Snapshot *next);
/* Subtracts what successors on this CPU have counted until now, because the fds that they replace have counted it too. -errno. */
int reader_hand_over(Reader *r);
/*
 * reader/ring.c: changes from one ring to another. Both are drained, the old one first, until at one moment the reader has seen
 * all that was written to either. What occurs later is behind this position in each of them.
 */
int reader_begin_ring(Reader *r, ReaderRing *ring, bool on);
int reader_retire(Reader *r); /* nothing, if there is one ring */
/* reader/backlog.c: a lower bound of the times of all records in the ring before `head` and of those still to come. -ENOMEM. */
int reader_init_backlog(Reader *r);
nsec_t reader_backlog_watermark(Reader *r, uint64_t head);
/* The lowest time of the next n records in each ring, or of as many as there are. UINT64_MAX: none has a time. */
nsec_t reader_least_ahead(const Reader *r, unsigned n);
/* The time of the next record of one ring, 0 if it has none. UINT64_MAX: there is no record before `head`. */
nsec_t reader_next_time(const Reader *r, const Ring *of, uint64_t head);
/* The position of the first record that is younger than `time`; `head`: there is none. */
uint64_t reader_find_younger(const Reader *r, const Ring *of, uint64_t head, nsec_t time);
/*
 * After a whole drain: pushes the current batch with the watermark up to which the ring was read; an empty batch if there are no
 * entries. READER_E_STARVED: there are no entries, and no batch for the watermark.
 */
int reader_push_batch(Reader *r);
/* reader/time.c: replaces a time that is impossible. is_shared: SnapshotStream.is_shared. */
nsec_t reader_mend_time(const Reader *r, bool is_shared, nsec_t time);
/* After a drain that found such times: logs them, at most once in ten minutes. */
void reader_tell_times(Reader *r);
/* Of a sorted batch: no entry may be in the future, whatever wrote its time, neither for the merge nor for subscribers. */
void reader_keep_behind_clock(const Reader *r, Batch *b);
/* reader/take.c: the stream of a sample that has this id, or has its own id at another place. NULL: none. */
const SnapshotStream *reader_find_sample(const Reader *r, uint64_t id, const uint8_t *bytes, size_t length);
/*
 * reader/slice.c: the work of a command begins. Behind each of its system calls: if the slice is over, drains, and perhaps pauses
 * before that; the next slice begins. READER_E_STARVED, negative.
 */
void reader_begin_slices(Reader *r);
int reader_end_slice(Reader *r);
/* reader/cut.c. scope: NULL for all events; the cuts of others stay what they were. */
int reader_cut(Reader *r, const CutScope *scope);
/*
 * reader/remote.c, also for readers on their ring's CPU. The time before which everything is in the ring when its head is read
 * next.
 */
nsec_t reader_visible(const Reader *r);
/* How long to wait for occurrences that have begun on the ring's CPU, if read from the present CPU; 0 on the ring's CPU. */
nsec_t reader_guard(const Reader *r);
/* True if nothing is unread in the ring, or in either of two. */
bool reader_has_seen_all(const Reader *r);
/* Waits until what has begun by now is in the ring, or will count as late. Does not wait on the ring's CPU. */
void reader_wait_guard(const Reader *r);
/* After a whole drain: true if its end is between two occurrences, and is still the end of the ring. Waits for a guard time. */
bool reader_is_quiescent(const Reader *r);
/*
 * reader/cutover.c: before `next`, which changes the active fds of events, is used: drains up to a position between two
 * occurrences, and stores what these fds have counted there. If there is no such position, marks the events whose occurrence may
 * be divided by it. READER_E_STARVED, -errno: nothing was stored.
 */
int reader_find_boundary(Reader *r, const Snapshot *next, TurnedStream *turned);
/* NULL: births of processes are not recorded */
int reader_note(Reader *r, const Record *record);
/* The same of a sample of the stream of cgroup migrations. Also READER_E_UNDECODABLE. */
int reader_note_move(Reader *r, const Record *record);
/*
 * The name of a sample's thread, for conditions: that of the previous record with the same tid, that of the table, or that of
 * /proc. plan: its event's, or NULL.
 */
const char *reader_comm(Reader *r, const Plan *plan, const Record *record);
/* Updates names from COMM and FORK, and descendants from FORK and EXIT. */
void reader_learn_comm(Reader *r, const Record *record);
