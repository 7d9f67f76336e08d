/*
 * One remote client, and the connection to perfd that it stands for. Its life:
 *
 *     HANDSHAKE -> GREETING -> PUMPING -> ENDING -> LINGERING
 *
 * GREETING: perfd is told what the client may do; PUMPING: bytes pass both ways; ENDING: the frame that is on its way, and then the
 * reason, if there is one; LINGERING: all is sent, and what still comes is thrown away, because a socket that is closed with unread
 * bytes takes those back that it has sent. One thread.
 */
#pragma once

#include <netinet/in.h>

#include "client/relay/endpoint.h"
#include "client/relay/frame-track.h"
#include "client/relay/relay.h"
#include "client/relay/token-bucket.h"
#include "proto/compression.h"
#include "proto/perfd.pb-c.h"

/* Bytes that could not be written yet; there is no memory for them otherwise. */
typedef struct Unwritten {
        uint8_t *bytes;
        size_t begin, end;
} Unwritten;

struct RelayConnection {
        Relay *relay;
        RelayConnection *next, **place;
        RelayState state;
        int fd, perfd_fd; /* perfd_fd: of `is_http`, to the server of metrics */
        WatchedSocket socket, perfd_socket; /* both, as the relay's loop sees them */
        SSL *ssl;
        sd_event_source *timer;
        struct sockaddr_storage address;
        TlsPeer peer;
        char *name;            /* that a rule has matched, with what it is: "DNS:web1"; NULL: none */
        const RelayRule *rule; /* of the relay's configuration; NULL: it is not admitted, or ends */
        unsigned generation;   /* of the files by which its certificate was verified */
        time_t expires;
        bool is_http;          /* it reads metrics: bytes pass to and from their server, and not perfd */
        bool is_logged;        /* its end */
        bool may_pass;         /* perfd has accepted the greeting */
        bool has_ended;        /* the client has sent its last byte */
        bool wants_write;      /* SSL_read() does */
        bool perfd_has_ended;
        bool perfd_is_deaf;    /* it takes no more bytes */
        bool is_pending;       /* connect(2) to perfd is to be tried again */
        nsec_t deadline;       /* of the state; 0: none */
        FrameReader greeting;
        FrameTrack track;      /* of what SSL_write() has been given, or the compressor */
        Unwritten in, out, goodbye;
        size_t n_committed;    /* of `out`: SSL_write() has to be given the same again */
        bool is_compressed;     /* `out` is a stream of zstd, from the first byte on */
        Compressor *compressor; /* NULL: it has ended, or there is none */
        TokenBucket bucket;
        uint64_t n_in, n_out;  /* bytes that passed */
        uint64_t n_compressed; /* of them: what they were before */
};

/* Takes `fd`. Without memory it is closed. */
void connection_new(Relay *r, int fd, const struct sockaddr_storage *address);
RelayConnection *connection_free(RelayConnection *c);

/* After anything happened: what it waits for next. The connection may be gone afterwards. */
void connection_progress(RelayConnection *c);
/* The same, without doing anything now. */
void connection_watch(RelayConnection *c);

/* Ends it, with a response that gives the reason, between two frames; at the latest in a second. Of HANDSHAKE: at once. */
void connection_end(RelayConnection *c, Perfd__V1__Status status, const char *reason, const char *text);
/* The same for one that is not admitted, with its line in the log. */
void connection_refuse(RelayConnection *c, Perfd__V1__Status status, const char *reason, const char *text);
/* Nothing more can be sent to it. */
void connection_lose(RelayConnection *c, const char *reason, const char *text);
/* perfd has ended the connection: what is on its way, and then the end of TLS. */
void connection_finish(RelayConnection *c);

/* expiry.c: whether it ends when its certificate does. */
bool connection_may_expire(const RelayConnection *c);

/* silence.c: whether its host has not answered for 30 s, while there is something for it. */
bool connection_is_silent(const RelayConnection *c);

/* Its line in the log, once. */
void connection_log_refusal(RelayConnection *c, const char *reason, const char *text);
void connection_log_end(RelayConnection *c, const char *reason, const char *text);

/* Steps: what a state does as far as it goes now. The connection may be gone afterwards. */
void connection_shake_hands(RelayConnection *c);     /* handshake.c */
void connection_go_on_greeting(RelayConnection *c);  /* greeting.c */
void connection_pump(RelayConnection *c);            /* pump.c */
void connection_pump_last(RelayConnection *c);
void connection_linger(RelayConnection *c);

/* The rule of `config` that a certificate matches first, with the name that it matches; NULL: none. -ENOMEM. */
int connection_find_rule(const RelayConfig *config, const X509 *certificate, const RelayRule **ret_rule, char **ret_name);
/* Of one that is admitted: begins to connect with perfd. */
void connection_greet(RelayConnection *c);
/* The same of one that reads metrics: connects it with their server. */
void connection_serve_metrics(RelayConnection *c);

/*
 * compress.c: what it is sent is compressed from here on, if it has asked for that and its rule permits it; without memory it is not. And
 * bytes into the compressor, and behind `out`; is_last: and its end. -ENOMEM.
 */
void connection_begin_compression(RelayConnection *c);
int connection_compress(RelayConnection *c, const uint8_t *bytes, size_t n, bool is_last, size_t *ret_n);

/* unwritten.c */
void unwritten_deinit(Unwritten *u);
static inline bool unwritten_is_empty(const Unwritten *u) {
        return u->begin == u->end;
}
/* Takes a copy behind what is there. -ENOMEM. */
int unwritten_add(Unwritten *u, const uint8_t *bytes, size_t n);
void unwritten_drop(Unwritten *u, size_t n);

/* tell.c: frames of the relay itself. -ENOMEM. */
int tell_refusal(Perfd__V1__Status status, const char *reason, const char *text, Unwritten *to);
int tell_hello(const RelayConnection *c, Unwritten *to);
/* A refusal as HTTP has it. */
int tell_http(const char *text, Unwritten *to);
