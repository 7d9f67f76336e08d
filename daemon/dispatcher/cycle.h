/* For the files of the dispatcher and their tests: what is done in a cycle, by the holder of dispatching.lock. */
#pragma once

#include "daemon/dispatcher/dispatcher.h"

/* dispatcher/cycle.c: runs one cycle. Negative: fatal. */
int dispatcher_run_cycle(Dispatcher *d, bool is_assist);
bool dispatcher_has_work(const Dispatcher *d);
/* Takes what was in the queues when it was called: at most as many batches as fit into them, because readers continue to push. */
int dispatcher_empty_queues(Dispatcher *d);

/* dispatcher/wait.c: raises the watermark of the CPU on which this runs, or of other CPUs, if they are quiet. Before a release. */
void dispatcher_look_here(Dispatcher *d);
void dispatcher_look_around(Dispatcher *d);
/* Asks the readers for which the merge waits. Returns the ns to sleep, UINT64_MAX: without a limit. */
nsec_t dispatcher_ask(Dispatcher *d);

/*
 * dispatcher/dormant.c: asks readers to look at their rings that sleep without a timeout. Returns the ns to sleep, UINT64_MAX: none
 * is dormant.
 */
nsec_t dispatcher_look_for_dormant(Dispatcher *d);
/* Behind doorbell_arm(), which a reader may have rung before: one has become dormant since their rings were last looked at. */
bool dispatcher_has_new_dormant(const Dispatcher *d);
/* After a cycle: what has to be asked for. Returns the ns to sleep until the next one, UINT64_MAX: without a limit. */
nsec_t dispatcher_next_cycle(Dispatcher *d);

/* dispatcher/release.c: the entries of a batch, to the channels. Negative: memory. */
int dispatcher_take_batch(Dispatcher *d, Batch *b);
int dispatcher_release(Dispatcher *d);
/* dispatcher/late.c: counts an entry that is older than what was released, and no note. -ENOMEM */
int dispatcher_count_late(Dispatcher *d, const Batch *b, const BatchEntry *e);
/* Adds the samples that readers read before a cut to the report. -ENOMEM */
int dispatcher_report_late(const Dispatcher *d, uint64_t cut, DispatcherReport *report);
/* Called if nothing could be released for a while. */
void dispatcher_unblock(Dispatcher *d);

/* dispatcher/channel.c: the time up to which all CPUs that are waited for have reported. */
nsec_t dispatcher_min_watermark(const Dispatcher *d);
/* Bits of the channels of this order and group for which the masks of this generation are valid. */
uint64_t dispatcher_find_live_bits(Dispatcher *d, StreamOrder order, uint32_t group, uint64_t generation);

static inline uint64_t dispatcher_live_bits(Dispatcher *d, StreamOrder order, uint32_t group, uint64_t generation) {
        const LiveBits *known = &d->groups[order][group].live;

        return known->generation == generation && known->n_changes == d->n_channel_changes ?
                       known->bits : dispatcher_find_live_bits(d, order, group, generation);
}

/*
 * dispatcher/append.c: appends n entries of a batch to the packets of the channels of this order. Notes between them are applied
 * to the tables of `noted`, which has a bit for each order.
 */
int dispatcher_append(Dispatcher *d, StreamOrder order, unsigned noted, const Batch *b, const BatchEntry *e, size_t n);
/*
 * dispatcher/pass.c: the fast path for pieces of one entry each, sorted, of batches whose masks are all of group 0 and valid for
 * these bits. Returns how many were appended; it stops at the first for which something has to be done before.
 */
unsigned dispatcher_pass_pieces(Dispatcher *d, StreamOrder order, uint64_t bits, const MergePiece *pieces, unsigned n);
/* dispatcher/flush.c: sends open packets, and removes channels whose last subscriber has left. */
int dispatcher_flush(Dispatcher *d);
/* Registers a channel for the next flush. */
static inline void dispatcher_note_unflushed(Dispatcher *d, Channel *c) {
        if (c->is_unflushed)
                return;
        c->is_unflushed = true;
        c->next_unflushed = d->unflushed;
        d->unflushed = c;
}
int channel_flush(Dispatcher *d, Channel *c);
/*
 * Sends a packet, which moves, to every subscriber of the channel; where it cannot be sent at once, it is queued. Negative:
 * memory.
 */
