/*
 * What ends a run, or must not: full batches, times that go back, threads and times without a number, names that are not
 * in the record, and records that only their type tells from samples.
 */
#include "tests/unit/reader-run-shapes.h"

#define ITEM_MAX 256

/* Times of one CPU that go back: the batch says so, and is put in order. is_mixed: two streams in turns. */
static void check_times_that_go_back(const Shape *shape, bool is_mixed, const nsec_t *times, size_t n) {
        size_t n_entries = is_mixed || shape->payload < ALL ? n : 3 * n;
        uint32_t raw[3] = { 0, 0, 7 };
        Rig rig;
        Batch *b;

        rig_init(&rig, 64 * 1024, 2);
        set_snapshot(&rig, shape);
        for (size_t i = 0; i < n; i++)
                assert_true(rig_put_sample(&rig, stream_id(is_mixed ? i % 2 : RUN), WHO(1, 1, times[i]), raw, sizeof(raw)));
        assert_int_equal(reader_drain(&rig.reader), 0);
        assert_false(rig.reader.batch->sorted);
        assert_int_equal(reader_push_batch(&rig.reader), 0);
        b = queue_pop(&rig.reader.full);
        check_batch(b);
        assert_int_equal(b->n_entries, n_entries);
        for (size_t i = 0; i < n_entries; i++)
                assert_int_equal(b->entries[i].time, 10 + i * n / n_entries);
        queue_push(&rig.reader.free, b);
        rig_deinit(&rig);
}

static void test_times_that_go_back(void **state) {
        static const nsec_t early[] = { 10, 11, 14, 12, 13, 15 }, late[] = { 10, 11, 12, 13, 14, 17, 15, 16 };
        static const Shape shapes[] = { { .format = "irq.softirq_entry" }, { .format = "irq.softirq_entry", .payload = PAYLOAD_RAW },
                                        { .format = "irq.softirq_entry", .where = "vec == 7" },
                                        { .format = "irq.softirq_entry", .layout = 1 },
                                        { .format = "irq.softirq_entry", .payload = ALL },
                                        { .format = "irq.softirq_entry", .payload = ALL, .layout = 1 } };

        for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
                check_times_that_go_back(&shapes[i], false, early, ARRAY_SIZE(early));
                check_times_that_go_back(&shapes[i], false, late, ARRAY_SIZE(late));
        }
        check_times_that_go_back(&shapes[0], true, early, ARRAY_SIZE(early));
}

/* Items so short that a batch is full of entries while there is room for bytes. */
static void check_full_of_entries(const Shape *shape, bool is_mixed) {
        size_t each = shape->payload < ALL ? 1 : 3, n = 2 * BATCH_ENTRIES / each + 1;
        uint32_t raw[3] = { 0, 0, 7 };
        Rig rig;

        rig_init(&rig, 256 * 1024, 3);
        set_snapshot(&rig, shape);
        for (size_t i = 0; i < n; i++)
                assert_true(rig_put_sample(&rig, stream_id(is_mixed ? i % 2 : RUN), WHO(1, 1, 1 + i), raw, sizeof(raw)));
        assert_int_equal(reader_drain(&rig.reader), 0);
        assert_int_equal(reader_push_batch(&rig.reader), 0);
        for (size_t i = 0; i < 3; i++) {
                Batch *b = queue_pop(&rig.reader.full);

                assert_non_null(b);
                check_batch(b);
                assert_int_equal(b->n_entries, i < 2 ? BATCH_ENTRIES : each);
                assert_int_equal(b->entries[0].time, 1 + i * BATCH_ENTRIES / each);
                queue_push(&rig.reader.free, b);
        }
        rig_deinit(&rig);
}

static void test_full_of_entries(void **state) {
        static const Shape shapes[] = { { .format = "irq.softirq_entry" }, { .format = "irq.softirq_entry", .where = "vec == 7" },
                                        { .format = "irq.softirq_entry", .payload = THRICE } };

        for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
                check_full_of_entries(&shapes[i], false);
        check_full_of_entries(&shapes[0], true);
}

