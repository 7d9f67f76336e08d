/*
 * Fleets: the streams of many hosts, which their relays publish to NATS JetStream (PROTOCOL.md, NATS). The program has a connection with
 * NATS of its own, by the library, the loop and the threads that it likes. It gives each message to perfd_fleet_take(), in the order in
 * which they are stored, and gets the items as those of a stream, and a ledger of each stream. Nothing here waits, or reads anything but
 * the bytes that it is given. What is in messages is not trusted: a message that no relay can have made is counted, and what it says is
 * not believed.
 *
 * One thread at a time for each perfd_fleet.
 */
#pragma once

#include "batch.h"
#include "declarations.h"
#include "item.h"
#include "result.h"
#include "stream.h"

PERFD_BEGIN_DECLARATIONS

/* All streams that messages have come of. */
typedef struct perfd_fleet perfd_fleet;

/* A message as it came. It is read during the call only. */
typedef struct perfd_fleet_message {
        size_t size;
        const char *subject;
        /* The value of one of its headers, which is read before the next call of it; NULL: it has no such header. */
        const char *(*header)(void *userdata, const char *name);
        void *userdata; /* of `header` */
        const void *bytes;
        size_t length;
        uint64_t stored; /* ns since 1970, when the server has stored it; 0: not known */
} perfd_fleet_message;

#define PERFD_FLEET_MESSAGE_INIT { .size = sizeof(perfd_fleet_message) }

typedef enum perfd_fleet_state {
        PERFD_FLEET_OPEN = 0,  /* its end has not come */
        PERFD_FLEET_ENDED = 1, /* it has */
        PERFD_FLEET_CUT = 2,   /* it has not, and the route has begun another stream: the relay or perfd was killed */
} perfd_fleet_state;

/*
 * A stream: one subscription of one route of one host, which is told apart from others by all of host, route, machine, boot and epoch.
 * It stays where it is until perfd_fleet_forget(); its numbers go on with perfd_fleet_take().
 *
 * If has_matched: matched = consumed + all of lost + skipped, and `balanced` says that it is so.
 */
typedef struct perfd_fleet_stream {
        const char *host, *route;    /* of the subject */
        const char *machine, *boot;  /* ids */
        uint64_t epoch;              /* the subscription: rises within a boot */
        perfd_fleet_state state;
        uint64_t messages, bytes;    /* that came, also those that were of no use */
        uint64_t first_stored, last_stored; /* perfd_fleet_message.stored of the first and of the last one */
        uint64_t first_sequence, last_sequence; /* of the packets that came; 0: none has come as a whole */
        int64_t wall_offset;         /* wall time - clock in ns, as the last message says: perfd_fleet_wall() says more */
        uint64_t packets;            /* that were read */
        uint64_t consumed;           /* items of these */
        /*
         * Items by reason, only those above 0: what gaps say; "late", of the closing ledger; "damaged" and "undescribed", at most as many
         * as the headers of these packets say; and what is missing, as far as `matched` is known, by perfd_fleet_options.missing.
         */
        const perfd_count *lost;
        size_t n_lost;
        uint64_t missing;            /* packets that did not come and are in no gap */
        uint64_t damaged;            /* packets that could not be read */
        uint64_t undescribed;        /* packets whose descriptors the server does not have */
        uint64_t repeated;           /* messages whose sequence number had come before; they are not read again */
        bool has_matched;            /* at the end; before, if its relay says it with each packet, or perfd_fleet_reckon() */
        uint64_t matched;            /* items that matched in perfd, up to the last packet */
        uint64_t skipped;            /* of these, what was before the first message: nobody has asked for it */
        /*
         * What is in no count above can have been in packets that are missing, damaged or undescribed, or skipped. False: it cannot, because
         * there are none, or, with a relay that says what has matched, because all packets have come since it said so before.
         */
        bool balanced;
} perfd_fleet_stream;

/* Of all messages. */
typedef struct perfd_fleet_counts {
        uint64_t messages, bytes;
        uint64_t foreign;  /* messages of no relay: their subject or their headers are not those of PROTOCOL.md */
        uint64_t refused;  /* messages of more streams than perfd_fleet_options.max_streams */
        uint64_t waiting;  /* bytes, not messages, that were taken of packets of which a part is to come */
} perfd_fleet_counts;

/*
 * Called by perfd_fleet_take(), in the order of each stream; any may be NULL. What they are given is valid until they return, but for
 * the stream and for events. They must not call a function that changes the fleet.
 */
typedef struct perfd_fleet_callbacks {
        size_t size;
        void (*begin)(void *userdata, const perfd_fleet_stream *stream); /* one of which no message came before */
        void (*event)(void *userdata, const perfd_fleet_stream *stream, const perfd_event *event);
        /* One of these two; without both, items are only counted. */
        void (*item)(void *userdata, const perfd_fleet_stream *stream, const perfd_item *item);
        void (*batch)(void *userdata, const perfd_fleet_stream *stream, const perfd_batch *batch);
        /* What is missing within a stream. If no gap says it, its reason is perfd_fleet_options.missing, and its items are 0: not known. */
        void (*gap)(void *userdata, const perfd_fleet_stream *stream, const perfd_gap *gap);
        void (*end)(void *userdata, const perfd_fleet_stream *stream, const perfd_end *end);
        /* A message, or the rest of one, that could not be read, and why, for people; stream NULL: it is counted in perfd_fleet_counts. */
        void (*refused)(void *userdata, const perfd_fleet_stream *stream, const char *why);
} perfd_fleet_callbacks;

