/*
 * The dispatcher without its thread: batches by hand, one subscriber in the order of time. What has to be released is,
 * nothing before its time, and a reader that cannot go on without its batches does not stop everybody.
 */
#include "tests/unit/dispatcher-rig.h"

/* What a reader does behind a look into its queue. */
static struct {
        Queue *queue;
        Batch *batch;
        atomic_bool *needs_batch;
} behind_look;

bool __real_queue_is_empty(const Queue *q);
bool __wrap_queue_is_empty(const Queue *q);

bool __wrap_queue_is_empty(const Queue *q) {
        bool is_empty = __real_queue_is_empty(q);

        if (q == behind_look.queue) {
                assert_true(queue_push(behind_look.queue, behind_look.batch));
                atomic_store(behind_look.needs_batch, true);
                behind_look.queue = NULL;
        }
        return is_empty;
}

static void test_watermarks(void **state) {
        Rig r;

        rig_init(&r);
        TAKE(&r, 0, 30, 10, 20, 40);
        assert_int_equal(rig_row(&r).sent, 0); /* nothing is known of the other CPU */
        TAKE(&r, 1, 20, 15);
        assert_int_equal(rig_row(&r).sent, 3); /* 10, 15, 20 */
        assert_int_equal(rig_row(&r).queued, 1);
        TAKE(&r, 1, 100, 35);
        assert_int_equal(rig_row(&r).sent, 3); /* 35 is newer than what CPU 0 has said */
        TAKE(&r, 0, 100, 50);
        assert_int_equal(rig_row(&r).sent, 6);
        assert_int_equal(rig_row(&r).queued, 0);
        rig_deinit(&r);
}

/* As a turn begins: until `next` nobody has to be woken. */
static void rig_tell_tick(Rig *r, nsec_t next) {
        r->dispatcher.tick_told = (SharedTick){ .next = next, .length = 10 };
}

static void rig_take_due(Rig *r, uint32_t slot, nsec_t watermark, nsec_t time, nsec_t due) {
        Batch *b = make_batch(slot, watermark, &time, 1);

        b->due = due;
        rig_take_batch(r, b);
}

/* What came at a tick of its own and leaves in a later turn, released by what nobody waits for, is late for who comes by himself. */
static void test_due_before(void **state) {
        Rig r;

        rig_init(&r);
        rig_tell_tick(&r, 100);
        rig_take_due(&r, 0, 30, 10, 90);
        assert_true(r.dispatcher.tick_told.is_due);
        assert_int_equal(rig_row(&r).sent, 0);
        rig_tell_tick(&r, 110);
        rig_take_due(&r, 1, 5, 4, 200);
        assert_int_equal(rig_row(&r).sent, 1); /* another one than that of the tick */
        assert_false(r.dispatcher.tick_told.is_due);
        rig_take_due(&r, 1, 30, 20, 200);
        assert_int_equal(rig_row(&r).sent, 3);
        assert_true(r.dispatcher.tick_told.is_due);
        rig_tell_tick(&r, 120);
        rig_take_due(&r, 0, 50, 40, 200);
        rig_take_due(&r, 1, 50, 45, 200);
        assert_int_equal(rig_row(&r).sent, 5);
        assert_false(r.dispatcher.tick_told.is_due);
        rig_deinit(&r);
}

static void test_late_is_counted(void **state) {
        DispatcherReport report;
        Rig r;

        rig_init(&r);
        TAKE(&r, 1, 100, 60);
        TAKE(&r, 0, 100, 70);
        TAKE(&r, 0, 200, 65, 80); /* CPU 0 had said that nothing older than 100 would come */
        TAKE(&r, 1, 200, 90);
        assert_int_equal(rig_row(&r).late, 1);
        assert_int_equal(rig_row(&r).sent, 4);
        assert_int_equal(dispatcher_report(&r.dispatcher, 1, &report), 0);
        assert_int_equal(report.n_late, 1);
        assert_int_equal(report.late[0].event, EVENT);
        assert_int_equal(report.late[0].slot, 0);
        assert_int_equal(report.late[0].count, 1);
        dispatcher_report_deinit(&report);
        rig_deinit(&r);
}

