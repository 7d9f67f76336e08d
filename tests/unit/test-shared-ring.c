/*
 * Both sides of a stream in shared memory: what goes in comes out, at every place of the ring; who sleeps is woken, once;
 * and what a subscriber can do to the files, its tail and its bells.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/thread.h"
#include "daemon/stream/shared-ring.h"

#define SIZE STREAM_RING_MIN
#define PATIENCE_MS 20000
#ifndef HAND_OVERS
#define HAND_OVERS 100000u
#endif

typedef struct Pair {
        SharedRing *ring;
        RingReader reader;
        uint64_t in, out; /* bytes */
} Pair;

static uint8_t byte_of(uint64_t i) {
        return (uint8_t)(i * 31 + (i >> 8) * 7);
}

static void pair_init(Pair *p) {
        *p = (Pair){ .ring = NULL };
        assert_int_equal(shared_ring_new(SIZE, &p->ring, NULL), 0);
        assert_int_equal(ring_reader_open(&p->reader, p->ring->fds, SIZE, p->ring->offset), 0);
        shared_ring_close_fds(p->ring);
}

static void pair_deinit(Pair *p) {
        ring_reader_close(&p->reader);
        ring_reader_close(&p->reader);
        p->ring = shared_ring_free(p->ring);
}

/* n more bytes in two parts; how many there was room for. */
static size_t pair_write(Pair *p, size_t n) {
        static uint8_t bytes[2 * SIZE];
        struct iovec parts[] = { { bytes, n / 3 }, { bytes + n / 3, n - n / 3 } };
        size_t written = SIZE_MAX;

        for (size_t i = 0; i < n; i++)
                bytes[i] = byte_of(p->in + i);
        assert_int_equal(shared_ring_write(p->ring, parts, ARRAY_SIZE(parts), &written), 0);
        p->in += written;
        return written;
}

/* n of those that are there, all of them checked. */
static bool pair_read(Pair *p, size_t n) {
        const uint8_t *bytes;
        size_t there;

        assert_int_equal(ring_reader_peek(&p->reader, &bytes, &there), 0);
        assert_int_equal(there, p->in - p->out);
        assert_true(n <= there);
        for (size_t i = 0; i < there; i++)
                assert_int_equal(bytes[i], byte_of(p->out + i));
        p->out += n;
        return ring_reader_consume(&p->reader, n);
}

static void test_sizes(void **state) {
        const size_t bad[] = { 0, 1, SIZE / 2, SIZE - 1, SIZE + 1, 3 * SIZE, STREAM_RING_MAX + 1, 2 * STREAM_RING_MAX, SIZE_MAX };
        SharedRing *r = NULL;
        Explanation e = EXPLANATION_NULL;

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                assert_int_equal(shared_ring_check(bad[i], &e), REFUSED_INVALID);
                assert_string_equal(e.reason, "bad-ring");
                assert_non_null(strstr(e.text, "PERFD_NO_RING in libperfd"));
        }
        for (size_t size = STREAM_RING_MIN; size <= STREAM_RING_MAX; size *= 2) {
                assert_int_equal(shared_ring_check(size, NULL), 0);
                assert_int_equal(shared_ring_new(size, &r, NULL), 0);
                r = shared_ring_free(r);
        }
        assert_null(shared_ring_free(NULL));
}

