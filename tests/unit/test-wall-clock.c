/* Readings of wall time: clocks that are played, that take their time, that are set in the middle of everything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/kernel/host/wall-clock.h"

#define START (1000 * NSEC_PER_SEC)
#define OFFSET ((nsec_t)1700000000 * NSEC_PER_SEC)
#define COST ((nsec_t)30) /* ns of a reading */

static struct {
        nsec_t now, offset, cost;
        nsec_t delay;      /* of one reading: somebody else runs */
        unsigned delay_in; /* so many readings from now; 0: never */
        unsigned n_adjustments;
        bool has_adjustment;
} host;

static nsec_t play_read(clockid_t clock) {
        if (host.delay_in > 0 && --host.delay_in == 0)
                host.now += host.delay;
        host.now += host.cost;
        return clock == CLOCK_REALTIME ? host.now + host.offset : host.now;
}

static bool play_adjustment(nsec_t *ret_error, bool *ret_is_synchronized) {
        host.n_adjustments++;
        *ret_error = 5 * NSEC_PER_MSEC;
        *ret_is_synchronized = true;
        return host.has_adjustment;
}

static const WallSource played = { play_read, play_adjustment };

static int begin(void **state) {
        memset(&host, 0, sizeof(host));
        host.now = START;
        host.offset = OFFSET;
        host.cost = COST;
        host.has_adjustment = true;
        return 0;
}

/* That of the clock as it is now. */
static nsec_t wrong_by(const WallClock *w) {
        int64_t d = (int64_t)(w->last.wall - w->last.time - host.offset);

        return (nsec_t)(d < 0 ? -d : d);
}

static void test_first(void **state) {
        WallClock w;

        wall_clock_init(&w, CLOCK_MONOTONIC, &played);
        assert_true(wrong_by(&w) <= w.last.error);
        assert_true(w.last.error > 0 && w.last.error < 1000);
        assert_int_equal(w.last.since, 0);
        assert_int_equal(w.last.host_error, 5 * NSEC_PER_MSEC);
        assert_true(w.last.is_synchronized);
        host.has_adjustment = false;
        wall_clock_init(&w, CLOCK_MONOTONIC, &played);
        assert_int_equal(w.last.host_error, 0);
}

/* Nothing is new for 10 s, and the kernel is not asked how synchronous it is. */
static void test_age(void **state) {
        nsec_t before;
        WallClock w;

        wall_clock_init(&w, CLOCK_MONOTONIC, &played);
        before = w.last.time;
        for (int i = 0; i < 99; i++) {
                host.now = before + (nsec_t)i * NSEC_PER_SEC / 10;
                assert_false(wall_clock_look(&w));
        }
        assert_int_equal(host.n_adjustments, 1);
        host.now = before + WALL_READING_AGE;
        assert_true(wall_clock_look(&w));
        assert_true(w.last.time > before && wrong_by(&w) <= w.last.error);
        assert_int_equal(w.last.since, 0);
        assert_false(wall_clock_look(&w));
}

/* Forward and back, by much and by little: between the last look that found nothing and the reading. */
static void test_set(void **state) {
        static const int64_t steps[] = { 3600, -3600, 1, -1, 86400 * 365 };
        WallClock w;

        wall_clock_init(&w, CLOCK_MONOTONIC, &played);
        for (size_t i = 0; i < 2 * sizeof(steps) / sizeof(*steps); i++) {
                const int64_t step = steps[i / 2] * (i % 2 ? 1000 : (int64_t)NSEC_PER_SEC);
                nsec_t looked, set;

                host.now += NSEC_PER_SEC;
                looked = host.now;
                assert_false(wall_clock_look(&w));
                host.now += NSEC_PER_MSEC;
                set = host.now;
                host.offset += (nsec_t)step;
                if (llabs(step) < 2000) /* below what a look can see: it is in the error */
                        assert_true(wrong_by(&w) <= w.last.error + 2000);
                else {
                        assert_true(wall_clock_look(&w));
                        assert_true(looked <= w.last.since && w.last.since < set && set < w.last.time);
                }
                (void)wall_clock_look(&w);
                assert_false(wall_clock_look(&w));
        }
}

/* What is too little to be seen is not more than the error says: any step, at any time. */
static void test_unseen(void **state) {
        WallClock w;

        for (nsec_t step = 0; step < 2000; step += 7) {
                (void)begin(NULL);
                wall_clock_init(&w, CLOCK_MONOTONIC, &played);
                host.offset += step;
                (void)wall_clock_look(&w);
                assert_true(wrong_by(&w) <= w.last.error);
        }
}

