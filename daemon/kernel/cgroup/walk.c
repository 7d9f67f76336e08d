/*
 * A folder is always opened from the root, one component at a time and never through a link, so that whoever owns a
 * part of the tree and moves it about cannot lead us out of the hierarchy; and no fds are held on the way, so that a
 * tree can be as deep as its owner likes.
 */
#include "daemon/kernel/cgroup/walk.h"

#include "config/text/words.h"
#include "daemon/base/checkpoint.h"
#include "daemon/base/thread.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

DEFINE_CLEANUP(DIR *, closedir)

static int explain_folder(const char *path, int error, Explanation *e) {
        if (error == ENOENT || error == ENOTDIR || error == ELOOP || error == ENODEV || error == ENAMETOOLONG)
                return CGROUP_WALK_GONE;
        if (error == ENOMEM)
                return refuse_kernel_memory(e, QUOTE(path));
        if (error == EMFILE || error == ENFILE)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-fds",
                              "no fd is left to open cgroup %s: raise LimitNOFILE= (RLIMIT_NOFILE), or trace less",
                              QUOTE(path));
        if (error == EACCES || error == EPERM)
                return refuse(e, REFUSED_DENIED, "no-permission",
                              "cgroup %s cannot be read (%s): run perfd as root, or with CAP_DAC_READ_SEARCH",
                              QUOTE(path), strerror(error));
        return refuse(e, REFUSED_UNSUPPORTED, "kernel", "cgroup %s cannot be read: %s", QUOTE(path), strerror(error));
}

