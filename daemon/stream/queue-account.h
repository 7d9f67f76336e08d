/*
 * For main, dispatcher and outboxes: how many bytes the queues of several subscribers may hold together, and hold. One account
 * is that of a uid, another one that of all. Each number has one writer and nothing is written by its order to another one: a
 * reader that sees an older value acts on it a moment later.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct QueueAccount {
        _Atomic(size_t) limit; /* main: what is not taken by what subscribers hold for good */
        _Atomic(size_t) used;  /* the holder of the dispatcher's lock: of each queue what is above OUTBOX_FLOOR */
        size_t n_queues;       /* the same: that are above it */
} QueueAccount;

static inline size_t queue_account_used(const QueueAccount *a) {
        return atomic_load_explicit(&a->used, memory_order_relaxed);
}

static inline size_t queue_account_limit(const QueueAccount *a) {
        return atomic_load_explicit(&a->limit, memory_order_relaxed);
}

/* So many more would be above its limit. */
static inline bool queue_account_is_short(const QueueAccount *a, size_t more) {
        const size_t used = queue_account_used(a), limit = queue_account_limit(a);

        return used > limit || more > limit - used;
}

/* Of one queue. */
static inline void queue_account_change(QueueAccount *a, size_t before, size_t after) {
        a->n_queues = a->n_queues - (before > 0) + (after > 0);
        atomic_store_explicit(&a->used, queue_account_used(a) - before + after, memory_order_relaxed);
}

static inline void queue_account_set_limit(QueueAccount *a, size_t limit) {
        atomic_store_explicit(&a->limit, limit, memory_order_relaxed);
}
