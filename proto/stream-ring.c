/*
 * The reading side of a stream in shared memory. The bytes are mapped twice, one mapping behind the other, so that every
 * frame that fits into the ring can be read where it lies.
 */
#include "proto/stream-ring.h"

#include <sys/mman.h>
#include <sys/stat.h>

static bool has_size(int fd, uint64_t size) {
        struct stat st;

        return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == size;
}

/* | words | bytes | bytes again | */
static uint8_t *map_twice(int fd, size_t offset, size_t size) {
        size_t all = offset + 2 * size;
        uint8_t *at = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (at == MAP_FAILED)
                return NULL;
        if (mmap(at, offset + size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
            mmap(at + offset + size, size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) == MAP_FAILED) {
                munmap(at, all);
                return NULL;
        }
        return at;
}

int ring_reader_open(RingReader *r, const int fds[static STREAM_RING_FDS], uint64_t size, uint64_t offset) {
        RingClientWords *own;
        uint8_t *theirs;

        if (!stream_ring_may_be(size) || offset < sizeof(RingDaemonWords) || offset > STREAM_RING_MIN ||
            !has_size(fds[0], offset + size) || !has_size(fds[1], offset))
                return RING_READER_E_UNUSABLE;
        own = mmap(NULL, offset, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
        if (own == MAP_FAILED)
                return RING_READER_E_UNUSABLE;
        theirs = map_twice(fds[0], offset, size);
        if (!theirs) {
                munmap(own, offset);
                return RING_READER_E_UNUSABLE;
        }
        *r = (RingReader){ .words = (const RingDaemonWords *)(const void *)theirs, .own = own, .bytes = theirs + offset,
                           .size = size, .offset = offset, .n_waits = atomic_load_explicit(&own->waits, memory_order_relaxed) };
        return 0;
}

void ring_reader_close(RingReader *r) {
        if (!ring_reader_is_open(r))
                return;
        munmap((void *)(uintptr_t)(r->bytes - r->offset), r->offset + 2 * r->size);
        munmap(r->own, r->offset);
        *r = RING_READER_NULL;
}

int ring_reader_peek(const RingReader *r, const uint8_t **ret_bytes, size_t *ret_n) {
        uint64_t n = atomic_load_explicit(&r->words->head, memory_order_acquire) - r->tail;

        if (n > r->size)
                return RING_READER_E_BROKEN;
        *ret_bytes = r->bytes + (r->tail & (r->size - 1));
        *ret_n = n;
        return 0;
}

bool ring_reader_consume(RingReader *r, size_t n) {
        uint32_t waits;

        r->tail += n;
        atomic_store_explicit(&r->own->tail, r->tail, memory_order_release);
        atomic_thread_fence(memory_order_seq_cst); /* the other side: shared_ring_wait() */
        waits = atomic_load_explicit(&r->words->waits, memory_order_acquire); /* the head that it had then, or a later one */
        if (waits == 0 || waits == r->told ||
            atomic_load_explicit(&r->words->head, memory_order_acquire) - r->tail > r->size / 2)
                return false;
        r->told = waits;
        return true;
}

void ring_reader_arm(RingReader *r) {
        if (++r->n_waits == 0)
                r->n_waits = 1;
        atomic_store_explicit(&r->own->due, 0, memory_order_relaxed);
        atomic_store_explicit(&r->own->waits, r->n_waits, memory_order_release); /* behind that */
        atomic_thread_fence(memory_order_seq_cst); /* the other side: shared_ring_write() */
}

void ring_reader_disarm(RingReader *r) {
        atomic_store_explicit(&r->own->waits, 0, memory_order_relaxed);
}

void ring_reader_set_due(RingReader *r, uint64_t due) {
        atomic_store_explicit(&r->own->due, due, memory_order_relaxed);
}

RingTick ring_reader_tick(const RingReader *r) {
        return (RingTick){ .next = atomic_load_explicit(&r->words->next, memory_order_relaxed),
                           .length = atomic_load_explicit(&r->words->tick, memory_order_relaxed) };
}

int pool_reader_open(PoolReader *p, int fd, uint64_t size) {
        void *map;

        if (size == 0 || size > STREAM_POOL_MAX || !has_size(fd, size))
                return RING_READER_E_UNUSABLE;
        map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
                return RING_READER_E_UNUSABLE;
        *p = (PoolReader){ .bytes = map, .size = size };
        return 0;
}

void pool_reader_close(PoolReader *p) {
        if (p->bytes)
                munmap((void *)(uintptr_t)p->bytes, p->size);
        *p = POOL_READER_NULL;
}
