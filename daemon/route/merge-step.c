/*
 * The order of a merge, as pieces: entries of one batch that come one behind the other before any of another CPU.
 *
 * They are worked out ahead, so that their items are on the way from another CPU's cache while those before are sent: that
 * is a third of what a sample of 128 CPUs costs, written there and copied here. There are two sets of them: while one is used
 * the other one is worked out, by whoever uses it if CPUs take turns (merge-ahead.h), and what is left of it then.
 */
#include "daemon/route/merge-ahead.h"

#include <assert.h>

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
        MergeSet *set = merge_next_set(m);
        Batch *b = l->first->behind;

        set->emptied[set->n_emptied++] = l->first;
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

int64_t merge_go_on(Merge *m, uint32_t leaf, const BatchEntry *next) {
        MergeLeaf *l = &m->leaves[leaf];

        if (next == batch_end(l->first))
                return merge_pass(m, leaf);
        leaf_set_next(m, l, leaf, next);
        return key_of(m, leaf, next->time);
}

/* What the leaf on top has becomes a piece, as far as it goes: while one CPU has much and the others nothing. How much. */
static size_t merge_step_far(Merge *m, nsec_t until, MergePiece *piece) {
        const uint32_t leaf = m->keys[1] & LEAF_MASK;
        const MergeLeaf *l = &m->leaves[leaf];
        const BatchEntry *first = l->next, *end = merge_piece_end(m, leaf, until);

        *piece = (MergePiece){ .first = first, .batch = l->first, .mask = first->mask, .item = l->arena + entry_offset(first),
                               .length = first->length, .tid = first->tid, .n = (size_t)(end - first) };
        (void)merge_set_key(m, leaf, merge_go_on(m, leaf, end));
        return piece->n;
}

/* Only the next entry of what is on top, again and again: what CPUs that take turns pay. */
static void merge_step_all(Merge *m) {
        MergeAhead a = merge_ahead_begin(m);

        while (merge_ahead_step(&a))
                ;
        merge_ahead_end(&a);
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

/*
 * A full set, unless it is worth to look how far the next piece goes: the last one is long, or the last ones would be one. One
 * that is not full has no next piece, and nobody may step on from there: batches may come first.
 */
static bool set_takes_turns(const MergeSet *set) {
        const MergePiece *end = &set->pieces[MERGE_PIECES], *last = end - LONG_PIECE;

        if (set->n < MERGE_PIECES || end[-1].n >= LONG_PIECE)
                return false;
        while (last < end - 1 && last->batch == end[-1].batch)
                last++;
        return last < end - 1;
}

/* As many pieces as there are, or have room, behind those that were worked out already. */
static void merge_work_out(Merge *m, nsec_t until) {
        MergeSet *set = merge_next_set(m);
        bool goes_far = !m->takes_turns; /* the first piece of all, and those behind a long one; in between it is not asked */

        m->takes_turns = false;
        if (m->n_free == m->n_leaves)
                return;
        if (key_time(m->keys[1]) >= KEY_FAR)
                merge_rebase(m);
        if (until < m->base)
                return;
        m->most = lesser(key_of(m, LEAF_MASK, until), (int64_t)(KEY_FAR << LEAF_BITS) - 1);
        while (goes_far && m->keys[1] <= m->most && set->n < MERGE_PIECES)
                goes_far = merge_step_far(m, until, &set->pieces[set->n++]) >= LONG_PIECE;
        m->takes_turns = true;
        merge_step_all(m);
        m->takes_turns = set_takes_turns(set);
}

unsigned merge_next(Merge *m, nsec_t until, const MergePiece **ret_pieces) {
        MergeSet *set = merge_next_set(m), *used = &m->sets[m->used];

        assert(m->n_taken == used->n_emptied);
        merge_work_out(m, until);
        if (set->n > 0) {
                m->is_settled = false;
                *ret_pieces = set->pieces;
        } else if (!m->is_settled)
                merge_settle(m);
        used->n = used->n_emptied = m->n_taken = 0;
        m->used = !m->used;
        return set->n;
}
