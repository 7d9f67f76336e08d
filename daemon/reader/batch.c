/*
 * The batches of a reader: where they come from, and with which watermark they are pushed.
 *
 * Design: nobody knows when the dispatcher returns the next batch, and until then the merge waits for this CPU at its last
 * watermark. So the last free batch is pushed with the best watermark that the records still in the ring allow
 * (reader/backlog.c).
 *
 * In the middle of a drain a batch can end between what an interrupt wrote and the older record that it interrupted. Each batch
 * is sorted, but for streams ordered by CPU batches are not merged; so entries that are younger than one of the next records are
 * carried over to the next batch. At the end of a drain none has to be: while this thread runs on the ring's CPU, nothing there
 * is in the middle of an occurrence.
 *
 * A command is executed at the end of a drain. If more happens than can be dispatched, the reader does not get there with the
 * batches that come back: while it sleeps for them, as much is written as they have room for. So for a command there are extra
 * batches, enough for all that is in the ring, which are freed when they come back. If these are used up too, because commands
 * arrive faster than batches come back, it stops giving space back to the kernel (reader/drain.c).
 */
#include "daemon/reader/cycle.h"

#define AHEAD 16 /* records that are examined behind the end of a full batch */
#define CARRY_OVER_MAX 512 /* entries that are carried over at most */

static void reader_push(Reader *r, Batch *b, nsec_t watermark) {
        bool pushed;

        b->watermark = watermark;
        b->cut = r->cut;
        b->due = reader_due(r);
        batch_seal(b);
        reader_keep_behind_clock(r, b);
        if (watermark > r->given)
                r->given = watermark;
        pushed = queue_push(&r->full, b);
        assert(pushed); /* the queue has a slot for each batch */
        counter_add(&r->counters.batches, 1);
        reader_pushed(r);
}

/* The watermark of a batch that may be the last for an unknown time: nothing in the ring, or still to come, is older. */
static nsec_t reader_last_watermark(Reader *r) {
        nsec_t now, least;

        /* otherwise the youngest entries in the batches would wait for a later watermark, and there is no batch to carry it */
        reader_wait_guard(r);
        now = reader_visible(r); /* before the head is read, as in reader_drain() */
        least = reader_backlog_watermark(r, ring_head(&r->ring));
        return least < now ? least : now;
}

static bool reader_has_command(const Reader *r) {
        return r->command || !queue_is_empty(&r->mailbox.messages);
}

static bool reader_add_spare(Reader *r) {
        Batch *b = r->n_more < READER_MORE_BATCHES && reader_has_command(r) ? batch_new(r->slot) : NULL;

        if (!b)
                return false;
        r->n_more++;
        r->spare[r->n_spare++] = b;
        return true;
}

static bool reader_has_spare(Reader *r) {
        for (Batch *b; (b = queue_pop(&r->free)); )
                if (r->n_more > 0 && !reader_has_command(r)) {
                        r->n_more--;
                        batch_free(b);
                } else
                        r->spare[r->n_spare++] = b;
        return r->n_spare > 0 || reader_add_spare(r);
}

/* How many of the batch's youngest entries are carried over to the next batch. */
static size_t reader_count_carried_over(const Reader *r) {
        nsec_t least = reader_least_ahead(r, AHEAD);
        Batch *b = r->batch;
        size_t n = 0;

        batch_seal(b);
        while (n < b->n_entries && b->entries[b->n_entries - 1 - n].time > least)
                n++;
        return n < b->n_entries && n <= CARRY_OVER_MAX ? n : 0; /* carrying over all of them would never end */
}

void reader_push_full_batch(Reader *r) {
        Batch *b = r->batch;
        size_t n;

        if (!reader_has_spare(r)) {
                reader_push(r, TAKE_PTR(r->batch), reader_last_watermark(r));
                return;
        }
        n = reader_count_carried_over(r);
        r->batch = NULL;
        if (n > 0 && reader_take_batch(r) == 0)
                batch_move_last(b, n, r->batch);
        reader_push(r, b, 0);
}

int reader_take_batch(Reader *r) {
        if (!reader_has_spare(r)) {
                /* after the last batch was pushed: dispatcher_unblock() relies on it */
                atomic_store_explicit(&r->needs_batch, true, memory_order_release);
                atomic_thread_fence(memory_order_seq_cst); /* pairs with the fence in dispatcher_give_back() */
                if (!reader_has_spare(r)) { /* a batch may have come back before needs_batch was set */
                        counter_add(&r->counters.pool_waits, 1);
                        r->holds = r->holds || reader_has_command(r);
                        return READER_E_STARVED;
                }
                atomic_store_explicit(&r->needs_batch, false, memory_order_relaxed);
        }
        r->batch = r->spare[--r->n_spare];
        batch_reset(r->batch, r->snapshot->generation);
        return 0;
}

int reader_push_batch(Reader *r) {
        int n = reader_need_batch(r);

        if (n != 0)
                return n;
        reader_push(r, TAKE_PTR(r->batch), reader_has_spare(r) ? r->watermark : reader_last_watermark(r));
        return 0;
}
