/* Connecting by TLS: the files, the network, the handshake, the greeting. All within the timeout of the client, but for the name. */
#include "client/connection/tls-connect.h"

#include <errno.h>
#include <netdb.h>
#include <openssl/ssl.h>
#include <string.h>
#include <unistd.h>

#include "client/connection/network.h"

static int fail_timeout(perfd_client *c, const char *uri, const char *what) {
        return client_fail(c, PERFD_E_TIMEOUT, "timeout", "%s: %s within %d ms", uri, what, c->timeout);
}

static int fail_name(perfd_client *c, const char *uri, const char *host, const NetworkError *e) {
        const char *why = e->error == EAI_SYSTEM ? strerror(errno) : gai_strerror(e->error);

        return client_fail(c, PERFD_E_UNREACHABLE, "unknown-host", "%s: the name cannot be resolved: %s: is it spelled right, and "
                           "does `getent hosts %s` know it?", uri, why, host);
}

static int fail_connect(perfd_client *c, const char *uri, const NetworkError *e) {
        switch (e->error) {
        case ECONNREFUSED:
                return client_fail(c, PERFD_E_UNREACHABLE, "refused", "%s: nobody listens on this port at %s: does perfd-relay run on "
                                   "that host, with this address and port in listen of its configuration?", uri, e->address);
        case ENETUNREACH:
        case EHOSTUNREACH:
        case EADDRNOTAVAIL:
                return client_fail(c, PERFD_E_UNREACHABLE, "no-route", "%s: there is no way to %s: %s: is that host on, and this one "
                                   "on its network?", uri, e->address, strerror(e->error));
        case ETIMEDOUT:
                return client_fail(c, PERFD_E_UNREACHABLE, "timeout", "%s: %s does not answer: is that host on, and does a firewall "
                                   "let this port through?", uri, e->address);
        default:
                return client_fail(c, PERFD_E_UNREACHABLE, "unreachable", "%s: connecting to %s: %s", uri, e->address,
                                   strerror(e->error));
        }
}

static int open_network(perfd_client *c, const char *uri, const char *host, const char *port, int64_t deadline, int *ret_fd) {
        NetworkError error;
        int r = network_open(host, port, deadline, ret_fd, &error);

        switch (r) {
        case 0:
                return 0;
        case NETWORK_E_NAME:
                return fail_name(c, uri, host, &error);
        case NETWORK_E_CONNECT:
                return fail_connect(c, uri, &error);
        case NETWORK_E_TIMEOUT:
                return fail_timeout(c, uri, "nobody has answered there: is that host on, and does a firewall let this port through? "
                                    "Nothing came");
        default:
                return client_fail(c, r, "socket", "%s: a socket: %s", uri, strerror(-r));
        }
}

static int shake_hands(perfd_client *c, int64_t deadline) {
        Tls *t = &c->tls;
        short events;
        int r;

        for (;;) {
                r = tls_connect(t, &events);
                if (r == TLS_E_FAILED)
                        return client_fail_tls(c);
                if (r == 0)
                        break;
                r = network_wait(t->fd, events, deadline);
                if (r == NETWORK_E_TIMEOUT)
                        return fail_timeout(c, t->to, "that port is open, and no handshake of TLS was answered");
                if (r < 0)
                        return client_fail(c, r, "socket", "waiting for %s: %s", t->to, strerror(-r));
        }
        if (!tls_has_protocol(t))
                return client_fail(c, PERFD_E_UNREACHABLE, "no-protocol", "%s: a TLS server is there, but none that speaks perfd's "
                                   "protocol (ALPN perfd/1): is this the port of perfd-relay?", t->to);
        return 0;
}

/* The fd belongs to the client, or is closed. */
static int connect_socket(perfd_client *c, const char *uri, const char *host, SSL_CTX *context, int fd, int64_t deadline) {
        int r = tls_open(&c->tls, context, uri, host, fd, c->wants_compression);

        if (r < 0)
                r = client_fail_memory(c);
        else
                r = shake_hands(c, deadline);
        if (r == 0)
                return perfd_client_connect_fd(c, fd);
        tls_close(&c->tls);
        close(fd);
        return r;
}

int client_connect_tls(perfd_client *c, const char *uri, const char *host, const char *port) {
        int64_t deadline = network_deadline(c->timeout);
        SSL_CTX *context;
        int fd, r = client_load_tls(c, &context);

        if (r != 0)
                return r;
        r = open_network(c, uri, host, port, deadline, &fd);
        if (r == 0)
                return connect_socket(c, uri, host, context, fd, deadline);
        SSL_CTX_free(context);
        return r;
}
