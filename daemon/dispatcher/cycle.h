/*
 * For the files of the dispatcher among themselves, and their tests: what is done in a cycle, by the holder of dispatching.lock.
 */
#pragma once

#include "daemon/dispatcher/dispatcher.h"

/* dispatcher/cycle.c: what there is to be done now. Negative: fatal. */
int dispatcher_run_cycle(Dispatcher *d, bool is_assist);
bool dispatcher_has_work(const Dispatcher *d);
/* Takes everything that was in the queues when this was called: as much as fits in them, because readers go on. */
int dispatcher_empty_queues(Dispatcher *d);

/* dispatcher/wait.c: what the CPU says on which this runs, if it is quiet, and then others. Before a release. */
void dispatcher_look_here(Dispatcher *d);
void dispatcher_look_around(Dispatcher *d);
/* Those that others wait for are asked. For how long to sleep. */
nsec_t dispatcher_ask(Dispatcher *d);

/* dispatcher/release.c: what a batch holds, to the channels. Negative: memory. */
int dispatcher_take_batch(Dispatcher *d, Batch *b);
int dispatcher_release(Dispatcher *d);
/* dispatcher/late.c: an entry that is no note, older than what was released. -ENOMEM */
int dispatcher_count_late(Dispatcher *d, const Batch *b, const BatchEntry *e);
/* Into the report, of what came to the readers before a cut. -ENOMEM */
int dispatcher_report_late(const Dispatcher *d, uint64_t cut, DispatcherReport *report);
/* When nothing could be released for a while. */
void dispatcher_unblock(Dispatcher *d);

/* dispatcher/channel.c: up to which time all CPUs have said everything, or are not waited for. */
nsec_t dispatcher_min_watermark(const Dispatcher *d);
/* Bits of channels of this order and group for which masks of the batch's generation already speak. */
uint64_t dispatcher_find_live_bits(Dispatcher *d, StreamOrder order, uint32_t group, uint64_t generation);

static inline uint64_t dispatcher_live_bits(Dispatcher *d, StreamOrder order, uint32_t group, uint64_t generation) {
        const LiveBits *known = &d->groups[order][group].live;

        return known->generation == generation && known->n_changes == d->n_channel_changes ?
                       known->bits : dispatcher_find_live_bits(d, order, group, generation);
}

/*
 * dispatcher/append.c: n entries of a batch, to the packets of the channels of this order. Notes between them are followed in
 * the tables of `noted`, a bit for each order.
 */
int dispatcher_append(Dispatcher *d, StreamOrder order, unsigned noted, const Batch *b, const BatchEntry *e, size_t n);
/*
 * dispatcher/pass.c: pieces of one entry each, in order, of batches whose masks are all of group 0 and speak for these bits, as
 * long as they go where nothing has to be done before: how many went.
 */
unsigned dispatcher_pass_pieces(Dispatcher *d, StreamOrder order, uint64_t bits, const MergePiece *pieces, unsigned n);
/* dispatcher/flush.c: sends what is in open packets, and ends channels whose last subscriber left. */
int dispatcher_flush(Dispatcher *d);
/* The next flush has something to do for it. */
static inline void dispatcher_note_unflushed(Dispatcher *d, Channel *c) {
        if (c->is_unflushed)
                return;
        c->is_unflushed = true;
        c->next_unflushed = d->unflushed;
        d->unflushed = c;
}
int channel_flush(Dispatcher *d, Channel *c);
/* A packet, which moves, to every subscriber of the channel. Whoever cannot send it at once holds it from then on. Negative: memory. */
int channel_send(Dispatcher *d, Channel *c, Packet *p);
/* dispatcher/zero-copy.c: a packet in the memory of the channel's only subscriber, for `least` bytes; NULL: not here, or not now. */
Packet *channel_reserve(const Channel *c, size_t least);
/* Several subscribers will read it where it lies. NULL: they cannot, or no buffer is free. */
Packet *channel_new_buffered(const Dispatcher *d, const Channel *c);
/* 1: it was told where such a packet lies, and may be gone. 0: it was not, and is to get a copy. Or what the system says. */
int subscriber_send_ref(Dispatcher *d, Subscriber *s, const Packet *p);
/* It leaves; the subscriber may be gone afterwards. Negative: memory. */
int channel_send_reserved(Dispatcher *d, Channel *c, Packet *p);

