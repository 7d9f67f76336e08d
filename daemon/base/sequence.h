/*
 * A sequence lock for a few words that many threads write now and then and read often: nobody waits. A writer that finds
 * others at it gives up; a reader copies, and looks whether the sequence moved meanwhile. What it guards has to be relaxed
 * atomics, so that a torn copy is only ever thrown away, never undefined. Any thread.
 *
 * The fence of sequence_take() pairs with that of sequence_stood(): who has copied a word of a write sees that the sequence is
 * odd, or another one. sequence_give() pairs with sequence_look() and the next sequence_take(): they see the whole write.
 *
 *     sequence | even: at rest | odd: being written |
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SEQUENCE_TRIES 64

typedef _Atomic(uint32_t) Sequence;

/* To write. False: others are at it, nothing may be written. *ret is for sequence_give(). */
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

/* To read. False: it is being written now. *ret is for sequence_stood(). */
static inline bool sequence_look(const Sequence *q, uint32_t *ret) {
        *ret = atomic_load_explicit((Sequence *)q, memory_order_acquire);
        return !(*ret & 1);
}

/* After the copy: it is whole. */
static inline bool sequence_stood(const Sequence *q, uint32_t looked) {
        atomic_thread_fence(memory_order_acquire);
        return atomic_load_explicit((Sequence *)q, memory_order_relaxed) == looked;
}
