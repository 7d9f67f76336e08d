/*
 * A reader without its thread, record by record: what arrives where, in which batch, and how it is counted; rings that
 * cannot be followed; batches that are full.
 */

#include "tests/unit/reader-checks.h"

/* --- each way a record can go --- */

static void test_samples(void **state) {
        Rig rig;

        rig_init(&rig, 16 * 1024, 2);
        rig_put_number(&rig, 1, WHO(7, 71, 100), 4, 0);
        rig_put_number(&rig, 1, WHO(7, 71, 110), 5, 0);
        rig_put_number(&rig, 1, WHO(7, 0, 120), 1001, 8);
        rig_put_number(&rig, 2, WHO(7, 71, 130), 1001, 0);             /* on standby */
        rig_put_software(&rig, WHO(RIG_OWN_PID, 4243, 140), 0x1000);    /* ours */
        rig_put_software(&rig, WHO(8, 71, 150), 0x1000);
        rig_put_number(&rig, 4, WHO(7, 71, 160), 1, 0);                /* unwanted */
        rig_put_number(&rig, 77, WHO(7, 71, 170), 1, 0);               /* unknown */
        rig_put_number(&rig, RIG_CARRIER, WHO(7, 71, 180), 1, 0);      /* a sample of the carrier */
        rig_put_sample(&rig, 1, WHO(7, 71, 190), "0123456789a", 12);    /* shorter than its plan */
        rig_put_long(&rig, WHO(9, 71, 200), 16);
        rig_put_sample(&rig, 5, WHO(9, 71, 210), "01234567\x10\0\x10\0abc", 12); /* its list lies outside */

        assert_int_equal(reader_drain(&rig.reader), 0);
        assert_int_equal(rig.page->data_tail, rig.page->data_head);
        assert_int_equal(reader_push_batch(&rig.reader), 0);
        TAKE(&rig, { 100, 1, 11, 7, 71, 4 }, { 110, 1, 11, 7, 71, 5 }, { 110, 2, 11, 7, 71, 0 },
             { 120, 5, 11, 7, 0, 1001 }, { 120, 2, 11, 7, 0, 0 }, { 150, 8, 12, 8, 71, 0 },
             { 200, 16, 14, 9, 71, 0 }, { 200, 32, 14, 9, 71, 16 });
        check_counts(&rig, RIG_NUMBERS, (Counts){ .delivered = 3, .duplicates = 1, .undecodable = 1 });
        check_counts(&rig, RIG_SOFTWARE, (Counts){ .delivered = 1, .filtered = 1 });
        check_counts(&rig, RIG_UNWANTED, (Counts){ .filtered = 1 });
        check_counts(&rig, RIG_LONG, (Counts){ .delivered = 1, .undecodable = 1 });
        check_ring_counts(&rig, (RingCounts){ .records = 12, .samples = 10, .unknown_id = 1, .undecodable = 1 });
        rig_deinit(&rig);
}

/* Software events of one kind at one moment: all are written with the id of one of them. */
static void test_shared_ids(void **state) {
        Rig rig;

        rig_init(&rig, 16 * 1024, 2);
        rig_put_faults(&rig, 6, 6, WHO(7, 71, 100), 0);
        rig_put_faults(&rig, 6, 7, WHO(7, 71, 110), 1000);
        rig_put_faults(&rig, 7, 6, WHO(7, 71, 120), 0);
        rig_put_faults(&rig, 7, 7, WHO(7, 71, 130), 1000);
        rig_put_faults(&rig, 6, 3, WHO(7, 71, 140), 0);  /* of one that has no id of its own */
        rig_put_faults(&rig, 6, 99, WHO(7, 71, 150), 0); /* of one that is gone */
        rig_put_faults(&rig, 99, 6, WHO(7, 71, 160), 0); /* another tool's event was the first */
        rig_put_faults(&rig, 99, 7, WHO(7, 71, 170), 1000);
        rig_put_faults(&rig, 99, 6, WHO(7, 71, 180), 1000); /* 6 has no period: it is not its layout */
        rig_put_faults(&rig, 99, 98, WHO(7, 71, 190), 6);   /* nor is a period an id */

        assert_int_equal(reader_drain(&rig.reader), 0);
        assert_int_equal(reader_push_batch(&rig.reader), 0);
        TAKE(&rig, { 100, 1 << 7, 15, 7, 71, 0 }, { 110, 1 << 11, 16, 7, 71, 0 }, { 120, 1 << 7, 15, 7, 71, 0 },
             { 130, 1 << 11, 16, 7, 71, 0 }, { 160, 1 << 7, 15, 7, 71, 0 }, { 170, 1 << 11, 16, 7, 71, 0 });
        check_counts(&rig, RIG_FAULTS, (Counts){ .delivered = 3 });
        check_counts(&rig, RIG_OFTEN, (Counts){ .delivered = 3 });
        check_ring_counts(&rig, (RingCounts){ .records = 10, .samples = 6, .unknown_id = 4 });
        rig_deinit(&rig);
}

