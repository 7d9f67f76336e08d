/*
 * A stream in shared memory. Between two calls of the library its owner sleeps in poll(2), as far as anybody can know; so
 * each call ends asleep, and takes what was there when it fell asleep: for all that comes later the daemon rings.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/stream/stream.h"

#define BYTES_AWAKE ((size_t)1 << 20)
#define BELLS 4096 /* bytes */

int stream_open_ring(perfd_client *c, const Perfd__V1__StreamRing *m) {
        int r = RING_READER_E_UNUSABLE;

        c->stream->pace = (AdaptivePoll)ADAPTIVE_POLL_INIT;
        if (c->n_fds == STREAM_RING_FDS + (m->pool_bytes > 0))
                r = ring_reader_open(&c->stream->ring, c->fds, m->bytes, m->offset);
        if (r == 0 && m->pool_bytes > 0)
                r = pool_reader_open(&c->stream->pool, c->fds[STREAM_RING_FDS], m->pool_bytes);
        if (r != 0)
                ring_reader_close(&c->stream->ring);
        client_close_fds(c);
        return r;
}

/* All bells so far, if there were any; *ret_closed: there will be no more. */
static int take_bells(perfd_client *c, bool *ret_any, bool *ret_closed) {
        uint8_t bells[BELLS];
        ssize_t n;

        *ret_any = false;
        do {
                n = recv(c->fd, bells, sizeof(bells), MSG_DONTWAIT);
                *ret_any |= n > 0;
        } while (n == sizeof(bells) || (n < 0 && errno == EINTR));
        if (n < 0 && errno != EAGAIN && errno != ECONNRESET)
                return client_fail_socket(c, "reading from the daemon", errno);
        *ret_closed = n == 0 || (n < 0 && errno == ECONNRESET);
        return 0;
}

/* A frame that came in pieces: what there is of it, and no more. */
static int take_piece(perfd_client *c, const uint8_t *bytes, size_t n, size_t *ret_used) {
        const uint8_t *message;
        size_t used = 0, length;
        int r = FRAME_E_NEED_MORE;

        while (used < n && r == FRAME_E_NEED_MORE) {
                size_t some = client_missing(c), size;
                uint8_t *room;

                if (frame_reader_room(&c->in, &room, &size) < 0)
                        return client_fail_memory(c);
                some = some < size ? some : size;
                some = some < n - used ? some : n - used;
                memcpy(room, bytes + used, some);
                frame_reader_fed(&c->in, some);
                used += some;
                r = frame_reader_next(&c->in, &message, &length);
        }
        *ret_used = used;
        if (r == FRAME_E_NEED_MORE)
                return 0;
        return r == 0 ? stream_take_message(c, message, length)
                      : client_fail_protocol(c, "a frame in shared memory is too long");
}

/* How long the frame is that begins here, if all of it is here; else 0. */
static size_t whole_frame(const uint8_t *bytes, size_t n) {
        size_t length = FRAME_HEADER_SIZE;

        if (n < FRAME_HEADER_SIZE)
                return 0;
        for (size_t i = 0; i < FRAME_HEADER_SIZE; i++)
                length += (size_t)bytes[i] << (8 * i);
        return length <= n ? length : 0;
}

/* What is in the ring at this moment. */
static int take_ring(perfd_client *c, size_t *ret_n) {
        Stream *s = c->stream;
        const uint8_t *at;
        size_t n;
        int r = 0;

        if (ring_reader_peek(&s->ring, &at, &n) != 0)
                return client_fail_protocol(c, "a ring with more in it than it can hold");
        *ret_n = n;
        for (size_t used; r == 0 && n > 0 && c->state == CLIENT_STREAMING; at += used, n -= used) {
                used = frame_reader_is_empty(&c->in) ? whole_frame(at, n) : 0;
                r = used > 0 ? stream_take_message(c, at + FRAME_HEADER_SIZE, used - FRAME_HEADER_SIZE)
                             : take_piece(c, at, n, &used);
                if (r == 0)
                        s->room_wanted |= ring_reader_consume(&s->ring, used);
        }
        if (r == 0 && c->state != CLIENT_STREAMING) {
                (void)shutdown(c->fd, SHUT_WR); /* the daemon keeps what we might still read until it hears of that */
                return PERFD_E_ENDED;
        }
        return r == 0 && s->room_wanted ? stream_send(c) : r;
}

int stream_process_ring(perfd_client *c) {
        bool is_rung = false, closed = false;
        Stream *s = c->stream;
        uint64_t now = client_now(); /* when it came: callbacks take their time */
        uint64_t n_pooled = s->n_pooled;
        size_t n = 1, all = 0;
        int r = stream_send(c);

        if (r == 0)
                r = take_bells(c, &is_rung, &closed);
        ring_reader_disarm(&s->ring);
        while (r == 0 && n > 0 && all + (s->n_pooled - n_pooled) < BYTES_AWAKE) {
                r = take_ring(c, &n);
                all += n;
        }
        ring_reader_arm(&s->ring);
        if (r == 0) {
                r = take_ring(c, &n);
                all += n;
        }
        adaptive_poll_looked(&s->pace, &s->ring, now, all, is_rung);
        return r == 0 && closed ? client_fail_closed(c) : r;
}

/* It is armed since it looked last, and what came behind that was rung for. */
uint64_t stream_due(perfd_client *c) {
        return adaptive_poll_sleep(&c->stream->pace, &c->stream->ring, client_now());
}
