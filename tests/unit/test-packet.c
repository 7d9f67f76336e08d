/* Packets: how they are filled, whose their bytes are, and what becomes of their memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/stream/packet.h"

static void test_packet(void **state) {
        uint8_t items[101] = { 1 };
        PacketPool pool = { .n = 0 };
        Packet *p = packet_new(1000);

        assert_non_null(p);
        for (size_t i = 0; i < 9; i++)
                assert_true(packet_append(p, items, 100, 3));
        assert_false(packet_append(p, items, 101, 1));
        assert_false(packet_append_one(p, items, 101));
        assert_true(packet_append_one(p, items, 100));
        assert_int_equal(p->n_items, 28);
        packet_seal(p);
        assert_int_equal(packet_settle(p, &pool), 0);
        assert_int_equal(p->capacity, 1000); /* it was made as large as it is */
        packet_unref(p);
        assert_int_equal(pool.n, 0);
}

/* One item is copied in pieces that overlap. */
static void test_packet_append_one(void **state) {
        uint8_t item[300];
        Packet *p = packet_new(sizeof(item));

        assert_non_null(p);
        for (size_t i = 0; i < sizeof(item); i++)
                item[i] = (uint8_t)(i + 1);
        for (size_t length = 0; length <= sizeof(item); length++) {
                p->length = 0;
                memset(p->room, 0, sizeof(item));
                assert_true(packet_append_one(p, item, length));
                assert_int_equal(p->length, length);
                assert_memory_equal(p->bytes, item, length);
                for (size_t i = length; i < sizeof(item); i++)
                        assert_int_equal(p->bytes[i], 0);
        }
        packet_unref(p);
}

/* Room that was used is used again; who waits holds no more of it than he has bytes. */
static void test_packet_pool(void **state) {
        uint8_t items[PACKET_SIZE] = { 1 };
        PacketPool pool = { .n = 0 };
        Packet *p = packet_new_pooled(&pool);
        const uint8_t *room;

        assert_non_null(p);
        room = p->room;
        assert_true(packet_append_field(p, items, sizeof(items)));
        packet_seal(p);
        assert_int_equal(packet_settle(p, &pool), 0);
        assert_ptr_equal(p->room, room);
        packet_unref(p);
        p = packet_new_pooled(&pool);
        assert_non_null(p);
        assert_ptr_equal(p->room, room);
        assert_true(packet_append(p, items, 100, 1));
        packet_seal(p);
        assert_int_equal(packet_settle(p, &pool), 0);
        assert_ptr_equal(pool.rooms[0], room);
        assert_int_equal(p->capacity, 100);
        assert_memory_equal(p->bytes, items, 100);
        packet_unref(p);
        assert_int_equal(pool.n, 1);
        packet_pool_trim(&pool);
}

static void pool_turns(PacketPool *pool, size_t n) {
        for (size_t i = 0; i < PACKET_CYCLES; i++) {
                Packet *taken[3];

                for (size_t k = 0; k < n && i == 0; k++)
                        assert_non_null(taken[k] = packet_new_pooled(pool));
                for (size_t k = 0; k < n && i == 0; k++)
                        packet_unref(taken[k]);
                packet_pool_end_cycle(pool);
        }
}

/* As much spare room as one of the last turns has needed. */
static void test_packet_pool_size(void **state) {
        PacketPool pool = { .n = 0 };

        for (size_t n = 3; n < 4; n--) {
                pool_turns(&pool, n);
                assert_int_equal(pool.n, n);
        }
        pool_turns(&pool, 2);
        assert_int_equal(pool.n, 2);
        packet_pool_trim(&pool);
}

/* More are taken than are ever kept, and in the middle of that it is trimmed: a subscriber has left. */
static void test_packet_pool_trimmed(void **state) {
        PacketPool pool = { .n = 0 };
        Packet *taken[3 * PACKET_SPARES];

        for (size_t i = 0; i < ARRAY_SIZE(taken); i++) {
                if (i == 2 * PACKET_SPARES)
                        packet_pool_trim(&pool);
                assert_non_null(taken[i] = packet_new_pooled(&pool));
        }
        for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
                packet_unref(taken[i]);
        assert_int_equal(pool.n, PACKET_SPARES);
        packet_pool_trim(&pool);
        assert_int_equal(pool.n, 0);
}

static void test_packet_lent(void **state) {
        uint8_t items[1000], lent[1000];
        PacketPool pool = { .n = 0 };
        Packet *p, *held;

        memset(items, 1, sizeof(items));
        memset(lent, 1, sizeof(lent));
        p = packet_new_borrowed(lent, sizeof(lent), 3);
        assert_non_null(p);
        assert_ptr_equal(p->bytes, lent);
        assert_null(p->room);
        held = packet_ref(p);
        assert_int_equal(packet_settle(p, &pool), 0);
        packet_unref(p);
        memset(lent, 2, sizeof(lent));
        assert_int_equal(held->n_items, 3);
        assert_int_equal(held->length, sizeof(items));
        assert_memory_equal(held->bytes, items, sizeof(items));
        packet_unref(held);
        assert_int_equal(pool.n, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_packet),
                cmocka_unit_test(test_packet_append_one),
                cmocka_unit_test(test_packet_pool),
                cmocka_unit_test(test_packet_pool_size),
                cmocka_unit_test(test_packet_pool_trimmed),
                cmocka_unit_test(test_packet_lent),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
