/* Rings of dormant readers: looked at together, at their ticks, by whoever runs cycles; and who has something is asked, once. */
#include <stdlib.h>

#include "tests/unit/dispatcher-rig.h"

#include "daemon/ring/ring-view.h"

#define TICK (96 * NSEC_PER_MSEC)

static nsec_t now; /* of CLOCK_MONOTONIC */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts) {
        *ts = nsec_timespec(now);
        return 0;
}

typedef struct World {
        Rig rig;
        struct perf_event_mmap_page pages[N_PIPES];
        RingView views[N_PIPES];
        _Atomic(nsec_t) ticks[N_PIPES];
} World;

static void world_init(World *w) {
        now = 1000 * TICK;
        rig_init(&w->rig);
        for (int i = 0; i < N_PIPES; i++) {
                const Ring ring = { .page = &w->pages[i] };

                w->pages[i] = (struct perf_event_mmap_page){ .data_head = 64, .data_tail = 64 };
                w->views[i] = RING_VIEW_NULL;
                ring_view_open(&w->views[i], &ring);
                atomic_init(&w->ticks[i], TICK);
                w->rig.pipes[i].view = &w->views[i];
                w->rig.pipes[i].tick = &w->ticks[i];
        }
}

/* As reader_become_dormant() does it; true if it has to ring the bell. */
static bool sleeps(World *w, int i) {
        Dispatching *shared = &w->rig.dispatcher.dispatching;

        atomic_store(&w->views[i].is_dormant, true);
        atomic_fetch_add(&shared->n_dormant, 1);
        return atomic_load(&shared->looks_at) == UINT64_MAX;
}

static uint32_t asked(World *w, int i) {
        return mailbox_take_asks(&w->rig.readers[i]);
}

static void test_none(void **state) {
        World w;

        world_init(&w);
        assert_true(dispatcher_look_for_dormant(&w.rig.dispatcher) == UINT64_MAX);
        assert_false(dispatcher_has_new_dormant(&w.rig.dispatcher));
        w.pages[0].data_head = 128; /* its reader looks itself */
        now += TICK;
        assert_true(dispatcher_look_for_dormant(&w.rig.dispatcher) == UINT64_MAX);
        assert_int_equal(asked(&w, 0), 0);
        rig_deinit(&w.rig);
}

static void test_together(void **state) {
        World w;

        world_init(&w);
        now += TICK / 3;
        assert_true(sleeps(&w, 0)); /* nobody would look */
        assert_true(dispatcher_has_new_dormant(&w.rig.dispatcher));
        assert_int_equal(dispatcher_look_for_dormant(&w.rig.dispatcher), TICK - TICK / 3); /* at a multiple of the tick */
        assert_false(dispatcher_has_new_dormant(&w.rig.dispatcher));
        assert_false(sleeps(&w, 1));
        w.pages[1].data_head = 128;
        now += TICK / 3;
        assert_int_equal(dispatcher_look_for_dormant(&w.rig.dispatcher), TICK - 2 * (TICK / 3));
        assert_int_equal(asked(&w, 1), 0); /* not before its tick */
        now = 1001 * TICK;
        assert_int_equal(dispatcher_look_for_dormant(&w.rig.dispatcher), TICK);
        assert_int_equal(asked(&w, 0), 0);
        assert_int_equal(asked(&w, 1), READER_ASK_LOOK);
        atomic_store(&w.views[1].is_dormant, false);
        w.pages[1].data_tail = 128;
        w.pages[0].data_head = 128;
        now += TICK;
        assert_true(dispatcher_look_for_dormant(&w.rig.dispatcher) == UINT64_MAX); /* no other is left */
        assert_int_equal(asked(&w, 0), READER_ASK_LOOK);
        assert_true(sleeps(&w, 1));
        rig_deinit(&w.rig);
}

/* The shortest tick of those that sleep decides; a reader that is gone is not looked at. */
static void test_ticks(void **state) {
        World w;

        world_init(&w);
        atomic_store(&w.ticks[0], TICK / 4);
        assert_true(sleeps(&w, 0));
        assert_int_equal(dispatcher_look_for_dormant(&w.rig.dispatcher), TICK / 4);
        assert_false(sleeps(&w, 1));
        assert_int_equal(dispatcher_look_for_dormant(&w.rig.dispatcher), TICK / 4);
        w.rig.dispatcher.live[0] = false;
        w.pages[0].data_head = 128;
        now += TICK / 4;
        assert_int_equal(dispatcher_look_for_dormant(&w.rig.dispatcher), TICK - TICK / 4);
        assert_int_equal(asked(&w, 0), 0);
        rig_deinit(&w.rig);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_none),
                cmocka_unit_test(test_together),
                cmocka_unit_test(test_ticks),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
