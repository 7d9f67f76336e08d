/*
 * For the recorder of another host, whose /proc it cannot read: which threads have which names in the recording so far. The stream says with each
 * item what its thread is called; the recording is told once, and again when it has changed. Threads that have ended are forgotten.
 */
#pragma once

#include "client/perfctl/base/perfctl.h"

#define TASK_NAME ((size_t)16) /* bytes: the kernel's, with the zero at the end */

typedef struct TaskName {
        uint32_t tid; /* 0: none */
        char comm[TASK_NAME];
} TaskName;

typedef struct TaskNames {
        TaskName *list; /* a table of a power of two, searched from where the tid belongs */
        size_t n, room;
} TaskNames;

/* Whether this is not what the thread was called last; from now on it is. */
bool task_names_take(TaskNames *t, uint32_t tid, perfd_text comm);
void task_names_forget(TaskNames *t, uint32_t tid);
void task_names_deinit(TaskNames *t);
