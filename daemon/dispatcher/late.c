/*
 * Counts items that are too late for streams ordered by time. Each such stream counts its items. Each event counts the samples
 * that no stream got, once for each sample, however many items a sample has. The items of a sample are adjacent, but may be in
 * several batches.
 */
#include "daemon/dispatcher/cycle.h"

#include <errno.h>
#include <stdlib.h>

/* True if a stream ordered by CPU gets the item. Following entries that share the item's bytes are entries of the same item. */
static bool entry_goes_by_cpu(Dispatcher *d, const Batch *b, const BatchEntry *e) {
        const BatchEntry *end = b->entries + b->n_entries;

        do {
                if (e->mask & dispatcher_live_bits(d, STREAM_BY_CPU, entry_group(e), b->generation))
                        return true;
                e++;
        } while (b->n_shared > 0 && e < end && entry_shares(e));
        return false;
}

static int compare_late(const void *a, const void *b) {
        const LateRow *x = a, *y = b;

        return x->event != y->event ? (x->event > y->event) - (x->event < y->event) : (x->slot > y->slot) - (x->slot < y->slot);
}

LateRow *late_rows_find(LateRow *rows, size_t n, uint32_t event, uint32_t slot) {
        return n > 0 ? bsearch(&(LateRow){ .event = event, .slot = slot }, rows, n, sizeof(*rows), compare_late) : NULL;
}

/* Adds the row of an event and CPU. The rows stay sorted. */
static int dispatcher_add_late(Dispatcher *d, LateRow row) {
        LateRow *more = reallocarray(d->late, d->n_late + 1, sizeof(*more));
        size_t at = d->n_late;

        if (!more)
                return error_origin(-ENOMEM);
        d->late = more;
        for (; at > 0 && compare_late(&more[at - 1], &row) > 0; at--)
                more[at] = more[at - 1];
        more[at] = row;
        d->n_late++;
        return 0;
}

static void late_row_add(LateRow *row, uint64_t cut) {
        if (cut > row->cut) {
                row->before_cut = row->count;
                row->cut = cut;
        }
        row->count++;
        row->is_open = true;
}

/* The first item of a sample. The sample counts as lost unless a later item of it goes to some stream. */
static int dispatcher_begin_late(Dispatcher *d, const Batch *b, const BatchEntry *e) {
        LateRow *row = late_rows_find(d->late, d->n_late, e->event, b->slot), new = { .event = e->event, .slot = b->slot };

        if (entry_goes_by_cpu(d, b, e)) {
                if (row)
                        row->is_open = false;
                return 0;
        }
        counter_add(&d->n_late_samples, 1);
        loss_bell_note(d->losses);
        if (row) {
                late_row_add(row, b->cut);
                return 0;
        }
        late_row_add(&new, b->cut);
        return dispatcher_add_late(d, new);
}

static void dispatcher_continue_late(Dispatcher *d, const Batch *b, const BatchEntry *e) {
        LateRow *row = late_rows_find(d->late, d->n_late, e->event, b->slot);

        if (!row || !row->is_open || !entry_goes_by_cpu(d, b, e))
                return;
        row->count--;
        row->is_open = false;
}

int dispatcher_count_late(Dispatcher *d, const Batch *b, const BatchEntry *e) {
        uint32_t group = entry_group(e);

        FOR_EACH_BIT(bit, e->mask & dispatcher_live_bits(d, STREAM_BY_TIME, group, b->generation))
                for (Subscriber *s = d->groups[STREAM_BY_TIME][group].by_bit[bit]->subscribers; s; s = s->next)
                        s->late += subscriber_gets(s, b->cut);
        if (e->event == 0 || (b->n_shared > 0 && e > b->entries && entry_shares(e)))
                return 0; /* side records are not counted; a shared item was counted with its first entry */
        if (!entry_continues(e))
                return dispatcher_begin_late(d, b, e);
        dispatcher_continue_late(d, b, e);
        return 0;
}

int dispatcher_report_late(const Dispatcher *d, uint64_t cut, DispatcherReport *report) {
        report->late = calloc(d->n_late + 1, sizeof(*report->late));
        if (!report->late)
                return error_origin(-ENOMEM);
        report->n_late = d->n_late;
        for (size_t i = 0; i < d->n_late; i++) {
                report->late[i] = d->late[i];
                if (d->late[i].cut >= cut)
                        report->late[i].count = d->late[i].before_cut;
        }
        return 0;
}