/* What a stranger who holds both fds can do to what the daemon has mapped. */
static void test_files(void **state) {
        SharedRing *r;
        RingReader reader = RING_READER_NULL;
        int swapped[STREAM_RING_FDS];
        size_t length;

        assert_int_equal(shared_ring_new(SIZE, &r, NULL), 0);
        length = r->offset + SIZE;
        assert_int_equal(lseek(r->fds[0], 0, SEEK_END), length);
        assert_int_equal(lseek(r->fds[1], 0, SEEK_END), r->offset);
        for (size_t i = 0; i < STREAM_RING_FDS; i++) {
                off_t own = i == 0 ? (off_t)length : (off_t)r->offset;

                assert_int_equal(ftruncate(r->fds[i], own - 1), -1);
                assert_int_equal(errno, i == 0 ? EINVAL : EPERM);
                assert_int_equal(ftruncate(r->fds[i], own + 1), -1);
                assert_int_equal(errno, i == 0 ? EINVAL : EPERM);
                assert_int_equal(fcntl(r->fds[i], F_ADD_SEALS, F_SEAL_WRITE), -1);
                assert_int_equal(errno, EPERM);
        }
        assert_ptr_equal(mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, r->fds[0], 0), MAP_FAILED);
        assert_int_equal(errno, EACCES);
        assert_int_equal(pwrite(r->fds[0], "x", 1, 0), -1);
        assert_int_equal(errno, EBADF);
        assert_int_equal(fallocate(r->fds[0], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)length), -1);
        assert_int_equal(errno, EBADF);

        swapped[0] = r->fds[1];
        swapped[1] = r->fds[0];
        assert_int_equal(ring_reader_open(&reader, swapped, SIZE, r->offset), RING_READER_E_UNUSABLE);
        assert_int_equal(ring_reader_open(&reader, r->fds, 2 * SIZE, r->offset), RING_READER_E_UNUSABLE);
        assert_int_equal(ring_reader_open(&reader, r->fds, SIZE, 64), RING_READER_E_UNUSABLE);
        assert_int_equal(ring_reader_open(&reader, r->fds, SIZE + 1, r->offset), RING_READER_E_UNUSABLE);
        assert_false(ring_reader_is_open(&reader));
        assert_int_equal(ring_reader_open(&reader, r->fds, SIZE, r->offset), 0);
        ring_reader_close(&reader);
        shared_ring_free(r);
}

/* Whatever the lengths are, at every place. */
static void test_wrap(void **state) {
        unsigned seed = 1;
        Pair p;

        pair_init(&p);
        while (p.out < 40 * SIZE) {
                size_t n = 1 + (size_t)rand_r(&seed) % (SIZE / 3), room = SIZE - (size_t)(p.in - p.out);

                assert_int_equal(pair_write(&p, n), n < room ? n : room);
                assert_false(pair_read(&p, 1 + (size_t)rand_r(&seed) % (size_t)(p.in - p.out))); /* nobody waits */
        }
        pair_deinit(&p);
}

/* Written in place; false: there is not so much room in one piece. */
static bool pair_place(Pair *p, size_t n) {
        size_t room = 0, at = p->in % SIZE, free = SIZE - (size_t)(p->in - p->out);
        uint8_t *to = shared_ring_room(p->ring, n, &room);

        assert_int_equal(to != NULL, n <= free && n <= SIZE - at);
        if (!to)
                return false;
        assert_int_equal(room, free < SIZE - at ? free : SIZE - at);
        assert_ptr_equal(to, p->ring->bytes + at);
        for (size_t i = 0; i < n; i++)
                to[i] = byte_of(p->in + i);
        shared_ring_advance(p->ring, to, n);
        p->in += n;
        return true;
}

/* In place, by turns with what is copied. */
static void test_place(void **state) {
        unsigned seed = 2, n_placed = 0, n_refused = 0;
        Pair p;

        pair_init(&p);
        while (p.out < 40 * SIZE) {
                size_t n = 1 + (size_t)rand_r(&seed) % (SIZE / 3);

                if (rand_r(&seed) % 3 == 0)
                        (void)pair_write(&p, n);
                else if (pair_place(&p, n))
                        n_placed++;
                else
                        n_refused++;
                if (p.in > p.out)
                        assert_false(pair_read(&p, 1 + (size_t)rand_r(&seed) % (size_t)(p.in - p.out)));
        }
        assert_true(n_placed > 30 && n_refused > 30);
        pair_deinit(&p);
}

static void test_place_full(void **state) {
        size_t n;
        Pair p;

        pair_init(&p);
        assert_true(pair_place(&p, SIZE));
        assert_true(shared_ring_take_ring(p.ring)); /* it sleeps at the beginning */
        assert_false(pair_place(&p, 1));
        assert_true(shared_ring_wait(p.ring));
        assert_false(pair_read(&p, SIZE / 2 - 1));
        assert_null(shared_ring_room(p.ring, 1, &n)); /* there is room, but it waits */
        assert_true(pair_read(&p, SIZE / 2 + 1));
        assert_int_equal(pair_write(&p, 1), 1);
        assert_true(pair_place(&p, 1));
        atomic_store(&p.reader.own->tail, SIZE + 3);
        assert_null(shared_ring_room(p.ring, 1, &n));
        pair_deinit(&p);
}

