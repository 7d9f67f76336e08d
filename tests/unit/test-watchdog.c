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

#include "daemon/kernel/task/tasks.h"
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

static int wait_for_byte(void *userdata) {
        char byte;

        return read(*(const int *)userdata, &byte, 1) == 1 ? 0 : -1;
}

typedef struct Watched {
        Watchdog watchdog;
        Thread thread;
        int fds[2]; /* what is written there ends its wait */
} Watched;

/* When it waits, which is its state then. */
static void watched_start(Watched *w, int (*wait)(void *userdata), char state) {
        nsec_t end = clock_now(CLOCK_MONOTONIC) + PATIENCE;

        n_fed = 0;
        assert_int_equal(pipe(w->fds), 0);
        assert_int_equal(thread_start(&w->thread, THREAD_ANY, "waits", -1, wait, w->fds), 0);
        while (task_state((uint32_t)w->thread.tid) != state) {
                assert_true(clock_now(CLOCK_MONOTONIC) < end);
                sched_yield();
        }
        assert_int_equal(watchdog_start(&w->watchdog, w->thread.tid, NSEC_PER_MSEC, feed), 0);
}

static void watched_end_wait(Watched *w) {
        assert_int_equal(write(w->fds[1], "", 1), 1);
        assert_int_equal(thread_join(&w->thread), 0);
        close(w->fds[0]);
        close(w->fds[1]);
}

static void test_waits_for_kernel(void **state) {
        nsec_t end = clock_now(CLOCK_MONOTONIC) + PATIENCE;
        unsigned fed;
        Watched w;

        watched_start(&w, wait_for_kernel, TASK_STATE_UNINTERRUPTIBLE);
        while (n_fed < 3) {
                assert_true(clock_now(CLOCK_MONOTONIC) < end);
                sched_yield();
        }
        watched_end_wait(&w);
        wait_looks(&w.watchdog, counter_get(&w.watchdog.looks) + 1);
        fed = n_fed;
        wait_looks(&w.watchdog, counter_get(&w.watchdog.looks) + 3);
        assert_int_equal(n_fed, fed); /* there is nobody any more */
        watchdog_stop(&w.watchdog);
}

/* As a thread that is stuck. */
static void test_waits_for_others(void **state) {
        Watched w;

        watched_start(&w, wait_for_byte, 'S');
        wait_looks(&w.watchdog, 20);
        watchdog_stop(&w.watchdog);
        assert_int_equal(n_fed, 0);
        watched_end_wait(&w);
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
