/*
 * For the files of the library among themselves: the client, its stream, and how errors are kept. One thread at a time.
 */
#pragma once

#include "client/descriptor.h"
#include "client/item.h"
#include "client/perfd.h"
#include "client/task.h"
#include "proto/frame.h"
#include "proto/perfd.pb-c.h"
#include "proto/adaptive-poll.h"

typedef enum ClientState {
        CLIENT_NEW,       /* no connection */
        CLIENT_READY,     /* one request at a time */
        CLIENT_STREAMING, /* packets come */
        CLIENT_ENDED,     /* the end packet came */
        CLIENT_BROKEN,    /* the connection cannot be followed any more */
} ClientState;

typedef struct Stream {
        perfd_callbacks callbacks;
        void *userdata;
        Descriptors descriptors;
        Tasks tasks;
        struct perfd_item item; /* its arrays are used again for each item */
        bool started;
        bool stop_asked;
        RingReader ring; /* open: the stream is in shared memory */
        PoolReader pool; /* of packets that others get too */
        uint64_t n_pooled; /* bytes of these, of all that came */
        AdaptivePoll pace;
        bool room_wanted, stop_wanted; /* to be told when the request before has left */
        uint64_t sequence; /* of the last packet */
        uint64_t received; /* items */
        uint64_t missed;   /* items of gaps */
} Stream;

struct perfd_client {
        char *program;
        char *path; /* that it is connected to, or NULL */
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
        Stream stream;
};

/* error.c: keeps it and gives back `code`. A client that cannot be followed any more is left BROKEN. */
int client_fail(perfd_client *c, int code, const char *reason, const char *format, ...)
        __attribute__((format(printf, 4, 5)));
int client_fail_refused(perfd_client *c, const Perfd__V1__Response *response);
int client_fail_memory(perfd_client *c);
int client_fail_protocol(perfd_client *c, const char *what);
int client_fail_closed(perfd_client *c);
int client_fail_socket(perfd_client *c, const char *what, int error);
void client_error_deinit(perfd_client *c);

/* client.c: as before perfd_client_connect(). */
void client_disconnect(perfd_client *c);

/* wait.c: ns of CLOCK_MONOTONIC. */
uint64_t client_now(void);

/* connection.c */

/* Bytes to the socket and from it, as many as go without waiting. Negative, PERFD_E_CLOSED. */
int client_send(perfd_client *c);
int client_receive(perfd_client *c, size_t most, size_t *ret_n);
/* Frames a request for client_send() and gives it its id. -ENOMEM, PERFD_E_INVALID if the daemon would not read it. */
int client_push(perfd_client *c, Perfd__V1__Request *request);

/* Bytes until the end of the first frame, as far as its length is known. */
size_t client_missing(const perfd_client *c);

/* call.c: sends it and waits for its response, which is to be freed. Refusals are errors. */
int client_call(perfd_client *c, Perfd__V1__Request *request, Perfd__V1__ServerMessage **ret_message);

/* stream.c */
void stream_deinit(Stream *s);
/* A whole frame without its length. */
int stream_take_message(perfd_client *c, const uint8_t *bytes, size_t length);

/* shared.c */
void client_close_fds(perfd_client *c);
/* With the fds that came. Not 0: there is no way to read it. */
int client_open_ring(perfd_client *c, const Perfd__V1__StreamRing *m);
/* What is to be said, as far as it goes without waiting. */
int stream_send(perfd_client *c);
/* perfd_client_process() and perfd_client_due() of a stream in shared memory. */
int stream_process_ring(perfd_client *c);
uint64_t stream_due(perfd_client *c);
