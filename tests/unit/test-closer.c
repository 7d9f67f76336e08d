/* The closer: what it is given is closed, but not while it is held, unless that takes long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/closer.h"

#define PATIENCE (20 * NSEC_PER_SEC)
#define EVER (3600 * NSEC_PER_SEC)

typedef struct Shop {
        Closer closer;
        int peers[2]; /* at their ends it is seen what became of the fds */
} Shop;

static int give_fd(Shop *s, int i) {
        int fds[2];

        assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
        s->peers[i] = fds[0];
        closer_close(&s->closer, &fds[1], 1, NULL);
        return fds[1];
}

static bool is_closed(const Shop *s, int i) {
        char byte;

        return read(s->peers[i], &byte, 1) == 0;
}

static void wait_closed(Shop *s) {
        nsec_t end = clock_now(CLOCK_MONOTONIC) + PATIENCE;

        while (atomic_load(&s->closer.n_pending) > 0) {
                assert_true(clock_now(CLOCK_MONOTONIC) < end);
                sched_yield();
        }
}

/* It stands before a close. */
static void wait_waits(Shop *s) {
        nsec_t end = clock_now(CLOCK_MONOTONIC) + PATIENCE;
        bool waits = false;

        while (!waits) {
                assert_true(clock_now(CLOCK_MONOTONIC) < end);
                pthread_mutex_lock(&s->closer.lock);
                waits = s->closer.is_held && s->closer.waits;
                pthread_mutex_unlock(&s->closer.lock);
        }
}

static void open_shop(Shop *s, nsec_t held_most) {
        *s = (Shop){ .closer = CLOSER_NULL, .peers = { -1, -1 } };
        s->closer.held_most = held_most;
        assert_int_equal(closer_start(&s->closer), 0);
}

static void close_shop(Shop *s) {
        closer_stop(&s->closer, NULL, NULL);
        close_fd(s->peers[0]);
        close_fd(s->peers[1]);
}

static void test_held(void **state) {
        Shop s;

        open_shop(&s, EVER);
        (void)give_fd(&s, 0);
        wait_closed(&s);
        assert_true(is_closed(&s, 0));

        closer_hold(&s.closer);
        close_fd(s.peers[0]);
        (void)give_fd(&s, 0);
        (void)give_fd(&s, 1);
        wait_waits(&s);
        assert_false(is_closed(&s, 0));
        assert_false(is_closed(&s, 1));
        closer_go(&s.closer);
        wait_closed(&s);
        assert_true(is_closed(&s, 0));
        assert_true(is_closed(&s, 1));
        close_shop(&s);
}

/* What is urgent does not wait behind what others have given: here it stands before the first of a thousand. */
static void test_urgent(void **state) {
        int many[1000], fds[2];
        Shop s;

        open_shop(&s, EVER);
        closer_hold(&s.closer);
        for (int i = 0; i < 1000; i++) {
                many[i] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
                assert_true(many[i] >= 0);
        }
        assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
        s.peers[0] = fds[0];
        closer_close(&s.closer, many, 1, NULL);
        wait_waits(&s);
        closer_close(&s.closer, many + 1, 999, NULL);
        closer_close_soon(&s.closer, &fds[1], 1, NULL);
        assert_int_equal(atomic_load(&s.closer.n_urgent), 1);
        assert_int_equal(atomic_load(&s.closer.n_pending), 1001);
        for (size_t n = 1001; !is_closed(&s, 0); n = atomic_load(&s.closer.n_pending)) {
                assert_true(n >= 999);
                closer_go(&s.closer);
                closer_hold(&s.closer);
        }
        closer_go(&s.closer);
        wait_closed(&s);
        assert_int_equal(atomic_load(&s.closer.n_urgent), 0);
        close_shop(&s);
}

/* Main may be awake for ever. */
static void test_held_too_long(void **state) {
        Shop s;

        open_shop(&s, 10 * NSEC_PER_MSEC);
        closer_hold(&s.closer);
        (void)give_fd(&s, 0);
        wait_closed(&s);
        assert_true(is_closed(&s, 0));
        assert_true(s.closer.is_held);
        close_shop(&s);
}

static void test_stopped_while_held(void **state) {
        Shop s;

        open_shop(&s, EVER);
        closer_hold(&s.closer);
        (void)give_fd(&s, 0);
        closer_stop(&s.closer, NULL, NULL);
        assert_true(is_closed(&s, 0));
        close_fd(s.peers[0]);
}

/* Without the thread main does it itself. */
static void test_not_started(void **state) {
        Shop s = { .closer = CLOSER_NULL, .peers = { -1, -1 } };

        assert_int_equal(fcntl(give_fd(&s, 0), F_GETFD), -1);
        assert_true(is_closed(&s, 0));
        close_shop(&s);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_held),
                cmocka_unit_test(test_urgent),
                cmocka_unit_test(test_held_too_long),
                cmocka_unit_test(test_stopped_while_held),
                cmocka_unit_test(test_not_started),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
