/*
 * A run for any number of subscriptions, in up to RUN_ITEMS encodings: one entry for each encoding that some subscription wants.
 * Most conditions are decided by one range comparison, in a loop that accesses nothing else.
 */
#include "daemon/reader/run.h"

/* Which subscriptions with conditions want this sample in this encoding. */
static __attribute__((noinline)) uint64_t run_ask(const RunItem *i, const uint8_t *at, const Record *record) {
        uint64_t mask = 0;

        for (const RunPredicate *q = i->predicates, *end = i->predicates_end; q < end; q++)
                if (match_range_holds(&q->first, at + q->first.at) && match_ask(q->program, record))
                        mask |= q->bit;
        return mask;
}

uint64_t run_take_many(Reader *r, Ring *ring, const Run *s) {
        const RunItem *items_end = s->items + s->n_items;
        const RunSignature l = s->like;
        Batch *b = r->batch;
        BatchEntry *begin = b->entries + b->n_entries, *e = begin, *last_entry = b->entries + BATCH_ENTRIES - s->n_items;
        const uintptr_t base = (uintptr_t)b->arena - BATCH_PLACE(s->group, 0); /* address from which an entry's place is counted */
        uint8_t *to = b->arena + b->used, *const last = b->arena + BATCH_ARENA - s->need;
        nsec_t before = b->n_entries > 0 ? e[-1].time : 0;
        const uint8_t *at = s->first;
        Record *record = &r->in_place;
        uint64_t delivered = 0;
        bool sorted = true;

        for (; e <= last_entry && to <= last && run_has(&l, at); at += l.length) {
                const BatchEntry *first = e;
                uint32_t more = 0; /* BATCH_MORE: the sample has an item already */
                bool has_all;

                record_set_base(record, at, l.raw_size);
                if (record->pid == s->excluded)
                        break;
                has_all = item_has_all(record);
                for (const RunItem *i = s->items; i < items_end; i++) {
                        uint64_t mask = i->always | (i->asks ? run_ask(i, at, record) : 0);
                        uint8_t *item = to;

                        if (!mask)
                                continue;
                        to = has_all && i->encoding >= ITEM_TEMPLATE
                                     ? item_put_template(&i->template, i->plan, record, i->encoding, to)
                                     : item_put_fixed(i->plan, record, to);
                        *e = i->entry;
                        e->time = record->time;
                        e->mask = mask;
                        e->place = (uint32_t)((uintptr_t)item - base) + more;
                        more = BATCH_MORE;
                        e->length = (uint32_t)(to - item);
                        e->tid = record->tid;
                        e++;
                        if (i->is_counted)
                                batch_count(b, mask, 1);
                }
                if (e == first)
                        continue;
                sorted = sorted && record->time >= before;
                before = record->time;
                delivered++;
        }
        batch_extend(b, (size_t)(e - begin), s->group, 0, (size_t)(to - b->arena), sorted); /* matches are counted below */
        for (const RunItem *i = s->items; i < items_end && s->group == 0; i++)
                if (!i->asks)
                        batch_count(b, i->always, delivered); /* then no other subscription has it */
        return run_end(s, ring, at, delivered);
}
