/*
 * The sockets for requests, and their connections. Main thread only. This folder receives requests, identifies their peers, and sends
 * responses; the supervisor executes them (supervisor/requests/requests.c). A peer can cause the failure of its own connection only.
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

#define PEER_TEXT_SIZE 112

typedef struct Control Control;
typedef struct Connection Connection;

/* The other end of a connection: SO_PEERCRED. */
typedef struct Peer {
        uid_t uid;
        gid_t gid;
        pid_t pid;
        bool may_change;           /* connected to the control socket */
        char text[PEER_TEXT_SIZE]; /* "perfctl 0.1, pid 12, uid 0"; of one with a limit "perfctl 0.1, for NAME, pid 12, uid 0" */
} Peer;

/*
 * Handles a request. The handler calls connection_respond(); or connection_give(), and the new owner of the socket responds; or
 * connection_defer(), and responds when it is called again. Negative: fatal to the daemon.
 */
typedef int (*ControlHandler)(void *userdata, Connection *c, const Perfd__V1__Request *request);

/* Limits of connections. Those of control sockets are separate from those of stream sockets. */
typedef struct ControlLimits {
        unsigned connections, connections_per_uid; /* to stream sockets: in all, and of one uid */
        unsigned changers;                         /* to control sockets, in all; half of them of one uid */
        unsigned sockets;                          /* to stream sockets, including those given away; 0: no limit */
} ControlLimits;

struct Control {
        sd_event *event;
        ControlLimits limits;
        ControlHandler handler;
        void *userdata;
        struct Listener *listeners;
        Connection *connections;
        unsigned n_connections;
        unsigned n_given; /* sockets that were given away and are not closed yet; maintained by the owner of Control */
        uint64_t last_id;
        struct Precedence *lowered; /* sources of the control socket that have the priority of the others now (precedence.c) */
        unsigned n_others;          /* number of times that these were served since */
        nsec_t idle_after; /* a connection is idle if it was silent for so long after its last response, or its beginning */
        void (*gone)(void *userdata, uint64_t id); /* called when a connection has closed, or NULL */
        bool (*keeps)(void *userdata, uint64_t id); /* whether the connection owns events, so that it is never idle; or NULL */
};

void control_init(Control *c, sd_event *event, ControlLimits limits, ControlHandler handler, void *userdata);
/* Closes all connections and sockets, and removes the paths that perfd created. */
void control_deinit(Control *c);

/*
 * Listens on a path. Replaces the socket of a daemon that has ended; REFUSED_EXISTS if a daemon listens there. group NULL: unchanged;
 * a group that does not exist is refused unless the mode grants it nothing.
 */
int control_listen(Control *c, const char *path, mode_t mode, const char *group, bool may_change, Explanation *e);
/*
 * The sockets that systemd passes (sd_listen_fds(3)), whose fds begin with SD_LISTEN_FDS_START: how many, and their names, which the
 * caller frees. Refused: the environment does not say that.
 */
int control_given(char ***ret_names, int *ret_n, Explanation *e);
/* Refused: it is not a stream socket of AF_UNIX that listens, so that whoever comes by it is nobody known. */
int control_check_given(int fd, const char *name, Explanation *e);
/* The same on a socket of systemd; takes ownership of the fd. */
int control_listen_fd(Control *c, int fd, bool may_change);

const Peer *connection_peer(const Connection *c);
/* The cause of log entries about its peer. */
LogCause connection_cause(const Connection *c);
/* Its peer's credentials including groups, owned by the caller. Refused: the groups are unknown. -ENOMEM */
int connection_credentials(const Connection *c, Credentials *ret, Explanation *e);
/* A number from 1, never reused. */
uint64_t connection_id(const Connection *c);
/* The next one of Control.connections, or NULL. */
Connection *connection_next(const Connection *c);
/* The name that the program gave itself, for the log. */
void connection_set_program(Connection *c, const char *program);
/*
 * What it may at most (Hello.limit), from now on, and whom it is for; once. REFUSED_INVALID: it is limited already. -ENOMEM. Read by
 * whoever answers its requests.
 */
int connection_set_limit(Connection *c, const Perfd__V1__Limit *limit, Explanation *e);
const Perfd__V1__Limit *connection_limit(const Connection *c); /* NULL: none */
Perfd__V1__Limit *limit_copy(const Perfd__V1__Limit *limit);   /* NULL: no memory */
/*
 * Defers the request: nothing more is read from the peer until connection_resume() has called the handler with it again, which may
 * defer it once more. If the peer disconnects meanwhile, Control.gone is called.
 */
void connection_defer(Connection *c);
/* Outside of the event loop: calls the handler; the connection processes nothing else meanwhile. Negative: fatal. */
int connection_resume(Connection *c);
/*
 * After that, when the request is complete: sends the response, and handles further requests of the peer. May free the connection.
 * Negative: fatal.
 */
int connection_go_on(Connection *c);
/* For a handler that connection_resume() has called: whether the peer has disconnected, so that nobody will read the response. */
bool connection_is_gone(const Connection *c);
/* For a handler: the request cannot even be refused, and the connection is closed when the handler returns 0; `why` is logged. */
void connection_give_up(Connection *c, const char *why);
#define TOO_LONG_FOR_FRAME "the response does not fit in a frame: request less, with a narrower glob"
/*
 * 0. A peer that has disconnected is not an error, and where there is no memory the connection is given up. A list is made piece
 * by piece: control/long-response.h.
 */
int connection_respond(Connection *c, Perfd__V1__Response *response);
/*
 * Gives the socket away and frees the connection: the caller owns the fd, and the unsent bytes (malloc) that it must send first.
 * False, without a transfer of ownership, if the peer has already sent more than its request.
 */
bool connection_may_give(const Connection *c);
bool connection_give(Connection *c, int *ret_fd, uint8_t **ret_unsent, size_t *ret_n_unsent);

/*
 * request-text.c: checks the characters of all texts of a request (config/text/text.h) before it is processed. 0, or
 * REFUSED_INVALID "bad-text" with the position in the text. Not those of samples: request_check_sample_texts().
 */
int request_check_texts(const Perfd__V1__Request *request, Explanation *e);
/* The same for one sample of an emit, whose event is not there: the name of one that is was checked when it was added. */
int request_check_sample_texts(const Perfd__V1__ExternalSample *sample, Explanation *e);

#define REQUEST_VALUES_MAX ((size_t)1 << 16)
#define REQUEST_EMIT_VALUES_MAX ((size_t)1 << 18)
#define REQUEST_UNKNOWN_MAX ((size_t)1000)
#define REQUEST_NUMBERS_MAX ((size_t)1 << 18)

/*
 * request-size.c: whether the bytes of a request may be unpacked. may_emit: a request on the control socket, where emit has higher
 * limits. 0, REFUSED_EXHAUSTED "too-many-values", or REFUSED_INVALID "bad-text": a text contains a NUL, at e->position. *ret_id is
 * also set then; 0 if the id comes after the excess.
 */
int request_check_size(const uint8_t *bytes, size_t length, bool may_emit, uint64_t *ret_id, Explanation *e);

/* status.c: maps a Refusal to a wire status. */
Perfd__V1__Status status_of_refusal(int refusal);
/* A message as a frame in malloc'ed memory. -ENOMEM. */
int frame_pack(const Perfd__V1__ServerMessage *m, uint8_t **ret_frame, size_t *ret_length);
/* The same of one that is known to be of `length` bytes, which takes long to find out of a long one. */
int frame_pack_sized(const Perfd__V1__ServerMessage *m, size_t length, uint8_t **ret_frame, size_t *ret_length);
