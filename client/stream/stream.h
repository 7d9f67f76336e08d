/*
 * For the files of streams among themselves: messages come one by one (source.c), from a socket or out of shared memory (ring.c);
 * each is a packet, which is opened, its items are taken, by callback or by batches, and it is closed (packet.c). Until then its bytes
 * stay where they are. What is to be said to the daemon meanwhile is said (send.c). One thread at a time.
 */
#pragma once

#include "client/connection/client.h"
#include "client/item/decode.h"
#include "client/item/descriptor.h"
#include "client/item/task.h"
#include "client/perfd.h"
#include "client/stream/wall-times.h"
#include "proto/adaptive-poll.h"
#include "proto/stream-ring.h"

/* The packet that is being read. */
typedef struct PacketReading {
        const uint8_t *bytes, *end;
        Wire rest;      /* from the first item that was not taken */
        unsigned parts; /* 1 << field, of each that it has */
        bool is_open;
} PacketReading;

/* Since it was waited for something last: bytes are looked for, until there are none. */
typedef struct Look {
        bool is_awake;
        bool is_armed;   /* the daemon rings for what comes from now on: `left` is what came before */
        bool is_rung, is_closed; /* by the socket */
        uint64_t began;  /* ns, CLOCK_MONOTONIC: callbacks take their time */
        uint64_t pooled; /* Stream.n_pooled then */
        size_t bytes, left;
} Look;

struct Stream {
        perfd_callbacks callbacks;
        void *userdata;
        Descriptors descriptors;
        Tasks tasks;
        WallTimes wall;
        struct perfd_item item; /* its arrays are used again for each item */
        uint8_t *part; /* a copy of one of a packet in shared memory */
        size_t part_room;
        bool started;
        bool is_fed;      /* perfd_feed(): there is no connection */
        void (*on_batch)(void *userdata, const perfd_batch *batch); /* of a stream that is fed, while it has a batch */
        uint64_t batch_missed; /* items of gaps before the last of these */
        bool stop_asked;
        RingReader ring; /* open: the stream is in shared memory */
        PoolReader pool; /* of packets that others get too */
        uint64_t n_pooled; /* bytes of these, of all that came */
        AdaptivePoll pace;
        PacketReading packet;
        struct Batch *batch; /* NULL: items are called back for */
        Look look;
        size_t held;  /* bytes of the ring that the open packet is in */
        bool is_busy; /* with callbacks */
        bool room_wanted, stop_wanted; /* to be told when the request before has left */
        uint64_t sequence; /* of the last packet */
        uint64_t received; /* items */
        uint64_t missed;   /* items of gaps */
};

/* NULL: no memory. */
Stream *stream_new(void);
/* Takes NULL. */
void stream_free(Stream *s);

/*
 * packet.c: a whole frame without its length, which has to stay until the packet is closed. What is meant to come before its items goes
 * to its callbacks; then these are taken; then comes the rest. After PERFD_E_PROTOCOL and for want of memory the client is BROKEN.
 */
int stream_open_message(perfd_client *c, const uint8_t *bytes, size_t length);
/* The packet itself. sequence: of one that does not say it itself; 0: it does. */
int stream_open_packet(perfd_client *c, const uint8_t *packet, size_t length, uint64_t sequence);
/* part.c: of a stream that is fed, packets up to this one are not there; those before the first one are nobody's loss. */
void stream_tell_expired(perfd_client *c, uint64_t last);
extern const char stream_expired[]; /* the reason of that gap, and of no other: what packets say is a copy */
/*
 * feed.c: for the next packet, items come in batches to this function. The batch may be that of another stream before and behind it: one is
 * larger than all else that a stream has.
 */
void stream_lend_batch(perfd_client *c, struct Batch *batch, void (*on_batch)(void *userdata, const perfd_batch *batch));
void stream_give_batch_back(perfd_client *c);
/* Those that are left, by the callback. */
int stream_take_items(perfd_client *c);
/* The batch has the next ones of those that are left. */
int stream_fill_batch(perfd_client *c);
int stream_close_packet(perfd_client *c);
/* fail.c: with what is wrong behind the last packet that was taken. */
int stream_fail(perfd_client *c, int code, const char *what);

/* send.c: what is to be said, as far as it goes without waiting. */
int stream_send(perfd_client *c);

/* source.c: the next message is opened. False: there is none, and it can be waited for. PERFD_E_ENDED; as stream_open_message(). */
int stream_next_message(perfd_client *c, bool *ret_any);
/* Closes it. */
int stream_end_message(perfd_client *c);

/* ring.c: opened by the fds that came. Not 0: there is no way to read it. */
int stream_open_ring(perfd_client *c, const Perfd__V1__StreamRing *m);
/* For source.c, of a stream in shared memory. */
int stream_next_in_ring(perfd_client *c, bool *ret_any);
int stream_release_ring(perfd_client *c);

/* process.c: whether there is a stream to be read. PERFD_E_STATE, PERFD_E_ENDED */
int stream_begin_reading(perfd_client *c);
/* PERFD_E_ENDED */
int stream_say_end(perfd_client *c);
