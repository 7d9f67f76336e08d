/*
 * A ring that is found to be quiet from outside: never while something lies in it or is in its reader's hands, and never in
 * memory that is gone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/thread.h"
#include "daemon/ring/ring-view.h"

#define RECORDS 20000
#define ENOUGH (5 * NSEC_PER_SEC)  /* of time, once something was found: each turn may wait for others that want the CPUs */
#define TOO_LONG (40 * NSEC_PER_SEC)

typedef struct Side {
        RingView view;
        Ring ring;
        _Atomic(uint64_t) pushed; /* how far what was read can be had */
        atomic_uint found; /* looks that said that it is quiet; relaxed, so that it orders nothing of what is tested */
        atomic_bool stop;
        Thread thread;
} Side;

/* Whether there is a turn i more. */
static bool goes_on(Side *s, nsec_t begin, uint64_t i) {
        const nsec_t took = clock_now(CLOCK_MONOTONIC) - begin;

        return atomic_load_explicit(&s->found, memory_order_relaxed) > 0 ? i < RECORDS && took < ENOUGH : took < TOO_LONG;
}

static struct perf_event_mmap_page *page_new(void) {
        struct perf_event_mmap_page *page = calloc(1, sizeof(*page));

        assert_non_null(page);
        return page;
}

static void put(Side *s, uint64_t head) {
        __atomic_store_n(&s->ring.page->data_head, head, __ATOMIC_RELEASE);
}

static void test_quiet(void **state) {
        Side s = { .view = RING_VIEW_NULL, .ring = { .page = page_new() } };

        ring_view_set_quiet(&s.view, true);
        assert_false(ring_view_is_quiet(&s.view)); /* closed */
        ring_view_open(&s.view, &s.ring);
        assert_true(ring_view_is_quiet(&s.view));
        put(&s, 8);
        assert_false(ring_view_is_quiet(&s.view)); /* something lies in it */
        ring_view_set_quiet(&s.view, false);
        s.ring.tail = 8;
        ring_publish(&s.ring);
        assert_false(ring_view_is_quiet(&s.view)); /* it was read, and is not pushed yet */
        ring_view_set_quiet(&s.view, true);
        assert_true(ring_view_is_quiet(&s.view));
        assert_true(ring_view_close(&s.view));
        assert_false(ring_view_is_quiet(&s.view));
        free(s.ring.page);
}

static int run_reader(void *userdata) {
        Side *s = userdata;

        while (!atomic_load(&s->stop)) {
                uint64_t head;

                ring_view_set_quiet(&s->view, false);
                head = ring_head(&s->ring);
                if (head != s->ring.tail) {
                        s->ring.tail = head;
                        ring_publish(&s->ring);
                        sched_yield();
                        atomic_store_explicit(&s->pushed, head, memory_order_release);
                }
                ring_view_set_quiet(&s->view, true);
                sched_yield();
        }
        return 0;
}

static void test_pushed_before_quiet(void **state) {
        Side s = { .view = RING_VIEW_NULL, .ring = { .page = page_new() } };
        const nsec_t begin = clock_now(CLOCK_MONOTONIC);

        ring_view_open(&s.view, &s.ring);
        assert_int_equal(thread_start(&s.thread, THREAD_READER, "reader", -1, run_reader, &s), 0);
        for (uint64_t i = 1; goes_on(&s, begin, i); i++) {
                put(&s, 8 * i);
                for (int k = 0; k < 4; k++) {
                        if (ring_view_is_quiet(&s.view)) {
                                assert_int_equal(atomic_load_explicit(&s.pushed, memory_order_acquire), 8 * i);
                                atomic_fetch_add_explicit(&s.found, 1, memory_order_relaxed);
                        }
                        sched_yield();
                }
        }
        while (!ring_view_is_quiet(&s.view))
                sched_yield();
        atomic_store(&s.stop, true);
        assert_int_equal(thread_join(&s.thread), 0);
        assert_true(s.found > 0);
        free(s.ring.page);
}

static int run_changer(void *userdata) {
        Side *s = userdata;
        const nsec_t begin = clock_now(CLOCK_MONOTONIC);

        for (uint64_t i = 0; goes_on(s, begin, i); i++) {
                struct perf_event_mmap_page *old = s->ring.page;

                while (!ring_view_close(&s->view))
                        sched_yield();
                s->ring.page = page_new();
                ring_view_open(&s->view, &s->ring);
                memset(old, 0xff, sizeof(*old)); /* head and tail are equal still; a sanitizer sees who reads it */
                free(old);
                if (i % 64 == 0)
                        sched_yield();
        }
        atomic_store(&s->stop, true);
        return 0;
}

static void test_changed_under_a_look(void **state) {
        Side s = { .view = RING_VIEW_NULL, .ring = { .page = page_new() } };

        ring_view_set_quiet(&s.view, true);
        ring_view_open(&s.view, &s.ring);
        assert_int_equal(thread_start(&s.thread, THREAD_READER, "changer", -1, run_changer, &s), 0);
        while (!atomic_load(&s.stop))
                atomic_fetch_add_explicit(&s.found, ring_view_is_quiet(&s.view), memory_order_relaxed);
        assert_int_equal(thread_join(&s.thread), 0);
        assert_true(ring_view_is_quiet(&s.view));
        assert_true(s.found > 0);
        free(s.ring.page);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_quiet),
                cmocka_unit_test(test_pushed_before_quiet),
                cmocka_unit_test(test_changed_under_a_look),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
