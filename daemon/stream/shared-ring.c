/*
 * Nothing that the subscriber can write is in the way of the bytes: they and the head lie in a file that it can only
 * read, by an fd of its own, so that it can neither change them nor punch holes, which would have to be filled again
 * here; neither file can shrink below what is mapped. Its own file holds its tail and whether it sleeps.
 *
 * Nobody is rung by an eventfd: whether write(2) to one waits is a flag of the open file, which the subscriber would
 * share, and could clear. The bells go by the socket, where each call says that it does not wait.
 */
#include "daemon/stream/shared-ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/base/copy.h"
#include "daemon/stream/memory-file.h"

static int refuse_errno(Explanation *e, size_t size, const char *call) {
        switch (errno) {
        case ENOMEM:
        case ENOSPC:
                return refuse(e, REFUSED_EXHAUSTED, "no-memory", "%s(2) for a ring of %zu bytes: %m; request a smaller ring, or "
                        "none",
                              call, size);
        case EMFILE:
        case ENFILE:
                return refuse(e, REFUSED_EXHAUSTED, "too-many-fds", "%s(2) for a ring: %m; subscribe without a ring", call);
        default:
                return refuse(e, REFUSED_UNSUPPORTED, "no-ring",
                              "%s(2) for a ring: %m; it requires /proc, and permission to seal memory files; subscribe "
                              "without a ring",
                              call);
        }
}

/* All of its memory is there from the beginning, so that none can be missing later. */
static int open_memory(const char *name, size_t length, int *ret_fd, void **ret_map, const char **ret_call) {
        _cleanup_close_ int fd = memory_file_open(name);
        void *map;

        *ret_call = "memfd_create";
        if (fd < 0)
                return -1;
        *ret_call = "fallocate";
        if (fallocate(fd, 0, 0, (off_t)length) < 0)
                return -1;
        *ret_call = "mmap";
        map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
        if (map == MAP_FAILED)
                return -1;
        *ret_fd = TAKE_FD(fd);
        *ret_map = map;
        return 0;
}

static int shared_ring_open(SharedRing *r, Explanation *e) {
        const char *call;
        int theirs;
        void *map;

        if (open_memory("perfd-stream", r->offset + r->size, &r->fds[0], &map, &call) < 0)
                return refuse_errno(e, r->size, call);
        r->words = map;
        r->bytes = (uint8_t *)map + r->offset;
        if (open_memory("perfd-subscriber", r->offset, &r->fds[1], &map, &call) < 0)
                return refuse_errno(e, r->size, call);
        atomic_init(&((RingClientWords *)map)->waits, 1); /* it sleeps until it has read our response */
        r->theirs = map;
        if (fcntl(r->fds[0], F_ADD_SEALS, MEMORY_FILE_SEALS) < 0 || fcntl(r->fds[1], F_ADD_SEALS, MEMORY_FILE_SEALS) < 0)
                return refuse_errno(e, r->size, "fcntl");
        theirs = memory_file_open_reader(r->fds[0]);
        if (theirs < 0)
                return refuse_errno(e, r->size, "open");
        close_fd(r->fds[0]);
        r->fds[0] = theirs;
        return 0;
}

int shared_ring_check(uint64_t size, Explanation *e) {
        return stream_ring_may_be(size) ? 0 : refuse(e, REFUSED_INVALID, "bad-ring",
                                                     "a ring of %llu bytes: expected a power of two from %zu to %zu, or none: 0 "
                                                     "in the protocol, PERFD_NO_RING in libperfd", (unsigned long long)size, STREAM_RING_MIN, STREAM_RING_MAX);
}

int shared_ring_new(size_t size, SharedRing **ret, Explanation *e) {
        SharedRing *r = calloc(1, sizeof(*r));
        int code;

        assert(stream_ring_may_be(size));
        if (!r)
                return error_origin(-ENOMEM);
        *r = (SharedRing){ .size = size, .offset = (size_t)sysconf(_SC_PAGESIZE), .fds = { -1, -1, -1 } };
        code = shared_ring_open(r, e);
        if (code == 0)
                *ret = r;
        else
                shared_ring_free(r);
        return code;
}

bool shared_ring_share(SharedRing *r, BufferPool *pool) {
        r->fds[STREAM_RING_FDS] = memory_file_open_reader(pool->fd);
        if (r->fds[STREAM_RING_FDS] < 0)
                return false;
        r->pool = buffer_pool_ref(pool);
        return true;
}

void shared_ring_close_fds(SharedRing *r) {
        for (size_t i = 0; i < ARRAY_SIZE(r->fds); i++)
                r->fds[i] = close_fd(r->fds[i]);
}

/* The first one is the pool's again. */
static void shared_ring_unpin(SharedRing *r) {
        buffer_pool_leave(r->pool, r->pins[r->first_pin].buffer);
        r->first_pin = (r->first_pin + 1) % SHARED_RING_PINS;
        r->n_pins--;
}

SharedRing *shared_ring_free(SharedRing *r) {
        if (!r)
                return NULL;
        while (r->n_pins > 0)
                shared_ring_unpin(r);
        buffer_pool_unref(r->pool);
        if (r->words)
                munmap(r->words, r->offset + r->size);
        if (r->theirs)
                munmap((void *)(uintptr_t)r->theirs, r->offset);
        shared_ring_close_fds(r);
        free(r);
        return NULL;
}

static size_t shared_ring_used(const SharedRing *r) {
        return (size_t)(r->head - r->tail);
}

