/* For packets and next-batch.c: the items of a packet in arrays. */
#pragma once

#include "client/perfd/batch.h"
#include "client/stream/stream.h"

#define BATCH_BUCKETS 64

typedef struct Batch {
        perfd_batch shown;
        perfd_client *client;
        const uint8_t *end; /* of the packet */
        const ItemLayout *only; /* all items have this one; NULL: not so */
        uint64_t number;    /* of this batch */
        uint64_t missed;    /* items of gaps, up to here */
        int error;          /* of an item that is none */
        struct BatchRows *rows[BATCH_BUCKETS]; /* of events that columns were asked of */
        struct BatchColumn *columns[BATCH_BUCKETS];
        uint64_t times[PERFD_BATCH_MAX];
        const uint8_t *items[PERFD_BATCH_MAX]; /* where the field of each begins */
        uint32_t events[PERFD_BATCH_MAX], cpus[PERFD_BATCH_MAX], pids[PERFD_BATCH_MAX], tids[PERFD_BATCH_MAX];
        uint8_t records[PERFD_BATCH_MAX];
        uint8_t numbers[PERFD_BATCH_MAX]; /* where its numbers begin, from there; 0: its layout is not known */
} Batch;

/* NULL: no memory. */
Batch *batch_new(perfd_client *c);
/* It is empty, and gets items of a packet that ends there. */
void batch_begin(Batch *b, const uint8_t *end);
/* As many items as lie here, at least as far as they are written as perfd does, and as there is room; how many. */
size_t batch_take(Batch *b, Wire *w);
/* One item. False: there is no room. */
bool batch_add(Batch *b, const uint8_t *field, const uint8_t *bytes, const uint8_t *end);

/* next-batch.c: what was found to be wrong by the walk over the items, or since, by who looked at one. PERFD_E_PROTOCOL */
int stream_check_batch(perfd_client *c);
/* It is about to be given to the caller. */
void stream_count_batch(Stream *s);

/* column.c: with its columns. Takes NULL. */
void batch_free(Batch *b);
