/*
 * Order across CPUs, in a world whose clock stands still unless the test moves it: readers without threads, a dispatcher
 * of a few lines that releases up to the least watermark, interrupts that write their records before that of the code
 * which they interrupt, and records that turn up between a reader's look at the clock and its look at the head. What is
 * released never goes backwards, nothing is released twice or never, and it always goes on, even with the smallest pool.
 */
#include "daemon/route/merge.h"
#include "tests/unit/reader-checks.h"

#define CLOCK_OF_TEST CLOCK_BOOTTIME /* the readers' */
#define MAX_CPUS 3

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);

typedef struct World {
        Rig rigs[MAX_CPUS];
        nsec_t watermarks[MAX_CPUS];
        bool asked[MAX_CPUS], unanswered[MAX_CPUS];
        uint64_t put[MAX_CPUS], arrived[MAX_CPUS];
        unsigned n_cpus;
        uint32_t extra; /* longest raw bytes */
        unsigned nested; /* most records of one interruption */
        Merge merge;
        nsec_t released;
} World;

static nsec_t now;
static uint64_t seed;
static World *world;
static unsigned burst; /* records that the next look at the clock lets happen before the look at the head */
static unsigned starved, bursts;

static uint32_t random_below(uint32_t n) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        return (uint32_t)(((seed >> 33) * n) >> 31);
}

/* A record of a time that is already past: written if there is room. */
static void world_put(World *w, unsigned cpu, nsec_t time) {
        Rig *rig = &w->rigs[cpu];
        uint32_t kind = random_below(20), extra = 8 * random_below(w->extra / 8 + 1);

        if (kind == 0)
                (void)rig_put_number(rig, 2, WHO(7, 0, time), 2, extra); /* doubled: comes to nobody */
        else if (kind == 1)
                (void)rig_put_number(rig, 77, WHO(7, 0, 1), 2, extra); /* unknown: what it says of its time is nothing to us */
        else if (rig_put_number(rig, 1, WHO(7, 0, time), 3, extra))
                w->put[cpu]++;
}

/* The clock of the outer record comes first, its place last. */
static void world_happen(World *w, unsigned cpu, unsigned depth) {
        nsec_t time = now++;

        if (depth > 0 && random_below(3) == 0)
                for (unsigned n = random_below(w->nested + 1); n > 0; n--)
                        world_happen(w, cpu, depth - 1);
        world_put(w, cpu, time);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts) {
        if (clock != CLOCK_OF_TEST)
                return __real_clock_gettime(clock, ts);
        *ts = (struct timespec){ .tv_sec = (time_t)(now / NSEC_PER_SEC), .tv_nsec = (long)(now % NSEC_PER_SEC) };
        now++;
        if (burst > 0 && random_below(2)) {
                bursts++;
                for (unsigned n = random_below(burst); n > 0; n--)
                        world_happen(world, random_below(world->n_cpus), 2);
        }
        return 0;
}

/* As the loop in reader/reader.c does. */
static void world_read(World *w, unsigned cpu) {
        Reader *r = &w->rigs[cpu].reader;

        if (reader_drain(r) == READER_E_STARVED) {
                starved++;
                return;
        }
        if (((r->batch && r->batch->n_entries > 0) || w->unanswered[cpu]) && reader_push_batch(r) == 0)
                w->unanswered[cpu] = false;
}

static void world_give_back(World *w, Batch *b) {
        queue_push(&w->rigs[b->slot].reader.free, b);
}

static void world_take(World *w, unsigned cpu) {
        Batch *b = queue_pop(&w->rigs[cpu].reader.full);

        if (!b)
                return;
        check_batch(b);
        assert_int_equal(b->slot, cpu);
        if (b->watermark > w->watermarks[cpu]) {
                w->watermarks[cpu] = b->watermark;
                w->asked[cpu] = false;
        }
        if (b->n_entries == 0)
                world_give_back(w, b);
        else
                assert_int_equal(merge_add(&w->merge, b), 0);
}

static void world_release_piece(World *w, const MergePiece *p, nsec_t until) {
        for (size_t i = 0; i < p->n; i++) {
                const BatchEntry *e = &p->first[i];

                if (e->time < w->released || e->time > until)
                        fail_msg("%llu after %llu, until %llu", (unsigned long long)e->time,
                                 (unsigned long long)w->released, (unsigned long long)until);
                w->released = e->time;
                w->arrived[p->batch->slot] += e->mask & 1; /* a record's other item has another bit */
        }
}

