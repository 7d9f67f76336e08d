/* Inside control/: a listening socket, and what it hands to connection.c. */
#pragma once

#include "daemon/control/control.h"

typedef struct Listener {
        struct Listener *next;
        Control *control;
        int fd;
        char *path; /* to remove at the end; NULL if systemd's */
        bool may_change;
        sd_event_source *source, *pause;
} Listener;

Listener *listener_free(Listener *l);

/* Takes the fd. Negative: fatal. */
int connection_new(Control *control, int fd, const Peer *peer);
Connection *connection_free(Connection *c);
unsigned connection_count_uid(const Control *control, uid_t uid);
