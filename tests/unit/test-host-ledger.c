/* What a host's row in the closing ledger adds up from the notes of its streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/perfctl/hosts/ledger.h"

static HostSum sum;

static int end(void **state) {
        host_sum_deinit(&sum);
        return 0;
}

static void expect_lost(size_t i, const char *reason, uint64_t count) {
        assert_true(i < sum.n_lost);
        assert_string_equal(sum.lost[i].reason, reason);
        assert_int_equal(sum.lost[i].count, count);
}

/* Of two streams, each with its closing ledger: gaps are part of that. */
static void test_two_streams(void **state) {
        host_sum_take_end(&sum, "shutdown 1 1 outbox 3 late 1");
        host_sum_take_sum(&sum, "5 6 3");
        sum.has_end = false;
        host_sum_take_end(&sum, "stopped 1 1 kernel_ring 2 outbox 4");
        host_sum_take_sum(&sum, "7 7 4");
        assert_int_equal(sum.printed, 12);
        assert_int_equal(sum.received, 13);
        assert_int_equal(sum.missed, 7);
        assert_int_equal(sum.n_lost, 3);
        expect_lost(0, "outbox", 7);
        expect_lost(1, "late", 1);
        expect_lost(2, "kernel_ring", 2);
        assert_string_equal(sum.reason, "stopped");
        assert_false(sum.is_inexact);
        assert_false(sum.is_unbalanced);
}

/* One that was lost has only its gaps, and what else it has lost is not known. */
static void test_stream_without_end(void **state) {
        host_sum_take_end(&sum, "stopped 1 1");
        host_sum_take_sum(&sum, "1 1 0");
        assert_false(sum.is_inexact);
        sum.has_end = false;
        host_sum_take_sum(&sum, "5 5 3");
        expect_lost(0, "outbox", 3);
        assert_null(sum.reason);
        assert_true(sum.is_inexact);
        host_sum_take_sum(&sum, "5 5 2 relay_queue"); /* of the next one */
        expect_lost(1, "relay_queue", 2);
}

static void test_what_is_not_right(void **state) {
        host_sum_take_end(&sum, "stopped 0 0");
        assert_true(sum.is_inexact);
        assert_true(sum.is_unbalanced);
        host_sum_take_end(&sum, "stopped");
        host_sum_take_sum(&sum, "1 2");
        assert_int_equal(sum.printed, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_teardown(test_two_streams, end),
                cmocka_unit_test_teardown(test_stream_without_end, end),
                cmocka_unit_test_teardown(test_what_is_not_right, end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
