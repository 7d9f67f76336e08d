/*
 * Packets of a stream that are not published: nothing has room for them any more, because the relay ends while its spool is full, or they
 * are longer than the server takes (refused.h). They become gaps of a later packet, so that sums close. One owner.
 */
#pragma once

#include "client/relay/publish/packet-view.h"

typedef struct DroppedPackets {
        uint64_t first, last, n_items, from, to; /* of those since the last gap of perfd; last 0: there are none */
        const char *reason; /* of their gaps; NULL: "spool" */
        uint8_t *gaps; /* fields of a Packet */
        size_t n_gaps;
        bool is_broken; /* there are more gaps than fit: the stream will have no end */
} DroppedPackets;

void dropped_deinit(DroppedPackets *d);
/* Its items are missing, and what gaps it tells of are kept. -ENOMEM. */
int dropped_add(DroppedPackets *d, const PacketView *v, const uint8_t *packet, size_t length);
/* The packet with all gaps of those before it, in malloc'ed memory. -ENOMEM. */
int dropped_end(DroppedPackets *d, const uint8_t *packet, size_t length, uint8_t **ret, size_t *ret_length);
