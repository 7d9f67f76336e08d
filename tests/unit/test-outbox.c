/*
 * Outboxes over a real socket, and into a ring: what is dropped, where its gap stands, and what is left afterwards.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/outbox-line.h"

/* A packet of one item of 1000 raw bytes, and room for exactly two of them. */
static size_t limit_of_two(void) {
        Packet *p = packet_of(1, 1, 1000);
        size_t limit = 2 * (p->length + OUTBOX_PACKET_COST);

        packet_unref(p);
        return limit;
}

static void test_drop_oldest(void **state) {
        Line l;

        line_init(&l, limit_of_two(), OVERFLOW_DROP_OLDEST, 1 << 20);
        line_push_kept(&l);
        for (int i = 0; i < 4; i++)
                assert_int_equal(line_push_items(&l, 1, 1000), 0); /* the first two are dropped */
        line_push_kept(&l);
        assert_int_equal(l.outbox.dropped_items[GAP_OUTBOX], 2);
        assert_int_equal(l.outbox.queued_items, 2);
        assert_int_equal(l.outbox.queued_bytes, limit_of_two());
        line_finish(&l);
        assert_int_equal(l.peer.gaps, 1);
        assert_int_equal(l.peer.sequence, 7); /* kept, two missing, their gap, two, kept */
        line_deinit(&l);
}

static void test_drop_newest(void **state) {
        Line l;

        line_init(&l, limit_of_two(), OVERFLOW_DROP_NEWEST, 1 << 20);
        for (int i = 0; i < 5; i++)
                assert_int_equal(line_push_items(&l, 1, 1000), 0); /* the last three are dropped */
        assert_int_equal(l.outbox.dropped_items[GAP_OUTBOX], 3);
        line_push_kept(&l);
        assert_int_equal(line_push_items(&l, 1, 1000), 0); /* and one more behind the kept one */
        line_finish(&l);
        assert_int_equal(l.peer.items, 2);
        assert_int_equal(l.peer.gaps, 2);
        assert_int_equal(l.peer.sequence, 9); /* two, three missing, their gap, kept, one missing, its gap */
        assert_int_equal(line_push_items(&l, 1, 1000), 0);
        line_finish(&l);
        assert_int_equal(l.peer.sequence, 10);
        line_deinit(&l);
}

static void test_disconnect(void **state) {
        Line l;

        line_init(&l, limit_of_two(), OVERFLOW_DISCONNECT, 1 << 20);
        l.outbox.is_relayed = l.peer.is_relayed = true;
        assert_int_equal(line_push_items(&l, 1, 1000), 0);
        assert_int_equal(line_push_items(&l, 1, 1000), 0);
        assert_int_equal(line_push_items(&l, 1, 1000), OUTBOX_E_OVERFLOW);
        assert_int_equal(outbox_send(&l.outbox, l.out), 0);
        assert_int_equal(line_push_items(&l, 1, 1), OUTBOX_E_OVERFLOW); /* what would fit again is behind the end too */
        line_push_kept(&l); /* the end can still be said */
        line_finish(&l);
        assert_int_equal(l.peer.items, 2);
        assert_int_equal(l.peer.sequence, 7); /* two gaps of one packet each are packets too */
        line_deinit(&l);
}

/* Whatever the limit is, something gets through; and what has begun to leave is not dropped. */
static void test_larger_than_limit(void **state) {
        Line l;

        line_init(&l, 0, OVERFLOW_DROP_OLDEST, 1);
        assert_int_equal(line_push_items(&l, 3, 200000), 0);
        assert_int_equal(outbox_send(&l.outbox, l.out), OUTBOX_E_AGAIN);
        assert_true(l.outbox.head_sent > 0);
        assert_int_equal(line_push_items(&l, 1, 10), 0);
        assert_int_equal(line_push_items(&l, 1, 10), 0);
        assert_int_equal(l.outbox.dropped_items[GAP_OUTBOX], 2);
        assert_int_equal(l.outbox.queued_items, 3);
        line_finish(&l);
        assert_int_equal(l.peer.items, 3);
        assert_int_equal(l.peer.sequence, 4);

        assert_int_equal(line_push_items(&l, 2, 10), 0);
        assert_int_equal(line_push_items(&l, 2, 10), 0); /* nothing of the one before had left */
        line_finish(&l);
        assert_int_equal(l.peer.items, 5);
        assert_int_equal(l.peer.sequence, 7);
        line_deinit(&l);
}

