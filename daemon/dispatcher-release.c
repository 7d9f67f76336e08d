/*
 * Batches to streams. Streams in the order of each CPU take a batch as it comes; streams in the order of time wait in the
 * merge until every CPU has said that nothing older will come. Then the batch goes back to its reader: what subscribers
 * hold is their packets, never a reader's memory.
 */
#include "daemon/dispatcher.h"

#include <errno.h>
#include <stdlib.h>

nsec_t dispatcher_min_watermark(const Dispatcher *d) {
        nsec_t least = UINT64_MAX, window = atomic_load_explicit(&d->window, memory_order_relaxed);

        for (uint32_t i = 0; i < d->n_lanes; i++)
                if (d->watermarks[i] < least)
                        least = d->watermarks[i];
        if (least == UINT64_MAX)
                return least;
        least = least > window ? least - window : 0;
        return least > d->unwindowed ? least : d->unwindowed;
}

static void dispatcher_give_back(Dispatcher *d, Batch *b) {
        Lane *l = &d->lanes[b->slot];
        bool pushed = queue_push(l->free, b);

        assert(pushed); /* it came from there */
        atomic_thread_fence(memory_order_seq_cst); /* the other side: reader_take_batch() */
        if (atomic_load_explicit(l->starving, memory_order_relaxed)) {
                atomic_store_explicit(l->starving, false, memory_order_relaxed);
                mailbox_ask(l->reader, READER_ASK_BATCHES);
        }
}

/* Bits of channels of this order for which masks of the batch's generation already speak. */
static uint64_t dispatcher_find_live_bits(Dispatcher *d, StreamOrder order, uint64_t generation) {
        LiveBits *known = &d->live_bits[order];

        *known = (LiveBits){ .generation = generation, .n_changes = d->n_channel_changes };
        for (uint64_t m = d->order_bits[order]; m; m &= m - 1) {
                unsigned bit = (unsigned)__builtin_ctzll(m);

                if (d->by_bit[order][bit]->since <= generation)
                        known->bits |= 1ULL << bit;
        }
        return known->bits;
}

static inline uint64_t dispatcher_live_bits(Dispatcher *d, StreamOrder order, uint64_t generation) {
        const LiveBits *known = &d->live_bits[order];

        return known->generation == generation && known->n_changes == d->n_channel_changes ?
                       known->bits : dispatcher_find_live_bits(d, order, generation);
}

static void dispatcher_count_matched(Dispatcher *d, const Batch *b) {
        for (int order = 0; order < _STREAM_ORDER_MAX; order++)
                for (uint64_t m = b->mask & dispatcher_live_bits(d, order, b->generation); m; m &= m - 1) {
                        unsigned bit = (unsigned)__builtin_ctzll(m);

                        for (Subscriber *s = d->by_bit[order][bit]->subscribers; s; s = s->next)
                                s->matched += s->ended ? 0 : b->matched[bit];
                }
}

