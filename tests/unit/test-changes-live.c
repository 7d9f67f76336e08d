/*
 * Changes of events that run, on a played kernel: another filter, period or ring, and one more CPU. The occurrences of both
 * generations are counted once; and whichever call of the kernel is refused, everything is as before.
 */
#include "tests/unit/supervisor-rig.h"

#include <errno.h>

#include "daemon/base/cleanup.h"
#include "daemon/supervisor/changes/changes.h"
#include "daemon/supervisor/changes/extend.h"
#include "daemon/supervisor/events/open.h"

#define FILTER "vec == 3"
#define SIZE ((size_t)32 * 1024)
#define SOFTWARE "minor-faults"

static const char *const both[] = { RIG_TRACEPOINT, SOFTWARE };
static const char *const software[] = { SOFTWARE };
static const char *const off[] = { "!" RIG_TRACEPOINT };

/* ---- what is done ------------------------------------------------------------------------------------------------ */

static int prepare_both(Rig *rig) {
        return rig_add(rig, both, 2);
}

static int prepare_disabled(Rig *rig) {
        return rig_add(rig, off, 1);
}

/* It was added while the second CPU was offline, which is there now. */
static int prepare_extend(Rig *rig) {
        int r;

        rig->supervisor.readers.online[1] = false;
        r = rig_add(rig, software, 1);
        rig->supervisor.readers.online[1] = true;
        return r;
}

static int set_filter(Rig *rig) {
        return changes_set_filter(&rig->supervisor.changes, RIG_TRACEPOINT, FILTER, &rig->e);
}

static int set_period(Rig *rig) {
        return changes_set_period(&rig->supervisor.changes, SOFTWARE, 10, 0, &rig->e);
}

static int resize(Rig *rig) {
        return changes_resize_rings(&rig->supervisor.changes, SIZE, &rig->e);
}

static int extend(Rig *rig) {
        FdDelta delta = { .registration = rig_find(rig, SOFTWARE), .more = PERF_FD_SET_NULL };
        const uint32_t slot = 1;
        int r = events_open_on(&rig->supervisor.events, delta.registration, NULL, &slot, 1, &delta.more, &rig->e);

        if (r == 0)
                r = changes_extend(&rig->supervisor.changes, &delta, 1, &rig->e);
        fd_deltas_deinit(&rig->supervisor.changes, &delta, 1);
        return r;
}

/* ---- whole ------------------------------------------------------------------------------------------------------- */

static const PlayedFd *opened(Rig *rig, const char *name, uint32_t slot) {
        return played_fd(rig_find(rig, name)->opened.fds[slot].fd);
}

static void test_filter(void **state) {
        Rig rig;

        rig_start(&rig);
        assert_int_equal(prepare_both(&rig), 0);
        played_occur(5);
        assert_int_equal(set_filter(&rig), 0);
        rig_check_opened(&rig, RIG_TRACEPOINT, true);
        assert_string_equal(opened(&rig, RIG_TRACEPOINT, 1)->filter, FILTER);
        assert_int_equal(opened(&rig, RIG_TRACEPOINT, 1)->count, 0);
        assert_int_equal(opened(&rig, SOFTWARE, 1)->count, 5); /* it was not touched */
        played_occur(2);
        assert_int_equal(rig_occurred(&rig, RIG_TRACEPOINT), 7 * RIG_CPUS);
        assert_int_equal(changes_set_filter(&rig.supervisor.changes, RIG_TRACEPOINT, NULL, &rig.e), 0);
        assert_string_equal(opened(&rig, RIG_TRACEPOINT, 0)->filter, "");
        assert_int_equal(rig_occurred(&rig, RIG_TRACEPOINT), 7 * RIG_CPUS);
        assert_int_equal(played_count_open(), 3 * RIG_CPUS);
        assert_int_equal(changes_set_filter(&rig.supervisor.changes, SOFTWARE, FILTER, &rig.e), REFUSED_INVALID);
        rig_stop(&rig);
}

/* What occurs in the middle of a change is counted by both, and once in the ledger. */
static void test_occurs_meanwhile(void **state) {
        const struct {
                RigChange change;
                const char *name;
        } changes[] = { { set_filter, RIG_TRACEPOINT }, { resize, RIG_TRACEPOINT }, { resize, SOFTWARE } };

        for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
                uint64_t n;
                Rig rig;

                rig_start(&rig);
                assert_int_equal(prepare_both(&rig), 0);
                played_keep_occurring(true);
                assert_int_equal(changes[i].change(&rig), 0);
                n = played_keep_occurring(false);
                assert_true(n > 0);
                assert_int_equal(rig_occurred(&rig, changes[i].name), n * RIG_CPUS);
                rig_stop(&rig);
        }
}

/* It stays so, and its carriers are not enabled for it either. */
static void test_filter_of_disabled(void **state) {
        Rig rig;

        rig_start(&rig);
        assert_int_equal(prepare_disabled(&rig), 0);
        assert_int_equal(set_filter(&rig), 0);
        rig_check_opened(&rig, RIG_TRACEPOINT, false);
        rig_check_carriers(&rig, false);
        assert_string_equal(opened(&rig, RIG_TRACEPOINT, 0)->filter, FILTER);
        rig_stop(&rig);
}

