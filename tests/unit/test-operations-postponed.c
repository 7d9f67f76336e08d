/* Whose requests wait until what they have made others do is paid for, and when main is woken for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/operations-rig.h"

/* Of uid 1000 requests wait until then, CLOCK_MONOTONIC. */
static nsec_t paid_at;

static bool postpones(void *userdata, uid_t uid, nsec_t now, nsec_t *ret_until) {
        assert_ptr_equal(userdata, running);
        assert_int_not_equal(uid, 0);
        if (uid != 1000 || now >= paid_at)
                return false;
        *ret_until = paid_at;
        return true;
}

static void let_pay(Rig *rig, nsec_t in) {
        rig->o.postpones = postpones;
        rig->o.postponer = rig;
        paid_at = clock_now(CLOCK_MONOTONIC) + in;
}

/* What has run since, at one call. */
static const char *run_once(Rig *rig) {
        rig->journal[0] = '\0';
        assert_int_equal(operations_run(&rig->o), 0);
        return rig->journal;
}

static void test_postponed(void **state) {
        Rig *rig = *state;
        Connection a = peer_of(rig, 'a', 1000, false), b = peer_of(rig, 'b', 1001, false), root = peer_of(rig, 'r', 0, true),
                   trial = peer_of(rig, 't', 1000, false);

        let_pay(rig, 3600 * NSEC_PER_SEC);
        ask(rig, &a, OPERATION_CHANGE);
        ask(rig, &trial, OPERATION_TRIAL);
        assert_true(operations_are_waiting(&rig->o)); /* as far as is known */
        assert_string_equal(run_once(rig), "");
        assert_false(operations_are_waiting(&rig->o)); /* nobody turns in circles */
        ask(rig, &b, OPERATION_CHANGE);
        assert_string_equal(run_all(rig), "b");
        ask(rig, &root, OPERATION_CHANGE);
        assert_string_equal(run_all(rig), "r");
        operations_set_due(&rig->o, CHANGE_LOSSES);
        assert_string_equal(run_all(rig), "9");
        operations_drop(&rig->o, a.id);
        assert_string_equal(run_all(rig), "");
        paid_at = 0;
        ask(rig, &a, OPERATION_CHANGE); /* as another one would */
        assert_string_equal(run_all(rig), "ta");
}

/* The loop says when. */
static void test_paid(void **state) {
        Rig *rig = *state;
        Connection a = peer_of(rig, 'a', 1000, false);

        let_pay(rig, NSEC_PER_MSEC);
        ask(rig, &a, OPERATION_CHANGE);
        for (rig->journal[0] = '\0'; rig->journal[0] == '\0';) {
                assert_int_equal(operations_run(&rig->o), 0);
                if (!operations_are_waiting(&rig->o) && rig->journal[0] == '\0')
                        assert_true(sd_event_run(rig->event, UINT64_MAX) > 0);
        }
        assert_string_equal(rig->journal, "a");
        assert_true(clock_now(CLOCK_MONOTONIC) >= paid_at);
}

static int check_and_pay_later(Rig *rig, Connection *c) {
        uint64_t uid = 0;

        assert_true(operations_uid(&rig->o, &uid) && uid == c->peer.uid);
        paid_at = clock_now(CLOCK_MONOTONIC) + 3600 * NSEC_PER_SEC;
        return 0;
}

static int give_way(Rig *rig, Connection *c) {
        return checkpoint(&rig->e);
}

/* What has run was too much: the next one waits, also in the middle of a trial. */
static void test_postponed_meanwhile(void **state) {
        Rig *rig = *state;
        Connection a[2], trial = peer_of(rig, 't', 1001, false);

        for (int i = 0; i < 2; i++)
                a[i] = peer_of(rig, (char)('1' + i), 1000, false);
        let_pay(rig, 0);
        a[0].in_turn = check_and_pay_later;
        trial.in_turn = give_way;
        ask(rig, &trial, OPERATION_TRIAL);
        ask(rig, &a[0], OPERATION_CHANGE);
        ask(rig, &a[1], OPERATION_CHANGE);
        assert_string_equal(run_all(rig), "t1");
        assert_ptr_equal(rig->o.waiting->connection, &a[1]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_postponed, setup, teardown),
                cmocka_unit_test_setup_teardown(test_paid, setup, teardown),
                cmocka_unit_test_setup_teardown(test_postponed_meanwhile, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