/* dispatcher/condition.c: takes those channels of this order out of the masks of n conditional entries whose conditions do not hold. */
int dispatcher_decide(Dispatcher *d, StreamOrder order, const Batch *b, const BatchEntry *e, size_t n);
/* dispatcher/tasks.c: who did what items say. */
int dispatcher_init_tasks(Dispatcher *d);
void dispatcher_deinit_tasks(Dispatcher *d);
/* What a note in a batch says, for streams of this order. */
int dispatcher_note(Dispatcher *d, StreamOrder order, const Batch *b, const BatchEntry *e);
int dispatcher_learn(Dispatcher *d, const TaskScan *scan);
/* Describes the thread, if it is known, to those of these channels that do not have it as it is now, before an item of it. */
int dispatcher_confirm_cgroup(Dispatcher *d, StreamOrder order, Task *task); /* or NULL; before it is described or judged. -ENOMEM */
int dispatcher_name(Dispatcher *d, StreamOrder order, uint32_t group, uint32_t tid, uint64_t bits);
/* After a flush: what is too much is forgotten. */
int dispatcher_prune_tasks(Dispatcher *d);

/* dispatcher/subscriber.c: streams begin, go on, end. */
int dispatcher_subscribe(Dispatcher *d, Subscriber *s);
int dispatcher_begin(Dispatcher *d, uint64_t id);
/* As all that sends something else than items: after a flush. */
int dispatcher_describe(Dispatcher *d, const DispatcherCommand *mail);
int dispatcher_tell_removals(Dispatcher *d);
/* dispatcher/ask.c */
void dispatcher_mail_free(DispatcherCommand *mail);
/* dispatcher/close.c */
int dispatcher_close(Dispatcher *d, const DispatcherCommand *mail);
int dispatcher_end_closing(Dispatcher *d);
int dispatcher_report(Dispatcher *d, uint64_t cut, DispatcherReport *report);
/* NULL: nobody has subscribed to it in this order. */
static inline Channel *dispatcher_channel(const Dispatcher *d, StreamOrder order, uint32_t number) {
        return d->groups[order][BATCH_GROUP(number)].by_bit[number % BATCH_BITS];
}
/* dispatcher/channel.c: Channel.pending of all, entries that wait in the merge and will reach the channel's subscribers. */
void dispatcher_count_pending(Dispatcher *d);
int dispatcher_close_all(Dispatcher *d);
/*
 * dispatcher/edge.c: streams begin and end at cuts. Subscribers of a channel share packets, so while some batches are not for
 * all of them no packet has items of both sides: before items of batches that have this cut go to channels of an order.
 */
int dispatcher_set_side(Dispatcher *d, StreamOrder order, uint64_t cut);
void dispatcher_cut(Dispatcher *d, uint64_t id, uint64_t cut);
void dispatcher_set_behind(Dispatcher *d, uint32_t slot, bool is_behind);
/* At the end of a cycle: beginnings that nothing lies before any more. */
void dispatcher_pass_beginnings(Dispatcher *d);
/* dispatcher/drop.c: it is about to end, or gone. */
void subscriber_forget_edges(Dispatcher *d, const Subscriber *s);
/* dispatcher/flush.c: into the outbox, and out if nothing else waits. It may be gone afterwards. */
int subscriber_push(Dispatcher *d, Subscriber *s, Packet *p);
void subscriber_drop(Dispatcher *d, Subscriber *s, const char *why);

/* Once: main answers with the closing ledger. */
int subscriber_ask_close(Dispatcher *d, Subscriber *s, const char *reason);

/*
 * dispatcher/memory.c: what all queues hold together. Before a push: where an account is used up by others who hold more, they
 * drop some. -ENOMEM.
 */
int dispatcher_make_room(Dispatcher *d, const Subscriber *s, const Packet *p);
/* Their limits were lowered. Subscribers may be gone afterwards. -ENOMEM */
int dispatcher_shed(Dispatcher *d);
/* Packets that waited were dropped: so many bytes are free in small pieces. */
void dispatcher_note_freed(Dispatcher *d, uint64_t bytes);
/* Main hears of it when they hold much more than when it heard last. -ENOMEM */
int dispatcher_tell_growth(Dispatcher *d);
int dispatcher_say(Dispatcher *d, DispatcherNoticeKind kind, const Subscriber *s, const char *reason);
int dispatcher_say_silent(Dispatcher *d, uint32_t slot, nsec_t asked_at);

/* dispatcher/send.c. Subscribers may be gone afterwards. Negative: memory. */
int subscriber_send(Dispatcher *d, Subscriber *s);
/* Wakes those for whom there is something in shared memory. */
int dispatcher_end_cycle(Dispatcher *d);
/* It says that its ring has room. */
int subscriber_hear_of_room(Dispatcher *d, Subscriber *s);