int channel_send(Dispatcher *d, Channel *c, Packet *p);
/*
 * dispatcher/zero-copy.c: reserves a packet in the memory of the channel's only subscriber, for at least `least` bytes; NULL: not
 * possible, or not now.
 */
Packet *channel_reserve(const Channel *c, size_t least);
/* Subscribers have come, gone or ended. */
void channel_choose_pool(Channel *c);
/* A packet in a buffer that several subscribers share. NULL: they have no pool, or no buffer is free. */
Packet *channel_new_buffered(const Dispatcher *d, const Channel *c);
/*
 * Sends a reference to such a packet. 1: done, and the subscriber may have been freed. 0: not possible, it has to get a copy.
 * Negative: memory.
 */
int subscriber_send_ref(Dispatcher *d, Subscriber *s, const Packet *p);
/* Sends a reserved packet. The subscriber may be freed. Negative: memory. */
int channel_send_reserved(Dispatcher *d, Channel *c, Packet *p);

/*
 * dispatcher/condition.c: removes those channels of this order whose conditions are false from the masks of n conditional
 * entries.
 */
int dispatcher_decide(Dispatcher *d, StreamOrder order, const Batch *b, const BatchEntry *e, size_t n);
/* dispatcher/tasks.c: descriptions of tasks. */
int dispatcher_init_tasks(Dispatcher *d);
void dispatcher_deinit_tasks(Dispatcher *d);
/* Applies a note to the table of this order. */
int dispatcher_note(Dispatcher *d, StreamOrder order, const Batch *b, const BatchEntry *e);
int dispatcher_learn(Dispatcher *d, const TaskScan *scan);
/* Verifies what is a guess of a task, or of none (NULL), before the task is described, or a condition uses it. -ENOMEM */
int dispatcher_confirm(Dispatcher *d, StreamOrder order, Task *task); /* before dispatcher_name() */
int dispatcher_name(Dispatcher *d, StreamOrder order, uint32_t group, uint32_t tid, uint64_t bits);
/* After a flush: forgets tasks above the limit of the table. */
int dispatcher_prune_tasks(Dispatcher *d);

/*
 * dispatcher/uids.c: after batches were popped, and before they are used: what the kernel has reported of uids, for the table of
 * STREAM_BY_CPU at once. -ENOMEM
 */
int dispatcher_hear_uids(Dispatcher *d);
/* Up to which time entries can be released before the next change is applied; not more than `until`. */
nsec_t dispatcher_until_uid(Dispatcher *d, nsec_t until);
/* Behind them: changes up to this time, for the table of STREAM_BY_TIME. -ENOMEM */
int dispatcher_apply_uids(Dispatcher *d, nsec_t until);

/* dispatcher/wall.c */
int dispatcher_init_wall(Dispatcher *d);
void dispatcher_deinit_wall(Dispatcher *d);
/* Behind what was received, before anything of it is sent. */
void dispatcher_look_at_wall(Dispatcher *d);
/* Before a flush: wall time was set. All channels are told the last reading. -ENOMEM */
int dispatcher_tell_wall(Dispatcher *d);
/* Tells one that has just begun, and has its descriptors. It may be freed. -ENOMEM */
int subscriber_push_wall(Dispatcher *d, Subscriber *s);
/* dispatcher/tasks.c: before items of a channel: the last reading, if it was not told. -ENOMEM */
int channel_tell_wall(Dispatcher *d, Channel *c);

