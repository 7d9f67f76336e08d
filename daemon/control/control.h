/*
 * For the supervisor: the sockets on which requests come, and the connections on them. Main thread only. What a
 * request means is the supervisor's (supervisor/requests/requests.c); here is how it arrives, from whom, and how the answer
 * leaves. A peer can make nothing here fail but its own connection.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "daemon/base/clock.h"
#include "daemon/base/credentials.h"
#include "daemon/base/error.h"
#include "daemon/base/log.h"
#include "proto/frame.h"
#include "proto/perfd.pb-c.h"

#define PEER_TEXT_SIZE 64

typedef struct Control Control;
typedef struct Connection Connection;

/* Who is at the other end: SO_PEERCRED. */
typedef struct Peer {
        uid_t uid;
        gid_t gid;
        pid_t pid;
        bool may_change;           /* came by the control socket */
        char text[PEER_TEXT_SIZE]; /* "perfctl 0.1 (pid 12, uid 0)" */
} Peer;

/*
 * One request of one connection. To be answered at once by connection_respond(), or by connection_give() and then
 * whoever has the socket; or, after connection_defer(), when it is called again. Negative: fatal to the daemon.
 */
typedef int (*ControlHandler)(void *userdata, Connection *c, const Perfd__V1__Request *request);

/* The sockets that may change something have connections of their own, which those of the others never take. */
typedef struct ControlLimits {
        unsigned connections, connections_per_uid; /* that may not change anything: in all, and of one uid */
        unsigned changers;                         /* that may, in all; half of them of one uid */
        unsigned sockets;                          /* of the former, together with what was given away; 0: any number */
} ControlLimits;

struct Control {
        sd_event *event;
        ControlLimits limits;
        ControlHandler handler;
        void *userdata;
        struct Listener *listeners;
        Connection *connections;
        unsigned n_connections;
        unsigned n_given; /* sockets that were given away and are not closed yet: kept by the owner */
        uint64_t last_id;
        struct Precedence *lowered; /* of sources of the control socket that are among the others (precedence.c) */
        unsigned n_others;          /* turns that these had since */
        nsec_t idle_after; /* a silence of so long behind the last answer, or the beginning, is one; less is a client at work */
        void (*gone)(void *userdata, uint64_t id); /* of a connection that is no more, or NULL */
        bool (*keeps)(void *userdata, uint64_t id); /* something ends with the connection: it is never idle; or NULL */
};

void control_init(Control *c, sd_event *event, ControlLimits limits, ControlHandler handler, void *userdata);
/* Closes all connections and sockets; paths that we made are removed. */
void control_deinit(Control *c);

/*
 * Listens on a path: what is left of a dead daemon is replaced, a living one is REFUSED_EXISTS. group NULL: unchanged;
 * one that does not exist is refused unless the mode gives it nothing.
 */
int control_listen(Control *c, const char *path, mode_t mode, const char *group, bool may_change, Explanation *e);
/* The same on a socket that systemd made; the fd moves. */
int control_listen_fd(Control *c, int fd, bool may_change);

const Peer *connection_peer(const Connection *c);
/* What its peer is the cause of, in the log. */
LogCause connection_cause(const Connection *c);
/* The same with its groups, to be deinit'ed. Refused: they are not known. -ENOMEM */
int connection_credentials(const Connection *c, Credentials *ret, Explanation *e);
/* Of this connection, from 1, never used again. */
uint64_t connection_id(const Connection *c);
/* Of Control.connections. */
Connection *connection_next(const Connection *c);
/* The program's own word for itself, for the log. */
void connection_set_program(Connection *c, const char *program);
/*
 * The request waits; nothing more is read from the peer until connection_resume() has called the handler with it again. That
 * may defer it once more. If the peer goes meanwhile, Control.gone says so.
 */
void connection_defer(Connection *c);
/* Outside of the event loop: the handler is called, and nothing else of this connection happens meanwhile. Negative: fatal. */
int connection_resume(Connection *c);
/*
 * Behind that, when nothing of the request runs any more: its answer leaves, and what else the peer has asked is handled as if it
 * came now. The connection may be gone afterwards. Negative: fatal.
 */
int connection_go_on(Connection *c);
/* Asked by a handler that connection_resume() has called, and that serves others in between: the peer will not see the answer. */
bool connection_is_gone(const Connection *c);
/* 0, or a negative that is fatal: memory. A dead peer is not an error. */
int connection_respond(Connection *c, Perfd__V1__Response *response);
/*
 * The socket leaves: the caller owns the fd and what is still to be sent on it first (malloc), and the connection
 * is gone. False, and nothing moved, if the peer sent more than its request already.
 */
bool connection_may_give(const Connection *c);
bool connection_give(Connection *c, int *ret_fd, uint8_t **ret_unsent, size_t *ret_n_unsent);

/*
 * request-text.c: what all texts of a request may hold (config/text/text.h), before anybody looks at what they say. 0 or
 * REFUSED_INVALID "bad-text" with the position in the text.
 */
int request_check_texts(const Perfd__V1__Request *request, Explanation *e);

#define REQUEST_VALUES_MAX ((size_t)1 << 16)
#define REQUEST_EMIT_VALUES_MAX ((size_t)1 << 18)
#define REQUEST_UNKNOWN_MAX ((size_t)1000)
#define REQUEST_NUMBERS_MAX ((size_t)1 << 18)

/*
 * request-size.c: whether the bytes of a request may be unpacked. may_emit: it came by the control socket, where emit may have more
 * than other requests. 0, or REFUSED_EXHAUSTED "too-many-values", REFUSED_INVALID "bad-text": a text with a NUL in it, at
 * e->position; then its id too, which is 0 if it stands behind what is too much.
 */
int request_check_size(const uint8_t *bytes, size_t length, bool may_emit, uint64_t *ret_id, Explanation *e);

/* status.c: the one place where a Refusal becomes a wire status. */
Perfd__V1__Status status_of_refusal(int refusal);
/* A message as a frame in malloc'ed memory. -ENOMEM. */
int frame_pack(const Perfd__V1__ServerMessage *m, uint8_t **ret_frame, size_t *ret_length);