int dispatcher_take_batch(Dispatcher *d, Batch *b) {
        uint64_t by_cpu = b->mask & dispatcher_live_bits(d, STREAM_BY_CPU, b->generation);
        uint64_t by_time = b->mask & dispatcher_live_bits(d, STREAM_BY_TIME, b->generation);
        bool is_merged = by_time || (b->n_notes > 0 && d->order_bits[STREAM_BY_TIME]);
        unsigned noted = 1U << STREAM_BY_CPU | (is_merged ? 0 : 1U << STREAM_BY_TIME);
        int r = 0;

        counter_add(&d->items, b->n_entries - b->n_notes);
        d->tick_told.is_due |= b->due < d->tick_told.next;
        if (b->watermark > 0)
                d->hearings[b->slot].is_asked = false; /* that was the answer, be it nothing new */
        if (b->watermark > d->watermarks[b->slot])
                d->watermarks[b->slot] = b->watermark;
        dispatcher_count_matched(d, b);
        if (by_cpu || b->n_notes > 0)
                r = dispatcher_append(d, STREAM_BY_CPU, noted, by_cpu, b, b->entries, b->n_entries);
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

/* What is older than what was released: the first entries of this piece, how many; none, if any other came before it. */
static int dispatcher_release_late(Dispatcher *d, const MergePiece *p, size_t *ret_n) {
        uint64_t bits = dispatcher_live_bits(d, STREAM_BY_TIME, p->batch->generation);
        size_t n = 0;
        int r = 0;

        for (; n < p->n && p->first[n].time < d->released && r >= 0; n++)
                r = p->first[n].event == BATCH_NOTE ? dispatcher_note(d, STREAM_BY_TIME, p->batch, &p->first[n])
                                                    : dispatcher_count_late(d, p->batch, &p->first[n], bits);
        *ret_n = n;
        return r;
}

static int dispatcher_release_piece(Dispatcher *d, const MergePiece *p) {
        size_t n_late;
        int r = dispatcher_release_late(d, p, &n_late);

        if (n_late == p->n || r < 0)
                return r;
        d->released = p->first[p->n - 1].time;
        return dispatcher_append(d, STREAM_BY_TIME, 1U << STREAM_BY_TIME,
                                 dispatcher_live_bits(d, STREAM_BY_TIME, p->batch->generation), p->batch,
                                 p->first + n_late, p->n - n_late);
}

/* They are in order: if the first one is not late, none is. */
static int dispatcher_release_pieces(Dispatcher *d, const MergePiece *p, unsigned n) {
        bool is_plain = merge_is_of_one_generation(&d->merge);
        int r = 0;

        for (unsigned i = 0; i < n && r >= 0; i++) {
                if (is_plain && p[i].n == 1 && p[i].first->time >= d->released) {
                        uint64_t bits = dispatcher_live_bits(d, STREAM_BY_TIME, p[i].batch->generation);
                        unsigned passed = dispatcher_pass_pieces(d, STREAM_BY_TIME, bits, &p[i], n - i);

                        i += passed;
                        if (passed > 0)
                                d->released = p[i - 1].first->time;
                        if (i == n)
                                break;
                }
                r = dispatcher_release_piece(d, &p[i]);
        }
        return r;
}

/* What leaves now may have come in an earlier turn, and was due then. */
static bool dispatcher_has_due(const Dispatcher *d) {
        for (size_t i = 0; i < d->merge.n; i++)
                if (d->merge.batches[i]->due < d->tick_told.next)
                        return true;
        return false;
}

static bool dispatcher_are_due(const Dispatcher *d, const MergePiece *p, unsigned n) {
        for (unsigned i = 0; i < n; i++)
                if (p[i].batch->due < d->tick_told.next)
                        return true;
        return false;
}

int dispatcher_release(Dispatcher *d) {
        bool any = false, has_due = dispatcher_has_due(d);
        nsec_t until = dispatcher_min_watermark(d);
        const MergePiece *pieces;
        unsigned n;
        Batch *b;
        int r = 0;

        while (r >= 0 && (n = merge_next(&d->merge, until, &pieces)) > 0) {
                any = true;
                d->tick_told.is_due = d->tick_told.is_due || (has_due && dispatcher_are_due(d, pieces, n));
                r = dispatcher_release_pieces(d, pieces, n);
                while ((b = merge_take_emptied(&d->merge)))
                        dispatcher_give_back(d, b);
        }
        if (any) {
                d->waiting_since = 0;
                atomic_store_explicit(&d->released_until, d->released, memory_order_relaxed);
        }
        return r;
}

/*
 * A reader whose batches are all in the merge, and can not leave it: all newer than what it has still to read, because an
 * interrupt wrote more than a whole pool before the record that it interrupted got its place; or all younger than the window,
 * because there was that much in it. Without a batch it can not go on, and without it the merge can not. Its batches are
 * released then, and what comes behind them, of the CPU or of clients, is late, and counted so.
 */
void dispatcher_unblock(Dispatcher *d) {
        nsec_t window = atomic_load_explicit(&d->window, memory_order_relaxed), least = UINT64_MAX, oldest;
        bool is_blocked = false;

        for (uint32_t slot = 0; slot < d->n_lanes && merge_oldest(&d->merge, &oldest); slot++) {
                Lane *l = &d->lanes[slot];

                if (!d->live[slot] || d->watermarks[slot] >= oldest + window ||
                    !atomic_load_explicit(l->starving, memory_order_acquire) || /* before the queue: its last batch is there */
                    !queue_is_empty(l->full))
                        continue;
                is_blocked = true;
                if (d->watermarks[slot] >= oldest)
                        continue;
                for (size_t i = 0; i < d->merge.n; i++) {
                        const Batch *b = d->merge.batches[i];
                        nsec_t newest = b->entries[b->n_entries - 1].time;

                        if (b->slot == slot && newest > d->watermarks[slot])
                                d->watermarks[slot] = newest;
                }
        }
        for (uint32_t slot = 0; slot < d->n_lanes && is_blocked; slot++)
                if (d->watermarks[slot] < least)
                        least = d->watermarks[slot];
        if (is_blocked && least != UINT64_MAX && least > d->unwindowed)
                d->unwindowed = least;
}