static void world_release(World *w) {
        nsec_t until = UINT64_MAX;
        const MergePiece *pieces;
        unsigned n;
        Batch *b;

        for (unsigned i = 0; i < w->n_cpus; i++)
                if (w->watermarks[i] < until)
                        until = w->watermarks[i];
        while ((n = merge_next(&w->merge, until, &pieces)) > 0) {
                for (unsigned i = 0; i < n; i++)
                        world_release_piece(w, &pieces[i], until);
                while ((b = merge_take_emptied(&w->merge)))
                        world_give_back(w, b);
        }
        if (w->merge.n > 0) /* once, as the dispatcher does */
                for (unsigned i = 0; i < w->n_cpus; i++)
                        if (!w->asked[i])
                                w->asked[i] = w->unanswered[i] = true;
}

/* Everybody does what he can until all has arrived; it has to go on with each turn of all of them. */
static void world_end(World *w) {
        for (unsigned idle = 0;;) {
                uint64_t before = 0, after = 0, missing = 0;

                for (unsigned i = 0; i < w->n_cpus; i++) {
                        before += w->arrived[i] + w->rigs[i].page->data_tail;
                        world_read(w, i);
                }
                for (unsigned i = 0; i < w->n_cpus; i++)
                        while (!queue_is_empty(&w->rigs[i].reader.full))
                                world_take(w, i);
                world_release(w);
                for (unsigned i = 0; i < w->n_cpus; i++) {
                        after += w->arrived[i] + w->rigs[i].page->data_tail;
                        missing += w->put[i] - w->arrived[i];
                }
                if (missing == 0)
                        return;
                idle = after > before ? 0 : idle + 1;
                assert_true(idle < 4); /* nobody waits for somebody who waits for him */
        }
}

static void world_run(unsigned round, size_t ring_size, uint32_t extra, unsigned nested, unsigned turns) {
        World w = { .n_cpus = 1 + round % MAX_CPUS, .extra = extra, .nested = nested, .merge = MERGE_NULL };
        unsigned most = 1 + round % 7 * 100;

        seed = round + 1000;
        now = 1000 + random_below(1 << 20);
        world = &w;
        burst = 0;
        for (unsigned i = 0; i < w.n_cpus; i++) {
                rig_init(&w.rigs[i], ring_size, 2 + round % 2 * 3);
                w.rigs[i].reader.clock = CLOCK_OF_TEST;
                for (unsigned n = 2 + round % 2 * 3; n > 0; n--) {
                        Batch *b = queue_pop(&w.rigs[i].reader.free);

                        b->slot = i; /* whose it is */
                        queue_push(&w.rigs[i].reader.free, b);
                }
        }
        for (unsigned turn = 0; turn < turns; turn++) {
                unsigned cpu = random_below(w.n_cpus);

                burst = random_below(4) ? 0 : 1 + random_below(4 * most);
                switch (random_below(5)) {
                case 0:
                        for (unsigned n = random_below(most); n > 0; n--)
                                world_happen(&w, cpu, 2);
                        break;
                case 1:
                case 2:
                        world_read(&w, cpu);
                        break;
                case 3:
                        world_take(&w, cpu);
                        break;
                default:
                        world_release(&w);
                }
        }
        burst = 0;
        world_end(&w);
        for (unsigned i = 0; i < w.n_cpus; i++) {
                rig_check_sums(&w.rigs[i]);
                assert_int_equal(w.arrived[i], w.put[i]);
                assert_int_equal(counter_get(&rig_counters(&w.rigs[i], RIG_NUMBERS)->delivered), w.put[i]);
                rig_deinit(&w.rigs[i]);
        }
        merge_deinit(&w.merge);
}

/* Records of 48 to 200 bytes: batches end with their entries or their bytes. */
static void test_short_records(void **state) {
        starved = bursts = 0;
        for (unsigned round = 0; round < 150; round++)
                world_run(round, (size_t)64 * 1024 << round % 5, 8 * (round % 20), 20, 400);
        assert_true(starved > 300 && bursts > 300);
}

/* Of up to 7 KiB: a few to a batch and to a chunk of the ring. */
static void test_long_records(void **state) {
        starved = bursts = 0;
        for (unsigned round = 0; round < 150; round++)
                world_run(round, (size_t)128 * 1024 << round % 3, 7 * 1024, 2, 200);
        assert_true(starved > 300 && bursts > 300);
}

