/*
 * For `record` of the whole host: who is there, of /proc, before events are added and again as soon as the stream says who begins. What is
 * there at one of these looks has its names, also if it is gone before they are written. One thread.
 */
#pragma once

#include "client/perfctl/names/running-tasks.h"

typedef struct ProcTask {
        uint32_t pid, tid;
        char *text; /* its name, or the path of the mapping */
        bool is_mapping;
        RunningMapping mapping; /* without its path */
} ProcTask;

typedef struct ProcTasks {
        ProcTask *list; /* in the order of /proc: of one process one behind the other */
        size_t n, room;
        uint32_t *written;  /* processes that have been written already */
        size_t n_written, written_room;
} ProcTasks;

/* has_files: as of RunningTasks. */
void proc_tasks_read(ProcTasks *e, bool has_files);
void proc_tasks_deinit(ProcTasks *e);
/* A process has been written. */
void proc_tasks_set_written(ProcTasks *e, uint32_t pid);
/* Those of processes that were not written before. 0, or the first code of a callback that is not, which ends it. */
int proc_tasks_put(ProcTasks *e, const RunningTasks *to);
