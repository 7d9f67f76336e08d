/*
 * Where a daemon is: unix:PATH; ssh://[USER@]HOST[:PORT][/PATH], which is ssh(1) with `perfctl stdio` on the other side; or
 * tls://HOST:PORT, where perfd-relay listens. What ssh takes as a URI is left to it, so that names are those of its own configuration.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/connection/client.h"
#include "client/connection/tls-connect.h"
#include "client/connection/tunnel.h"

static const char unix_scheme[] = "unix:", ssh_scheme[] = "ssh://", tls_scheme[] = "tls://";

enum { /* of perfctl, and of shells that find no program */
        STATUS_NO_DAEMON = 3,
        STATUS_NO_PROGRAM = 127,
};

/* A word for the shell of the other side. */
static char *quote(const char *text) {
        size_t n = 0;
        char *quoted = malloc(4 * strlen(text) + 3), *to = quoted;

        if (!quoted)
                return NULL;
        *to++ = '\'';
        for (; text[n]; n++)
                if (text[n] == '\'')
                        to = stpcpy(to, "'\\''");
                else
                        *to++ = text[n];
        *to++ = '\'';
        *to = '\0';
        return quoted;
}

/*
 * The command for the other side. path: of the socket there, or "". A perfctl that does not know the variable goes on without it, as it
 * would not with an option; env(1) because shells differ.
 */
static char *command_of(const char *path, bool is_compressed) {
        const char *prefix = is_compressed ? "env " COMPRESSION_VARIABLE "=" COMPRESSION_NAME " " : "";
        char *quoted = *path ? quote(path) : NULL, *command;

        if (*path && !quoted)
                return NULL;
        if (asprintf(&command, "%sperfctl %s%s%sstdio", prefix, *path ? "--socket " : "", *path ? quoted : "", *path ? " " : "") < 0)
                command = NULL;
        free(quoted);
        return command;
}

static int fail_uri(perfd_client *c, const char *uri, const char *what) {
        return client_fail(c, PERFD_E_INVALID, "bad-uri", "'%s' %s: expected unix:PATH, ssh://[USER@]HOST[:PORT][/PATH] or tls://HOST:PORT",
                           uri, what);
}

/* The tunnel has ended before there was an answer, or what came is none. */
static int fail_greeting(perfd_client *c, int r, Tunnel *t) {
        bool is_closed = r == PERFD_E_CLOSED;
        int status = tunnel_wait(t, is_closed);
        char *said = tunnel_said(t);
        const char *text = said ? said : "";

        if (r == PERFD_E_PROTOCOL)
                r = client_fail(c, r, "protocol", "%s: what came is no answer of perfd's: does a login shell there print something before it "
                                "runs a command (`ssh HOST true` has to print nothing)?%s%s", t->to, *text ? " On stderr: " : "", text);
        else if (!is_closed)
                r = client_fail(c, r, "timeout", "%s: no answer in time%s%s", t->to, *text ? ": " : "", text);
        else if (status == STATUS_NO_PROGRAM)
                r = client_fail(c, PERFD_E_UNREACHABLE, "no-perfctl", "%s: there is no perfctl: install it there, where the PATH of a "
                                "command of ssh's leads. What came back: %s", t->to, text);
        else if (status == SSH_FAILED)
                r = client_fail(c, PERFD_E_UNREACHABLE, "ssh", "%s cannot be reached by ssh: %s", t->to, *text ? text : "it says no reason");
        else if (status == STATUS_NO_DAEMON)
                r = client_fail(c, PERFD_E_UNREACHABLE, "unreachable", "%s: perfctl is there, and reaches no perfd: %s", t->to, text);
        else
                r = client_fail(c, PERFD_E_UNREACHABLE, "ssh", "%s: ssh ended with status %d before perfd answered: %s", t->to, status, text);
        free(said);
        return r;
}

static int connect_tunnel(perfd_client *c, const char *to, char *const *argv) {
        Tunnel t;
        int fd, r = tunnel_open(&t, to, argv, &fd);

        if (r < 0)
                return client_fail(c, r == -ENOENT ? PERFD_E_UNREACHABLE : r, "ssh", "%s cannot be run: %s", argv[0], strerror(-r));
        r = perfd_client_connect_fd(c, fd);
        if (r == 0)
                c->tunnel = t;
        else {
                if (r == PERFD_E_CLOSED || r == PERFD_E_PROTOCOL || r == PERFD_E_TIMEOUT)
                        r = fail_greeting(c, r, &t);
                tunnel_close(&t);
        }
        return r;
}

