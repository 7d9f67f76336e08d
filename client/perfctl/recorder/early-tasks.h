/*
 * For `record` of the whole host: who is there, of /proc, before events are added and again as soon as the stream says who begins. What is
 * there at one of these looks has its names, also if it is gone before they are written. One thread.
 */
#pragma once

#include "client/perfctl/names/running-tasks.h"

typedef struct EarlyTask {
        uint32_t pid, tid;
        char *text; /* its name, or the path of the mapping */
        bool is_mapping;
        RunningMapping mapping; /* without its path */
} EarlyTask;

typedef struct EarlyTasks {
        EarlyTask *list; /* in the order of /proc: of one process one behind the other */
        size_t n, room;
        uint32_t *seen;  /* processes that have been written already */
        size_t n_seen, seen_room;
} EarlyTasks;

void early_tasks_read(EarlyTasks *e);
void early_tasks_deinit(EarlyTasks *e);
/* A process has been written. */
void early_tasks_see(EarlyTasks *e, uint32_t pid);
/* Those of processes that were not seen before. 0, or the first code of a callback that is not, which ends it. */
int early_tasks_put(EarlyTasks *e, const RunningTasks *to);
