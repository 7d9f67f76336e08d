/* What /proc says of all tasks: made by main (kernel/task/process.c), learnt by the dispatcher (task-table.c). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/model/record.h"

typedef struct ScannedThread {
        uint32_t tid;
        char comm[COMM_SIZE]; /* terminated */
} ScannedThread;

typedef struct ScannedProcess {
        uint32_t pid, parent, uid;
        nsec_t time;  /* of the stream's clock, before anything of it was read */
        nsec_t start; /* of the same clock; 0: not known */
        char *executable; /* malloc; NULL: none, or not to be known */
        char *cgroup;
        uint64_t cgroup_id; /* 0: not known */
        ScannedThread *threads;
        size_t n_threads;
} ScannedProcess;

typedef struct TaskScan {
        nsec_t begin;  /* what is not in it and was there before is gone */
        ScannedProcess *processes;
        size_t n;
} TaskScan;

static inline void scanned_process_deinit(ScannedProcess *p) {
        free(p->executable);
        free(p->cgroup);
        free(p->threads);
        *p = (ScannedProcess){ .pid = 0 };
}

static inline TaskScan *task_scan_free(TaskScan *s) {
        if (!s)
                return NULL;
        for (size_t i = 0; i < s->n; i++)
                scanned_process_deinit(&s->processes[i]);
        free(s->processes);
        free(s);
        return NULL;
}
DEFINE_CLEANUP(TaskScan *, task_scan_free)
