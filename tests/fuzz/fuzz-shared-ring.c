/*
 * The daemon's side of a ring in shared memory, whose other side is a stranger: its words are what the input says, at any time.
 * What is written lies in the ring as it was given, as long as the tail is one that can be, and a tail that cannot be is found
 * before a byte is overwritten that may still be read. Buffers of the pool are as often in use as they are told of.
 *
 *     steps of | what (1) | number (8) |
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/stream/shared-ring.h"

#define SIZE STREAM_RING_MIN
#define STEPS 256

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static SharedRing *ring; /* one for all inputs: to map it takes longer than to use it */
static BufferPool *pool;
static RingClientWords *theirs;
static uint8_t expected[SIZE];

static void must_be(int yes) {
        if (!yes)
                abort();
}

static void make(void) {
        must_be(shared_ring_new(SIZE, &ring, NULL) == 0 && buffer_pool_new(&pool) == 0 && buffer_pool_fill(pool) == 0);
        must_be(shared_ring_share(ring, pool));
        theirs = (RingClientWords *)(uintptr_t)ring->theirs;
}

static void reset(void) {
        while (ring->n_pins > 0) {
                buffer_pool_leave(pool, ring->pins[ring->first_pin].buffer);
                ring->first_pin = (ring->first_pin + 1) % SHARED_RING_PINS;
                ring->n_pins--;
        }
        must_be(pool->n_free == POOL_BUFFERS); /* none is lost */
        ring->head = ring->tail = ring->n_waits = ring->n_told = 0;
        ring->waits = ring->rings = false;
        ring->rung = 0;
        ring->tick = ring->told = (SharedTick){ .next = 0 };
        atomic_store(&ring->words->head, 0);
        atomic_store(&ring->words->waits, 0);
        atomic_store(&theirs->tail, 0);
        atomic_store(&theirs->waits, 1);
        atomic_store(&theirs->due, 0);
}

static bool tail_can_be(void) {
        return ring->head - atomic_load(&theirs->tail) <= ring->head - ring->tail;
}

static void expect(uint64_t at, const uint8_t *bytes, size_t n) {
        size_t place = at & (SIZE - 1), first = n < SIZE - place ? n : SIZE - place;

        memcpy(expected + place, bytes, first);
        memcpy(expected, bytes + first, n - first);
}

/* What may still be read is what was written. */
static void check(void) {
        must_be(ring->head - ring->tail <= SIZE && atomic_load(&ring->words->head) == ring->head);
        for (uint64_t at = ring->tail; at < ring->head; at += 251)
                must_be(ring->bytes[at & (SIZE - 1)] == expected[at & (SIZE - 1)]);
}

/* False: the subscriber broke the rules, and its stream ends. */
static bool write_some(uint64_t number) {
        static uint8_t bytes[2 * SIZE];
        size_t n = number % (SIZE + SIZE / 2), written = SIZE_MAX;
        uint64_t before = ring->head;
        bool can_be = tail_can_be();
        struct iovec parts[] = { { bytes, n / 3 }, { bytes + n / 3, n - n / 3 } };
        int r;

        memset(bytes, (int)(number >> 32), n);
        r = shared_ring_write(ring, parts, ARRAY_SIZE(parts), &written);
        must_be((r == 0) == can_be && (r == 0 || (r == SHARED_RING_E_BROKEN && ring->head == before)));
        if (r != 0)
                return false;
        must_be(written <= n && ring->head == before + written);
        expect(before, bytes, written);
        return true;
}

static void write_in_place(uint64_t number) {
        bool can_be = tail_can_be();
        size_t room = 0, n;
        uint8_t *at = shared_ring_room(ring, number % SIZE, &room);

        must_be(!at || (can_be && !ring->waits && room >= number % SIZE && room <= SIZE - (ring->head - ring->tail)));
        if (!at)
                return;
        must_be(at >= ring->bytes && at + room <= ring->bytes + SIZE);
        n = (number >> 16) % (room + 1);
        memset(at, (int)(number >> 40), n);
        expect(ring->head, at, n);
        shared_ring_advance(ring, at, n);
}

static void refer(uint64_t number) {
        static const uint8_t frame[200] = { 1, 2, 3 };
        uint64_t before = ring->head;
        unsigned buffer;
        size_t n = number % sizeof(frame);

        if (!buffer_pool_take(pool, &buffer))
                return;
        if (shared_ring_send_ref(ring, frame, n, buffer)) {
                must_be(pool->uses[buffer] == 2 && ring->head == before + n);
                expect(before, frame, n);
        } else
                must_be(pool->uses[buffer] == 1 && ring->head == before);
        buffer_pool_leave(pool, buffer);
}

static void play(uint8_t what, uint64_t number) {
        switch (what % 8) {
        case 0:
                atomic_store(&theirs->tail, number);
                break;
        case 1: /* an honest one */
                atomic_store(&theirs->tail, ring->tail + number % (ring->head - ring->tail + 1));
                break;
        case 2:
                atomic_store(&theirs->waits, (uint32_t)number);
                atomic_store(&theirs->due, number >> 3);
                break;
        case 3:
                write_in_place(number);
                break;
        case 4:
                refer(number);
                break;
        case 5:
                (void)shared_ring_reclaim(ring);
                (void)shared_ring_take_ring(ring);
                break;
        case 6:
                must_be(!shared_ring_wait(ring) || ring->waits);
                must_be(shared_ring_hear(ring) == (ring->n_told > ring->n_waits ? SHARED_RING_E_BROKEN : 0));
                break;
        default:
                shared_ring_expect(ring, &(SharedTick){ .next = number, .length = number >> 40, .is_due = number & 1 });
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        if (!ring)
                make();
        reset();
        for (size_t i = 0; i < STEPS && length >= 9; i++, bytes += 9, length -= 9) {
                uint64_t number;

                memcpy(&number, bytes + 1, sizeof(number));
                if (bytes[0] % 16 >= 8) {
                        if (!write_some(number))
                                return 0;
                } else
                        play(bytes[0], number);
                check();
        }
        return 0;
}
