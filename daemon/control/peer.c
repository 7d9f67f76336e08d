/* Who the other end of a connection is, what it calls itself, and what it has limited itself to. */
#include "daemon/control/connection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/printable.h"

uint64_t connection_id(const Connection *c) {
        return c->id;
}

const Perfd__V1__Limit *connection_limit(const Connection *c) {
        return c->limit;
}

const Peer *connection_peer(const Connection *c) {
        return &c->peer;
}

int connection_credentials(const Connection *c, Credentials *ret, Explanation *e) {
        _cleanup_(credentials_deinit) Credentials own = { .uid = c->peer.uid, .gid = c->peer.gid };
        socklen_t size = 0;

        /* the first call says how large the list is: it never changes */
        if (getsockopt(c->fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) < 0 && errno == ERANGE) {
                own.groups = malloc(size);
                if (!own.groups)
                        return error_origin(-ENOMEM);
                if (getsockopt(c->fd, SOL_SOCKET, SO_PEERGROUPS, own.groups, &size) < 0)
                        return refuse(e, REFUSED_DENIED, "no-permission", "the kernel does not report your groups: %s",
                                      strerror(errno));
                own.n_groups = size / sizeof(*own.groups);
        }
        *ret = own;
        own = CREDENTIALS_NULL;
        return 0;
}

LogCause connection_cause(const Connection *c) {
        return (LogCause){ .uid = c->peer.uid, .pid = c->peer.pid, .connection = c->id };
}

void connection_set_program(Connection *c, const char *program) {
        char shown[24], whom[41];

        (void)snprintf(shown, sizeof(shown), "%s", program);
        (void)snprintf(whom, sizeof(whom), "%s", c->limit ? c->limit->name : "");
        printable_make(shown, sizeof(shown)); /* they may be cut in a character */
        printable_make(whom, sizeof(whom));
        (void)snprintf(c->peer.text, sizeof(c->peer.text), "%s%s%s%s%spid %d, uid %u", shown, *shown ? ", " : "", *whom ? "for " : "",
                       whom, *whom ? ", " : "", (int)c->peer.pid, (unsigned)c->peer.uid);
}

Perfd__V1__Limit *limit_copy(const Perfd__V1__Limit *limit) {
        size_t n = perfd__v1__limit__get_packed_size(limit);
        _cleanup_free_ uint8_t *bytes = malloc(n + 1);

        if (!bytes)
                return NULL;
        perfd__v1__limit__pack(limit, bytes);
        return perfd__v1__limit__unpack(NULL, n, bytes);
}

int connection_set_limit(Connection *c, const Perfd__V1__Limit *limit, Explanation *e) {
        if (c->limit)
                return refuse(e, REFUSED_INVALID, "bad-request", "this connection has a limit, which holds until it ends: connect "
                              "again for another one");
        c->limit = limit_copy(limit);
        return c->limit ? 0 : error_origin(-ENOMEM);
}
