/*
 * Streams: items as they happen. A client that has subscribed is a stream until its end, and takes no more requests. The caller
 * owns the loop: it waits with poll(2), or with perfd_client_wait(), and calls perfd_client_process().
 */
#pragma once

#include "client.h"
#include "declarations.h"
#include "descriptor.h"
#include "item.h"
#include "ledger.h"

PERFD_BEGIN_DECLARATIONS

typedef enum perfd_order {
        PERFD_ORDER_TIME = 0, /* by time across CPUs */
        PERFD_ORDER_CPU = 1,  /* of each CPU as it comes: cheapest */
} perfd_order;

/* What of a sample is sent: its fields, the record's raw bytes, or both. */
typedef enum perfd_payload {
        PERFD_PAYLOAD_FIELDS = 0,
        PERFD_PAYLOAD_RAW = 1,
        PERFD_PAYLOAD_BOTH = 2,
} perfd_payload;

/* What the daemon does when this subscriber is too slow for its queue. */
typedef enum perfd_overflow {
        PERFD_OVERFLOW_DROP_OLDEST = 0,
        PERFD_OVERFLOW_DROP_NEWEST = 1,
        PERFD_OVERFLOW_DISCONNECT = 2,
} perfd_overflow;

/* LOST, LOST_SAMPLES, THROTTLE and UNTHROTTLE have none: they come always. */
#define PERFD_RECORD_BIT(record)                                                                                       \
        ((uint32_t)1 << ((record) < PERFD_SWITCH ? (record) - PERFD_COMM : (record) - PERFD_SWITCH + 4))

/* What is selected, and how it is delivered. Times are ns, sizes bytes. Read only during the call. */
typedef struct perfd_subscription {
        size_t size;
        const char *const *events; /* names or globs; none: every event, also those added later */
        size_t n_events;
        const char *where;         /* a predicate, perfd-filter(7), evaluated by the daemon; NULL or "": none */
        const char *const *fields; /* only these of each event; none: all */
        size_t n_fields;
        perfd_order order;
        perfd_payload payload;
        perfd_overflow overflow;
        uint64_t queue_bytes;      /* 0: the daemon's default */
        uint32_t records;          /* PERFD_RECORD_BIT() of each side record wanted */
        uint64_t latency;          /* ns that a sample may stay in its CPU's ring buffer; 0: the daemon's default */
        /* of memory shared with the daemon, a power of two, 64 KiB to 16 MiB; 0: chosen by the library */
        uint32_t ring_bytes;
} perfd_subscription;

#define PERFD_NO_RING UINT32_MAX /* ring_bytes: the stream uses the socket */

#define PERFD_SUBSCRIPTION_INIT { .size = sizeof(perfd_subscription) }

/* The properties of the stream: its first callback. */
typedef struct perfd_start {
        const char *clock;   /* "monotonic", "monotonic-raw", "boottime", "realtime" */
        int64_t wall_offset; /* nanoseconds since 1970 - time, when the stream began: see perfd_stream_wall() */
        const char *host;
        const char *kernel;
        uint32_t n_cpus;
        perfd_order order;
        perfd_payload payload;
        perfd_overflow overflow;
        uint64_t queue_bytes;
        uint32_t ring_bytes; /* 0: the stream uses the socket */
} perfd_start;

/* What wall time was at one time of the stream's clock. Times are ns. */
typedef struct perfd_wall_reading {
        uint64_t time;       /* of the stream's clock */
        uint64_t wall;       /* since 1970 */
        uint64_t error;      /* how wrong wall - time can be, until the next reading */
        uint64_t since;      /* wall time was set after this time and before `time`; 0: it was not set */
        uint64_t host_error; /* how wrong the host's wall time itself can be, as it says (adjtimex(2), maxerror); 0: not known */
        bool synchronized;   /* the host says that its wall time follows a source of true time */
} perfd_wall_reading;

/* How many items of one event a gap has. */
typedef struct perfd_gap_event {
        uint32_t id;      /* 0: side records of the host */
        const char *name; /* "" for these, and if the stream had no descriptor of the event */
        uint64_t items;
} perfd_gap_event;

/* What this subscriber did not get. */
typedef struct perfd_gap {
        const char *reason; /* "outbox", of a client of a relay "relay_queue"; "memory"; "expired": perfd_feed() */
        uint64_t first_sequence, last_sequence;
        uint64_t items;
        uint64_t from, to;  /* times of the first and of the last item that is missing */
        const perfd_gap_event *events;
        size_t n_events;
} perfd_gap;

/* Why the stream has ended, and its sum. */
typedef struct perfd_end {
        const char *reason;         /* "stopped", "shutdown", "overflow", "limit" */
        uint64_t received;          /* items that came, counted here: has to be own->sent */
        uint64_t missed;            /* items of all gaps: has to be own->dropped "outbox", "relay_queue" and "memory" */
        const perfd_result *ledger; /* the closing ledger, valid during the callback */
        const perfd_subscriber_ledger *own; /* the row of this stream; NULL if there is none */
        /*
         * What was lost while the stream was there, at all stages, of what it has asked for: a count for each reason, only of
         * those above 0. "outbox", "relay_queue" and "late" are of this stream; "probe_missed" are hits that the kernel could not count;
         * "side_records" is what a full ring lost of its side records, which say who tasks are.
         */
        const perfd_count *lost;
        size_t n_lost;
} perfd_end;

