/*
 * When a reader of a ring looks by itself: a clock that the test turns, a daemon that writes at ticks or elsewhere, and a
 * reader that does what discard.c and libperfd do. Bells are counted, and so are looks in vain.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/stream/shared-ring.h"
#include "proto/adaptive-poll.h"

#define SIZE STREAM_RING_MIN
#define TICK ((uint64_t)3000000)
#define AGES ((uint64_t)3600 * 1000000000)

typedef struct Rig {
        SharedRing *ring;
        RingReader reader;
        AdaptivePoll pace;
        uint64_t now, until; /* it sleeps until then */
        uint64_t read;
        unsigned bells, looks, vain;
} Rig;

static void rig_sleep(Rig *r) {
        ring_reader_arm(&r->reader);
        r->until = adaptive_poll_sleep(&r->pace, &r->reader, r->now);
}

static void rig_init(Rig *r) {
        *r = (Rig){ .pace = ADAPTIVE_POLL_INIT, .now = 1000 * TICK };
        assert_int_equal(shared_ring_new(SIZE, &r->ring, NULL), 0);
        assert_int_equal(ring_reader_open(&r->reader, r->ring->fds, SIZE, r->ring->offset), 0);
        shared_ring_close_fds(r->ring);
        rig_sleep(r);
}

static void rig_deinit(Rig *r) {
        ring_reader_close(&r->reader);
        shared_ring_free(r->ring);
}

static void rig_look(Rig *r, bool is_rung) {
        const uint8_t *bytes;
        size_t n;

        ring_reader_disarm(&r->reader);
        assert_int_equal(ring_reader_peek(&r->reader, &bytes, &n), 0);
        (void)ring_reader_consume(&r->reader, n);
        r->read += n;
        r->looks++;
        r->vain += n == 0;
        adaptive_poll_looked(&r->pace, &r->reader, r->now, n, is_rung);
        rig_sleep(r);
}

/* Up to this time it looks when it wants to. */
static void rig_go(Rig *r, uint64_t now) {
        while (r->until <= now) {
                r->now = r->until > r->now ? r->until : r->now;
                rig_look(r, false);
        }
        r->now = now;
}

static void rig_write_only(Rig *r, size_t n, bool is_due) {
        static uint8_t bytes[SIZE];
        const SharedTick tick = { .next = r->now - r->now % TICK + TICK, .length = TICK, .is_due = is_due };
        struct iovec part = { bytes, n };
        size_t written;

        shared_ring_expect(r->ring, &tick);
        assert_int_equal(shared_ring_write(r->ring, &part, 1, &written), 0);
        assert_int_equal(written, n);
}

static void rig_write(Rig *r, size_t n, bool is_due) {
        rig_write_only(r, n, is_due);
        if (!shared_ring_take_ring(r->ring))
                return;
        r->bells++;
        rig_look(r, true);
}

/* At each of n ticks, so late. */
static void rig_tick(Rig *r, unsigned n, uint64_t late) {
        for (unsigned i = 0; i < n; i++) {
                rig_go(r, r->now - r->now % TICK + TICK + late);
                rig_write(r, 100, true);
        }
}

static void rig_forget(Rig *r) {
        r->bells = r->looks = r->vain = 0;
}

static void test_regular(void **state) {
        Rig r;

        rig_init(&r);
        rig_tick(&r, 50, 50000);
        assert_int_equal(r.bells, 3); /* it has to see two of them first, behind one */
        assert_int_equal(r.vain, 0);
        rig_forget(&r);
        rig_tick(&r, 1000, 150000);
        assert_in_range(r.bells, 1, 5 + 1000 / 14); /* it tries to come sooner, and is rung for then */
        assert_int_equal(r.vain, r.bells);
        rig_go(&r, r.now + TICK);
        assert_int_equal(r.read, 1050 * 100);
        rig_deinit(&r);
}

/* What comes later than it looked is rung for at once, and it looks later then; and sooner, when that is over. */
static void test_late(void **state) {
        uint64_t slack;
        Rig r;

        rig_init(&r);
        rig_tick(&r, 10, 0);
        rig_forget(&r);
        rig_tick(&r, 100, 400000);
        assert_in_range(r.bells, 1, 30);
        assert_in_range(r.pace.slack, 400000 - 20000, 400000 + 20000);
        rig_forget(&r);
        rig_tick(&r, 1600, 400000);
        assert_in_range(r.bells, 1, 1600 / 14);
        slack = r.pace.slack;
        rig_tick(&r, 200, 0);
        assert_in_range(r.pace.slack, slack - 201 * 1000, slack - 199 * 1000);
        rig_deinit(&r);
}

