/*
 * Which daemon: --socket, $PERFD_SOCKET, or one of the two sockets of an installed perfd. The control socket is tried
 * first, because it can do everything; who may not use it gets the stream socket and, for a change, the daemon's no.
 */
#include <stdlib.h>

#include "client/perfctl/perfctl.h"

static const char control_socket[] = "/run/perfd/control.sock";
static const char stream_socket[] = "/run/perfd/stream.sock";

static int try(Perfctl *p, const char *path) {
        perfd_client_free(p->client);
        p->client = must_have(perfd_client_new("perfctl " PERFD_VERSION));
        return perfd_client_connect(p->client, path);
}

static int connect_any(Perfctl *p, bool *ret_both) {
        const char *path = p->socket ? p->socket : getenv("PERFD_SOCKET");
        int r;

        *ret_both = !path || !*path;
        if (!*ret_both)
                return try(p, path);
        r = try(p, control_socket);
        return r == PERFD_E_UNREACHABLE ? try(p, stream_socket) : r;
}

int perfctl_connect_quietly(Perfctl *p) {
        bool both;

        return connect_any(p, &both) == 0 ? 0 : PERFCTL_UNREACHABLE;
}

int perfctl_connect(Perfctl *p) {
        bool both;
        int r = connect_any(p, &both);

        if (r == 0)
                return 0;
        if (r == PERFD_E_UNREACHABLE && both)
                return perfctl_fail(p, PERFCTL_UNREACHABLE,
                                    "%s, and %s can not be used either: is perfd running? --socket PATH or $PERFD_SOCKET "
                                    "name another socket",
                                    perfd_client_error(p->client)->message, control_socket);
        r = perfctl_fail_client(p, NULL);
        return perfd_client_error(p->client)->code == PERFD_E_CLOSED ? PERFCTL_UNREACHABLE : r;
}
