/*
 * Groups of counters on a played kernel: added whole or not at all, switched by their leader alone, replaced as one. What each of
 * them has counted is kept.
 */
#include "tests/unit/supervisor-rig.h"

#include <errno.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/supervisor/changes/changes.h"

#define GROUP "trio"
#define MEMBERS 3
#define ALONE "cpu-clock"

static const char *const all[] = { GROUP "={page-faults,minor-faults,major-faults}:S", ALONE };
static const char *const alone[] = { ALONE };
static const char *const off[] = { "!" GROUP "={page-faults,minor-faults,major-faults}:S" };

/* ---- what is done ------------------------------------------------------------------------------------------------ */

static int prepare_one(Rig *rig) {
        return rig_add(rig, alone, 1);
}

static int add_group(Rig *rig) {
        return rig_add(rig, all, 1);
}

static int prepare_both(Rig *rig) {
        return rig_add(rig, all, 2);
}

static int prepare_disabled(Rig *rig) {
        return rig_add(rig, off, 1);
}

static int enable(Rig *rig) {
        char name[] = GROUP, *const names[] = { name };
        EventRefs refs = { .n = 0 };
        int r = changes_enable(&rig->supervisor.changes, names, 1, true, &refs, &rig->e);

        event_refs_deinit(&refs);
        return r;
}

static int set_period(Rig *rig) {
        return changes_set_period(&rig->supervisor.changes, GROUP, 10, 0, &rig->e);
}

static int hotplug(Rig *rig, bool is_online) {
        played_set_cpu(RIG_CPU, is_online);
        played_tell_cpu(RIG_CPU, is_online);
        return changes_on_hotplug(&rig->supervisor.changes);
}

static int prepare_gone(Rig *rig) {
        int r = prepare_both(rig);

        return r == 0 ? hotplug(rig, false) : r;
}

/* Each CPU has a leader in its ring, and members that belong to it and are in none. */
static void check_group(Rig *rig, bool on) {
        const Registration *g = rig_find(rig, GROUP);
        const PerfFd *leader = NULL;

        assert_non_null(g);
        assert_int_equal(g->event->n_members, MEMBERS);
        assert_int_equal(g->opened.n, MEMBERS * RIG_CPUS);
        for (size_t i = 0; i < g->opened.n; i++) {
                const PerfFd *fd = &g->opened.fds[i];
                const PlayedFd *p = played_fd(fd->fd);

                leader = fd->member == 0 ? fd : leader;
                assert_non_null(leader);
                assert_int_equal(fd->slot, leader->slot);
                assert_int_equal(fd->member, i % MEMBERS);
                assert_int_equal(p->cpu, PLAYED_CPU + fd->slot);
                assert_int_equal(p->leader, fd->member == 0 ? -1 : leader->fd);
                assert_int_equal(p->output, fd->member == 0 ? rig->supervisor.readers.carriers[fd->slot] : -1);
                if (fd->member == 0)
                        assert_int_equal(p->is_on, on);
        }
}

/* What fds that are closed have counted. */
static uint64_t kept(Rig *rig, uint32_t slot, size_t member) {
        return rig_find(rig, GROUP)->event->closed_reads[slot * MEMBERS + member].value;
}

/* ---- whole ------------------------------------------------------------------------------------------------------- */

static void test_add_and_remove(void **state) {
        Rig rig;

        rig_start(&rig);
        assert_int_equal(prepare_both(&rig), 0);
        check_group(&rig, true);
        rig_check_carriers(&rig, true);
        played_occur(5);
        assert_int_equal(rig_occurred(&rig, GROUP), 5 * RIG_CPUS); /* those of the leader */
        assert_int_equal(rig_remove(&rig, GROUP), 0);
        rig_check_opened(&rig, ALONE, true);
        assert_int_equal(played_count_open(), 2 * RIG_CPUS);
        rig_stop(&rig);
}

static void test_switched(void **state) {
        Rig rig;

        rig_start(&rig);
        assert_int_equal(prepare_disabled(&rig), 0);
        check_group(&rig, false);
        played_occur(2);
        assert_int_equal(enable(&rig), 0);
        check_group(&rig, true);
        played_occur(3);
        assert_int_equal(rig_occurred(&rig, GROUP), 3 * RIG_CPUS);
        rig_stop(&rig);
}

/* As one; what each member had counted is added to what its successor counts. */
static void test_replaced(void **state) {
        Rig rig;

        rig_start(&rig);
        assert_int_equal(prepare_both(&rig), 0);
        played_occur(5);
        assert_int_equal(set_period(&rig), 0);
        check_group(&rig, true);
        assert_int_equal(played_count_open(), (MEMBERS + 2) * RIG_CPUS);
        for (uint32_t slot = 0; slot < RIG_CPUS; slot++)
                for (size_t member = 0; member < MEMBERS; member++)
                        assert_int_equal(kept(&rig, slot, member), 5);
        rig_stop(&rig);
}