/* Kept packets are bounded too, in the only way that is left. */
static void test_kept_bound(void **state) {
        const size_t size = (size_t)1 << 20;
        _cleanup_free_ uint8_t *bytes = calloc(1, size);
        Packet *p = packet_new(size);
        Outbox o;
        size_t n = 0;

        assert_non_null(bytes);
        assert_non_null(p);
        assert_true(packet_append_field(p, bytes, size));
        packet_seal(p);
        outbox_init(&o, 0, OVERFLOW_DROP_OLDEST);
        while (outbox_push(&o, p) == 0)
                n++;
        assert_int_equal(n, OUTBOX_KEPT_MAX / (size + OUTBOX_PACKET_COST));
        assert_int_equal(outbox_push(&o, p), OUTBOX_E_OVERFLOW);
        assert_int_equal(p->n_refs, 1 + n);
        outbox_deinit(&o);
        assert_int_equal(p->n_refs, 1);
        packet_unref(p);
}

/* ---- accounts ---------------------------------------------------------------------------------------------------- */

#define FULL 1000 /* raw bytes of an item whose packets fill accounts */

/* An account that queues share, with room for so many bytes above what each has anyway. */
static void line_charge(Line *l, QueueAccount *of_uid, QueueAccount *of_all) {
        outbox_set_accounts(&l->outbox, of_uid, of_all);
}

/* One queue may hold the floor in any case, and above it what the account has: the rest it drops, by its own policy. */
static void test_account(void **state) {
        for (Overflow overflow = OVERFLOW_DROP_OLDEST; overflow <= OVERFLOW_DROP_NEWEST; overflow++) {
                for (int of_all = 0; of_all < 2; of_all++) {
                        QueueAccount account = { .limit = 100000 }, other = { .limit = SIZE_MAX };
                        Line l;

                        line_init(&l, SIZE_MAX, overflow, 1 << 20);
                        line_charge(&l, of_all ? &other : &account, of_all ? &account : &other);
                        for (int i = 0; i < 1000; i++) {
                                assert_int_equal(line_push_items(&l, 1, FULL), 0);
                                assert_true(queue_account_used(&account) <= 100000);
                                assert_int_equal(queue_account_used(&account), l.outbox.charged);
                                assert_int_equal(queue_account_used(&other), l.outbox.charged);
                        }
                        assert_int_equal(account.n_queues, 1);
                        assert_true(l.outbox.queued_bytes > 100000 + OUTBOX_FLOOR - 2 * FULL);
                        assert_int_equal(l.outbox.dropped_items[GAP_MEMORY], 1000 - l.outbox.queued_items);
                        line_finish(&l);
                        assert_int_equal(l.peer.gaps, 1);
                        assert_int_equal(queue_account_used(&account), 0);
                        assert_int_equal(account.n_queues, 0);
                        line_deinit(&l);
                }
        }
}

/* An account that others have used up leaves each queue its floor, through which all goes that is read in time. */
static void test_account_of_others(void **state) {
        QueueAccount account = { .limit = 100000, .used = 100000 };
        Line l;

        line_init(&l, SIZE_MAX, OVERFLOW_DROP_OLDEST, 1 << 20);
        line_charge(&l, &account, NULL);
        for (int i = 0; i < 100; i++) {
                assert_int_equal(line_push_items(&l, 10, FULL), 0);
                line_push_kept(&l);
                line_finish(&l);
        }
        assert_int_equal(outbox_dropped(&l.outbox), 0);
        assert_int_equal(queue_account_used(&account), 100000);
        line_deinit(&l);
}

/* Both reasons have gaps of their own, one behind the other, and the numbers of both are right: line_finish() compares. */
static void test_both_reasons(void **state) {
        QueueAccount account = { .limit = SIZE_MAX };
        Line l;

        line_init(&l, (size_t)200 * FULL, OVERFLOW_DROP_NEWEST, 1 << 20);
        line_charge(&l, &account, NULL);
        for (int i = 0; i < 300; i++)
                assert_int_equal(line_push_items(&l, 1, FULL), 0);
        assert_true(l.outbox.dropped_items[GAP_OUTBOX] > 0 && l.outbox.dropped_items[GAP_MEMORY] == 0);
        assert_true(outbox_shed(&l.outbox, 5 * FULL) >= 5 * FULL);
        assert_true(l.outbox.dropped_items[GAP_MEMORY] >= 5);
        line_push_kept(&l);
        queue_account_set_limit(&account, 0);
        assert_int_equal(line_push_items(&l, 1, FULL), 0);
        line_push_kept(&l);
        line_finish(&l);
        assert_int_equal(l.peer.gaps, 3); /* memory, outbox; memory */
        line_deinit(&l);
}

