/*
 * For the supervisor: control groups as targets. Knows v2 (unified), v1 with a perf_event hierarchy, and hybrid hosts:
 * which hierarchy perf_event_open(2) can use comes from mountinfo and /proc/cgroups (kernel-facts 7 to 9). Main thread
 * only. Paths of mountinfo and /proc are below `root` ("" in production), so that a test can lay out its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"

typedef struct CgroupHierarchy {
        char *path; /* where it is mounted: "/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/perf_event" */
        bool is_v1;
} CgroupHierarchy;

void cgroup_hierarchy_deinit(CgroupHierarchy *h);
/* REFUSED_UNSUPPORTED "no-cgroups" with what to mount. */
int cgroup_find_hierarchy(const char *root, CgroupHierarchy *ret, Explanation *e);

/* One cgroup, held open. */
typedef struct Cgroup {
        int fd;         /* O_RDONLY directory: the pid of PERF_FLAG_PID_CGROUP */
        uint64_t inode; /* what makes two of them the same; on v2 also the id in PERF_SAMPLE_CGROUP */
        char *path;     /* normalised, "/system.slice/nginx.service"; "/" is the root */
} Cgroup;

void cgroup_deinit(Cgroup *c);
void cgroups_free(Cgroup *list, size_t n);

/* How a user names cgroups. */
typedef enum CgroupNaming {
        CGROUP_BY_PATH,      /* "system.slice/nginx.service", "/a//b/", globs per component: "kubepods.slice/ *" */
        CGROUP_BY_CONTAINER, /* full or short (at least 12 hex digits, unambiguous) id of docker, containerd, CRI-O, podman */
        CGROUP_BY_UNIT,      /* systemd unit: "nginx.service", "user.slice"; without suffix: .service */
} CgroupNaming;

/*
 * Normalises (leading slash or none, empty and "." components); refuses ".." ("bad-cgroup", it would leave the hierarchy)
 * and bytes below 0x20. NULL in *ret never. Pure.
 */
int cgroup_normalise(const char *name, char **ret, Explanation *e);
bool cgroup_is_glob(const char *name);

/*
 * All that a name means now, sorted by path, no inode twice. A name without glob that nothing is called:
 * REFUSED_NOT_FOUND "unknown-cgroup" with near names of its parent; a container or unit likewise; an ambiguous short id is
 * REFUSED_INVALID with all that match. A glob may match nothing: n 0.
 */
int cgroup_resolve(const CgroupHierarchy *h, CgroupNaming naming, const char *name, Cgroup **ret, size_t *ret_n,
                   Explanation *e);

/*
 * Follows what globs mean: inotify on every folder in which a match can appear or vanish. fd is for the loop; after it was
 * readable cgroup_watch_dispatch() says whether anything may have changed, and the caller resolves anew. A queue overflow
 * is a change. -errno, REFUSED_EXHAUSTED "inotify" (fs.inotify.max_user_watches).
 */
typedef struct CgroupWatch CgroupWatch;
int cgroup_watch_open(const CgroupHierarchy *h, CgroupWatch **ret, Explanation *e);
CgroupWatch *cgroup_watch_close(CgroupWatch *w);
int cgroup_watch_fd(const CgroupWatch *w);
/* Watches what `name` needs (paths, globs, containers, units); idempotent. After each change it is called again. */
int cgroup_watch_add(CgroupWatch *w, CgroupNaming naming, const char *name, Explanation *e);
int cgroup_watch_dispatch(CgroupWatch *w, bool *ret_changed);
