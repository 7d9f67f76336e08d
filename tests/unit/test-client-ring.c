/*
 * libperfd on a stream in shared memory, the daemon's end of which is its own ring, fed by hand: whatever the pieces are,
 * whoever polls the client's fd gets all of it; a ring that is full goes on when it was read; and the ways out where no
 * memory can be shared.
 */
#include "tests/unit/client-line.h"

static void test_pieces(void **state) {
        const size_t pieces[] = { 1, 2, 3, 7, 64, 1000, SIZE };

        for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
                Line l;

                line_init(&l);
                play_items(l.frames[1], 2, 100, 3);
                play_gap(l.frames[1], 3, 5, 6);
                play_items(l.frames[1], 7, 400, 1);
                assert_int_equal(line_feed(&l, pieces[i], false), 0);
                assert_int_equal(l.seen.ring_bytes, SIZE);
                assert_int_equal(l.seen.items, 4);
                assert_int_equal(l.seen.last, 400);
                play_end(l.frames[1], 8, 4, 0);
                assert_int_equal(line_feed(&l, pieces[i], false), PERFD_E_ENDED);
                assert_true(l.seen.ended);
                assert_int_equal(l.seen.missed, 20);
                assert_int_equal(l.n_rooms, 0);
                assert_int_equal(perfd_client_process(l.client), PERFD_E_ENDED);
                line_deinit(&l);
        }
}

/* The i-th item, at a tick; the next one is as far from here as no machine should stand still. */
static void line_tick(Line *l, uint64_t i, bool is_due) {
        const nsec_t length = NSEC_PER_SEC;

        shared_ring_expect(l->ring, &(SharedTick){ .next = clock_now(CLOCK_MONOTONIC) + length, .length = length, .is_due = is_due });
        play_items(l->frames[1], 2 + i, 100 + i, 1);
        assert_int_equal(line_feed(l, SIZE, true), 0);
}

/* Who asks when to come is not rung for, and finds it then. */
static void test_due(void **state) {
        uint64_t due;
        Line l;

        line_init(&l);
        for (uint64_t i = 0; i < 3; i++) {
                assert_int_equal(perfd_client_due(l.client), UINT64_MAX); /* nothing is known yet */
                line_tick(&l, i, true);
                assert_int_equal(line_process(&l), 0);
        }
        due = perfd_client_due(l.client);
        assert_in_range(due, clock_now(CLOCK_MONOTONIC), clock_now(CLOCK_MONOTONIC) + NSEC_PER_SEC + NSEC_PER_MSEC);
        assert_int_equal(perfd_client_due(l.client), due);
        line_tick(&l, 3, false);
        assert_int_equal(poll(&(struct pollfd){ .fd = perfd_client_fd(l.client), .events = POLLIN }, 1, 0), 0);
        assert_int_equal(perfd_client_wait(l.client), 0);
        assert_true(clock_now(CLOCK_MONOTONIC) >= due);
        assert_int_equal(perfd_client_due(l.client), due); /* it is over, and was not kept */
        assert_int_equal(perfd_client_wait(l.client), 0);
        assert_int_equal(l.seen.items, 3);
        assert_int_equal(perfd_client_process(l.client), 0);
        assert_int_equal(l.seen.items, 4);

        /* who does not ask is rung for; and a bell wakes one who did */
        line_tick(&l, 4, true);
        assert_int_equal(line_process(&l), 0);
        assert_int_equal(l.seen.items, 5);
        assert_true(perfd_client_due(l.client) < UINT64_MAX);
        play_bytes(l.daemon, "\0\0\0\0", 4);
        assert_int_equal(perfd_client_wait(l.client), 0);
        assert_true(clock_now(CLOCK_MONOTONIC) < perfd_client_due(l.client));
        line_deinit(&l);
}

/* Many times around, full again and again. */
static void test_full(void **state) {
        const uint64_t n = 4000;
        Line l;

        line_init(&l);
        for (uint64_t i = 0; i < n; i++) {
                play_items(l.frames[1], 2 + i, 100 + i * 16, 16);
                assert_int_equal(line_feed(&l, 5000, true), 0);
        }
        assert_true(l.n_rooms > 100);
        assert_int_equal(line_process(&l), 0);
        assert_int_equal(l.seen.items, 16 * n);
        assert_int_equal(l.seen.last, 100 + 16 * n - 1);

        /* stop is said beside, and what waits is read behind the end of the socket */
        assert_int_equal(perfd_stream_stop(l.client), 0);
        assert_int_equal(perfd_stream_stop(l.client), 0);
        {
                Perfd__V1__Request *request = play_request(l.daemon);

                assert_int_equal(request->body_case, PERFD__V1__REQUEST__BODY_STOP);
                play_request_free(request);
        }
        play_items(l.frames[1], 2 + n, 100 + 16 * n, 1);
        play_end(l.frames[1], 3 + n, 16 * n + 1, 0);
        assert_int_equal(line_feed(&l, SIZE, true), 0);
        l.daemon = close_fd(l.daemon);
        assert_int_equal(line_process(&l), PERFD_E_ENDED);
        assert_int_equal(l.seen.items, 16 * n + 1);
        line_deinit(&l);
}

