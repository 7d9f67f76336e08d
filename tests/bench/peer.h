/* For benchmarks: a process at the other end of a Unix stream socket that reads all that comes and keeps nothing. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

typedef struct Peer {
        int fd; /* our end */
        pid_t pid;
} Peer;

/* Ends the program if it can not be had. */
void peer_start(Peer *p);
/* Waits until it has read everything and ended; fd is closed here unless it was taken (-1). */
void peer_join(Peer *p);
/* Until the socket takes something again. */
void peer_wait(int fd);
