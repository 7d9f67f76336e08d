/*
 * For the files of fleets among themselves: a message is its headers (head.c) and its bytes, which are put together to packets
 * (packet-parts.c); each stream feeds its packets to a client without a connection (fleet-stream.c), from the middle with descriptors
 * that are found by their digest (known-descriptors.c), and adds up what comes (sum.c). Everything in a message is a stranger's word:
 * each number has a limit before it is used. One thread at a time.
 */
#pragma once

#include "client/perfd.h"
#include "client/wire/wire.h"
#include "proto/perfd.pb-c.h"

#define FLEET_WORD_SIZE 65        /* of a name or an id in a message, with its end */
#define FLEET_PARTS_MAX 64        /* of a packet */
#define FLEET_PACKET_MAX ((size_t)16 << 20)      /* bytes of a packet: PROTOCOL.md, Frames */
#define FLEET_ITEMS_MAX (FLEET_PACKET_MAX / 2)   /* that a packet can have: an item is a key and a length at least */
#define FLEET_PACKETS_MAX (4 * FLEET_PACKET_MAX) /* bytes of all packets of which not all parts have come */
#define FLEET_STREAMS_DEFAULT 10000
#define FLEET_REASONS 16          /* of losses that are told apart */
#define FLEET_REASON_SIZE 32
#define FLEET_DESCRIPTORS_KEPT 64
#define FLEET_BUCKETS 4096        /* a power of two */

/* ---- head.c -------------------------------------------------------------------------------------------------------- */

/* What the subject and the headers say of a packet, or of a part of one. */
typedef struct FleetHead {
        char host[FLEET_WORD_SIZE], route[FLEET_WORD_SIZE], machine[FLEET_WORD_SIZE], boot[FLEET_WORD_SIZE], digest[FLEET_WORD_SIZE];
        uint64_t epoch, sequence;
        uint64_t part, n_parts;
        uint64_t items;
        uint64_t matched; /* behind it, of the whole stream */
        bool has_matched;
        int64_t wall_offset;
} FleetHead;

/* What relays call things: false, if it is no such word. */
bool fleet_word_read(const char *from, size_t n, char to[FLEET_WORD_SIZE]);
/* A subject of the host's status, which is of no stream. */
bool fleet_is_status(const char *subject);
/* NULL; else what is wrong with it. */
const char *fleet_head_read(const perfd_fleet_message *m, FleetHead *ret);
/* Which part it is, of how many. */
bool fleet_part_read(const perfd_fleet_message *m, uint64_t *ret_part, uint64_t *ret_n_parts);

/* ---- packet-parts.c ------------------------------------------------------------------------------------------------ */

/* The parts of a packet that have come so far. */
typedef struct PacketParts {
        uint8_t *bytes;
        size_t n;
        uint64_t sequence, n_parts;
        uint64_t part; /* the last one */
        uint64_t turn; /* when it began: the oldest has to make room for others */
} PacketParts;

/* Parts come in their order; one that does not follow the one before it is dropped, with these. -ENOMEM, which drops them too. */
int packet_parts_add(PacketParts *p, const FleetHead *head, const perfd_fleet_message *m, bool *ret_is_whole);
/* A null image is one without parts. */
void packet_parts_deinit(PacketParts *p);

/* ---- known-descriptors.c ------------------------------------------------------------------------------------------- */

typedef struct DescriptorsOfDigest {
        char digest[FLEET_WORD_SIZE];
        uint8_t *bytes; /* a packet; NULL: there is none that can be used */
        size_t length;
} DescriptorsOfDigest;

typedef struct KnownDescriptors {
        DescriptorsOfDigest kept[FLEET_DESCRIPTORS_KEPT];
        size_t n;          /* kept in all, also those that had to make room */
        char wanted[FLEET_WORD_SIZE]; /* the digest; "": none */
        char subject[128]; /* of the next part of these */
        PacketParts parts;
} KnownDescriptors;

/* NULL: they have to be asked for. */
const DescriptorsOfDigest *known_descriptors_find(const KnownDescriptors *k, const char *digest);
void known_descriptors_want(KnownDescriptors *k, const char *digest);
/* Of what is wanted; NULL: there is none. 0, PERFD_E_NEEDED, -ENOMEM */
int known_descriptors_take(KnownDescriptors *k, const perfd_fleet_message *m);
void known_descriptors_deinit(KnownDescriptors *k);

