/*
 * Batches to packets. Streams in the order of each CPU take a batch as it comes; streams in the order of time wait in
 * the merge until every CPU has said that nothing older will come. Then the batch goes back to its reader: what
 * subscribers hold is their packets, never a reader's memory.
 */
#include "daemon/dispatcher.h"

#include <errno.h>
#include <stdlib.h>

nsec_t dispatcher_min_watermark(const Dispatcher *d) {
        nsec_t least = UINT64_MAX, window = atomic_load_explicit(&d->window, memory_order_relaxed);

        for (uint32_t i = 0; i < d->n_lanes; i++)
                if (d->watermarks[i] < least)
                        least = d->watermarks[i];
        return least == UINT64_MAX ? least : least > window ? least - window : 0;
}

static void dispatcher_give_back(Dispatcher *d, Batch *b) {
        Lane *l = &d->lanes[b->slot];
        bool pushed = queue_push(l->free, b);

        assert(pushed); /* it came from there */
        atomic_thread_fence(memory_order_seq_cst); /* the other side: reader_need_batch() */
        if (atomic_load_explicit(l->starving, memory_order_relaxed)) {
                atomic_store_explicit(l->starving, false, memory_order_relaxed);
                mailbox_ask(l->reader, READER_ASK_BATCHES);
        }
}

/* A packet goes to every subscriber of the channel. */
static int channel_send(Dispatcher *d, Channel *c, Packet *p) {
        int r = 0;

        if (!p)
                return 0;
        packet_seal(p);
        for (Subscriber *s = c->subscribers, *next; s && r >= 0; s = next) {
                next = s->next; /* a push may end the subscriber */
                r = subscriber_push(d, s, p);
        }
        packet_unref(p);
        return r;
}

int channel_flush(Dispatcher *d, Channel *c) {
        int r = channel_send(d, c, TAKE_PTR(c->tasks)), sent = channel_send(d, c, TAKE_PTR(c->open));

        return r < 0 ? r : sent;
}

static int channel_append(Dispatcher *d, Channel *c, const Batch *b, const BatchEntry *e) {
        const uint8_t *bytes = b->arena + e->offset;
        int r;

        if (c->open && packet_append(c->open, bytes, e->length, e->event, e->time))
                return 0;
        r = c->open ? channel_flush(d, c) : 0;
        if (r < 0)
                return r;
        c->open = packet_new(e->length > PACKET_SIZE ? e->length : PACKET_SIZE);
        if (!c->open)
                return -ENOMEM;
        (void)packet_append(c->open, bytes, e->length, e->event, e->time); /* made for it */
        return 0;
}

static int dispatcher_append(Dispatcher *d, StreamOrder order, uint64_t mask, const Batch *b, const BatchEntry *e) {
        uint64_t unnamed = e->mask & mask & ~task_table_described(&d->tasks[order], e->tid);
        int r = unnamed ? dispatcher_name(d, order, e->tid, unnamed) : 0;

        for (uint64_t m = e->mask & mask; m && r >= 0; m &= m - 1)
                r = channel_append(d, d->by_bit[order][__builtin_ctzll(m)], b, e);
        return r;
}

/* Bits of channels of this order for which masks of the batch's generation already speak. */
static uint64_t dispatcher_live_bits(const Dispatcher *d, StreamOrder order, uint64_t generation) {
        uint64_t live = 0;

        for (uint64_t m = d->order_bits[order]; m; m &= m - 1) {
                unsigned bit = (unsigned)__builtin_ctzll(m);

                if (d->by_bit[order][bit]->since <= generation)
                        live |= 1ULL << bit;
        }
        return live;
}

static void dispatcher_count_matched(Dispatcher *d, const Batch *b) {
        for (int order = 0; order < _STREAM_ORDER_MAX; order++)
                for (uint64_t m = b->mask & dispatcher_live_bits(d, order, b->generation); m; m &= m - 1) {
                        unsigned bit = (unsigned)__builtin_ctzll(m);

                        for (Subscriber *s = d->by_bit[order][bit]->subscribers; s; s = s->next)
                                s->matched += s->ended ? 0 : b->matched[bit];
                }
}

/* In the order in which the CPU had it. Notes are for both orders if nobody wants the order of time, which comes later. */
static int dispatcher_take_entries(Dispatcher *d, uint64_t by_cpu, bool is_all, const Batch *b) {
        int r = 0;

        for (size_t i = 0; i < b->n_entries && r >= 0; i++) {
                const BatchEntry *e = &b->entries[i];

                if (e->event != BATCH_NOTE) {
                        r = dispatcher_append(d, STREAM_BY_CPU, by_cpu, b, e);
                        continue;
                }
                r = dispatcher_note(d, STREAM_BY_CPU, b, e);
                if (r >= 0 && is_all)
                        r = dispatcher_note(d, STREAM_BY_TIME, b, e);
        }
        return r;
}

