/* For `record`, and for names of live samples: who runs here already, of /proc. A task that ends while it is read is left out. */
#pragma once

#include "client/perfctl/base/perfctl.h"

/* What can be executed of a process, or is of a file; of no file: the path is "//anon", as perf has it. */
typedef struct RunningMapping {
        perfd_mapping mapping; /* its time is 0 */
        uint32_t prot, flags;  /* as of mmap(2) */
} RunningMapping;

typedef struct RunningTasks {
        void *userdata;
        const uint32_t *pids; /* only these processes and what descends from them */
        size_t n_pids;        /* 0: all */
        bool has_files;       /* mappings of files that cannot be executed, too: perf reads call frame information there */
        /* Of each thread, before the mappings of its process. NULL: nobody asks. */
        int (*comm)(void *userdata, uint32_t pid, uint32_t tid, perfd_text comm);
        int (*mapping)(void *userdata, const RunningMapping *mapping);
} RunningTasks;

/* 0, or the first code of a callback that is not, which ends it. */
int running_tasks_read(const RunningTasks *t);
