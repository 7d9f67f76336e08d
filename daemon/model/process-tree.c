/*
 * Buckets of a few ways, each under a sequence lock, so that no reader waits for another one and nothing grows: in a full
 * bucket what is worth least gives way.
 */
#include "daemon/model/process-tree.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/base/error-trail.h"
#include "daemon/base/sequence.h"

#define GENERATIONS_MAX 32 /* without a known root: records that are read a moment later */

enum {
        ENTRY_ROOT = 1,
        ENTRY_ENDED = 2,
};

/* Relaxed, all of them: the order is that of the bucket's sequence (base/sequence.h). */
typedef struct ProcessTreeWay {
        _Atomic(uint32_t) tid, parent, root, flags; /* tid 0: empty */
        _Atomic(uint64_t) birth;
} ProcessTreeWay;

struct ProcessTreeBucket {
        Sequence sequence;
        ProcessTreeWay ways[PROCESS_TREE_WAYS];
};

int process_tree_init(ProcessTree *t, uint32_t n_tasks) {
        uint32_t n = 4;

        while (n < n_tasks / PROCESS_TREE_WAYS)
                n *= 2;
        *t = PROCESS_TREE_NULL;
        t->buckets = calloc(n, sizeof(*t->buckets));
        if (!t->buckets)
                return error_origin(-ENOMEM);
        t->mask = n - 1;
        return 0;
}

void process_tree_deinit(ProcessTree *t) {
        free(t->buckets);
        *t = PROCESS_TREE_NULL;
}

static ProcessTreeBucket *bucket_of(const ProcessTree *t, uint32_t tid) {
        return &t->buckets[((tid * 0x9E3779B1U) >> 8) & t->mask];
}

static ProcessTreeEntry way_get(const ProcessTreeWay *w) {
        uint32_t flags = atomic_load_explicit(&w->flags, memory_order_relaxed);

        return (ProcessTreeEntry){ .tid = atomic_load_explicit(&w->tid, memory_order_relaxed),
                      .parent = atomic_load_explicit(&w->parent, memory_order_relaxed),
                      .root = atomic_load_explicit(&w->root, memory_order_relaxed),
                      .birth = atomic_load_explicit(&w->birth, memory_order_relaxed),
                                    .is_root = flags & ENTRY_ROOT, .has_ended = flags & ENTRY_ENDED };
}

static void way_set(ProcessTreeWay *w, const ProcessTreeEntry *k) {
        atomic_store_explicit(&w->tid, k->tid, memory_order_relaxed);
        atomic_store_explicit(&w->parent, k->parent, memory_order_relaxed);
        atomic_store_explicit(&w->root, k->root, memory_order_relaxed);
        atomic_store_explicit(&w->birth, k->birth, memory_order_relaxed);
        atomic_store_explicit(&w->flags, (k->is_root ? ENTRY_ROOT : 0) | (k->has_ended ? ENTRY_ENDED : 0), memory_order_relaxed);
}

/* The less it is worth, the sooner its place is another one's; of the same worth the oldest goes first. */
static int worth_of(const ProcessTreeEntry *k) {
        if (k->tid == 0)
                return 0;
        return k->is_root ? 4 : !k->root ? 1 : k->has_ended ? 2 : 3;
}

/* The way that has the tid, else the one that is worth least; NULL: all of them are roots. */
static ProcessTreeWay *bucket_way(ProcessTreeBucket *b, uint32_t tid) {
        ProcessTreeWay *least = NULL;
        ProcessTreeEntry worst = { .tid = 0 };

        for (int i = 0; i < PROCESS_TREE_WAYS; i++) {
                ProcessTreeEntry k = way_get(&b->ways[i]);

                if (k.tid == tid)
                        return &b->ways[i];
                if (!least || worth_of(&k) < worth_of(&worst) || (worth_of(&k) == worth_of(&worst) && k.birth < worst.birth)) {
                        least = &b->ways[i];
                        worst = k;
                }
        }
        return worst.is_root ? NULL : least;
}

void process_tree_forget(ProcessTree *t) {
        for (uint32_t i = 0; i <= t->mask; i++) {
                ProcessTreeBucket *b = &t->buckets[i];
                uint32_t sequence;

                if (!sequence_take(&b->sequence, &sequence))
                        continue;
                for (int k = 0; k < PROCESS_TREE_WAYS; k++)
                        if (!way_get(&b->ways[k]).is_root)
                                way_set(&b->ways[k], &(ProcessTreeEntry){ .tid = 0 });
                sequence_give(&b->sequence, sequence);
        }
}