static void test_unblock(void **state) {
        Rig r;

        rig_init(&r);
        TAKE(&r, 1, 1000);
        TAKE(&r, 0, 5, 20, 30); /* its reader has still one of 5 to read */
        dispatcher_unblock(&r.dispatcher);
        assert_int_equal(dispatcher_release(&r.dispatcher), 0);
        assert_int_equal(rig_row(&r).sent, 0); /* it has batches: it will go on */
        atomic_store(&r.needs_batch[0], true);
        dispatcher_unblock(&r.dispatcher);
        assert_int_equal(dispatcher_release(&r.dispatcher), 0);
        assert_int_equal(dispatcher_flush(&r.dispatcher), 0);
        assert_int_equal(rig_row(&r).sent, 2);
        assert_false(atomic_load(&r.needs_batch[0])); /* and asked to go on */
        assert_int_equal(mailbox_take_asks(&r.readers[0]) & READER_ASK_BATCHES, READER_ASK_BATCHES);
        TAKE(&r, 0, 1000, 5, 40);
        assert_int_equal(rig_row(&r).late, 1);
        assert_int_equal(rig_row(&r).sent, 3);
        rig_deinit(&r);
}

/* A reader pushes its last batch, and has none left, just when it is looked whether it is blocked: it is not. */
static void test_unblock_behind_last_batch(void **state) {
        Batch *last = make_batch(0, 25, (const nsec_t[]){ 25, 35 }, 2);
        Rig r;

        rig_init(&r);
        TAKE(&r, 1, 1000);
        TAKE(&r, 0, 15);
        TAKE(&r, 0, 0, 20, 30);
        behind_look.queue = &r.full[0];
        behind_look.batch = last;
        behind_look.needs_batch = &r.needs_batch[0];
        dispatcher_unblock(&r.dispatcher);
        assert_int_equal(dispatcher_release(&r.dispatcher), 0);
        if (behind_look.queue) /* nobody looked: it comes now */
                assert_true(queue_push(TAKE_PTR(behind_look.queue), last));
        rig_take_batch(&r, queue_pop(&r.full[0]));
        TAKE(&r, 0, 1000, 40);
        assert_int_equal(rig_row(&r).late, 0);
        assert_int_equal(rig_row(&r).sent, 5);
        rig_deinit(&r);
}

/* All batches of a reader are younger than what clients are waited for: it could say nothing more, and wait for ever. */
static void test_unblock_window(void **state) {
        Rig r;

        rig_init(&r);
        atomic_store(&r.dispatcher.window, 100);
        TAKE(&r, 1, 1000, 950);
        TAKE(&r, 0, 980, 920, 930, 970);
        dispatcher_unblock(&r.dispatcher);
        assert_int_equal(dispatcher_release(&r.dispatcher), 0);
        assert_int_equal(rig_row(&r).sent, 0); /* in a window's time they will be */
        atomic_store(&r.needs_batch[0], true);
        dispatcher_unblock(&r.dispatcher);
        assert_int_equal(dispatcher_release(&r.dispatcher), 0);
        assert_int_equal(dispatcher_flush(&r.dispatcher), 0);
        assert_int_equal(rig_row(&r).sent, 4);
        assert_false(atomic_load(&r.needs_batch[0]));
        TAKE(&r, 0, 1050, 990, 1040); /* the window is there again */
        TAKE(&r, 1, 1150, 1100);
        assert_int_equal(rig_row(&r).sent, 4);
        TAKE(&r, 0, 1150, 1120);
        assert_int_equal(rig_row(&r).sent, 6);
        assert_int_equal(rig_row(&r).late, 0);
        rig_deinit(&r);
}

