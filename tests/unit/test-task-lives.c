/*
 * How many of the tasks that an event is open on have ended: of processes of this test, as /proc has them. No fd is needed, because
 * fds are not asked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/kernel/task/tasks.h"
#include "daemon/supervisor/events/task-lives.h"

#define NO_TASK 5000000 /* beyond the largest pid_max of Linux */

/* A child that waits until it is killed. */
static pid_t child_new(void) {
        pid_t pid = fork();

        if (pid == 0) {
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                        (void)pause();
        }
        assert_true(pid > 0);
        return pid;
}

/* Ends it; a zombie is left. */
static void child_end(pid_t pid) {
        siginfo_t info;

        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

static void child_reap(pid_t pid) {
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static PerfFd fd_of(uint64_t target, nsec_t since) {
        return (PerfFd){ .slot = 3, .fd = -1, .target_id = target, .since = since };
}

static TaskLives *lives_new(void) {
        TaskLives *l = calloc(1, sizeof(*l));

        assert_non_null(l);
        l->clock = CLOCK_MONOTONIC;
        return l;
}

/* With what a look has found before, or NULL. */
static void assert_tasks(TaskLives *known, const PerfFd *fds, size_t n_fds, uint64_t expected, uint64_t expected_ended) {
        TaskLives *l = known ? known : lives_new();
        Registration g = { .opened = { .fds = (PerfFd *)fds, .n = n_fds } };
        uint64_t ended = 99;

        assert_int_equal(task_lives_count(l, &g, &ended), expected);
        assert_int_equal(ended, expected_ended);
        if (!known)
                free(l);
}

static void test_lives_and_ends(void **state) {
        const nsec_t now = clock_now(CLOCK_MONOTONIC);
        pid_t lives = child_new(), zombie = child_new(), reaped = child_new();
        const PerfFd fds[] = { fd_of((uint64_t)getpid(), now), fd_of((uint64_t)lives, now), fd_of((uint64_t)zombie, now),
                               fd_of((uint64_t)reaped, now) };

        assert_tasks(NULL, fds, 4, 4, 0);
        child_end(zombie);
        child_end(reaped);
        child_reap(reaped);
        assert_tasks(NULL, fds, 4, 4, 2);
        child_end(lives);
        assert_tasks(NULL, fds, 4, 4, 3);
        child_reap(lives);
        child_reap(zombie);
        assert_tasks(NULL, fds, 4, 4, 3);
}

/* Who has the tid now was born more than a second behind the open: it is somebody else. */
static void test_tid_that_is_used_again(void **state) {
        pid_t child = child_new();
        const nsec_t now = clock_now(CLOCK_MONOTONIC);
        const PerfFd at_boot = fd_of((uint64_t)child, 1), before = fd_of((uint64_t)child, now);

        assert_tasks(NULL, &before, 1, 1, 0);
        assert_tasks(NULL, &at_boot, 1, 1, 1);
        child_end(child);
        child_reap(child);
}

/* Tasks are counted on one CPU, by the leaders of groups; a whole CPU is no task, and of a cgroup nothing is asked. */
static void test_what_is_no_task(void **state) {
        PerfFd fds[] = { fd_of(NO_TASK, 0), fd_of(NO_TASK, 0), fd_of(NO_TASK, 0), fd_of(0, 0), fd_of(NO_TASK, 0) };

        fds[1].slot = 4;
        fds[2].member = 1;
        fds[4].is_cgroup = true;
        assert_tasks(NULL, fds, 5, 2, 1);
        assert_tasks(NULL, fds, 0, 0, 0);
}

/* One answer says the same of a task in each of its events, also if it ends in the middle. */
static void test_one_look_for_an_answer(void **state) {
        TaskLives *l = lives_new();
        pid_t child = child_new();
        const PerfFd fds[] = { fd_of((uint64_t)child, clock_now(CLOCK_MONOTONIC)) };

        assert_tasks(l, fds, 1, 1, 0);
        child_end(child);
        child_reap(child);
        assert_tasks(l, fds, 1, 1, 0);
        assert_int_equal(l->n, 1);
        assert_tasks(NULL, fds, 1, 1, 1);
        free(l);
}

/* What an answer costs is bounded: of tasks beyond that nothing is said, and those that were looked at are still known. */
static void test_more_than_are_looked_at(void **state) {
        const size_t n = TASK_LIVES_MAX + 76;
        TaskLives *l = lives_new();
        PerfFd *fds = calloc(n, sizeof(*fds));

        assert_non_null(fds);
        for (size_t i = 0; i < n; i++)
                fds[i] = fd_of(NO_TASK + i, 0);
        assert_tasks(l, fds, n, n, TASK_LIVES_MAX);
        assert_int_equal(l->n, TASK_LIVES_MAX);
        assert_tasks(l, fds + n - 76, 76, 76, 0);
        assert_tasks(l, fds, 76, 76, 76);
        free(fds);
        free(l);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lives_and_ends),
                cmocka_unit_test(test_tid_that_is_used_again),
                cmocka_unit_test(test_what_is_no_task),
                cmocka_unit_test(test_one_look_for_an_answer),
                cmocka_unit_test(test_more_than_are_looked_at),
        };

        if (!tasks_has_own_proc()) {
                (void)printf("/proc is of another pid namespace, so that no task is looked at\n");
                return 77; /* meson: skipped */
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
