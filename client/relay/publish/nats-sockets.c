#include "client/relay/publish/nats-sockets.h"

#include <dirent.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

static bool has_peer(int fd, unsigned port) {
        struct sockaddr_storage peer = { .ss_family = AF_UNSPEC };
        socklen_t size = sizeof(peer);

        if (getpeername(fd, (struct sockaddr *)&peer, &size) < 0)
                return false;
        return (peer.ss_family == AF_INET && ntohs(((const struct sockaddr_in *)&peer)->sin_port) == port) ||
               (peer.ss_family == AF_INET6 && ntohs(((const struct sockaddr_in6 *)&peer)->sin6_port) == port);
}

void nats_sockets_shut(unsigned port) {
        DIR *fds = opendir("/proc/self/fd");
        const struct dirent *entry;

        if (!fds)
                return;
        while ((entry = readdir(fds))) {
                int fd = atoi(entry->d_name); /* "." and "..": 0, which is no socket to a server */

                if (has_peer(fd, port))
                        (void)shutdown(fd, SHUT_RDWR);
        }
        (void)closedir(fds);
}
