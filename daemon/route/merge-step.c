/*
 * The order of a merge, as pieces: entries of one batch that come one behind the other before any of another CPU.
 *
 * They are worked out ahead, so that their items are on the way from another CPU's cache while those before are sent: that
 * is a third of what a sample of 128 CPUs costs, written there and copied here.
 */
#include "daemon/route/merge-tree.h"

#include <assert.h>

#define CACHE_LINE 64
#define LONG_PIECE 4 /* entries: it is worth to look how long the next one is */

/* The least key of all leaves but this one. */
static int64_t merge_second(const Merge *m, uint32_t leaf) {
        int64_t key = KEY_NONE;

        for (uint32_t i = m->n_leaves + leaf; i > 1; i /= 2)
                key = lesser(key, m->keys[i ^ 1]);
        return key;
}

/* The first entry that is newer: most pieces end soon, or with their batch. */
static const BatchEntry *piece_end(const BatchEntry *e, const BatchEntry *end, nsec_t until) {
        size_t step = 1;

        if (e == end || end[-1].time <= until)
                return end;
        for (; (size_t)(end - e) > step && e[step].time <= until; step *= 2)
                e += step;
        for (; step > 0; step /= 2)
                while ((size_t)(end - e) >= step && e[step - 1].time <= until)
                        e += step;
        return e;
}

/* The leaf's batch has no entries left: the one behind it comes, if there is one. The leaf's key. */
static int64_t merge_pass(Merge *m, uint32_t leaf) {
        MergeLeaf *l = &m->leaves[leaf];
        Batch *b = l->first->behind;

        m->emptied[m->n_emptied++] = l->first;
        if (b) {
                leaf_set_first(m, l, leaf, b);
                return key_of(m, leaf, l->next->time);
        }
        if (m->leaf_of[l->first->slot] == leaf)
                m->leaf_of[l->first->slot] = NO_LEAF;
        *l = (MergeLeaf){ .first = NULL };
        m->free_leaves[m->n_free++] = leaf;
        return KEY_NONE;
}

/* The entry of the leaf on top before which any other comes. Equal times come in either order. */
static const BatchEntry *merge_piece_end(const Merge *m, uint32_t leaf, nsec_t until) {
        const MergeLeaf *l = &m->leaves[leaf];
        nsec_t second = key_time(merge_second(m, leaf));

        if (second < KEY_FAR && m->base + second < until)
                until = m->base + second;
        else if (second == KEY_FAR && m->base + KEY_FAR - 1 < until)
                until = m->base + KEY_FAR - 1;
        return piece_end(l->next + 1, batch_end(l->first), until);
}

/* The first entries of the leaf are given away: the next ones are at `next`. The leaf's key. */
__attribute__((noinline)) static int64_t merge_go_on(Merge *m, uint32_t leaf, const BatchEntry *next) {
        MergeLeaf *l = &m->leaves[leaf];

        if (next == batch_end(l->first))
                return merge_pass(m, leaf);
        leaf_set_next(m, l, leaf, next);
        return key_of(m, leaf, next->time);
}

/* What the leaf on top has becomes a piece, as far as it goes: while one CPU has much and the others nothing. */
__attribute__((noinline)) static int64_t merge_step_far(Merge *m, uint32_t leaf, nsec_t until, MergePiece *piece) {
        const MergeLeaf *l = &m->leaves[leaf];
        const BatchEntry *first = l->next, *end = merge_piece_end(m, leaf, until);

        *piece = (MergePiece){ .first = first, .item = l->arena + first->offset, .batch = l->first,
                               .n = (size_t)(end - first) };
        return merge_set_key(m, leaf, merge_go_on(m, leaf, end));
}

