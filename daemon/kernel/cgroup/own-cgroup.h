/*
 * For the supervisor: the processes of one user in a cgroup that is his, as a systemd that runs for a user gets its own. Main
 * thread only.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "daemon/kernel/cgroup/cgroup.h"

#define OWN_CGROUP_FOLDERS_MAX 1000 /* looked at, of one cgroup */
#define OWN_CGROUP_DEPTH_MAX 16     /* each has fds while it is looked at */

enum {
        OWN_CGROUP_E_FOREIGN = _REFUSED_MAX, /* the folder is another user's */
};

/* Appended as they are found, `n` of them, in malloc'ed memory: in no order, and perhaps twice. */
typedef struct OwnPids {
        uint32_t *list;
        size_t n, n_allocated;
} OwnPids;

#define OWN_PIDS_NULL ((OwnPids){ .list = NULL })

void own_pids_deinit(OwnPids *p);
/*
 * Those in the cgroup, and in those below it that are the user's too, which the user may trace (task/own-task.h). Whose it is says the
 * folder that is held open, and so do its processes. OWN_CGROUP_E_FOREIGN; REFUSED_EXHAUSTED "too-many-cgroups", "too-many-fds",
 * "bad-target": they are more than `most`.
 */
int own_cgroup_find(const Cgroup *c, uid_t uid, gid_t gid, size_t most, OwnPids *to, Explanation *e);
