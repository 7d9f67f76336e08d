/*
 * For benchmarks: the real reader and dispatcher code on rings in memory, driven step by step by one thread, so that
 * each part can be measured alone. Nothing sleeps in it: wakeups, and what they cost, are not in these numbers.
 */
#pragma once

#include "daemon/dispatcher/cycle.h"
#include "daemon/encode/item.h"
#include "daemon/reader/cycle.h"
#include "tests/bench/peer.h"
#include "tests/bench/played-ring.h"
#include "tests/bench/stopwatch.h"

#define PIPELINE_RING ((size_t)4 << 20)          /* as by default */
#define PIPELINE_FILL ((size_t)336 << 10)        /* bytes at a time: what a tick brings at 1 M samples a second */
#define PIPELINE_POOL ((size_t)2 << 20)          /* as by default */
#define PIPELINE_SHARED ((size_t)1 << 20)        /* twice the default: who reads when a turn is over needs room for all of it */
#define PIPELINE_SHARED_OF_MANY ((size_t)64 << 10) /* the same for each of more than 64 subscriptions */
#define PIPELINE_RATE 20000                      /* samples of each CPU in a second, where `per_turn` is given */

typedef enum PlayedEvent {
        PLAYED_SYS_ENTER, /* one number, an array of six */
        PLAYED_SWITCH,    /* five numbers, two texts */
} PlayedEvent;

/* What is zero is one event on one CPU, for which nobody has subscribed. */
typedef struct PipelineShape {
        PlayedEvent event;
        unsigned n_cpus, n_busy; /* each with a thread of its own */
        bool in_turn;            /* the busy ones in strict turns; else at random */
        unsigned per_turn;       /* samples of each CPU between two drains, at PIPELINE_RATE; 0: PIPELINE_FILL bytes */
        unsigned n_events;       /* enabled ones; 0: 1 */
        unsigned n_fired;        /* the first ones of them, which happen at random; 0: 1 */
        unsigned n_subscriptions, n_subscribers; /* of each subscription; 0: 1 */
        uint32_t number;         /* of the first subscription */
        bool is_apart;           /* each subscription wants one event, all events by turns; else each wants all */
        unsigned n_encodings;    /* in which these are by turns: fields, raw, both, one field only; 0: only `payload` */
        Payload payload;
        StreamOrder order;
        bool by_socket;          /* all subscribers; else by shared memory, as on this host by default */
        const char *where; /* or NULL; %u is the number of the subscription, from 0 */
} PipelineShape;

/* Where records come from. */
typedef struct Player {
        uint64_t random;
        nsec_t time;
        nsec_t now; /* of the clock, which all times have to be before */
} Player;

#define PLAYER_INIT ((Player){ .random = 88172645463325252, .time = NSEC_PER_SEC })

typedef struct PlayedSubscription {
        MatchProgram *program; /* or NULL */
        Peer *peers;
        Subscriber **subscribers;
        BufferPool *pool; /* of several subscribers in shared memory */
} PlayedSubscription;

typedef struct Pipeline {
        PipelineShape shape;
        Plan *plan;
        SampleLayout layout;
        PlayedSubscription *subscriptions;
        PlayedRing *rings;
        Reader *readers;
        BatchPipe *pipes;
        CommTable comms;
        Dispatcher dispatcher;
        Player player;
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

/* Writes what one turn reads, without `per_turn`, in times that are long past. The number of samples. */
size_t pipeline_fill(PlayedRing *rings, const PipelineShape *shape, Player *player);
