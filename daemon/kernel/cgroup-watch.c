/*
 * A change is only a reason to look again: what the tree is then like is told by cgroup_resolve(), never put together
 * from events. So a queue that overflowed, a folder that was moved, or one that came and went unseen need no care of
 * their own.
 *
 * A folder is watched before it is listed. What appears in it later is an event; what was there before is in the list.
 * The kernel does not end the watch of a cgroup that is removed (kernfs keeps the link count), and the watch
 * would keep its inode for ever: so watches are removed by what the folder above says.
 */
#include "daemon/kernel/cgroup.h"

#include "config/words.h"
#include "daemon/base/thread.h"
#include "daemon/kernel/cgroup-walk.h"

#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

#define MASK (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MOVE_SELF | IN_ONLYDIR)
#define READS_MAX 16 /* for one wakeup of the loop, which comes again */

typedef struct Watched {
        int wd;
        char *path;
} Watched;

struct CgroupWatch {
        int fd;
        CgroupHierarchy hierarchy;
        CgroupPattern *patterns;
        char **names; /* of each pattern as it was given */
        size_t n_patterns;
        Watched *folders; /* by wd */
        size_t n_folders;
};

static void forget_folders(CgroupWatch *w) {
        for (size_t i = 0; i < w->n_folders; i++) {
                (void)inotify_rm_watch(w->fd, w->folders[i].wd); /* EINVAL: the folder is gone, and so is its watch */
                free(w->folders[i].path);
        }
        free(w->folders);
        w->folders = NULL;
        w->n_folders = 0;
}