static void test_full(void **state) {
        Pair p;

        pair_init(&p);
        assert_int_equal(pair_write(&p, SIZE + 1000), SIZE);
        assert_int_equal(pair_write(&p, 1), 0);
        assert_true(shared_ring_wait(p.ring));
        assert_true(shared_ring_wait(p.ring)); /* the same wait */
        assert_int_equal(p.ring->n_waits, 1);

        assert_false(pair_read(&p, SIZE / 2 - 1)); /* too early: the daemon has not to be told, and takes nothing */
        assert_int_equal(pair_write(&p, 1), 0);
        assert_true(pair_read(&p, 1));
        assert_false(pair_read(&p, 1)); /* it was told */
        assert_int_equal(shared_ring_hear(p.ring), 0);
        assert_int_equal(pair_write(&p, SIZE), SIZE / 2 + 1);

        /* room came before the wait: there is none */
        assert_false(pair_read(&p, SIZE));
        assert_false(shared_ring_wait(p.ring));
        assert_int_equal(pair_write(&p, SIZE), SIZE);
        assert_true(shared_ring_wait(p.ring));
        assert_true(pair_read(&p, SIZE));
        assert_int_equal(shared_ring_hear(p.ring), 0);
        pair_deinit(&p);
}

static void test_bells(void **state) {
        Pair p;

        pair_init(&p);
        assert_int_equal(pair_write(&p, 5), 5);
        assert_true(shared_ring_take_ring(p.ring)); /* it sleeps at the beginning */
        ring_reader_disarm(&p.reader);
        assert_int_equal(pair_write(&p, 5), 5);
        assert_false(shared_ring_take_ring(p.ring)); /* it does not sleep */
        ring_reader_arm(&p.reader);
        assert_int_equal(pair_write(&p, 10), 10);
        assert_true(shared_ring_take_ring(p.ring));
        assert_false(shared_ring_take_ring(p.ring));
        assert_int_equal(pair_write(&p, 10), 10); /* it was rung for */
        assert_false(shared_ring_take_ring(p.ring));
        ring_reader_disarm(&p.reader);
        assert_int_equal(pair_write(&p, 10), 10);
        assert_false(shared_ring_take_ring(p.ring));
        ring_reader_arm(&p.reader);
        assert_int_equal(pair_write(&p, SIZE), SIZE - 40);
        assert_true(shared_ring_take_ring(p.ring));
        ring_reader_arm(&p.reader);
        assert_int_equal(pair_write(&p, 1), 0); /* nothing came: nothing to wake for */
        assert_false(shared_ring_take_ring(p.ring));
        pair_deinit(&p);
}

static void test_hostile_tails(void **state) {
        const uint64_t bad[] = { 1001, 499, 0, 1000 + SIZE, 500 - SIZE, UINT64_MAX, 1000 + (1ULL << 63), 1ULL << 32 };
        struct iovec part = { (void *)(uintptr_t)"x", 1 };

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                size_t n = 77;
                Pair p;

                pair_init(&p);
                assert_int_equal(pair_write(&p, 1000), 1000);
                (void)pair_read(&p, 500);
                assert_int_equal(pair_write(&p, 0), 0); /* seen */
                atomic_store(&p.reader.own->tail, bad[i]);
                assert_int_equal(shared_ring_write(p.ring, &part, 1, &n), SHARED_RING_E_BROKEN);
                assert_int_equal(n, 77);
                assert_false(shared_ring_wait(p.ring));
                atomic_store(&p.reader.own->tail, 1000);
                assert_int_equal(shared_ring_write(p.ring, &part, 1, &n), 0);
                pair_deinit(&p);
        }
}