/* By its policy: the oldest or the newest, never what is kept or was begun, never below the floor. */
static void test_shed(void **state) {
        for (Overflow overflow = OVERFLOW_DROP_OLDEST; overflow < _OVERFLOW_MAX; overflow++) {
                QueueAccount account = { .limit = SIZE_MAX };
                uint64_t before;
                ssize_t n;
                Line l;

                line_init(&l, SIZE_MAX, overflow, 1);
                line_charge(&l, &account, NULL);
                for (int i = 0; i < 200; i++) {
                        assert_int_equal(line_push_items(&l, 1, FULL), 0);
                        if (i % 50 == 0)
                                line_push_kept(&l);
                }
                assert_int_equal(line_send(&l), OUTBOX_E_AGAIN);
                before = queue_account_used(&account);
                n = outbox_shed(&l.outbox, 10000);
                assert_true(n >= 10000 && n < 10000 + 2 * FULL);
                assert_int_equal(queue_account_used(&account), before - (size_t)n);
                before = queue_account_used(&account);
                assert_int_equal(outbox_shed(&l.outbox, SIZE_MAX), before);
                assert_int_equal(queue_account_used(&account), 0);
                assert_true(l.outbox.queued_bytes > OUTBOX_FLOOR - 4 * FULL);
                assert_int_equal(outbox_shed(&l.outbox, SIZE_MAX), 0);
                line_finish(&l);
                assert_int_equal(l.outbox.dropped_items[GAP_OUTBOX], 0);
                line_deinit(&l);
        }
}

/* What is kept pushes out what can be dropped; where nothing can, the stream is broken. */
static void test_account_of_kept(void **state) {
        const size_t size = 50000;
        QueueAccount account = { .limit = 200000 };
        _cleanup_free_ uint8_t *bytes = calloc(1, size);
        Packet *p = packet_new(size);
        size_t n = 0;
        Line l;

        assert_non_null(bytes);
        assert_non_null(p);
        assert_true(packet_append_field(p, bytes, size));
        packet_seal(p);
        line_init(&l, SIZE_MAX, OVERFLOW_DROP_OLDEST, 1 << 20);
        line_charge(&l, &account, NULL);
        for (int i = 0; i < 300; i++)
                assert_int_equal(line_push_items(&l, 1, FULL), 0);
        while (outbox_push(&l.outbox, p) == 0) {
                assert_true(queue_account_used(&account) <= 200000);
                n++;
        }
        assert_int_equal(n, (200000 + OUTBOX_FLOOR) / (size + OUTBOX_PACKET_COST));
        assert_int_equal(l.outbox.queued_items, 0);
        assert_int_equal(outbox_push(&l.outbox, p), OUTBOX_E_OVERFLOW);
        line_deinit(&l);
        assert_int_equal(queue_account_used(&account), 0);
        assert_int_equal(account.n_queues, 0);
        packet_unref(p);
}

static void test_peer_gone(void **state) {
        Line l;

        line_init(&l, 1 << 20, OVERFLOW_DROP_OLDEST, 1 << 20);
        assert_int_equal(line_push_items(&l, 4, 100), 0);
        assert_int_equal(outbox_send(&l.outbox, -1), -EBADF);
        l.in = close_fd(l.in);
        assert_int_equal(outbox_send(&l.outbox, l.out), OUTBOX_E_GONE);
        assert_int_equal(l.outbox.queued_items, 4);
        line_check(&l);
        line_deinit(&l);
}

/* A frame may be larger than the ring; a subscriber that breaks its rules is found. */
static void test_ring(void **state) {
        Line l;

        line_init_ring(&l, 1 << 20, OVERFLOW_DROP_OLDEST, STREAM_RING_MIN);
        assert_int_equal(line_push_items(&l, 3, 200000), 0);
        assert_int_equal(outbox_send_shared(&l.outbox, l.ring), OUTBOX_E_FULL);
        assert_int_equal(l.outbox.head_sent, STREAM_RING_MIN);
        assert_int_equal(outbox_send_shared(&l.outbox, l.ring), OUTBOX_E_FULL);
        assert_int_equal(line_push_items(&l, 1, 10), 0);
        line_finish(&l);
        assert_int_equal(l.peer.items, 4);

        assert_int_equal(line_push_items(&l, 1, 10), 0);
        atomic_fetch_add(&l.reader.own->tail, 1);
        assert_int_equal(outbox_send_shared(&l.outbox, l.ring), OUTBOX_E_BROKEN);
        assert_int_equal(l.outbox.queued_items, 1);
        line_check(&l);
        line_deinit(&l);
}

