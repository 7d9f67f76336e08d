/*
 * Bytes both ways. Nothing is parsed: outward the lengths of frames are followed, so that it is known where something else may be said.
 * A turn has a budget, so that one flood is not all that the loop does.
 *
 * SSL_write() makes a record of what it is given, and if the socket has no room for it, has to be given the same again. So a record's
 * bytes count as passed when it is first tried.
 */
#include <errno.h>
#include <openssl/err.h>
#include <string.h>
#include <sys/socket.h>

#include "client/relay/connection.h"
#include "daemon/base/error.h"

#define RECORDS_PER_TURN 16
#define PIECES_PER_TURN 8 /* of compression, and of records of what it has made: as many bytes */

/* ---- outward ----------------------------------------------------------------------------------------------------- */

static void lose_by_tls(RelayConnection *c, int error) {
        unsigned long first = ERR_peek_error();
        const char *text = first != 0 ? ERR_reason_error_string(first) : NULL;
        bool is_closed = ERR_GET_LIB(first) == ERR_LIB_SSL && ERR_GET_REASON(first) == SSL_R_UNEXPECTED_EOF_WHILE_READING;

        if (error == SSL_ERROR_SYSCALL && first == 0)
                text = errno != 0 ? strerror(errno) : "it has closed the connection";
        ERR_clear_error();
        connection_lose(c, is_closed ? "closed" : error == SSL_ERROR_SYSCALL ? "lost" : "bad-tls",
                        is_closed ? "it has closed the connection without the end of TLS" : text ? text : "an error of TLS");
}

/* One record. 1: written; 0: the socket has no room; -1: the connection is gone. */
static int write_record(RelayConnection *c, const uint8_t *bytes, size_t n) {
        int r, error;

        ERR_clear_error();
        errno = 0;
        r = SSL_write(c->ssl, bytes, (int)n);
        if (r > 0) {
                c->n_out += n;
                relay_count(&c->relay->counters.n_sent, n);
                if (c->state == RELAY_ENDING && c->perfd_has_ended && unwritten_is_empty(&c->goodbye))
                        c->deadline = clock_now(CLOCK_MONOTONIC) + 30 * NSEC_PER_SEC; /* it reads */
                return 1;
        }
        error = SSL_get_error(c->ssl, r);
        if (error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_READ)
                return 0;
        lose_by_tls(c, error);
        return -1;
}

/* HTTP has no frames, and what is compressed shows none: they can be cut anywhere. */
static void follow(RelayConnection *c, const uint8_t *bytes, size_t n) {
        if (!c->is_http && !c->is_compressed)
                frame_track_pass(&c->track, bytes, n);
}

/* The next record of what is kept. As write_record(). */
static int write_unwritten(RelayConnection *c) {
        size_t held = c->out.end - c->out.begin;
        int r;

        if (c->n_committed == 0) {
                c->n_committed = held < TLS_RECORD_MAX ? held : TLS_RECORD_MAX;
                follow(c, c->out.bytes + c->out.begin, c->n_committed);
        }
        r = write_record(c, c->out.bytes + c->out.begin, c->n_committed);
        if (r > 0) {
                unwritten_drop(&c->out, c->n_committed);
                c->n_committed = 0;
        }
        return r;
}

/* Compressed, they are kept and written next. What a client may have in a second is what is sent. */
static int pass_compressed(RelayConnection *c, size_t n) {
        size_t made;

        if (connection_compress(c, c->relay->bytes, n, false, &made) < 0) {
                connection_lose(c, "no-memory", strerror(ENOMEM));
                return -1;
        }
        token_bucket_take(&c->bucket, made);
        return 1;
}

static size_t piece_max(const RelayConnection *c) {
        return c->is_compressed ? RELAY_PLAIN_MAX : TLS_RECORD_MAX;
}

/* A record of what perfd has sent, at most `most` bytes. As write_record(), and 0 also if there is none. */
static int pass_record(RelayConnection *c, size_t most) {
        uint8_t *bytes = c->relay->bytes;
        ssize_t n = recv(c->perfd_fd, bytes, most, MSG_DONTWAIT);
        int r;

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n <= 0) {
                c->perfd_has_ended = true;
                return 1;
        }
        if (c->is_compressed)
                return pass_compressed(c, (size_t)n);
        token_bucket_take(&c->bucket, (size_t)n);
        follow(c, bytes, (size_t)n);
        r = write_record(c, bytes, (size_t)n);
        if (r == 0) {
                if (unwritten_add(&c->out, bytes, (size_t)n) < 0) {
                        connection_lose(c, "no-memory", strerror(ENOMEM));
                        return -1;
                }
                c->n_committed = (size_t)n;
        }
        return r;
}

/* The last bytes are written: the end of TLS, and of what is sent. */
static void begin_lingering(RelayConnection *c) {
        ERR_clear_error();
        (void)SSL_shutdown(c->ssl); /* who does not hear it sees the end of the connection */
        ERR_clear_error();
        (void)shutdown(c->fd, SHUT_WR);
        c->state = RELAY_LINGERING;
        c->perfd_has_ended = true;
        c->deadline = clock_now(CLOCK_MONOTONIC) + NSEC_PER_SEC;
        connection_progress(c);
}

