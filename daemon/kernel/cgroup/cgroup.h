/*
 * For the supervisor: control groups as targets. Knows v2 (unified), v1 with a perf_event hierarchy, and hybrid hosts:
 * which hierarchy perf_event_open(2) can use comes from mountinfo and /proc/cgroups (kernel-facts 7 to 9). Main thread
 * only. Paths of mountinfo and /proc are below `root` ("" in production), so that a test can lay out its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"

typedef struct CgroupHierarchy {
        char *path; /* where it is mounted: "/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/perf_event" */
        char *root; /* which folder of it is mounted there, and so is "/" of all names here: "/" unless perfd itself is
                       in a container. What the kernel calls a path in PERF_RECORD_CGROUP begins above */
        char *host; /* below which the host's other files are, those of container runtimes among them: "" in production */
        struct ContainerFiles *containers; /* what was read last of the runtimes' state; NULL: it is read again each time */
        bool is_v1;
} CgroupHierarchy;

#define CGROUP_HIERARCHY_NULL ((CgroupHierarchy){ .path = NULL })

void cgroup_hierarchy_deinit(CgroupHierarchy *h);
/*
 * REFUSED_UNSUPPORTED "no-cgroups" with what to mount. Whether the kernel lets perf_event_open(2) use it (kernel-facts
 * 8) shows only there, and open_event() says so.
 */
int cgroup_find_hierarchy(const char *root, CgroupHierarchy *ret, Explanation *e);

/* One cgroup, held open. */
typedef struct Cgroup {
        int fd;         /* O_RDONLY directory: the pid of PERF_FLAG_PID_CGROUP */
        uint64_t inode; /* what makes two of them the same; on v2 also the id in PERF_SAMPLE_CGROUP */
        char *path;     /* normalised, "/system.slice/nginx.service"; "/" is the root */
} Cgroup;

#define CGROUP_NULL ((Cgroup){ .fd = -1 })

void cgroup_deinit(Cgroup *c);
void cgroups_free(Cgroup *list, size_t n);
/*
 * Puts `more` (malloc, moves, also on failure) into the sorted list. What is there twice by inode, or lies below
 * another one of the list, is closed: perf counts what runs below a cgroup with it, so it would be counted twice.
 * ret_n_dropped (may be NULL): how many. -ENOMEM: the list is as it was.
 */
int cgroups_add(Cgroup **list, size_t *n, Cgroup *more, size_t n_more, size_t *ret_n_dropped);
/* Whether its path leads elsewhere now: it was removed, and perf_event_open(2) answers ENOENT. */
bool cgroup_is_gone(const CgroupHierarchy *h, const Cgroup *c);

/* How a user names cgroups. */
typedef enum CgroupNaming {
        CGROUP_BY_PATH,      /* "system.slice/nginx.service", "/a//b/"; globs (base/glob.h) in each component, where "**"
                                is any number of components, and '\' is itself, as systemd's names have it */
        CGROUP_BY_CONTAINER, /* full or short (at least 12 hex digits, unambiguous) id of docker, containerd, CRI-O or
                                podman, or a name of podman, docker, runc, containerd, LXC or nspawn, or a glob of
                                names; "docker://3dcb..." as Kubernetes has it, "podman://web" if docker has one of
                                that name too */
        CGROUP_BY_UNIT,      /* systemd unit: "nginx.service", "user.slice", "nginx@*.service"; "nginx" is a .service.
                                Wherever it is; if several systemds have one of that name, all of them */
} CgroupNaming;

#define CGROUP_MATCHES_MAX 10000
#define CGROUP_FOLDERS_MAX 100000 /* looked at for one name */

/*
 * Normalises (leading slash or none, empty and "." components); refuses ".." ("bad-cgroup", it would leave the
 * hierarchy), nothing at all, and bytes below 0x20. NULL in *ret never. Pure.
 */
int cgroup_normalise(const char *name, char **ret, Explanation *e);
bool cgroup_is_glob(const char *name);

/*
 * All that a name means now, as cgroups_add() leaves it. A name without glob that nothing is called: REFUSED_NOT_FOUND
 * "unknown-cgroup" with the nearest name of its parent; "unknown-container", "unknown-unit" likewise; an ambiguous
 * short id is REFUSED_INVALID "ambiguous-container" with those that match; "bad-cgroup", "bad-container", "bad-unit"
 * can be no name. A glob may match nothing: n 0. REFUSED_EXHAUSTED "too-many-cgroups" above the limits,
 * "too-many-fds".
 */
int cgroup_resolve(const CgroupHierarchy *h, CgroupNaming naming, const char *name, Cgroup **ret, size_t *ret_n,
                   Explanation *e);

/*
 * What is known of a container that has no cgroup. An id is never given twice: one that no runtime here has any longer, where
 * the state of all of them can be read, is gone for good. A name, which is no glob, may be given again. -ENOMEM.
 */
typedef enum CgroupFate {
        CGROUP_FATE_UNKNOWN,
        CGROUP_FATE_STOPPED, /* a runtime has it still, and may start it */
        CGROUP_FATE_GONE,
} CgroupFate;
int cgroup_container_fate(const CgroupHierarchy *h, const char *name, CgroupFate *ret);

/*
 * Follows what names mean: inotify on every folder in which a match can appear or vanish. fd is for the loop; after it
 * was readable cgroup_watch_dispatch() says whether anything may have changed. Then, and at first, the caller calls
 * cgroup_watch_add() for each name, and cgroup_resolve() after it: so nothing that appears in between is missed. A
 * queue overflow is a change. -errno, REFUSED_EXHAUSTED "inotify" (fs.inotify.max_user_watches).
 */
typedef struct CgroupWatch CgroupWatch;
int cgroup_watch_open(const CgroupHierarchy *h, CgroupWatch **ret, Explanation *e);
CgroupWatch *cgroup_watch_close(CgroupWatch *w);
DEFINE_CLEANUP(CgroupWatch *, cgroup_watch_close)
int cgroup_watch_fd(const CgroupWatch *w);
/* Watches what `name` needs (paths, globs, containers, units); idempotent. After each change it is called again. */
int cgroup_watch_add(CgroupWatch *w, CgroupNaming naming, const char *name, Explanation *e);
/* Forgets a name, and the folders that no other one needs. */
void cgroup_watch_remove(CgroupWatch *w, CgroupNaming naming, const char *name);
int cgroup_watch_dispatch(CgroupWatch *w, bool *ret_changed);
