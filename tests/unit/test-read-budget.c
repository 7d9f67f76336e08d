/* How much of a CPU's time the reads of one uid may take, and in which order those go on that had to wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/model/read-budget.h"

#define MSEC NSEC_PER_MSEC
#define BEGAN (1000 * MSEC)

static void test_share(void **state) {
        _cleanup_(read_budget_unrefp) ReadBudget *b = read_budget_new(1000, 2);
        ReadAccount *a = &b->accounts[1];
        nsec_t spent = 0, now = BEGAN, due = BEGAN;

        /* one that is due a ms after the last time, and takes half of it */
        for (uint64_t pass = 1; pass <= 10000; pass++, now += MSEC)
                if (now >= due && read_account_permits(a, pass, due, now)) {
                        read_account_charge(a, now, MSEC / 2);
                        spent += MSEC / 2;
                        due = now + MSEC;
                }
        assert_in_range(spent, (10000 * MSEC - READ_BUDGET_AHEAD) / READ_BUDGET_SHARE - MSEC,
                        (10000 * MSEC + READ_BUDGET_AHEAD) / READ_BUDGET_SHARE + MSEC);
        assert_false(read_budget_is_settled(b, now));
        assert_true(read_budget_is_settled(b, now + READ_BUDGET_AHEAD + READ_BUDGET_SHARE * MSEC));
        assert_true(read_account_permits(&b->accounts[0], 1, now, now)); /* another CPU's */
}

/* What takes less than its share never waits. */
static void test_within_share(void **state) {
        _cleanup_(read_budget_unrefp) ReadBudget *b = read_budget_new(1000, 1);

        for (uint64_t pass = 1; pass <= 1000; pass++) {
                nsec_t now = BEGAN + pass * READ_BUDGET_AHEAD;

                for (int i = 0; i < 100; i++) { /* all at once */
                        assert_true(read_account_permits(&b->accounts[0], pass, now, now));
                        read_account_charge(&b->accounts[0], now, READ_BUDGET_AHEAD / READ_BUDGET_SHARE / 100);
                }
        }
}

/* It does not go on for each read that there is time for, but when it has all of its share again. */
static void test_pause(void **state) {
        _cleanup_(read_budget_unrefp) ReadBudget *b = read_budget_new(1000, 1);
        ReadAccount *a = &b->accounts[0];
        nsec_t over = BEGAN + READ_BUDGET_AHEAD + READ_BUDGET_SHARE;

        read_account_charge(a, BEGAN, READ_BUDGET_AHEAD / READ_BUDGET_SHARE + 1);
        assert_false(read_account_permits(a, 1, BEGAN, BEGAN));
        assert_int_equal(read_account_permits_from(a, BEGAN), over);
        assert_false(read_account_permits(a, 2, BEGAN, over - 1));
        assert_true(read_account_permits(a, 3, BEGAN, over));
        assert_int_equal(read_account_permits_from(a, over), over);
}

/* Each gets its turn, in the order in which they were due. */
static void test_order(void **state) {
        enum { N = 5 };
        _cleanup_(read_budget_unrefp) ReadBudget *b = read_budget_new(1000, 1);
        ReadAccount *a = &b->accounts[0];
        nsec_t due[N], now = BEGAN;
        unsigned n_reads[N] = { 0 };

        for (int i = 0; i < N; i++)
                due[i] = BEGAN;
        for (uint64_t pass = 1; pass <= 1000; pass++, now += 2 * READ_BUDGET_AHEAD)
                for (int i = 0; i < N; i++)
                        if (now >= due[i] && read_account_permits(a, pass, due[i], now)) {
                                read_account_charge(a, now, 3 * READ_BUDGET_AHEAD / READ_BUDGET_SHARE);
                                n_reads[i]++;
                                due[i] = now + MSEC;
                        }
        for (int i = 1; i < N; i++)
                assert_in_range(n_reads[i], n_reads[0] - 1, n_reads[0] + 1);
        assert_in_range(n_reads[0], 90, 120);
}

/* The one that has waited for longest is gone: the others wait for one pass more. */
static void test_gone(void **state) {
        _cleanup_(read_budget_unrefp) ReadBudget *b = read_budget_new(1000, 1);
        ReadAccount *a = &b->accounts[0];
        nsec_t later = BEGAN + 10 * READ_BUDGET_AHEAD;

        read_account_charge(a, BEGAN, 2 * READ_BUDGET_AHEAD / READ_BUDGET_SHARE);
        assert_false(read_account_permits(a, 1, BEGAN, BEGAN));
        assert_false(read_account_permits(a, 2, BEGAN + 1, later));
        assert_int_equal(read_account_permits_from(a, later), later);
        assert_true(read_account_permits(a, 3, BEGAN + 1, later));
}

static void test_told(void **state) {
        _cleanup_(read_budget_unrefp) ReadBudget *b = read_budget_new(1000, 1);

        assert_true(read_budget_is_to_tell(b, BEGAN));
        assert_false(read_budget_is_to_tell(b, BEGAN + 599 * NSEC_PER_SEC));
        assert_true(read_budget_is_to_tell(b, BEGAN + 600 * NSEC_PER_SEC));
}

/* What requests ask of a reader, and of main, has shares of its own; the one that was used most says how long they wait. */
static void test_requests(void **state) {
        _cleanup_(read_budget_unrefp) ReadBudget *b = read_budget_new(1000, 2);
        const nsec_t now = 10 * NSEC_PER_SEC;

        assert_true(read_budget_requests_from(b) <= now);
        read_account_charge_request(&b->accounts[1], now, REQUEST_BUDGET_AHEAD / REQUEST_BUDGET_SHARE);
        assert_true(read_budget_requests_from(b) <= now); /* so much at once */
        read_account_charge_request(&b->accounts[1], now, MSEC);
        assert_int_equal(read_budget_requests_from(b), now + REQUEST_BUDGET_SHARE * MSEC);
        read_account_charge_request(&b->accounts[0], now, MSEC); /* another CPU's */
        read_budget_charge_main(b, now, MSEC);
        assert_int_equal(read_budget_requests_from(b), now + REQUEST_BUDGET_SHARE * MSEC);
        read_budget_charge_main(b, now, REQUEST_BUDGET_AHEAD / REQUEST_BUDGET_SHARE_OF_MAIN + MSEC);
        assert_int_equal(read_budget_requests_from(b), now + 2 * REQUEST_BUDGET_SHARE_OF_MAIN * MSEC);
        assert_true(read_account_permits(&b->accounts[1], 1, now, now)); /* reads have their own */
        assert_false(read_budget_is_settled(b, now + REQUEST_BUDGET_AHEAD));
        assert_true(read_budget_is_settled(b, now + REQUEST_BUDGET_AHEAD + REQUEST_BUDGET_SHARE * MSEC));
        assert_true(read_budget_is_to_tell_of_requests(b, now));
        assert_false(read_budget_is_to_tell_of_requests(b, now + 599 * NSEC_PER_SEC));
        assert_true(read_budget_is_to_tell(b, now)); /* of reads */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_share), cmocka_unit_test(test_within_share), cmocka_unit_test(test_pause),
                cmocka_unit_test(test_order), cmocka_unit_test(test_gone), cmocka_unit_test(test_told),
                cmocka_unit_test(test_requests),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
