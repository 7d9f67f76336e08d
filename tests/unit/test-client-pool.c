/* libperfd, and packets that it reads where others read them too. */
#include "tests/unit/client-line.h"

/* n items, from time `first` on, in a buffer. */
static Packet *items_in_pool(BufferPool *pool, uint64_t first, size_t n) {
        Packet *packet = packet_new_buffered(pool);

        assert_non_null(packet);
        for (size_t i = 0; i < n; i++) {
                Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;
                Perfd__V1__Item item, *items[] = { &item };
                uint8_t bytes[256];

                play_item_init(&item, first + i);
                p.n_items = 1;
                p.items = items;
                assert_true(perfd__v1__packet__get_packed_size(&p) <= sizeof(bytes));
                assert_true(packet_append(packet, bytes, perfd__v1__packet__pack(&p, bytes), 1));
        }
        packet_seal(packet);
        return packet;
}

static void line_init_pool(Line *l, BufferPool *pool) {
        line_connect(l);
        assert_true(shared_ring_share(l->ring, pool));
        assert_int_equal(line_subscribe(l, SIZE, true), 0);
        play_request_free(play_request(l->daemon));
        play_start(l->frames[1]);
        assert_int_equal(line_feed(l, SIZE, false), 0);
}

/* They are read where they lie, in their order among others, and the buffer is free again. */
static void test_pooled(void **state) {
        Outbox outbox = OUTBOX_NULL;
        BufferPool *pool;
        uint8_t byte;
        Packet *p;
        Line l;

        assert_int_equal(buffer_pool_new(&pool), 0);
        assert_int_equal(buffer_pool_fill(pool), 0);
        line_init_pool(&l, pool);
        outbox_init(&outbox, SIZE, OVERFLOW_DROP_OLDEST);
        outbox.next_sequence = 2;
        p = items_in_pool(pool, 100, 500);
        assert_true(outbox_send_ref(&outbox, l.ring, p));
        packet_unref(p);
        assert_int_equal(pool->n_free, POOL_BUFFERS - 1);
        play_bytes(l.daemon, "\0\0\0\0", 4);
        assert_int_equal(line_process(&l), 0);
        assert_int_equal(l.seen.items, 500);
        assert_int_equal(l.seen.last, 599);
        assert_false(shared_ring_reclaim(l.ring));
        assert_int_equal(pool->n_free, POOL_BUFFERS);

        play_items(l.frames[1], 3, 600, 5);
        assert_int_equal(line_feed(&l, 7, false), 0);
        assert_int_equal(l.seen.items, 505);

        /* the daemon need not keep any of it when the end was read */
        play_end(l.frames[1], 4, 505, 0);
        assert_int_equal(line_feed(&l, SIZE, false), PERFD_E_ENDED);
        assert_int_equal(recv(l.daemon, &byte, 1, MSG_DONTWAIT), 0);
        outbox_deinit(&outbox);
        line_deinit(&l);
        buffer_pool_unref(pool);
}

/* What does not lie in the pool is not read, nor is what lies in one that is not there. */
static void test_wrong_pools(void **state) {
        const struct {
                uint64_t offset, length;
                bool has_pool;
        } wrong[] = { { POOL_BYTES, 1, true }, { POOL_BYTES - 1, 2, true }, { UINT64_MAX, 2, true }, { 2, UINT64_MAX, true },
                      { 0, POOL_BYTES + 1, true }, { 0, 0, false } };

        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                Perfd__V1__ServerMessage m = PERFD__V1__SERVER_MESSAGE__INIT;
                Perfd__V1__PooledPacket pooled = PERFD__V1__POOLED_PACKET__INIT;
                BufferPool *pool;
                Line l;

                assert_int_equal(buffer_pool_new(&pool), 0);
                assert_int_equal(buffer_pool_fill(pool), 0);
                if (wrong[i].has_pool)
                        line_init_pool(&l, pool);
                else
                        line_init(&l);
                pooled.sequence = 2;
                pooled.offset = wrong[i].offset;
                pooled.length = wrong[i].length;
                m.body_case = PERFD__V1__SERVER_MESSAGE__BODY_POOLED;
                m.pooled = &pooled;
                play_message(l.frames[1], &m);
                assert_int_equal(line_feed(&l, SIZE, false), PERFD_E_PROTOCOL);
                assert_non_null(strstr(perfd_client_error(l.client)->message, "does not lie in the pool"));
                line_deinit(&l);
                buffer_pool_unref(pool);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_pooled),
                cmocka_unit_test(test_wrong_pools),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
