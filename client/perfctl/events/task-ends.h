/* For verbs that observe processes and threads by their ids: the end of the last of them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "client/perfctl/base/perfctl.h"

typedef struct TaskEnds {
        int fd;      /* readable: some have ended, so task_ends_take() is to be called; -1: nothing is waited for */
        int *pidfds; /* -1: it has ended, or its end will not be noticed */
        size_t n_pidfds;
        size_t n; /* that have not ended yet */
} TaskEnds;

#define TASK_ENDS_NULL ((TaskEnds){ .fd = -1 })

/*
 * Of those of the options --pid and --tid; before the daemon is asked to observe them, so that they are still who was meant. On a
 * client that is connected. 0, or an exit status after a message.
 */
int task_ends_open(const Perfctl *p, TaskEnds *ends);
/* Takes those that have ended. True: all have, which is said once. */
bool task_ends_take(TaskEnds *ends);
void task_ends_close(TaskEnds *ends);
