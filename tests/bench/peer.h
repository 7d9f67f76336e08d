/*
 * For benchmarks: the other end of a Unix stream socket, emptied by the same thread when the watch stands still. So
 * nobody is woken: in a virtual machine that costs as much as many samples, and more or less of it by chance.
 */
#pragma once

typedef struct Peer {
        int fd;     /* to write to, -1 when it was given away */
        int theirs; /* what is read */
} Peer;

#define PEER_NULL ((Peer){ .fd = -1, .theirs = -1 })

/* Ends the program if it can not be had. */
void peer_open(Peer *p);
void peer_close(Peer *p);
/* Reads all that is there. */
void peer_drain(const Peer *p);