/* Its index, or where it belongs. */
static size_t place_of(const CgroupWatch *w, int wd) {
        size_t low = 0, high = w->n_folders;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (w->folders[middle].wd < wd)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static Watched *find_folder(const CgroupWatch *w, int wd) {
        size_t i = place_of(w, wd);

        return i < w->n_folders && w->folders[i].wd == wd ? &w->folders[i] : NULL;
}

static void forget_folder(CgroupWatch *w, Watched *f) {
        size_t i = (size_t)(f - w->folders);

        free(f->path);
        memmove(f, f + 1, (--w->n_folders - i) * sizeof(*f));
}

static int keep_folder(CgroupWatch *w, int wd, const char *path) {
        Watched *known = find_folder(w, wd), *more;
        char *copy = strdup(path);
        size_t i;

        if (!copy)
                return -ENOMEM;
        if (known) { /* it may have been moved */
                free(known->path);
                known->path = copy;
                return 0;
        }
        more = reallocarray(w->folders, w->n_folders + 1, sizeof(*more));
        if (!more) {
                free(copy);
                return -ENOMEM;
        }
        w->folders = more;
        i = place_of(w, wd);
        memmove(more + i + 1, more + i, (w->n_folders++ - i) * sizeof(*more));
        more[i] = (Watched){ .wd = wd, .path = copy };
        return 0;
}

/* What an administrator may raise, with what it is now. */
static int refuse_inotify(const char *what, int error, Explanation *e) {
        const char *limit = error == EMFILE ? "max_user_instances" : "max_user_watches";
        char path[64], line[32] = "unknown";
        _cleanup_fclose_ FILE *f = NULL;

        if (error == ENOMEM)
                return -ENOMEM;
        if (error != EMFILE && error != ENFILE && error != ENOSPC)
                return refuse(e, REFUSED_UNSUPPORTED, "inotify", "%s can not be watched by inotify(7): %s", QUOTE(what),
                              strerror(error));
        (void)snprintf(path, sizeof(path), "/proc/sys/fs/inotify/%s", limit);
        f = fopen(path, "re");
        if (f && fgets(line, sizeof(line), f))
                line[strcspn(line, "\n")] = '\0';
        return refuse(e, REFUSED_EXHAUSTED, "inotify",
                      "%s can not be watched by inotify(7): %s; raise fs.inotify.%s, which is %s%s", QUOTE(what),
                      strerror(error), limit, line, error == ENOSPC ? "" : ", or LimitNOFILE= (RLIMIT_NOFILE)");
}

int cgroup_watch_open(const CgroupHierarchy *h, CgroupWatch **ret, Explanation *e) {
        _cleanup_(cgroup_watch_closep) CgroupWatch *w = calloc(1, sizeof(*w));

        thread_assert(THREAD_MAIN);
        if (!w)
                return -ENOMEM;
        w->fd = -1;
        w->hierarchy = (CgroupHierarchy){ .path = strdup(h->path), .root = strdup(h->root), .is_v1 = h->is_v1 };
        if (!w->hierarchy.path || !w->hierarchy.root)
                return -ENOMEM;
        w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        if (w->fd < 0)
                return refuse_inotify(h->path, errno, e);
        *ret = TAKE_PTR(w);
        return 0;
}

CgroupWatch *cgroup_watch_close(CgroupWatch *w) {
        if (!w)
                return NULL;
        forget_folders(w);
        for (size_t i = 0; i < w->n_patterns; i++) {
                cgroup_pattern_deinit(&w->patterns[i]);
                free(w->names[i]);
        }
        free(w->patterns);
        free(w->names);
        cgroup_hierarchy_deinit(&w->hierarchy);
        close_fd(w->fd);
        free(w);
        return NULL;
}

int cgroup_watch_fd(const CgroupWatch *w) {
        return w->fd;
}

static int watch_folder(void *userdata, const CgroupFolder *folder, Explanation *e) {
        CgroupWatch *w = userdata;
        char path[32];
        int wd;

        if (!folder->is_searched)
                return 0;
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", folder->fd); /* this folder, whatever its path is now */
        wd = inotify_add_watch(w->fd, path, MASK);
        if (wd < 0 && errno == ENOENT)
                return 0; /* removed meanwhile: its parent is watched */
        if (wd < 0)
                return refuse_inotify(folder->path, errno, e);
        return keep_folder(w, wd, folder->path);
}

static size_t find_pattern(const CgroupWatch *w, CgroupNaming naming, const char *name) {
        size_t i = 0;

        while (i < w->n_patterns && (w->patterns[i].naming != naming || strcmp(w->names[i], name) != 0))
                i++;
        return i;
}

static int keep_pattern(CgroupWatch *w, CgroupNaming naming, const char *name, Explanation *e) {
        CgroupPattern *patterns = reallocarray(w->patterns, w->n_patterns + 1, sizeof(*patterns));
        char **names, *copy;
        int r;

        if (!patterns)
                return -ENOMEM;
        w->patterns = patterns;
        names = reallocarray(w->names, w->n_patterns + 1, sizeof(*names));
        if (!names)
                return -ENOMEM;
        w->names = names;
        copy = strdup(name);
        if (!copy)
                return -ENOMEM;
        r = cgroup_pattern_init(&patterns[w->n_patterns], naming, name, e);
        if (r != 0) {
                free(copy);
                return r;
        }
        names[w->n_patterns++] = copy;
        return 0;
}

int cgroup_watch_add(CgroupWatch *w, CgroupNaming naming, const char *name, Explanation *e) {
        size_t i = find_pattern(w, naming, name);
        bool is_new = i == w->n_patterns;
        int r = 0;

        thread_assert(THREAD_MAIN);
        if (is_new)
                r = keep_pattern(w, naming, name, e);
        if (r == 0)
                r = cgroup_walk(&w->hierarchy, &w->patterns[i], watch_folder, w, e);
        if (r != 0 && is_new)
                cgroup_watch_remove(w, naming, name);
        return r;
}

static bool is_needed(const CgroupWatch *w, const char *path) {
        for (size_t i = 0; i < w->n_patterns; i++)
                if (cgroup_pattern_goes_on(&w->patterns[i], cgroup_pattern_walk(&w->patterns[i], path)))
                        return true;
        return false;
}

void cgroup_watch_remove(CgroupWatch *w, CgroupNaming naming, const char *name) {
        size_t i = find_pattern(w, naming, name);

        if (i == w->n_patterns)
                return;
        cgroup_pattern_deinit(&w->patterns[i]);
        free(w->names[i]);
        w->n_patterns--;
        w->patterns[i] = w->patterns[w->n_patterns];
        w->names[i] = w->names[w->n_patterns];
        for (i = w->n_folders; i-- > 0;)
                if (!is_needed(w, w->folders[i].path)) {
                        (void)inotify_rm_watch(w->fd, w->folders[i].wd);
                        forget_folder(w, &w->folders[i]);
                }
}

/* Whether a folder of this name there can be a match, or on the way to one. */
static bool is_of_interest(const CgroupWatch *w, const char *parent, const char *name) {
        for (size_t i = 0; i < w->n_patterns; i++) {
                uint64_t states = cgroup_pattern_walk(&w->patterns[i], parent);

                if (cgroup_pattern_step(&w->patterns[i], states, name) != 0)
                        return true;
        }
        return false;
}

/* What had this path, and all below. If there is a new one already, it is watched again: this is a change. */
static void forget_below(CgroupWatch *w, const char *parent, const char *name) {
        size_t n = strcmp(parent, "/") == 0 ? 0 : strlen(parent), n_name = strlen(name);

        for (size_t i = w->n_folders; i-- > 0;) {
                const char *path = w->folders[i].path;

                if (strncmp(path, parent, n) != 0 || path[n] != '/' || strncmp(path + n + 1, name, n_name) != 0 ||
                    (path[n + 1 + n_name] != '/' && path[n + 1 + n_name] != '\0'))
                        continue;
                (void)inotify_rm_watch(w->fd, w->folders[i].wd);
                forget_folder(w, &w->folders[i]);
        }
}

static bool event_changes(CgroupWatch *w, const struct inotify_event *event) {
        Watched *f = find_folder(w, event->wd);

        if (event->mask & IN_Q_OVERFLOW || (f && event->mask & (IN_MOVE_SELF | IN_UNMOUNT))) {
                forget_folders(w); /* some are gone, or called otherwise; the caller lets all be watched again */
                return true;
        }
        if (!f || event->len == 0 || !(event->mask & IN_ISDIR)) {
                if (f && event->mask & IN_IGNORED)
                        forget_folder(w, f); /* the folder above has said so */
                return false;
        }
        if (!is_of_interest(w, f->path, event->name))
                return false;
        if (event->mask & (IN_DELETE | IN_MOVED_FROM))
                forget_below(w, f->path, event->name);
        return true;
}

int cgroup_watch_dispatch(CgroupWatch *w, bool *ret_changed) {
        _Alignas(struct inotify_event) char buffer[16384];
        bool changed = false;

        thread_assert(THREAD_MAIN);
        for (int i = 0; i < READS_MAX; i++) {
                ssize_t n = read(w->fd, buffer, sizeof(buffer));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno != EAGAIN)
                        return -errno;
                if (n <= 0)
                        break;
                for (const char *at = buffer; at < buffer + n;) {
                        const struct inotify_event *event = (const struct inotify_event *)at;

                        changed |= event_changes(w, event);
                        at += sizeof(*event) + event->len;
                }
        }
        *ret_changed = changed;
        return 0;
}
