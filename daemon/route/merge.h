/*
 * For the dispatcher: batches of all CPUs in one order of time. A heap of the batches that still have entries, by the
 * time of the next one, so that an entry costs O(log batches) at most and a run of entries of one batch costs one
 * step. Batches must be sorted (batch_sort()); two of one CPU may overlap.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/model/batch.h"

typedef struct Merge {
        Batch **heap;
        size_t n, capacity;
} Merge;

#define MERGE_NULL ((Merge){ .heap = NULL })

/* Batches that are still in it stay the caller's. */
void merge_deinit(Merge *m);

/* Takes a batch that has entries. -ENOMEM: not taken. */
int merge_add(Merge *m, Batch *b);

/*
 * The next entries in order that are not newer than `until`: a run of one batch, which is over for them. 0 if there is
 * none. *ret_emptied: the batch has no entries left and is no longer in the merge.
 */
size_t merge_next(Merge *m, nsec_t until, Batch **ret_batch, const BatchEntry **ret_first, bool *ret_emptied);

/* The time of the oldest entry; false if there is none. */
static inline bool merge_oldest(const Merge *m, nsec_t *ret_time) {
        if (m->n == 0)
                return false;
        *ret_time = m->heap[0]->entries[m->heap[0]->next].time;
        return true;
}