/* Telling of room costs the daemon a wakeup: so often as it has waited, and not more. */
static void test_told_too_often(void **state) {
        Pair p;

        pair_init(&p);
        assert_int_equal(shared_ring_hear(p.ring), SHARED_RING_E_BROKEN);
        pair_deinit(&p);

        pair_init(&p);
        for (int i = 0; i < 3; i++) {
                assert_int_equal(pair_write(&p, SIZE), SIZE);
                assert_true(shared_ring_wait(p.ring));
                (void)pair_read(&p, SIZE);
        }
        for (int i = 0; i < 3; i++)
                assert_int_equal(shared_ring_hear(p.ring), 0);
        assert_int_equal(shared_ring_hear(p.ring), SHARED_RING_E_BROKEN);
        pair_deinit(&p);
}

/* --- two threads --- */

/* The reader looks through the daemon's mapping, so that TSan sees both sides of one memory, and up to its end only. */
typedef struct Hands {
        SharedRing *ring;
        int bytes, room; /* eventfds for the bells, which are the socket's else */
        uint64_t total;
} Hands;

static void bell_ring(int fd) {
        assert(write(fd, &(uint64_t){ 1 }, sizeof(uint64_t)) == sizeof(uint64_t));
}

static void bell_wait(int fd) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        uint64_t n;

        assert(poll(&p, 1, PATIENCE_MS) == 1);
        assert(read(fd, &n, sizeof(n)) == sizeof(n));
}

static int run_reader(void *userdata) {
        Hands *h = userdata;
        RingReader r = { .words = h->ring->words, .own = (RingClientWords *)(uintptr_t)h->ring->theirs,
                         .bytes = h->ring->bytes, .size = SIZE, .n_waits = 1 };
        unsigned seed = 3;

        while (r.tail < h->total) {
                size_t at = r.tail & (SIZE - 1), n;
                const uint8_t *bytes;

                assert(ring_reader_peek(&r, &bytes, &n) == 0);
                if (n == 0) {
                        ring_reader_arm(&r);
                        assert(ring_reader_peek(&r, &bytes, &n) == 0);
                        if (n == 0)
                                bell_wait(h->bytes);
                        ring_reader_disarm(&r);
                        continue;
                }
                n = n < SIZE - at ? n : SIZE - at;
                if (rand_r(&seed) % 8 == 0)
                        n = 1 + (size_t)rand_r(&seed) % n;
                for (size_t i = 0; i < n; i++)
                        assert(bytes[i] == byte_of(r.tail + i));
                if (ring_reader_consume(&r, n))
                        bell_ring(h->room);
        }
        return 0;
}

static void test_threads(void **state) {
        static uint8_t bytes[3000];
        Hands h = { .total = (uint64_t)HAND_OVERS * 200 };
        unsigned seed = 2;
        uint64_t sent = 0;
        Thread thread = { 0 };

        assert_int_equal(shared_ring_new(SIZE, &h.ring, NULL), 0);
        h.bytes = eventfd(0, EFD_CLOEXEC);
        h.room = eventfd(0, EFD_CLOEXEC);
        assert_int_equal(thread_start(&thread, THREAD_READER, "reader", -1, run_reader, &h), 0);
        while (sent < h.total) {
                struct iovec part = { bytes, 1 + (size_t)rand_r(&seed) % sizeof(bytes) };
                size_t n;

                if (part.iov_len > h.total - sent)
                        part.iov_len = h.total - sent;
                for (size_t i = 0; i < part.iov_len; i++)
                        bytes[i] = byte_of(sent + i);
                assert_int_equal(shared_ring_write(h.ring, &part, 1, &n), 0);
                if (shared_ring_take_ring(h.ring))
                        bell_ring(h.bytes);
                sent += n;
                if (n == 0 && shared_ring_wait(h.ring)) {
                        bell_wait(h.room);
                        assert_int_equal(shared_ring_hear(h.ring), 0);
                }
        }
        assert_int_equal(thread_join(&thread), 0);
        assert_int_equal(atomic_load(&h.ring->theirs->tail), h.total);
        close_fd(h.bytes);
        close_fd(h.room);
        shared_ring_free(h.ring);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sizes),
                cmocka_unit_test(test_files),
                cmocka_unit_test(test_wrap),
                cmocka_unit_test(test_place),
                cmocka_unit_test(test_place_full),
                cmocka_unit_test(test_full),
                cmocka_unit_test(test_bells),
                cmocka_unit_test(test_hostile_tails),
                cmocka_unit_test(test_told_too_often),
                cmocka_unit_test(test_threads),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
