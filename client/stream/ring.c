/*
 * A stream in shared memory. When the library has said that there is nothing, its owner sleeps in poll(2), as far as anybody can
 * know; so it says that asleep, when it has given what was there as it fell asleep: for all that comes later the daemon rings.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/stream/stream.h"

#define BYTES_AWAKE ((size_t)1 << 20)
#define BELLS 4096 /* bytes */

/* Reading a file that was made shorter is a signal that ends the program. */
static bool may_shrink(int fd) {
        int seals = fcntl(fd, F_GET_SEALS);

        return seals < 0 || !(seals & F_SEAL_SHRINK);
}

static bool may_any_shrink(const perfd_client *c) {
        for (size_t i = 0; i < c->n_fds; i++)
                if (may_shrink(c->fds[i]))
                        return true;
        return false;
}

int stream_open_ring(perfd_client *c, const Perfd__V1__StreamRing *m) {
        int r = RING_READER_E_UNUSABLE;

        c->stream->pace = (AdaptivePoll)ADAPTIVE_POLL_INIT;
        if (c->n_fds == STREAM_RING_FDS + (m->pool_bytes > 0) && !may_any_shrink(c))
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

/* A frame that came in pieces: what there is of it, and no more; *ret_any: that was the last one, and it is opened. */
static int take_piece(perfd_client *c, const uint8_t *bytes, size_t n, size_t *ret_used, bool *ret_any) {
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
        *ret_any = r == 0;
        if (r == FRAME_E_NEED_MORE)
                return 0;
        return r == 0 ? stream_open_message(c, message, length)
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

static int wake(perfd_client *c) {
        Stream *s = c->stream;
        int r;

        s->look = (Look){ .is_awake = true, .began = client_now(), .pooled = s->n_pooled };
        r = stream_send(c);
        if (r == 0)
                r = take_bells(c, &s->look.is_rung, &s->look.is_closed);
        ring_reader_disarm(&s->ring);
        return r;
}

/* All that is there; or, of what is there when it is said that the daemon is to ring for more, what is left. */
static int look(perfd_client *c, const uint8_t **ret_bytes, size_t *ret_n) {
        Stream *s = c->stream;
        Look *l = &s->look;
        size_t n;

        if (ring_reader_peek(&s->ring, ret_bytes, &n) != 0)
                return client_fail_protocol(c, "a ring with more in it than it can hold");
        if (!l->is_armed && (n == 0 || l->bytes + (s->n_pooled - l->pooled) >= BYTES_AWAKE)) {
                ring_reader_arm(&s->ring);
                l->is_armed = true;
                if (ring_reader_peek(&s->ring, ret_bytes, &l->left) != 0)
                        return client_fail_protocol(c, "a ring with more in it than it can hold");
        }
        *ret_n = l->is_armed ? l->left : n;
        return 0;
}

static int sleep_again(perfd_client *c) {
        Stream *s = c->stream;

        s->look.is_awake = false;
        adaptive_poll_looked(&s->pace, &s->ring, s->look.began, s->look.bytes, s->look.is_rung);
        return s->look.is_closed ? client_fail_closed(c) : 0;
}

/* What came in pieces was copied; but that the daemon may have the last one back says more: stream_open_pooled(). */
static int take(perfd_client *c, const uint8_t *bytes, size_t n, bool *ret_any) {
        size_t used = frame_reader_is_empty(&c->in) ? whole_frame(bytes, n) : 0;
        Stream *s = c->stream;
        int r;

        *ret_any = used > 0;
        r = used > 0 ? stream_open_message(c, bytes + FRAME_HEADER_SIZE, used - FRAME_HEADER_SIZE)
                     : take_piece(c, bytes, n, &used, ret_any);
        if (r != 0)
                return r;
        s->held = used;
        s->look.bytes += used;
        s->look.left -= s->look.is_armed ? used : 0;
        return *ret_any ? 0 : stream_release_ring(c);
}

int stream_release_ring(perfd_client *c) {
        Stream *s = c->stream;

        s->room_wanted |= ring_reader_consume(&s->ring, s->held);
        s->held = 0;
        if (c->state != CLIENT_STREAMING) {
                (void)shutdown(c->fd, SHUT_WR); /* the daemon keeps what we might still read until it hears of that */
                return 0;
        }
        return s->room_wanted ? stream_send(c) : 0;
}

int stream_next_in_ring(perfd_client *c, bool *ret_any) {
        const uint8_t *bytes = NULL;
        size_t n = 0;
        int r = c->stream->look.is_awake ? 0 : wake(c);

        for (*ret_any = false; r == 0 && !*ret_any;) {
                r = look(c, &bytes, &n);
                if (r == 0 && n == 0)
                        return sleep_again(c);
                if (r == 0)
                        r = take(c, bytes, n, ret_any);
        }
        return r;
}
