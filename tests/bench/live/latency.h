/*
 * For `discard latency` and bare-latency: how old items are, as a histogram of 32 steps for each power of two, so that a percentile is
 * right to 3 %. Of the wire format it knows where a packet has its items and an item its time (proto/perfd.proto).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LATENCY_STEP_BITS 5
#define LATENCY_BUCKETS (64 << LATENCY_STEP_BITS)

#define LATENCY_BEGIN 300000000 /* ns: a reader that found nothing for long looks again within 128 ms, and these are apart */

typedef struct Latency {
        uint64_t first;     /* the time of the first item, or 0 */
        uint64_t begin_max; /* of those within LATENCY_BEGIN of it */
        uint64_t n_items, max; /* of the others */
        uint64_t buckets[LATENCY_BUCKETS];
} Latency;

void latency_add(Latency *l, uint64_t time, uint64_t now);
/* The items of a ServerMessage that is whole just now; false if it cannot be read. */
bool latency_add_frame(Latency *l, const uint8_t *message, size_t length);
/* "items":N,"p50_ns":N,"p99_ns":N,"max_ns":N,"begin_max_ns":N, to stdout. */
void latency_print(const Latency *l);
