/*
 * CPUs that go and come while events run, on a played kernel. What was counted before is kept, what is enabled is counted again on
 * a CPU that came. Nothing of it can be refused: what cannot be opened there is left out, everything else goes on, and the next
 * time that the CPU comes all of it is there.
 */
#include "tests/unit/supervisor-rig.h"

#include <errno.h>

#include "daemon/base/cleanup.h"
#include "daemon/supervisor/changes/changes.h"

#define SLOT 1u
#define EVENTS 3
#define OFF "minor-faults"

static const char *const events[EVENTS] = { RIG_TRACEPOINT, "page-faults", "!" OFF };

/* ---- what is done ------------------------------------------------------------------------------------------------ */

static int prepare(Rig *rig) {
        return rig_add(rig, events, EVENTS);
}

static int prepare_gone(Rig *rig) {
        int r = prepare(rig);

        return r == 0 ? rig_cpu_goes(rig) : r;
}

static bool is_opened(Rig *rig, const char *name, uint32_t slot) {
        const Registration *g = rig_find(rig, name);

        for (size_t i = 0; i < g->opened.n; i++)
                if (g->opened.fds[i].slot == slot)
                        return true;
        return false;
}

static void check_all(Rig *rig) {
        rig_check_opened(rig, RIG_TRACEPOINT, true);
        rig_check_opened(rig, "page-faults", true);
        rig_check_opened(rig, OFF, false);
        rig_check_carriers(rig, true);
        assert_int_equal(played_count_open(), (EVENTS + 1) * RIG_CPUS);
}

static void check_gone(Rig *rig) {
        const Readers *readers = &rig->supervisor.readers;

        assert_false(readers->online[SLOT]);
        assert_int_equal(readers->carriers[SLOT], -1);
        assert_null(readers->by_slot[SLOT].ring.page);
        assert_false(readers->by_slot[SLOT].thread.started);
        for (size_t i = 0; i < EVENTS; i++)
                assert_false(is_opened(rig, events[i] + (events[i][0] == '!'), SLOT));
        assert_int_equal(played_count_open(), (EVENTS + 1) * (RIG_CPUS - 1));
}

/* ---- whole ------------------------------------------------------------------------------------------------------- */

static void test_go_and_come(void **state) {
        Rig rig;

        rig_start(&rig);
        assert_int_equal(prepare(&rig), 0);
        played_occur(5);
        assert_int_equal(rig_cpu_goes(&rig), 0);
        check_gone(&rig);
        played_occur(2); /* on the other one */
        assert_int_equal(rig_occurred(&rig, RIG_TRACEPOINT), 5 * RIG_CPUS + 2);
        assert_int_equal(rig_cpu_comes(&rig), 0);
        check_all(&rig);
        assert_int_equal(rig_occurred(&rig, RIG_TRACEPOINT), 5 * RIG_CPUS + 2);
        played_occur(3);
        assert_int_equal(rig_occurred(&rig, RIG_TRACEPOINT), 8 * RIG_CPUS + 2);
        assert_int_equal(rig_occurred(&rig, OFF), 0);
        rig_stop(&rig);
}

/* As it is to be everywhere now, not as it was when the CPU went. */
static void test_changes_meanwhile(void **state) {
        static const char *const more[] = { "cpu-clock" };
        Rig rig;

        rig_start(&rig);
        assert_int_equal(prepare_gone(&rig), 0);
        assert_int_equal(rig_add(&rig, more, 1), 0);
        assert_int_equal(rig_find(&rig, more[0])->opened.n, RIG_CPUS - 1);
        assert_int_equal(changes_set_filter(&rig.supervisor.changes, RIG_TRACEPOINT, "vec == 3", &rig.e), 0);
        assert_int_equal(changes_resize_rings(&rig.supervisor.changes, 32 * 1024, &rig.e), 0);
        rig.supervisor.settings.config->ring_size = 32 * 1024; /* as who changes it notes it */
        assert_int_equal(rig_cpu_comes(&rig), 0);
        rig_check_opened(&rig, more[0], true);
        rig_check_opened(&rig, RIG_TRACEPOINT, true);
        assert_string_equal(played_fd(rig_find(&rig, RIG_TRACEPOINT)->opened.fds[SLOT].fd)->filter, "vec == 3");
        assert_int_equal(rig.supervisor.readers.by_slot[SLOT].ring.size, 32 * 1024);
        rig_stop(&rig);
}

/* It was back before its word was heard: what it had open is dead, and opened anew. */
static void test_back_already(void **state) {
        Rig rig;

        rig_start(&rig);
        assert_int_equal(prepare(&rig), 0);
        played_occur(5);
        played_set_cpu(RIG_CPU, false);
        played_set_cpu(RIG_CPU, true);
        played_tell_cpu(RIG_CPU, false);
        played_tell_cpu(RIG_CPU, true);
        assert_int_equal(changes_on_hotplug(&rig.supervisor.changes), 0);
        check_all(&rig);
        played_occur(2);
        assert_int_equal(rig_occurred(&rig, "page-faults"), 7 * RIG_CPUS);
        rig_stop(&rig);
}

/* A word of a CPU that perfd does not know, and one of what it has seen already, change nothing. */
static void test_words_in_vain(void **state) {
        _cleanup_free_ char *before = NULL, *after = NULL;
        Rig rig;

        rig_start(&rig);
        assert_int_equal(prepare(&rig), 0);
        before = rig_picture(&rig);
        played_tell_cpu(RIG_CPU, true);
        played_tell_cpu(PLAYED_CPU + RIG_CPUS, false);
        assert_int_equal(changes_on_hotplug(&rig.supervisor.changes), 0);
        after = rig_picture(&rig);
        assert_string_equal(after, before);
        rig_stop(&rig);
}

