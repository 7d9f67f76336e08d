/*
 * For benchmarks: the real reader and dispatcher code on rings in memory, driven step by step by one thread, so that
 * each part can be measured alone. Nothing sleeps in it: wakeups, and what they cost, are not in these numbers.
 */
#pragma once

#include "daemon/dispatcher.h"
#include "daemon/encode/item.h"
#include "daemon/reader.h"
#include "tests/bench/peer.h"
#include "tests/bench/played-ring.h"
#include "tests/bench/stopwatch.h"

#define PIPELINE_RING ((size_t)2 << 20)          /* as by default */
#define PIPELINE_FILL (PIPELINE_RING / 8)        /* bytes that wake a reader: WATERMARK_SHARE in supervisor.c */
#define PIPELINE_POOL ((size_t)1 << 20)          /* as by default */

typedef enum PlayedEvent {
        PLAYED_SYS_ENTER, /* one number, an array of six */
        PLAYED_SWITCH,    /* five numbers, two texts */
} PlayedEvent;

typedef struct PipelineShape {
        PlayedEvent event;
        unsigned n_cpus, n_busy; /* the busy ones take turns at random */
        bool is_subscribed;
        Payload payload;
        StreamOrder order;
        const char *where; /* or NULL */
} PipelineShape;

typedef struct Pipeline {
        PipelineShape shape;
        Plan *plan;
        MatchProgram *program;
        SampleLayout layout;
        PlayedRing *rings;
        Reader *readers;
        Lane *lanes;
        CommTable comms;
        Dispatcher dispatcher;
        Peer peer;
        Subscriber *subscriber; /* or NULL */
        uint64_t random;
        Stopwatch reading, dispatching;
        uint64_t n_samples;
} Pipeline;

/* Ends the program if something fails. */
void pipeline_init(Pipeline *p, const PipelineShape *shape);
void pipeline_deinit(Pipeline *p);

/* What a reader is woken for, once: adds to reading, dispatching and n_samples. */
void pipeline_turn(Pipeline *p);
/* Nothing is lost, everything that matched has left. */
void pipeline_check(const Pipeline *p);

/* Writes what one turn reads. The number of samples. */
size_t pipeline_fill(PlayedRing *rings, const PipelineShape *shape, uint64_t *random);
