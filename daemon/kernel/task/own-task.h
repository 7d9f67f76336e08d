/*
 * For the supervisor: whether a task is one that its user may trace, as ptrace_may_access() of Linux decides it for
 * perf_event_open(2): all its uids and gids are the user's, it has no capabilities (but CAP_WAKE_ALARM), and it may be dumped,
 * so that nothing that was somebody else's is in its memory.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/error.h"

/* Of this thread, for as long as the fd is open: its number may be another one's by then, its folder is not. */
typedef struct OwnTask {
        int fd; /* /proc/TID */
        uint32_t tid, pid;
} OwnTask;

enum {
        OWN_TASK_E_GONE = _REFUSED_MAX,
        OWN_TASK_E_FOREIGN, /* now; ret_pid is set all the same */
};

/* REFUSED_EXHAUSTED: no fd is left. OWN_TASK_E_GONE */
int own_task_open(uint32_t tid, OwnTask *ret, Explanation *e);
/* 0, OWN_TASK_E_GONE, OWN_TASK_E_FOREIGN. Sets t->pid. */
int own_task_check(OwnTask *t, uid_t uid, gid_t gid);
/* What Linux ends at the exec of a setuid program it ends everywhere: fs.suid_dumpable is not 1 (proc(5)). */
bool own_tasks_end_at_setuid(void);
