/* For kernel/cgroup*.c: the walk over the folders that can be or hold what a name looks for. Main thread only. */
#pragma once

#include "daemon/base/strings.h"
#include "daemon/kernel/cgroup/pattern.h"

typedef struct CgroupFolder {
        int fd;           /* borrowed */
        uint64_t inode;
        const char *path; /* borrowed, normalised */
        bool matches;     /* the pattern */
        bool is_searched; /* what is in it is looked at next, unless the visitor prunes it */
} CgroupFolder;

enum {
        CGROUP_WALK_PRUNE = _REFUSED_MAX, /* said by a visitor: go on, but not into this folder */
        CGROUP_WALK_GONE,                 /* said by cgroup_walk_open() */
};

typedef int (*CgroupVisit)(void *userdata, const CgroupFolder *folder, Explanation *e);

/*
 * Visits each folder of the hierarchy that fits the beginning of the pattern, each before what is in it is listed, in
 * no order. What vanishes meanwhile, symbolic links and other file systems' mounts are left out. What the visitor
 * says, but 0 and CGROUP_WALK_PRUNE, ends it. REFUSED_EXHAUSTED, REFUSED_DENIED.
 */
int cgroup_walk(const CgroupHierarchy *h, const CgroupPattern *p, CgroupVisit visit, void *userdata, Explanation *e);
/* A folder by its normalised path, component by component. Also CGROUP_WALK_GONE. */
int cgroup_walk_open(const CgroupHierarchy *h, const char *path, int *ret_fd, uint64_t *ret_inode, Explanation *e);
/* The names of all folders in one, unsorted, appended; none if it is gone. path: to explain. */
int cgroup_walk_list(int fd, const char *path, Strings *ret, Explanation *e);
