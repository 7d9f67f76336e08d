/* For this folder alone: what waits for its turn. order-fill.c reads it, order.c gives it. */
#pragma once

#include "client/recording/runs.h"
#include "client/recording/whole.h"

typedef enum Queue {
        QUEUE_NONE,
        QUEUE_MEMORY_SORTED,
        QUEUE_MEMORY_REST,
        QUEUE_RUNS,
        QUEUE_FILE_REST,
} Queue;

struct Order {
        Whole *whole;            /* NULL: it does not fit in memory, and there is what follows */
        size_t limit;            /* bytes */
        Memory memory;
        Runs runs;
        Temporary rest_file;
        Run rest;                /* of rest_file */
        uint64_t sequence;       /* of the last record that was read: its place, or the next number */
        bool has_block;          /* of records that stay where they are, in Source.held */
        uint64_t latest, latest_before, safe; /* ns: of all that were read, at the round before; and none that is older follows */
        uint64_t given_until;    /* ns: the latest time that was given */
        bool was_checked;        /* whether rounds keep what they promise */
        bool has_rounds;         /* and they do */
        bool is_sorted;          /* the recording is in the order of time as it is */
        bool has_ended;
        Queue given;             /* from where the last record was */
        int failure;             /* what is returned from now on */
};

/* order-fill.c: before the first record. 0; -ENOMEM, -errno with a text */
int order_begin(perfd_recording *r);
/* Reads until something may be given that could not before, or the end. 0; -ENOMEM, -errno with a text */
int order_fill(perfd_recording *r, Order *o);
/* order.c: the next record in the order that was chosen, which is not the recording's. */
int order_next(perfd_recording *r, const perfd_recorded **ret);
/* Takes NULL. */
void order_free(Order *o);
