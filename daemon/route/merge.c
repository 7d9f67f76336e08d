/*
 * A tree of winners: each node repeats the lesser key of its two children, so that a step reads one node beside each of
 * its way up, at places that are known before the first is there, and compares without a branch. A heap has half the
 * nodes, but where its next comparison is depends on the last one, and with CPUs that take turns a processor guesses
 * every other one wrong.
 *
 * A key has a leaf in it, and so only as much of a time as fits above that: since `base`, far ones as KEY_FAR. When
 * one of these is on top, or something older than the base comes, all keys are made anew: once in hours.
 *
 * Pieces are worked out ahead, so that their items are on the way from another CPU's cache while those before are sent:
 * that is a third of what a sample of 128 CPUs costs, written there and copied here.
 */
#include "daemon/route/merge.h"

#include <assert.h>
#include <errno.h>

#define FIRST_LEAVES 2u
#define NO_LEAF UINT32_MAX
#define LEAF_BITS 18
#define LEAF_MASK (((int64_t)1 << LEAF_BITS) - 1)
#define KEY_NONE INT64_MAX /* of a leaf that is free */
#define KEY_FAR (((uint64_t)INT64_MAX >> LEAF_BITS) - 1) /* ns: 9 hours */
#define BASE_BEFORE (KEY_FAR / 2) /* ns: a batch that comes later may begin so much earlier */
#define CACHE_LINE 64
#define LONG_PIECE 4 /* entries: it is worth to look how long the next one is */

void merge_deinit(Merge *m) {
        free(m->batches);
        free(m->keys);
        free(m->leaves);
        free(m->free_leaves);
        free(m->leaf_of);
        *m = MERGE_NULL;
}

/* ---- room -------------------------------------------------------------------------------------------------------- */

/* Keys are signed because x86 moves by this comparison in one step, by the unsigned one in two. */
static inline int64_t lesser(int64_t a, int64_t b) {
        return b < a ? b : a;
}

static inline nsec_t key_time(int64_t key) {
        return (uint64_t)key >> LEAF_BITS;
}

/* Free leaves are where none were; the others keep their places. */
static int merge_grow_leaves(Merge *m) {
        uint32_t n = m->n_leaves ? 2 * m->n_leaves : FIRST_LEAVES;
        MergeLeaf *leaves = reallocarray(m->leaves, n, sizeof(*leaves));
        uint32_t *free_leaves;
        int64_t *keys;

        if (!leaves)
                return -ENOMEM;
        m->leaves = leaves;
        free_leaves = reallocarray(m->free_leaves, n, sizeof(*free_leaves));
        if (!free_leaves)
                return -ENOMEM;
        m->free_leaves = free_leaves;
        keys = calloc((size_t)2 * n, sizeof(*keys));
        if (!keys)
                return -ENOMEM;
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
        m->height = (unsigned)__builtin_ctz(n);
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

static inline int64_t key_since(nsec_t base, uint32_t leaf, nsec_t time) {
        nsec_t since = time - base;

        return (int64_t)((since < KEY_FAR ? since : KEY_FAR) << LEAF_BITS | leaf);
}

static int64_t key_of(const Merge *m, uint32_t leaf, nsec_t time) {
        return key_since(m->base, leaf, time);
}

/* A leaf has another key now. What is on top, `height` steps above it. */
static inline int64_t merge_play(int64_t *keys, unsigned height, size_t leaf_at, int64_t key) {
#pragma GCC unroll 8
        for (unsigned i = 0; i < height; i++) {
                keys[leaf_at >> i] = key;
                key = lesser(key, keys[leaf_at >> i ^ 1]);
        }
        keys[1] = key;
        return key;
}

static int64_t merge_set_key(Merge *m, uint32_t leaf, int64_t key) {
        return merge_play(m->keys, m->height, m->n_leaves + leaf, key);
}

static const BatchEntry *batch_end(const Batch *b) {
        return &b->entries[b->n_entries];
}

/* The leaf's next entry, of the batch that is first now. */
static inline void leaf_set_next(const Merge *m, MergeLeaf *l, uint32_t leaf, const BatchEntry *e) {
        const BatchEntry *end = batch_end(l->first);

        l->next = e;
        l->key_behind = key_of(m, leaf, e[e + 1 < end].time);
        l->plain_end = end[-1].time - m->base < KEY_FAR && end - e > 2 ? end - 2 : e;
}

static void leaf_set_first(const Merge *m, MergeLeaf *l, uint32_t leaf, Batch *b) {
        l->first = b;
        l->arena = b->arena;
        leaf_set_next(m, l, leaf, &b->entries[b->next]);
}

/* Another base: the oldest entry of all is a little behind it. */
static void merge_rebase(Merge *m) {
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
        const BatchEntry *top;

        if (m->n == 0 || m->keys[1] == KEY_NONE)
                return false;
        top = m->leaves[m->keys[1] & LEAF_MASK].next;
        for (uint32_t i = 0; i < m->n_leaves && key_time(m->keys[1]) >= KEY_FAR; i++)
                if (m->leaves[i].first && m->leaves[i].next->time < top->time)
                        top = m->leaves[i].next;
        *ret_time = top->time;
        return true;
}

/* The least key of all leaves but this one. */
static int64_t merge_second(const Merge *m, uint32_t leaf) {
        int64_t key = KEY_NONE;

        for (uint32_t i = m->n_leaves + leaf; i > 1; i /= 2)
                key = lesser(key, m->keys[i ^ 1]);
        return key;
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
}

int merge_add(Merge *m, Batch *b) {
        uint32_t leaf;
        MergeLeaf *l;
        int r = 0;

        assert(b->sorted && b->next < b->n_entries);
        assert(m->n_taken == m->n_emptied);
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

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

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

Batch *merge_take_emptied(Merge *m) {
        Batch *b, *last;

        if (m->n_taken == m->n_emptied)
                return NULL;
        b = m->emptied[m->n_taken++];
        last = m->batches[--m->n];
        last->place = b->place;
        m->batches[b->place] = last;
        m->n_newest -= b->generation == m->generation;
        return b;
}
