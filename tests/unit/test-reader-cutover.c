/*
 * Where a replacement becomes active: what is kept of the counts and losses of both fds, whatever happens while they are read.
 * What fds have counted is the test's, and occurrences, losses and records of others come before or behind each read(2) of it.
 */
#include "tests/unit/reader-checks.h"

#include "daemon/kernel/event/open.h"

#define GUARD (5 * NSEC_PER_MSEC)
#define OLD_FD 1000 /* of stream 1 */
#define NEW_FD 1001 /* of stream 2 */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *rest);
int __wrap_open_read(int fd, uint64_t read_format, ReadCount *ret);
int __wrap_open_read_patiently(int fd, uint64_t read_format, ReadCount *ret);

typedef struct World {
        Rig rig;
        nsec_t now;
        unsigned n_sleeps, n_reads;
        uint64_t value[2], lost[2];
        uint64_t occurs, loses, others; /* before each read: of both fds, the same without a record, records of another event */
        unsigned calm_from; /* reads: before so many of them; 0: always */
        bool is_apart; /* the new one is of a group that cannot be read */
} World;

static World w;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret) {
        *ret = (struct timespec){ .tv_sec = (time_t)(w.now / NSEC_PER_SEC), .tv_nsec = (long)(w.now % NSEC_PER_SEC) };
        return 0;
}

int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *rest) {
        w.n_sleeps++;
        w.now = timespec_nsec(*until);
        return 0;
}

static void happen(void) {
        for (uint64_t n = 0; n < w.occurs; n++)
                for (uint64_t i = 0; i < 2; i++) {
                        w.now += 10;
                        assert_true(rig_put_number(&w.rig, 1 + i, WHO(1, 1, w.now), 2, 0));
                        w.value[i]++;
                }
        for (uint64_t i = 0; i < 2; i++) {
                w.value[i] += w.loses;
                w.lost[i] += w.loses;
        }
        for (uint64_t n = 0; n < w.others; n++)
                assert_true(rig_put_number(&w.rig, 4, WHO(1, 1, w.now), 2, 0));
}

int __wrap_open_read(int fd, uint64_t read_format, ReadCount *ret) {
        assert_true(fd == OLD_FD || fd == NEW_FD); /* nobody else's count is of interest */
        w.n_reads++;
        if (w.calm_from == 0 || w.n_reads < w.calm_from)
                happen();
        if (w.is_apart && fd == NEW_FD)
                return OPEN_E_APART;
        *ret = (ReadCount){ .value = w.value[fd - OLD_FD], .lost = w.lost[fd - OLD_FD] };
        return 0;
}

int __wrap_open_read_patiently(int fd, uint64_t read_format, ReadCount *ret) {
        return __wrap_open_read(fd, read_format, ret);
}

static Snapshot *snapshot(uint64_t generation, bool is_turned) {
        Snapshot *s = rig_snapshot_new(&w.rig, generation);

        for (int i = 0; i < 2; i++) {
                s->cpus[0].streams[i].fd = OLD_FD + i;
                s->cpus[0].streams[i].is_standby = (i == 1) != is_turned;
        }
        return s;
}

static Snapshot *next;
static TurnedStream turned[8];

/* The old one has counted 100, of which 10 were lost; the new one, until now on standby, 40, of which 7. */
static void world_init(nsec_t guard) {
        w = (World){ .now = NSEC_PER_SEC, .value = { 100, 40 }, .lost = { 10, 7 } };
        rig_init(&w.rig, 1 << 20, 4);
        w.rig.reader.guard = guard;
        snapshot_unref(w.rig.reader.snapshot);
        w.rig.reader.snapshot = snapshot(1, false);
        next = snapshot(2, true);
}

static void world_deinit(void) {
        snapshot_unref(next);
        rig_deinit(&w.rig);
}