/*
 * Another tool's software event of the same occurrence sets the time by its own clock: its sample has that of the one before it,
 * and is neither ahead of the clock nor behind what was said to be all.
 */
static void test_foreign_times(void **state) {
        const nsec_t wall = clock_now(CLOCK_REALTIME) + NSEC_PER_SEC * 1000000;
        const nsec_t at = clock_now(CLOCK_MONOTONIC);
        nsec_t given;
        Batch *b;
        Rig rig;

        rig_init(&rig, 16 * 1024, 2);
        rig_put_number(&rig, 1, WHO(7, 71, at), 2, 0);
        rig_put_faults(&rig, 6, 6, WHO(7, 71, wall), 0);
        rig_put_faults(&rig, 6, 6, WHO(7, 71, at + 1), 0);
        rig_put_faults(&rig, 99, 7, WHO(7, 71, wall), 1000); /* with its id too */
        rig_put_number(&rig, 1, WHO(7, 71, at + 2), 2, 0);
        rig_put_comm(&rig, WHO(7, 71, wall), "side");
        assert_int_equal(reader_drain(&rig.reader), 0);
        assert_int_equal(reader_push_batch(&rig.reader), 0);
        given = rig.reader.watermark;
        b = queue_pop(&rig.reader.full);
        assert_int_equal(b->n_entries, 6);
        assert_int_equal(b->watermark, given);
        for (size_t i = 0; i < b->n_entries; i++)
                assert_in_range(b->entries[i].time, at, clock_now(CLOCK_MONOTONIC));
        assert_int_equal(b->entries[1].time, at);
        assert_int_equal(b->entries[3].time, at + 1);
        assert_true(queue_push(&rig.reader.free, b));
        assert_int_equal(counter_get(&rig.reader.counters.foreign_times), 2);

        rig_put_faults(&rig, 6, 6, WHO(7, 71, 5), 0); /* a clock that is behind */
        rig_put_number(&rig, 1, WHO(7, 71, 6), 2, 0); /* a tracepoint's time is its own, however old */
        assert_int_equal(reader_least_ahead(&rig.reader, 2), UINT64_MAX);
        assert_int_equal(reader_drain(&rig.reader), 0);
        assert_int_equal(reader_push_batch(&rig.reader), 0);
        b = queue_pop(&rig.reader.full);
        assert_int_equal(b->n_entries, 2);
        assert_int_equal(b->entries[0].time, 6);
        assert_int_equal(b->entries[1].time, given);
        assert_true(queue_push(&rig.reader.free, b));
        assert_int_equal(counter_get(&rig.reader.counters.foreign_times), 3);
        check_counts(&rig, RIG_FAULTS, (Counts){ .delivered = 3 });
        check_counts(&rig, RIG_OFTEN, (Counts){ .delivered = 1 });
        rig_deinit(&rig);
}

