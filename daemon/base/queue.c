/*
 * The producer publishes a slot with a release store of head, the consumer gives it back with a release store of
 * tail; both indexes only grow and are masked on use. Each acquire load of an index pairs with the other side's release store;
 * the relaxed loads are of the index that the calling side writes itself.
 */
#include "daemon/base/queue.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/base/error-trail.h"

int queue_init(Queue *q, size_t capacity) {
        size_t n = 1;

        assert(capacity > 0 && capacity < SIZE_MAX / 2 / sizeof(void *));
        while (n < capacity)
                n *= 2;
        *q = QUEUE_NULL;
        q->slots = calloc(n, sizeof(void *));
        if (!q->slots)
                return error_origin(-ENOMEM);
        q->mask = n - 1;
        return 0;
}

void queue_deinit(Queue *q) {
        free(q->slots);
        *q = QUEUE_NULL;
}

bool queue_push(Queue *q, void *item) {
        size_t head = atomic_load_explicit(&q->head, memory_order_relaxed);

        assert(item);
        if (head - atomic_load_explicit(&q->tail, memory_order_acquire) > q->mask)
                return false;
        q->slots[head & q->mask] = item;
        atomic_store_explicit(&q->head, head + 1, memory_order_release);
        return true;
}

void *queue_pop(Queue *q) {
        size_t tail = atomic_load_explicit(&q->tail, memory_order_relaxed);
        void *item;

        if (tail == atomic_load_explicit(&q->head, memory_order_acquire))
                return NULL;
        item = q->slots[tail & q->mask];
        atomic_store_explicit(&q->tail, tail + 1, memory_order_release);
        return item;
}

bool queue_is_empty(const Queue *q) {
        return atomic_load_explicit(&q->tail, memory_order_acquire) ==
               atomic_load_explicit(&q->head, memory_order_acquire);
}

size_t queue_count(const Queue *q) {
        size_t tail = atomic_load_explicit(&q->tail, memory_order_acquire);

        return atomic_load_explicit(&q->head, memory_order_acquire) - tail;
}
