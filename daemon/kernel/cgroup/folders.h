/* For kernel/cgroup/watch.c: which folder a watch of inotify(7) is on. Main thread only. */
#pragma once

#include <stddef.h>

typedef struct CgroupWatched {
        int wd;
        char *path; /* normalised */
} CgroupWatched;

typedef struct CgroupFolders {
        CgroupWatched *list; /* by wd */
        size_t n;
} CgroupFolders;

void cgroup_folders_deinit(CgroupFolders *f);
/* Adds a folder, or says where one is now. -ENOMEM: unchanged. */
int cgroup_folders_set(CgroupFolders *f, int wd, const char *path);
/* NULL: none. Valid until the next change. */
CgroupWatched *cgroup_folders_find(const CgroupFolders *f, int wd);
/* Keeps the order of the rest. */
void cgroup_folders_remove(CgroupFolders *f, CgroupWatched *watched);
