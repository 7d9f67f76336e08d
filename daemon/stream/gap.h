/*
 * For outboxes: packets that a subscriber did not get, and what was in them. Dispatcher thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/clock.h"
#include "daemon/stream/packet.h"

typedef struct GapCount {
        uint32_t event;
        uint64_t items;
} GapCount;

/* Whose limit it was: why packets are missing. The names are those of the ledger. */
typedef enum GapReason {
        GAP_OUTBOX, /* the subscriber's own queue was full */
        GAP_MEMORY, /* what several subscribers may hold together was used up */
        _GAP_REASON_MAX,
} GapReason;

/* is_relayed: the queue is that of a client of a relay, which has none of its own. Static. */
const char *gap_reason_name(GapReason reason, bool is_relayed);

typedef struct Gap {
        GapReason reason;
        uint64_t n_packets, n_items;
        nsec_t from, to;  /* of the oldest and newest item */
        GapCount *counts; /* ordered by event */
        size_t n_counts, capacity;
} Gap;

#define GAP_NULL ((Gap){ .from = UINT64_MAX, .counts = NULL })

void gap_deinit(Gap *g);
/* What its counts take. */
static inline size_t gap_bytes(const Gap *g) {
        return g->capacity * sizeof(*g->counts);
}

/* The packet, of items only, is missing too. -ENOMEM: nothing more can be told of this gap. */
int gap_add(Gap *g, const Packet *p);
/* A sealed packet that is kept and has nothing but this gap, with this name of its reason. -ENOMEM. */
int gap_encode(const Gap *g, const char *reason, uint64_t first_sequence, Packet **ret_packet);
