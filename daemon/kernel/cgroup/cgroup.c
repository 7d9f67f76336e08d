/*
 * What a name means is looked up in the tree each time and held by fds, because a cgroup has no identity but its
 * folder: a service that is restarted has the same path and another inode. Of cgroups that lie in one another only the
 * outer one is kept: perf counts for a cgroup all that runs below it too.
 */
#include "daemon/kernel/cgroup/cgroup.h"

#include "config/text/words.h"
#include "daemon/base/thread.h"
#include "daemon/kernel/cgroup/names.h"
#include "daemon/kernel/cgroup/walk.h"

#include <fcntl.h>
#include <string.h>

void cgroup_deinit(Cgroup *c) {
        close_fd(c->fd);
        free(c->path);
        *c = CGROUP_NULL;
}

void cgroups_free(Cgroup *list, size_t n) {
        for (size_t i = 0; i < n; i++)
                cgroup_deinit(&list[i]);
        free(list);
}

/* In this order what lies below a path follows it at once: '/' before all that a name may have there. */
static int compare_paths(const void *a, const void *b) {
        const char *x = ((const Cgroup *)a)->path, *y = ((const Cgroup *)b)->path;

        while (*x && *x == *y)
                x++, y++;
        return (*x == '/' ? 1 : (unsigned char)*x * 2) - (*y == '/' ? 1 : (unsigned char)*y * 2);
}

static int compare_inodes(const void *a, const void *b) {
        const Cgroup *x = a, *y = b;

        return x->inode != y->inode ? (x->inode > y->inode) - (x->inode < y->inode) : compare_paths(a, b);
}

static bool is_below(const char *path, const char *above) {
        size_t n = strcmp(above, "/") == 0 ? 0 : strlen(above);

        return strncmp(path, above, n) == 0 && path[n] == '/' && path[n + 1] != '\0';
}

static bool is_same(const Cgroup *kept, const Cgroup *c) {
        return kept->inode == c->inode;
}

static bool is_counted_by(const Cgroup *kept, const Cgroup *c) {
        return is_below(c->path, kept->path);
}

/* Closes each one that the last one kept before it stands for. */
static size_t drop(Cgroup *list, size_t n, bool (*stands_for)(const Cgroup *kept, const Cgroup *c)) {
        size_t n_kept = 0;

        for (size_t i = 0; i < n; i++)
                if (n_kept > 0 && stands_for(&list[n_kept - 1], &list[i]))
                        cgroup_deinit(&list[i]);
                else
                        list[n_kept++] = list[i];
        return n_kept;
}

int cgroups_add(Cgroup **list, size_t *n, Cgroup *more, size_t n_more, size_t *ret_n_dropped) {
        size_t n_all = *n + n_more, n_left;
        Cgroup *all = reallocarray(*list, n_all + 1, sizeof(*all));

        if (!all) {
                cgroups_free(more, n_more);
                return error_origin(-ENOMEM);
        }
        if (n_more > 0)
                memcpy(all + *n, more, n_more * sizeof(*more));
        free(more);
        qsort(all, n_all, sizeof(*all), compare_inodes);
        n_left = drop(all, n_all, is_same);
        qsort(all, n_left, sizeof(*all), compare_paths);
        n_left = drop(all, n_left, is_counted_by);
        *list = all;
        *n = n_left;
        if (ret_n_dropped)
                *ret_n_dropped = n_all - n_left;
        return 0;
}

bool cgroup_is_gone(const CgroupHierarchy *h, const Cgroup *c) {
        _cleanup_close_ int fd = -1;
        uint64_t inode = 0;
        int r = cgroup_walk_open(h, c->path, &fd, &inode, NULL);

        return r == CGROUP_WALK_GONE || (r == 0 && inode != c->inode);
}

typedef struct Found {
        const char *name;
        Cgroup *list;
        size_t n;
} Found;

static void found_deinit(Found *f) {
        cgroups_free(f->list, f->n);
}

int cgroup_hold(const CgroupFolder *folder, Cgroup **list, size_t *n, const char *name, Explanation *e) {
        Cgroup *more;

        if (*n == CGROUP_MATCHES_MAX)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-cgroups",
                              "more than %d cgroups match %s: name a parent cgroup, which includes all below it",
                              CGROUP_MATCHES_MAX, QUOTE(name));
        more = reallocarray(*list, *n + 1, sizeof(*more));
        if (!more)
                return error_origin(-ENOMEM);
        *list = more;
        more[*n] = (Cgroup){ .fd = fcntl(folder->fd, F_DUPFD_CLOEXEC, 0), .inode = folder->inode };
        if (more[*n].fd < 0)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-fds",
                              "no fd is left for cgroup %s: raise LimitNOFILE= (RLIMIT_NOFILE), or name fewer "
                              "cgroups", QUOTE(folder->path));
        more[*n].path = strdup(folder->path);
        (*n)++;
        return more[*n - 1].path ? 0 : error_origin(-ENOMEM);
}

static int hold_match(void *userdata, const CgroupFolder *folder, Explanation *e) {
        Found *f = userdata;
        int r;

        if (!folder->matches)
                return 0;
        r = cgroup_hold(folder, &f->list, &f->n, f->name, e);
        return r != 0 ? r : CGROUP_WALK_PRUNE; /* what is below is counted with it */
}

int cgroup_resolve(const CgroupHierarchy *h, CgroupNaming naming, const char *name, Cgroup **ret, size_t *ret_n,
                   Explanation *e) {
        _cleanup_(cgroup_pattern_deinit) CgroupPattern pattern = CGROUP_PATTERN_NULL;
        _cleanup_(found_deinit) Found found = { .name = name }, sorted = { .name = name };
        int r;

        thread_assert(THREAD_MAIN);
        r = cgroup_pattern_init(&pattern, naming, name, e);
        if (r == 0 && naming == CGROUP_BY_CONTAINER)
                r = cgroup_find_container(h, &pattern, name, &found.list, &found.n, e);
        else if (r == 0)
                r = cgroup_walk(h, &pattern, hold_match, &found, e);
        if (r == 0 && found.n == 0 && !cgroup_is_glob(name))
                r = naming == CGROUP_BY_PATH ? cgroup_refuse_path(h, name, e) : cgroup_refuse_unit(h, &pattern, e);
        if (r == 0) {
                size_t n = found.n;

                found.n = 0;
                r = cgroups_add(&sorted.list, &sorted.n, TAKE_PTR(found.list), n, NULL);
        }
        if (r != 0)
                return r;
        *ret = TAKE_PTR(sorted.list);
        *ret_n = sorted.n;
        sorted.n = 0;
        return 0;
}
