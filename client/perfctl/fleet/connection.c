/* The connection with a NATS server: by TLS it is verified as everywhere in perfctl, and what is secret in an address is never shown. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/perfctl/base/daemon-clock.h"
#include "client/perfctl/fleet/nats.h"
#include "client/perfctl/base/quantity.h"

#define CONNECT_MS 5000
#define SECRET_SIZE (64 << 10) /* of a key, or credentials */
#define LOOK_NSEC UINT64_C(100000000)

/* nats://USER:PASSWORD@HOST without what stands before the '@'. */
static char *url_to_show(const char *url) {
        const char *scheme = strstr(url, "://"), *begin = scheme ? scheme + 3 : url, *at = strrchr(begin, '@');
        char *text;

        if (asprintf(&text, "%.*s%s%s", (int)(begin - url), url, at ? "...@" : "", at ? at + 1 : begin) < 0)
                text = NULL;
        return must_have(text);
}

static const char *advice_on(natsStatus status, const char *detail) {
        switch (status) {
        case NATS_CONNECTION_AUTH_FAILED:
        case NATS_NOT_PERMITTED:
                return ": --credentials FILE names what the server accepts, or the address has it, as nats://USER:PASSWORD@HOST:PORT";
        case NATS_SECURE_CONNECTION_REQUIRED:
                return ": the server wants TLS: write tls:// in the address";
        case NATS_SECURE_CONNECTION_WANTED:
                return ": the server has no TLS: write nats:// in the address";
        case NATS_SSL_ERROR:
                if (strcasestr(detail, "hostname mismatch") || strcasestr(detail, "IP address mismatch"))
                        return ": the server's certificate is for another name: write one that it has in the address";
                return ": --tls DIR has the ca.crt that the server's certificate is of, and client.crt and client.key if it wants them";
        case NATS_NO_SERVER:
                return ": nothing accepts connections there: is nats-server running, and is the address right?";
        default:
                return "";
        }
}

int fleet_fail(const FleetConnection *c, const char *what, natsStatus status) {
        const char *last = nats_GetLastError(NULL), *text = last ? strstr(last, "): ") : NULL, *detail = text ? text + 3 : last ? last : "";

        if (strcmp(detail, natsStatus_GetText(status)) == 0)
                detail = ""; /* behind the place in its source that is all */
        return perfctl_fail(c->p, PERFCTL_UNREACHABLE, "%s: %s%s%s%s", what, natsStatus_GetText(status), *detail ? ", " : "", detail,
                            advice_on(status, detail));
}

static uint64_t count_reconnects(const FleetConnection *c) {
        uint64_t in, in_bytes, out, out_bytes, n = 0;
        natsStatistics *statistics = NULL;

        if (natsStatistics_Create(&statistics) == NATS_OK && natsConnection_GetStats(c->connection, statistics) == NATS_OK)
                (void)natsStatistics_GetCounts(statistics, &in, &in_bytes, &out, &out_bytes, &n);
        natsStatistics_Destroy(statistics);
        return n;
}

/* libnats connects again by itself, and counts how often it has. */
bool fleet_connection_look(FleetConnection *c) {
        uint64_t now = clock_read(CLOCK_MONOTONIC), n;
        char away[QUANTITY_SIZE];
        bool is_there;

        if (now - c->looked < LOOK_NSEC)
                return false;
        c->looked = now;
        is_there = natsConnection_Status(c->connection) == NATS_CONN_STATUS_CONNECTED;
        n = count_reconnects(c);
        if (c->lost == 0 && (!is_there || n > c->reconnects)) {
                (void)perfctl_fail(c->p, 0, "%s: the server is away: trying to connect again", c->url);
                c->lost = now;
        }
        if (!is_there || c->lost == 0)
                return false;
        (void)perfctl_fail(c->p, 0, "%s: connected again after %s", c->url, quantity_show_time(now - c->lost, away));
        c->lost = 0;
        c->reconnects = n;
        return true;
}

static int judge_secret(const FleetConnection *c, const char *path, const struct stat *file) {
        mode_t others = file->st_uid == 0 ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO; /* root's own may be for a group */

        if (!S_ISREG(file->st_mode))
                return perfctl_fail(c->p, PERFCTL_FAILED, "%s is not a regular file", path);
        if (file->st_size > SECRET_SIZE)
                return perfctl_fail(c->p, PERFCTL_FAILED, "%s has more than %d KiB, which no key or credentials have", path, SECRET_SIZE >> 10);
        if ((file->st_mode & others) != 0)
                return perfctl_fail(c->p, PERFCTL_FAILED, "%s has mode %03o, by which others can use it: `chmod 600 %s`; if they may have read "
                                    "it, have another one made", path, file->st_mode & 07777u, path);
        return 0;
}