/* So much as there is room for, with a header that becomes longer with the sequence; nothing while something waits. */
static void test_place(void **state) {
        const size_t header = FRAME_HEADER_SIZE + 1 + 4 + 1;
        size_t room, n = 0;
        Line l;

        line_init_ring(&l, 1 << 20, OVERFLOW_DROP_OLDEST, STREAM_RING_MIN);
        assert_null(outbox_reserve(&l.outbox, l.ring, STREAM_RING_MIN - header, &room));
        assert_non_null(outbox_reserve(&l.outbox, l.ring, STREAM_RING_MIN - header - 1, &room));
        assert_int_equal(room, STREAM_RING_MIN - header - 1);
        while (line_place_items(&l, 1, 100))
                n++;
        assert_true(n > 350 && l.outbox.next_sequence == n + 1);
        assert_non_null(outbox_reserve(&l.outbox, l.ring, 1, &room));
        assert_int_equal(room, STREAM_RING_MIN - l.ring->head - header - 2); /* a sequence of two bytes */
        line_finish(&l);

        line_push_kept(&l);
        assert_false(line_place_items(&l, 1, 1));
        line_finish(&l);
        assert_true(line_place_items(&l, 1, 1));
        line_finish(&l);
        line_deinit(&l);
}

/* A stream that is over says nothing more but its end, also when nothing waits any more. */
static void test_place_over(void **state) {
        Line l;

        line_init_ring(&l, limit_of_two(), OVERFLOW_DISCONNECT, STREAM_RING_MIN);
        assert_int_equal(line_push_items(&l, 1, 1000), 0);
        assert_int_equal(line_push_items(&l, 1, 1000), 0);
        assert_int_equal(line_push_items(&l, 1, 1000), OUTBOX_E_OVERFLOW);
        line_finish(&l);
        assert_false(line_place_items(&l, 1, 1));
        assert_int_equal(line_push_items(&l, 1, 1), OUTBOX_E_OVERFLOW);
        line_push_kept(&l);
        line_finish(&l);
        assert_int_equal(l.peer.items, 2);
        line_deinit(&l);
}

/* By its place goes what is in this pool, is not short, and has nothing before it; until it was read the buffer is nobody else's. */
static void test_refer(void **state) {
        BufferPool *pools[2];
        Packet *p, *held[POOL_BUFFERS];
        unsigned n = 0;
        Line l;

        for (int i = 0; i < 2; i++) {
                assert_int_equal(buffer_pool_new(&pools[i]), 0);
                assert_int_equal(buffer_pool_fill(pools[i]), 0);
        }
        line_init_ring(&l, 1 << 20, OVERFLOW_DROP_OLDEST, STREAM_RING_MIN);
        line_share(&l, pools[0]);

        p = packet_in_pool(pools[0], 1, 1, 100);
        assert_false(line_refer_items(&l, p, 1)); /* short */
        packet_unref(p);
        p = packet_in_pool(pools[0], 2, 10, 1000);
        assert_false(line_refer_items(&l, p, 10)); /* the short one waits */
        assert_int_equal(packet_settle(p, NULL), 0); /* its copy waits now */
        packet_unref(p);
        assert_int_equal(pools[0]->n_free, POOL_BUFFERS - 1); /* of the short one, which was not settled */
        line_finish(&l);
        assert_int_equal(pools[0]->n_free, POOL_BUFFERS);
        p = packet_in_pool(pools[1], 12, 10, 1000);
        assert_false(line_refer_items(&l, p, 10)); /* of a pool that it does not have */
        packet_unref(p);
        line_finish(&l);

        while ((p = packet_in_pool(pools[0], l.pushed + 1, 10, 1000)) && line_refer_items(&l, p, 10)) {
                n++;
                packet_unref(p);
        }
        packet_unref(p);
        assert_int_equal(n, SHARED_RING_PINS);
        assert_int_equal(pools[0]->n_free, POOL_BUFFERS - SHARED_RING_PINS - 1);
        for (n = 0; (p = packet_new_buffered(pools[0])); n++)
                held[n] = p;
        assert_int_equal(n, POOL_BUFFERS - SHARED_RING_PINS - 1);
        line_finish(&l);
        assert_false(shared_ring_reclaim(l.ring));
        assert_int_equal(pools[0]->n_free, POOL_BUFFERS - n);
        while (n > 0)
                packet_unref(held[--n]);

        p = packet_in_pool(pools[0], l.pushed + 1, 10, 1000);
        assert_true(line_refer_items(&l, p, 10));
        packet_unref(p);
        assert_true(shared_ring_reclaim(l.ring));
        line_deinit(&l); /* who is gone reads nothing */
        assert_int_equal(pools[0]->n_free, POOL_BUFFERS);
        for (int i = 0; i < 2; i++)
                buffer_pool_unref(pools[i]);
}

