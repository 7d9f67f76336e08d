/* For kernel/cgroup*.c and their tests: which cgroup mounts /proc/self/mountinfo shows. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/error.h"

/* A mount of type cgroup or cgroup2. */
typedef struct CgroupMount {
        unsigned id, parent;
        unsigned major, minor; /* st_dev of all that is on it */
        char *root;            /* the folder of the hierarchy that is mounted: "/", of a bind mount "/docker/3dcb...",
                                  from inside of a cgroup namespace perhaps "/.." */
        char *path;            /* where */
        bool is_v2;
        bool has_perf_event; /* v1: that controller's hierarchy */
        bool has_memory;     /* the same */
        bool is_covered;     /* by another mount on the same place: not to be reached by its path */
} CgroupMount;

/*
 * Those of a mountinfo text (proc_pid_mountinfo(5)), in its order, escapes undone; none: NULL and 0.
 * REFUSED_UNSUPPORTED "kernel" with the line that is no such line. -ENOMEM.
 */
int cgroup_mounts_parse(const char *text, CgroupMount **ret, size_t *ret_n, Explanation *e);
void cgroup_mounts_free(CgroupMount *list, size_t n);

typedef enum CgroupUse {
        CGROUP_USE_V2,
        CGROUP_USE_V1,      /* perf_event is in a v1 hierarchy, mounted somewhere */
        CGROUP_USE_NOTHING, /* the kernel has no perf_event controller, or was told to disable it */
} CgroupUse;

/* What /proc/cgroups says of the perf_event controller: hierarchy 0 is that of v2. */
CgroupUse cgroup_controllers_parse(const char *text);
