/* Wall times of items, by the readings of a stream: before and behind each time that wall time was set, and in between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/stream/wall-times.h"

#define HOUR ((uint64_t)3600 * 1000000000)

static void add(WallTimes *w, uint64_t time, uint64_t wall, uint64_t since) {
        wall_times_add(w, &(perfd_wall_reading){ .time = time, .wall = wall, .error = 50, .since = since });
}

static void assert_wall(const WallTimes *w, uint64_t time, uint64_t wall, uint64_t error) {
        uint64_t said;

        assert_int_equal(wall_times_at(w, time, &said), wall);
        assert_int_equal(said, error);
}

/* Of a daemon that has none. */
static void test_without(void **state) {
        WallTimes w = { .offset = -5 };

        assert_wall(&w, 100, 95, UINT64_MAX);
}

static void test_one(void **state) {
        WallTimes w = { .offset = -5 };

        add(&w, 1000, 9000, 0);
        assert_wall(&w, 1000, 9000, 50);
        assert_wall(&w, 400, 8400, 50);
        assert_wall(&w, 2000, 10000, 50);
        add(&w, 3000, 11001, 0); /* a newer one of the same */
        assert_wall(&w, 400, 8401, 50);
}

/* Forward by an hour between 2000 and 2500. */
static void test_set(void **state) {
        WallTimes w = { .n = 0 };

        add(&w, 1000, 9000, 0);
        add(&w, 2500, 10500 + HOUR, 2000);
        assert_wall(&w, 1999, 9999, 50);
        assert_wall(&w, 2000, 10000, 50);
        assert_wall(&w, 2001, 10001 + HOUR, HOUR + 50); /* one of both */
        assert_wall(&w, 2499, 10499 + HOUR, HOUR + 50);
        assert_wall(&w, 2500, 10500 + HOUR, 50);
        add(&w, 7000, 15000 + HOUR, 0); /* and what is known of the time before stays */
        assert_wall(&w, 2000, 10000, 50);
        assert_wall(&w, 2200, 10200 + HOUR, HOUR + 50);
        assert_wall(&w, 2600, 10600 + HOUR, 50);
}

static void test_set_back(void **state) {
        WallTimes w = { .n = 0 };

        add(&w, 1000, 2 * HOUR, 0);
        add(&w, 2500, 1500 + HOUR, 2000);
        assert_wall(&w, 2000, 1000 + 2 * HOUR, 50);
        assert_wall(&w, 2100, 1100 + HOUR, HOUR + 50);
        assert_wall(&w, 2500, 1500 + HOUR, 50);
}

/* More often than can be kept: the oldest is taken for what is older still. */
static void test_often(void **state) {
        WallTimes w = { .n = 0 };

        add(&w, 1000, 1000, 0);
        for (uint64_t i = 1; i <= 20; i++)
                add(&w, 1000 + 100 * i, 1000 + 100 * i + i * HOUR, 1000 + 100 * i - 10);
        for (uint64_t i = 20; i > 20 - WALL_TIMES_KEPT; i--)
                assert_wall(&w, 1000 + 100 * i, 1000 + 100 * i + i * HOUR, 50);
        assert_wall(&w, 1000, 1000 + (21 - WALL_TIMES_KEPT) * HOUR, 50);
}

static void test_drift(void **state) {
        WallTimes w = { .drifts = true };

        add(&w, 1000000, 5000000, 0);
        assert_wall(&w, 1000000, 5000000, 50);
        assert_wall(&w, 1500000, 5500000, 550);
        assert_wall(&w, 900000, 4900000, 150);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_without), cmocka_unit_test(test_one), cmocka_unit_test(test_set),
                cmocka_unit_test(test_set_back), cmocka_unit_test(test_often), cmocka_unit_test(test_drift),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