static const EventCounters *find_boundary(void) {
        assert_int_equal(reader_find_boundary(&w.rig.reader, next, turned), 0);
        for (size_t i = 0; i < RIG_EVENTS; i++)
                if (i != RIG_NUMBERS) {
                        const EventCounters *c = &next->events[i].event->counters[0];

                        assert_true(c->standby_lost == 0 && c->standby_expected == 0 && !c->standby_unsure && !c->is_inexact);
                }
        return &next->events[RIG_NUMBERS].event->counters[0];
}

static void check_kept(const EventCounters *c, uint64_t lost, uint64_t expected) {
        assert_int_equal(c->standby_lost, lost);
        assert_int_equal(c->standby_expected, expected);
}

static void test_nothing_changes(void **state) {
        Snapshot *same;

        world_init(GUARD);
        same = snapshot(2, false);
        assert_int_equal(reader_find_boundary(&w.rig.reader, same, turned), 0);
        assert_int_equal(w.n_reads + w.n_sleeps, 0);
        snapshot_unref(same);
        world_deinit();
}

static void test_quiet_ring(void **state) {
        static const nsec_t guards[] = { 0, GUARD };

        for (size_t i = 0; i < ARRAY_SIZE(guards); i++) {
                const EventCounters *c;

                world_init(guards[i]);
                assert_true(rig_put_number(&w.rig, 1, WHO(1, 1, w.now), 2, 0));
                c = find_boundary();
                check_kept(c, 7 - 10ULL, 40 - 100ULL);
                assert_false(c->standby_unsure || c->is_inexact);
                assert_int_equal(w.n_reads, 2);
                assert_int_equal(w.n_sleeps, guards[i] > 0);
                assert_int_equal(w.rig.reader.ring.tail, ring_head(&w.rig.reader.ring));
                world_deinit();
        }
}

/* Back again: what the old one has counted on standby is behind what it had when that began. */
static void test_there_and_back(void **state) {
        const EventCounters *c;
        Snapshot *before;

        world_init(0);
        (void)find_boundary();
        before = w.rig.reader.snapshot;
        w.rig.reader.snapshot = snapshot_ref(next);
        snapshot_unref(next);
        next = before;
        for (size_t i = 0; i < 7; i++) /* of the same event */
                next->cpus[0].streams[i].counters = w.rig.reader.snapshot->cpus[0].streams[i].counters;
        w.value[0] += 5;
        w.lost[0] += 2;
        w.value[1] += 6;
        w.lost[1] += 3;
        assert_int_equal(reader_find_boundary(&w.rig.reader, next, turned), 0);
        c = next->cpus[0].streams[0].counters;
        check_kept(c, 2 - 3ULL, 5 - 6ULL); /* and the new one is on standby since it had 46 and 10: 40 and 7 more, once it is read */
        world_deinit();
}

/* Something is always written, but not by the event: its counts stand still, and are those of the place. */
static void test_others_never_stop(void **state) {
        static const nsec_t guards[] = { 0, GUARD };

        for (size_t i = 0; i < ARRAY_SIZE(guards); i++) {
                const EventCounters *c;

                world_init(guards[i]);
                w.others = 1;
                c = find_boundary();
                check_kept(c, 7 - 10ULL, 40 - 100ULL);
                assert_false(c->standby_unsure || c->is_inexact);
                assert_int_equal(w.n_reads, 4);
                world_deinit();
        }
}

/* As what the reader's own system calls set off: on its CPU the place is one between two occurrences all the same. */
static void test_event_never_stops(void **state) {
        const EventCounters *c;

        world_init(0);
        w.occurs = 1;
        c = find_boundary();
        assert_true(c->standby_unsure);
        assert_false(c->is_inexact);
        assert_int_equal(c->standby_lost, 7 - 10ULL);
        world_deinit();

        world_init(GUARD);
        w.occurs = 1;
        c = find_boundary();
        assert_true(c->standby_unsure && c->is_inexact);
        world_deinit();
}

