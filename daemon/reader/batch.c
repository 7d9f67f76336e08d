/*
 * The batches of a reader: where they come from, and with what watermark they leave.
 *
 * The decision to doubt is the last free one. Nobody knows when the next will come, and until then the merge is held by
 * what this CPU said last; so it leaves with all that can be said of what still lies in the ring (reader/backlog.c).
 *
 * In the middle of a drain a batch ends anywhere, also between what an interrupt has written and what it interrupted, which
 * is older and comes behind it. Batches are sorted, but nobody sorts them with each other where each CPU has an order of its
 * own; so what is younger than one of the next records goes along into the next batch. Where a drain ends nothing has to:
 * nothing is in the middle of an occurrence while its CPU runs this.
 *
 * A mail is followed at the end of a drain. Where more happens than can be dispatched, a reader never gets there by the batches
 * that come back: while it sleeps for them, as much is written as they have room for. So for a mail there are some more, for
 * all that is in the ring, and they are freed when they come back. Where these are used up too, because mails come faster than
 * they come back, it stops giving room back to the kernel (reader/drain.c).
 */
#include "daemon/reader/cycle.h"

#define AHEAD 16 /* records that are looked at behind the end of a full batch */
#define ALONG_MAX 512 /* entries that may go along */

/*
 * The tick at which it would have come. Who looks between ticks, because it found nothing before, is not later than the one
 * behind that.
 */
static nsec_t reader_due(const Reader *r) {
        nsec_t over = r->wait > r->tick ? r->next_look % r->tick : 0;

        return r->is_asked ? 0 : over > 0 ? r->next_look - over + r->tick : r->next_look;
}

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
        assert(pushed); /* as many slots as batches */
        counter_add(&r->counters.batches, 1);
        reader_pushed(r);
}

/* What a batch says that nobody knows a next one behind: nothing that is or comes into the ring is older. */
static nsec_t reader_last_watermark(Reader *r) {
        nsec_t now, least;

        reader_wait_guard(r); /* or the youngest in the batches would wait for a watermark that none is left to carry */
        now = reader_visible(r); /* before the head, as in reader_drain() */
        least = reader_backlog_watermark(r, ring_head(&r->ring));
        return least < now ? least : now;
}

static bool reader_has_mail(const Reader *r) {
        return r->mail || !queue_is_empty(&r->mailbox.mails);
}

static bool reader_add_spare(Reader *r) {
        Batch *b = r->n_more < READER_MORE_BATCHES && reader_has_mail(r) ? batch_new(r->slot) : NULL;

        if (!b)
                return false;
        r->n_more++;
        r->spare[r->n_spare++] = b;
        return true;
}

static bool reader_has_spare(Reader *r) {
        for (Batch *b; (b = queue_pop(&r->free)); )
                if (r->n_more > 0 && !reader_has_mail(r)) {
                        r->n_more--;
                        batch_free(b);
                } else
                        r->spare[r->n_spare++] = b;
        return r->n_spare > 0 || reader_add_spare(r);
}

/* How many of the batch's youngest go along into the next one. */
static size_t reader_count_along(const Reader *r) {
        nsec_t least = reader_least_ahead(r, AHEAD);
        Batch *b = r->batch;
        size_t n = 0;

        batch_seal(b);
        while (n < b->n_entries && b->entries[b->n_entries - 1 - n].time > least)
                n++;
        return n < b->n_entries && n <= ALONG_MAX ? n : 0; /* else it would not end */
}

void reader_push_full_batch(Reader *r) {
        Batch *b = r->batch;
        size_t n;

        if (!reader_has_spare(r)) {
                reader_push(r, TAKE_PTR(r->batch), reader_last_watermark(r));
                return;
        }
        n = reader_count_along(r);
        r->batch = NULL;
        if (n > 0 && reader_take_batch(r) == 0)
                batch_move_last(b, n, r->batch);
        reader_push(r, b, 0);
}

int reader_take_batch(Reader *r) {
        if (!reader_has_spare(r)) {
                atomic_store_explicit(&r->needs_batch, true, memory_order_release); /* the last batch was pushed */
                atomic_thread_fence(memory_order_seq_cst); /* the other side: dispatcher_give_back() */
                if (!reader_has_spare(r)) { /* one may have come back before needs_batch was set */
                        counter_add(&r->counters.pool_waits, 1);
                        r->holds = r->holds || reader_has_mail(r);
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
