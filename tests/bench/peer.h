/*
 * For benchmarks: the other end of a Unix stream socket, or of memory that is shared beside it, emptied by the same thread
 * when the watch stands still. So nobody is woken: in a virtual machine that costs as much as many samples, and more or less
 * of it by chance.
 */
#pragma once

#include "daemon/stream/shared-ring.h"

typedef struct Peer {
        int fd;     /* to write to, -1 when it was given away */
        int theirs; /* what is read */
        RingReader ring; /* is read instead, if it is open */
} Peer;

#define PEER_NULL ((Peer){ .fd = -1, .theirs = -1, .ring = RING_READER_NULL })

/* Ends the program if it cannot be had. */
void peer_open(Peer *p);
void peer_close(Peer *p);
/* A ring to write to, which is the caller's, and tells of packets in the pool, if there is one; ends the program if it cannot be had. */
SharedRing *peer_share(Peer *p, size_t size, BufferPool *pool);
/* Reads all that is there; of packets in a pool, that they are. */
void peer_drain(Peer *p);