/* Later than it can wait for: it gives that up, and is rung for. */
static void test_too_late(void **state) {
        Rig r;

        rig_init(&r);
        rig_tick(&r, 10, 0);
        rig_forget(&r);
        rig_tick(&r, 2000, TICK / 2);
        assert_true(r.pace.slack <= TICK / 4);
        assert_true(r.vain < 100);
        assert_true(r.bells > 1900);
        rig_deinit(&r);
}

/* Asked again before it has looked, whenever that is. */
static void test_twice(void **state) {
        uint64_t until;
        Rig r;

        rig_init(&r);
        rig_tick(&r, 10, 0);
        rig_go(&r, r.now + 500000);
        until = r.until;
        assert_true(until < UINT64_MAX);
        assert_int_equal(adaptive_poll_sleep(&r.pace, &r.reader, until - 1), until);
        assert_int_equal(adaptive_poll_sleep(&r.pace, &r.reader, until + AGES), until);
        rig_deinit(&r);
}

/* What came between its look and its sleep is rung for, and was not late. */
static void test_before_sleep(void **state) {
        uint64_t slack;
        Rig r;

        rig_init(&r);
        rig_tick(&r, 10, 0);
        rig_go(&r, r.now + 500000);
        slack = r.pace.slack;
        for (unsigned i = 0; i < 100; i++) {
                rig_tick(&r, 1, 0);
                rig_go(&r, r.now + 500000);
                ring_reader_arm(&r.reader); /* it has looked and not said yet when it comes */
                r.pace.due = 0;
                rig_write_only(&r, 100, true);
                assert_int_equal(adaptive_poll_sleep(&r.pace, &r.reader, r.now), UINT64_MAX);
                assert_true(shared_ring_take_ring(r.ring));
                rig_look(&r, true);
        }
        assert_true(r.pace.slack <= slack);
        rig_deinit(&r);
}

/* Clients that emit, thousands a second, are no ticks. */
static void test_no_ticks(void **state) {
        Rig r;

        rig_init(&r);
        for (unsigned i = 0; i < 1000; i++) {
                rig_go(&r, r.now + TICK / 3);
                rig_write(&r, 100, false);
                assert_int_equal(r.until, UINT64_MAX);
        }
        assert_int_equal(r.bells, 1000);
        rig_deinit(&r);
}

/* Two CPUs: the second one comes when it has looked. It does not wait for the next tick, and is waited for from then on. */
static void test_second(void **state) {
        Rig r;

        rig_init(&r);
        rig_tick(&r, 10, 0);
        rig_forget(&r);
        for (unsigned i = 0; i < 200; i++) {
                rig_tick(&r, 1, 0);
                rig_go(&r, r.now + 300000);
                rig_write(&r, 100, true);
                assert_true(r.reader.tail == r.ring->head || r.until < r.now + 100000);
        }
        assert_in_range(r.bells, 10, 40);
        rig_deinit(&r);
}

/* What a full ring makes a reader write in the middle of a tick can wait for the next one. */
static void test_between(void **state) {
        Rig r;

        rig_init(&r);
        rig_tick(&r, 10, 0);
        rig_forget(&r);
        for (unsigned i = 0; i < 100; i++) {
                rig_go(&r, r.now + TICK / 2);
                rig_write(&r, 100, false);
                rig_tick(&r, 1, 0);
        }
        assert_int_equal(r.bells, 0);
        assert_int_equal(r.vain, 0);
        assert_in_range(r.looks, 99, 101);
        rig_deinit(&r);
}

/* Now and then: it is rung for that, and hardly looks in vain. */
static void test_sparse(void **state) {
        uint64_t seed = 1;
        Rig r;

        rig_init(&r);
        for (unsigned i = 0; i < 10000; i++) {
                seed = seed * 6364136223846793005 + 1442695040888963407;
                rig_go(&r, r.now - r.now % TICK + TICK * (1 + (seed >> 33) % 4));
                rig_write(&r, 100, true);
        }
        rig_go(&r, r.now + TICK);
        assert_int_equal(r.read, 10000 * 100);
        assert_true(r.vain < 10000 / 100);
        assert_true(r.bells > 9900);
        rig_deinit(&r);
}

