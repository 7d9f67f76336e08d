/*
 * For the dispatcher: batches of all CPUs in one order of time. Batches must be sorted (batch_seal()); two of one CPU
 * may overlap. What is on top costs O(log CPUs): a batch that is not older than the one before it of its CPU waits
 * behind that one, and does not take part.
 *
 *     keys     | - | top | 2 | 3 | ...          the older one of 2 i and 2 i + 1; the last half are those of leaves
 *     leaves   | next entry of a batch, and the batches behind it | ...
 *     pieces   | entries of one batch that follow each other | ...      in order, worked out ahead of who uses them
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/model/batch.h"

#define MERGE_PIECES 64 /* worked out at a time: until then memory has come, and is still in the cache */

typedef struct MergeLeaf {
        const BatchEntry *next;
        const BatchEntry *plain_end; /* those before it have two behind them in their batch, and no far times */
        int64_t key_behind;          /* that of the entry behind `next`, if there is one: looked up ahead */
        const uint8_t *arena;        /* of `first`: what is next must not touch the batch itself */
        Batch *first, *last;         /* of one CPU, each not older than the one before; NULL: free */
} MergeLeaf;

/* Entries of one batch. What is said of the first one is so near that it need not be fetched again when it is used. */
typedef struct MergePiece {
        const BatchEntry *first;
        Batch *batch;
        uint64_t mask;
        const uint8_t *item;
        uint32_t length, tid;
        size_t n;
} MergePiece;

/* Pieces that follow each other, and the batches of which they are the last ones. */
typedef struct MergeSet {
        MergePiece pieces[MERGE_PIECES];
        Batch *emptied[MERGE_PIECES];
        unsigned n, n_emptied;
} MergeSet;

typedef struct Merge {
        Batch **batches; /* all that were taken and not yet given back, in no order */
        size_t n, capacity;
        uint64_t generation; /* the newest one of all batches so far, */
        size_t n_newest;     /* and how many of these batches are of it */
        size_t n_grouped;    /* how many have entries of other groups than 0 */

        int64_t *keys;  /* ns since `base` of the oldest entry below, and its leaf in the lowest bits */
        nsec_t base;
        MergeLeaf *leaves;
        uint32_t *free_leaves;
        uint32_t n_leaves, n_free; /* the first is a power of two */
        uint32_t *leaf_of;         /* by slot: where its last batch is */
        size_t n_slots;
        bool is_settled;           /* Batch.next of all batches is as it is */

        MergeSet sets[2];  /* one that is used, and one that is worked out meanwhile */
        unsigned used;     /* which of them is */
        unsigned n_taken;  /* of its emptied batches, those that were given back */
        int64_t most;      /* the key up to which pieces may be made */
        bool takes_turns;  /* the tree is the way to make them */
} Merge;

#define MERGE_NULL ((Merge){ .batches = NULL })

/* Batches that are still in it stay the caller's. */
void merge_deinit(Merge *m);

/* Takes a batch that has entries. Only after merge_next() has said that there is none. -ENOMEM: not taken. */
int merge_add(Merge *m, Batch *b);

/*
 * The next entries in order that are not newer than `until`, as pieces, of which those that follow each other may be of
 * one batch; how many they are. 0 if there is none; `until` must not sink before. What is left of the others,
 * Batch.next, is only known after 0. Before it is called again, all that merge_take_emptied() has is taken. While these pieces
 * are used, the next ones may be worked out: merge-ahead.h.
 */
unsigned merge_next(Merge *m, nsec_t until, const MergePiece **ret_pieces);
/* A batch of which these pieces were the last ones, no longer in the merge; NULL: there is no other. */
Batch *merge_take_emptied(Merge *m);

/* Masks of all batches speak for the same subscriptions, of group 0. */
static inline bool merge_is_plain(const Merge *m) {
        return m->n_newest == m->n && m->n_grouped == 0;
}

/* The time of the oldest entry that merge_next() has not given; false if there is none. */
bool merge_oldest(const Merge *m, nsec_t *ret_time);