static void test_hotplug(void **state) {
        Rig rig;

        rig_start(&rig);
        assert_int_equal(prepare_both(&rig), 0);
        played_occur(4);
        assert_int_equal(hotplug(&rig, false), 0);
        assert_int_equal(rig_find(&rig, GROUP)->opened.n, MEMBERS);
        for (size_t member = 0; member < MEMBERS; member++) {
                assert_int_equal(kept(&rig, 0, member), 0);
                assert_int_equal(kept(&rig, 1, member), 4);
        }
        assert_int_equal(rig_cpu_comes(&rig), 0);
        check_group(&rig, true);
        played_occur(1);
        assert_int_equal(rig_occurred(&rig, GROUP), 5 * RIG_CPUS);
        rig_stop(&rig);
}

/* What cannot be a group is known before anything is opened. */
static void test_names(void **state) {
        static const struct {
                const char *event, *says;
        } bad[] = {
                { GROUP "={page-faults," RIG_TRACEPOINT ",nothing}", "nothing" },
                { GROUP "={}", "{" },
                { GROUP "={page-faults", "brace" },
        };
        Rig rig;

        rig_start(&rig);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                assert_true(rig_add(&rig, &bad[i].event, 1) > 0);
                if (!strstr(rig.e.text, bad[i].says))
                        fail_msg("\"%s\" does not say \"%s\"", rig.e.text, bad[i].says);
        }
        assert_int_equal(played_count_open(), RIG_CPUS);
        rig_stop(&rig);
}

/* ---- refused ----------------------------------------------------------------------------------------------------- */

/* Whichever member it is. */
static void test_open_fails(void **state) {
        static const int errors[] = { EMFILE, ENOMEM, EACCES, EINVAL, ENOENT };

        for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
                assert_int_equal(rig_fail_each(PLAYED_OPEN, errors[i], prepare_one, add_group), MEMBERS * RIG_CPUS);
                assert_int_equal(rig_fail_each(PLAYED_OPEN, errors[i], prepare_both, set_period), MEMBERS * RIG_CPUS);
        }
}

/* A leader is redirected and enabled twice; each is asked for its id. What it replaces is disabled twice. */
static void test_ioctl_fails(void **state) {
        assert_int_equal(rig_fail_each(PLAYED_IOCTL, ENOMEM, prepare_one, add_group), RIG_CPUS * (MEMBERS + 1 + 2));
        assert_int_equal(rig_fail_each(PLAYED_IOCTL, ENOMEM, prepare_both, set_period), RIG_CPUS * (MEMBERS + 1 + 2 + 2));
        assert_int_equal(rig_fail_each(PLAYED_IOCTL, ENOMEM, prepare_disabled, enable), RIG_CPUS * (2 + 2));
}

/* What the members have counted cannot be read: the process ends. */
static void test_read_fails(void **state) {
        assert_int_equal(rig_fail_each(PLAYED_READ, EIO, prepare_both, set_period), MEMBERS * RIG_CPUS);
}

/* On a CPU that came a group is not there by half. */
static void check_whole_or_left_out(Rig *rig, PlayedCall call, int r, const char *before) {
        const Registration *g = rig_find(rig, GROUP);

        assert_int_equal(r, 0);
        if (g->opened.n == MEMBERS * RIG_CPUS) {
                check_group(rig, true);
                return;
        }
        assert_int_equal(g->opened.n, MEMBERS);
        assert_int_equal(played_count_open(), MEMBERS + 1 + 1 + (rig->supervisor.readers.online[1] ? 2 : 0));
}

static void test_left_out(void **state) {
        assert_int_equal(rig_fail_each_as(PLAYED_OPEN, EMFILE, prepare_gone, rig_cpu_comes, check_whole_or_left_out), 1 + MEMBERS + 1);
        assert_true(rig_fail_each_as(PLAYED_IOCTL, ENOMEM, prepare_gone, rig_cpu_comes, check_whole_or_left_out) > 10);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_add_and_remove),
                cmocka_unit_test(test_switched),
                cmocka_unit_test(test_replaced),
                cmocka_unit_test(test_hotplug),
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_open_fails),
                cmocka_unit_test(test_ioctl_fails),
                cmocka_unit_test(test_read_fails),
                cmocka_unit_test(test_left_out),
        };

        thread_become(THREAD_MAIN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
