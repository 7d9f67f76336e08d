/*
 * Whose turn it is on main: changes of no client, requests of several uids on both sockets, and trials that give way; with
 * connections that are played, of which operations know nothing but their peer and whether they are gone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/unit/operations-rig.h"

/* ---- who is next ------------------------------------------------------------------------------------------------- */

static void test_changes_first(void **state) {
        Rig *rig = *state;
        Connection c = peer_of(rig, 'a', 1000, false);

        ask(rig, &c, OPERATION_CHANGE);
        operations_set_due(&rig->o, CHANGE_LOSSES);
        operations_set_due(&rig->o, CHANGE_STOP);
        operations_set_due(&rig->o, CHANGE_HOTPLUG);
        operations_set_due(&rig->o, CHANGE_HOTPLUG); /* once more: it is made once */
        assert_string_equal(run_all(rig), "029a");
}

static void test_turns_of_uids(void **state) {
        Rig *rig = *state;
        Connection a[3], b = peer_of(rig, 'b', 1001, false), root = peer_of(rig, 'r', 0, true);

        for (int i = 0; i < 3; i++) {
                a[i] = peer_of(rig, (char)('1' + i), 1000, false);
                ask(rig, &a[i], OPERATION_CHANGE);
        }
        ask(rig, &b, OPERATION_CHANGE);
        ask(rig, &root, OPERATION_CHANGE); /* of the control socket: before all */
        assert_string_equal(run_all(rig), "r1b23");
}

static void test_looks_every_second_time(void **state) {
        Rig *rig = *state;
        Connection look[3], change[3];

        for (int i = 0; i < 3; i++) {
                change[i] = peer_of(rig, 'c', 1000 + (uid_t)i, false);
                look[i] = peer_of(rig, 'l', 2000 + (uid_t)i, false);
                ask(rig, &change[i], OPERATION_CHANGE);
                ask(rig, &look[i], OPERATION_LOOK);
        }
        assert_string_equal(run_all(rig), "lclclc");
}

static void test_dropped(void **state) {
        Rig *rig = *state;
        Connection a = peer_of(rig, 'a', 1000, false), b = peer_of(rig, 'b', 1000, false);

        ask(rig, &a, OPERATION_CHANGE);
        ask(rig, &b, OPERATION_CHANGE);
        operations_drop(&rig->o, a.id);
        operations_drop(&rig->o, a.id); /* it is not there any more */
        assert_string_equal(run_all(rig), "b");
}

static void test_trials_of_a_uid(void **state) {
        Rig *rig = *state;
        Connection mine[17], theirs = peer_of(rig, 't', 1001, false), root = peer_of(rig, 'r', 0, true);
        Explanation e = EXPLANATION_NULL;

        for (int i = 0; i < 16; i++) {
                mine[i] = peer_of(rig, 'm', 1000, false);
                ask(rig, &mine[i], OPERATION_TRIAL);
        }
        mine[16] = peer_of(rig, 'x', 1000, false);
        assert_int_equal(operations_add(&rig->o, &mine[16], OPERATION_TRIAL, &e), REFUSED_EXHAUSTED);
        assert_string_equal(e.reason, "too-many-requests");
        ask(rig, &theirs, OPERATION_TRIAL);
        ask(rig, &root, OPERATION_TRIAL);
        assert_string_equal(run_all(rig), "rmtmmmmmmmmmmmmmmm");
}

/* ---- what runs --------------------------------------------------------------------------------------------------- */

static int check(Rig *rig, Connection *c) {
        assert_true(operations_has_turn(&rig->o, c));
        if (rig->due_in_between >= 0)
                operations_set_due(&rig->o, (ChangeKind)rig->due_in_between);
        rig->checked = checkpoint(&rig->e);
        return 0;
}

static int try_with_notes(Rig *rig, Connection *c) {
        assert_true(operations_is_trial(&rig->o));
        notes_add_duplicates(&rig->o.notes, 7, 2);
        rig->o.n_planned = 5;
        check(rig, c);
        assert_true(operations_has_turn(&rig->o, c)); /* as it was */
        assert_true(operations_is_trial(&rig->o));
        assert_int_equal(rig->o.n_planned, 5);
        assert_int_equal(rig->o.notes.n_duplicates, 2);
        journal_add(rig, '.');
        return 0;
}