/* ---- sum.c --------------------------------------------------------------------------------------------------------- */

/* What is known of losses, and becomes rows. */
typedef struct FleetSum {
        perfd_count rows[FLEET_REASONS + 3]; /* by the reasons of gaps; then damaged, undescribed, and what is missing */
        char reasons[FLEET_REASONS][FLEET_REASON_SIZE];
        size_t n_reasons;
        uint64_t damaged, undescribed; /* items, as the headers say */
        uint64_t skipped;     /* items before the first packet */
        bool is_skipped_known;
        uint64_t rest, holes; /* at the last packet that was compared: what is in no count, and the packets that can have had it */
        bool is_rest_unknown; /* it is the next packet's that says what has matched */
        bool is_wrong;        /* the rest has changed, and no packet can have had it */
} FleetSum;

static inline uint64_t add_saturating(uint64_t a, uint64_t b) {
        return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void fleet_sum_add(FleetSum *s, const char *reason, uint64_t items);
/* By a ledger: what only that says, and what gaps that did not come would have said. */
void fleet_sum_close(FleetSum *s, const perfd_count *dropped, size_t n_dropped, const perfd_fleet_stream *row, bool is_whole);
/*
 * With what has matched up to the packet that was read, without what is late: if nothing is missing since the last one, no more than has
 * come can have.
 */
void fleet_sum_compare(FleetSum *s, const perfd_fleet_stream *row, uint64_t matched);
/* Items that are accounted for by what has come. */
uint64_t fleet_sum_known(const FleetSum *s, const perfd_fleet_stream *row);
/* The rows and the sum of `row`. is_whole: what was before its first packet is missing, too. */
void fleet_sum_show(FleetSum *s, perfd_fleet_stream *row, const char *missing, bool is_whole);

/* ---- fleet-stream.c ------------------------------------------------------------------------------------------------ */

typedef struct FleetStream {
        perfd_fleet_stream row; /* the first member: the caller knows only this */
        struct perfd_fleet *fleet;
        struct FleetStream *next; /* of its bucket */
        uint32_t hash, route_hash; /* of all that tells it apart; of these without boot and epoch */
        char host[FLEET_WORD_SIZE], route[FLEET_WORD_SIZE], machine[FLEET_WORD_SIZE], boot[FLEET_WORD_SIZE];
        perfd_client *client;      /* NULL: nothing has come yet, the last packet was damaged, or no more is expected */
        uint64_t accounted;        /* the last sequence number that has come, or is in a gap, or is missing */
        uint64_t reading;          /* the sequence number of the packet that is being read; 0: descriptors */
        const char *wrong;         /* what a callback has found in it */
        bool is_partial;           /* what was before its first packet was not asked for */
        uint64_t before;           /* items consumed before it */
        PacketParts parts;
        FleetSum sum;
} FleetStream;

struct perfd_fleet {
        perfd_fleet_options options;
        perfd_fleet_callbacks callbacks;
        void *userdata;
        char missing[FLEET_REASON_SIZE];
        perfd_fleet_counts counts;
        FleetStream **streams; /* in the order of their first messages */
        size_t n, room;
        FleetStream *buckets[FLEET_BUCKETS];
        KnownDescriptors known;
        struct Batch *batch; /* for callbacks.batch: of the packet that is being read */
        uint64_t turn;
        bool is_busy;
};

/* NULL: it is none of those that are there. */
FleetStream *fleet_stream_find(perfd_fleet *f, const FleetHead *head);
/* 0; -ENOMEM. The caller has looked for it. has_come: a packet of it; else it is only known that it was. */
int fleet_stream_new(perfd_fleet *f, const FleetHead *head, bool has_come, FleetStream **ret);
void fleet_stream_free(FleetStream *s);
/* Whether a packet with this head would be read by descriptors that are not known yet: then they are wanted. */
bool fleet_stream_needs(FleetStream *s, const FleetHead *head);
/* False: it cannot be so. */
bool fleet_stream_reckon(FleetStream *s, const perfd_fleet_reckoning *r);
/* 0; -ENOMEM */
int fleet_stream_take(FleetStream *s, const FleetHead *head, const perfd_fleet_message *m);