/* dispatcher/subscriber.c: streams begin and continue. */
int dispatcher_subscribe(Dispatcher *d, Subscriber *s);
int dispatcher_begin(Dispatcher *d, uint64_t id);
/* After a flush, as everything that sends something other than items. */
int dispatcher_describe(Dispatcher *d, const DispatcherCommand *command);
int dispatcher_tell_removals(Dispatcher *d);
/* dispatcher/ask.c */
void dispatcher_command_free(DispatcherCommand *command);
/* dispatcher/close.c */
int dispatcher_close(Dispatcher *d, const DispatcherCommand *command);
int dispatcher_end_closing(Dispatcher *d);
int dispatcher_report(Dispatcher *d, uint64_t cut, DispatcherReport *report);
/* NULL: there is no subscriber of this subscription in this order. */
static inline Channel *dispatcher_channel(const Dispatcher *d, StreamOrder order, uint32_t number) {
        return d->groups[order][BATCH_GROUP(number)].by_bit[number % BATCH_BITS];
}
/* dispatcher/channel.c: sets Channel.pending of all: entries in the merge that will reach the channel's subscribers. */
void dispatcher_count_pending(Dispatcher *d);
int dispatcher_close_all(Dispatcher *d);
/*
 * dispatcher/edge.c: streams begin and end at cuts. Subscribers of a channel share packets; so while some batches are not for all
 * of them, no packet has items of both sides of a cut. Called before items of batches with this cut are appended to channels of
 * an order.
 */
int dispatcher_set_side(Dispatcher *d, StreamOrder order, uint64_t cut);
void dispatcher_cut(Dispatcher *d, uint64_t id, uint64_t cut);
void dispatcher_set_behind(Dispatcher *d, uint32_t slot, bool is_behind);
/* At the end of a cycle: begins streams before whose cut nothing is left in the merge. */
void dispatcher_pass_beginnings(Dispatcher *d);
/* dispatcher/drop.c: called when it is about to end, or is freed. */
void subscriber_forget_edges(Dispatcher *d, const Subscriber *s);
/* dispatcher/flush.c: queues a packet, and sends it if nothing else was queued. The subscriber may be freed. */
int subscriber_push(Dispatcher *d, Subscriber *s, Packet *p);
void subscriber_drop(Dispatcher *d, Subscriber *s, const char *why);

/* At most once: main answers with the closing ledger. */
int subscriber_ask_close(Dispatcher *d, Subscriber *s, const char *reason);

/*
 * dispatcher/memory.c: the memory of all queues. Before a packet is queued: if an account is used up by subscribers with larger
 * queues, these drop packets. -ENOMEM.
 */
int dispatcher_make_room(Dispatcher *d, const Subscriber *s, const Packet *p);
/* Limits were lowered. Subscribers may be freed. -ENOMEM */
int dispatcher_shed(Dispatcher *d);
/* Queued packets of so many bytes were dropped. */
void dispatcher_note_freed(Dispatcher *d, uint64_t bytes);
/* Notifies main if queues have grown by much since the last notice. -ENOMEM */
int dispatcher_tell_growth(Dispatcher *d);
int dispatcher_notify(Dispatcher *d, DispatcherNoticeKind kind, const Subscriber *s, const char *reason);
int dispatcher_notify_silent(Dispatcher *d, uint32_t slot, nsec_t asked_at);

/* dispatcher/send.c. Subscribers may be freed. Negative: memory. */
int subscriber_send(Dispatcher *d, Subscriber *s);
/* Wakes subscribers that have something to read in shared memory. */
int dispatcher_end_cycle(Dispatcher *d);
/* True if its subscribers need not be woken at the end of each cycle, of which there are more because others requested less. */
static inline bool channel_has_own_tick(const Dispatcher *d, const Channel *c) {
        return c->tick_most / 2 >= atomic_load_explicit(&d->dispatching.tick, memory_order_relaxed) && d->n_closing == 0 &&
               !d->is_closing_all;
}
/* Its subscribers are to be woken at the end of a cycle: those with wakeup_pending. */
static inline void dispatcher_wake_later(Dispatcher *d, Channel *c) {
        if (c->is_to_wake)
                return;
        c->is_to_wake = true;
        c->next_to_wake = d->to_wake;
        d->to_wake = c;
}
/* The ns until subscribers that wait have to be woken; UINT64_MAX: none waits. */
nsec_t dispatcher_until_wakeup(const Dispatcher *d);
/* The subscriber reports that its ring has room. */
int subscriber_on_room(Dispatcher *d, Subscriber *s);
