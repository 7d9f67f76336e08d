/* The batches of a merge: who is in it, on which leaf of the tree, and who waits behind whom. */
#include "daemon/base/error-trail.h"
#include "daemon/route/merge-tree.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define FIRST_LEAVES 2u
#define BASE_BEFORE (KEY_FAR / 2) /* ns: a batch that comes later may begin so much earlier */

void merge_deinit(Merge *m) {
        free(m->batches);
        free(m->keys);
        free(m->leaves);
        free(m->free_leaves);
        free(m->leaf_of);
        *m = MERGE_NULL;
}

/* Free leaves are where none were; the others keep their places. */
static int merge_grow_leaves(Merge *m) {
        uint32_t n = m->n_leaves ? 2 * m->n_leaves : FIRST_LEAVES;
        MergeLeaf *leaves = reallocarray(m->leaves, n, sizeof(*leaves));
        uint32_t *free_leaves;
        int64_t *keys;

        if (!leaves)
                return error_origin(-ENOMEM);
        m->leaves = leaves;
        free_leaves = reallocarray(m->free_leaves, n, sizeof(*free_leaves));
        if (!free_leaves)
                return error_origin(-ENOMEM);
        m->free_leaves = free_leaves;
        keys = calloc((size_t)2 * n, sizeof(*keys));
        if (!keys)
                return error_origin(-ENOMEM);
        assert(n <= LEAF_MASK); /* batches of 30 GB */
        for (uint32_t i = 0; i < n; i++)
                keys[n + i] = i < m->n_leaves ? m->keys[m->n_leaves + i] : KEY_NONE;
        for (uint32_t i = n - 1; i > 0; i--)
                keys[i] = lesser(keys[2 * i], keys[2 * i + 1]);
        free(m->keys);
        m->keys = keys;
        for (uint32_t i = n; i-- > m->n_leaves;) { /* the first ones are used first */
                leaves[i] = (MergeLeaf){ .first = NULL };
                free_leaves[m->n_free++] = i;
        }
        m->n_leaves = n;
        return 0;
}

static int merge_grow_batches(Merge *m) {
        size_t capacity = m->capacity ? 2 * m->capacity : 16;
        Batch **batches = reallocarray(m->batches, capacity, sizeof(Batch *));

        if (!batches)
                return error_origin(-ENOMEM);
        m->batches = batches;
        m->capacity = capacity;
        return 0;
}

static int merge_grow_slots(Merge *m, uint32_t slot) {
        size_t n = (size_t)slot + 1;
        uint32_t *leaf_of = reallocarray(m->leaf_of, n, sizeof(*leaf_of));

        if (!leaf_of)
                return error_origin(-ENOMEM);
        for (size_t i = m->n_slots; i < n; i++)
                leaf_of[i] = NO_LEAF;
        m->leaf_of = leaf_of;
        m->n_slots = n;
        return 0;
}

void merge_rebase(Merge *m) {
        nsec_t oldest = UINT64_MAX;

        for (uint32_t i = 0; i < m->n_leaves; i++)
                if (m->leaves[i].first && m->leaves[i].next->time < oldest)
                        oldest = m->leaves[i].next->time;
        m->base = oldest > BASE_BEFORE ? oldest - BASE_BEFORE : 0;
        for (uint32_t i = 0; i < m->n_leaves; i++) {
                MergeLeaf *l = &m->leaves[i];

                m->keys[m->n_leaves + i] = l->first ? key_of(m, i, l->next->time) : KEY_NONE;
                if (l->first)
                        leaf_set_next(m, l, i, l->next);
        }
        for (uint32_t i = m->n_leaves - 1; i > 0; i--)
                m->keys[i] = lesser(m->keys[2 * i], m->keys[2 * i + 1]);
}

bool merge_oldest(const Merge *m, nsec_t *ret_time) {
        const MergeSet *next = &m->sets[!m->used];
        const BatchEntry *top;

        if (next->n > 0) {
                *ret_time = next->pieces->first->time;
                return true;
        }
        if (m->n == 0 || m->keys[1] == KEY_NONE)
                return false;
        top = m->leaves[m->keys[1] & LEAF_MASK].next;
        for (uint32_t i = 0; i < m->n_leaves && key_time(m->keys[1]) >= KEY_FAR; i++)
                if (m->leaves[i].first && m->leaves[i].next->time < top->time)
                        top = m->leaves[i].next;
        *ret_time = top->time;
        return true;
}

/* It is one of the batches now. */
static void merge_count(Merge *m, Batch *b) {
        b->behind = NULL;
        b->place = m->n;
        m->batches[m->n++] = b;
        if (b->generation > m->generation) {
                m->generation = b->generation;
                m->n_newest = 0;
        }
        m->n_newest += b->generation == m->generation;
        m->n_grouped += b->n_grouped > 0;
}

int merge_add(Merge *m, Batch *b) {
        uint32_t leaf;
        MergeLeaf *l;
        int r = 0;

        assert(b->sorted && b->next < b->n_entries);
        assert(m->n_taken == m->sets[m->used].n_emptied && merge_next_set(m)->n == 0);
        if (m->n == m->capacity)
                r = merge_grow_batches(m);
        if (r == 0 && b->slot >= m->n_slots)
                r = merge_grow_slots(m, b->slot);
        if (r < 0)
                return r;
        leaf = m->leaf_of[b->slot];
        l = leaf == NO_LEAF ? NULL : &m->leaves[leaf];
        if (l && batch_end(l->last)[-1].time <= b->entries[b->next].time) {
                merge_count(m, b);
                l->last->behind = b;
                l->last = b;
                return 0;
        }
        r = m->n_free == 0 ? merge_grow_leaves(m) : 0;
        if (r < 0)
                return r;
        merge_count(m, b);
        leaf = m->free_leaves[--m->n_free];
        m->leaf_of[b->slot] = leaf;
        l = &m->leaves[leaf];
        l->last = b;
        leaf_set_first(m, l, leaf, b);
        (void)merge_set_key(m, leaf, key_of(m, leaf, l->next->time));
        if (l->next->time < m->base)
                merge_rebase(m);
        return 0;
}

Batch *merge_take_emptied(Merge *m) {
        const MergeSet *set = &m->sets[m->used];
        Batch *b, *last;

        if (m->n_taken == set->n_emptied)
                return NULL;
        b = set->emptied[m->n_taken++];
        last = m->batches[--m->n];
        last->place = b->place;
        m->batches[b->place] = last;
        m->n_newest -= b->generation == m->generation;
        m->n_grouped -= b->n_grouped > 0;
        return b;
}
