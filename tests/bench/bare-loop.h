/*
 * For benchmarks: what the physical limit is, on the same rings: loops that do nothing but what their names say,
 * without plans, filters, order or accounts.
 */
#pragma once

#include "tests/bench/pipeline.h"

typedef enum BareKind {
        BARE_TAIL,   /* look at each record's header, give the space back */
        BARE_COPY,   /* copy each record into a block of 64 KiB, forget the block */
        BARE_SOCKET, /* copy, and write each block to a Unix socket */
} BareKind;

typedef struct BareLoop {
        BareKind kind;
        PipelineShape shape; /* what is in the ring */
        PlayedRing played;
        Ring ring;
        uint8_t *block;
        size_t used;
        Peer peer;
        Player player;
        Stopwatch reading;
        uint64_t n_samples;
} BareLoop;

void bare_loop_init(BareLoop *l, BareKind kind);
void bare_loop_deinit(BareLoop *l);
void bare_loop_turn(BareLoop *l);
