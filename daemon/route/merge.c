/*
 * A tree of winners: each node repeats the time of the older one of its two children, so that a step reads one node
 * beside each of its way up, at places that are known before the first is there, and compares without a branch. A heap
 * has half the nodes, but where its next comparison is depends on the last one, and with CPUs that take turns a processor
 * guesses every other one wrong.
 *
 * Runs are worked out ahead, so that their items are on the way from another CPU's cache while those before are sent.
 */
#include "daemon/route/merge.h"

#include <assert.h>
#include <errno.h>

#define FIRST_LEAVES 4u
#define NO_LEAF UINT32_MAX
#define NO_TIME UINT64_MAX /* of a leaf that is free */
#define WINS_OF_A_RUN 4u   /* so many in turn, and it is worth to look how many more */

void merge_deinit(Merge *m) {
        free(m->batches);
        free(m->nodes);
        free(m->leaves);
        free(m->free_leaves);
        free(m->leaf_of);
        *m = MERGE_NULL;
}

/* So that it is never taken for that of a free leaf: the last moment of all counts as the one before it. */
static nsec_t time_of(const BatchEntry *e) {
        return e->time < NO_TIME ? e->time : NO_TIME - 1;
}

/* ---- room -------------------------------------------------------------------------------------------------------- */

static MergeNode older_of(MergeNode a, MergeNode b) {
        return b.time < a.time ? b : a;
}

/* Free leaves are where none were; the others keep their places. */
static int merge_grow_leaves(Merge *m) {
        uint32_t n = m->n_leaves ? 2 * m->n_leaves : FIRST_LEAVES;
        MergeLeaf *leaves = reallocarray(m->leaves, n, sizeof(*leaves));
        uint32_t *free_leaves;
        MergeNode *nodes;

        if (!leaves)
                return -ENOMEM;
        m->leaves = leaves;
        free_leaves = reallocarray(m->free_leaves, n, sizeof(*free_leaves));
        if (!free_leaves)
                return -ENOMEM;
        m->free_leaves = free_leaves;
        nodes = calloc((size_t)2 * n, sizeof(*nodes));
        if (!nodes)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++)
                nodes[n + i] = i < m->n_leaves ? m->nodes[m->n_leaves + i] : (MergeNode){ .time = NO_TIME, .leaf = i };
        for (uint32_t i = n - 1; i > 0; i--)
                nodes[i] = older_of(nodes[2 * i], nodes[2 * i + 1]);
        free(m->nodes);
        m->nodes = nodes;
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
                return -ENOMEM;
        m->batches = batches;
        m->capacity = capacity;
        return 0;
}

static int merge_grow_slots(Merge *m, uint32_t slot) {
        size_t n = (size_t)slot + 1;
        uint32_t *leaf_of = reallocarray(m->leaf_of, n, sizeof(*leaf_of));

        if (!leaf_of)
                return -ENOMEM;
        for (size_t i = m->n_slots; i < n; i++)
                leaf_of[i] = NO_LEAF;
        m->leaf_of = leaf_of;
        m->n_slots = n;
        return 0;
}

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

/* A leaf has another time now. */
static inline void merge_play(Merge *m, uint32_t leaf, nsec_t time) {
        MergeNode *nodes = m->nodes, winner = { .time = time, .leaf = leaf };
        uint32_t i = m->n_leaves + leaf;

        for (; i > 1; i /= 2) {
                nodes[i] = winner;
                winner = older_of(winner, nodes[i ^ 1]);
        }
        nodes[1] = winner;
}

/* The oldest time of all leaves but this one. */
static nsec_t merge_second(const Merge *m, uint32_t leaf) {
        nsec_t time = NO_TIME;

        for (uint32_t i = m->n_leaves + leaf; i > 1; i /= 2)
                if (m->nodes[i ^ 1].time < time)
                        time = m->nodes[i ^ 1].time;
        return time;
}

