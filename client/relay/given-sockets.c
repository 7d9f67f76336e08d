/*
 * relay.yaml stays valid without systemd: what it lists is opened by the relay unless a socket that systemd has opened is there already. A
 * socket of all addresses is one for each of them, because with it there nobody else can listen on that port.
 */
#include "client/relay/given-sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "config/text/words.h"
#include "daemon/base/array.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/log.h"

static int option(int fd, int level, int name) {
        socklen_t size = sizeof(int);
        int value = -1;

        return getsockopt(fd, level, name, &value, &size) < 0 ? -1 : value;
}

/* NULL: what the relay can listen on. */
static const char *what_else(int fd) {
        int domain = option(fd, SOL_SOCKET, SO_DOMAIN);

        if (domain < 0)
                return "is not a socket";
        if (domain != AF_INET && domain != AF_INET6)
                return "is not a socket of IPv4 or IPv6";
        if (option(fd, SOL_SOCKET, SO_TYPE) != SOCK_STREAM || option(fd, SOL_SOCKET, SO_PROTOCOL) != IPPROTO_TCP)
                return "is not a socket of TCP";
        return option(fd, SOL_SOCKET, SO_ACCEPTCONN) == 1 ? NULL : "does not listen: a unit with Accept=yes passes connections";
}

/* Without FileDescriptorName= systemd says the name of the unit, and sd_listen_fds(3) "unknown" where nobody has said one. */
static bool find_purpose(const char *name, GivenPurpose *ret) {
        const char *dot = strrchr(name, '.');

        *ret = strcmp(name, "metrics") == 0 ? GIVEN_METRICS : GIVEN_TLS;
        return *ret == GIVEN_METRICS || strcmp(name, "tls") == 0 || strcmp(name, "unknown") == 0 || (dot && strcmp(dot, ".socket") == 0);
}

static int take(GivenSockets *g, int fd, const char *name, Explanation *e) {
        const char *what = what_else(fd);
        GivenSocket given = { .fd = fd };
        socklen_t size = sizeof(given.address);

        if (what)
                return refuse(e, REFUSED_INVALID, "bad-config", "fd %d, which was passed as %s, %s; give the socket unit ListenStream= "
                              "with a port or an address and a port, and Accept=no", fd, QUOTE(name), what);
        if (!find_purpose(name, &given.purpose))
                return refuse(e, REFUSED_INVALID, "bad-config", "fd %d was passed as %s, and a socket is for 'tls' or for 'metrics': set "
                              "FileDescriptorName= of the socket unit", fd, QUOTE(name));
        if (getsockname(fd, (struct sockaddr *)&given.address, &size) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
                return error_origin(-errno);
        given.takes_ipv4 = given.address.ss_family == AF_INET6 && option(fd, IPPROTO_IPV6, IPV6_V6ONLY) == 0;
        if (!ARRAY_ROOM(g->items, g->n))
                return error_origin(-ENOMEM);
        g->items[g->n++] = given;
        return 0;
}

int given_sockets_take(GivenSockets *g, Explanation *e) {
        char **names = NULL;
        int n = sd_listen_fds_with_names(1, &names), r = 0;

        if (n == -ENOMEM)
                return error_origin(n);
        if (n < 0)
                return refuse(e, REFUSED_INVALID, "bad-config", "LISTEN_FDS and LISTEN_FDNAMES are not what sd_listen_fds(3) describes: %s; "
                              "start the relay by its units, or without these variables", strerror(-n));
        for (int i = 0; i < n; i++) {
                if (r == 0)
                        r = take(g, SD_LISTEN_FDS_START + i, names[i], e);
                free(names[i]);
        }
        free(names);
        return r;
}

void given_sockets_deinit(GivenSockets *g) {
        for (size_t i = 0; i < g->n; i++)
                close_fd(g->items[i].fd);
        free(g->items);
        *g = (GivenSockets){ .items = NULL };
}

bool given_sockets_have(const GivenSockets *g, GivenPurpose purpose) {
        for (size_t i = 0; i < g->n; i++)
                if (g->items[i].purpose == purpose)
                        return true;
        return false;
}

static bool is_any(const struct sockaddr_storage *address) {
        return address->ss_family == AF_INET6 ? IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)address)->sin6_addr)
                                              : ((const struct sockaddr_in *)address)->sin_addr.s_addr == INADDR_ANY;
}

/* At the same place in both families. */
static in_port_t port_of(const struct sockaddr_storage *address) {
        return ((const struct sockaddr_in *)address)->sin_port;
}

static bool is_of(const GivenSocket *given, const struct sockaddr_storage *address) {
        const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)&given->address, *b6 = (const struct sockaddr_in6 *)address;
        const struct sockaddr_in *a = (const struct sockaddr_in *)&given->address, *b = (const struct sockaddr_in *)address;

        if (given->address.ss_family != address->ss_family || port_of(&given->address) != port_of(address))
                return false;
        return address->ss_family == AF_INET6 ? IN6_ARE_ADDR_EQUAL(&a6->sin6_addr, &b6->sin6_addr)
                                              : a->sin_addr.s_addr == b->sin_addr.s_addr;
}

static bool is_of_all(const GivenSocket *given, const struct sockaddr_storage *address) {
        return is_any(&given->address) && port_of(&given->address) == port_of(address) &&
               (given->address.ss_family == address->ss_family || given->takes_ipv4);
}

const GivenSocket *given_sockets_find(const GivenSockets *g, GivenPurpose purpose, const char *address) {
        Endpoint endpoint;

        if (!g || endpoint_parse(address, &endpoint, NULL) != 0)
                return NULL;
        for (size_t i = 0; i < g->n; i++)
                if (g->items[i].purpose == purpose && is_of(&g->items[i], &endpoint.address))
                        return &g->items[i];
        for (size_t i = 0; i < g->n; i++)
                if (g->items[i].purpose == purpose && is_of_all(&g->items[i], &endpoint.address))
                        return &g->items[i];
        return NULL;
}

static bool is_named(const GivenSocket *given, const Strings *addresses) {
        Endpoint endpoint;

        for (size_t i = 0; i < addresses->n; i++)
                if (endpoint_parse(addresses->items[i], &endpoint, NULL) == 0 && is_of(given, &endpoint.address))
                        return true;
        return false;
}

void given_sockets_log_unnamed(const GivenSockets *g, const Strings *tls, const Strings *metrics) {
        for (size_t i = 0; i < g->n; i++) {
                const GivenSocket *given = &g->items[i];
                bool is_tls = given->purpose == GIVEN_TLS;
                char address[ENDPOINT_TEXT_SIZE];

                if ((is_tls && tls->n == 0) || is_named(given, is_tls ? tls : metrics))
                        continue;
                endpoint_text(&given->address, address);
                log_print_with(LOG_WARNING, MESSAGE_BAD_CONFIG, LOG_FIELDS({ "ADDRESS", address }, { "REASON", "bad-config" }),
                               is_tls ? "listen.tls: it does not name %s, on which systemd listens: clients are served there too"
                                      : "metrics.listen: it does not name %s, on which systemd listens: nobody answers there", address);
        }
}
