/*
 * For the files of the reader among themselves, and their tests: what the thread does from start to join or, while that does not run,
 * its backup (reader/failover.c), with the lock.
 */
#pragma once

#include "daemon/reader/reader.h"

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
/* reader/reader.c: from one sleep to the next; or by a test that has no thread. Negative: fatal. */
int reader_read(Reader *r, bool *ret_is_starved);
/* The loop, for the thread and its backup, with the lock, which it releases at the end. Negative: fatal. */
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
