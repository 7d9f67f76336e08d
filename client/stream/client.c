/* The life of a client: made without a connection, and with the room for what a stream keeps. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/connection/client.h"
#include "client/stream/stream.h"

perfd_client *perfd_client_new(const char *program) {
        perfd_client *c = calloc(1, sizeof(*c));

        if (!c)
                return NULL;
        c->fd = c->timeout = -1;
        c->tunnel = TUNNEL_NULL;
        c->tls = TLS_NULL;
        client_error_deinit(c);
        frame_reader_init(&c->in, FRAME_MAX_SERVER);
        c->program = strdup(program ? program : "");
        c->stream = stream_new();
        if (!c->program || !c->stream) {
                perfd_client_free(c);
                return NULL;
        }
        return c;
}

void perfd_client_free(perfd_client *c) {
        if (!c)
                return;
        tls_close(&c->tls);
        if (c->fd >= 0)
                close(c->fd);
        tunnel_close(&c->tunnel);
        if (c->greeting)
                perfd__v1__server_message__free_unpacked(c->greeting, NULL);
        stream_free(c->stream);
        frame_reader_deinit(&c->in);
        decompressor_free(c->decompressor);
        client_error_deinit(c);
        client_close_fds(c);
        free(c->out);
        client_forget_tls(c);
        free(c->path);
        free(c->program);
        free(c);
}
