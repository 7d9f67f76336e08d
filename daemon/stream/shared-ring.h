/*
 * For outboxes: a stream's bytes to a subscriber on this host without a system call, by memory that both share
 * (proto/stream-ring.h). Made by main, then the dispatcher's.
 *
 * The subscriber is a stranger: it can write its own file only, of which the tail is read, once each time, and checked.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/error.h"
#include "daemon/stream/buffer-pool.h"
#include "proto/stream-ring.h"

/* When more may come: the ticks of the readers, CLOCK_MONOTONIC. */
typedef struct SharedTick {
        nsec_t next, length; /* length 0: they are too short to sleep until then */
        bool is_due;         /* something of what comes now was to come at a tick before `next` */
} SharedTick;

#define SHARED_RING_PINS (POOL_BUFFERS / 2) /* one who does not read leaves the others as many */

/* A buffer that the subscriber may be reading: until its tail is there. */
typedef struct RingPin {
        uint64_t end;
        unsigned buffer;
} RingPin;

typedef struct SharedRing {
        RingDaemonWords *words;
        const RingClientWords *theirs;
        uint8_t *bytes;
        size_t size, offset;
        int fds[STREAM_FDS_MAX]; /* to be handed over; the last is the pool's, or -1 */
        uint64_t head;
        uint64_t tail; /* as read last */
        bool waits;    /* for room */
        bool rings;    /* the subscriber slept when something was written: it is to be woken */
        uint64_t n_waits, n_told;
        uint32_t rung; /* its wait that was rung for */
        SharedTick tick, told; /* of what is written now; that the subscriber knows */
        BufferPool *pool;      /* the subscriber can read it; or NULL */
        RingPin pins[SHARED_RING_PINS]; /* in the order of the ring */
        unsigned first_pin, n_pins;
} SharedRing;

enum {
        SHARED_RING_E_BROKEN = 1, /* the subscriber broke the rules */
};

/* A size that cannot be is refused. */
int shared_ring_check(uint64_t size, Explanation *e);
/* Of such a size. What this kernel cannot, or this moment has not got, is refused. -ENOMEM. */
int shared_ring_new(size_t size, SharedRing **ret, Explanation *e);
SharedRing *shared_ring_free(SharedRing *r);
DEFINE_CLEANUP(SharedRing *, shared_ring_free)
/* Before it is handed over: its subscriber gets the pool's file, and is told of its buffers. False and errno: there is no fd. */
bool shared_ring_share(SharedRing *r, BufferPool *pool);
/* They were handed over: what was made with them stays. */
void shared_ring_close_fds(SharedRing *r);

/*
 * As much of these parts as there is room for, possibly none. While the ring waits that is nothing, until half of it is
 * free. SHARED_RING_E_BROKEN.
 */
int shared_ring_write(SharedRing *r, const struct iovec *parts, size_t n_parts, size_t *ret_n);
/*
 * Where the next bytes go, as many as lie there in one piece: to be written in place. NULL: that is less than `least`, or the
 * ring waits, or the subscriber broke the rules, of which the next shared_ring_write() speaks.
 */
uint8_t *shared_ring_room(SharedRing *r, size_t least, size_t *ret_n);
/* The first n of these, which begin at `at`, were written, and nothing else since. */
void shared_ring_advance(SharedRing *r, const uint8_t *at, size_t n);
/*
 * A frame of n bytes that tells of a buffer of its pool, which is used once more until the subscriber has read that. False:
 * there is no room for it, or the subscriber has not read of too many others, or it broke the rules, of which the next
 * shared_ring_write() speaks.
 */
bool shared_ring_send_ref(SharedRing *r, const uint8_t *frame, size_t n, unsigned buffer);
/* Buffers that it has read are the pool's again. True: there are others that it may still be reading. */
bool shared_ring_reclaim(SharedRing *r);
/* It has not read all that was written, nor broken the rules. */
bool shared_ring_is_unread(SharedRing *r);
/* It reads nothing more: the memory is free, whether it keeps the files or not. Nothing is written behind it. */
void shared_ring_discard(SharedRing *r);
/* As far as the subscriber had read when its tail was looked at last. */
static inline bool shared_ring_is_half_full(const SharedRing *r) {
        return r->head - r->tail > r->size / 2;
}
/* There was no room: true if the subscriber will say when half of it is there; false if it is already. */
bool shared_ring_wait(SharedRing *r);
/* The subscriber says that there is. SHARED_RING_E_BROKEN: more often than it was waited for. */
int shared_ring_hear(SharedRing *r);
/* For all that is written from now on. Who reads is told of ticks by what was due at one: by what readers bring. */
void shared_ring_expect(SharedRing *r, const SharedTick *tick);
/* Once: it is to be woken. */
bool shared_ring_take_ring(SharedRing *r);
