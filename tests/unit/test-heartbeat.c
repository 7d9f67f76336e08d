/* Who is taken for dead: a thread that has not moved since the last look, and does not sleep; nobody else, whenever it wakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>

#include "daemon/base/heartbeat.h"
#include "daemon/base/thread.h"

#ifndef HAND_OVERS
#define HAND_OVERS 1000000u
#endif

typedef struct Sleeper {
        Heartbeat heartbeat;
        Thread thread;
        _Atomic(uint32_t) wake, slept; /* rounds: the test asks for one, the thread is asleep behind one */
} Sleeper;

static int sleep_and_wake(void *userdata) {
        Sleeper *s = userdata;

        for (uint32_t i = 1; i <= HAND_OVERS; i++) {
                heartbeat_sleep(&s->heartbeat);
                atomic_store_explicit(&s->slept, i, memory_order_release);
                while (atomic_load_explicit(&s->wake, memory_order_acquire) < i)
                        sched_yield();
                heartbeat_wake(&s->heartbeat);
        }
        return 0;
}

/* One look while it sleeps, and then as many as there is time for while it wakes: it is never dead in the first of them. */
static void test_waking(void **state) {
        static Sleeper s; /* a test that fails leaves while the thread runs */

        assert_int_equal(thread_start(&s.thread, THREAD_ANY, "sleeper", -1, sleep_and_wake, &s), 0);
        for (uint32_t i = 1; i <= HAND_OVERS; i++) {
                while (atomic_load_explicit(&s.slept, memory_order_acquire) < i)
                        sched_yield();
                assert_true(heartbeat_check(&s.heartbeat));
                atomic_store_explicit(&s.wake, i, memory_order_release);
                for (unsigned k = 0; k < i % 64; k++) /* the look falls on any place of its waking */
                        __asm__ volatile("");
                if (!heartbeat_check(&s.heartbeat))
                        fail_msg("round %u: a thread that slept at the last look, and woke since, is taken for dead", i);
        }
        assert_int_equal(thread_join(&s.thread), 0);
}

static void test_stuck(void **state) {
        Heartbeat h = { .turns = 0 };

        heartbeat_sleep(&h);
        assert_true(heartbeat_check(&h));
        assert_true(heartbeat_check(&h)); /* for ever */
        heartbeat_wake(&h);
        assert_true(heartbeat_check(&h));
        assert_false(heartbeat_check(&h));
        assert_false(heartbeat_check(&h));
        heartbeat_sleep(&h);
        heartbeat_wake(&h);
        assert_true(heartbeat_check(&h)); /* it moved, however late */
        assert_false(heartbeat_check(&h));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_stuck),
                cmocka_unit_test(test_waking),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