static void test_event_stops_in_the_end(void **state) {
        const EventCounters *c;

        world_init(0);
        w.occurs = 3;
        w.calm_from = 6;
        c = find_boundary();
        assert_false(c->standby_unsure || c->is_inexact);
        check_kept(c, 7 - 10ULL, 55 - 115ULL);
        assert_int_equal(counter_get(&c->delivered) + counter_get(&c->filtered), 0); /* read with the counters of before */
        assert_int_equal(counter_get(&rig_counters(&w.rig, RIG_NUMBERS)->duplicates), 15);
        world_deinit();
}

/* What was lost before the place, and what behind it, nobody can say. */
static void test_losses_never_stop(void **state) {
        const EventCounters *c;

        world_init(0);
        w.loses = w.others = 1;
        c = find_boundary();
        assert_true(c->is_inexact);
        world_deinit();
}

/* What samples counts nothing but its samples; its own count is time. */
static void test_sampling(void **state) {
        const EventCounters *c;

        world_init(0);
        for (int i = 0; i < 2; i++)
                next->cpus[0].streams[i].is_sampling = true;
        w.occurs = 1;
        c = find_boundary();
        assert_false(c->standby_unsure || c->is_inexact);
        check_kept(c, 7 - 10ULL, 7 - 10ULL);
        world_deinit();
}

/*
 * From each occurrence to samples: 3 of what the old one counted on standby the kernel never wrote, which are duplicates as they
 * were before, and so are a sample of the new one that was read while it was on standby, and one that it lost then.
 */
static void test_exact_to_sampling(void **state) {
        EventCounters *c;

        world_init(0);
        c = (EventCounters *)&next->events[RIG_NUMBERS].event->counters[0];
        next->cpus[0].streams[1].is_sampling = true;
        ((SnapshotStream *)w.rig.reader.snapshot->cpus[0].streams)[1].is_sampling = true;
        w.lost[1] = 1;
        assert_true(rig_put_number(&w.rig, 2, WHO(1, 1, w.now), 2, 0));
        (void)find_boundary();
        check_kept(c, 1 - 10ULL, 1 - 100ULL);
        w.value[0] += 13; /* until it is off; 10 of them were read */
        c->closed_standby_expected = w.value[0];
        c->closed_standby_lost = w.lost[0];
        counter_add(&c->closed_expected, w.value[0]);
        c->cut = (EventCut){ .expected = w.lost[1], .sampled = 1 + 5, .duplicates = 1 + 10, .duplicates_sampled = 1 };
        assert_int_equal(counters_duplicates(c), 13 + 1 + 1);
        assert_int_equal(counters_expected(c) - counters_duplicates(c), 100 + 5);
        world_deinit();
}

/* As while a child is being born: it goes over all the same, and nobody takes its counts for known. */
static void test_group_that_can_not_be_read(void **state) {
        const EventCounters *c;

        world_init(0);
        w.is_apart = true;
        c = find_boundary();
        assert_true(c->standby_unsure && c->is_inexact);
        check_kept(c, -10ULL, -100ULL);
        world_deinit();
}

static void test_starved(void **state) {
        Batch *b;

        world_init(0);
        while ((b = queue_pop(&w.rig.reader.free)))
                batch_free(b);
        assert_true(rig_put_number(&w.rig, 1, WHO(1, 1, w.now), 2, 0));
        assert_int_equal(reader_find_boundary(&w.rig.reader, next, turned), READER_E_STARVED);
        check_kept(&next->events[RIG_NUMBERS].event->counters[0], 0, 0);
        world_deinit();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nothing_changes),
                cmocka_unit_test(test_quiet_ring),
                cmocka_unit_test(test_there_and_back),
                cmocka_unit_test(test_others_never_stop),
                cmocka_unit_test(test_event_never_stops),
                cmocka_unit_test(test_event_stops_in_the_end),
                cmocka_unit_test(test_losses_never_stop),
                cmocka_unit_test(test_sampling),
                cmocka_unit_test(test_exact_to_sampling),
                cmocka_unit_test(test_group_that_can_not_be_read),
                cmocka_unit_test(test_starved),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