/* Of up to 50 KiB: longer than chunks of the ring, and not nested, because two of them fill all batches. */
static void test_longest_records(void **state) {
        starved = bursts = 0;
        for (unsigned round = 0; round < 150; round++)
                world_run(round, (size_t)256 * 1024 << round % 3, 50 * 1024, 0, 100);
        assert_true(starved > 300 && bursts > 300);
}

/* ---- where a batch ends ------------------------------------------------------------------------------------------ */

/* `before` samples in order, then one that is interrupted by `inner` others, with one of these interrupted too; and some more. */
static void put_interrupted(Rig *rig, unsigned before, unsigned inner) {
        nsec_t time = 1000;

        for (unsigned i = 0; i < before; i++)
                assert_true(rig_put_number(rig, 1, WHO(7, 0, time++), 2, 0));
        for (unsigned i = 0; i < inner; i++)
                assert_true(rig_put_number(rig, 1, WHO(7, 0, time + 2 + (i ^ 1)), 2, 0));
        assert_true(rig_put_number(rig, 1, WHO(7, 0, time), 2, 0));
        time += inner + 10;
        for (unsigned i = 0; i < 100; i++)
                assert_true(rig_put_number(rig, 1, WHO(7, 0, time++), 2, 0));
}

/* How many entries the first batch has. All that came is there, and in order, within batches and from one to the next. */
static size_t check_interrupted(unsigned before, unsigned inner) {
        size_t n_first = 0, n = 0;
        nsec_t last = 0;
        Batch *b;
        Rig rig;

        rig_init(&rig, 256 * 1024, 4);
        put_interrupted(&rig, before, inner);
        assert_int_equal(reader_drain(&rig.reader), 0);
        assert_int_equal(reader_push_batch(&rig.reader), 0);
        while ((b = queue_pop(&rig.reader.full))) {
                check_batch(b);
                n_first = n_first ? n_first : b->n_entries;
                n += b->n_entries;
                for (size_t i = 0; i < b->n_entries; i++) {
                        assert_true(b->entries[i].time >= last);
                        last = b->entries[i].time;
                }
                assert_true(queue_push(&rig.reader.free, b));
        }
        assert_int_equal(n, before + inner + 1 + 100);
        assert_int_equal(counter_get(&rig_counters(&rig, RIG_NUMBERS)->delivered), n);
        rig_check_sums(&rig);
        rig_deinit(&rig);
        return n_first;
}

static void test_batch_ends_in_an_interruption(void **state) {
        unsigned full = (unsigned)check_interrupted(2000, 0);

        assert_true(full > 500 && full < 2000);
        for (unsigned inner = 0; inner <= 12; inner += 3)
                for (unsigned before = full - inner - 3; before <= full + 1; before++)
                        (void)check_interrupted(before, inner);
}

/* ---- two rings ---------------------------------------------------------------------------------------------------- */

/* A second ring of the reader, which is to be left: records are put into it as into a rig's own. */
static void begin_retiring(Rig *rig, Rig *old, size_t size) {
        size_t page_size = (size_t)sysconf(_SC_PAGESIZE);

        *old = (Rig){ .size = size, .memory = aligned_alloc(page_size, page_size + size) };
        assert_non_null(old->memory);
        memset(old->memory, 0, page_size + size);
        old->page = (struct perf_event_mmap_page *)old->memory;
        old->data = old->memory + page_size;
        assert_int_equal(ring_init_memory(&rig->reader.retiring, old->memory, size), 0);
}

/*
 * Events write now into one, now into the other, `each` of them each time and each now and then interrupted: what comes in batches
 * that are full is in the order of time, also from one to the next.
 */
static void check_two_rings(unsigned each) {
        const unsigned n_all = 6000;
        nsec_t last = 0, time = 1000;
        unsigned n = 0;
        Rig rig, old;
        Batch *b;

        rig_init(&rig, 512 * 1024, 16);
        begin_retiring(&rig, &old, 512 * 1024);
        for (unsigned i = 0; i < n_all; i += 2, time += 2) {
                Rig *to = i / each % 2 ? &rig : &old;
                unsigned first = i % 14 == 0; /* the second one interrupts it */

                assert_true(rig_put_number(to, 1, WHO(7, 0, time + first), 2, 0));
                assert_true(rig_put_number(to, 1, WHO(7, 0, time + !first), 2, 0));
        }
        assert_int_equal(reader_drain(&rig.reader), 0);
        assert_true(reader_has_seen_all(&rig.reader));
        assert_int_equal(reader_push_batch(&rig.reader), 0);
        while ((b = queue_pop(&rig.reader.full))) {
                check_batch(b);
                n += (unsigned)b->n_entries;
                for (size_t i = 0; i < b->n_entries; i++) {
                        assert_true(b->entries[i].time >= last);
                        last = b->entries[i].time;
                }
                assert_true(queue_push(&rig.reader.free, b));
        }
        assert_int_equal(n, n_all);
        assert_int_equal(counter_get(&rig_counters(&rig, RIG_NUMBERS)->delivered), n);
        rig_check_sums(&rig);
        ring_close(&rig.reader.retiring);
        free(old.memory);
        rig_deinit(&rig);
}

