/* One thread at both ends: whoever writes knows when to read. */
#include "tests/bench/peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "daemon/base/cleanup.h"

static void fail(const char *what) {
        perror(what);
        exit(EXIT_FAILURE);
}

void peer_open(Peer *p) {
        int fds[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                fail("socketpair");
        *p = (Peer){ .fd = fds[0], .theirs = fds[1], .ring = RING_READER_NULL };
}

void peer_close(Peer *p) {
        p->fd = close_fd(p->fd);
        p->theirs = close_fd(p->theirs);
        ring_reader_close(&p->ring);
}

SharedRing *peer_share(Peer *p, size_t size, BufferPool *pool) {
        SharedRing *ring = NULL;

        if (shared_ring_new(size, &ring, NULL) != 0 || ring_reader_open(&p->ring, ring->fds, ring->size, ring->offset) != 0)
                fail("a shared ring");
        if (pool && !shared_ring_share(ring, pool))
                fail("a pool");
        shared_ring_close_fds(ring);
        ring_reader_disarm(&p->ring);
        return ring;
}

static void peer_drain_ring(Peer *p) {
        const uint8_t *bytes;
        size_t n;

        if (ring_reader_peek(&p->ring, &bytes, &n) != 0)
                fail("a shared ring");
        (void)ring_reader_consume(&p->ring, n);
}

void peer_drain(Peer *p) {
        static char bytes[256 << 10];
        ssize_t n;

        if (ring_reader_is_open(&p->ring)) {
                peer_drain_ring(p);
                return;
        }
        while ((n = recv(p->theirs, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
                ;
        if (n < 0 && errno != EAGAIN)
                fail("recv");
}
