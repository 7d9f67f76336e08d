/* Subscribers and their channels. Main makes a subscriber; the dispatcher owns it from SUBSCRIBE to GONE. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/model/batch.h"
#include "daemon/route/process-condition.h"
#include "daemon/stream/outbox.h"
#include "proto/frame.h"

#define SUBSCRIBER_PEER_SIZE 112

typedef enum StreamOrder {
        STREAM_BY_TIME,
        STREAM_BY_CPU,
        _STREAM_ORDER_MAX,
} StreamOrder;

typedef struct Channel Channel;

/* One stream to one peer. */
typedef struct Subscriber {
        /* set by main */
        uint64_t id;
        int fd;
        char peer[SUBSCRIBER_PEER_SIZE];
        LogCause cause; /* the peer, for log messages */
        uint32_t number; /* of its subscription: a group and a bit of BatchEntry.mask */
        StreamOrder order;
        uint64_t since; /* the first snapshot generation whose masks use the number for this subscription */
        /* the cut at which it begins: it gets nothing from before it. 0: the merge has nothing from before it any more */
        uint64_t from;
        Overflow overflow;
        size_t queue_bytes;
        bool is_relayed; /* its connection was made for a client of a relay */
        nsec_t latency; /* how long an item may take to it */
        /* decides on the dispatcher which samples it gets; moves to its channel. NULL: readers alone decide */
        ProcessCondition *condition;
        QueueAccount *account; /* of its uid; owned by main, which keeps it until GONE */
        SharedRing *ring; /* the shared memory of its packets; NULL: they go through the socket */
        uint8_t *handshake; /* frames that the socket sends before the first packet, malloc */
        size_t n_handshake;
        Packet **packets; /* references to the packets that begin the stream: start, descriptors */
        size_t n_packets;

        /* of the dispatcher */
        struct Subscriber *next; /* in its channel */
        Channel *channel;
        Outbox outbox;
        FrameReader in;
        sd_event_source *source;
        size_t handshake_sent;
        /*
         * It sleeps and its ring is not empty, or its outbox waits: woken at the end of the cycle, or at its next tick, or when the
         * kernel has memory for it.
         */
        bool wakeup_pending;
        uint64_t matched; /* items, as counted by the readers */
        uint64_t filtered; /* of these, those that its condition has rejected since */
        uint64_t late;
        uint64_t began;   /* the cut at which it began */
        bool is_corked;   /* nothing is sent yet */
        bool close_asked; /* main was asked for a closing ledger */
        uint64_t foreign; /* the part of Channel.pending that it does not get */
        uint64_t until;  /* the cut at which it ends: it gets nothing from behind it. UINT64_MAX: it has no end yet */
        bool closing;    /* it ends when the merge has released everything up to `until` */
        bool ended;      /* the last packet is in the outbox: nothing more is queued, or counted */
        bool is_draining;    /* all has been sent; memory that it may still read is kept until it disconnects */
        nsec_t close_at; /* when the closing ledger was made */
        const char *close_reason;
        uint8_t *closing_ledger; /* packed perfd.v1.Ledger without the subscriber's own row, malloc */
        size_t n_closing_ledger;
} Subscriber;

/* Frees a subscriber, by main if it was never posted, else by the dispatcher. */
Subscriber *subscriber_free(Subscriber *s);
DEFINE_CLEANUP(Subscriber *, subscriber_free)

/* All subscribers of one subscription in one order: they share packets. */
struct Channel {
        Channel *next, *before;
        Channel *next_unflushed; /* in Dispatcher.unflushed */
        Channel *next_to_wake;
        bool is_unflushed, is_to_wake; /* it is in Dispatcher.unflushed, in Dispatcher.to_wake */
        uint32_t number;
        StreamOrder order;
        nsec_t tick_most; /* of its subscribers' wakeups: half of their latency; 0: they are woken whenever there is something */
        nsec_t woken_at;  /* CLOCK_MONOTONIC */
        uint64_t since;
        uint64_t reading; /* Dispatcher.n_readings when it was told one last */
        const uint64_t *side; /* Dispatcher.side of its order */
        Packet *tasks; /* descriptions of tasks of the items in `open`, readings of wall time; sent before it */
        Packet *open;  /* the packet being filled; may be in memory that subscribers share; none is open between two cycles */
        Subscriber *subscribers;
        ProcessCondition *condition; /* of its subscription; NULL: none */
        BufferPool *pool; /* the one that most of its subscribers share; NULL: no two of them do */
        uint64_t pending; /* entries in the merge, set by dispatcher_count_pending() */
};

/* True if it gets the items of batches with this cut. */
static inline bool subscriber_gets(const Subscriber *s, uint64_t cut) {
        return !s->ended && s->from <= cut && cut < s->until;
}

/* Bits of the channels for which masks of one generation are valid, until a channel is added or removed. */
typedef struct LiveBits {
        uint64_t generation, n_changes, bits;
} LiveBits;

/* The channels of one order whose subscriptions are of one group. */
typedef struct ChannelGroup {
        Channel *by_bit[BATCH_BITS];
        uint64_t bits; /* bits that have a channel */
        LiveBits live; /* for the previous batch */
} ChannelGroup;
