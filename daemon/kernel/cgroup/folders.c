/*
 * A sorted array: the kernel gives out watch descriptors in ascending order, so that adding one is appending it, and an
 * event finds its folder in a few steps, however many cgroups a host has.
 */
#include "daemon/kernel/cgroup/folders.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/error-trail.h"

void cgroup_folders_deinit(CgroupFolders *f) {
        for (size_t i = 0; i < f->n; i++)
                free(f->list[i].path);
        free(f->list);
        *f = (CgroupFolders){ .list = NULL };
}

/* Its index, or where it belongs. */
static size_t place_of(const CgroupFolders *f, int wd) {
        size_t low = 0, high = f->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (f->list[middle].wd < wd)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

CgroupWatched *cgroup_folders_find(const CgroupFolders *f, int wd) {
        size_t i = place_of(f, wd);

        return i < f->n && f->list[i].wd == wd ? &f->list[i] : NULL;
}

int cgroup_folders_set(CgroupFolders *f, int wd, const char *path) {
        CgroupWatched *known = cgroup_folders_find(f, wd), *more;
        char *copy = strdup(path);
        size_t i;

        if (!copy)
                return error_origin(-ENOMEM);
        if (known) {
                free(known->path);
                known->path = copy;
                return 0;
        }
        more = reallocarray(f->list, f->n + 1, sizeof(*more));
        if (!more) {
                free(copy);
                return error_origin(-ENOMEM);
        }
        f->list = more;
        i = place_of(f, wd);
        memmove(more + i + 1, more + i, (f->n++ - i) * sizeof(*more));
        more[i] = (CgroupWatched){ .wd = wd, .path = copy };
        return 0;
}

void cgroup_folders_remove(CgroupFolders *f, CgroupWatched *watched) {
        size_t i = (size_t)(watched - f->list);

        free(watched->path);
        memmove(watched, watched + 1, (--f->n - i) * sizeof(*watched));
}