static void test_period(void **state) {
        const Registration *g;
        Rig rig;

        rig_start(&rig);
        assert_int_equal(prepare_both(&rig), 0);
        g = rig_find(&rig, SOFTWARE);
        played_occur(4);
        assert_true(g->event->exact);
        assert_int_equal(set_period(&rig), 0);
        rig_check_opened(&rig, SOFTWARE, true);
        assert_int_equal(opened(&rig, SOFTWARE, 0)->attr.sample_period, 10);
        assert_false(g->event->exact);
        assert_int_equal(g->event->period, 10);
        assert_null(g->pending_layout);
        played_occur(6); /* of which nothing was written: the ledger knows samples only, from here on */
        assert_int_equal(rig_occurred(&rig, SOFTWARE), 4 * RIG_CPUS);
        assert_int_equal(played_count_open(), 3 * RIG_CPUS);
        rig_stop(&rig);
}

static void test_resize(void **state) {
        const Readers *readers;
        Rig rig;

        rig_start(&rig);
        readers = &rig.supervisor.readers;
        assert_int_equal(prepare_both(&rig), 0);
        played_occur(5);
        assert_int_equal(resize(&rig), 0);
        rig_check_opened(&rig, RIG_TRACEPOINT, true); /* into the new rings */
        rig_check_opened(&rig, SOFTWARE, true);
        rig_check_carriers(&rig, true);
        for (uint32_t slot = 0; slot < RIG_CPUS; slot++) {
                assert_int_equal(readers->by_slot[slot].ring.size, SIZE);
                assert_int_equal(readers->by_slot[slot].carrier_fd, readers->carriers[slot]);
                assert_null(readers->by_slot[slot].retiring.page);
        }
        played_occur(2);
        assert_int_equal(rig_occurred(&rig, RIG_TRACEPOINT), 7 * RIG_CPUS);
        assert_int_equal(played_count_open(), 3 * RIG_CPUS);
        rig_stop(&rig);
}

static void test_extend(void **state) {
        Rig rig;

        rig_start(&rig);
        assert_int_equal(prepare_extend(&rig), 0);
        assert_int_equal(rig_find(&rig, SOFTWARE)->opened.n, 1);
        played_occur(5);
        assert_int_equal(extend(&rig), 0);
        rig_check_opened(&rig, SOFTWARE, true);
        played_occur(2);
        assert_int_equal(rig_occurred(&rig, SOFTWARE), 5 + 2 * RIG_CPUS);
        rig_stop(&rig);
}

/* ---- refused ----------------------------------------------------------------------------------------------------- */

static void test_open_fails(void **state) {
        assert_int_equal(rig_fail_each(PLAYED_OPEN, EMFILE, prepare_both, set_filter), RIG_CPUS);
        assert_int_equal(rig_fail_each(PLAYED_OPEN, EMFILE, prepare_both, set_period), RIG_CPUS);
        assert_int_equal(rig_fail_each(PLAYED_OPEN, EMFILE, prepare_both, resize), 3 * RIG_CPUS);
        assert_int_equal(rig_fail_each(PLAYED_OPEN, EMFILE, prepare_extend, extend), 1);
}

/*
 * Each fd is redirected, asked for its id, and enabled twice; what it replaces is disabled twice. A new carrier is asked for its
 * id, and enabled as the other one is disabled.
 */
static void test_ioctl_fails(void **state) {
        assert_int_equal(rig_fail_each(PLAYED_IOCTL, ENOMEM, prepare_both, set_filter), RIG_CPUS * (3 + 2 + 2));
        assert_int_equal(rig_fail_each(PLAYED_IOCTL, ENOMEM, prepare_both, set_period), RIG_CPUS * (2 + 2 + 2));
        assert_int_equal(rig_fail_each(PLAYED_IOCTL, ENOMEM, prepare_both, resize), RIG_CPUS * (3 + 2 * (2 + 2 + 2)));
        assert_int_equal(rig_fail_each(PLAYED_IOCTL, ENOMEM, prepare_extend, extend), 2 + 2);
}

static void test_mmap_fails(void **state) {
        static const int errors[] = { EPERM, EAGAIN, ENOMEM };

        for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
                assert_int_equal(rig_fail_each(PLAYED_MMAP, errors[i], prepare_both, resize), RIG_CPUS);
}

/* Of what was replaced, and is disabled by then: the process ends. */
static void test_read_fails(void **state) {
        assert_int_equal(rig_fail_each(PLAYED_READ, EIO, prepare_both, set_filter), RIG_CPUS);
        assert_int_equal(rig_fail_each(PLAYED_READ, EIO, prepare_both, set_period), RIG_CPUS);
}

/*
 * The process ends; what was opened is closed all the same. That is not so in the last steps of the other changes, where fds that
 * nobody has any more are left to the end of the process.
 */
static void test_without_memory(void **state) {
        assert_true(rig_fail_each(PLAYED_ALLOCATION, ENOMEM, prepare_extend, extend) > 5);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_filter),
                cmocka_unit_test(test_occurs_meanwhile),
                cmocka_unit_test(test_filter_of_disabled),
                cmocka_unit_test(test_period),
                cmocka_unit_test(test_resize),
                cmocka_unit_test(test_extend),
                cmocka_unit_test(test_open_fails),
                cmocka_unit_test(test_ioctl_fails),
                cmocka_unit_test(test_mmap_fails),
                cmocka_unit_test(test_read_fails),
                cmocka_unit_test(test_without_memory),
        };

        thread_become(THREAD_MAIN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
