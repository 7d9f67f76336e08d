/* When subscribers are woken: not more often than their latency requires, and never later than it allows. */
#include "tests/unit/dispatcher-rig.h"

#define LATENCY (100 * NSEC_PER_MSEC)
#define OWN_TICK (48 * NSEC_PER_MSEC) /* of such a subscriber */

static nsec_t now; /* of CLOCK_MONOTONIC */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts) {
        *ts = nsec_timespec(now);
        return 0;
}

static void world_init(Rig *r, nsec_t latency) {
        now = 1000 * OWN_TICK + NSEC_PER_MSEC;
        rig_init(r);
        r->subscriber->channel->tick_most = latency / 2;
}

/* A cycle that brings an item; the bytes that the subscriber gets. */
static size_t cycle(Rig *r) {
        uint8_t bytes[65536];
        ssize_t n;

        assert_true(queue_push(&r->full[0], make_batch(0, now + 1, (nsec_t[]){ now }, 1)));
        assert_true(queue_push(&r->full[1], make_batch(1, now + 1, NULL, 0)));
        assert_int_equal(dispatcher_run_cycle(&r->dispatcher, false), 0);
        rig_free_batches(r);
        n = recv(r->peer, bytes, sizeof(bytes), MSG_DONTWAIT);
        return n < 0 ? 0 : (size_t)n;
}

static void test_own_tick(void **state) {
        size_t one, many;
        Rig r;

        world_init(&r, LATENCY);
        one = cycle(&r);
        assert_true(one > 0);
        assert_true(dispatcher_until_wakeup(&r.dispatcher) == UINT64_MAX);
        for (int i = 0; i < 10; i++) { /* others requested less: what comes now waits */
                now += READER_TICK;
                assert_int_equal(cycle(&r), 0);
                assert_int_equal(dispatcher_until_wakeup(&r.dispatcher), 1001 * OWN_TICK - now);
        }
        now = 1001 * OWN_TICK;
        assert_int_equal(dispatcher_until_wakeup(&r.dispatcher), 0);
        many = cycle(&r);
        assert_true(many > one);
        assert_int_equal(rig_row(&r).sent, 12);
        assert_true(dispatcher_until_wakeup(&r.dispatcher) == UINT64_MAX);
        rig_deinit(&r);
}

/* Nobody requested less than that, or it is little anyway. */
static void test_at_once(void **state) {
        static const nsec_t latencies[] = { 0, NSEC_PER_MSEC, 2 * READER_TICK - 1, LATENCY };

        for (size_t i = 0; i < sizeof(latencies) / sizeof(*latencies); i++) {
                Rig r;

                world_init(&r, latencies[i]);
                atomic_store(&r.dispatcher.dispatching.tick, latencies[i] == LATENCY ? 96 * NSEC_PER_MSEC : READER_TICK);
                for (int n = 0; n < 3; n++, now += READER_TICK)
                        assert_true(cycle(&r) > 0);
                rig_deinit(&r);
        }
}

/* Others requested less, whatever it is: at most three times in its own latency, and no item waits for more than half of that. */
static void test_any_latency(void **state) {
        static const struct {
                nsec_t latency, shortest; /* us */
                size_t cycles;            /* from one wakeup to the next */
        } rows[] = {
                { 5000, 1000, 2 }, { 2000, 200, 5 }, { 20000, 1000, 10 }, { 20000, 3000, 3 }, { 100000, 1000, 50 },
                { 100000, 24000, 2 }, { 5000, 100, 25 }, { 4000, 1000, 2 }, { 3999, 1000, 1 }, { 400, 100, 2 },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                const nsec_t tick = rows[i].shortest * NSEC_PER_USEC;
                const size_t n = rows[i].cycles;
                Rig r;

                world_init(&r, rows[i].latency * NSEC_PER_USEC);
                atomic_store(&r.dispatcher.dispatching.tick, tick);
                now -= now % (n * tick);
                for (size_t cycles = 0; cycles < 4 * n; cycles++, now += tick) {
                        const bool is_woken = cycle(&r) > 0;

                        assert_int_equal(is_woken, cycles % n == 0);
                        if (n > 1 && cycles % n > 0) /* also if no other cycle comes */
                                assert_int_equal(dispatcher_until_wakeup(&r.dispatcher), (n - cycles % n) * tick);
                }
                assert_true(n == 1 || 3 * n * tick > rows[i].latency * NSEC_PER_USEC);
                assert_true(2 * n * tick <= rows[i].latency * NSEC_PER_USEC);
                rig_deinit(&r);
        }
}

/* Whoever ends does not wait, and neither does much. */
static void test_no_wait(void **state) {
        size_t n = 0;
        Rig r;

        world_init(&r, LATENCY);
        assert_true(cycle(&r) > 0);
        assert_int_equal(cycle(&r), 0);
        r.dispatcher.n_closing = 1;
        assert_true(cycle(&r) > 0);
        r.dispatcher.n_closing = 0;
        while (n < 10000 && cycle(&r) == 0)
                n++;
        assert_in_range(n, 10, 9999);
        assert_int_equal(now, 1000 * OWN_TICK + NSEC_PER_MSEC);
        rig_deinit(&r);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_own_tick),
                cmocka_unit_test(test_at_once),
                cmocka_unit_test(test_any_latency),
                cmocka_unit_test(test_no_wait),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
