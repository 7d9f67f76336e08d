/* The watchdog's thread: it feeds while whom it looks at waits for the kernel, and at no other time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/watchdog.h"

#define PATIENCE (20 * NSEC_PER_SEC)

static _Atomic(unsigned) n_fed;

static void feed(void) {
        n_fed++;
}

static void wait_looks(const Watchdog *w, uint64_t n) {
        nsec_t end = clock_now(CLOCK_MONOTONIC) + PATIENCE;

        while (counter_get(&w->looks) < n) {
                assert_true(clock_now(CLOCK_MONOTONIC) < end);
                sched_yield();
        }
}

/* Until its child ends, which reads from this fd, and nothing but that ends it. */
static int wait_for_kernel(void *userdata) {
        const int *fd = userdata;
        long pid = syscall(SYS_clone, CLONE_VFORK | SIGCHLD, NULL, NULL, NULL, NULL);
        char byte;

        if (pid == 0) {
                (void)syscall(SYS_read, *fd, &byte, 1);
                (void)syscall(SYS_exit_group, 0);
        }
        return pid > 0 && waitpid((pid_t)pid, NULL, 0) == pid ? 0 : -1;
}

static void test_waits_for_kernel(void **state) {
        nsec_t end = clock_now(CLOCK_MONOTONIC) + PATIENCE;
        Watchdog w = WATCHDOG_NULL;
        Thread waits;
        unsigned fed;
        int fds[2];

        n_fed = 0;
        assert_int_equal(pipe(fds), 0);
        assert_int_equal(thread_start(&waits, THREAD_ANY, "waits", -1, wait_for_kernel, fds), 0);
        assert_int_equal(watchdog_start(&w, waits.tid, NSEC_PER_MSEC, feed), 0);
        while (n_fed < 3) {
                assert_true(clock_now(CLOCK_MONOTONIC) < end);
                sched_yield();
        }
        assert_int_equal(write(fds[1], "", 1), 1);
        assert_int_equal(thread_join(&waits), 0);
        wait_looks(&w, counter_get(&w.looks) + 1);
        fed = n_fed;
        wait_looks(&w, counter_get(&w.looks) + 3);
        assert_int_equal(n_fed, fed); /* there is nobody any more */
        watchdog_stop(&w);
        close(fds[0]);
        close(fds[1]);
}

static int wait_for_nothing(void *userdata) {
        char byte;

        return read(*(const int *)userdata, &byte, 1) == 1 ? 0 : -1;
}

/* As a thread that is stuck. */
static void test_waits_for_others(void **state) {
        Watchdog w = WATCHDOG_NULL;
        Thread waits;
        int fds[2];

        n_fed = 0;
        assert_int_equal(pipe(fds), 0);
        assert_int_equal(thread_start(&waits, THREAD_ANY, "waits", -1, wait_for_nothing, fds), 0);
        assert_int_equal(watchdog_start(&w, waits.tid, NSEC_PER_MSEC, feed), 0);
        wait_looks(&w, 20);
        watchdog_stop(&w);
        assert_int_equal(n_fed, 0);
        assert_int_equal(write(fds[1], "", 1), 1);
        assert_int_equal(thread_join(&waits), 0);
        close(fds[0]);
        close(fds[1]);
}

static void test_not_started(void **state) {
        Watchdog w = WATCHDOG_NULL;

        watchdog_stop(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_waits_for_kernel),
                cmocka_unit_test(test_waits_for_others),
                cmocka_unit_test(test_not_started),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
