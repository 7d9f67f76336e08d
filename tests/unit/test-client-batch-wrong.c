/* Batches of a daemon that is none: items that are not what their descriptor says, and descriptors that lie. */
#include "tests/unit/played-batch.h"

static void subscribe(Line *line) {
        perfd_subscription s = PERFD_SUBSCRIPTION_INIT;
        perfd_callbacks none = { .size = sizeof(none) };

        line_connect(line);
        play_ok(line->daemon, 2);
        shared_ring_close_fds(line->ring);
        assert_int_equal(perfd_subscribe(line->client, &s, &none, NULL), 0);
        play_request_free(play_request(line->daemon));
}

/* An item that is not what its descriptor says: found by who looks at it, or asks for a column of it. */
static void test_wrong_items(void **state) {
        for (int how = 0; how < 4; how++) {
                Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;
                Perfd__V1__Item item, *items[] = { &item, &item };
                Line line;
                const perfd_column *column;
                const perfd_batch *batch;
                ProtobufCBinaryData text;
                uint64_t numbers[3];

                subscribe(&line);
                play_start(line.daemon);
                play_descriptors(line.daemon, 2);
                item_init(&item, numbers, &text, FIXED);
                item.n_numbers--;
                p.sequence = 3;
                p.items = items;
                p.n_items = 2;
                play_packet(line.daemon, &p);
                assert_int_equal(perfd_stream_next_batch(line.client, &batch), 0);
                assert_int_equal(batch->n, 2);
                assert_int_equal(batch->times[0], item.time);
                if (how == 1 || how == 3) {
                        assert_int_equal(perfd_item_record(perfd_batch_item(batch, batch->items[0])), PERFD_UNKNOWN);
                        if (how == 3) /* and then at another one, of which nothing is asked */
                                assert_non_null(perfd_batch_item(batch, batch->items[1]));
                        assert_int_equal(perfd_stream_next_batch(line.client, &batch), PERFD_E_PROTOCOL);
                } else if (how == 2) {
                        assert_int_equal(perfd_batch_column(batch, FIXED, "n", &column), PERFD_E_PROTOCOL);
                        assert_int_equal(perfd_stream_next_batch(line.client, &batch), PERFD_E_STATE);
                } else
                        assert_int_equal(perfd_stream_next_batch(line.client, &batch), 0);
                line_deinit(&line);
        }
}

/* A descriptor of more numbers than any packet has: no memory is asked for, which would fail. */
static void test_counts_that_lie(void **state) {
        static const uint32_t counts[] = { 3, 100000, UINT32_MAX };

        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
                Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;
                Perfd__V1__Item item, *items[] = { &item, &item };
                OwnDescriptor d;
                Perfd__V1__EventDescriptor *events[] = { &d.message };
                Line line;
                const perfd_column *column;
                const perfd_batch *batch;
                ProtobufCBinaryData text;
                uint64_t numbers[3];

                subscribe(&line);
                play_start(line.daemon);
                descriptor_init(&d, FIXED);
                d.fields[1].count = counts[i];
                item_init(&item, numbers, &text, FIXED);
                p.sequence = 2;
                p.events = events;
                p.n_events = 1;
                p.items = items;
                p.n_items = 2;
                play_packet(line.daemon, &p);
                assert_int_equal(perfd_stream_next_batch(line.client, &batch), 0);
                assert_int_equal(batch->n, 2);
                assert_int_equal(perfd_batch_column(batch, FIXED, "pair", &column), PERFD_E_PROTOCOL);
                line_deinit(&line);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_wrong_items),
                cmocka_unit_test(test_counts_that_lie),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
