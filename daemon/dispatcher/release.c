/*
 * From batches to streams. Streams ordered by CPU get a batch when it arrives. For streams ordered by time it waits in the merge
 * until every CPU has reported that nothing older will come. Then the batch is returned to its reader: queues of subscribers hold
 * packets, never a reader's memory.
 */
#include "daemon/dispatcher/cycle.h"

#include <errno.h>
#include <stdlib.h>

static void dispatcher_give_back(Dispatcher *d, Batch *b) {
        BatchPipe *l = &d->pipes[b->slot];
        bool pushed = queue_push(l->free, b);

        assert(pushed); /* always fits: the batch came from there */
        heartbeat_move(&d->heartbeat); /* with many subscribers, a cycle of many batches can take seconds on a slow machine */
        atomic_thread_fence(memory_order_seq_cst); /* pairs with the fence in reader_take_batch() */
        if (atomic_load_explicit(l->needs_batch, memory_order_relaxed)) {
                atomic_store_explicit(l->needs_batch, false, memory_order_relaxed);
                mailbox_ask(l->reader, READER_ASK_BATCHES);
        }
}

static inline void channel_count_matched(const Channel *c, const Batch *b, uint64_t n) {
        for (Subscriber *s = c->subscribers; s; s = s->next)
                s->matched += subscriber_gets(s, b->cut) ? n : 0;
}

/* Adds what the readers have matched. True if a subscriber of this order wants something of the batch. */
static bool dispatcher_count_matched(Dispatcher *d, StreamOrder order, const Batch *b) {
        uint64_t bits = b->mask & dispatcher_live_bits(d, order, 0, b->generation);

        FOR_EACH_BIT(bit, bits)
                channel_count_matched(d->groups[order][0].by_bit[bit], b, b->matched[bit]);
        return bits != 0;
}

static uint64_t group_count_matched(Dispatcher *d, StreamOrder order, const Batch *b, const BatchEntry *e, uint64_t n) {
        uint32_t group = entry_group(e);
        uint64_t bits = e->mask & dispatcher_live_bits(d, order, group, b->generation);

        FOR_EACH_BIT(bit, bits)
                channel_count_matched(d->groups[order][group].by_bit[bit], b, n);
        return bits;
}

/* Counts entries of groups above 0, which readers do not count. */
static void dispatcher_count_grouped(Dispatcher *d, Batch *b, bool *wants) {
        const BatchEntry *e = b->entries, *end = e + b->n_entries, *first;
        const uint32_t way = entry_way(e);

        while (e < end) {
                first = e;
                do
                        e++;
                while (e < end && entry_way(e) == entry_way(first) && e->mask == first->mask);
                b->is_uniform &= entry_way(first) == way;
                if (entry_group(first) == 0)
                        continue;
                for (int order = 0; order < _STREAM_ORDER_MAX; order++)
                        wants[order] |= group_count_matched(d, (StreamOrder)order, b, first, (uint64_t)(e - first)) != 0;
        }
}

int dispatcher_take_batch(Dispatcher *d, Batch *b) {
        bool wants[] = { [STREAM_BY_TIME] = dispatcher_count_matched(d, STREAM_BY_TIME, b),
                         [STREAM_BY_CPU] = dispatcher_count_matched(d, STREAM_BY_CPU, b) };
        bool is_merged;
        unsigned noted;
        int r = 0;

        b->is_uniform = true;
        if (b->n_grouped > 0)
                dispatcher_count_grouped(d, b, wants);
        is_merged = wants[STREAM_BY_TIME] || (b->n_notes > 0 && d->n_channels[STREAM_BY_TIME] > 0);
        noted = 1U << STREAM_BY_CPU | (is_merged ? 0 : 1U << STREAM_BY_TIME);

        counter_add(&d->items, b->n_entries - b->n_notes - b->n_shared);
        d->tick_told.is_due |= b->due < d->tick_told.next;
        if (b->watermark > 0)
                pipe_progress_answered(&d->progress[b->slot]); /* an answer, even if the watermark is not higher */
        if (b->watermark > d->watermarks[b->slot])
                d->watermarks[b->slot] = b->watermark;
        if (wants[STREAM_BY_CPU] && d->n_edges > 0)
                r = dispatcher_set_side(d, STREAM_BY_CPU, b->cut);
        if (r >= 0 && (wants[STREAM_BY_CPU] || b->n_notes > 0))
                r = dispatcher_append(d, STREAM_BY_CPU, noted, b, b->entries, b->n_entries);
        if (r >= 0 && is_merged) {
                r = merge_add(&d->merge, b);
                if (r == 0)
                        return 0;
        }
        dispatcher_give_back(d, b);
        return r;
}

/*
 * Handles the first entries of this piece that are older than what was released: counts them as late, or applies notes. Stores
 * how many.
 */
static int dispatcher_release_late(Dispatcher *d, const MergePiece *p, size_t *ret_n) {
        size_t n = 0;
        int r = 0;

        for (; n < p->n && p->first[n].time < d->released && r >= 0; n++)
                r = p->first[n].event == BATCH_MARKER ? dispatcher_note(d, STREAM_BY_TIME, p->batch, &p->first[n])
                                                    : dispatcher_count_late(d, p->batch, &p->first[n]);
        *ret_n = n;
        return r;
}

