/* For packet.c: the parts of a packet that are no items. */
#pragma once

#include "client/stream/stream.h"
#include "proto/item-fields.h"

/* perfd.v1.Packet */
enum {
        PACKET_SEQUENCE = 1,
        PACKET_START = 2,
        PACKET_EVENTS = 3,
        PACKET_GAP = 5,
        PACKET_REMOVED = 6,
        PACKET_END = 7,
        PACKET_FIELDS = 11,
};

#define ITEMS_KEY WIRE_KEY(PACKET_ITEMS, WIRE_BYTES)
#define WRONG_ITEM "an item that is not what its descriptor says"
#define CHANGED "a packet that changes while it is read"

/* All of this kind that are in the packet that is being read, to their callbacks. As stream_open_message(). */
int packet_take_part(perfd_client *c, unsigned part);
