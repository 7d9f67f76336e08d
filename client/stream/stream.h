/*
 * For the files of streams among themselves: packets are taken (packet.c), from a socket (process.c) or out of shared memory (ring.c),
 * and what is to be said to the daemon meanwhile is said (send.c). One thread at a time.
 */
#pragma once

#include "client/connection/client.h"
#include "client/item/decode.h"
#include "client/item/descriptor.h"
#include "client/item/task.h"
#include "client/perfd.h"
#include "proto/adaptive-poll.h"
#include "proto/stream-ring.h"

struct Stream {
        perfd_callbacks callbacks;
        void *userdata;
        Descriptors descriptors;
        Tasks tasks;
        struct perfd_item item; /* its arrays are used again for each item */
        bool started;
        bool stop_asked;
        RingReader ring; /* open: the stream is in shared memory */
        PoolReader pool; /* of packets that others get too */
        uint64_t n_pooled; /* bytes of these, of all that came */
        AdaptivePoll pace;
        bool room_wanted, stop_wanted; /* to be told when the request before has left */
        uint64_t sequence; /* of the last packet */
        uint64_t received; /* items */
        uint64_t missed;   /* items of gaps */
};

/* NULL: no memory. */
Stream *stream_new(void);
/* Takes NULL. */
void stream_free(Stream *s);

/* packet.c: a whole frame without its length. After PERFD_E_PROTOCOL and for want of memory the client is BROKEN. */
int stream_take_message(perfd_client *c, const uint8_t *bytes, size_t length);
/* Fails with what is wrong behind the last packet that was taken. */
int stream_fail(perfd_client *c, int code, const char *what);

/* send.c: what is to be said, as far as it goes without waiting. */
int stream_send(perfd_client *c);

/* ring.c: opened by the fds that came. Not 0: there is no way to read it. */
int stream_open_ring(perfd_client *c, const Perfd__V1__StreamRing *m);
/* perfd_client_process() and perfd_client_due() of a stream in shared memory. */
int stream_process_ring(perfd_client *c);
uint64_t stream_due(perfd_client *c);