/*
 * Called from perfd_client_process(), in the order of the stream; any may be NULL. What they are given is valid until
 * they return, but for events. They must not free the client; perfd_stream_stop() is allowed.
 */
typedef struct perfd_callbacks {
        size_t size;
        void (*start)(void *userdata, const perfd_start *start);
        void (*event)(void *userdata, const perfd_event *event); /* before its first item */
        void (*item)(void *userdata, const perfd_item *item); /* NULL: perfd_stream_next_batch() of batch.h gives them */
        void (*gap)(void *userdata, const perfd_gap *gap);       /* at the place of what is missing */
        void (*removed)(void *userdata, uint32_t id, const char *name);
        void (*end)(void *userdata, const perfd_end *end);
        void (*wall)(void *userdata, const perfd_wall_reading *reading); /* before the first item for which it holds */
} perfd_callbacks;

#define PERFD_CALLBACKS_INIT { .size = sizeof(perfd_callbacks) }

/*
 * Subscribes, and waits for the answer. From then on the connection is this stream, which perfd_client_process() reads. After
 * PERFD_E_REFUSED the connection can be used for other requests. `userdata` is passed to the callbacks. 0; PERFD_E_REFUSED,
 * _CLOSED, _PROTOCOL, _STATE, _INVALID, _TIMEOUT, -errno.
 */
int perfd_subscribe(perfd_client *client, const perfd_subscription *subscription, const perfd_callbacks *callbacks,
                    void *userdata);

/*
 * A stream whose packets come from elsewhere than a connection, such as those that a relay has published (PROTOCOL.md, NATS): the
 * client, which must not be connected, is this stream from now on, and perfd_feed() calls the callbacks. 0; PERFD_E_STATE, _INVALID.
 */
int perfd_feed_begin(perfd_client *client, const perfd_callbacks *callbacks, void *userdata);

/*
 * The bytes of the next packet, which are read during the call only. The first one may have any sequence number: what its items need is
 * then fed before, as a packet of descriptors without a number. A jump that no gap explains is a gap with the reason "expired", whose
 * items are not known: 0. perfd_stream_wall() has no readings of wall time before the first one has come. 0; PERFD_E_PROTOCOL (also if a
 * sequence number comes again), PERFD_E_ENDED, PERFD_E_STATE; -errno.
 */
int perfd_feed(perfd_client *client, const void *packet, size_t length);

/*
 * Asks the daemon to end the stream. Items that were sent before, and the `end` callback, still follow. A second call does nothing.
 * 0; PERFD_E_STATE: the connection is no stream; PERFD_E_CLOSED, -errno.
 */
int perfd_stream_stop(perfd_client *client);

/*
 * Wall time, ns since 1970, at a time of the stream's clock, of an item that came; also in its callbacks. *ret_error, if it is not NULL:
 * by how many ns it can be wrong as the host's wall time, which may be wrong itself (perfd_wall_reading.host_error); UINT64_MAX: not
 * known, the daemon sends no readings. 0; PERFD_E_STATE: it is no stream, or has not started.
 */
int perfd_stream_wall(const perfd_client *client, uint64_t time, uint64_t *ret_wall, uint64_t *ret_error);

/* For poll(2): the socket, which stays the client's; -1 if there is none. */
int perfd_client_fd(const perfd_client *client);
/* For poll(2): the events to wait for, POLLIN and POLLOUT. They may change with each call on the client. */
short perfd_client_events(const perfd_client *client);

/*
 * Reads and writes what is possible without blocking, at most about a megabyte and a ring, and calls the callbacks. 0: wait again;
 * PERFD_E_ENDED, PERFD_E_CLOSED, PERFD_E_REFUSED: the other side, which may be a relay, has said why it closes the connection;
 * PERFD_E_PROTOCOL (also if the sequence numbers jump and no gap explains it), PERFD_E_STATE: the connection is no stream, or this is
 * a callback of it; -errno. Items that no callback and no batch was given are counted only.
 */
int perfd_client_process(perfd_client *client);

/*
 * For ppoll(2): when perfd_client_process() is to be called at the latest, also if nothing can be read; ns of CLOCK_MONOTONIC,
 * UINT64_MAX: only when something can be read. Call it each time before waiting, or never: a call is a promise to call
 * perfd_client_process() by then, whatever else happens, so that the daemon need not wake the client at each tick, which costs the
 * traced host more than the client's work on the samples.
 */
uint64_t perfd_client_due(perfd_client *client);

/*
 * For callers that wait for nothing else: waits until perfd_client_process() is to be called, by the fd, the events and the time
 * above. 0, also after a signal: call it then; PERFD_E_STATE: there is no connection; -errno of ppoll(2).
 */
int perfd_client_wait(perfd_client *client);

PERFD_END_DECLARATIONS
