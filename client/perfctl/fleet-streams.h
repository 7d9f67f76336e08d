/*
 * For `fleet`: the messages of each subscription of each route, put together to a stream, and what was lost of it. They are told apart by
 * machine, boot and epoch, so hosts of the same name are two.
 */
#pragma once

#include "client/perfctl/fleet-source.h"

#define FLEET_STREAMS_MAX 10000

typedef struct FleetLoss {
        char reason[32];
        uint64_t items;
} FleetLoss;

typedef struct FleetStreams FleetStreams;

typedef struct FleetStream {
        FleetStreams *streams;
        FleetMessage about;  /* the first message; its bytes are gone */
        perfd_client *client; /* NULL: it has ended, or the next message begins it again */
        uint64_t last;       /* sequence number of the last packet that was read */
        uint64_t n_messages, n_bytes, latest; /* latest: ns since 1970, of JetStream */
        int64_t wall_offset;
        uint64_t consumed;   /* items */
        uint64_t n_expired;  /* packets that JetStream has dropped */
        uint64_t expired;    /* their items, if the relay says what has matched; else they are known when the end has come */
        uint64_t reckoned;   /* what has matched up to `last`; of one that was begun in the middle, also what was before */
        bool has_reckoned, is_wrong; /* is_wrong: that did not agree with what was read */
        uint64_t n_damaged;  /* packets that could not be read */
        bool has_damage;     /* one of them since `last` */
        char undescribed[FLEET_WORD_SIZE]; /* digest of descriptors that are not there */
        FleetLoss losses[8]; /* of gaps */
        size_t n_losses;
        bool has_end;
        uint64_t matched, sent; /* by the closing ledger */
        uint8_t *packet;     /* the parts that have come */
        size_t n_packet;
        uint64_t n_parts;
} FleetStream;

typedef struct FleetCalls {
        void (*item)(FleetStream *s, const perfd_item *item); /* NULL: they are only counted */
        void (*gap)(FleetStream *s, const perfd_gap *gap);    /* or NULL */
} FleetCalls;

struct FleetStreams {
        Perfctl *p;
        FleetSource *source;
        FleetCalls calls;
        bool is_from_oldest; /* what is missing at the beginning has expired; else nobody has asked for it */
        bool may_forget;     /* where there are too many, the one from which nothing has come for longest; else the new one is not read */
        bool has_lost;       /* one that is forgotten has */
        FleetStream **list;
        size_t n, n_alien, n_refused; /* messages: of no relay, and of more streams, or larger packets, than there may be */
        size_t n_parts;      /* bytes of all `packet` */
};

/* Whatever it is: what cannot be read is counted, and said once. */
void fleet_streams_take(FleetStreams *l, const FleetMessage *m);
/* A stream has parts of a packet, of which others are to come. */
bool fleet_streams_wait_for_part(const FleetStreams *l);
/*
 * What the relay of `about` says of the newest stream of a route, when all messages that there were then have been read: what it has
 * stored, and is not there, has expired.
 */
void fleet_streams_reckon(FleetStreams *l, const FleetMessage *about, const perfd_route_status *status);
/* On stderr: how much was not read, if something was not. */
void fleet_streams_say(const FleetStreams *l);
void fleet_streams_deinit(FleetStreams *s);
/* Whether `matched` is known, and what it is: of a stream that goes on, up to its last message. */
bool fleet_stream_matched(const FleetStream *s, uint64_t *ret);
/* Items that JetStream has dropped, as far as it is known. */
uint64_t fleet_stream_expired(const FleetStream *s);
/* What gaps say. */
uint64_t fleet_stream_lost(const FleetStream *s);
