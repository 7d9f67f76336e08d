/*
 * For daemon and client: how a stream lies in memory that both share. Two files, each written by one side only:
 *
 *     the daemon's    | RingDaemonWords, up to a page | bytes of the stream, a power of two |
 *     the client's    | RingClientWords, up to a page |
 *
 * head and tail count all bytes that ever went in and out; byte i of the stream lies at i % size. Who sleeps says so in
 * its `waits`, and the other one rings by the socket: PROTOCOL.md, *Shared memory*. Below is the client's side of it;
 * the daemon's is daemon/stream/shared-ring.h.
 *
 * head and tail are stored with release behind the bytes that they give, and loaded with acquire. "Said that I wait, then looked"
 * and "moved, then looked who waits" have a full fence each, so that one of the two sees the other. `due` is of the wait that was
 * loaded with acquire, or a later one. next and tick are relaxed, and may be of two moments: then one sleep is too long or too
 * short by a tick, and the daemon, who knows both, rings for a client that sleeps too long.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STREAM_RING_MIN ((size_t)64 << 10)
#define STREAM_RING_MAX ((size_t)16 << 20)
#define STREAM_RING_FDS 2                  /* the daemon's file, the client's, */
#define STREAM_FDS_MAX (STREAM_RING_FDS + 1) /* and perhaps the pool's */
#define STREAM_POOL_MAX ((size_t)64 << 20)

typedef struct RingDaemonWords {
        _Alignas(64) _Atomic(uint64_t) head;
        _Atomic(uint64_t) next; /* ns, CLOCK_MONOTONIC: the tick at which more may come */
        _Atomic(uint32_t) tick; /* ns from one to the next; 0: too short to sleep until then */
        _Alignas(64) _Atomic(uint32_t) waits; /* for room: the number of this wait, or 0 */
} RingDaemonWords;

typedef struct RingClientWords {
        _Alignas(64) _Atomic(uint64_t) tail;
        _Alignas(64) _Atomic(uint32_t) waits; /* for bytes: the same */
        _Atomic(uint64_t) due;                /* ns, CLOCK_MONOTONIC: it comes by itself then; 0: it does not */
} RingClientWords;

_Static_assert(sizeof(RingDaemonWords) == 128 && offsetof(RingDaemonWords, next) == 8 &&
               offsetof(RingDaemonWords, tick) == 16 && offsetof(RingDaemonWords, waits) == 64, "this is on the wire");
_Static_assert(sizeof(RingClientWords) == 128 && offsetof(RingClientWords, waits) == 64 &&
               offsetof(RingClientWords, due) == 72, "this is on the wire");

static inline bool stream_ring_may_be(uint64_t size) {
        return size >= STREAM_RING_MIN && size <= STREAM_RING_MAX && (size & (size - 1)) == 0;
}

/* When more may come, as the daemon says it: ns of CLOCK_MONOTONIC, and ns from each tick to the next. */
typedef struct RingTick {
        uint64_t next, length;
} RingTick;

/* The client's side. One owner, no thread. */
typedef struct RingReader {
        const RingDaemonWords *words;
        RingClientWords *own;
        const uint8_t *bytes; /* mapped twice, one behind the other, so that nothing wraps */
        size_t size, offset;
        uint64_t tail;
        uint32_t n_waits;
        uint32_t told; /* the daemon's wait that it was told of room for */
} RingReader;

#define RING_READER_NULL ((RingReader){ .size = 0 })

enum {
        RING_READER_E_UNUSABLE = 1, /* these files are not what they have to be, or cannot be mapped */
        RING_READER_E_BROKEN,       /* what the daemon says of the ring cannot be */
};

/* Maps both; the fds stay the caller's. size and offset are those of StreamRing. RING_READER_E_UNUSABLE. */
int ring_reader_open(RingReader *r, const int fds[static STREAM_RING_FDS], uint64_t size, uint64_t offset);
void ring_reader_close(RingReader *r);
static inline bool ring_reader_is_open(const RingReader *r) {
        return r->size > 0;
}

/* All that is there now, in one piece, until it is consumed. RING_READER_E_BROKEN. */
int ring_reader_peek(const RingReader *r, const uint8_t **ret_bytes, size_t *ret_n);
/* n bytes were read, and are the daemon's again. True: it waits for that, and has to be told, once. */
bool ring_reader_consume(RingReader *r, size_t n);
/*
 * What the daemon writes from now on it rings for. What it wrote before has to be looked for once more afterwards. Awake:
 * nothing rings.
 */
void ring_reader_arm(RingReader *r);
void ring_reader_disarm(RingReader *r);
/* It will look at `due`, ns: until it is armed again, the daemon rings only for what cannot wait so long. */
void ring_reader_set_due(RingReader *r, uint64_t due);
RingTick ring_reader_tick(const RingReader *r);

/* Packets that several subscribers read where they lie (PooledPacket). The client's side; one owner, no thread. */
typedef struct PoolReader {
        const uint8_t *bytes; /* NULL: there is none */
        size_t size;
} PoolReader;

#define POOL_READER_NULL ((PoolReader){ .bytes = NULL })

/* Maps it; the fd stays the caller's. The size is that of StreamRing. RING_READER_E_UNUSABLE. */
int pool_reader_open(PoolReader *p, int fd, uint64_t size);
void pool_reader_close(PoolReader *p);
/* NULL: it does not lie in the pool. */
static inline const uint8_t *pool_reader_at(const PoolReader *p, uint64_t offset, uint64_t length) {
        return p->bytes && offset <= p->size && length <= p->size - offset ? p->bytes + offset : NULL;
}