/* `n` bytes: [USER@]HOST[:PORT]. What a shell gives a meaning, because ssh's configuration may have commands with the host in them (%h). */
static bool is_for_shell(const char *authority, size_t n) {
        const char *at = memrchr(authority, '@', n);

        for (size_t i = 0; i < n; i++)
                if (strchr("'`\"$;&<>|(){},!*?#", authority[i]) || (authority[i] == '\\' && (!at || authority + i > at)))
                        return true;
        return at && at[1] == '-';
}

/* $PERFD_SSH is a program that takes ssh's arguments. */
static int connect_ssh(perfd_client *c, const char *uri) {
        const char *host = uri + strlen(ssh_scheme), *program = getenv("PERFD_SSH");
        size_t n = strcspn(host, "/");
        const char *path = host + n;
        char *destination, *command;
        int r;

        if (n == 0 || *host == '-' || *host == '@' || host[n - 1] == ':' || host[n - 1] == '@')
                return fail_uri(c, uri, "names no host");
        if (is_for_shell(host, n))
                return fail_uri(c, uri, "has a character that is in no name of a host");
        if (strcmp(path, "/") == 0)
                path = "";
        destination = strndup(uri, strlen(ssh_scheme) + n);
        command = command_of(path, c->wants_compression);
        if (destination && command) {
                char *const argv[] = { (char *)(program && *program ? program : "ssh"), (char *)"-T", (char *)"--", destination, command,
                                       NULL };

                r = connect_tunnel(c, destination, argv);
        } else
                r = client_fail_memory(c);
        free(destination);
        free(command);
        return r;
}

static bool is_port(const char *text) {
        size_t n = strspn(text, "0123456789");
        long number = n > 0 && n <= 5 ? strtol(text, NULL, 10) : 0;

        return !text[n] && number >= 1 && number <= 65535;
}

static bool is_host(const char *text, bool is_address) {
        static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
        const char *end = text + strspn(text, letters);

        if (!is_address)
                return *text && !*end;
        end = text + strspn(text, "0123456789abcdefABCDEF:.");
        if (*end == '%' && end[1]) /* of an interface */
                end += 1 + strspn(end + 1, letters);
        return strchr(text, ':') && !*end;
}

/* Cuts HOST:PORT or [ADDRESS]:PORT in two, behind which there may be a slash. */
static const char *cut_authority(char *text, char **ret_host, char **ret_port) {
        bool is_address = *text == '[';
        size_t n = strlen(text);
        char *end = is_address ? strchr(text, ']') : strchr(text, ':');

        if (n > 0 && text[n - 1] == '/')
                text[n - 1] = '\0';
        if (strpbrk(text, "/@"))
                return "has more than a host and a port";
        *ret_host = text + is_address;
        *ret_port = end ? end + is_address + 1 : NULL;
        if (!end || (is_address && end[1] != ':'))
                return "names no port, or no host (an address of IPv6 stands in brackets)";
        *end = '\0';
        if (!is_host(*ret_host, is_address))
                return "names no host (an address of IPv6 stands in brackets)";
        return is_port(*ret_port) ? NULL : "has a port that is none";
}

static int connect_tls(perfd_client *c, const char *uri) {
        char *authority = strdup(uri + strlen(tls_scheme)), *host, *port;
        const char *wrong = authority ? cut_authority(authority, &host, &port) : NULL;
        int r = !authority ? client_fail_memory(c) : wrong ? fail_uri(c, uri, wrong) : client_connect_tls(c, uri, host, port);

        free(authority);
        return r;
}

int perfd_client_connect_uri(perfd_client *c, const char *uri) {
        if (c->state != CLIENT_NEW)
                return client_fail(c, PERFD_E_STATE, "state", "this client is connected already");
        if (!uri || !*uri)
                return fail_uri(c, "", "is empty");
        for (const char *at = uri; *at; at++)
                if ((unsigned char)*at <= ' ' || *at == 0x7f)
                        return fail_uri(c, uri, "has a space or a control character");
        if (strncmp(uri, unix_scheme, strlen(unix_scheme)) == 0)
                return perfd_client_connect(c, uri + strlen(unix_scheme));
        if (strncmp(uri, ssh_scheme, strlen(ssh_scheme)) == 0)
                return connect_ssh(c, uri);
        if (strncmp(uri, tls_scheme, strlen(tls_scheme)) == 0)
                return connect_tls(c, uri);
        return fail_uri(c, uri, "has no scheme that is known");
}