/* Somebody else runs between two readings, of a look and of the first reading: neither is taken for a clock that was set. */
static void test_delayed(void **state) {
        for (unsigned at = 1; at < 30; at++) {
                WallClock w;

                (void)begin(NULL);
                host.delay = 50 * NSEC_PER_MSEC;
                host.delay_in = at;
                wall_clock_init(&w, CLOCK_MONOTONIC, &played);
                assert_true(wrong_by(&w) <= w.last.error && w.last.error < 1000);
                host.delay_in = at;
                assert_false(wall_clock_look(&w));
                host.delay_in = at;
                host.offset += NSEC_PER_SEC;
                assert_true(wall_clock_look(&w));
                assert_true(wrong_by(&w) <= w.last.error && w.last.error < 1000);
        }
}

/* Every look is delayed: nothing is said that was not seen, and a step is placed behind the last look that was a good one. */
static void test_always_delayed(void **state) {
        nsec_t good;
        WallClock w;

        wall_clock_init(&w, CLOCK_MONOTONIC, &played);
        host.now += NSEC_PER_SEC;
        good = host.now;
        assert_false(wall_clock_look(&w));
        host.cost = NSEC_PER_MSEC;
        host.now += NSEC_PER_SEC;
        assert_false(wall_clock_look(&w));
        host.offset += NSEC_PER_USEC * 300; /* less than a look takes */
        assert_false(wall_clock_look(&w));
        host.cost = COST;
        assert_true(wall_clock_look(&w));
        assert_true(w.last.since >= good && w.last.since < good + NSEC_PER_MSEC);
        assert_true(wrong_by(&w) <= w.last.error);
}

/* A clock that is not slewed drifts away from wall time, and was not set for that. */
static void test_drift(void **state) {
        WallClock w;

        wall_clock_init(&w, CLOCK_MONOTONIC_RAW, &played);
        for (int i = 0; i < 300; i++) {
                host.now += 100 * NSEC_PER_MSEC;
                host.offset += 100 * NSEC_PER_MSEC / 2000;
                if (wall_clock_look(&w))
                        assert_int_equal(w.last.since, 0);
        }
        host.offset += NSEC_PER_SEC;
        assert_true(wall_clock_look(&w));
        assert_true(w.last.since > 0);
}

/* A clock that ticks every 4 ms costs nothing to be read, as it seems. */
static void test_coarse(void **state) {
        WallClock w;

        host.cost = 0;
        wall_clock_init(&w, CLOCK_MONOTONIC, &played);
        assert_true(w.last.error > 0);
        assert_false(wall_clock_look(&w));
        host.offset += NSEC_PER_MSEC;
        assert_true(wall_clock_look(&w));
}

/* CLOCK_REALTIME is wall time, set or not; it still has a reading every 10 s, and how wrong the host says that it is. */
static void test_realtime(void **state) {
        WallClock w;

        wall_clock_init(&w, CLOCK_REALTIME, &played);
        assert_int_equal(w.last.time, w.last.wall);
        assert_int_equal(w.last.error, 0);
        assert_false(wall_clock_look(&w));
        host.offset -= 3600 * NSEC_PER_SEC;
        assert_true(wall_clock_look(&w));
        assert_int_equal(w.last.time, w.last.wall);
        assert_int_equal(w.last.since, 0);
        assert_false(wall_clock_look(&w));
}

/* The host's own clocks, whoever else runs here. */
static void test_host(void **state) {
        static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_REALTIME };

        for (size_t i = 0; i < sizeof(clocks) / sizeof(*clocks); i++) {
                nsec_t before = clock_now(clocks[i]), after;
                WallClock w;

                wall_clock_init(&w, clocks[i], &wall_source_host);
                for (int k = 0; k < 1000; k++)
                        if (wall_clock_look(&w))
                                assert_int_equal(w.last.since, 0);
                after = clock_now(clocks[i]);
                assert_true(before <= w.last.time && w.last.time <= after);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_first, begin), cmocka_unit_test_setup(test_age, begin),
                cmocka_unit_test_setup(test_set, begin), cmocka_unit_test_setup(test_unseen, begin),
                cmocka_unit_test_setup(test_delayed, begin), cmocka_unit_test_setup(test_always_delayed, begin),
                cmocka_unit_test_setup(test_drift, begin), cmocka_unit_test_setup(test_coarse, begin),
                cmocka_unit_test_setup(test_realtime, begin), cmocka_unit_test(test_host),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
