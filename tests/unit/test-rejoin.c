/*
 * A reader that is stopped, by a debugger or a busy host, on a played kernel: in each place of each change. perfd goes on
 * without it, closes nothing that it may still look at, and brings it up to date when it answers.
 */
#include "tests/unit/supervisor-rig.h"

#include <errno.h>

#include "daemon/base/cleanup.h"
#include "daemon/supervisor/changes/changes.h"
#include "daemon/supervisor/readers/publish.h"

#define SLOT 1u
#define SOFTWARE "page-faults"
#define MORE "minor-faults"

static const char *const both[] = { RIG_TRACEPOINT, SOFTWARE };
static const char *const more[] = { MORE };

/* ---- what is done ------------------------------------------------------------------------------------------------ */

static int prepare(Rig *rig) {
        return rig_add(rig, both, 2);
}

static int add(Rig *rig) {
        return rig_add(rig, more, 1);
}

static int remove_tracepoint(Rig *rig) {
        return rig_remove(rig, RIG_TRACEPOINT);
}

static int set_filter(Rig *rig) {
        return changes_set_filter(&rig->supervisor.changes, RIG_TRACEPOINT, "vec == 3", &rig->e);
}

static int resize(Rig *rig) {
        return changes_resize_rings(&rig->supervisor.changes, 32 * 1024, &rig->e);
}

static int cut(Rig *rig) {
        return readers_cut(&rig->supervisor.readers, NULL);
}

static bool is_stalled(const Rig *rig) {
        return reader_is_stalled(&rig->supervisor.readers.answering.readers[SLOT]);
}

static int answer(Rig *rig) {
        played_continue_reader(&rig->supervisor.readers.by_slot[SLOT]);
        return changes_on_answers(&rig->supervisor.changes);
}

/* ---- in each place ----------------------------------------------------------------------------------------------- */

/* What is to be seen when the reader has answered. r: what the change said, refused or 0. */
typedef void (*Outcome)(Rig *rig, int r);

static bool stall_one(unsigned n, RigChange change, Outcome outcome) {
        Readers *readers;
        bool has_stalled;
        Rig rig;
        int r;

        rig_start(&rig);
        readers = &rig.supervisor.readers;
        assert_int_equal(prepare(&rig), 0);
        played_occur(3);
        played_stop_reader(SLOT, n);
        r = change(&rig);
        assert_true(r >= 0);
        has_stalled = is_stalled(&rig);
        assert_int_equal(has_stalled, played_has_stopped(SLOT));
        assert_int_equal(readers->answering.n, has_stalled);
        if (has_stalled)
                assert_int_equal(answer(&rig), 0);
        played_stop_reader(SLOT, 0);
        assert_false(is_stalled(&rig));
        assert_int_equal(readers->answering.n + readers->answering.n_fds, 0);
        assert_null(readers->answering.deferred);
        outcome(&rig, r);
        rig_stop(&rig);
        return has_stalled;
}

/* In how many. */
static unsigned stall_each(RigChange change, Outcome outcome) {
        unsigned n = 0;

        while (stall_one(n + 1, change, outcome))
                n++;
        return n;
}

static void check_old(Rig *rig) {
        rig_check_opened(rig, RIG_TRACEPOINT, true);
        rig_check_opened(rig, SOFTWARE, true);
        rig_check_carriers(rig, true);
        assert_int_equal(played_count_open(), 3 * RIG_CPUS);
        played_occur(2);
        assert_int_equal(rig_occurred(rig, SOFTWARE), 5 * RIG_CPUS);
}

static void check_added(Rig *rig, int r) {
        assert_int_equal(r, 0);
        rig_check_opened(rig, MORE, true);
        assert_int_equal(rig_remove(rig, MORE), 0);
        check_old(rig);
}

static void check_removed(Rig *rig, int r) {
        assert_int_equal(r, 0);
        assert_null(rig_find(rig, RIG_TRACEPOINT));
        rig_check_opened(rig, SOFTWARE, true);
        assert_int_equal(played_count_open(), 2 * RIG_CPUS);
}

static void check_disabled(Rig *rig, int r) {
        assert_int_equal(r, 0);
        rig_check_opened(rig, RIG_TRACEPOINT, false);
        rig_check_opened(rig, SOFTWARE, false);
        rig_check_carriers(rig, false);
        assert_int_equal(rig_enable_all(rig), 0);
        check_old(rig);
}

static void check_filter(Rig *rig, int r) {
        assert_int_equal(r, 0);
        assert_string_equal(played_fd(rig_find(rig, RIG_TRACEPOINT)->opened.fds[SLOT].fd)->filter, "vec == 3");
        check_old(rig);
}

static void check_resized(Rig *rig, int r) {
        const Readers *readers = &rig->supervisor.readers;

        for (uint32_t slot = 0; slot < RIG_CPUS; slot++) {
                assert_int_equal(readers->by_slot[slot].ring.size, r == 0 ? 32 * 1024 : 16 * 1024);
                assert_null(readers->by_slot[slot].retiring.page);
                assert_int_equal(readers->by_slot[slot].carrier_fd, readers->carriers[slot]);
        }
        check_old(rig);
}