/* A frame of three rings. */
static void test_long_frame(void **state) {
        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;
        Perfd__V1__StreamEnd end = PERFD__V1__STREAM_END__INIT;
        static char reason[3 * SIZE];
        Line l;

        line_init(&l);
        memset(reason, 'x', sizeof(reason) - 1);
        end.reason = reason;
        packet.sequence = 2;
        packet.end = &end;
        play_packet(l.frames[1], &packet);
        assert_int_equal(line_feed(&l, 2 * SIZE, true), 0);
        assert_int_equal(line_process(&l), PERFD_E_ENDED);
        assert_int_equal(l.seen.reason, sizeof(reason) - 1);
        line_deinit(&l);
}

/* What came before it died is seen; that it is not all is said. */
static void test_daemon_dies(void **state) {
        Line l;

        line_init(&l);
        play_items(l.frames[1], 2, 100, 5);
        assert_int_equal(line_feed(&l, 70, true), 0);
        l.daemon = close_fd(l.daemon);
        assert_int_equal(line_process(&l), PERFD_E_CLOSED);
        assert_int_equal(l.seen.items, 5);
        assert_false(l.seen.ended);
        line_deinit(&l);
}

static void test_wrong_rings(void **state) {
        Line l;

        line_init(&l);
        assert_int_equal(line_feed(&l, SIZE, false), 0);
        atomic_store(&l.ring->words->head, l.ring->head + SIZE + 1);
        play_bytes(l.daemon, "\0\0\0\0", 4);
        assert_int_equal(line_process(&l), PERFD_E_PROTOCOL);
        line_deinit(&l);

        line_connect(&l);
        assert_int_equal(line_subscribe(&l, SIZE, false), PERFD_E_PROTOCOL);
        assert_string_equal(perfd_client_error(l.client)->reason, "no-ring");
        assert_int_equal(perfd_client_process(l.client), PERFD_E_STATE);
        line_deinit(&l);
}

/* --- without an fd of its own it asks by itself --- */

static void play_refusal(int fd, uint64_t id, const char *reason) {
        Perfd__V1__Response r = PERFD__V1__RESPONSE__INIT;

        r.id = id;
        r.status = PERFD__V1__STATUS__STATUS_EXHAUSTED;
        r.reason = (char *)reason;
        r.message = (char *)"no";
        play_response(fd, &r);
}

/* Something that passes bytes only; then a daemon that has no memory left; then one that knows of no rings. */
static int run_daemon(void *userdata) {
        int listener = *(int *)userdata;
        SharedRing *ring;

        assert(shared_ring_new(STREAM_RING_MIN, &ring, NULL) == 0);
        for (int i = 0; i < 4; i++) {
                int fd = accept(listener, NULL, NULL);

                play_greeting(fd);
                assert(play_asked_for(fd) == (i == 1 ? 0 : 512 << 10));
                if (i == 0) {
                        play_shared_ring(fd, 2, ring, false);
                        close(fd);
                        continue;
                }
                if (i == 2) {
                        play_refusal(fd, 2, "queue-memory");
                        assert(play_asked_for(fd) == 0);
                }
                play_ok(fd, i == 2 ? 3 : i == 1 ? 4 : 2);
                play_start(fd);
                close(fd);
        }
        shared_ring_free(ring);
        return 0;
}

static void test_ways_out(void **state) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        Thread thread = { 0 };

        (void)snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/test-client-ring.%d", (int)getpid());
        assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(listen(listener, 4), 0);
        assert_int_equal(thread_start(&thread, THREAD_ANY, "daemon", -1, run_daemon, &listener), 0);
        for (int i = 0; i < 3; i++) {
                perfd_subscription s = PERFD_SUBSCRIPTION_INIT;
                perfd_client *c = perfd_client_new("test");
                Seen seen = { .ring_bytes = 1 };

                perfd_client_set_timeout(c, 20000);
                assert_int_equal(perfd_client_connect(c, address.sun_path), 0);
                assert_int_equal(perfd_subscribe(c, &s, &callbacks, &seen), 0);
                for (int r = 0; r == 0;) {
                        struct pollfd fd = { .fd = perfd_client_fd(c), .events = perfd_client_events(c) };

                        assert_int_equal(poll(&fd, 1, 20000), 1);
                        r = perfd_client_process(c);
                        assert_true(r == 0 || r == PERFD_E_CLOSED);
                }
                assert_int_equal(seen.ring_bytes, 0);
                perfd_client_free(c);
        }
        assert_int_equal(thread_join(&thread), 0);
        close(listener);
        unlink(address.sun_path);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_pieces),
                cmocka_unit_test(test_due),
                cmocka_unit_test(test_full),
                cmocka_unit_test(test_long_frame),
                cmocka_unit_test(test_daemon_dies),
                cmocka_unit_test(test_wrong_rings),
                cmocka_unit_test(test_ways_out),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
