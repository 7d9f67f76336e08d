#include "client/connection/network.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/connection/client.h"

#define NS_PER_MS 1000000

/*
 * An idle peer is probed from the tenth second on, so that the probe behind USER_TIMEOUT is in time; bytes that nobody acknowledges end
 * the connection after USER_TIMEOUT.
 */
enum { IDLE = 10, INTERVAL = 5, USER_TIMEOUT = NETWORK_SILENCE - INTERVAL }; /* s */

static int64_t now(void) {
        return (int64_t)(client_now() / NS_PER_MS);
}

int64_t network_deadline(int timeout) {
        return timeout < 0 ? NETWORK_NEVER : now() + timeout;
}

int network_wait(int fd, short events, int64_t deadline) {
        struct pollfd p = { .fd = fd, .events = events };
        int64_t left = deadline == NETWORK_NEVER ? -1 : deadline - now();
        int r;

        if (deadline != NETWORK_NEVER)
                left = left < 0 ? 0 : left < INT_MAX ? left : INT_MAX;
        r = poll(&p, 1, (int)left);
        if (r < 0)
                return errno == EINTR ? 0 : -errno;
        return r == 0 ? NETWORK_E_TIMEOUT : 0;
}

/* A socket that does not know one of these is one all the same. */
static void set_options(int fd) {
        static const struct {
                int level, name, value;
        } options[] = {
                { IPPROTO_TCP, TCP_NODELAY, 1 },
                { SOL_SOCKET, SO_KEEPALIVE, 1 },
                { IPPROTO_TCP, TCP_KEEPIDLE, IDLE },
                { IPPROTO_TCP, TCP_KEEPINTVL, INTERVAL },
                { IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT * 1000 },
        };

        for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
                (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(options[i].value));
}

/* Of a connect(2) that has begun: 0, NETWORK_E_TIMEOUT, NETWORK_E_CONNECT with *ret_error, -errno. */
static int await_connection(int fd, int64_t deadline, int *ret_error) {
        struct pollfd p = { .fd = fd, .events = POLLOUT };
        socklen_t length = sizeof(*ret_error);
        int r;

        do {
                r = network_wait(fd, POLLOUT, deadline);
                if (r != 0)
                        return r;
        } while (poll(&p, 1, 0) == 0); /* it was a signal */
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, ret_error, &length) < 0)
                return -errno;
        return *ret_error != 0 ? NETWORK_E_CONNECT : 0;
}

static int open_address(const struct addrinfo *a, int64_t deadline, int *ret_fd, int *ret_error) {
        int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r = 0;

        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
                return -errno;
        *ret_error = fd < 0 ? errno : 0; /* a kernel without IPv6 */
        if (fd < 0)
                return NETWORK_E_CONNECT;
        set_options(fd);
        if (connect(fd, a->ai_addr, a->ai_addrlen) < 0) {
                *ret_error = errno;
                r = errno == EINPROGRESS || errno == EINTR ? await_connection(fd, deadline, ret_error) : NETWORK_E_CONNECT;
        }
        if (r == 0)
                *ret_fd = fd;
        else
                close(fd);
        return r;
}

static int64_t share_of(int64_t deadline, size_t n) {
        return deadline == NETWORK_NEVER ? deadline : now() + (deadline - now()) / (int64_t)n;
}

int network_open(const char *host, const char *port, int64_t deadline, int *ret_fd, NetworkError *ret_error) {
        const struct addrinfo wanted = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
        struct addrinfo *all;
        size_t n = 0;
        int r;

        *ret_error = (NetworkError){ .error = getaddrinfo(host, port, &wanted, &all) };
        if (ret_error->error != 0)
                return ret_error->error == EAI_MEMORY ? -ENOMEM : NETWORK_E_NAME;
        for (const struct addrinfo *a = all; a; a = a->ai_next)
                n++;
        r = NETWORK_E_CONNECT;
        for (const struct addrinfo *a = all; a && r > 0; a = a->ai_next, n--) {
                (void)getnameinfo(a->ai_addr, a->ai_addrlen, ret_error->address, sizeof(ret_error->address), NULL, 0, NI_NUMERICHOST);
                r = open_address(a, share_of(deadline, n), ret_fd, &ret_error->error);
        }
        freeaddrinfo(all);
        return r;
}
