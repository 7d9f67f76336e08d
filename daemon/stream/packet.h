/*
 * For the dispatcher: one message of a stream, built once and then sent to many. Its bytes are the fields of
 * perfd.v1.Packet without `sequence`, which is each subscriber's own. Beside them it knows which events its items
 * belong to, so that what could not be sent can be told exactly. One thread at a time: main makes those that begin a
 * stream and gives them away whole.
 *
 *     bytes    | field `items`, complete with tag and length | ...
 *     events   | u32 of the first item | ...
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "proto/frame.h"

#define PACKET_SIZE ((size_t)64 << 10)             /* bytes that a packet of items is made for */
#define PACKET_MAX (FRAME_MAX_SERVER - (size_t)64) /* with its header it must be a frame that clients accept */
#define PACKET_BYTES_PER_ITEM ((size_t)32)         /* room for item entries: smaller items fill a packet earlier */

typedef struct Packet {
        unsigned n_refs;
        bool sealed;               /* immutable from now on */
        bool keep;                 /* the stream can not be understood without it: never dropped */
        size_t capacity, length;   /* of bytes */
        size_t max_items, n_items; /* of events */
        nsec_t from, to;           /* of the oldest and newest item; nothing if there is none */
        uint32_t *events;
        uint8_t *bytes;
} Packet;

/* Room for `capacity` bytes, at most PACKET_MAX. NULL: no memory. */
Packet *packet_new(size_t capacity);
Packet *packet_ref(Packet *p);
Packet *packet_unref(Packet *p);
DEFINE_CLEANUP(Packet *, packet_unref)

/* One item: a complete `items` field. False, and nothing changed, if it is full; one made for `length` bytes is not. */
static inline bool packet_append(Packet *p, const uint8_t *field, size_t length, uint32_t event, nsec_t time) {
        if (length > p->capacity - p->length || p->n_items == p->max_items)
                return false;
        memcpy(p->bytes + p->length, field, length);
        p->length += length;
        p->events[p->n_items++] = event;
        p->from = time < p->from ? time : p->from;
        p->to = time > p->to ? time : p->to;
        return true;
}

/* Other complete fields: start, descriptors, end. The packet is kept then. False, and nothing changed, if full. */
bool packet_append_field(Packet *p, const uint8_t *fields, size_t length);

/* No more is appended, and memory that was not needed is given back. */
void packet_seal(Packet *p);