static int open_root(const CgroupHierarchy *h, dev_t *ret_device, int *ret_fd, Explanation *e) {
        _cleanup_close_ int fd = open(h->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct stat s;

        if (fd < 0 || fstat(fd, &s) < 0) {
                int error = errno, r = explain_folder(h->path, error, e);

                return r == CGROUP_WALK_GONE ? refuse(e, REFUSED_UNSUPPORTED, "no-cgroups",
                                                      "the cgroup hierarchy at %s has been unmounted: %s", h->path,
                                                      strerror(error))
                                             : r;
        }
        *ret_device = s.st_dev;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

static int open_below(int root, dev_t device, const char *path, int *ret_fd, uint64_t *ret_inode, Explanation *e) {
        _cleanup_close_ int fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        char name[NAME_MAX + 1];
        struct stat s;

        for (const char *at = path; fd >= 0 && *at; at += strcspn(at, "/")) {
                size_t n;
                int next;

                at += strspn(at, "/");
                n = strcspn(at, "/");
                if (n == 0)
                        break;
                if (n > NAME_MAX)
                        return CGROUP_WALK_GONE;
                memcpy(name, at, n);
                name[n] = '\0';
                next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                fd = (close_fd(fd), next); /* which keeps errno */
        }
        if (fd < 0 || fstat(fd, &s) < 0)
                return explain_folder(path, errno, e);
        if (s.st_dev != device)
                return CGROUP_WALK_GONE; /* something else is mounted there: no cgroup */
        *ret_fd = TAKE_FD(fd);
        *ret_inode = s.st_ino;
        return 0;
}

int cgroup_walk_open(const CgroupHierarchy *h, const char *path, int *ret_fd, uint64_t *ret_inode, Explanation *e) {
        _cleanup_close_ int root = -1;
        dev_t device;
        int r;

        thread_assert(THREAD_MAIN);
        r = open_root(h, &device, &root, e);
        return r != 0 ? r : open_below(root, device, path, ret_fd, ret_inode, e);
}

int cgroup_walk_list(int fd, const char *path, Strings *ret, Explanation *e) {
        _cleanup_close_ int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_(closedirp) DIR *d = own < 0 ? NULL : fdopendir(own);
        struct dirent *entry;
        int r = d ? 0 : explain_folder(path, errno, e);

        if (r != 0)
                return r == CGROUP_WALK_GONE ? 0 : r;
        own = -1; /* it is the stream's */
        while (r == 0 && (errno = 0, entry = readdir(d)))
                if ((entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) && strcmp(entry->d_name, ".") != 0 &&
                    strcmp(entry->d_name, "..") != 0)
                        r = strings_add(ret, entry->d_name);
        if (r == 0 && errno != 0)
                r = explain_folder(path, errno, e);
        return r == CGROUP_WALK_GONE ? 0 : r;
}

/* A folder that is still to be visited. */
typedef struct Pending {
        char *path;
        uint64_t states;
} Pending;

typedef struct Walk {
        int root;
        dev_t device;
        const CgroupPattern *pattern;
        CgroupVisit visit;
        void *userdata;
        Pending *stack;
        size_t n, n_allocated, n_pushed;
} Walk;

static void walk_deinit(Walk *w) {
        for (size_t i = 0; i < w->n; i++)
                free(w->stack[i].path);
        free(w->stack);
        close_fd(w->root);
}

static int walk_push(Walk *w, const char *parent, const char *name, uint64_t states, Explanation *e) {
        Pending pending = { .states = states };

        if (states == 0)
                return 0;
        if (w->n_pushed++ == CGROUP_FOLDERS_MAX)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-cgroups",
                              "more than %d cgroups would have to be examined, the last one below %s: name the parent cgroup to "
                              "search", CGROUP_FOLDERS_MAX, QUOTE(parent));
        if (w->n == w->n_allocated) {
                Pending *more = reallocarray(w->stack, w->n_allocated * 2 + 64, sizeof(*more));

                if (!more)
                        return error_origin(-ENOMEM);
                w->stack = more;
                w->n_allocated = w->n_allocated * 2 + 64;
        }
        if (asprintf(&pending.path, "%s/%s", strcmp(parent, "/") == 0 ? "" : parent, name) < 0)
                return error_origin(-ENOMEM);
        w->stack[w->n++] = pending;
        return 0;
}

/* The one component that can come next, if it is no glob: so a plain path lists nothing. */
static const char *only_name(const CgroupPattern *p, uint64_t states) {
        size_t i = (size_t)__builtin_ctzll(states);

        if ((states & (states - 1)) != 0 || i >= p->n_components || cgroup_is_glob(p->components[i]) ||
            p->naming != CGROUP_BY_PATH)
                return NULL;
        return p->components[i];
}

static int walk_search(Walk *w, const char *path, int fd, uint64_t states, Explanation *e) {
        _cleanup_(strings_deinit) Strings names = STRINGS_NULL;
        const char *only = only_name(w->pattern, states);
        int r;

        if (only)
                return walk_push(w, path, only, cgroup_pattern_step(w->pattern, states, only), e);
        r = cgroup_walk_list(fd, path, &names, e);
        for (size_t i = 0; i < names.n && r == 0; i++)
                r = walk_push(w, path, names.items[i], cgroup_pattern_step(w->pattern, states, names.items[i]), e);
        return r;
}

static int walk_visit(Walk *w, const char *path, uint64_t states, Explanation *e) {
        _cleanup_close_ int fd = -1;
        CgroupFolder folder = { .path = path, .matches = cgroup_pattern_matches(w->pattern, states),
                                .is_searched = cgroup_pattern_goes_on(w->pattern, states) };
        int r = checkpoint(e);

        if (r == 0)
                r = open_below(w->root, w->device, path, &fd, &folder.inode, e);
        if (r != 0)
                return r == CGROUP_WALK_GONE ? 0 : r;
        folder.fd = fd;
        r = w->visit(w->userdata, &folder, e);
        if (r != 0 || !folder.is_searched)
                return r == CGROUP_WALK_PRUNE ? 0 : r;
        return walk_search(w, path, fd, states, e);
}

int cgroup_walk(const CgroupHierarchy *h, const CgroupPattern *p, CgroupVisit visit, void *userdata, Explanation *e) {
        _cleanup_(walk_deinit) Walk w = { .root = -1, .pattern = p, .visit = visit, .userdata = userdata };
        int r;

        thread_assert(THREAD_MAIN);
        r = open_root(h, &w.device, &w.root, e);
        if (r == 0)
                r = walk_push(&w, "/", "", cgroup_pattern_begin(p), e);
        while (r == 0 && w.n > 0) {
                Pending next = w.stack[--w.n];

                r = walk_visit(&w, next.path, next.states, e);
                free(next.path);
        }
        return r;
}
