/*
 * libperfd on a stream in shared memory, the daemon's end of which is its own ring, fed by hand: whatever the pieces are,
 * whoever polls the client's fd gets all of it; a ring that is full goes on when it was read; and the ways out where no
 * memory can be shared.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/un.h>

#include "client/perfd.h"
#include "daemon/base/thread.h"
#include "daemon/stream/shared-ring.h"
#include "tests/unit/played-stream.h"

#define SIZE STREAM_RING_MIN

typedef struct Seen {
        uint64_t items, last, missed;
        uint32_t ring_bytes;
        size_t reason; /* length of it */
        bool ended;
} Seen;

typedef struct Line {
        perfd_client *client;
        int daemon;
        SharedRing *ring;
        int frames[2]; /* what is played goes in at 1, and comes out at 0 */
        Seen seen;
        unsigned n_rooms;
} Line;

static void on_start(void *userdata, const perfd_start *start) {
        ((Seen *)userdata)->ring_bytes = start->ring_bytes;
}

static void on_item(void *userdata, const perfd_item *item) {
        Seen *s = userdata;

        s->items++;
        s->last = perfd_item_time(item);
}

static void on_end(void *userdata, const perfd_end *end) {
        Seen *s = userdata;

        s->ended = true;
        s->missed = end->missed;
        s->reason = strlen(end->reason);
}

static const perfd_callbacks callbacks = { .size = sizeof(callbacks), .start = on_start, .item = on_item, .end = on_end };

static void play_ring(int fd, uint64_t id, const SharedRing *ring, bool with_fds) {
        Perfd__V1__Response response = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__StreamRing body = PERFD__V1__STREAM_RING__INIT;
        Perfd__V1__ServerMessage m = PERFD__V1__SERVER_MESSAGE__INIT;
        union {
                struct cmsghdr header;
                char bytes[CMSG_SPACE(sizeof(ring->fds))];
        } control = { .header = { .cmsg_len = CMSG_LEN(sizeof(ring->fds)), .cmsg_level = SOL_SOCKET,
                                  .cmsg_type = SCM_RIGHTS } };
        struct iovec part;
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

        response.id = id;
        response.body_case = PERFD__V1__RESPONSE__BODY_RING;
        response.ring = &body;
        body.bytes = ring->size;
        body.offset = ring->offset;
        m.body_case = PERFD__V1__SERVER_MESSAGE__BODY_RESPONSE;
        m.response = &response;
        part.iov_base = play_pack(&m, &part.iov_len);
        memcpy(CMSG_DATA(&control.header), ring->fds, sizeof(ring->fds));
        if (with_fds) {
                message.msg_control = &control;
                message.msg_controllen = sizeof(control);
        }
        assert(sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)part.iov_len);
        free(part.iov_base);
}

static uint32_t play_asked_for(int fd) {
        Perfd__V1__Request *request = play_request(fd);
        uint32_t bytes;

        assert(request && request->body_case == PERFD__V1__REQUEST__BODY_SUBSCRIBE);
        bytes = request->subscribe->ring_bytes;
        play_request_free(request);
        return bytes;
}

static void play_greeting(int fd) {
        Perfd__V1__Request *request = play_request(fd);

        assert(request && request->body_case == PERFD__V1__REQUEST__BODY_HELLO);
        play_hello(fd, request->id);
        play_request_free(request);
}

static void line_connect(Line *l) {
        int fds[2];

        *l = (Line){ .client = perfd_client_new("test") };
        assert_int_equal(shared_ring_new(SIZE, &l->ring, NULL), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, l->frames), 0);
        assert_int_equal(setsockopt(l->frames[1], SOL_SOCKET, SO_SNDBUF, &(int){ 1 << 20 }, sizeof(int)), 0);
        l->daemon = fds[1];
        play_hello(l->daemon, 1);
        assert_int_equal(perfd_client_connect_fd(l->client, fds[0]), 0);
        play_request_free(play_request(l->daemon));
}

static int line_subscribe(Line *l, uint32_t ring_bytes, bool with_fds) {
        perfd_subscription s = PERFD_SUBSCRIPTION_INIT;

        s.ring_bytes = ring_bytes;
        play_ring(l->daemon, 2, l->ring, with_fds);
        shared_ring_close_fds(l->ring);
        return perfd_subscribe(l->client, &s, &callbacks, &l->seen);
}

/* A stream whose start is on its way. */
static void line_init(Line *l) {
        line_connect(l);
        assert_int_equal(line_subscribe(l, SIZE, true), 0);
        assert_int_equal(play_asked_for(l->daemon), SIZE);
        play_start(l->frames[1]);
}

static void line_deinit(Line *l) {
        perfd_client_free(l->client);
        shared_ring_free(l->ring);
        for (int i = 0; i < 2; i++)
                close_fd(l->frames[i]);
        close_fd(l->daemon);
}

/* What somebody does who polls: until there is nothing to be told of. */
static int line_process(Line *l) {
        struct pollfd fd = { .fd = perfd_client_fd(l->client), .events = perfd_client_events(l->client) };
        int r = 0;

        while (r == 0 && poll(&fd, 1, 0) == 1)
                r = perfd_client_process(l->client);
        return r;
}

/* The ring is full: the client reads it, and says so, once. */
static int line_wait(Line *l) {
        Perfd__V1__Request *request;
        int r;

        assert_true(shared_ring_wait(l->ring));
        r = line_process(l);
        request = play_request(l->daemon);
        assert_int_equal(request->body_case, PERFD__V1__REQUEST__BODY_ROOM);
        play_request_free(request);
        assert_int_equal(shared_ring_hear(l->ring), 0);
        l->n_rooms++;
        return r;
}

/* All that was played into the ring, in pieces; lazy: the client looks only when the ring is full. What it says last. */
static int line_feed(Line *l, size_t piece, bool lazy) {
        static uint8_t bytes[2 * SIZE];
        ssize_t n;
        int r = 0;

        while ((n = recv(l->frames[0], bytes, piece, MSG_DONTWAIT)) > 0)
                for (size_t done = 0, written; done < (size_t)n; done += written) {
                        struct iovec part = { bytes + done, (size_t)n - done };

                        assert_int_equal(shared_ring_write(l->ring, &part, 1, &written), 0);
                        if (shared_ring_take_ring(l->ring))
                                play_bytes(l->daemon, "\0\0\0\0", 4);
                        if (written == 0)
                                r = line_wait(l);
                        else if (!lazy)
                                r = line_process(l);
                }
        return r;
}

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
                        play_ring(fd, 2, ring, false);
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
