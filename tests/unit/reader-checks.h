/* For the tests of the reader: batches, items and counts against what is expected of them. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proto/perfd.pb-c.h"
#include "tests/unit/reader-rig.h"

#define WHO(pid, tid, time) ((RigWho){ pid, tid, time })

typedef struct Want {
        nsec_t time;
        uint64_t mask;
        uint32_t event;
        uint32_t pid, tid;
        uint64_t number;  /* the first of the item's numbers, if any */
} Want;

static inline void check_item(const Batch *b, const BatchEntry *e, const Want *w) {
        Perfd__V1__Packet *p = perfd__v1__packet__unpack(NULL, e->length, b->arena + entry_offset(e));
        const Perfd__V1__Item *item;

        assert_int_equal(e->time, w->time);
        assert_int_equal(e->mask, w->mask);
        assert_int_equal(e->event, w->event);
        assert_non_null(p);
        assert_int_equal(p->n_items, 1);
        item = p->items[0];
        assert_int_equal(item->time, w->time);
        assert_int_equal(item->event, w->event);
        assert_int_equal(item->pid, w->pid);
        assert_int_equal(item->tid, w->tid);
        assert_int_equal(e->tid, w->tid);
        if (item->n_numbers > 0)
                assert_int_equal(item->numbers[0], w->number);
        perfd__v1__packet__free_unpacked(p, NULL);
}

/* The index of a batch is exactly that of its entries. */
static inline void check_batch(const Batch *b) {
        uint32_t matched[BATCH_BITS] = { 0 };
        size_t used = 0, n_grouped = 0, n_shared = 0;
        uint64_t mask = 0;

        assert_true(b->n_entries <= BATCH_ENTRIES && b->used <= BATCH_ARENA);
        for (size_t i = 0; i < b->n_entries; i++) {
                const BatchEntry *e = &b->entries[i];
                bool is_shared = i > 0 && entry_shares(e);

                if (entry_group(e) == 0) {
                        mask |= e->mask;
                        FOR_EACH_BIT(bit, e->mask)
                                matched[bit]++;
                }
                n_grouped += entry_group(e) > 0;
                n_shared += is_shared;
                used += is_shared ? 0 : e->length;
                if (i > 0 && b->entries[i].time < b->entries[i - 1].time)
                        fail_msg("entry %zu is older than the one before", i);
        }
        assert_int_equal(b->used, used);
        assert_int_equal(b->n_grouped, n_grouped);
        assert_int_equal(b->n_shared, n_shared);
        assert_int_equal(b->mask, mask);
        for (int bit = 0; bit < BATCH_BITS; bit++)
                if (mask >> bit & 1)
                        assert_int_equal(b->matched[bit], matched[bit]);
}

/* Pops one batch, which must hold exactly these, and gives it back. */
static inline void take_batch(Rig *rig, const Want *wants, size_t n) {
        Batch *b = queue_pop(&rig->reader.full);

        assert_non_null(b);
        check_batch(b);
        assert_int_equal(b->n_entries, n);
        for (size_t i = 0; i < n; i++)
                check_item(b, &b->entries[i], &wants[i]);
        assert_true(queue_push(&rig->reader.free, b));
}

#define TAKE(rig, ...)                                                                                                 \
        do {                                                                                                           \
                const Want wants_[] = { __VA_ARGS__ };                                                                 \
                take_batch((rig), wants_, ARRAY_SIZE(wants_));                                                         \
        } while (0)

typedef struct Counts {
        uint64_t delivered, filtered, duplicates, batch_pool, undecodable;
} Counts;

static inline void check_counts(const Rig *rig, size_t event, Counts c) {
        const EventCounters *e = rig_counters(rig, event);

        assert_int_equal(counter_get(&e->delivered), c.delivered);
        assert_int_equal(counter_get(&e->filtered), c.filtered);
        assert_int_equal(counter_get(&e->duplicates), c.duplicates);
        for (int i = 0; i < _LOSS_EVENT_MAX; i++)
                assert_int_equal(counter_get(&e->lost[i]), i == LOSS_BATCH_POOL    ? c.batch_pool
                                                           : i == LOSS_UNDECODABLE ? c.undecodable
                                                                                   : 0);
}

typedef struct RingCounts {
        uint64_t records, samples, side_records, unknown_id, undecodable, resyncs;
} RingCounts;

static inline void check_ring_counts(const Rig *rig, RingCounts c) {
        const RingCounters *r = &rig->reader.counters;

        assert_int_equal(counter_get(&r->records), c.records);
        assert_int_equal(counter_get(&r->samples), c.samples);
        assert_int_equal(counter_get(&r->side_records), c.side_records);
        assert_int_equal(counter_get(&r->unknown_id), c.unknown_id);
        assert_int_equal(counter_get(&r->undecodable), c.undecodable);
        assert_int_equal(counter_get(&r->resyncs), c.resyncs);
        rig_check_sums(rig);
}