int merge_add(Merge *m, Batch *b) {
        uint32_t leaf;
        MergeLeaf *l;
        int r = 0;

        assert(b->sorted && b->next < b->n_entries);
        assert(m->at == m->n_runs);
        if (m->n == m->capacity)
                r = merge_grow_batches(m);
        if (r == 0 && m->n_free == 0)
                r = merge_grow_leaves(m);
        if (r == 0 && b->slot >= m->n_slots)
                r = merge_grow_slots(m, b->slot);
        if (r < 0)
                return r;
        b->behind = NULL;
        b->place = m->n;
        m->batches[m->n++] = b;
        leaf = m->leaf_of[b->slot];
        l = leaf == NO_LEAF ? NULL : &m->leaves[leaf];
        if (l && l->last->entries[l->last->n_entries - 1].time <= b->entries[b->next].time) {
                l->last->behind = b;
                l->last = b;
                return 0;
        }
        leaf = m->free_leaves[--m->n_free];
        m->leaf_of[b->slot] = leaf;
        m->leaves[leaf] = (MergeLeaf){ .next = &b->entries[b->next], .end = &b->entries[b->n_entries], .first = b, .last = b };
        merge_play(m, leaf, time_of(&b->entries[b->next]));
        return 0;
}

void merge_remove(Merge *m, const Batch *b) {
        Batch *last = m->batches[--m->n];

        last->place = b->place;
        m->batches[b->place] = last;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

/* The first entry that is newer: most runs end soon, or with their batch. */
static const BatchEntry *run_end(const BatchEntry *e, const BatchEntry *end, nsec_t until) {
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

/* The leaf's batch has no entries left: the one behind it comes, if there is one. Its first time. */
static nsec_t merge_pass(Merge *m, uint32_t leaf) {
        MergeLeaf *l = &m->leaves[leaf];
        uint32_t slot = l->first->slot;
        Batch *b = l->first->behind;

        if (b) {
                l->first = b;
                l->next = &b->entries[b->next];
                l->end = &b->entries[b->n_entries];
                return time_of(l->next);
        }
        *l = (MergeLeaf){ .first = NULL };
        m->free_leaves[m->n_free++] = leaf;
        if (m->leaf_of[slot] == leaf)
                m->leaf_of[slot] = NO_LEAF;
        return NO_TIME;
}

/* What the leaf on top has next, and what follows as long as it stays there: a new run, or more of the last one. */
static inline void merge_step(Merge *m, nsec_t until) {
        uint32_t leaf = m->nodes[1].leaf;
        MergeLeaf *l = &m->leaves[leaf];
        const BatchEntry *first = l->next, *e = first + 1;
        Batch *b = l->first;
        MergeRun *run = &m->runs[m->n_runs];

        m->n_wins = leaf == m->winner ? m->n_wins + 1 : 1;
        m->winner = leaf;
        if (m->n_wins >= WINS_OF_A_RUN) {
                nsec_t second = merge_second(m, leaf);

                e = run_end(e, l->end, second < until ? second : until); /* equal times of two CPUs may come in either order */
        }
        if (m->n_runs > 0 && run[-1].batch == b)
                run--;
        else
                *run = (MergeRun){ .batch = b, .first = first };
        __builtin_prefetch(e + 1); /* when this CPU is on top again, its time is asked for */
        __builtin_prefetch(b->arena + first->offset);
        run->n += (size_t)(e - first);
        run->empties = e == l->end;
        b->next += (size_t)(e - first);
        l->next = e;
        m->n_runs = (unsigned)(run - m->runs) + 1;
        merge_play(m, leaf, run->empties ? merge_pass(m, leaf) : time_of(e));
}

bool merge_fill(Merge *m, nsec_t until) {
        if (until == NO_TIME)
                until--; /* that of free leaves */
        m->at = m->n_runs = 0;
        if (m->n == 0)
                return false;
        while (m->n_runs < MERGE_RUNS && m->nodes[1].time <= until)
                merge_step(m, until);
        return m->n_runs > 0;
}