static int dispatcher_release_piece(Dispatcher *d, const MergePiece *p) {
        size_t n_late;
        int r = dispatcher_release_late(d, p, &n_late);

        if (n_late == p->n || r < 0)
                return r;
        d->released = p->first[p->n - 1].time;
        return dispatcher_append(d, STREAM_BY_TIME, 1U << STREAM_BY_TIME, p->batch, p->first + n_late, p->n - n_late);
}

/* The pieces are sorted: if the first one is not late, none is. */
static int dispatcher_release_pieces(Dispatcher *d, const MergePiece *p, unsigned n) {
        bool is_plain = merge_is_plain(&d->merge);
        int r = 0;

        for (unsigned i = 0; i < n && r >= 0; i++) {
                if (is_plain && p[i].n == 1 && p[i].first->time >= d->released) {
                        uint64_t bits = dispatcher_live_bits(d, STREAM_BY_TIME, 0, p[i].batch->generation);
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

/* Used while subscribers of a channel begin or end at different cuts. */
static int dispatcher_release_by_sides(Dispatcher *d, const MergePiece *p, unsigned n) {
        int r = 0;

        for (unsigned i = 0; i < n && r >= 0; i++) {
                r = dispatcher_set_side(d, STREAM_BY_TIME, p[i].batch->cut);
                if (r >= 0)
                        r = dispatcher_release_piece(d, &p[i]);
        }
        return r;
}

/* True if the merge has batches of earlier cycles that were due then. */
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

/* Entries that only subscribers that have left wanted: only their notes are used. */
static int dispatcher_forget_pieces(Dispatcher *d, const MergePiece *p, unsigned n) {
        int r = 0;

        for (unsigned i = 0; i < n && r >= 0; i++)
                r = dispatcher_append(d, STREAM_BY_TIME, 1U << STREAM_BY_TIME, p[i].batch, p[i].first, p[i].n);
        return r;
}

/* Without a stream ordered by time, nothing waits for a time in the future, and nothing counts as released. */
static int dispatcher_forget(Dispatcher *d) {
        const MergePiece *pieces;
        unsigned n;
        Batch *b;
        int r = 0;

        while (r >= 0 && (n = merge_next(&d->merge, UINT64_MAX, &pieces)) > 0) {
                r = dispatcher_forget_pieces(d, pieces, n);
                while ((b = merge_take_emptied(&d->merge)))
                        dispatcher_give_back(d, b);
        }
        return r;
}

/* Everything up to this time. */
static int dispatcher_release_until(Dispatcher *d, nsec_t until, bool has_due, bool *any) {
        const MergePiece *pieces;
        unsigned n;
        Batch *b;
        int r = 0;

        while (r >= 0 && (n = merge_next(&d->merge, until, &pieces)) > 0) {
                *any = true;
                d->tick_told.is_due = d->tick_told.is_due || (has_due && dispatcher_are_due(d, pieces, n));
                r = d->n_edges > 0 ? dispatcher_release_by_sides(d, pieces, n) : dispatcher_release_pieces(d, pieces, n);
                while ((b = merge_take_emptied(&d->merge)))
                        dispatcher_give_back(d, b);
        }
        return r;
}

int dispatcher_release(Dispatcher *d) {
        bool any = false, has_due = dispatcher_has_due(d);
        nsec_t until = dispatcher_min_watermark(d), next;
        int r;

        if (d->n_channels[STREAM_BY_TIME] == 0) {
                r = dispatcher_forget(d);
                return r < 0 ? r : dispatcher_apply_uids(d, UINT64_MAX);
        }
        do {
                next = dispatcher_until_uid(d, until);
                r = dispatcher_release_until(d, next, has_due, &any);
                if (r >= 0)
                        r = dispatcher_apply_uids(d, next);
        } while (r >= 0 && next < until);
        if (any) {
                d->waiting_since = 0;
                atomic_store_explicit(&d->released_until, d->released, memory_order_relaxed);
        }
        return r;
}

/*
 * Unblocks a reader whose batches are all in the merge and cannot leave it: because all are newer than what it has still to read,
 * when an interrupt wrote more than a whole pool before the record that it interrupted got its place in the ring; or because all
 * are younger than the window for samples of clients. The reader cannot continue without a batch, nor the merge without the
 * reader. Its batches are released then, and older items that come later, of the CPU or of clients, count as late.
 */
void dispatcher_unblock(Dispatcher *d) {
        nsec_t window = atomic_load_explicit(&d->window, memory_order_relaxed), least = UINT64_MAX, oldest;
        bool is_blocked = false;

        for (uint32_t slot = 0; slot < d->n_pipes && merge_oldest(&d->merge, &oldest); slot++) {
                BatchPipe *l = &d->pipes[slot];

                if (!d->live[slot] || d->watermarks[slot] >= oldest + window ||
                    /* before the queue is read, which then has its last batch */
                    !atomic_load_explicit(l->needs_batch, memory_order_acquire) ||
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
        for (uint32_t slot = 0; slot < d->n_pipes && is_blocked; slot++)
                if (d->watermarks[slot] < least)
                        least = d->watermarks[slot];
        if (is_blocked && least != UINT64_MAX && least > d->unwindowed)
                d->unwindowed = least;
}