static void test_side_records(void **state) {
        Rig rig;

        rig_init(&rig, 16 * 1024, 2);
        rig_put_comm(&rig, WHO(7, 71, 100), "first");
        rig_put_fork(&rig, WHO(7, 71, 110), 72);
        rig_put_number(&rig, 1, WHO(72, 72, 120), 2, 0);
        rig_put_comm(&rig, WHO(72, 72, 130), "second");
        rig_put_number(&rig, 1, WHO(72, 72, 140), 2, 0);
        rig_put_side(&rig, PERF_RECORD_EXIT, RIG_CARRIER, WHO(72, 72, 150), (uint32_t[6]){ 72, 7, 72, 71 }, 24);
        rig_put_lost(&rig, 1, WHO(0, 0, 160), 3);
        rig_put_lost(&rig, RIG_CARRIER, WHO(0, 0, 170), 3);
        rig_put_side(&rig, PERF_RECORD_THROTTLE, 4, WHO(0, 0, 180), (uint64_t[3]){ 180, 4, 4 }, 24); /* nobody wants it */
        rig_put_side(&rig, PERF_RECORD_LOST, 77, WHO(0, 0, 190), (uint64_t[2]){ 77, 1 }, 16);
        rig_put_side(&rig, PERF_RECORD_FORK, RIG_CARRIER, WHO(0, 0, 200), (uint64_t[1]){ 7 }, 8); /* truncated */
        rig_put_side(&rig, 4711, RIG_CARRIER, WHO(0, 0, 210), (uint64_t[1]){ 7 }, 8);
        rig_put_record(&rig, PERF_RECORD_COMM, 0, "", 0); /* not even an id */

        assert_int_equal(reader_drain(&rig.reader), 0);
        assert_int_equal(reader_push_batch(&rig.reader), 0);
        TAKE(&rig, { 100, 1 << 8, 0, 7, 71 }, { 110, 1 << 8, 0, 7, 71 }, { 120, 1, 11, 72, 72, 2 },
             { 130, 1 << 8, 0, 72, 72 }, { 140, 1, 11, 72, 72, 2 }, { 150, 1 << 9, 0, 72, 72 },
             { 160, 7, 11, 0, 0 }, { 170, 1 << 10, 0, 0, 0 });
        check_ring_counts(&rig, (RingCounts){ .records = 13, .samples = 2, .side_records = 8, .unknown_id = 1, .undecodable = 2 });
        rig_deinit(&rig);
}

/* Numbers in a ring of one page: every offset at which a record can be cut by its end. */
/*
 * Records that the kernel says to be longer than it wrote them, because other tools have them too. What is behind them was a
 * sample: its header in the place of a time that is months ahead, behind which the merge would wait, and its id.
 */
static void test_surplus(void **state) {
        const uint64_t stale[] = { 0, 0x0058000200000009, 1 };
        struct {
                uint64_t addr, length, name;
                RigWho who;
                uint64_t id, stale[6];
        } symbol = { 0xffffffffc0000000, 0x40, 0x676f7270, WHO(7, 71, 100), RIG_CARRIER, { 0 } };
        Rig rig;

        rig_init(&rig, 16 * 1024, 2);
        subscription_set_add(&rig.reader.snapshot->record_wants[RECORD_KIND_KSYMBOL], 8);
        memcpy(symbol.stale, stale, sizeof(stale));
        memcpy(symbol.stale + 3, stale, sizeof(stale));
        rig_put_record(&rig, PERF_RECORD_KSYMBOL, 0, &symbol, sizeof(symbol));
        symbol.who.time = 110;
        rig_put_record(&rig, PERF_RECORD_KSYMBOL, 0, &symbol, sizeof(symbol) - sizeof(stale));
        symbol.who.time = 120;
        symbol.id = 1; /* an event that asked for it */
        rig_put_record(&rig, PERF_RECORD_KSYMBOL, 0, &symbol, sizeof(symbol));
        symbol.id = 99;
        rig_put_record(&rig, PERF_RECORD_KSYMBOL, 0, &symbol, sizeof(symbol));
        assert_int_equal(reader_least_ahead(&rig.reader, 2), 100);

        assert_int_equal(reader_drain(&rig.reader), 0);
        assert_int_equal(reader_push_batch(&rig.reader), 0);
        TAKE(&rig, { 100, 1 << 8, 0, 7, 71, 0 }, { 110, 1 << 8, 0, 7, 71, 0 },
             { 120, 1 << 0 | 1 << 1 | 1 << 2 | 1 << 8, 11, 7, 71, 0 });
        check_ring_counts(&rig, (RingCounts){ .records = 4, .side_records = 3, .unknown_id = 1 });
        rig_deinit(&rig);
}

static void test_wrap(void **state) {
        nsec_t time = 0, taken = 0;
        Rig rig;

        rig_init(&rig, 4096, 2);
        for (unsigned round = 0; round < 2000; round++) {
                while (rig_put_number(&rig, 1, WHO(7, 0, time + 1), 2 * time, 8 * (time % 13)))
                        time++;
                assert_int_equal(reader_drain(&rig.reader), 0);
                assert_int_equal(reader_push_batch(&rig.reader), 0);
                for (Batch *b; (b = queue_pop(&rig.reader.full)); queue_push(&rig.reader.free, b))
                        for (size_t i = 0; i < b->n_entries; i++, taken++)
                                check_item(b, &b->entries[i],
                                           &(Want){ taken + 1, 2 * taken >= 1000 ? 5 : 1, 11, 7, 0, 2 * taken });
                assert_int_equal(taken, time);
        }
        assert_true(time > 50000);
        check_counts(&rig, RIG_NUMBERS, (Counts){ .delivered = time });
        rig_deinit(&rig);
}

