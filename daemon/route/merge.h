/*
 * For the dispatcher: batches of all CPUs in one order of time. Batches must be sorted (batch_seal()); two of one CPU
 * may overlap. What is on top costs O(log CPUs): a batch that is not older than the one before it of its CPU waits
 * behind that one, and does not take part.
 *
 *     keys     | - | top | 2 | 3 | ...          the older one of 2 i and 2 i + 1; the last half are those of leaves
 *     leaves   | next entry of a batch, and the batches behind it | ...
 *     runs     | entries of one batch that follow each other | ...      in order, worked out ahead of merge_next()
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/model/batch.h"

#define MERGE_RUNS 64 /* worked out at a time: until then memory has come, and is still in the cache */

typedef struct MergeLeaf {
        const BatchEntry *next, *end; /* of `first` */
        int64_t key_behind;           /* that of the entry behind `next`, if there is one: looked up ahead */
        Batch *first, *last;          /* of one CPU, each not older than the one before; NULL: free */
} MergeLeaf;

typedef struct MergeRun {
        Batch *batch;
        const BatchEntry *first;
        size_t n;
        bool empties; /* it is the last one of its batch */
} MergeRun;

typedef struct Merge {
        Batch **batches; /* all that were taken and not yet emptied, in no order */
        size_t n, capacity;

        int64_t *keys;  /* ns since `base` of the oldest entry below, and its leaf in the lowest bits */
        nsec_t base;
        MergeLeaf *leaves;
        uint32_t *free_leaves;
        uint32_t n_leaves, n_free; /* the first is a power of two */
        uint32_t *leaf_of;         /* by slot: where its last batch is */
        size_t n_slots;
        bool is_settled;           /* Batch.next of all batches is as it is */

        MergeRun runs[MERGE_RUNS];
        unsigned n_runs, at; /* those before `at` were handed out */
} Merge;

#define MERGE_NULL ((Merge){ .batches = NULL })

/* Batches that are still in it stay the caller's. */
void merge_deinit(Merge *m);

/* Takes a batch that has entries. Only after merge_next() has said that there is none. -ENOMEM: not taken. */
int merge_add(Merge *m, Batch *b);

/* For merge_next(): works out the next runs. False if there is none. */
bool merge_fill(Merge *m, nsec_t until);
/* For merge_oldest(): what is on top; all that was worked out has been handed out. */
const BatchEntry *merge_top(const Merge *m);
/* For merge_next(): the batch is no longer in the merge. */
void merge_remove(Merge *m, const Batch *b);

/*
 * The next entries in order that are not newer than `until`: a run of one batch; the next run may be of the same. 0
 * if there is none; `until` must not sink before. *ret_emptied: the batch has no entries left and is no longer in the
 * merge. What is left of the others, Batch.next, is only known after 0.
 */
static inline size_t merge_next(Merge *m, nsec_t until, Batch **ret_batch, const BatchEntry **ret_first,
                                bool *ret_emptied) {
        const MergeRun *run;

        if (m->at == m->n_runs && !merge_fill(m, until))
                return 0;
        run = &m->runs[m->at++];
        *ret_batch = run->batch;
        *ret_first = run->first;
        *ret_emptied = run->empties;
        if (run->empties)
                merge_remove(m, run->batch);
        return run->n;
}

/* The time of the oldest entry; false if there is none. */
static inline bool merge_oldest(const Merge *m, nsec_t *ret_time) {
        if (m->n == 0)
                return false;
        *ret_time = m->at < m->n_runs ? m->runs[m->at].first->time : merge_top(m)->time;
        return true;
}
