/*
 * For tests of outboxes: both ends of a socket, or of a ring, read with the frame codec and protobuf-c. Whatever was dropped,
 * and however the bytes were cut, what arrives and what the gaps say has to be exactly what was pushed, in its order.
 *
 * Items are numbered from 1 by their time; which event one belongs to follows from its number.
 */
#pragma once

#include "daemon/stream/outbox.h"
#include "proto/frame.h"

/* What the peer has seen, and is checked against. */
typedef struct Peer {
        FrameReader in;
        uint64_t sequence;       /* of the last packet */
        uint64_t items, missing; /* received, and told by gaps */
        uint64_t missing_for[_GAP_REASON_MAX];
        bool is_relayed; /* as Outbox.is_relayed: gaps have other names */
        uint64_t kept, gaps;
        uint64_t kept_at[4096]; /* items pushed before the n-th kept packet: set by the pusher */
} Peer;

typedef struct Line {
        int out, in;
        SharedRing *ring; /* instead of the socket, or NULL */
        RingReader reader;
        PoolReader pool;
        Outbox outbox;
        Peer peer;
        uint64_t pushed; /* items */
        uint64_t kept;   /* packets */
} Line;

void line_init(Line *l, size_t limit, Overflow overflow, int socket_bytes);
/* The same into a ring. */
void line_init_ring(Line *l, size_t limit, Overflow overflow, size_t size);
/* Before anything is sent: packets may come in this pool too. */
void line_share(Line *l, BufferPool *pool);
void line_deinit(Line *l);

/* n items from `first` on, each with raw_size bytes; sealed. */
Packet *packet_of(uint64_t first, size_t n, size_t raw_size);
/* The same in a buffer; NULL: there is none. */
Packet *packet_in_pool(BufferPool *pool, uint64_t first, size_t n, size_t raw_size);
/* The next n items. What outbox_push() says. */
int line_push_items(Line *l, size_t n, size_t raw_size);
/* The same where the peer reads them; false: they would have to wait. */
bool line_place_items(Line *l, size_t n, size_t raw_size);
/* n items by their place, or as they are; true: by their place. */
bool line_refer_items(Line *l, Packet *p, size_t n);
/* A packet that is kept. */
void line_push_kept(Line *l);

/* 0 if nothing is left, OUTBOX_E_AGAIN, or what else outbox_send() says. */
int line_send(Line *l);
/* At most n bytes out of the socket or the ring, checked; how many there were. */
size_t line_read(Line *l, size_t n);
/* What was pushed is sent, dropped or queued. */
void line_check(const Line *l);
/* All that is there arrives, and adds up. */
void line_finish(Line *l);
