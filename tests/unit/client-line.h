/*
 * For tests of libperfd beside a ring: the daemon's side of a stream in shared memory, whose frames are played into it, and a
 * client that is polled as a program would.
 */
#pragma once

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
#include "daemon/stream/outbox.h"
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

static inline void on_start(void *userdata, const perfd_start *start) {
        ((Seen *)userdata)->ring_bytes = start->ring_bytes;
}

static inline void on_item(void *userdata, const perfd_item *item) {
        Seen *s = userdata;

        s->items++;
        s->last = perfd_item_time(item);
}

static inline void on_end(void *userdata, const perfd_end *end) {
        Seen *s = userdata;

        s->ended = true;
        s->missed = end->missed;
        s->reason = strlen(end->reason);
}

static const perfd_callbacks callbacks = { .size = sizeof(callbacks), .start = on_start, .item = on_item, .end = on_end };

static inline void play_shared_ring(int fd, uint64_t id, const SharedRing *ring, bool with_fds) {
        Perfd__V1__StreamRing body = PERFD__V1__STREAM_RING__INIT;

        body.bytes = ring->size;
        body.offset = ring->offset;
        body.pool_bytes = ring->pool ? POOL_BYTES : 0;
        play_ring(fd, id, &body, ring->fds, with_fds ? STREAM_RING_FDS + (ring->pool != NULL) : 0);
}

static inline uint32_t play_asked_for(int fd) {
        Perfd__V1__Request *request = play_request(fd);
        uint32_t bytes;

        assert(request && request->body_case == PERFD__V1__REQUEST__BODY_SUBSCRIBE);
        bytes = request->subscribe->ring_bytes;
        play_request_free(request);
        return bytes;
}

static inline void play_greeting(int fd) {
        Perfd__V1__Request *request = play_request(fd);

        assert(request && request->body_case == PERFD__V1__REQUEST__BODY_HELLO);
        play_hello(fd, request->id);
        play_request_free(request);
}

static inline void line_connect(Line *l) {
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

static inline int line_subscribe(Line *l, uint32_t ring_bytes, bool with_fds) {
        perfd_subscription s = PERFD_SUBSCRIPTION_INIT;

        s.ring_bytes = ring_bytes;
        play_shared_ring(l->daemon, 2, l->ring, with_fds);
        shared_ring_close_fds(l->ring);
        return perfd_subscribe(l->client, &s, &callbacks, &l->seen);
}

/* A stream whose start is on its way. */
static inline void line_init(Line *l) {
        line_connect(l);
        assert_int_equal(line_subscribe(l, SIZE, true), 0);
        assert_int_equal(play_asked_for(l->daemon), SIZE);
        play_start(l->frames[1]);
}

static inline void line_deinit(Line *l) {
        perfd_client_free(l->client);
        shared_ring_free(l->ring);
        for (int i = 0; i < 2; i++)
                close_fd(l->frames[i]);
        close_fd(l->daemon);
}

/* What somebody does who polls: until there is nothing to be told of. */
static inline int line_process(Line *l) {
        struct pollfd fd = { .fd = perfd_client_fd(l->client), .events = perfd_client_events(l->client) };
        int r = 0;

        while (r == 0 && poll(&fd, 1, 0) == 1)
                r = perfd_client_process(l->client);
        return r;
}

/* The ring is full: the client reads it, and says so, once. */
static inline int line_wait(Line *l) {
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
static inline int line_feed(Line *l, size_t piece, bool lazy) {
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
