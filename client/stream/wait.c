/*
 * What a caller waits for, and until when: in its own poll(2), or here.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "client/stream/stream.h"

uint64_t perfd_client_due(perfd_client *c) {
        Stream *s = c->stream;

        if (c->state != CLIENT_STREAMING)
                return UINT64_MAX;
        if (s->look.is_awake || client_has_pending(c)) /* by batches: there may be more */
                return 0;
        /* the ring is armed since it was looked at last, and what came behind that was rung for */
        return ring_reader_is_open(&s->ring) ? adaptive_poll_sleep(&s->pace, &s->ring, client_now()) : UINT64_MAX;
}

int perfd_client_wait(perfd_client *c) {
        struct pollfd fd = { .fd = c->fd, .events = perfd_client_events(c) };
        uint64_t due = perfd_client_due(c), now = client_now(), ns = due > now ? due - now : 0;
        struct timespec ts = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };

        if (c->fd < 0)
                return client_fail(c, PERFD_E_STATE, "state", "there is no connection to wait for");
        if (ppoll(&fd, 1, due == UINT64_MAX ? NULL : &ts, NULL) < 0 && errno != EINTR)
                return client_fail(c, -errno, "socket", "waiting for the daemon: %s", strerror(errno));
        return 0;
}