#define PERFD_FLEET_CALLBACKS_INIT { .size = sizeof(perfd_fleet_callbacks) }

typedef struct perfd_fleet_options {
        size_t size;
        /* The program begins at the oldest message that is stored: what is before the first message of a stream is missing too. */
        bool from_oldest;
        /*
         * The reason for what is missing and in no gap. A program that gets every message that the server still has, as an ordered
         * consumer of JetStream does, says "expired": the server has dropped it by its limits. NULL: "missing".
         */
        const char *missing;
        size_t max_streams; /* 0: 10,000 */
} perfd_fleet_options;

#define PERFD_FLEET_OPTIONS_INIT { .size = sizeof(perfd_fleet_options) }

/*
 * Options may be NULL, and are copied. `userdata` is passed to the callbacks. 0; PERFD_E_INVALID: a size is not set, or there are both
 * callbacks for items; -ENOMEM.
 */
int perfd_fleet_new(const perfd_fleet_options *options, const perfd_fleet_callbacks *callbacks, void *userdata, perfd_fleet **ret_fleet);
/* Takes NULL. */
void perfd_fleet_free(perfd_fleet *fleet);

/*
 * Takes the next message. 0: it was taken, whatever it was. PERFD_E_NEEDED: it was not: the message with the subject
 * perfd_fleet_needed() comes before, by perfd_fleet_describe(). PERFD_E_INVALID: the size, the subject or `header` is not set;
 * PERFD_E_STATE: called by a callback. -ENOMEM: what was left of this packet is lost, and counted as damaged; the next one can be taken.
 */
int perfd_fleet_take(perfd_fleet *fleet, const perfd_fleet_message *message);

/*
 * Where the descriptors are that a stream needs when it is read from the middle: the subject of a message, of which the last one in
 * the stream NAME-descriptors is to be given to perfd_fleet_describe(). NULL: nothing is needed. Valid until that call.
 */
const char *perfd_fleet_needed(const perfd_fleet *fleet);
/*
 * The message with that subject; NULL: the server does not have it, so packets that need it are "undescribed". 0: perfd_fleet_take() can
 * be called again, with the same message or with another one. PERFD_E_NEEDED: there is another part, perfd_fleet_needed().
 * PERFD_E_STATE: nothing was needed; PERFD_E_INVALID, -ENOMEM. Descriptors that do not have their digest are as if there were none.
 */
int perfd_fleet_describe(perfd_fleet *fleet, const perfd_fleet_message *message);

/* Stream i, in the order of their first messages; NULL behind the last one. */
const perfd_fleet_stream *perfd_fleet_get_stream(const perfd_fleet *fleet, size_t i);
const perfd_fleet_counts *perfd_fleet_get_counts(const perfd_fleet *fleet);

/* What is known of a stream from elsewhere than from its messages, such as the status of its relay. It is read during the call only. */
typedef struct perfd_fleet_reckoning {
        size_t size;
        const char *host, *route, *machine, *boot;
        uint64_t epoch;
        uint64_t sequence; /* of the last packet that was stored */
        uint64_t matched;  /* items that had matched behind it */
        const perfd_count *lost; /* of these, what was lost before it was published; or NULL */
        size_t n_lost;
        bool ended;        /* that packet was the last one */
} perfd_fleet_reckoning;

#define PERFD_FLEET_RECKONING_INIT { .size = sizeof(perfd_fleet_reckoning) }

/*
 * Closes the sum of a stream whose last packets the server does not have any more; if it has none of them, this is its first message. All
 * messages that the server has of the stream must have been taken: packets up to that number that did not come are missing, which the
 * callback `gap` is told. If later packets have come, or its end, nothing is changed. 0; PERFD_E_INVALID: the size is not set, the words
 * are not those of a stream, there are too many streams, or more items have come than have matched; PERFD_E_STATE: called by a callback;
 * -ENOMEM.
 */
int perfd_fleet_reckon(perfd_fleet *fleet, const perfd_fleet_reckoning *reckoning);

/*
 * Forgets a stream, so that a program that runs for long does not keep all that have ended. A message of it would begin it anew, as from
 * the middle. 0; PERFD_E_STATE: called by a callback.
 */
int perfd_fleet_forget(perfd_fleet *fleet, const perfd_fleet_stream *stream);

/*
 * Wall time, ns since 1970, at a time of the stream's clock, as perfd_stream_wall() has it; also in the callbacks of the stream.
 * *ret_error, if it is not NULL: by how many ns it can be wrong as the host's wall time; UINT64_MAX: not known, no reading of wall time
 * has come.
 */
uint64_t perfd_fleet_wall(const perfd_fleet_stream *stream, uint64_t time, uint64_t *ret_error);

/* For __attribute__((cleanup)). */
static inline void perfd_fleet_freep(perfd_fleet **fleet) {
        perfd_fleet_free(*fleet);
}

PERFD_END_DECLARATIONS
