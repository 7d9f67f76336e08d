/*
 * For the hand-over of samples between two threads: a bounded lock-free queue of pointers with one producer and one
 * consumer. Ownership of what a pointer names moves with it. It is small: what goes through it comes once in a tick, when
 * all that it is made of has left the caches, so that each cache line costs more than two sides that write the same one.
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
/* What is still in it is the caller's to pop first: the queue does not know how to free it. */
void queue_deinit(Queue *q);

/* Producer only; false if full. */
bool queue_push(Queue *q, void *item);
/* Consumer only; NULL if empty. */
void *queue_pop(Queue *q);
/* Any thread; true only if it was empty at some time during the call. */
bool queue_is_empty(const Queue *q);
/* Consumer only; the producer may have pushed more by now. */
size_t queue_count(const Queue *q);
