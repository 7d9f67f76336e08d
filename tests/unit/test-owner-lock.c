/*
 * Work that one thread at a time does: never two, never nobody while there is something to do, and only the owner waits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <sched.h>

#include "daemon/base/clock.h"
#include "daemon/base/doorbell.h"
#include "daemon/base/queue.h"
#include "daemon/base/thread.h"
#include "daemon/base/owner-lock.h"

#define PATIENCE (20 * NSEC_PER_SEC)
#define N_OTHERS 3
#ifndef HAND_OVERS
#define HAND_OVERS 50000u
#endif
#define SOME (HAND_OVERS / 500) /* of each kind, or nothing was shown */

static void wait_readable(int fd) {
        struct pollfd p = { .fd = fd, .events = POLLIN };

        assert_int_equal(poll(&p, 1, PATIENCE / NSEC_PER_MSEC), 1);
}

static void test_alone(void **state) {
        OwnerLock t = OWNER_LOCK_HELD;

        assert_true(owner_lock_release(&t));
        owner_lock_acquire(&t);
        assert_false(owner_lock_try(&t));
        assert_false(owner_lock_try(&t));
        assert_false(owner_lock_release(&t)); /* for both at once */
        assert_true(owner_lock_release(&t));
        assert_true(owner_lock_try(&t));
        assert_false(owner_lock_try(&t));
        assert_false(owner_lock_release(&t));
        assert_false(owner_lock_try(&t));
        owner_lock_leave(&t);
        assert_true(owner_lock_try(&t));
        assert_true(owner_lock_release(&t));
}

typedef struct Wanted {
        OwnerLock lock;
        Thread owner;
        int waited; /* written before the turn is given, read behind it */
} Wanted;

static int run_owner(void *userdata) {
        Wanted *w = userdata;

        owner_lock_acquire(&w->lock);
        return w->waited;
}

/* Whether somebody came in vain before or not: the owner, who waits, is the one who looks once more. */
static void test_owner_waits(void **state) {
        for (int again = 0; again < 2; again++) {
                Wanted w = { .lock = OWNER_LOCK_HELD };
                nsec_t end = clock_now(CLOCK_MONOTONIC) + PATIENCE;
                uint32_t before;

                if (again)
                        assert_false(owner_lock_try(&w.lock));
                before = atomic_load(&w.lock.word);
                assert_int_equal(thread_start(&w.owner, THREAD_DISPATCHER, "owner", -1, run_owner, &w), 0);
                while (atomic_load(&w.lock.word) == before) {
                        assert_true(clock_now(CLOCK_MONOTONIC) < end);
                        sched_yield();
                }
                w.waited = 7;
                assert_true(owner_lock_release(&w.lock));
                assert_int_equal(thread_join(&w.owner), 7);
                assert_true(owner_lock_release(&w.lock));
        }
}

typedef struct Work {
        OwnerLock lock;
        Doorbell bell;
        Queue queues[N_OTHERS];
        atomic_int at_it;
        atomic_uint n_ended;
        unsigned done, done_by_others; /* by whoever has the turn */
} Work;

typedef struct Other {
        Work *work;
        unsigned index;
        Thread thread;
} Other;

static void work(Work *w, bool is_other) {
        assert(atomic_fetch_add(&w->at_it, 1) == 0);
        for (unsigned i = 0; i < N_OTHERS; i++)
                while (queue_pop(&w->queues[i])) {
                        w->done++;
                        w->done_by_others += is_other;
                }
        assert(atomic_fetch_sub(&w->at_it, 1) == 1);
}

/* Some of what it has is for the owner, some it does itself; then it waits until somebody has done all of it. */
static int run_other(void *userdata) {
        static char thing;
        Other *o = userdata;
        Work *w = o->work;
        Queue *q = &w->queues[o->index];

        for (unsigned i = 0; i < HAND_OVERS; i++) {
                nsec_t end = clock_now(CLOCK_MONOTONIC) + PATIENCE;

                while (!queue_push(q, &thing))
                        sched_yield();
                if (i % 5 == o->index) {
                        doorbell_ring(&w->bell);
                } else if (owner_lock_try(&w->lock)) {
                        do
                                work(w, true);
                        while (!owner_lock_release(&w->lock));
                }
                while (i % 3 == 0 && !queue_is_empty(q)) {
                        assert(clock_now(CLOCK_MONOTONIC) < end);
                        sched_yield();
                }
        }
        atomic_fetch_add(&w->n_ended, 1);
        doorbell_ring(&w->bell);
        return 0;
}

static void test_nothing_is_slept_over(void **state) {
        static Work w;
        Other others[N_OTHERS];
        unsigned slept = 0;

        w = (Work){ .lock = OWNER_LOCK_HELD };
        assert_int_equal(doorbell_init(&w.bell), 0);
        for (unsigned i = 0; i < N_OTHERS; i++)
                assert_int_equal(queue_init(&w.queues[i], 4), 0);
        for (unsigned i = 0; i < N_OTHERS; i++) {
                others[i] = (Other){ .work = &w, .index = i };
                assert_int_equal(thread_start(&others[i].thread, THREAD_READER, "other", -1, run_other, &others[i]), 0);
        }
        for (;;) {
                bool is_empty = true;

                work(&w, false);
                doorbell_arm(&w.bell);
                for (unsigned i = 0; i < N_OTHERS; i++)
                        is_empty &= queue_is_empty(&w.queues[i]);
                if (is_empty && atomic_load(&w.n_ended) == N_OTHERS)
                        break;
                if (!is_empty || !owner_lock_release(&w.lock)) {
                        (void)doorbell_wait(&w.bell, 0);
                        continue;
                }
                wait_readable(w.bell.waiter);
                (void)doorbell_wait(&w.bell, 0);
                owner_lock_acquire(&w.lock);
                slept++;
        }
        for (unsigned i = 0; i < N_OTHERS; i++) {
                assert_int_equal(thread_join(&others[i].thread), 0);
                assert_true(queue_is_empty(&w.queues[i]));
                queue_deinit(&w.queues[i]);
        }
        assert_int_equal(w.done, N_OTHERS * HAND_OVERS);
        assert_true(w.done_by_others > SOME && w.done_by_others < w.done - SOME && slept > SOME);
        doorbell_deinit(&w.bell);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_alone),
                cmocka_unit_test(test_owner_waits),
                cmocka_unit_test(test_nothing_is_slept_over),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
