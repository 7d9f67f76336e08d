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
        perfd_client *client; /* NULL: it has ended, or cannot be read */
        uint64_t last;       /* sequence number */
        uint64_t n_messages, n_bytes, latest; /* latest: ns since 1970, of JetStream */
        int64_t wall_offset;
        uint64_t consumed;   /* items */
        uint64_t n_expired;  /* packets that JetStream has dropped: their items are known when the end has come */
        FleetLoss losses[8]; /* of gaps */
        size_t n_losses;
        bool has_end, is_broken;
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
        FleetStream **list;
        size_t n, n_alien;
};

/* 0, or an exit status after a message. */
int fleet_streams_take(FleetStreams *s, const FleetMessage *m);
void fleet_streams_deinit(FleetStreams *s);
/* Items that JetStream has dropped, as far as it is known: of a stream that has ended. */
uint64_t fleet_stream_expired(const FleetStream *s);
/* What gaps say. */
uint64_t fleet_stream_lost(const FleetStream *s);
