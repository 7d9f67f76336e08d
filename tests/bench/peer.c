/* A process and not a thread: what it costs must not be in our CPU time, whichever clock is asked. */
#include "tests/bench/peer.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"

static void peer_read(int fd) {
        static char bytes[256 << 10];
        ssize_t n;

        while ((n = read(fd, bytes, sizeof(bytes))) > 0 || (n < 0 && errno == EINTR))
                ;
        _exit(n == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

void peer_start(Peer *p) {
        int fds[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0 || (p->pid = fork()) < 0) {
                perror("a peer");
                exit(EXIT_FAILURE);
        }
        if (p->pid == 0) {
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (int fd = STDERR_FILENO + 1; fd < 1024; fd++) /* other peers' ends would keep these from ending */
                        if (fd != fds[1])
                                (void)close(fd);
                peer_read(fds[1]);
        }
        close_fd(fds[1]);
        p->fd = fds[0];
}

void peer_join(Peer *p) {
        p->fd = close_fd(p->fd);
        (void)waitpid(p->pid, NULL, 0);
}

void peer_wait(int fd) {
        struct pollfd p = { .fd = fd, .events = POLLOUT };

        if (poll(&p, 1, -1) < 0 && errno != EINTR) {
                perror("poll");
                exit(EXIT_FAILURE);
        }
}