static void test_two_rings(void **state) {
        static const unsigned each[] = { 2, 14, 100, 1000, 1700, 3000 };

        for (size_t i = 0; i < ARRAY_SIZE(each); i++)
                check_two_rings(each[i]);
}

/* What cannot be followed in one of them is given up, and the other one is read. */
static void test_corrupt_one_of_two(void **state) {
        for (unsigned i = 0; i < 2; i++) {
                Rig rig, old, *broken = i ? &rig : &old, *whole = i ? &old : &rig;

                rig_init(&rig, 4096, 2);
                begin_retiring(&rig, &old, 4096);
                assert_true(rig_put_number(broken, 1, WHO(7, 0, 1001), 2, 0));
                assert_true(rig_put_number(whole, 1, WHO(7, 0, 1000), 2, 0));
                assert_true(rig_put_number(whole, 1, WHO(7, 0, 1002), 2, 0));
                assert_true(rig_put_record(broken, PERF_RECORD_SAMPLE, 0, "", 0));
                ((struct perf_event_header *)(broken->data + broken->page->data_head - 8))->size = 0;
                assert_int_equal(reader_drain(&rig.reader), 0);
                assert_true(reader_has_seen_all(&rig.reader));
                assert_int_equal(counter_get(&rig.reader.counters.resyncs), 1);
                assert_int_equal(reader_push_batch(&rig.reader), 0);
                TAKE(&rig, { .time = 1000, .mask = 1, .event = 11, .pid = 7, .number = 2 },
                     { .time = 1001, .mask = 1, .event = 11, .pid = 7, .number = 2 },
                     { .time = 1002, .mask = 1, .event = 11, .pid = 7, .number = 2 });
                ring_close(&rig.reader.retiring);
                free(old.memory);
                rig_deinit(&rig);
        }
}

/* ---- times ahead of the clock -------------------------------------------------------------------------------------- */

/*
 * A tracepoint's time is by the kernel's fast clock, which may be ahead of clock_gettime(2) while the clock is adjusted. The merge and
 * who gets the items have the same times: what follows from another CPU would else be older than what came before it.
 */
static void test_times_ahead(void **state) {
        const nsec_t ahead = clock_now(CLOCK_MONOTONIC) + 1000 * NSEC_PER_SEC;
        nsec_t before = clock_now(CLOCK_MONOTONIC), given;
        Batch *b;
        Rig rig;

        rig_init(&rig, 16 * 1024, 2);
        rig_put_number(&rig, 1, WHO(7, 71, before), 2, 0);
        for (unsigned i = 0; i < 4; i++)
                rig_put_number(&rig, 1, WHO(7, 71, ahead + i), 3, 0); /* two items of each */
        assert_int_equal(reader_drain(&rig.reader), 0);
        assert_int_equal(reader_push_batch(&rig.reader), 0);
        b = queue_pop(&rig.reader.full);
        check_batch(b);
        assert_int_equal(b->n_entries, 9);
        given = b->entries[1].time;
        assert_in_range(given, before, clock_now(CLOCK_MONOTONIC));
        check_item(b, &b->entries[0], &(Want){ .time = before, .mask = 1, .event = 11, .pid = 7, .tid = 71, .number = 2 });
        for (size_t i = 1; i < b->n_entries; i += 2) {
                check_item(b, &b->entries[i], &(Want){ .time = given, .mask = 1, .event = 11, .pid = 7, .tid = 71, .number = 3 });
                check_item(b, &b->entries[i + 1], &(Want){ .time = given, .mask = 2, .event = 11, .pid = 7, .tid = 71 });
        }
        assert_true(queue_push(&rig.reader.free, b));
        rig_deinit(&rig);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_batch_ends_in_an_interruption),
                cmocka_unit_test(test_times_ahead),
                cmocka_unit_test(test_two_rings),
                cmocka_unit_test(test_corrupt_one_of_two),
                cmocka_unit_test(test_short_records),
                cmocka_unit_test(test_long_records),
                cmocka_unit_test(test_longest_records),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