int dispatcher_take_batch(Dispatcher *d, Batch *b) {
        uint64_t by_cpu = b->mask & dispatcher_live_bits(d, STREAM_BY_CPU, b->generation);
        uint64_t by_time = b->mask & dispatcher_live_bits(d, STREAM_BY_TIME, b->generation);
        bool is_merged = by_time || (b->n_notes > 0 && d->order_bits[STREAM_BY_TIME]);
        int r = 0;

        counter_add(&d->items, b->n_entries - b->n_notes);
        if (b->watermark > 0)
                d->asked[b->slot] = false; /* that was the answer, be it nothing new */
        if (b->watermark > d->watermarks[b->slot])
                d->watermarks[b->slot] = b->watermark;
        dispatcher_count_matched(d, b);
        if (by_cpu || b->n_notes > 0)
                r = dispatcher_take_entries(d, by_cpu, !is_merged, b);
        if (r >= 0 && is_merged) {
                r = merge_add(&d->merge, b);
                if (r == 0)
                        return 0;
        }
        dispatcher_give_back(d, b);
        return r;
}

/* Nobody who wanted it can have it in its place. */
static int dispatcher_count_late(Dispatcher *d, const Batch *b, const BatchEntry *e, uint64_t by_time) {
        uint64_t by_cpu = dispatcher_live_bits(d, STREAM_BY_CPU, b->generation);
        LateRow *more;

        for (uint64_t m = e->mask & by_time; m; m &= m - 1)
                for (Subscriber *s = d->by_bit[STREAM_BY_TIME][__builtin_ctzll(m)]->subscribers; s; s = s->next)
                        s->late += !s->ended;
        if (e->event == 0 || (e->mask & by_cpu))
                return 0; /* a side record, or another stream has it */
        for (size_t i = 0; i < d->n_late; i++)
                if (d->late[i].event == e->event && d->late[i].slot == b->slot) {
                        d->late[i].count++;
                        return 0;
                }
        more = reallocarray(d->late, d->n_late + 1, sizeof(*more));
        if (!more)
                return -ENOMEM;
        d->late = more;
        d->late[d->n_late++] = (LateRow){ .event = e->event, .slot = b->slot, .count = 1 };
        return 0;
}

static int dispatcher_release_run(Dispatcher *d, const Batch *b, const BatchEntry *first, size_t n) {
        uint64_t bits = dispatcher_live_bits(d, STREAM_BY_TIME, b->generation);
        int r = 0;

        for (size_t i = 0; i < n && r >= 0; i++) {
                if (first[i].event == BATCH_NOTE)
                        r = dispatcher_note(d, STREAM_BY_TIME, b, &first[i]);
                else if (first[i].time < d->released)
                        r = dispatcher_count_late(d, b, &first[i], bits);
                else {
                        d->released = first[i].time;
                        r = dispatcher_append(d, STREAM_BY_TIME, bits, b, &first[i]);
                }
        }
        return r;
}

int dispatcher_release(Dispatcher *d) {
        nsec_t until = dispatcher_min_watermark(d);
        const BatchEntry *first;
        bool emptied, any = false;
        size_t n;
        Batch *b;
        int r = 0;

        while (r >= 0 && (n = merge_next(&d->merge, until, &b, &first, &emptied)) > 0) {
                any = true;
                r = dispatcher_release_run(d, b, first, n);
                if (emptied)
                        dispatcher_give_back(d, b);
        }
        if (any) {
                d->waiting_since = 0;
                atomic_store_explicit(&d->released_until, d->released, memory_order_relaxed);
        }
        return r;
}

/*
 * A reader whose batches are all in the merge, and all newer than what it has still to read: an interrupt wrote more
 * than a whole pool before the record that it interrupted got its place. Without a batch it can not go on, and without
 * it the merge can not. Its batches are released then, and what comes behind them is late, and counted so.
 */
void dispatcher_unblock(Dispatcher *d) {
        nsec_t oldest;

        for (uint32_t slot = 0; slot < d->n_lanes && merge_oldest(&d->merge, &oldest); slot++) {
                Lane *l = &d->lanes[slot];

                if (!d->live[slot] || d->watermarks[slot] >= oldest || !queue_is_empty(l->full) ||
                    !atomic_load_explicit(l->starving, memory_order_relaxed))
                        continue;
                for (size_t i = 0; i < d->merge.n; i++) {
                        const Batch *b = d->merge.batches[i];
                        nsec_t newest = b->entries[b->n_entries - 1].time;

                        if (b->slot == slot && newest > d->watermarks[slot])
                                d->watermarks[slot] = newest;
                }
        }
}

/* A channel whose last subscriber left. */
static void dispatcher_remove_channel(Dispatcher *d, Channel *c) {
        for (Channel **p = &d->channels; *p; p = &(*p)->next)
                if (*p == c) {
                        *p = c->next;
                        break;
                }
        d->by_bit[c->order][c->bit] = NULL;
        d->order_bits[c->order] &= ~(1ULL << c->bit);
        free(c);
}

int dispatcher_flush(Dispatcher *d) {
        int r = 0;

        for (Channel *c = d->channels, *next; c && r >= 0; c = next) {
                next = c->next;
                r = channel_flush(d, c);
                if (!c->subscribers)
                        dispatcher_remove_channel(d, c);
        }
        return r;
}
