/*
 * The inside of a Merge, for what keeps its batches (merge.c) and what works out their order (merge-step.c).
 *
 * A tree of winners: each node repeats the lesser key of its two children, so that a step reads one node beside each of
 * its way up, at places that are known before the first is there, and compares without a branch. A heap has half the
 * nodes, but where its next comparison is depends on the last one, and with CPUs that take turns a processor guesses
 * every other one wrong.
 *
 * A key has a leaf in it, and so only as much of a time as fits above that: since `base`, far ones as KEY_FAR. When
 * one of these is on top, or something older than the base comes, all keys are recalculated: once in hours.
 */
#pragma once

#include "daemon/route/merge.h"

#define CACHE_LINE 64
#define NO_LEAF UINT32_MAX
#define LEAF_BITS 18
#define LEAF_MASK (((int64_t)1 << LEAF_BITS) - 1)
#define KEY_NONE INT64_MAX /* of a leaf that is free */
#define KEY_LEAST INT64_MIN
#define KEY_FAR (((uint64_t)INT64_MAX >> LEAF_BITS) - 1) /* ns: 9 hours */

/* Keys are signed because x86 moves by this comparison in one step, by the unsigned one in two. */
static inline int64_t lesser(int64_t a, int64_t b) {
        return b < a ? b : a;
}

static inline nsec_t key_time(int64_t key) {
        return (uint64_t)key >> LEAF_BITS;
}

static inline int64_t key_since(nsec_t base, uint32_t leaf, nsec_t time) {
        nsec_t since = time - base;

        return (int64_t)((since < KEY_FAR ? since : KEY_FAR) << LEAF_BITS | leaf);
}

static inline int64_t key_of(const Merge *m, uint32_t leaf, nsec_t time) {
        return key_since(m->base, leaf, time);
}

/* A leaf has another key now. What is on top. */
static inline int64_t merge_play(int64_t *keys, size_t leaf_at, int64_t key) {
        for (size_t node = leaf_at; node > 1; node /= 2) {
                keys[node] = key;
                key = lesser(key, keys[node ^ 1]);
        }
        keys[1] = key;
        return key;
}

static inline int64_t merge_set_key(Merge *m, uint32_t leaf, int64_t key) {
        return merge_play(m->keys, m->n_leaves + leaf, key);
}

static inline const BatchEntry *batch_end(const Batch *b) {
        return &b->entries[b->n_entries];
}

/* The leaf's next entry, of the batch that is first now. */
static inline void leaf_set_next(const Merge *m, MergeLeaf *l, uint32_t leaf, const BatchEntry *e) {
        const BatchEntry *end = batch_end(l->first);

        l->next = e;
        l->key_behind = key_of(m, leaf, e[e + 1 < end].time);
        l->plain_end = end[-1].time - m->base < KEY_FAR && end - e > 2 ? end - 2 : e;
}

static inline void leaf_set_first(const Merge *m, MergeLeaf *l, uint32_t leaf, Batch *b) {
        l->first = b;
        l->arena = b->arena;
        leaf_set_next(m, l, leaf, &b->entries[b->next]);
}

/* The set that is worked out. */
static inline MergeSet *merge_next_set(Merge *m) {
        return &m->sets[!m->used];
}

/* merge-step.c: the first entries of the leaf are given away: the next ones are at `next`. The leaf's key. */
int64_t merge_go_on(Merge *m, uint32_t leaf, const BatchEntry *next);

/* The leaf's next entry becomes a piece, whose item is on its way from then on. The leaf's key. */
static inline int64_t merge_give(Merge *m, nsec_t base, uint32_t leaf, MergeLeaf *l, MergePiece *piece) {
        const BatchEntry *e = l->next;
        int64_t key = l->key_behind;

        *piece = (MergePiece){ .first = e, .batch = l->first, .mask = e->mask, .item = l->arena + entry_offset(e), .length = e->length,
                               .tid = e->tid, .n = 1 };
        __builtin_prefetch(piece->item); /* it is longer than a line, and may begin at the end of one */
        __builtin_prefetch(piece->item + CACHE_LINE);
        __builtin_prefetch(piece->item + 2 * CACHE_LINE - 1);
        if (e >= l->plain_end)
                return merge_go_on(m, leaf, e + 1);
        __builtin_prefetch(&e[3]); /* its key is made when this CPU is on top again */
        l->next = &e[1];
        l->key_behind = (int64_t)((e[2].time - base) << LEAF_BITS | leaf);
        return key;
}

/* merge.c: another base, for all keys. The oldest entry of all is a little behind it. */
void merge_rebase(Merge *m);
