/* What became of the items of one epoch of a route, for headers and for the status. One owner. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/relay/publish/message.h"
#include "client/relay/publish/packet-view.h"

#define LOSS_REASONS_MAX 8

typedef struct LossCount {
        char reason[24];
        uint64_t items;
} LossCount;

typedef struct LossCounts {
        LossCount items[LOSS_REASONS_MAX];
        size_t n;
} LossCounts;

/* Reasons that do not fit count as the last one that does: perfd has three. */
void loss_counts_add(LossCounts *l, const char *reason, size_t n, uint64_t items);
uint64_t loss_counts_sum(const LossCounts *l);

typedef struct RouteCounts {
        uint64_t epoch;          /* 0: none yet */
        uint64_t sequence;       /* of the last packet */
        uint64_t matched;        /* items of packets and gaps; at the end, by the closing ledger */
        LossCounts lost;
        uint64_t published;      /* items that are stored */
        uint64_t stored, stored_matched; /* the last packet that is stored: its number, and `matched` behind it */
        bool has_end;
} RouteCounts;

void route_counts_begin(RouteCounts *c, uint64_t epoch);
/* The next packet, before its messages are made. `total` is added to as well. -ENOMEM. */
int route_counts_take(RouteCounts *c, const uint8_t *packet, size_t length, const PacketView *v, LossCounts *total);
/* A message of the route is stored: how many items that are, 0 if others of its packet have to follow. */
uint64_t route_counts_store(RouteCounts *c, const Message *m);
/* The server refuses a message of the route: its items are lost. `total` is added to as well. */
void route_counts_refuse(RouteCounts *c, const Message *m, LossCounts *total);
/* Those that have come and are not stored. */
uint64_t route_counts_held(const RouteCounts *c);
