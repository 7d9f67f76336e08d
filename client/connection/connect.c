/*
 * A client is connected and greeted once. The greeting is part of connecting, so that a client that connected is known to speak the
 * daemon's protocol.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/connection/client.h"

void perfd_client_set_timeout(perfd_client *c, int milliseconds) {
        c->timeout = milliseconds < 0 ? -1 : milliseconds;
}

const perfd_error *perfd_client_error(const perfd_client *c) {
        return &c->error;
}

const char *perfd_client_version(const perfd_client *c) {
        return c->greeting ? c->greeting->response->hello->version : "";
}

bool perfd_client_may_change(const perfd_client *c) {
        return c->greeting && c->greeting->response->hello->may_change;
}

int perfd_client_set_compression(perfd_client *c, bool is_wanted) {
        if (c->state != CLIENT_NEW)
                return client_fail(c, PERFD_E_STATE, "state", "compression is chosen before connecting, and this client is connected");
        c->wants_compression = is_wanted;
        return 0;
}

bool perfd_client_is_compressed(const perfd_client *c) {
        return c->decompressor && decompressor_is_compressed(c->decompressor);
}

static int client_greet(perfd_client *c) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__Hello hello = PERFD__V1__HELLO__INIT;
        Perfd__V1__ServerMessage *greeting;
        int r;

        hello.protocol = PERFD_PROTOCOL;
        hello.program = c->program;
        request.body_case = PERFD__V1__REQUEST__BODY_HELLO;
        request.hello = &hello;
        r = client_call(c, &request, &greeting);
        if (r != 0)
                return r;
        if (greeting->response->body_case != PERFD__V1__RESPONSE__BODY_HELLO) {
                perfd__v1__server_message__free_unpacked(greeting, NULL);
                return client_fail_protocol(c, "no greeting in the answer to hello");
        }
        c->greeting = greeting;
        return 0;
}

/* A connection that did not come to a greeting, or to a stream, is taken back, so that another one can be tried. */
void client_disconnect(perfd_client *c) {
        tls_close(&c->tls);
        close(c->fd);
        c->fd = -1;
        c->state = CLIENT_NEW;
        free(c->out);
        c->out = NULL;
        c->n_out = c->sent = 0;
        frame_reader_deinit(&c->in);
        frame_reader_init(&c->in, FRAME_MAX_SERVER);
        client_close_fds(c);
        if (c->greeting)
                perfd__v1__server_message__free_unpacked(c->greeting, NULL);
        c->greeting = NULL;
        c->decompressor = decompressor_free(c->decompressor);
}

int perfd_client_connect_fd(perfd_client *c, int fd) {
        int r;

        if (c->state != CLIENT_NEW)
                return client_fail(c, PERFD_E_STATE, "state", "this client is connected already");
        c->fd = fd;
        c->state = CLIENT_READY;
        c->decompressor = c->wants_compression ? decompressor_new() : NULL;
        r = c->wants_compression && !c->decompressor ? client_fail_memory(c) : client_greet(c);
        if (r != 0)
                client_disconnect(c);
        return r;
}

static int client_fail_connect(perfd_client *c, const char *path, int error) {
        switch (error) {
        case ENOENT:
                return client_fail(c, PERFD_E_UNREACHABLE, "unreachable",
                                   "%s does not exist: is perfd running, and is this its socket?", path);
        case ECONNREFUSED:
                return client_fail(c, PERFD_E_UNREACHABLE, "unreachable", "nobody listens on %s: is perfd running?", path);
        case EACCES:
        case EPERM:
                return client_fail(
                        c, PERFD_E_UNREACHABLE, "no-permission",
                        "%s may not be used by this user: its group and mode are those of access in perfd's configuration",
                        path);
        case EAGAIN:
                return client_fail(c, PERFD_E_TIMEOUT, "timeout", "%s has a full queue of connections", path);
        default:
                return client_fail(c, PERFD_E_UNREACHABLE, "unreachable", "connecting to %s: %s", path, strerror(error));
        }
}

int perfd_client_connect(perfd_client *c, const char *path) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd, error, r;

        if (c->state != CLIENT_NEW)
                return client_fail(c, PERFD_E_STATE, "state", "this client is connected already");
        if (c->wants_compression)
                return client_fail(c, PERFD_E_INVALID, "no-compression", "compression is for other hosts, by ssh:// or tls://: a socket of "
                                   "this one has none");
        if (!path || !*path || strlen(path) >= sizeof(address.sun_path))
                return client_fail(c, PERFD_E_INVALID, "bad-path", "a socket's path has 1 to %zu bytes, not %zu",
                                   sizeof(address.sun_path) - 1, path ? strlen(path) : 0);
        strcpy(address.sun_path, path);

        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) {
                error = errno;
                return client_fail(c, -error, "socket", "making a socket: %s", strerror(error));
        }
        if (c->timeout >= 0) /* unix_stream_connect() waits so long for room in the listener's queue */
                (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO,
                                 &(struct timeval){ .tv_sec = c->timeout / 1000, .tv_usec = c->timeout % 1000 * 1000 + 1 },
                                 sizeof(struct timeval));
        while (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
                error = errno;
                if (error == EINTR)
                        continue;
                close(fd);
                return client_fail_connect(c, path, error);
        }
        r = perfd_client_connect_fd(c, fd);
        if (r == 0 && !c->path)
                c->path = strdup(path); /* without it streams come by the socket */
        return r;
}