/* With the relay's last word, if it can be said. As end_record(). */
static int end_compression(RelayConnection *c, bool is_at_boundary) {
        const Unwritten none = { .bytes = NULL }, *word = is_at_boundary ? &c->goodbye : &none;
        size_t made;
        int r = connection_compress(c, word->bytes + word->begin, word->end - word->begin, true, &made);

        unwritten_deinit(&c->goodbye);
        if (r == 0)
                return 1;
        connection_lose(c, "no-memory", strerror(ENOMEM));
        return -1;
}

/* Of one that ends, with nothing kept. As pass_record(); -1 also if all is said. */
static int end_record(RelayConnection *c) {
        bool is_at_boundary = frame_track_is_at_boundary(&c->track);
        size_t room = frame_track_room(&c->track);

        if (!is_at_boundary && !c->perfd_has_ended && c->perfd_fd >= 0)
                return pass_record(c, room < piece_max(c) ? room : piece_max(c));
        if (c->compressor)
                return end_compression(c, is_at_boundary);
        if (is_at_boundary && !unwritten_is_empty(&c->goodbye)) {
                c->out = c->goodbye;
                c->goodbye = (Unwritten){ .bytes = NULL };
                return 1;
        }
        begin_lingering(c);
        return -1;
}

static bool pump_out(RelayConnection *c) {
        RelayState state = c->state;
        int r = 1, most_turns = c->is_compressed ? PIECES_PER_TURN : RECORDS_PER_TURN;

        /* nobody would say that there is more to do of what perfd has ended, or of what is said between two frames */
        for (int i = 0; r > 0 && (i < most_turns || c->perfd_has_ended || state == RELAY_ENDING); i++) {
                nsec_t wait;
                size_t most;

                if (!unwritten_is_empty(&c->out)) {
                        r = write_unwritten(c);
                } else if (state == RELAY_ENDING) {
                        r = end_record(c);
                } else if (c->perfd_has_ended) {
                        connection_finish(c);
                        return false;
                } else {
                        most = token_bucket_peek(&c->bucket, piece_max(c), clock_now(CLOCK_MONOTONIC), &wait);
                        r = most > 0 ? pass_record(c, most) : 0;
                }
        }
        return r >= 0;
}

/* ---- inward ------------------------------------------------------------------------------------------------------ */

/* 1: sent, or not to be sent any more; 0: no room. */
static int send_to_perfd(RelayConnection *c, const uint8_t *bytes, size_t n, size_t *ret_sent) {
        ssize_t k = c->perfd_is_deaf ? (ssize_t)n : send(c->perfd_fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);

        *ret_sent = 0;
        if (k < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        c->perfd_is_deaf = c->perfd_is_deaf || k < 0; /* what it has said before is still read */
        *ret_sent = k < 0 ? n : (size_t)k;
        return 1;
}

static bool pass_request(RelayConnection *c, size_t n) {
        size_t sent;

        c->n_in += n;
        relay_count(&c->relay->counters.n_received, n);
        (void)send_to_perfd(c, c->relay->bytes, n, &sent);
        if (sent == n)
                return true;
        if (unwritten_add(&c->in, c->relay->bytes + sent, n - sent) == 0)
                return true;
        connection_lose(c, "no-memory", strerror(ENOMEM));
        return false;
}

/* 1: one was passed; 0: none now; -1: gone. */
static int read_record(RelayConnection *c) {
        int n, error;

        ERR_clear_error();
        errno = 0;
        n = SSL_read(c->ssl, c->relay->bytes, TLS_RECORD_MAX);
        if (n > 0)
                return pass_request(c, (size_t)n) ? 1 : -1;
        error = SSL_get_error(c->ssl, n);
        c->wants_write = error == SSL_ERROR_WANT_WRITE;
        if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
                return 0;
        if (error != SSL_ERROR_ZERO_RETURN) {
                lose_by_tls(c, error);
                return -1;
        }
        c->has_ended = true;
        c->deadline = clock_now(CLOCK_MONOTONIC) + 10 * NSEC_PER_SEC; /* for perfd to end it too */
        return 0;
}

static bool pump_in(RelayConnection *c) {
        int r = 1;

        for (int i = 0; i < RECORDS_PER_TURN && r > 0; i++) {
                size_t sent;

                if (!unwritten_is_empty(&c->in)) {
                        r = send_to_perfd(c, c->in.bytes + c->in.begin, c->in.end - c->in.begin, &sent);
                        unwritten_drop(&c->in, sent);
                } else {
                        r = c->has_ended || c->perfd_is_deaf ? 0 : read_record(c);
                }
        }
        if (r >= 0 && c->has_ended && unwritten_is_empty(&c->in))
                (void)shutdown(c->perfd_fd, SHUT_WR);
        return r >= 0;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

void connection_pump(RelayConnection *c) {
        if (pump_in(c) && pump_out(c))
                connection_watch(c);
}

void connection_pump_last(RelayConnection *c) {
        if (pump_out(c))
                connection_watch(c);
}

void connection_linger(RelayConnection *c) {
        for (int i = 0; i < RECORDS_PER_TURN; i++) {
                ssize_t n = recv(c->fd, c->relay->bytes, sizeof(c->relay->bytes), MSG_DONTWAIT);

                if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) { /* the peer has closed its side too */
                        connection_free(c);
                        return;
                }
                if (n < 0)
                        break;
        }
        connection_watch(c);
}
