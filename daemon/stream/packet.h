/*
 * For the dispatcher: one message of a stream, built once and then sent to many. Its bytes are the fields of
 * perfd.v1.Packet without `sequence`, which is each subscriber's own. Of its items it knows no more than how many they
 * are: whose they were is read off their bytes when a packet could not be sent (gap.h), so that nothing is kept for
 * those that could. One thread at a time: main makes those that begin a stream and gives them away whole.
 *
 *     bytes    | field `items`, complete with tag and length | ...
 *
 * A packet that is lent shows bytes of somebody else, which are there only until its maker goes on. Whoever holds it then
 * still has its own copy of them: the maker calls packet_settle() before. One that is placed is written where its only
 * reader will read it; nobody may hold it. One in a buffer is written where several will read it (buffer-pool.h).
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/copy.h"
#include "daemon/stream/buffer-pool.h"
#include "proto/frame.h"

#define PACKET_SIZE ((size_t)64 << 10)             /* bytes that a packet of items is made for */
#define PACKET_MAX (FRAME_MAX_SERVER - (size_t)64) /* with its header it must be a frame that clients accept */
#define PACKET_SPARES 64
#define PACKET_CYCLES 128 /* what was not needed for so long is given back: in most turns a flood sends nothing */

/*
 * Room of PACKET_SIZE that nobody uses any more, for the next packets: as much as one of the last turns has taken. It
 * outlives all packets that were made from it.
 */
typedef struct PacketPool {
        uint8_t *rooms[PACKET_SPARES];
        size_t n, max;
        size_t n_taken, most_taken; /* in this cycle, and in one of the last n_turns */
        unsigned n_turns;
} PacketPool;

typedef struct Packet {
        unsigned n_refs;
        bool sealed;             /* immutable from now on */
        bool keep;               /* the stream cannot be understood without it: never dropped */
        size_t capacity, length; /* of bytes */
        size_t n_items;
        const uint8_t *bytes;
        uint8_t *room;    /* what `bytes` is, if it is written here; NULL: it is lent */
        bool is_reserved;   /* the room is somebody else's */
        PacketPool *pool; /* where the room goes in the end, or NULL */
        BufferPool *buffers; /* whose room it is; NULL: nobody else reads it there */
        unsigned buffer;
} Packet;

/* Room for `capacity` bytes, at most PACKET_MAX. NULL: no memory. */
Packet *packet_new(size_t capacity);
/* Of PACKET_SIZE. NULL: no memory. */
Packet *packet_new_pooled(PacketPool *pool);
/* Sealed, of n_items whole items, which stay the caller's. NULL: no memory. */
Packet *packet_new_borrowed(const uint8_t *items, size_t length, size_t n_items);
/* In memory that stays the caller's. NULL: no memory. */
Packet *packet_new_reserved(uint8_t *room, size_t capacity);
/* In a buffer, of POOL_BUFFER. NULL: none is free, or no memory. */
Packet *packet_new_buffered(BufferPool *buffers);
Packet *packet_ref(Packet *p);
Packet *packet_unref(Packet *p);
DEFINE_CLEANUP(Packet *, packet_unref)

/* n items, complete `items` fields one behind the other. False, and nothing changed, if it is full. */
static inline bool packet_append(Packet *p, const uint8_t *items, size_t length, size_t n) {
        if (length > p->capacity - p->length)
                return false;
        copy_long(p->room + p->length, items, length);
        p->length += length;
        p->n_items += n;
        return true;
}

/* As packet_append() of one item, which is short. */
static inline bool packet_append_one(Packet *p, const uint8_t *item, size_t length) {
        if (length > p->capacity - p->length)
                return false;
        copy_short(p->room + p->length, item, length);
        p->length += length;
        p->n_items++;
        return true;
}

/* Other complete fields: start, descriptors, end. The packet is kept then. False, and nothing changed, if full. */
bool packet_append_field(Packet *p, const uint8_t *fields, size_t length);

/* No more is appended. */
static inline void packet_seal(Packet *p) {
        assert(p->length <= p->capacity);
        p->sealed = true;
}

/*
 * Sealed, and somebody holds it for longer: its bytes become its own, in no more memory than they need. -ENOMEM: what was
 * lent is so still.
 */
int packet_settle(Packet *p, PacketPool *pool);

/* A sealed one of whole fields that are encoded already; takes a copy. -ENOMEM */
int packet_of_fields(const uint8_t *bytes, size_t n, Packet **ret);

/* At the end of a cycle: frees what is no longer needed. */
void packet_pool_end_cycle(PacketPool *pool);
/* All spare room goes. */
void packet_pool_trim(PacketPool *pool);
