/*
 * A bounded lock-free queue of pointers with one producer and one consumer, which passes samples between two threads. Ownership
 * moves with the pointer. The struct is not padded to separate cache lines: it is used once in a tick, when it has left the caches,
 * so an additional cache line costs more than sharing one between the two sides.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Queue {
        void **slots;
        size_t mask;
        _Atomic(size_t) head; /* written by the producer */
        _Atomic(size_t) tail; /* written by the consumer */
} Queue;

#define QUEUE_NULL ((Queue){ .slots = NULL })

/* capacity is rounded up to a power of two. -ENOMEM. */
int queue_init(Queue *q, size_t capacity);
/* The caller must pop the remaining items first: the queue cannot free them. */
void queue_deinit(Queue *q);

/* Producer only; false if full. */
bool queue_push(Queue *q, void *item);
/* Consumer only; NULL if empty. */
void *queue_pop(Queue *q);
/* Any thread; true only if the queue was empty at some time during the call. */
bool queue_is_empty(const Queue *q);
/* Consumer only; the producer may have pushed more by now. */
size_t queue_count(const Queue *q);
