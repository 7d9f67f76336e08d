/*
 * How bytes leave for a subscriber: by its socket, or into the memory that it shares with us. In both cases only as much
 * as goes without waiting; whoever has more to get says when it can go on, the kernel for a socket that is writable, the
 * subscriber itself for a ring that has room. What may not be missed while others sleep is rung by the socket.
 */
#include "daemon/dispatcher/cycle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* The response, and with its first byte the files of the ring. */
static ssize_t subscriber_send_some(const Subscriber *s) {
        struct iovec part = { s->handshake + s->handshake_sent, s->n_handshake - s->handshake_sent };
        union {
                struct cmsghdr header;
                char bytes[CMSG_SPACE(sizeof(s->ring->fds))];
        } control = { .header = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

        if (s->ring && s->handshake_sent == 0) {
                size_t size = (STREAM_RING_FDS + (s->ring->pool != NULL)) * sizeof(*s->ring->fds);

                control.header.cmsg_len = CMSG_LEN(size);
                memcpy(CMSG_DATA(&control.header), s->ring->fds, size);
                message.msg_control = &control;
                message.msg_controllen = CMSG_SPACE(size);
        }
        return sendmsg(s->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int subscriber_send_prelude(Subscriber *s) {
        while (s->handshake_sent < s->n_handshake) {
                ssize_t n = subscriber_send_some(s);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == EAGAIN ? OUTBOX_E_AGAIN : OUTBOX_E_GONE;
                s->handshake_sent += (size_t)n;
                if (s->ring)
                        shared_ring_close_fds(s->ring);
        }
        free(TAKE_PTR(s->handshake));
        s->n_handshake = s->handshake_sent = 0;
        return 0;
}

/* A message without fields. If there is no room for it there is something that wakes already. */
static int subscriber_ring(const Subscriber *s) {
        static const uint8_t bell[FRAME_HEADER_SIZE];
        ssize_t n;

        do
                n = send(s->fd, bell, sizeof(bell), MSG_NOSIGNAL | MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        if (n >= 0 || errno == EAGAIN)
                return 0;
        return errno == ENOBUFS || errno == ENOMEM ? OUTBOX_E_AGAIN : OUTBOX_E_GONE;
}

static void dispatcher_note_owing(Dispatcher *d, Channel *c) {
        if (c->is_owing)
                return;
        c->is_owing = true;
        c->next_owing = d->owing;
        d->owing = c;
}

/* A peer that sleeps is woken once for all that comes in a cycle, unless there is more of it than may wait. */
static int subscriber_send_shared(Dispatcher *d, Subscriber *s) {
        int r, rung;

        shared_ring_expect(s->ring, &d->tick_told);
        r = outbox_send_shared(&s->outbox, s->ring);
        if (r < 0 || r == OUTBOX_E_BROKEN)
                return r;
        s->wakeup_pending |= shared_ring_take_ring(s->ring);
        if (!s->wakeup_pending)
                return r;
        if (d->in_cycle && !shared_ring_is_half_full(s->ring)) {
                dispatcher_note_owing(d, s->channel);
                return r;
        }
        rung = subscriber_ring(s);
        s->wakeup_pending = rung == OUTBOX_E_AGAIN;
        return rung != 0 ? rung : r;
}

/*
 * Buffers of which an ended stream tells stay as they are until it has been read: until its peer closes, who sees the end of
 * the connection.
 */
static bool subscriber_linger(const Dispatcher *d, Subscriber *s) {
        if (d->is_closing_all || !s->ring || !shared_ring_reclaim(s->ring))
                return false;
        if (!s->is_draining)
                (void)shutdown(s->fd, SHUT_WR); /* fails if the peer is gone, which is seen by itself */
        s->is_draining = true;
        s->wakeup_pending = false; /* that is one, and no other can be rung any more */
        return true;
}

int subscriber_send(Dispatcher *d, Subscriber *s) {
        int r;

        if (s->held)
                return 0;
        r = subscriber_send_prelude(s);
        if (r == 0)
                r = s->ring ? subscriber_send_shared(d, s) : outbox_send(&s->outbox, s->fd);
        if (r < 0)
                return r;
        if (r == OUTBOX_E_GONE) {
                subscriber_drop(d, s, s->ended ? NULL : "the peer closed the connection");
                return 0;
        }
        if (r == OUTBOX_E_BROKEN) {
                subscriber_drop(d, s, "the tail of its ring is invalid");
                return 0;
        }
        if (r == 0 && s->ended && !subscriber_linger(d, s)) {
                subscriber_drop(d, s, NULL);
                return 0;
        }
        /* the socket is polled for writing only while something waits for that */
        return error_origin(sd_event_source_set_io_events(s->source, r == OUTBOX_E_AGAIN ? EPOLLIN | EPOLLOUT : EPOLLIN));
}

int subscriber_hear_of_room(Dispatcher *d, Subscriber *s) {
        if (shared_ring_hear(s->ring) == 0)
                return subscriber_send(d, s);
        subscriber_drop(d, s, "it sent `room` although perfd did not wait for it");
        return 0;
}

int dispatcher_end_cycle(Dispatcher *d) {
        int r = 0;

        d->in_cycle = false;
        while (d->owing) {
                Channel *c = d->owing;

                d->owing = c->next_owing;
                c->is_owing = false;
                for (Subscriber *s = c->subscribers, *next; s && r >= 0; s = next) {
                        next = s->next; /* it may be gone */
                        if (s->wakeup_pending)
                                r = subscriber_send(d, s);
                }
        }
        return r;
}