/* A sample with a time to come, as a client may emit it: it leaves at its time, and until then nothing wakes for it. */
static void test_ahead_of_the_clock(void **state) {
        nsec_t now = clock_now(CLOCK_MONOTONIC), wait;
        Rig r;

        rig_init(&r);
        TAKE(&r, 0, now, now + 800 * NSEC_PER_MSEC);
        TAKE(&r, 1, now, now - 1);
        assert_int_equal(rig_row(&r).sent, 1);
        wait = dispatcher_ask(&r.dispatcher);
        assert_true(wait <= 800 * NSEC_PER_MSEC && now + 800 * NSEC_PER_MSEC <= clock_now(CLOCK_MONOTONIC) + wait);
        TAKE(&r, 0, now + NSEC_PER_SEC);
        TAKE(&r, 1, now + NSEC_PER_SEC);
        assert_int_equal(rig_row(&r).sent, 2);
        assert_true(dispatcher_ask(&r.dispatcher) == UINT64_MAX);
        TAKE(&r, 0, now + NSEC_PER_SEC, now + 3600 * NSEC_PER_SEC);
        assert_int_equal(dispatcher_ask(&r.dispatcher), NSEC_PER_SEC); /* the clock may be set */
        rig_deinit(&r);
}

/* Nobody is left who wants it: nothing wakes for it, its reader has its batch back, and whoever comes next begins anew. */
static void test_nobody_waits(void **state) {
        nsec_t now = clock_now(CLOCK_MONOTONIC), ahead = now + 3600 * NSEC_PER_SEC;
        Rig r;

        rig_init(&r);
        TAKE(&r, 0, now, now - 5, ahead);
        TAKE(&r, 1, now - 1, now - 3, ahead + 24 * 3600 * NSEC_PER_SEC);
        assert_int_equal(rig_row(&r).sent, 2);
        subscriber_drop(&r.dispatcher, r.subscriber, NULL);
        assert_int_equal(dispatcher_run_cycle(&r.dispatcher, false), 0);
        assert_int_equal(dispatcher_ask(&r.dispatcher), 0); /* it left at the end of that turn */
        assert_int_equal(dispatcher_run_cycle(&r.dispatcher, false), 0);
        assert_int_equal(queue_count(&r.free[0]), 1);
        assert_int_equal(queue_count(&r.free[1]), 1);
        assert_true(dispatcher_ask(&r.dispatcher) == UINT64_MAX);
        assert_int_equal(r.dispatcher.released, now - 3);
        rig_deinit(&r);
}

/* What is past already, and waits for clients: somebody may have to be unblocked. */
static void test_wait_in_window(void **state) {
        nsec_t now = clock_now(CLOCK_MONOTONIC);
        Rig r;

        rig_init(&r);
        atomic_store(&r.dispatcher.window, 60 * NSEC_PER_SEC);
        TAKE(&r, 0, now, now - 1);
        TAKE(&r, 1, now);
        assert_int_equal(dispatcher_ask(&r.dispatcher), 3500 * NSEC_PER_USEC);
        rig_deinit(&r);
}

/* A turn may be long: whoever waits for its end, and the watchdog, see that it gets on. */
static void test_moves_with_batches(void **state) {
        Rig r;

        rig_init(&r);
        (void)heartbeat_check(&r.dispatcher.heartbeat);
        TAKE(&r, 0, 30, 10);
        assert_false(heartbeat_check(&r.dispatcher.heartbeat)); /* it waits for the other CPU */
        TAKE(&r, 1, 20, 15);
        assert_true(heartbeat_check(&r.dispatcher.heartbeat));
        assert_false(heartbeat_check(&r.dispatcher.heartbeat));
        rig_deinit(&r);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_watermarks),
                cmocka_unit_test(test_due_before),
                cmocka_unit_test(test_late_is_counted),
                cmocka_unit_test(test_unblock),
                cmocka_unit_test(test_unblock_behind_last_batch),
                cmocka_unit_test(test_unblock_window),
                cmocka_unit_test(test_ahead_of_the_clock),
                cmocka_unit_test(test_nobody_waits),
                cmocka_unit_test(test_wait_in_window),
                cmocka_unit_test(test_moves_with_batches),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