/* Words were lost: of which CPU is found out by whose carrier stands still. The others are not touched. */
static void test_words_lost(void **state) {
        int stayed;
        Rig rig;

        rig_start(&rig);
        assert_int_equal(prepare(&rig), 0);
        stayed = rig.supervisor.readers.carriers[0];
        played_occur(5);
        played_set_cpu(RIG_CPU, false);
        played_set_cpu(RIG_CPU, true);
        played_lose_words();
        assert_int_equal(changes_on_hotplug(&rig.supervisor.changes), 0);
        check_all(&rig);
        assert_int_equal(rig.supervisor.readers.carriers[0], stayed);
        assert_int_equal(played_fd(stayed)->id, 1);
        played_occur(2);
        assert_int_equal(rig_occurred(&rig, "page-faults"), 7 * RIG_CPUS);
        rig_stop(&rig);
}

/* ---- with something that fails ----------------------------------------------------------------------------------- */

/* Whatever was left out: when the CPU has gone and come once more it is all there, and what the other one has was not touched. */
static void check_next_time(Rig *rig, PlayedCall call, int r, const char *before) {
        const Registration *g = rig_find(rig, "page-faults");

        assert_int_equal(r, 0);
        assert_true(g->enabled);
        assert_int_equal(g->opened.fds[0].slot, 0);
        assert_true(played_fd(g->opened.fds[0].fd)->is_on);
        assert_int_equal(rig_occurred(rig, "page-faults"), 3);
        assert_int_equal(rig_cpu_goes(rig), 0);
        check_gone(rig);
        assert_int_equal(rig_cpu_comes(rig), 0);
        check_all(rig);
        played_occur(2);
        assert_int_equal(rig_occurred(rig, "page-faults"), 3 + 2 * RIG_CPUS);
}

/* Its carrier, without which the CPU is not observed, and each event. */
static void test_open_fails(void **state) {
        static const int errors[] = { EMFILE, ENOMEM, EACCES };

        for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
                assert_int_equal(rig_fail_each_as(PLAYED_OPEN, errors[i], prepare_gone, rig_cpu_comes, check_next_time), 1 + EVENTS);
}

static void test_mmap_fails(void **state) {
        assert_int_equal(rig_fail_each_as(PLAYED_MMAP, EPERM, prepare_gone, rig_cpu_comes, check_next_time), 1);
}

/*
 * The carrier is asked for its id and enabled twice; events are redirected, asked for theirs, and those that are on enabled twice:
 * of which one that is refused leaves the other one alone.
 */
static void test_ioctl_fails(void **state) {
        assert_int_equal(rig_fail_each_as(PLAYED_IOCTL, ENOMEM, prepare_gone, rig_cpu_comes, check_next_time), 1 + 2 + 2 * EVENTS + 2 * 2);
}

static void test_one_is_left_out(void **state) {
        Rig rig;

        rig_start(&rig);
        assert_int_equal(prepare_gone(&rig), 0);
        played_fail(PLAYED_OPEN, 3, EMFILE);
        assert_int_equal(rig_cpu_comes(&rig), 0);
        assert_true(played_has_failed());
        played_fail(PLAYED_OPEN, 0, 0);
        assert_int_equal(played_count_open(), (EVENTS + 1) * RIG_CPUS - 1);
        assert_false(is_opened(&rig, "page-faults", SLOT)); /* the second one */
        rig_check_opened(&rig, RIG_TRACEPOINT, true);
        rig_check_opened(&rig, OFF, false);
        rig_stop(&rig);
}

/* What events of it have counted is needed: the process ends, or it has gone. What the carrier lost is done without. */
static void check_fatal_or_gone(Rig *rig, PlayedCall call, int r, const char *before) {
        if (r == 0)
                check_gone(rig);
        else
                assert_int_equal(r, call == PLAYED_READ ? -EIO : -ENOMEM);
}

static void check_fatal_or_there(Rig *rig, PlayedCall call, int r, const char *before) {
        if (r == 0)
                check_next_time(rig, call, r, before);
        else
                assert_int_equal(r, -ENOMEM);
}

static void test_fatal(void **state) {
        assert_int_equal(rig_fail_each_as(PLAYED_IOCTL, ENOMEM, prepare, rig_cpu_goes, check_fatal_or_gone), EVENTS * 2);
        assert_int_equal(rig_fail_each_as(PLAYED_READ, EIO, prepare, rig_cpu_goes, check_fatal_or_gone), EVENTS + 1);
        assert_true(rig_fail_each_as(PLAYED_ALLOCATION, ENOMEM, prepare_gone, rig_cpu_comes, check_fatal_or_there) > 20);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_go_and_come),
                cmocka_unit_test(test_changes_meanwhile),
                cmocka_unit_test(test_back_already),
                cmocka_unit_test(test_words_in_vain),
                cmocka_unit_test(test_words_lost),
                cmocka_unit_test(test_open_fails),
                cmocka_unit_test(test_mmap_fails),
                cmocka_unit_test(test_ioctl_fails),
                cmocka_unit_test(test_one_is_left_out),
                cmocka_unit_test(test_fatal),
        };

        thread_become(THREAD_MAIN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
