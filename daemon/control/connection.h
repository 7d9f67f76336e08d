/* For this folder: what a connection is made of. Main thread only. */
#pragma once

#include "daemon/control/listener.h"

struct Connection {
        Connection *next;
        Control *control;
        uint64_t id;
        int fd;
        Peer peer;
        FrameReader in;
        uint8_t *out;
        size_t n_out, sent;
        nsec_t since;   /* of the last whole request or response, or the beginning */
        bool has_asked; /* a whole request came */
        bool ended;  /* the peer will send no more */
        bool given;  /* in a handler: the fd left */
        bool closed; /* in a handler: to be freed when it returns */
        bool more;   /* whole requests may be left in the buffer: come back without waiting for the peer */
        bool waits;  /* with `request` for connection_resume(); nothing is read or sent until then */
        bool runs;   /* in connection_resume(): others are served in the middle of it, and must not free it */
        const uint8_t *request; /* its bytes, in the buffer of `in` */
        size_t n_request;
        sd_event_source *source, *patience;
        Perfd__V1__Limit *limit; /* that it has set itself; NULL: none */
        Precedence precedence;
};

/*
 * control/long-response.c: as connection_respond(), with the frame that lies from begin to end of malloc'ed memory, which is the
 * connection's, or freed.
 */
int connection_respond_frame(Connection *c, uint64_t id, Perfd__V1__Response__BodyCase body, uint8_t *frame, size_t begin, size_t end);
