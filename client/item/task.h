/*
 * For streams: the tasks that it has described, by their tid, and their processes. Bounded by the daemon, which says what
 * it forgets.
 */
#pragma once

#include "client/perfd.h"
#include "proto/perfd.pb-c.h"

typedef struct TaskProcess TaskProcess;
typedef struct KnownTask KnownTask;

typedef struct Tasks {
        KnownTask **tasks;       /* buckets, by tid */
        TaskProcess **processes; /* buckets, by pid */
        uint32_t mask;           /* of both */
        size_t n;                /* of tasks, which are never fewer than processes */
        uint32_t last_tid;
        const perfd_task *last; /* found: items of one thread often follow each other */
} Tasks;

#define TASKS_LIMIT ((size_t)1 << 20) /* PROTOCOL.md, Limits */
#define TASKS_NULL ((Tasks){ .tasks = NULL })

/*
 * Takes the message in any case. Replaces what was known of this tid, and of its process if that is in it. -ENOMEM;
 * PERFD_E_PROTOCOL: more than TASKS_LIMIT are not forgotten.
 */
int tasks_add(Tasks *t, Perfd__V1__Task *message);
void tasks_forget(Tasks *t, uint32_t tid);
void tasks_deinit(Tasks *t);

const perfd_task *tasks_look(Tasks *t, uint32_t tid);
/* NULL: never described, or forgotten. */
static inline const perfd_task *tasks_find(Tasks *t, uint32_t tid) {
        return tid == t->last_tid && t->last ? t->last : tasks_look(t, tid);
}