/* Who and when is 0 or no number at all, in every order behind one another: each item is what it would be alone. */
static void test_odd_ones(void **state) {
        static const uint32_t numbers[] = { 0, 1, UINT32_MAX };
        const Shape shape = { .format = "irq.softirq_entry" };
        uint32_t raw[3] = { 0, 0, 7 };

        for (unsigned i = 0; i < 18 * 18; i++) {
                RigWho who[4] = { WHO(1, 1, 5), WHO(1, 1, 5) };
                size_t n = 0, length, n_seen = 0;
                uint8_t item[ITEM_MAX];
                Batch *b;
                Rig rig;

                for (unsigned k = 0, which = i; k < 2; k++, which /= 18)
                        who[2 + k] = WHO(numbers[which % 3], numbers[which / 3 % 3], which / 9 % 2 ? 5 : 0);
                rig_init(&rig, 64 * 1024, 2);
                set_snapshot(&rig, &shape);
                assert_int_equal(reader_take_batch(&rig.reader), 0);
                for (; n < ARRAY_SIZE(who); n++)
                        assert_true(rig_put_sample(&rig, stream_id(RUN), who[n], raw, sizeof(raw)));
                assert_int_equal(reader_drain(&rig.reader), 0);
                assert_int_equal(reader_push_batch(&rig.reader), 0);
                b = queue_pop(&rig.reader.full);
                assert_int_equal(b->n_entries, n);
                for (nsec_t time = 0; time <= 5; time += 5) /* as they are sorted */
                        for (size_t k = 0; k < n; k++) {
                                Record record = { .type = PERF_RECORD_SAMPLE, .time = who[k].time, .pid = who[k].pid,
                                                  .tid = who[k].tid, .comm = "", .raw = (uint8_t *)raw, .raw_size = sizeof(raw) };
                                const BatchEntry *e = &b->entries[n_seen];

                                if (who[k].time != time)
                                        continue;
                                assert_int_equal(item_encode(rig.reader.snapshot->events[RUN].table->encodings[0], &record, item,
                                                             sizeof(item), &length), 0);
                                assert_int_equal(e->length, length);
                                assert_memory_equal(b->arena + entry_offset(e), item, length);
                                assert_int_equal(e->tid, who[k].tid);
                                n_seen++;
                        }
                queue_push(&rig.reader.free, b);
                rig_deinit(&rig);
        }
}

/* A condition that needs the name of a thread, which is not in the record. */
static void test_names(void **state) {
        const Shape shape = { .format = "irq.softirq_entry", .where = "sample.comm == \"one\" && vec == 7" };
        uint32_t raw[3] = { 0, 0, 7 };
        Rig rig;

        rig_init(&rig, 64 * 1024, 2);
        set_snapshot(&rig, &shape);
        assert_true(rig_put_comm(&rig, WHO(1, 1, 1), "one") && rig_put_comm(&rig, WHO(2, 2, 2), "two"));
        for (uint32_t i = 0; i < 12; i++)
                assert_true(rig_put_sample(&rig, stream_id(RUN), WHO(1 + i / 6, 1 + i / 6, 3 + i), raw, sizeof(raw)));
        assert_int_equal(reader_drain(&rig.reader), 0);
        assert_int_equal(counter_get(&rig_counters(&rig, RUN)->delivered), 6);
        assert_int_equal(counter_get(&rig_counters(&rig, RUN)->filtered), 6);
        rig_deinit(&rig);
}

/* A record of the stream that is no sample, and as long as one, with the same words where a run looks. */
static void check_other_type(const char *where, bool is_unwanted, size_t at) {
        const Shape shape = { .format = "irq.softirq_entry", .where = where, .is_unwanted = is_unwanted };
        uint32_t raw[3] = { 0, 0, 7 };
        Rig rig;

        rig_init(&rig, 64 * 1024, 2);
        set_snapshot(&rig, &shape);
        for (size_t i = 0; i < 10; i++)
                if (i == at)
                        assert_true(rig_put_lost(&rig, stream_id(RUN), WHO(1, 1, sizeof(raw)), 5));
                else
                        assert_true(rig_put_sample(&rig, stream_id(RUN), WHO(1, 1, sizeof(raw)), raw, sizeof(raw)));
        assert_int_equal(reader_drain(&rig.reader), 0);
        assert_int_equal(counter_get(&rig_counters(&rig, RUN)->delivered), is_unwanted ? 0 : 9);
        assert_int_equal(counter_get(&rig_counters(&rig, RUN)->filtered), is_unwanted ? 9 : 0);
        assert_int_equal(counter_get(&rig.reader.counters.samples), 9);
        assert_int_equal(counter_get(&rig.reader.counters.side_records), 1);
        rig_deinit(&rig);
}

static void test_other_type(void **state) {
        for (size_t at = 0; at < 10; at++) { /* also where a run would begin */
                check_other_type(NULL, false, at);
                check_other_type("vec == 7", false, at);
                check_other_type(NULL, true, at);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_times_that_go_back),
                cmocka_unit_test(test_full_of_entries),
                cmocka_unit_test(test_odd_ones),
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_other_type),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