void process_tree_add_root(ProcessTree *t, uint32_t tid) {
        ProcessTreeBucket *b = bucket_of(t, tid);
        uint32_t sequence;
        ProcessTreeWay *w;

        if (sequence_take(&b->sequence, &sequence)) {
                w = bucket_way(b, tid);
                if (w) {
                        ProcessTreeEntry k = way_get(w);

                        if (k.tid != tid)
                                k = (ProcessTreeEntry){ .tid = tid };
                        k.is_root = true;
                        way_set(w, &k);
                }
                sequence_give(&b->sequence, sequence);
        }
        atomic_store_explicit(&t->is_used, true, memory_order_release); /* pairs with reader/note.c: who sees it sees the root */
}

void process_tree_add(ProcessTree *t, uint32_t tid, uint32_t parent, nsec_t birth) {
        ProcessTreeBucket *b = bucket_of(t, tid);
        ProcessTreeEntry k = { .tid = tid, .parent = parent, .birth = birth };
        uint32_t sequence;
        ProcessTreeWay *w;

        k.root = process_tree_root(t, &k);
        if (!sequence_take(&b->sequence, &sequence))
                return;
        w = bucket_way(b, tid);
        if (w && (way_get(w).tid != tid || way_get(w).birth < birth))
                way_set(w, &k);
        sequence_give(&b->sequence, sequence);
}

void process_tree_end(ProcessTree *t, uint32_t tid, nsec_t end) {
        ProcessTreeBucket *b = bucket_of(t, tid);
        uint32_t sequence, root;
        ProcessTreeWay *w;
        ProcessTreeEntry known;

        if (!process_tree_get(t, tid, &known))
                return;
        root = process_tree_root(t, &known); /* what was not known at its birth may be known now, and not for long */
        if (!sequence_take(&b->sequence, &sequence))
                return;
        w = bucket_way(b, tid);
        if (w) {
                ProcessTreeEntry k = way_get(w);

                if (k.tid == tid && k.birth == known.birth && k.birth < end) {
                        k.root = root;
                        k.has_ended = true;
                        way_set(w, &k);
                }
        }
        sequence_give(&b->sequence, sequence);
}

bool process_tree_get(const ProcessTree *t, uint32_t tid, ProcessTreeEntry *ret) {
        const ProcessTreeBucket *b = bucket_of(t, tid);

        for (int i = 0; i < SEQUENCE_TRIES; i++) {
                ProcessTreeEntry k = { .tid = 0 };
                uint32_t s;

                if (!sequence_look(&b->sequence, &s))
                        continue;
                for (int way = 0; way < PROCESS_TREE_WAYS && k.tid != tid; way++)
                        k = way_get(&b->ways[way]);
                if (!sequence_stood(&b->sequence, s))
                        continue;
                if (k.tid != tid || tid == 0)
                        return false;
                *ret = k;
                return true;
        }
        return false;
}

uint32_t process_tree_root(const ProcessTree *t, const ProcessTreeEntry *entry) {
        ProcessTreeEntry k = *entry, parent;

        /* told before the birth that gave its parent the tid of a root that has ended */
        if (k.root && k.root == k.parent && process_tree_get(t, k.parent, &parent) && !parent.is_root && parent.birth <= k.birth)
                k = parent;
        for (int i = 0; i < GENERATIONS_MAX && k.root == 0; i++) {
                if (k.parent == 0 || !process_tree_get(t, k.parent, &parent) || parent.birth > k.birth)
                        return 0; /* or its tid is another's by now */
                if (parent.is_root)
                        return parent.tid;
                k = parent;
        }
        return k.root;
}

bool process_tree_next(const ProcessTree *t, size_t *at, ProcessTreeEntry *ret) {
        for (; *at < ((size_t)t->mask + 1) * PROCESS_TREE_WAYS; (*at)++) {
                const ProcessTreeWay *w = &t->buckets[*at / PROCESS_TREE_WAYS].ways[*at % PROCESS_TREE_WAYS];
                uint32_t tid = atomic_load_explicit(&w->tid, memory_order_relaxed); /* a hint: it is looked up behind that */

                if (tid != 0 && process_tree_get(t, tid, ret)) {
                        (*at)++;
                        return true;
                }
        }
        return false;
}