/* A burst of ticks, quiet, and so on: it looks twice in vain at each end, and now and then too early. */
static void test_bursts(void **state) {
        Rig r;

        rig_init(&r);
        for (unsigned i = 0; i < 50; i++) {
                rig_tick(&r, 200, 50000);
                rig_go(&r, r.now + 100 * TICK);
        }
        assert_true(r.vain <= 2 * 50 + 50 * 200 / 14);
        assert_true(r.bells <= 50 * (10 + 200 / 14));
        assert_int_equal(r.read, 50 * 200 * 100);
        rig_deinit(&r);
}

/* n times: ticks at which nothing comes, and then such at which something does. */
static void rig_hiccup(Rig *r, unsigned n, unsigned n_without, unsigned n_with) {
        rig_init(r);
        rig_tick(r, 50, 50000);
        rig_forget(r);
        for (unsigned i = 0; i < n; i++) {
                rig_go(r, r->now + n_without * TICK);
                rig_tick(r, n_with, 50000);
        }
        rig_go(r, r->now + TICK);
        assert_int_equal(r->read, (50 + n * n_with) * 100);
        rig_deinit(r);
}

/* One is forgiven; for more it is rung until it trusts them again. */
static void test_hiccups(void **state) {
        Rig r;

        rig_hiccup(&r, 100, 1, 19);
        assert_int_equal(r.vain, 100);
        assert_int_equal(r.bells, 0);
        rig_hiccup(&r, 100, 2, 19);
        assert_int_equal(r.vain, 200);
        assert_in_range(r.bells, 100, 5 * 100);
}

/* What comes at every second tick is rung for, as what comes now and then. */
static void test_every_second(void **state) {
        Rig r;

        rig_hiccup(&r, 1000, 1, 1);
        assert_true(r.vain < 10);
        assert_true(r.bells > 990);
}

static void test_full(void **state) {
        Rig r;

        rig_init(&r);
        for (unsigned i = 0; i < 50; i++) {
                rig_tick(&r, 1, 0);
                rig_go(&r, r.now + TICK / 2);
                rig_write(&r, SIZE / 2, false);
                rig_write(&r, SIZE / 4 + 1, false); /* more than three quarters */
                if (i > 3)
                        assert_int_equal(r.reader.tail, r.ring->head);
        }
        assert_true(r.bells >= 46);
        assert_true(r.pace.slack < 110000); /* that was no sign of how late ticks are */
        rig_deinit(&r);
}

/* Whatever the daemon says, nobody sleeps much longer than a tick by it. */
static void test_wrong(void **state) {
        const uint64_t nexts[] = { 0, 1, 999 * TICK, 1000 * TICK, 1001 * TICK + 1, 1000 * TICK + AGES, UINT64_MAX / 2, UINT64_MAX - 1,
                                   UINT64_MAX };
        const uint32_t lengths[] = { 0, 1, 1000, (uint32_t)TICK, UINT32_MAX };

        for (size_t i = 0; i < ARRAY_SIZE(nexts); i++)
                for (size_t k = 0; k < ARRAY_SIZE(lengths); k++) {
                        Rig r;

                        rig_init(&r);
                        rig_tick(&r, 10, 0);
                        rig_go(&r, r.now + TICK / 2);
                        rig_write_only(&r, 100, true);
                        atomic_store(&r.ring->words->next, nexts[i]);
                        atomic_store(&r.ring->words->tick, lengths[k]);
                        rig_look(&r, false);
                        assert_true(r.until == UINT64_MAX || (r.until > r.now && r.until <= r.now + lengths[k] + lengths[k] / 4));
                        rig_deinit(&r);
                }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_regular),
                cmocka_unit_test(test_late),
                cmocka_unit_test(test_second),
                cmocka_unit_test(test_between),
                cmocka_unit_test(test_sparse),
                cmocka_unit_test(test_bursts),
                cmocka_unit_test(test_hiccups),
                cmocka_unit_test(test_every_second),
                cmocka_unit_test(test_full),
                cmocka_unit_test(test_wrong),
                cmocka_unit_test(test_too_late),
                cmocka_unit_test(test_twice),
                cmocka_unit_test(test_before_sleep),
                cmocka_unit_test(test_no_ticks),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
