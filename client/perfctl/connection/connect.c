/*
 * Which daemon: --socket, $PERFD_SOCKET, or one of the two sockets of an installed perfd. The control socket is tried
 * first, because it can do everything; who may not use it gets the stream socket and, for a change, the daemon's no. With
 * --host or $PERFD_HOST perfctl does all that there, but for tls://: what is permitted there is the relay's to say.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/connection/socket-advice.h"
#include "client/perfctl/base/waiting.h"

static const char control_socket[] = "/run/perfd/control.sock";
static const char stream_socket[] = "/run/perfd/stream.sock";

/* Of the daemon alone, which answers at once if it is one: what takes it long are requests, and those are waited for. */
#define GREETING_MS 30000

void perfctl_add_host(Perfctl *p, const char *host) {
        p->host = host;
        p->hosts.items = must_have(reallocarray(p->hosts.items, p->hosts.n + 1, sizeof(*p->hosts.items)));
        p->hosts.items[p->hosts.n++] = host;
}

void perfctl_choose_host(Perfctl *p) {
        if (!p->host || p->socket || strncmp(p->host, "unix:", strlen("unix:")) != 0)
                return;
        p->socket = p->host + strlen("unix:");
        p->host = NULL;
}

static void renew(Perfctl *p) {
        perfd_client_free(p->client);
        p->client = must_have(perfd_client_new("perfctl " PERFD_VERSION));
}

static int try(Perfctl *p, const char *path, bool is_quiet) {
        int r;

        renew(p);
        perfd_client_set_timeout(p->client, GREETING_MS);
        if (!is_quiet)
                waiting_begin(p, path);
        r = perfd_client_connect(p->client, path);
        if (!is_quiet)
                waiting_end();
        perfd_client_set_timeout(p->client, -1);
        p->path = path;
        return r;
}

/* Whether the path of a socket there can follow HOST. */
static int check_socket(const Perfctl *p) {
        const char *scheme_end = strstr(p->host, "://"), *path = scheme_end ? strchr(scheme_end + 3, '/') : NULL;

        if (!p->socket)
                return 0;
        if (strncmp(p->host, "unix:", strlen("unix:")) == 0 || (scheme_end && strncmp(p->host, "ssh://", strlen("ssh://")) != 0) ||
            (path && path[1]))
                return perfctl_fail(p, PERFCTL_USAGE, "--socket and --host %s exclude each other: --socket is the path of a socket on a "
                                    "host that is reached by ssh, and is named once", p->host);
        if (*p->socket != '/')
                return perfctl_fail(p, PERFCTL_USAGE, "--socket '%s': on another host, the path has to begin with '/'", p->socket);
        return 0;
}

/* HOST is an address of IPv6 where it has two colons at least, and else what ssh calls a destination. */
static char *uri_of(const char *host, const char *socket) {
        const char *colon = strchr(host, ':');
        bool is_address = colon && strchr(colon + 1, ':') && *host != '[' && !strchr(host, '@');
        char *uri;

        if (strncmp(host, "unix:", strlen("unix:")) == 0 || strstr(host, "://")) {
                size_t n = strlen(host) - (socket && host[strlen(host) - 1] == '/'); /* "ssh://web1/" has no path */

                if (asprintf(&uri, "%.*s%s", (int)n, host, socket ? socket : "") < 0)
                        uri = NULL;
        } else if (asprintf(&uri, "ssh://%s%s%s%s", is_address ? "[" : "", host, is_address ? "]" : "", socket ? socket : "") < 0)
                uri = NULL;
        return must_have(uri);
}

char *perfctl_tls_directory(const Perfctl *p) {
        const char *directory = p->tls ? p->tls : getenv("PERFD_TLS"), *home = getenv("HOME");
        char *own;

        if (directory && *directory)
                return must_have(strdup(directory));
        return must_have(asprintf(&own, "%s/.config/perfd/tls", home && *home ? home : "") < 0 ? NULL : own);
}

/* tls:// has a limit of time for its name, its handshake and the greeting. */
static int connect_tls(Perfctl *p, const char *uri) {
        char *directory = perfctl_tls_directory(p);
        int r = perfd_client_set_tls(p->client, directory);

        free(directory);
        perfd_client_set_timeout(p->client, GREETING_MS);
        if (r == 0)
                r = perfd_client_connect_uri(p->client, uri);
        perfd_client_set_timeout(p->client, -1);
        return r;
}

