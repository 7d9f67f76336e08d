/*
 * For outboxes: packets that a subscriber did not get, and what was in them. Dispatcher thread only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/base/clock.h"
#include "daemon/stream/packet.h"

typedef struct GapCount {
        uint32_t event;
        uint64_t items;
} GapCount;

typedef struct Gap {
        uint64_t n_packets, n_items;
        nsec_t from, to;  /* of the oldest and newest item */
        GapCount *counts; /* ordered by event */
        size_t n_counts, capacity;
} Gap;

#define GAP_NULL ((Gap){ .from = UINT64_MAX, .counts = NULL })

void gap_deinit(Gap *g);

/* The packet, of items only, is missing too. -ENOMEM: nothing more can be told of this gap. */
int gap_add(Gap *g, const Packet *p);
/* A sealed packet that is kept and has nothing but this gap. -ENOMEM. */
int gap_encode(const Gap *g, uint64_t first_sequence, Packet **ret_packet);