/* --- rings that cannot be followed --- */

static void test_corrupt(void **state) {
        static const struct {
                uint16_t size; /* in the header */
                uint64_t more; /* bytes behind it until the head */
        } cases[] = { { 0, 64 }, { 7, 64 }, { 4, 0 }, { 9, 64 }, { 50, 64 }, { 72, 56 }, { 65528, 120 }, { 40, 4 }, { 40, 1 } };
        RingCounts c = { 0 };
        uint64_t time = 10;
        Rig rig;

        rig_init(&rig, 8192, 2);
        for (unsigned round = 0; round < 300; round++) /* around the ring, several times */
                for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                        uint8_t junk[256] = { 0 };
                        struct perf_event_header header = { .type = PERF_RECORD_SAMPLE, .size = cases[i].size };

                        memcpy(junk, &header, sizeof(header));
                        rig_put_number(&rig, 1, WHO(7, 0, time), 2, 0);
                        rig_put(&rig, junk, sizeof(header) + cases[i].more);
                        assert_int_equal(reader_drain(&rig.reader), 0);
                        c.records++;
                        c.samples++;
                        c.resyncs++;
                        check_ring_counts(&rig, c);
                        assert_int_equal(rig.page->data_tail, rig.page->data_head);
                        assert_int_equal(reader_drain(&rig.reader), 0); /* nothing new: no further complaint */
                        check_ring_counts(&rig, c);
                        if (rig.page->data_head % 8 != 0) { /* from such a place nothing can be followed ... */
                                rig_put(&rig, junk, 8 - rig.page->data_head % 8);
                                assert_int_equal(reader_drain(&rig.reader), 0);
                                c.resyncs++;
                        }
                        rig_put_number(&rig, 1, WHO(7, 0, time + 1), 2, 0); /* ... from this one it goes on */
                        assert_int_equal(reader_drain(&rig.reader), 0);
                        c.records++;
                        c.samples++;
                        check_ring_counts(&rig, c);
                        assert_int_equal(reader_push_batch(&rig.reader), 0);
                        TAKE(&rig, { time, 1, 11, 7, 0, 2 }, { time + 1, 1, 11, 7, 0, 2 });
                        time += 2;
                }
        rig_deinit(&rig);
}

/* A head that is farther away than the ring is large, before and behind, near and far. */
static void test_head_jumps(void **state) {
        static const uint64_t jumps[] = { 8192 + 8, 1ULL << 20, 1ULL << 60, UINT64_MAX - 4095, UINT64_MAX - 7, 12345, -64ULL, -(1ULL << 60) };
        RingCounts c = { 0 };
        Rig rig;

        rig_init(&rig, 8192, 2);
        for (size_t i = 0; i < ARRAY_SIZE(jumps); i++) {
                rig.page->data_head += jumps[i];
                assert_int_equal(reader_drain(&rig.reader), 0);
                c.resyncs++;
                check_ring_counts(&rig, c);
                assert_int_equal(rig.page->data_tail, rig.page->data_head);
                if (rig.page->data_head % 8 != 0) {
                        rig.page->data_head += 8 - rig.page->data_head % 8;
                        assert_int_equal(reader_drain(&rig.reader), 0);
                        c.resyncs++;
                }
                for (int k = 0; k < 500; k++) { /* through all batches, so that the backlog is asked for as well */
                        rig_put_number(&rig, 1, WHO(7, 0, 1000 * i + k), 2, 4000);
                        rig_put_number(&rig, 1, WHO(7, 0, 1000 * i + k), 2, 4000);
                        c.records += 2;
                        c.samples += 2;
                        for (Batch *b; reader_drain(&rig.reader) == READER_E_STARVED;)
                                while ((b = queue_pop(&rig.reader.full)))
                                        queue_push(&rig.reader.free, b);
                }
                check_ring_counts(&rig, c);
                assert_int_equal(reader_push_batch(&rig.reader), 0);
                for (Batch *b; (b = queue_pop(&rig.reader.full));)
                        queue_push(&rig.reader.free, b);
        }
        rig_deinit(&rig);
}

