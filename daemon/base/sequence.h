/*
 * A sequence lock for a few words that many threads write rarely and read often; no thread waits. A writer gives up if another one is
 * writing; a reader copies, and checks whether the sequence has changed meanwhile. The guarded words must be relaxed atomics, so that
 * a torn copy is discarded, and never undefined behaviour. Any thread.
 *
 * The fence of sequence_take() pairs with that of sequence_stood(): who has copied a word of a write sees that the sequence is
 * odd, or another one. sequence_give() pairs with sequence_look() and the next sequence_take(): they see the complete write.
 *
 *     sequence | even: at rest | odd: being written |
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SEQUENCE_TRIES 64

typedef _Atomic(uint32_t) Sequence;

/* Begins a write. False: another thread writes, do not write. *ret is for sequence_give(). */
static inline bool sequence_take(Sequence *q, uint32_t *ret) {
        for (int i = 0; i < SEQUENCE_TRIES; i++) {
                uint32_t s = atomic_load_explicit(q, memory_order_relaxed);

                if (!(s & 1) && atomic_compare_exchange_weak_explicit(q, &s, s + 1, memory_order_acquire, memory_order_relaxed)) {
                        atomic_thread_fence(memory_order_release);
                        *ret = s;
                        return true;
                }
        }
        return false;
}

static inline void sequence_give(Sequence *q, uint32_t taken) {
        atomic_store_explicit(q, taken + 2, memory_order_release);
}

/* Begins a read. False: a write is in progress. *ret is for sequence_stood(). */
static inline bool sequence_look(const Sequence *q, uint32_t *ret) {
        *ret = atomic_load_explicit((Sequence *)q, memory_order_acquire);
        return !(*ret & 1);
}

/* After the copy. True: the copy is consistent. */
static inline bool sequence_stood(const Sequence *q, uint32_t looked) {
        atomic_thread_fence(memory_order_acquire);
        return atomic_load_explicit((Sequence *)q, memory_order_relaxed) == looked;
}