/* What came while it runs, and is no trial, runs in its middle; another trial waits. */
static void test_trial_gives_way(void **state) {
        Rig *rig = *state;
        Connection trial = peer_of(rig, 't', 1000, false), second = peer_of(rig, 'u', 1001, false);

        trial.in_turn = try_with_notes;
        rig->due_in_between = CHANGE_CGROUPS;
        ask(rig, &trial, OPERATION_TRIAL);
        ask(rig, &second, OPERATION_TRIAL);
        assert_string_equal(run_all(rig), "t4.u");
        assert_int_equal(rig->checked, 0);
}

static int try_pinned(Rig *rig, Connection *c) {
        operations_set_pinned(&rig->o, true);
        check(rig, c);
        operations_set_pinned(&rig->o, false);
        journal_add(rig, '.');
        return 0;
}

static void test_pinned_trial(void **state) {
        Rig *rig = *state;
        Connection trial = peer_of(rig, 't', 1000, false);

        trial.in_turn = try_pinned;
        rig->due_in_between = CHANGE_CGROUPS;
        ask(rig, &trial, OPERATION_TRIAL);
        assert_string_equal(run_all(rig), "t.4");
}

/* A change is not suspended: what is due waits for its end. */
static void test_change_is_whole(void **state) {
        Rig *rig = *state;
        Connection c = peer_of(rig, 'c', 1000, true);

        c.in_turn = check;
        rig->due_in_between = CHANGE_CGROUPS;
        ask(rig, &c, OPERATION_CHANGE);
        assert_string_equal(run_all(rig), "c4");
        assert_int_equal(rig->checked, 0);
}

static int leave(Rig *rig, Connection *c) {
        c->is_gone = true;
        return check(rig, c);
}

static int leave_finally(Rig *rig, Connection *c) {
        operations_set_final(&rig->o);
        return leave(rig, c);
}

static void test_cancelled(void **state) {
        Rig *rig = *state;
        Connection gone = peer_of(rig, 'g', 1000, true), final = peer_of(rig, 'f', 1000, true), stopped = peer_of(rig, 's', 1000, true);

        gone.in_turn = leave;
        ask(rig, &gone, OPERATION_CHANGE);
        assert_string_equal(run_all(rig), "g");
        assert_int_equal(rig->checked, REFUSED_CANCELLED);
        assert_string_equal(rig->e.reason, "cancelled");

        final.in_turn = leave_finally;
        ask(rig, &final, OPERATION_CHANGE);
        assert_string_equal(run_all(rig), "f");
        assert_int_equal(rig->checked, 0);

        stopped.in_turn = check;
        rig->due_in_between = CHANGE_STOP;
        ask(rig, &stopped, OPERATION_CHANGE);
        assert_string_equal(run_all(rig), "s0");
        assert_int_equal(rig->checked, REFUSED_CANCELLED);
        assert_string_equal(rig->e.reason, "shutting-down");
}

static Connection glancer;

static int be_glanced_at(Rig *rig, Connection *c) {
        ask(rig, &glancer, OPERATION_GLANCE);
        check(rig, c);
        journal_add(rig, '.');
        return 0;
}

static int glance(Rig *rig, Connection *c) {
        assert_false(operations_has_turn(&rig->o, c)); /* another's */
        assert_true(operations_is_between(&rig->o));
        assert_int_equal(checkpoint(&rig->e), 0); /* has none of its own */
        return 0;
}

static void test_glance_in_the_middle(void **state) {
        Rig *rig = *state;
        Connection c = peer_of(rig, 'c', 1000, true);

        glancer = peer_of(rig, 'l', 1001, false);
        glancer.in_turn = glance;
        c.in_turn = be_glanced_at;
        ask(rig, &c, OPERATION_CHANGE);
        assert_string_equal(run_all(rig), "cl.");
}

static int wait_for_others(Rig *rig, Connection *c) {
        rig->checked = operations_wait(&rig->o, 0, &rig->e);
        assert_int_equal(rig->n_going, 0);
        return 0;
}

/* The closer goes as long as main waits, and no longer. */
static void test_wait(void **state) {
        Rig *rig = *state;
        Connection c = peer_of(rig, 'c', 1000, true);

        assert_int_equal(operations_wait(&rig->o, 0, &rig->e), REFUSED_CANCELLED); /* nothing runs */
        assert_int_equal(rig->n_waits, 0);
        c.in_turn = wait_for_others;
        ask(rig, &c, OPERATION_CHANGE);
        assert_string_equal(run_all(rig), "c");
        assert_int_equal(rig->checked, 0);
        assert_int_equal(rig->n_waits, 1);
}