/*
 * Opened here once, because libnats would wait for a pipe's writer, read a device until there is no memory, and say of a file that cannot
 * be read that the server has refused it.
 */
static int check_secret(const FleetConnection *c, const char *path) {
        int r, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        struct stat file;

        if (fd < 0 || fstat(fd, &file) < 0)
                r = perfctl_fail(c->p, PERFCTL_FAILED, "%s: %s", path, strerror(errno));
        else
                r = judge_secret(c, path, &file);
        if (fd >= 0)
                (void)close(fd);
        return r;
}

static char *path_in(const char *directory, const char *name) {
        char *path;

        return must_have(asprintf(&path, "%s/%s", directory, name) < 0 ? NULL : path);
}

/* Without a CA of its own, those of this machine count, which libnats knows; but a directory that was named has to be there. */
static int set_tls(const FleetConnection *c, natsOptions *o) {
        char *directory = perfctl_tls_directory(c->p), *ca = path_in(directory, "ca.crt"), *certificate = path_in(directory, "client.crt"),
             *key = path_in(directory, "client.key");
        bool is_named = c->p->tls || getenv("PERFD_TLS");
        natsStatus status = natsOptions_SetSecure(o, true);
        const char *file = ca;
        int r = 0;

        if (is_named && access(directory, X_OK) < 0)
                r = perfctl_fail(c->p, PERFCTL_FAILED, "%s, which --tls or $PERFD_TLS names: %s", directory, strerror(errno));
        if (status == NATS_OK && access(ca, F_OK) == 0)
                status = natsOptions_LoadCATrustedCertificates(o, ca);
        if (r == 0 && status == NATS_OK && (access(certificate, F_OK) == 0 || access(key, F_OK) == 0)) {
                file = certificate;
                r = check_secret(c, key);
        }
        if (r == 0 && status == NATS_OK && file == certificate)
                status = natsOptions_LoadCertificatesChain(o, certificate, key);
        if (r == 0 && status != NATS_OK)
                r = fleet_fail(c, file, status);
        free(directory);
        free(ca);
        free(certificate);
        free(key);
        return r;
}

static int set_credentials(const FleetConnection *c, natsOptions *o, const char *path) {
        natsStatus status;
        int r = check_secret(c, path);

        if (r != 0)
                return r;
        status = natsOptions_SetUserCredentialsFromFiles(o, path, NULL);
        return status == NATS_OK ? 0 : fleet_fail(c, path, status);
}

static int set_options(const FleetConnection *c, natsOptions *o) {
        const char *url = perfctl_get(c->p, "nats"), *credentials = perfctl_get(c->p, "credentials");
        natsStatus status = natsOptions_SetURL(o, url);
        int r;

        if (status == NATS_OK)
                status = natsOptions_SetName(o, "perfctl");
        if (status == NATS_OK)
                status = natsOptions_SetTimeout(o, CONNECT_MS);
        if (status == NATS_OK)
                status = natsOptions_SetNoEcho(o, true); /* claim.c asks others */
        if (status != NATS_OK)
                return fleet_fail(c, c->url, status);
        r = strncmp(url, "tls://", strlen("tls://")) == 0 ? set_tls(c, o) : 0;
        return r == 0 && credentials ? set_credentials(c, o, credentials) : r;
}

int fleet_connect(const Perfctl *p, FleetConnection **ret) {
        FleetConnection *c = must_have(calloc(1, sizeof(*c)));
        natsOptions *o = NULL;
        natsStatus status = natsOptions_Create(&o);
        int r;

        c->p = p;
        c->url = url_to_show(perfctl_get(p, "nats"));
        r = status == NATS_OK ? set_options(c, o) : fleet_fail(c, c->url, status);
        if (r == 0)
                status = natsConnection_Connect(&c->connection, o);
        natsOptions_Destroy(o);
        if (r == 0 && status == NATS_OK)
                status = natsConnection_JetStream(&c->js, c->connection, NULL);
        if (r == 0 && status != NATS_OK)
                r = fleet_fail(c, c->url, status);
        if (r == 0)
                *ret = c;
        else
                fleet_disconnect(c);
        return r;
}

void fleet_disconnect(FleetConnection *c) {
        if (!c)
                return;
        if (c->claim)
                (void)natsSubscription_Unsubscribe(c->claim);
        natsSubscription_Destroy(c->claim);
        jsCtx_Destroy(c->js);
        natsConnection_Destroy(c->connection);
        nats_Close();
        free(c->url);
        free(c);
}