/* Two subscribers share packets, by sockets or rings; one reads at random, the other not at all, then all. Fixed seeds. */
static void run_random(Overflow overflow, unsigned seed, bool by_ring) {
        Line fast, slow, *lines[] = { &fast, &slow };
        unsigned n_placed = 0, n_referred = 0;
        BufferPool *pool;

        assert_int_equal(buffer_pool_new(&pool), 0);
        assert_int_equal(buffer_pool_fill(pool), 0);
        print_message("seed %u\n", seed);
        if (by_ring) {
                line_init_ring(&fast, 60000, overflow, STREAM_RING_MIN);
                line_init_ring(&slow, 20000, overflow, STREAM_RING_MIN);
                line_share(&fast, pool);
                line_share(&slow, pool);
        } else {
                line_init(&fast, 60000, overflow, 20000);
                line_init(&slow, 20000, overflow, 1);
        }
        for (int turn = 0; turn < 3000; turn++) {
                unsigned dice = (unsigned)rand_r(&seed) % 16;
                size_t n = 1 + (size_t)rand_r(&seed) % 40, raw_size = (size_t)rand_r(&seed) % 300;
                Packet *p;

                if (dice < 2 && by_ring && (p = packet_in_pool(pool, fast.pushed + 1, n, raw_size))) {
                        for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
                                n_referred += line_refer_items(lines[i], p, n);
                        assert_int_equal(packet_settle(p, NULL), 0);
                        packet_unref(p);
                } else if (dice < 7) {
                        p = packet_of(fast.pushed + 1, n, raw_size);
                        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                                if (by_ring && dice < 4 && line_place_items(lines[i], n, raw_size)) {
                                        n_placed++;
                                        continue;
                                }
                                assert_int_equal(outbox_push(&lines[i]->outbox, p), 0);
                                lines[i]->pushed += n;
                                line_check(lines[i]);
                                assert_true(lines[i]->outbox.queued_bytes <= lines[i]->outbox.limit);
                        }
                        packet_unref(p);
                } else if (dice == 7) {
                        for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
                                line_push_kept(lines[i]);
                } else if (dice < 12) {
                        int code = line_send(&fast);

                        assert_true(code == 0 || code == OUTBOX_E_AGAIN);
                        assert_int_equal(code == 0, outbox_is_empty(&fast.outbox));
                        line_check(&fast);
                        (void)line_send(&slow);
                        line_check(&slow);
                } else {
                        line_read(&fast, 1 + (size_t)rand_r(&seed) % 15000);
                        if (turn % 8 == 0)
                                line_read(&slow, 1 + (size_t)rand_r(&seed) % 3000);
                }
        }
        assert_true(!by_ring || (n_placed > 50 && n_referred > 50));
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                line_finish(lines[i]);
                assert_true(lines[i]->peer.gaps > 1 && lines[i]->peer.items > 0);
                line_deinit(lines[i]);
        }
        assert_int_equal(pool->n_free, POOL_BUFFERS);
        buffer_pool_unref(pool);
}

static void test_random_oldest(void **state) {
        for (unsigned seed = 1; seed <= 5; seed++)
                run_random(OVERFLOW_DROP_OLDEST, seed, seed % 2);
}

static void test_random_newest(void **state) {
        for (unsigned seed = 6; seed <= 10; seed++)
                run_random(OVERFLOW_DROP_NEWEST, seed, seed % 2);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_drop_oldest),
                cmocka_unit_test(test_drop_newest),
                cmocka_unit_test(test_disconnect),
                cmocka_unit_test(test_larger_than_limit),
                cmocka_unit_test(test_kept_bound),
                cmocka_unit_test(test_account),
                cmocka_unit_test(test_account_of_others),
                cmocka_unit_test(test_both_reasons),
                cmocka_unit_test(test_shed),
                cmocka_unit_test(test_account_of_kept),
                cmocka_unit_test(test_peer_gone),
                cmocka_unit_test(test_ring),
                cmocka_unit_test(test_place),
                cmocka_unit_test(test_place_over),
                cmocka_unit_test(test_refer),
                cmocka_unit_test(test_random_oldest),
                cmocka_unit_test(test_random_newest),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
