/*
 * For dispatcher and outboxes: memory for packets that several subscribers read where they lie. Who is told of a buffer has it
 * until its tail says that it has read what told it (shared-ring.h); so a packet is written once, however many read it.
 *
 *     | buffer 0, POOL_BUFFER bytes | buffer 1 | ...     a file that only we can write, whose memory goes with the last of us
 *
 * Made by main for a subscription; buffers are the dispatcher's. The file has no memory before a second subscriber asks for
 * it, and then all that it ever needs. What was given back last is taken first: it is still in a cache.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/cleanup.h"

#define POOL_BUFFER ((size_t)64 << 10) /* bytes */
#define POOL_BUFFERS 32U               /* what a subscription brings in two ticks at a million samples a second */
#define POOL_BYTES (POOL_BUFFERS * POOL_BUFFER)

typedef struct BufferPool {
        atomic_uint n_refs; /* of main and of subscribers */
        int fd;             /* subscribers get another one of the same file, for reading */
        uint8_t *bytes;
        bool has_memory; /* set before the dispatcher knows of a second subscriber */
        unsigned uses[POOL_BUFFERS];
        unsigned n_free;
        uint8_t free[POOL_BUFFERS]; /* of these, the last one is taken next */
        bool outlives; /* perfd ends: what was written can be read behind that. Dispatcher */
        unsigned n_sharers; /* while the dispatcher compares pools */
} BufferPool;

/* 0, or what the system says: -EMFILE, -ENOMEM, ... Any thread. */
int buffer_pool_new(BufferPool **ret);
/* Buffers can be taken from now on: all of its memory is there, so that none can be missing later. 0, or -errno. Main. */
int buffer_pool_fill(BufferPool *p);
/* Any thread. */
BufferPool *buffer_pool_ref(BufferPool *p);
BufferPool *buffer_pool_unref(BufferPool *p);
DEFINE_CLEANUP(BufferPool *, buffer_pool_unref)

/* One that nobody uses, used once from now on; NULL: there is none. Dispatcher, once it is filled. */
uint8_t *buffer_pool_take(BufferPool *p, unsigned *ret_buffer);
/* Once more, and once less. Dispatcher. */
void buffer_pool_use(BufferPool *p, unsigned buffer);
void buffer_pool_leave(BufferPool *p, unsigned buffer);
