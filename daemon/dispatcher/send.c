/*
 * Sends packets to a subscriber: through its socket, or into memory that it shares with perfd. Neither blocks. If not everything
 * can be sent, the dispatcher continues when the kernel reports the socket writable, or when the subscriber reports that its ring
 * has room. A subscriber that sleeps beside its ring is woken through the socket.
 */
#include "daemon/dispatcher/cycle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define WAITS_MOST ((size_t)64 << 10) /* bytes that wait for the time at which their subscriber may be woken */

/* Sends the handshake. Its first byte carries the fds of the shared ring (SCM_RIGHTS). */
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

static int subscriber_send_handshake(Subscriber *s) {
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

/*
 * Wakes a subscriber by a message without fields. If the socket has no room for it, it has data that wakes the subscriber anyway.
 */
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

/* A subscriber that sleeps is woken once for all that a cycle brings, or earlier if more is queued than may wait. */
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
                dispatcher_wake_later(d, s->channel);
                return r;
        }
        rung = subscriber_ring(s);
        s->wakeup_pending = rung == OUTBOX_E_AGAIN;
        return rung != 0 ? rung : r;
}

/*
 * The shared memory of a stream that has ended is kept until the subscriber has read it: until it closes the connection, which it
 * does when it sees the end of it. So it is charged to its uid for as long as it is there.
 */
static bool subscriber_begin_draining(const Dispatcher *d, Subscriber *s) {
        if (d->is_closing_all || !s->ring || !shared_ring_is_unread(s->ring))
                return false;
        if (!s->is_draining)
                (void)shutdown(s->fd, SHUT_WR); /* fails only if the peer has disconnected, which is detected separately */
        s->is_draining = true;
        s->wakeup_pending = false; /* the shutdown wakes the subscriber, and nothing can be sent after it */
        return true;
}

/* What a subscriber by socket gets wakes it. How its stream begins does not wait. */
static bool subscriber_may_wait(const Dispatcher *d, const Subscriber *s) {
        return d->in_cycle && !s->ring && !s->ended && s->n_handshake == 0 && s->outbox.queued_bytes < WAITS_MOST &&
               channel_has_own_tick(d, s->channel);
}

int subscriber_send(Dispatcher *d, Subscriber *s) {
        int r;

        if (s->is_corked)
                return 0;
        if (subscriber_may_wait(d, s)) {
                s->wakeup_pending = true;
                dispatcher_wake_later(d, s->channel);
                return 0;
        }
        s->wakeup_pending &= s->ring != NULL;
        r = subscriber_send_handshake(s);
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
        if (r == 0 && s->ended && !subscriber_begin_draining(d, s)) {
                subscriber_drop(d, s, NULL);
                return 0;
        }
        /* EPOLLOUT only while something is queued: a level-triggered epoll(7) would otherwise report the socket all the time */
        return error_origin(sd_event_source_set_io_events(s->source, r == OUTBOX_E_AGAIN ? EPOLLIN | EPOLLOUT : EPOLLIN));
}

int subscriber_on_room(Dispatcher *d, Subscriber *s) {
        if (shared_ring_hear(s->ring) == 0)
                return subscriber_send(d, s);
        subscriber_drop(d, s, "it sent `room` although perfd did not wait for it");
        return 0;
}