static int break_down(Rig *rig, Connection *c) {
        return -EPIPE;
}

static void test_fatal(void **state) {
        Rig *rig = *state;
        Connection c = peer_of(rig, 'c', 1000, true);

        rig->fails = -EIO;
        operations_set_due(&rig->o, CHANGE_RELOAD);
        assert_int_equal(operations_run(&rig->o), -EIO);
        rig->fails = 0;
        c.in_turn = break_down;
        ask(rig, &c, OPERATION_CHANGE);
        assert_int_equal(operations_run(&rig->o), -EPIPE);
        assert_false(operations_are_waiting(&rig->o));
        assert_int_equal(checkpoint(NULL), 0); /* nobody is served outside of operations */
}

static int on_broken(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        return -EPIPE;
}

/* What fails while others are served ends what runs, with the error that it was: the loop is over. */
static void test_fatal_in_between(void **state) {
        _cleanup_close_ int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
        Rig *rig = *state;
        Connection c = peer_of(rig, 'c', 1000, true);
        sd_event_source *broken = NULL;

        assert_true(fd >= 0);
        assert_true(sd_event_add_io(rig->event, &broken, fd, EPOLLIN, on_broken, NULL) >= 0);
        assert_true(sd_event_source_set_exit_on_failure(broken, true) >= 0);
        c.in_turn = check;
        ask(rig, &c, OPERATION_CHANGE);
        (void)operations_run(&rig->o);
        assert_int_equal(rig->checked, -EPIPE);
        sd_event_source_disable_unref(broken);
}

/* ---- fds --------------------------------------------------------------------------------------------------------- */

static void dispatch(Rig *rig) {
        assert_true(sd_event_run(rig->event, 0) >= 0);
}

static void test_listen(void **state) {
        _cleanup_close_ int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
        Rig *rig = *state;

        assert_true(fd >= 0);
        add_io_error = -ENOMEM;
        assert_int_equal(operations_listen(&rig->o, CHANGE_NOTICES, fd), -ENOMEM);
        add_io_error = 0;
        assert_int_equal(operations_listen(&rig->o, CHANGE_NOTICES, fd), 0);
        assert_false(operations_are_waiting(&rig->o));
        dispatch(rig);
        assert_true(operations_are_waiting(&rig->o));
        dispatch(rig); /* it is readable still, and off */
        assert_string_equal(run_all(rig), "3");
        dispatch(rig);
        assert_string_equal(run_all(rig), "3"); /* on again */
        dispatch(rig);
        operations_unlisten(&rig->o, CHANGE_NOTICES);
        assert_string_equal(run_all(rig), "");
        dispatch(rig);
        assert_false(operations_are_waiting(&rig->o));
}

/* One that fails leaves its fd off: perfd ends with it. */
static void test_listen_fails(void **state) {
        _cleanup_close_ int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
        Rig *rig = *state;

        assert_true(fd >= 0);
        assert_int_equal(operations_listen(&rig->o, CHANGE_NOTICES, fd), 0);
        dispatch(rig);
        rig->fails = -EIO;
        assert_int_equal(operations_run(&rig->o), -EIO);
        dispatch(rig);
        assert_false(operations_are_waiting(&rig->o));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_changes_first, setup, teardown),
                cmocka_unit_test_setup_teardown(test_turns_of_uids, setup, teardown),
                cmocka_unit_test_setup_teardown(test_looks_every_second_time, setup, teardown),
                cmocka_unit_test_setup_teardown(test_dropped, setup, teardown),
                cmocka_unit_test_setup_teardown(test_trials_of_a_uid, setup, teardown),
                cmocka_unit_test_setup_teardown(test_trial_gives_way, setup, teardown),
                cmocka_unit_test_setup_teardown(test_pinned_trial, setup, teardown),
                cmocka_unit_test_setup_teardown(test_change_is_whole, setup, teardown),
                cmocka_unit_test_setup_teardown(test_cancelled, setup, teardown),
                cmocka_unit_test_setup_teardown(test_glance_in_the_middle, setup, teardown),
                cmocka_unit_test_setup_teardown(test_wait, setup, teardown),
                cmocka_unit_test_setup_teardown(test_fatal, setup, teardown),
                cmocka_unit_test_setup_teardown(test_fatal_in_between, setup, teardown),
                cmocka_unit_test_setup_teardown(test_listen, setup, teardown),
                cmocka_unit_test_setup_teardown(test_listen_fails, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
