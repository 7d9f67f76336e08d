/*
 * Events on processes, on a played kernel: of all threads and children that are there, on each CPU. Who ends meanwhile is left out;
 * that nobody is there is refused.
 */
#include "tests/unit/supervisor-rig.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/supervisor/changes/changes.h"

#define EVENT "page-faults"

static pid_t parent, child, gone; /* of this test: a process and its child, and one that has ended */

/* Also if this test is ended: who runs it waits for all that have its stdout. */
static void end_with_parent(void) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                _exit(1);
}

/* It has a child, which is told by a byte, and both wait for their end. */
static void run_parent(int tell) {
        pid_t own = fork();

        end_with_parent();
        if (own > 0 && write(tell, &own, sizeof(own)) != sizeof(own))
                _exit(1);
        for (;;)
                pause();
}

static int start_processes(void **state) {
        int fds[2];

        if (pipe(fds) < 0)
                return -1;
        parent = fork();
        if (parent == 0)
                run_parent(fds[1]);
        gone = fork();
        if (gone == 0)
                _exit(0);
        waitpid(gone, NULL, 0);
        return read(fds[0], &child, sizeof(child)) == sizeof(child) ? 0 : -1;
}

static int end_processes(void **state) {
        kill(child, SIGKILL);
        kill(parent, SIGKILL);
        return waitpid(parent, NULL, 0) == parent ? 0 : -1;
}

/* ---- what is done ------------------------------------------------------------------------------------------------ */

static int add_on(Rig *rig, const pid_t *pids, size_t n, bool as_tids, bool no_inherit) {
        EventSpec spec = { .no_inherit = no_inherit };
        uint32_t **list = as_tids ? &spec.tids : &spec.pids;

        *(as_tids ? &spec.n_tids : &spec.n_pids) = n;
        assert_true(asprintf(&spec.event, "%s", EVENT) > 0); /* which never fails here, as the next */
        *list = aligned_alloc(sizeof(**list), n * sizeof(**list));
        assert_non_null(*list);
        for (size_t i = 0; i < n; i++)
                (*list)[i] = (uint32_t)pids[i];
        return rig_add_specs(rig, &spec, 1, &(AddOptions){ .owner = 0 });
}

static int add(Rig *rig) {
        return add_on(rig, &parent, 1, false, false);
}

static int prepare_nothing(Rig *rig) {
        return 0;
}

static int set_period(Rig *rig) {
        return changes_set_period(&rig->supervisor.changes, EVENT, 10, 0, &rig->e);
}

static int hotplug(Rig *rig, bool is_online) {
        played_set_cpu(RIG_CPU, is_online);
        played_tell_cpu(RIG_CPU, is_online);
        return changes_on_hotplug(&rig->supervisor.changes);
}

/* It is open on these, on each CPU that is online. */
static void check_on(Rig *rig, const pid_t *pids, size_t n, size_t n_cpus) {
        const Registration *g = rig_find(rig, EVENT);

        assert_non_null(g);
        assert_int_equal(g->opened.n, n * n_cpus);
        for (size_t i = 0; i < n; i++) {
                size_t found = 0;

                for (size_t k = 0; k < g->opened.n; k++) {
                        const PlayedFd *p = played_fd(g->opened.fds[k].fd);

                        assert_true(p->is_on);
                        assert_int_equal(p->attr.inherit, !g->event->spec.no_inherit);
                        found += p->pid == pids[i];
                }
                assert_int_equal(found, n_cpus);
        }
}

/* ---- whole ------------------------------------------------------------------------------------------------------- */

static void test_children(void **state) {
        const pid_t both[] = { parent, child };
        Rig rig;

        rig_start(&rig);
        assert_int_equal(add(&rig), 0);
        check_on(&rig, both, 2, RIG_CPUS);
        played_occur(2);
        assert_int_equal(set_period(&rig), 0);
        check_on(&rig, both, 2, RIG_CPUS);
        assert_int_equal(rig_occurred(&rig, EVENT), 2 * 2 * RIG_CPUS);
        assert_int_equal(rig_remove(&rig, EVENT), 0);
        assert_int_equal(add_on(&rig, &parent, 1, false, true), 0);
        check_on(&rig, &parent, 1, RIG_CPUS);
        assert_int_equal(rig_remove(&rig, EVENT), 0);
        assert_int_equal(add_on(&rig, &child, 1, true, false), 0);
        check_on(&rig, &child, 1, RIG_CPUS);
        rig_stop(&rig);
}

static void test_hotplug(void **state) {
        const pid_t both[] = { parent, child };
        Rig rig;

        rig_start(&rig);
        assert_int_equal(add(&rig), 0);
        played_occur(2);
        assert_int_equal(hotplug(&rig, false), 0);
        check_on(&rig, both, 2, RIG_CPUS - 1);
        assert_int_equal(hotplug(&rig, true), 0);
        check_on(&rig, both, 2, RIG_CPUS);
        assert_int_equal(rig_occurred(&rig, EVENT), 2 * 2 * RIG_CPUS);
        rig_stop(&rig);
}

static void test_gone(void **state) {
        const pid_t some[] = { gone, parent }, both[] = { parent, child };
        Rig rig;

        rig_start(&rig);
        assert_int_equal(add_on(&rig, &gone, 1, false, false), REFUSED_NOT_FOUND);
        assert_string_equal(rig.e.reason, "gone");
        assert_int_equal(played_count_open(), RIG_CPUS);
        assert_int_equal(add_on(&rig, some, 2, false, false), 0);
        check_on(&rig, both, 2, RIG_CPUS);
        assert_int_equal(rig.supervisor.operations.notes.n_gone, 1);
        assert_int_equal(rig.supervisor.operations.notes.gone, gone);
        rig_stop(&rig);
}

/* ---- refused ----------------------------------------------------------------------------------------------------- */

/* Each is enabled twice, and as children inherit it once more so behind a look at who may be in a fork. */
static void test_add_fails(void **state) {
        static const int errors[] = { EMFILE, ENOMEM, EACCES };

        for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
                assert_int_equal(rig_fail_each(PLAYED_OPEN, errors[i], prepare_nothing, add), 2 * RIG_CPUS);
        assert_int_equal(rig_fail_each(PLAYED_IOCTL, ENOMEM, prepare_nothing, add), 2 * RIG_CPUS * (2 + 2 * 2) + 2 * RIG_CPUS);
        assert_int_equal(rig_fail_each(PLAYED_OPEN, EMFILE, add, set_period), 2 * RIG_CPUS);
        assert_true(rig_fail_each(PLAYED_ALLOCATION, ENOMEM, prepare_nothing, add) > 20);
}

/* A task that ends while it is opened is no reason to be without the others. */
static void check_without_one(Rig *rig, PlayedCall call, int r, const char *before) {
        assert_int_equal(r, 0);
        assert_int_equal(rig_find(rig, EVENT)->opened.n, 2 * RIG_CPUS - 1);
        assert_int_equal(played_count_open(), RIG_CPUS + 2 * RIG_CPUS - 1);
}

static void test_exits_meanwhile(void **state) {
        assert_int_equal(rig_fail_each_as(PLAYED_OPEN, ESRCH, prepare_nothing, add, check_without_one), 2 * RIG_CPUS);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_children),
                cmocka_unit_test(test_hotplug),
                cmocka_unit_test(test_gone),
                cmocka_unit_test(test_add_fails),
                cmocka_unit_test(test_exits_meanwhile),
        };

        thread_become(THREAD_MAIN);
        return cmocka_run_group_tests(tests, start_processes, end_processes);
}