/* The tail only rises, and not beyond the head. */
static int shared_ring_look(SharedRing *r) {
        uint64_t tail = atomic_load_explicit(&r->theirs->tail, memory_order_acquire);

        if (r->head - tail > r->head - r->tail)
                return SHARED_RING_E_BROKEN;
        r->tail = tail;
        while (r->n_pins > 0 && r->pins[r->first_pin].end <= tail)
                shared_ring_unpin(r);
        return 0;
}

static void shared_ring_put(SharedRing *r, const uint8_t *from, size_t n) {
        size_t at = r->head & (r->size - 1), first = n < r->size - at ? n : r->size - at;

        copy_long(r->bytes + at, from, first);
        copy_long(r->bytes, from + first, n - first);
        r->head += n;
}

/*
 * One who will look by itself is rung only for what cannot wait until then: if the ring gets full, or if this was due before,
 * and the subscriber has already looked for it. One who should have looked before the last tick has forgotten it.
 */
static bool shared_ring_can_wait(const SharedRing *r) {
        uint64_t due = atomic_load_explicit(&r->theirs->due, memory_order_relaxed); /* of the wait that was seen, or a later one */

        return due > 0 && due + r->tick.length >= r->tick.next && shared_ring_used(r) <= r->size - r->size / 4 &&
               !(r->tick.is_due && due >= r->tick.next);
}

/* The head is known to the subscriber, who is woken if it slept before it could know. */
static void shared_ring_publish(SharedRing *r) {
        uint32_t waits;

        atomic_store_explicit(&r->words->head, r->head, memory_order_release);
        atomic_thread_fence(memory_order_seq_cst); /* the other side: ring_reader_arm() */
        waits = atomic_load_explicit(&r->theirs->waits, memory_order_acquire);
        if (waits != 0 && waits != r->rung && !shared_ring_can_wait(r)) {
                r->rung = waits;
                r->rings = true;
        }
}

static void shared_ring_say_waits(SharedRing *r, bool waits) {
        uint32_t number = waits ? (uint32_t)(r->n_waits++ % UINT32_MAX) + 1 : 0;

        r->waits = waits;
        atomic_store_explicit(&r->words->waits, number, memory_order_release); /* behind the head that it had then */
}

int shared_ring_write(SharedRing *r, const struct iovec *parts, size_t n_parts, size_t *ret_n) {
        uint64_t before = r->head;
        int code = shared_ring_look(r);

        if (code != 0)
                return code;
        if (r->waits && shared_ring_used(r) <= r->size / 2)
                shared_ring_say_waits(r, false);
        for (size_t i = 0, room = r->size - shared_ring_used(r); i < n_parts && room > 0 && !r->waits; i++) {
                size_t n = parts[i].iov_len < room ? parts[i].iov_len : room;

                shared_ring_put(r, parts[i].iov_base, n);
                room -= n;
        }
        if (r->head != before)
                shared_ring_publish(r);
        *ret_n = (size_t)(r->head - before);
        return 0;
}

uint8_t *shared_ring_room(SharedRing *r, size_t least, size_t *ret_n) {
        size_t at = r->head & (r->size - 1), room;

        if (r->waits || shared_ring_look(r) != 0)
                return NULL;
        room = r->size - shared_ring_used(r);
        *ret_n = room < r->size - at ? room : r->size - at;
        return *ret_n < least ? NULL : r->bytes + at;
}

void shared_ring_advance(SharedRing *r, const uint8_t *at, size_t n) {
        assert(at == r->bytes + (r->head & (r->size - 1)));
        assert(n <= r->size - shared_ring_used(r));
        r->head += n;
        shared_ring_publish(r);
}

bool shared_ring_send_ref(SharedRing *r, const uint8_t *frame, size_t n, unsigned buffer) {
        if (r->waits || shared_ring_look(r) != 0 || r->n_pins == SHARED_RING_PINS || n > r->size - shared_ring_used(r))
                return false;
        shared_ring_put(r, frame, n);
        r->pins[(r->first_pin + r->n_pins++) % SHARED_RING_PINS] = (RingPin){ .end = r->head, .buffer = buffer };
        buffer_pool_use(r->pool, buffer);
        shared_ring_publish(r);
        return true;
}

bool shared_ring_reclaim(SharedRing *r) {
        return shared_ring_look(r) == 0 && r->n_pins > 0;
}

bool shared_ring_is_unread(SharedRing *r) {
        return shared_ring_look(r) == 0 && shared_ring_used(r) > 0;
}

void shared_ring_discard(SharedRing *r) {
        memory_file_free_pages(r->words, r->offset + r->size);
        memory_file_free_pages((void *)(uintptr_t)r->theirs, r->offset);
}

bool shared_ring_wait(SharedRing *r) {
        if (r->waits)
                return true; /* it was looked again after that was said */
        shared_ring_say_waits(r, true);
        atomic_thread_fence(memory_order_seq_cst); /* the other side: ring_reader_consume() */
        if (shared_ring_look(r) == 0 && shared_ring_used(r) > r->size / 2)
                return true;
        shared_ring_say_waits(r, false); /* what broke is found by the next write */
        return false;
}

int shared_ring_hear(SharedRing *r) {
        return ++r->n_told > r->n_waits ? SHARED_RING_E_BROKEN : 0;
}

void shared_ring_expect(SharedRing *r, const SharedTick *tick) {
        if (tick->is_due && (tick->next != r->told.next || tick->length != r->told.length)) {
                r->told = *tick;
                atomic_store_explicit(&r->words->tick, (uint32_t)tick->length, memory_order_relaxed);
                atomic_store_explicit(&r->words->next, tick->next, memory_order_relaxed);
        }
        r->tick = *tick;
}

bool shared_ring_take_ring(SharedRing *r) {
        bool rings = r->rings;

        r->rings = false;
        return rings;
}