/* From a head that is no multiple of 8 not even a header can be read: it might wrap. */
static void test_unaligned(void **state) {
        RingCounts c = { 0 };
        Rig rig;

        rig_init(&rig, 8192, 2);
        memset(rig.data, 16, rig.size);
        for (uint64_t end = 8192; end < 64 * 8192; end += 8192)
                for (unsigned short_of = 1; short_of < 8; short_of++) {
                        rig.reader.ring.tail = end - 1024;
                        rig.page->data_head = end - short_of;
                        assert_int_equal(reader_drain(&rig.reader), 0);
                        c.resyncs++;
                        assert_int_equal(rig.page->data_tail, end - short_of);
                        rig.page->data_head = end + 512; /* to an end that is */
                        assert_int_equal(reader_drain(&rig.reader), 0);
                        c.resyncs++;
                        assert_int_equal(rig.page->data_tail, end + 512);
                        check_ring_counts(&rig, c);
                }
        rig_deinit(&rig);
}

/* --- batches that are full --- */

/* Two items of one record, of which only the first fits: the record goes to the next batch, as if it had never begun. */
static void test_whole_records(void **state) {
        Rig rig;

        rig_init(&rig, 256 * 1024, 3);
        rig_put_number(&rig, 1, WHO(7, 0, 10), 1, 20000);
        rig_put_long(&rig, WHO(7, 0, 20), 5200); /* raw fits beside it, its list of 41600 bytes does not */
        rig_put_number(&rig, 1, WHO(7, 0, 30), 3, 0);
        assert_int_equal(reader_drain(&rig.reader), 0);
        assert_int_equal(reader_push_batch(&rig.reader), 0);
        TAKE(&rig, { 10, 1, 11, 7, 0, 1 }, { 10, 2, 11, 7, 0, 0 });
        TAKE(&rig, { 20, 16, 14, 7, 0, 0 }, { 20, 32, 14, 7, 0, 5200 }, { 30, 1, 11, 7, 0, 3 },
             { 30, 2, 11, 7, 0, 0 });
        assert_null(queue_pop(&rig.reader.full));
        check_counts(&rig, RIG_LONG, (Counts){ .delivered = 1 });
        check_ring_counts(&rig, (RingCounts){ .records = 3, .samples = 3 });
        rig_deinit(&rig);
}

/* The first item of a record that fits no batch does fit: nothing of it stays, not even its bit. */
static void test_too_long(void **state) {
        RigWho who = WHO(7, 0, 10);
        Rig rig;

        rig_init(&rig, 256 * 1024, 2);
        rig_put_long(&rig, who, 40000);
        assert_int_equal(reader_drain(&rig.reader), 0);
        check_counts(&rig, RIG_LONG, (Counts){ .batch_pool = 1 });
        assert_int_equal(reader_push_batch(&rig.reader), 0); /* as an answer to an ask: a watermark and nothing else */
        take_batch(&rig, NULL, 0);

        rig_put_long(&rig, who, 40000);
        rig_put_number(&rig, 1, who, 2, 0);
        rig_put_long(&rig, who, 40000);
        rig_put_side(&rig, PERF_RECORD_MMAP, RIG_CARRIER, who, (uint64_t[5]){ 0 }, 40);
        assert_int_equal(reader_drain(&rig.reader), 0);
        assert_int_equal(reader_push_batch(&rig.reader), 0);
        TAKE(&rig, { 10, 1, 11, 7, 0, 2 });
        TAKE(&rig, { 10, 1 << 9, 0, 7, 0, 0 });
        check_counts(&rig, RIG_LONG, (Counts){ .batch_pool = 3 });
        check_ring_counts(&rig, (RingCounts){ .records = 5, .samples = 4, .side_records = 1 });
        rig_deinit(&rig);
}