/* The leaf's next entry becomes a piece. The leaf's key. */
static inline int64_t merge_give(Merge *m, nsec_t base, uint32_t leaf, MergeLeaf *l, MergePiece *piece) {
        const BatchEntry *e = l->next;
        int64_t key = l->key_behind;

        piece->first = e;
        piece->item = l->arena + e->offset;
        piece->batch = l->first;
        piece->n = 1;
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

/*
 * Only the next entry of what is on top, again and again: what CPUs that take turns pay. Where the pieces end. What does
 * not change of the merge is in variables, because a compiler has to believe that each store might change it.
 */
__attribute__((always_inline)) static inline MergePiece *merge_step_up(Merge *m, int64_t most, MergePiece *piece,
                                                                       unsigned height) {
        MergePiece *const end = &m->pieces[MERGE_PIECES];
        MergeLeaf *const leaves = m->leaves;
        int64_t *const keys = m->keys;
        int64_t top = keys[1];
        const size_t n_leaves = m->n_leaves;
        const nsec_t base = m->base;

        for (; top <= most && piece < end; piece++) {
                uint32_t leaf = top & LEAF_MASK;

                top = merge_play(keys, height, n_leaves + leaf, merge_give(m, base, leaf, &leaves[leaf], piece));
        }
        return piece;
}

/* With a loop of its own for each height that hosts have, whose steps up are then one behind the other: a quarter less. */
static MergePiece *merge_step_each(Merge *m, int64_t most, MergePiece *piece) {
        switch (m->height) {
        case 2:
                return merge_step_up(m, most, piece, 2);
        case 3:
                return merge_step_up(m, most, piece, 3);
        case 4:
                return merge_step_up(m, most, piece, 4);
        case 5:
                return merge_step_up(m, most, piece, 5);
        case 6:
                return merge_step_up(m, most, piece, 6);
        case 7:
                return merge_step_up(m, most, piece, 7);
        case 8:
                return merge_step_up(m, most, piece, 8);
        default:
                return merge_step_up(m, most, piece, m->height);
        }
}

/* As merge_step_each(), where two leaves are all that there are: without the tree, which is told in the end. */
static MergePiece *merge_step_two(Merge *m, int64_t most, MergePiece *piece) {
        MergePiece *const end = &m->pieces[MERGE_PIECES];
        MergeLeaf *const leaves = m->leaves;
        const nsec_t base = m->base;
        int64_t key = m->keys[1], other = merge_second(m, key & LEAF_MASK); /* of `leaf` and of the other one */
        uint32_t leaf = key & LEAF_MASK, both = leaf ^ (other & LEAF_MASK);

        for (; piece < end; piece++) {
                int64_t top = lesser(key, other);

                if (top > most)
                        break;
                other = key < other ? other : key;
                leaf = top & LEAF_MASK;
                key = merge_give(m, base, leaf, &leaves[leaf], piece);
        }
        (void)merge_set_key(m, leaf, key);
        (void)merge_set_key(m, leaf ^ both, other);
        return piece;
}

/* What is left of each batch, for those who ask between two releases. */
static void merge_settle(Merge *m) {
        for (uint32_t i = 0; i < m->n_leaves; i++) {
                MergeLeaf *l = &m->leaves[i];

                if (l->first)
                        l->first->next = (size_t)(l->next - l->first->entries);
        }
        m->is_settled = true;
}

/* The number of pieces. */
static unsigned merge_work_out(Merge *m, nsec_t until) {
        bool goes_far = true; /* the first piece of all, and those behind a long one; in between not even that is asked */
        MergePiece *piece = m->pieces;
        int64_t top, most;

        if (m->n > 0 && key_time(m->keys[1]) >= KEY_FAR)
                merge_rebase(m);
        if (m->n == 0 || until < m->base)
                return 0;
        top = m->keys[1];
        most = lesser(key_of(m, LEAF_MASK, until), (int64_t)(KEY_FAR << LEAF_BITS) - 1);
        for (; top <= most && piece < &m->pieces[MERGE_PIECES] && goes_far; piece++) {
                top = merge_step_far(m, top & LEAF_MASK, until, piece);
                goes_far = piece->n >= LONG_PIECE;
        }
        piece = m->n_leaves - m->n_free == 2 ? merge_step_two(m, most, piece) : merge_step_each(m, most, piece);
        return (unsigned)(piece - m->pieces);
}

unsigned merge_next(Merge *m, nsec_t until, const MergePiece **ret_pieces) {
        unsigned n;

        assert(m->n_taken == m->n_emptied);
        m->n_taken = m->n_emptied = 0;
        n = merge_work_out(m, until);
        if (n > 0) {
                m->is_settled = false;
                *ret_pieces = m->pieces;
        } else if (!m->is_settled)
                merge_settle(m);
        return n;
}