static void check_gone(Rig *rig, int r) {
        assert_int_equal(r, 0);
        assert_false(rig->supervisor.readers.online[SLOT]);
        assert_false(rig->supervisor.readers.by_slot[SLOT].thread.started);
        assert_int_equal(rig_find(rig, SOFTWARE)->opened.n, RIG_CPUS - 1);
        assert_int_equal(played_count_open(), 3 * (RIG_CPUS - 1));
        assert_int_equal(rig_cpu_comes(rig), 0);
        check_old(rig);
}

static void check_cut(Rig *rig, int r) {
        assert_int_equal(r, 0);
        check_old(rig);
}

static void test_each_place(void **state) {
        assert_true(stall_each(cut, check_cut) >= 1);
        assert_true(stall_each(add, check_added) >= 2);
        assert_true(stall_each(remove_tracepoint, check_removed) >= 3);
        assert_true(stall_each(rig_disable_all, check_disabled) >= 3);
        assert_true(stall_each(set_filter, check_filter) >= 5);
        assert_true(stall_each(resize, check_resized) >= 4);
        assert_true(stall_each(rig_cpu_goes, check_gone) >= 2);
}

/* ---- while it is stopped ----------------------------------------------------------------------------------------- */

static int prepare_stalled(Rig *rig) {
        int r = prepare(rig);

        played_stop_reader(SLOT, 1);
        return r == 0 ? cut(rig) : r;
}

/* Many changes, one of each, of which it hears at the end. */
static int change_all(Rig *rig) {
        int r = set_filter(rig);

        if (r == 0)
                r = add(rig);
        return r == 0 ? rig_remove(rig, SOFTWARE) : r;
}

static void test_changes_meanwhile(void **state) {
        const Registration *g;
        Rig rig;

        rig_start(&rig);
        assert_int_equal(prepare_stalled(&rig), 0);
        assert_true(is_stalled(&rig));
        assert_int_equal(changes_on_answers(&rig.supervisor.changes), 0); /* it does not */
        assert_true(is_stalled(&rig));
        assert_int_equal(resize(&rig), REFUSED_UNSUPPORTED);
        assert_string_equal(rig.e.reason, "reader-stalled");
        played_occur(4);
        assert_int_equal(change_all(&rig), 0);
        assert_int_equal(rig_occurred(&rig, MORE), 0);
        assert_int_equal(rig.supervisor.readers.answering.n_fds, 2 * RIG_CPUS); /* of what was replaced, and removed */
        assert_int_equal(answer(&rig), 0);
        assert_false(is_stalled(&rig));
        rig_check_opened(&rig, RIG_TRACEPOINT, true);
        rig_check_opened(&rig, MORE, true);
        assert_int_equal(played_count_open(), 3 * RIG_CPUS);
        g = rig_find(&rig, RIG_TRACEPOINT);
        assert_true(g->event->counters[SLOT].unsure);
        assert_false(g->event->counters[0].unsure);
        played_occur(1);
        assert_int_equal(rig_occurred(&rig, MORE), RIG_CPUS);
        rig_stop(&rig);
}

/* Its RIG_CPU goes while it is stopped, and perhaps is back before it answers: what it had open is dead, and made anew. */
static void test_hotplug_meanwhile(void **state) {
        for (int is_back = 0; is_back < 2; is_back++) {
                Rig rig;

                rig_start(&rig);
                assert_int_equal(prepare_stalled(&rig), 0);
                assert_int_equal(rig_cpu_goes(&rig), 0);
                assert_true(rig.supervisor.readers.answering.readers[SLOT].has_left);
                if (is_back)
                        assert_int_equal(rig_cpu_comes(&rig), 0);
                assert_int_equal(played_count_open(), 3 * RIG_CPUS); /* it may look at them */
                assert_int_equal(answer(&rig), 0);
                if (!is_back) {
                        assert_int_equal(played_count_open(), 3 * (RIG_CPUS - 1));
                        assert_int_equal(rig_cpu_comes(&rig), 0);
                }
                assert_int_equal(rig.supervisor.readers.answering.n, 0);
                rig_check_opened(&rig, RIG_TRACEPOINT, true);
                rig_check_carriers(&rig, true);
                played_occur(2);
                assert_int_equal(rig_occurred(&rig, SOFTWARE), 2 * RIG_CPUS);
                rig_stop(&rig);
        }
}

/* ---- what it is told when it answers fails ----------------------------------------------------------------------- */

static int prepare_changed(Rig *rig) {
        int r = prepare_stalled(rig);

        return r == 0 ? change_all(rig) : r;
}

/* What it cannot enable there is off there, and on again as soon as it is switched. What it cannot disable ends the process. */
static void check_rejoined(Rig *rig, PlayedCall call, int r, const char *before) {
        if (r < 0) {
                assert_int_equal(r, -ENOMEM);
                return;
        }
        assert_false(is_stalled(rig));
        assert_int_equal(played_count_open(), 3 * RIG_CPUS);
        assert_int_equal(rig_disable_all(rig), 0);
        assert_int_equal(rig_enable_all(rig), 0);
        rig_check_opened(rig, RIG_TRACEPOINT, true);
        rig_check_opened(rig, MORE, true);
}

static void test_answer_fails(void **state) {
        assert_int_equal(rig_fail_each_as(PLAYED_IOCTL, ENOMEM, prepare_changed, answer, check_rejoined), 2 * (2 + 1));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_place),
                cmocka_unit_test(test_changes_meanwhile),
                cmocka_unit_test(test_hotplug_meanwhile),
                cmocka_unit_test(test_answer_fails),
        };

        thread_become(THREAD_MAIN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