static void test_entries_run_out(void **state) {
        size_t n = BATCH_ENTRIES / 2 * 2 + BATCH_ENTRIES + 1;
        Rig rig;

        rig_init(&rig, 512 * 1024, 4);
        for (size_t i = 0; i < n; i++)
                rig_put_record(&rig, PERF_RECORD_LOST, 0,
                               (uint64_t[5]){ RIG_CARRIER, 1, 7, i, RIG_CARRIER }, 40); /* the shortest item */
        assert_int_equal(reader_drain(&rig.reader), 0);
        assert_int_equal(reader_push_batch(&rig.reader), 0);
        for (size_t left = n; left > 0;) {
                Batch *b = queue_pop(&rig.reader.full);

                assert_non_null(b);
                check_batch(b);
                assert_int_equal(b->n_entries, left < BATCH_ENTRIES ? left : BATCH_ENTRIES);
                left -= b->n_entries;
                queue_push(&rig.reader.free, b);
        }
        rig_deinit(&rig);
}

/* --- live changes --- */

/* What the only item of the next batch says that it stands for. */
static uint64_t next_period(Rig *rig) {
        Perfd__V1__Packet *packet;
        uint64_t period;
        Batch *b;

        assert_int_equal(reader_drain(&rig->reader), 0);
        assert_int_equal(reader_push_batch(&rig->reader), 0);
        b = queue_pop(&rig->reader.full);
        assert_non_null(b);
        assert_int_equal(b->n_entries, 1);
        packet = perfd__v1__packet__unpack(NULL, b->entries[0].length, b->arena + entry_offset(&b->entries[0]));
        assert_non_null(packet);
        period = packet->items[0]->period;
        perfd__v1__packet__free_unpacked(packet, NULL);
        queue_push(&rig->reader.free, b);
        return period;
}

/* Two generations with two periods: each is counted by what it is, and a sample says what it stands for. */
static void test_generations_with_other_periods(void **state) {
        SnapshotStream *streams;
        Rig rig;

        rig_init(&rig, 16 * 1024, 2);
        streams = (SnapshotStream *)rig.reader.snapshot->cpus[0].streams;
        streams[0].path = PATH_GENERAL;
        streams[1].is_sampling = true;
        streams[1].period = 10;
        rig_put_number(&rig, 2, WHO(7, 0, 10), 2, 0);
        rig_put_number(&rig, 1, WHO(7, 0, 11), 2, 0);
        assert_int_equal(next_period(&rig), 0);
        streams[0].is_standby = true; /* as a later snapshot would have it */
        streams[1].is_standby = false;
        rig_put_number(&rig, 1, WHO(7, 0, 20), 2, 0);
        rig_put_number(&rig, 2, WHO(7, 0, 21), 2, 0);
        assert_int_equal(next_period(&rig), 10);
        check_counts(&rig, RIG_NUMBERS, (Counts){ .delivered = 2, .duplicates = 2 });
        assert_int_equal(counter_get(&rig_counters(&rig, RIG_NUMBERS)->sampled), 2);
        assert_int_equal(counter_get(&rig_counters(&rig, RIG_NUMBERS)->duplicates_sampled), 1);

        streams[6].of = streams[5].of;
        streams[6].counters = streams[5].counters;
        streams[6].event = RIG_FAULTS; /* the next generation of FAULTS, by frequency: its samples are laid out otherwise */
        streams[6].is_sampling = true;
        rig_put_faults(&rig, 6, 7, WHO(7, 0, 30), 4);
        streams[5].is_standby = true;
        rig_put_faults(&rig, 7, 6, WHO(7, 0, 31), 0);
        rig_put_faults(&rig, 6, 7, WHO(7, 0, 32), 5);
        streams[6].is_standby = false;
        assert_int_equal(reader_drain(&rig.reader), 0);
        check_counts(&rig, RIG_FAULTS, (Counts){ .delivered = 2, .duplicates = 1 });
        assert_int_equal(counter_get(&rig_counters(&rig, RIG_FAULTS)->sampled), 2);
        assert_int_equal(counter_get(&rig.reader.counters.unknown_id), 0);
        rig_check_sums(&rig);
        rig_deinit(&rig);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_samples),
                cmocka_unit_test(test_shared_ids),
                cmocka_unit_test(test_foreign_times),
                cmocka_unit_test(test_side_records),
                cmocka_unit_test(test_surplus),
                cmocka_unit_test(test_wrap),
                cmocka_unit_test(test_corrupt),
                cmocka_unit_test(test_head_jumps),
                cmocka_unit_test(test_unaligned),
                cmocka_unit_test(test_whole_records),
                cmocka_unit_test(test_too_long),
                cmocka_unit_test(test_entries_run_out),
                cmocka_unit_test(test_generations_with_other_periods),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
