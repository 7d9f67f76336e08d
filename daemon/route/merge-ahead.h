/*
 * Steps of a merge, of CPUs that take turns: only the next entry of what is on top, again and again. Each step waits for the
 * one before it, from comparison to comparison up the tree, and what is done with a piece waits for none of that: who takes a
 * step for each piece that it uses has a processor do both at once. The pieces are those that merge_next() gives next.
 */
#pragma once

#include "daemon/route/merge-tree.h"

/* What does not change of the merge is in variables, because a compiler has to believe that each store might change it. */
typedef struct MergeAhead {
        Merge *merge;
        MergePiece *piece, *end;
        MergeLeaf *leaves;
        int64_t *keys;
        size_t n_leaves;
        nsec_t base;
        int64_t top, most;
} MergeAhead;

/* While the pieces of merge_next() are used; nothing else is done with the merge until the end. */
static inline MergeAhead merge_ahead_begin(Merge *m) {
        MergeSet *set = merge_next_set(m);

        return (MergeAhead){ .merge = m, .piece = set->pieces + set->n, .end = set->pieces + MERGE_PIECES, .leaves = m->leaves,
                             .keys = m->keys, .n_leaves = m->n_leaves, .base = m->base, .top = m->keys[1],
                             .most = m->takes_turns ? m->most : KEY_LEAST };
}

/* The next entry of what is on top becomes a piece. False: there is none, or no room; or there are better ways. */
static inline bool merge_ahead_step(MergeAhead *a) {
        uint32_t leaf = a->top & LEAF_MASK;

        if (a->top > a->most || a->piece == a->end)
                return false;
        a->top = merge_play(a->keys, a->n_leaves + leaf, merge_give(a->merge, a->base, leaf, &a->leaves[leaf], a->piece++));
        return true;
}

static inline void merge_ahead_end(const MergeAhead *a) {
        MergeSet *set = merge_next_set(a->merge);

        set->n = (unsigned)(a->piece - set->pieces);
}
