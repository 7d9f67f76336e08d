/*
 * Streams, many items at once: for programs that count, sum or select, and look at few items, or at none. What all items have is
 * in arrays; the numbers of one field are a column.
 *
 * A stream is read in one of two ways: with perfd_callbacks.item by perfd_client_process(); or without, by
 * perfd_stream_next_batch(). All other callbacks are called in both, at their place in the stream: a batch never goes beyond a gap,
 * a new descriptor or an event that was removed. Losses and other records of the kernel are items of the batch, at their place.
 *
 * One thread at a time, as all of a client.
 */
#pragma once

#include "client.h"
#include "declarations.h"
#include "item.h"

PERFD_BEGIN_DECLARATIONS

/* An item where it lies. */
typedef struct perfd_packed_item perfd_packed_item;

#define PERFD_BATCH_MAX 2048 /* items */

/*
 * Items that follow each other in the stream, in its order. Each array has `n` elements. All of it, and what was got of it, is valid
 * until the next call of perfd_stream_next_batch() or perfd_client_process(), and until the client is freed.
 */
typedef struct perfd_batch {
        size_t n;              /* at most PERFD_BATCH_MAX; 0: nothing is there, wait */
        const uint64_t *times; /* ns of the stream's clock */
        const uint32_t *events; /* ids of their descriptors; 0: side records of the host */
        const uint32_t *cpus, *pids, *tids;
        const uint8_t *records; /* enum perfd_record */
        const perfd_packed_item *const *items; /* for perfd_batch_item() */
        size_t n_samples; /* items that are PERFD_SAMPLE: others are there too if it is less than n */
        uint64_t lost;    /* sum of perfd_item_lost(): what the kernel could not write, between the items of this batch */
        uint64_t missed;  /* items of the gaps since the batch before, which the `gap` callback describes */
} perfd_batch;

/* Numbers of one field, of each sample of one event in a batch. */
typedef struct perfd_column {
        const perfd_field *field;
        size_t n;               /* samples of the event */
        size_t count;           /* numbers of each: 1, or the elements of an array */
        const uint64_t *values; /* n * count: all of the first sample, then of the second; widened to 64 bits, as perfd_value.numbers */
        const uint32_t *rows;   /* n: where each sample is in the arrays of the batch */
} perfd_column;

/*
 * Reads and writes what is possible without blocking, until there are items. Call it until *ret_batch has none (n is 0), then wait
 * as for perfd_client_process(). 0; PERFD_E_STATE: the connection is no stream, or one with an `item` callback; PERFD_E_ENDED,
 * PERFD_E_CLOSED, PERFD_E_PROTOCOL, -errno as perfd_client_process(). *ret_batch is the client's.
 */
int perfd_stream_next_batch(perfd_client *client, const perfd_batch **ret_batch);

/*
 * One of batch->items, for all that its arrays do not have: valid until the next call of this function or of
 * perfd_batch_column(). NULL: it does not lie in this batch; other pointers into its bytes are not told apart.
 */
const perfd_item *perfd_batch_item(const perfd_batch *batch, const perfd_packed_item *item);

/*
 * The column of a field, of the event with this id. It takes one pass over the batch for an event, and one over its samples for each
 * field; a second call gives the same column. 0; PERFD_E_INVALID: there is no such event or field, or it has no numbers, or as many as
 * each sample says: the message says which fields can be columns; PERFD_E_PROTOCOL: a sample is not what its descriptor says;
 * -ENOMEM.
 */
int perfd_batch_column(const perfd_batch *batch, uint32_t event, const char *field, const perfd_column **ret_column);

PERFD_END_DECLARATIONS
