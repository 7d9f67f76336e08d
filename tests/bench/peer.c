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
        *p = (Peer){ .fd = fds[0], .theirs = fds[1] };
}

void peer_close(Peer *p) {
        p->fd = close_fd(p->fd);
        p->theirs = close_fd(p->theirs);
}

void peer_drain(const Peer *p) {
        static char bytes[256 << 10];
        ssize_t n;

        while ((n = recv(p->theirs, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
                ;
        if (n < 0 && errno != EAGAIN)
                fail("recv");
}
