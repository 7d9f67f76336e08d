/*
 * For all above the connection: the client as a socket with requests and responses on it, and how errors are kept. What a stream is
 * made of is not known here. One thread at a time.
 */
#pragma once

#include "client/connection/tls.h"
#include "client/connection/tunnel.h"
#include "client/perfd.h"
#include "proto/compression.h"
#include "proto/frame.h"
#include "proto/perfd.pb-c.h"
#include "proto/stream-ring.h"

typedef enum ClientState {
        CLIENT_NEW,       /* no connection */
        CLIENT_READY,     /* one request at a time */
        CLIENT_STREAMING, /* packets come */
        CLIENT_ENDED,     /* the end packet came */
        CLIENT_BROKEN,    /* the connection cannot be followed any more */
} ClientState;

typedef struct Stream Stream; /* client/stream/stream.h */

struct perfd_client {
        char *program;
        char *path; /* that it is connected to, or NULL */
        Tunnel tunnel; /* to another machine, that the connection goes through */
        Tls tls;       /* the same, on the fd itself */
        char *ca, *certificate, *key; /* files for that, or NULL */
        bool wants_compression;
        Decompressor *decompressor; /* of what comes, if it was asked for; NULL: it was not */
        int fd;
        int fds[STREAM_FDS_MAX]; /* that came with a response */
        size_t n_fds;
        int timeout; /* ms, -1 for ever */
        ClientState state;
        FrameReader in;
        uint8_t *out; /* one frame that is on its way */
        size_t n_out, sent;
        uint64_t last_id;
        Perfd__V1__ServerMessage *greeting; /* with a HelloReply, or NULL */
        perfd_error error;
        char *error_reason, *error_message; /* what `error` points into, or NULL */
        Stream *stream; /* what it is when it is one */
};

/* error.c: keeps it and gives back `code`. A client that cannot be followed any more is left BROKEN. */
int client_fail(perfd_client *c, int code, const char *reason, const char *format, ...)
        __attribute__((format(printf, 4, 5)));
int client_fail_refused(perfd_client *c, const Perfd__V1__Response *response);
int client_fail_memory(perfd_client *c);
int client_fail_protocol(perfd_client *c, const char *what);
void client_error_deinit(perfd_client *c);

/* connection.c */

/* The client is BROKEN from then on. */
int client_fail_closed(perfd_client *c);
int client_fail_socket(perfd_client *c, const char *what, int error);
/* Bytes to the socket and from it, as many as go without waiting. Negative, PERFD_E_CLOSED. */
int client_send(perfd_client *c);
int client_receive(perfd_client *c, size_t most, size_t *ret_n);
/* Frames a request for client_send() and gives it its id. -ENOMEM, PERFD_E_INVALID if the daemon would not read it. */
int client_push(perfd_client *c, Perfd__V1__Request *request);
/* Bytes have come that poll(2) does not know of. */
bool client_has_pending(const perfd_client *c);
/* Bytes until the end of the first frame, as far as its length is known. */
size_t client_missing(const perfd_client *c);
void client_close_fds(perfd_client *c);
/* ns of CLOCK_MONOTONIC. */
uint64_t client_now(void);

/* call.c: sends it and waits for its response, which is to be freed. Refusals are errors. */
int client_call(perfd_client *c, Perfd__V1__Request *request, Perfd__V1__ServerMessage **ret_message);
/* Of a message that is no packet: PERFD_E_REFUSED, if it says why the other side ends the connection, which is BROKEN then; else 0. */
int client_take_last_word(perfd_client *c, const uint8_t *bytes, size_t length);

/* tls-failure.c: why c->tls has failed, at connecting; and why it has ended. */
int client_fail_tls(perfd_client *c);
int client_fail_tls_closed(perfd_client *c);

/* tls-files.c */
void client_forget_tls(perfd_client *c);

/* connect.c: as before perfd_client_connect(). */
void client_disconnect(perfd_client *c);
