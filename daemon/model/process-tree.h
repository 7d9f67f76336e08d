/*
 * For readers, which write it, and main, which asks: of which observed task another one descends. The kernel lets the
 * children of a task inherit its events, and says of nobody who has inherited; /proc knows parents only while they live. So
 * that an event can be opened again on all tasks that have it, what FORK and EXIT records say is kept here, while there is an event
 * that is inherited.
 *
 * Records of different CPUs come in any order: a child may be told of before its parent. So an entry has its parent, and
 * its root, the nearest observed task, as soon as that is known. Those with a root are kept before those without, and those
 * that live before those that have ended; fixed memory for the rest. Nobody waits: a write that finds its bucket taken for
 * long is dropped, which costs a descendant and never a sample.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/clock.h"

#define PROCESS_TREE_WAYS 4

typedef struct ProcessTreeBucket ProcessTreeBucket;

typedef struct ProcessTree {
        ProcessTreeBucket *buckets;
        uint32_t mask;
        atomic_bool is_used; /* there is a root: readers write */
} ProcessTree;

#define PROCESS_TREE_NULL ((ProcessTree){ .buckets = NULL })

typedef struct ProcessTreeEntry {
        uint32_t tid, parent; /* parent 0: not known */
        uint32_t root;        /* of the nearest ancestor that is a root; 0: none is known */
        nsec_t birth;         /* 0: before anybody looked */
        bool is_root, has_ended;
} ProcessTreeEntry;

/* Room for about n_tasks; memory is used as it is needed. -ENOMEM */
int process_tree_init(ProcessTree *t, uint32_t n_tasks);
void process_tree_deinit(ProcessTree *t);

/* Main: forgets all but roots and their ancestors. Used before a time in which births and ends are not reported. */
void process_tree_forget(ProcessTree *t);
/* Main: events are, or are about to be, opened on this task, for its children too. Until its tid is born again. */
void process_tree_add_root(ProcessTree *t, uint32_t tid);

/* Any reader, in any order: a task was born, or has ended. Times are ns of the stream's clock. */
void process_tree_add(ProcessTree *t, uint32_t tid, uint32_t parent, nsec_t birth);
void process_tree_end(ProcessTree *t, uint32_t tid, nsec_t end);

/* False: nothing is known. */
bool process_tree_get(const ProcessTree *t, uint32_t tid, ProcessTreeEntry *ret);
/* The nearest root above it, which was one when this task was born; 0: none that is known. Not the task itself. */
uint32_t process_tree_root(const ProcessTree *t, const ProcessTreeEntry *entry);
/* One after the other, *at from 0; false: that were all. */
bool process_tree_next(const ProcessTree *t, size_t *at, ProcessTreeEntry *ret);
