/* For kernel/cgroup/cgroup.c: containers, and what is said of names that nothing has. Main thread only. */
#pragma once

#include "daemon/kernel/cgroup/walk.h"

/* Adds a folder to a list of open cgroups. name: what was asked for, to explain. */
int cgroup_hold(const CgroupFolder *folder, Cgroup **list, size_t *n, const char *name, Explanation *e);

void cgroup_sort_names(Strings *s);

/*
 * cgroup/container.c: the folders of the container that `name` means, which is at least one, or of those that a glob matches. On
 * failure the list may have been filled.
 */
int cgroup_find_container(const CgroupHierarchy *h, const CgroupPattern *pattern, const char *name, Cgroup **list,
                          size_t *n, Explanation *e);

/* REFUSED_NOT_FOUND with what is there instead. */
int cgroup_refuse_path(const CgroupHierarchy *h, const char *name, Explanation *e);
int cgroup_refuse_unit(const CgroupHierarchy *h, const CgroupPattern *pattern, Explanation *e);
