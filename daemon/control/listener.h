/* Inside control/: a listening socket, and what it hands to connection.c. */
#pragma once

#include "daemon/base/clock.h"
#include "daemon/control/control.h"

/*
 * Of the control socket and its connections: they are served before those of the stream socket, however many of these are
 * ready. After some turns a source is among the others, as old as it is, until it had one there or the others had some, so that
 * nobody starves: a turn of the others may be the list of all events, and there may be a thousand of them.
 */
typedef struct Precedence {
        struct Precedence *next;  /* of those that are among the others: Control.lowered */
        sd_event_source *lowered; /* borrowed, while it is */
        bool is_of_control;
        unsigned n_turns; /* that it had before others */
} Precedence;

#define PRECEDENCE_TURNS 8  /* of one source of the control socket */
#define PRECEDENCE_OTHERS 4 /* of the others behind them */

/* Of a source of the control socket. Negative: fatal. */
int precedence_set(Precedence *p, sd_event_source *source);
/* Before the source goes. */
void precedence_deinit(Control *c, Precedence *p);
/* When it has a turn. */
int precedence_count(Control *c, Precedence *p, sd_event_source *source);

typedef struct Listener {
        struct Listener *next;
        Control *control;
        int fd;
        char *path; /* to remove at the end; NULL if systemd's */
        dev_t device;
        ino_t inode; /* of what we made there */
        bool may_change;
        bool is_paused;
        nsec_t waits_since; /* for a connection that perfd is busy with; 0: it does not */
        sd_event_source *source;
        Precedence precedence;
        sd_event_source *pause; /* there from the beginning: its timer takes an fd */
} Listener;

Listener *listener_free(Listener *l);

/* Takes the fd. Without the memory for it, the kernel's or ours, the peer is refused. */
void connection_new(Control *control, int fd, const Peer *peer);
Connection *connection_free(Connection *c);
/* The same, and why in a response that belongs to no request, if the peer can take that at once. */
void connection_end(Connection *c, const char *reason, const char *text);
/* Its fd is of the reserve. */
bool connection_is_scarce(const Connection *c);
/* CLOCK_MONOTONIC, of its last whole request, of the end of its last response, or of its beginning. */
nsec_t connection_since(const Connection *c);
/*
 * Perfd owes it nothing: no request waits, in its socket or in perfd, none runs, and what was answered has left, or the peer is
 * slow to take it. Nothing ends with it.
 */
bool connection_may_end(const Connection *c);
/* The same, and the peer has been silent, or in the middle of its request, for Control.idle_after. */
bool connection_is_idle(const Connection *c);

/* What cannot be answered as a request, as a frame on a socket that may take it. */
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
