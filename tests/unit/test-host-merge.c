/* Items of several hosts, by wall time: played queues and a clock of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/perfctl/hosts/merge.h"

#define N 3
#define HOLD 100

static HostQueue queues[N];
static uint64_t now;

static int begin(void **state) {
        for (size_t i = 0; i < N; i++)
                host_queue_init(&queues[i]);
        now = 1000;
        return 0;
}

static int end(void **state) {
        for (size_t i = 0; i < N; i++)
                host_queue_deinit(&queues[i]);
        return 0;
}

static void add(size_t host, uint64_t wall, uint64_t error) {
        char text[32];

        host_queue_add(&queues[host], wall, error, now, text, (size_t)snprintf(text, sizeof(text), "%llu", (unsigned long long)wall));
}

/* The next one is this host's, of this time. */
static void expect(size_t host, uint64_t wall, bool certain) {
        uint64_t wait;
        bool is_certain;
        size_t at;
        HostEntry *e = host_merge_next(queues, N, HOLD, now, &at, &is_certain, &wait);

        assert_non_null(e);
        assert_int_equal(at, host);
        assert_int_equal(e->wall, wall);
        assert_int_equal(is_certain, certain);
        free(e);
}

static void expect_none(uint64_t wait) {
        uint64_t said;
        bool is_certain;
        size_t at;

        assert_null(host_merge_next(queues, N, HOLD, now, &at, &is_certain, &said));
        assert_int_equal(said, wait);
}

static void test_order(void **state) {
        add(0, 10, 0);
        add(0, 40, 0);
        add(1, 20, 0);
        add(2, 30, 0);
        expect(0, 10, true);
        expect(1, 20, true);
        expect_none(HOLD); /* host 1 may still have something before 30 */
        add(1, 35, 0);
        expect(2, 30, true);
        queues[2].has_ended = true;
        expect(1, 35, true);
        queues[1].has_ended = true;
        expect(0, 40, true);
        expect_none(UINT64_MAX);
}

/* A host that says nothing delays the others by the hold, and what it says later comes then. */
static void test_hold(void **state) {
        add(0, 10, 0);
        now += 60;
        add(0, 20, 0);
        expect_none(HOLD - 60);
        now += 40;
        expect(0, 10, true);
        expect_none(60);
        now += 60;
        expect(0, 20, true);
        add(1, 15, 0);
        now += HOLD;
        expect(1, 15, false); /* which is too late */
}

/* What follows an item and has no time of its own stays behind it, and waits for nobody. */
static void test_without_time(void **state) {
        add(0, 0, 0);
        expect(0, 0, true);
        add(0, 10, 0);
        add(0, 0, 0);
        expect_none(HOLD);
        add(1, 11, 0);
        add(2, 12, 0);
        expect(0, 10, true);
        expect(0, 0, true);
        expect_none(HOLD);
}

/* Two clocks that are apart by what they say: only what is further apart than both errors is in a certain order. */
static void test_certain(void **state) {
        queues[2].has_ended = true;
        add(0, 1000, 50);
        add(1, 1080, 20);
        add(0, 1111, 10);
        add(1, 1141, 20);
        add(0, 2000, 50);
        add(1, 3000, UINT64_MAX); /* of an error that nobody knows */
        add(0, 4000, 50);
        queues[0].has_ended = queues[1].has_ended = true;
        expect(0, 1000, true);
        expect(1, 1080, true);  /* 1060 is behind 1050 */
        expect(0, 1111, true);  /* 1101 is behind 1100 */
        expect(1, 1141, false); /* 1121 is where the one before may have been */
        expect(0, 2000, true);
        expect(1, 3000, false);
        expect(0, 4000, false); /* the one before may have been at any time */
}

/* A host that is far ahead does not fill the memory, and is not given before its time: nothing more is read of it. */
static void test_full(void **state) {
        char *bytes = calloc(1, HOST_QUEUE_LEAST);

        assert_non_null(bytes);
        queues[2].has_ended = true;
        add(0, 10, 0);
        for (size_t i = 0; i < HOST_QUEUES_MAX / 2; i += HOST_QUEUE_LEAST) {
                assert_false(host_queue_is_full(queues, 2, 0));
                host_queue_add(&queues[0], 11, 0, now, bytes, HOST_QUEUE_LEAST - (i == 0 ? 2 : 0));
        }
        assert_true(host_queue_is_full(queues, 2, 0));
        assert_false(host_queue_is_full(queues, 2, 1));
        expect_none(HOLD);
        add(1, 5, 0);
        expect(1, 5, true);
        expect_none(HOLD);
        now += HOLD;
        expect(0, 10, true); /* of two bytes */
        assert_false(host_queue_is_full(queues, 2, 0));
        assert_true(host_queue_is_full(queues, 1000, 0));
        free(bytes);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_order, begin, end), cmocka_unit_test_setup_teardown(test_hold, begin, end),
                cmocka_unit_test_setup_teardown(test_without_time, begin, end),
                cmocka_unit_test_setup_teardown(test_certain, begin, end), cmocka_unit_test_setup_teardown(test_full, begin, end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
