/* For the dispatcher: subscribers and their channels. Main makes them, and the dispatcher has them from SUBSCRIBE to GONE. */
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

#define SUBSCRIBER_PEER_SIZE 64

typedef enum StreamOrder {
        STREAM_BY_TIME,
        STREAM_BY_CPU,
        _STREAM_ORDER_MAX,
} StreamOrder;

typedef struct Channel Channel;

/* One stream to one peer. Made by main, the dispatcher's from SUBSCRIBE to GONE. */
typedef struct Subscriber {
        /* set by main */
        uint64_t id;
        int fd;
        char peer[SUBSCRIBER_PEER_SIZE];
        LogCause cause; /* the peer */
        uint32_t number; /* of its subscription: a group and a bit of BatchEntry.mask */
        StreamOrder order;
        uint64_t since; /* first snapshot generation whose masks have the number for this subscription */
        uint64_t from;  /* the cut at which it begins: what is before it is not its own. 0: there is nothing of that any more */
        Overflow overflow;
        size_t queue_bytes;
        ProcessCondition *condition; /* that decides which samples it gets; moves to its channel. NULL: readers decide that alone */
        QueueAccount *account; /* of its uid; main's, as long as this lives */
        SharedRing *ring; /* the way of all packets; NULL: the socket */
        uint8_t *handshake; /* frames that leave before the first packet, by the socket, malloc */
        size_t n_handshake;
        Packet **packets; /* that begin the stream: start, descriptors; references */
        size_t n_packets;

        /* the dispatcher's */
        struct Subscriber *next; /* in its channel */
        Channel *channel;
        Outbox outbox;
        FrameReader in;
        sd_event_source *source;
        size_t handshake_sent;
        bool wakeup_pending;   /* it sleeps beside a ring that is not empty: until the cycle ends, or the kernel has memory to wake it */
        uint64_t matched; /* as counted by the readers */
        uint64_t filtered; /* of these, what its condition has kept from it since */
        uint64_t late;
        uint64_t began;   /* the cut at which it begins, for as long as it lives */
        bool held;        /* nothing is sent yet */
        bool close_asked; /* main knows that a closing ledger is wanted */
        uint64_t foreign; /* of Channel.pending, what is not its own */
        uint64_t until;  /* the cut at which it ends: what is behind it is not its own. UINT64_MAX: it goes on */
        bool closing;    /* ends when the merge has released everything up to `until` */
        bool ended;      /* the last packet is in the outbox: nothing more is pushed, or counted */
        bool is_draining;    /* all has left, and what it may still be reading is kept until it closes */
        nsec_t close_at; /* when the closing ledger was made */
        const char *close_reason;
        uint8_t *closing_ledger; /* packed perfd.v1.Ledger without our own row, malloc */
        size_t n_closing_ledger;
} Subscriber;

/* Frees what main made, for one that was never given away, and for the dispatcher's end of it. */
Subscriber *subscriber_free(Subscriber *s);
DEFINE_CLEANUP(Subscriber *, subscriber_free)

/* All subscribers of one subscription in one order: they share packets. */
struct Channel {
        Channel *next, *before;
        Channel *next_unflushed; /* while it is one */
        Channel *next_owing;
        bool is_unflushed, is_owing; /* is in Dispatcher.unflushed, .owing */
        uint32_t number;
        StreamOrder order;
        uint64_t since;
        const uint64_t *side; /* Dispatcher.side of its order */
        Packet *tasks; /* who is named by `open`, being filled: leaves before it */
        Packet *open;  /* being filled; perhaps where its subscribers read it: none is when a cycle is over */
        Subscriber *subscribers;
        ProcessCondition *condition; /* of its subscription; or NULL */
        uint64_t pending; /* dispatcher_count_pending() */
};

/* Whether items of batches that have this cut are its own. */
static inline bool subscriber_gets(const Subscriber *s, uint64_t cut) {
        return !s->ended && s->from <= cut && cut < s->until;
}

/* Channels for which masks of one generation speak, until a channel comes or goes. */
typedef struct LiveBits {
        uint64_t generation, n_changes, bits;
} LiveBits;

/* The channels of one order whose subscriptions are of one group. */
typedef struct ChannelGroup {
        Channel *by_bit[BATCH_BITS];
        uint64_t bits; /* that have a channel */
        LiveBits live; /* of the batch before */
} ChannelGroup;