bool perfctl_is_tls(const Perfctl *p) {
        return p->host && strncmp(p->host, "tls://", strlen("tls://")) == 0;
}

/* No limit of time: ssh asks for a password, or whether a host is known. */
static int connect_host(Perfctl *p) {
        char *uri;
        int r = check_socket(p);

        if (r != 0)
                return r;
        uri = uri_of(p->host, p->socket);
        renew(p);
        r = perfd_client_set_compression(p->client, p->compress);
        if (r == 0)
                r = perfctl_is_tls(p) ? connect_tls(p, uri) : perfd_client_connect_uri(p->client, uri);
        free(uri);
        if (r == 0 && p->compress && !perfd_client_is_compressed(p->client))
                (void)perfctl_fail(p, 0, "%s does not compress, and this goes on without: %s", p->host, perfctl_is_tls(p)
                                   ? "its perfd-relay is older, or compress is 0 in its relay.yaml" : "its perfctl is older");
        if (r == 0)
                return 0;
        (void)perfctl_fail_client(p, NULL);
        return strcmp(perfd_client_error(p->client)->reason, "bad-uri") == 0 ? PERFCTL_USAGE : PERFCTL_UNREACHABLE;
}

/* ret_control: why the control socket cannot be used, of two; malloc, or NULL. */
static int connect_any(Perfctl *p, bool is_quiet, char **ret_control) {
        const char *path = p->socket ? p->socket : getenv("PERFD_SOCKET");
        int r;

        *ret_control = NULL;
        if (path && *path)
                return try(p, path, is_quiet);
        r = try(p, control_socket, is_quiet);
        if (r != PERFD_E_UNREACHABLE)
                return r;
        *ret_control = must_have(strdup(perfd_client_error(p->client)->message));
        return try(p, stream_socket, is_quiet);
}

int perfctl_connect_quietly(Perfctl *p) {
        char *control;
        int r;

        if (p->host)
                return PERFCTL_UNREACHABLE;
        r = connect_any(p, true, &control);
        free(control);
        return r == 0 ? 0 : PERFCTL_UNREACHABLE;
}

/* What is to be done is another thing for whom no socket is there than for whom one is not allowed. */
static int fail_both(const Perfctl *p, const char *control) {
        const perfd_error *stream = perfd_client_error(p->client);
        char *advice = strcmp(stream->reason, "no-permission") == 0 ? socket_advice(stream_socket) : NULL;

        (void)perfctl_fail(p, PERFCTL_UNREACHABLE, "cannot connect to perfd: %s",
                           advice ? advice
                           : socket_is_removed(control_socket) || socket_is_removed(stream_socket)
                                   ? "perfd runs, and the file of its socket was removed: `systemctl restart perfd-control.socket "
                                     "perfd-stream.socket` makes it again; a perfd that was started without them is to be restarted"
                                   : "start perfd (`systemctl start perfd`), or name its socket by --socket PATH or $PERFD_SOCKET");
        free(advice);
        (void)perfctl_fail(p, PERFCTL_UNREACHABLE, "control: %s", control);
        return perfctl_fail(p, PERFCTL_UNREACHABLE, "stream: %s", stream->message);
}

int perfctl_connect(Perfctl *p) {
        char *control;
        int r;

        if (p->host)
                return connect_host(p);
        r = connect_any(p, false, &control);
        if (r == PERFD_E_UNREACHABLE && control)
                r = fail_both(p, control);
        else if (r == PERFD_E_TIMEOUT)
                r = perfctl_fail(p, PERFCTL_UNREACHABLE, "nothing that listens on the socket has answered for %d s: perfd is busy or "
                                 "stopped, which `systemctl status perfd` shows, or this is not its socket", GREETING_MS / 1000);
        else if (r != 0) {
                const char *path = p->socket ? p->socket : getenv("PERFD_SOCKET");
                char *advice = strcmp(perfd_client_error(p->client)->reason, "no-permission") == 0 && path ? socket_advice(path) : NULL;

                r = perfctl_fail_client(p, NULL);
                if (advice)
                        (void)perfctl_fail(p, r, "%s", advice);
                free(advice);
                if (perfd_client_error(p->client)->code == PERFD_E_CLOSED)
                        r = PERFCTL_UNREACHABLE;
        }
        free(control);
        return r;
}
