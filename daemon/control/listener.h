/* Inside control/: a listening socket, and what it hands to connection.c. */
#pragma once

#include "daemon/base/clock.h"
#include "daemon/control/control.h"

/*
 * Sources of the control socket and its connections are served before those of the stream socket, however many of these are
 * ready. So that the others do not starve, a source that was dispatched PRECEDENCE_TURNS times in a row has the priority of the
 * others until it was dispatched once with it, or the others PRECEDENCE_OTHERS times: a request of the others may be the list of
 * all events, and a thousand of them may be ready.
 */
typedef struct Precedence {
        struct Precedence *next;  /* in Control.lowered: sources with the priority of the others */
        sd_event_source *lowered; /* borrowed, while it is there; else NULL */
        bool is_of_control;
        unsigned n_turns; /* times that it was dispatched before others */
} Precedence;

#define PRECEDENCE_TURNS 8  /* of one source of the control socket */
#define PRECEDENCE_OTHERS 4 /* of the others behind them */

/* Of a source of the control socket. Negative: fatal. */
int precedence_set(Precedence *p, sd_event_source *source);
/* Before the source is freed. */
void precedence_deinit(Control *c, Precedence *p);
/* Each time that it is dispatched. Negative: fatal. */
int precedence_count(Control *c, Precedence *p, sd_event_source *source);

typedef struct Listener {
        struct Listener *next;
        Control *control;
        int fd;
        char *path; /* to remove at the end; NULL if systemd's */
        dev_t device;
        ino_t inode; /* of the socket that perfd made at `path` */
        bool may_change;
        bool is_paused;
        nsec_t waits_since; /* CLOCK_MONOTONIC: since when it waits for the end of a connection; 0: it does not */
        sd_event_source *source;
        Precedence precedence;
        sd_event_source *pause; /* made in advance, because its timer needs an fd */
} Listener;

Listener *listener_free(Listener *l);

/* Takes the fd. If perfd or the kernel has no memory for it, the peer is refused. */
void connection_new(Control *control, int fd, const Peer *peer);
Connection *connection_free(Connection *c);
/* The same, and why in a response that belongs to no request, if the peer can take that at once. */
void connection_end(Connection *c, const char *reason, const char *text);
/* Its fd is of the reserve. */
bool connection_is_scarce(const Connection *c);
/* CLOCK_MONOTONIC, of its last whole request, of the end of its last response, or of its beginning. */
nsec_t connection_since(const Connection *c);
/*
 * True if perfd can close it: no request waits, in its socket or in perfd, none runs, all responses were sent, or the peer is
 * slow to read them; and no stream or temporary event ends with it.
 */
bool connection_may_end(const Connection *c);
/* The same, and the peer has been silent, or in the middle of its request, for Control.idle_after. */
bool connection_is_idle(const Connection *c);

/* Sends a response that belongs to no request, if the socket accepts it at once. */
void peer_tell(int fd, Perfd__V1__Status status, const char *reason, const char *text);

/*
 * admission.c: whether there is a place for the peer, for which another connection may have to end. REFUSED_EXHAUSTED: there
 * is none. is_scarce: the peer's fd is of the reserve.
 */
int control_admit(Control *c, const Peer *peer, bool is_scarce, Explanation *e);
/*
 * There is no fd for one more that may change something but by ending one that perfd is busy with, or that has only just begun:
 * it had better wait in the queue of its socket.
 */
bool control_is_busy(const Control *c);
/* Ends the connection that was idle for longest of those that may change something. False: none is. */
bool control_end_idlest_changer(Control *c);
