/* IPv4 and IPv6 are listened on apart, so that relay.yaml can name both with one port. */
#include "client/relay/listening-socket.h"

#include <errno.h>
#include <sys/socket.h>

#include "client/relay/endpoint.h"
#include "daemon/base/cleanup.h"

int listening_socket_open(const char *key, const char *address, int *ret, Explanation *e) {
        static const int on = 1;
        _cleanup_close_ int fd = -1;
        Endpoint endpoint;
        int r = endpoint_parse(address, &endpoint, e);

        if (r != 0)
                return r;
        fd = socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return refuse(e, REFUSED_DENIED, "no-permission", "%s: %s: socket(2): %m", key, address);
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (endpoint.address.ss_family == AF_INET6) /* 0.0.0.0 can stand beside it */
                (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
        if (bind(fd, (const struct sockaddr *)&endpoint.address, endpoint.size) < 0 || listen(fd, SOMAXCONN) < 0)
                return refuse(e, REFUSED_DENIED, "no-permission", "%s: %s: %m%s", key, address,
                              errno == EADDRINUSE ? "; stop the program that listens there, or name another port" : "");
        *ret = TAKE_FD(fd);
        return 0;
}
