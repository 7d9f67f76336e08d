/*
 * A change is only a reason to look again: what the tree is then like is told by cgroup_resolve(), never put together
 * from events. So a queue that overflowed, a folder that was moved, or one that came and went unseen need no care of
 * their own.
 *
 * A folder is watched before it is listed. What appears in it later is an event; what was there before is in the list.
 * The kernel does not end the watch of a cgroup that is removed (kernfs keeps the link count), and the watch
 * would keep its inode for ever: so watches are removed by what the folder above says.
 */
#include "daemon/kernel/cgroup/cgroup.h"

#include "config/text/words.h"
#include "daemon/base/thread.h"
#include "daemon/kernel/cgroup/container-files.h"
#include "daemon/kernel/cgroup/folders.h"
#include "daemon/kernel/cgroup/walk.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

#define MASK (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MOVE_SELF | IN_ONLYDIR)
#define STATE_FOLDERS_MAX 4
#define READS_MAX 16 /* for one wakeup of the loop, which comes again */

typedef struct Name {
        char *text; /* as it was given */
        CgroupPattern pattern;
} Name;

struct CgroupWatch {
        int fd;
        CgroupHierarchy hierarchy;
        Name *names;
        size_t n_names;
        CgroupFolders folders;
        int state_wds[STATE_FOLDERS_MAX]; /* of container_state_folders[]; -1 */
};

static void name_deinit(Name *n) {
        cgroup_pattern_deinit(&n->pattern);
        free(n->text);
}

/* EINVAL: the kernel has ended the watch already. */
static void forget_folder(CgroupWatch *w, CgroupWatched *f) {
        (void)inotify_rm_watch(w->fd, f->wd);
        cgroup_folders_remove(&w->folders, f);
}

static void forget_folders(CgroupWatch *w) {
        while (w->folders.n > 0)
                forget_folder(w, &w->folders.list[w->folders.n - 1]);
}

/* What an administrator may raise, with what it is now. */
static int refuse_inotify(const char *what, int error, Explanation *e) {
        const char *limit = error == EMFILE ? "max_user_instances" : "max_user_watches";
        char path[64], line[32] = "unknown";
        _cleanup_fclose_ FILE *f = NULL;

        if (error == ENOMEM)
                return refuse_kernel_memory(e, QUOTE(what));
        if (error != EMFILE && error != ENFILE && error != ENOSPC)
                return refuse(e, REFUSED_UNSUPPORTED, "inotify", "%s cannot be watched by inotify(7): %s", QUOTE(what),
                              strerror(error));
        (void)snprintf(path, sizeof(path), "/proc/sys/fs/inotify/%s", limit);
        f = fopen(path, "re");
        if (f && fgets(line, sizeof(line), f))
                line[strcspn(line, "\n")] = '\0';
        return refuse(e, REFUSED_EXHAUSTED, "inotify",
                      "%s cannot be watched by inotify(7): %s; raise fs.inotify.%s, which is %s%s", QUOTE(what),
                      strerror(error), limit, line, error == ENOSPC ? "" : ", or LimitNOFILE= (RLIMIT_NOFILE)");
}

int cgroup_watch_open(const CgroupHierarchy *h, CgroupWatch **ret, Explanation *e) {
        _cleanup_(cgroup_watch_closep) CgroupWatch *w = calloc(1, sizeof(*w));

        thread_assert(THREAD_MAIN);
        if (!w)
                return error_origin(-ENOMEM);
        w->fd = -1;
        for (size_t i = 0; i < STATE_FOLDERS_MAX; i++)
                w->state_wds[i] = -1;
        w->hierarchy = (CgroupHierarchy){ .path = strdup(h->path), .root = strdup(h->root),
                                          .host = strdup(h->host ? h->host : ""), .is_v1 = h->is_v1 };
        if (!w->hierarchy.path || !w->hierarchy.root || !w->hierarchy.host)
                return error_origin(-ENOMEM);
        w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        if (w->fd < 0)
                return refuse_inotify(h->path, errno, e);
        *ret = TAKE_PTR(w);
        return 0;
}

CgroupWatch *cgroup_watch_close(CgroupWatch *w) {
        if (!w)
                return NULL;
        cgroup_folders_deinit(&w->folders);
        for (size_t i = 0; i < w->n_names; i++)
                name_deinit(&w->names[i]);
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
        return cgroup_folders_set(&w->folders, wd, folder->path);
}

static size_t find_name(const CgroupWatch *w, CgroupNaming naming, const char *name) {
        size_t i = 0;

        while (i < w->n_names && (w->names[i].pattern.naming != naming || strcmp(w->names[i].text, name) != 0))
                i++;
        return i;
}

static int keep_name(CgroupWatch *w, CgroupNaming naming, const char *text, Explanation *e) {
        Name *more = reallocarray(w->names, w->n_names + 1, sizeof(*more)), name = { .text = NULL };
        int r;

        if (!more)
                return error_origin(-ENOMEM);
        w->names = more;
        r = cgroup_pattern_init(&name.pattern, naming, text, e);
        if (r != 0)
                return r;
        name.text = strdup(text);
        if (!name.text) {
                name_deinit(&name);
                return error_origin(-ENOMEM);
        }
        more[w->n_names++] = name;
        return 0;
}

/*
 * podman renames a container while it runs, and the tree does not change. A folder that is not there, or may not be watched,
 * costs only that: a container that is made has a new cgroup too.
 */
static void watch_state(CgroupWatch *w) {
        for (size_t i = 0; container_state_folders[i] && i < STATE_FOLDERS_MAX; i++) {
                char path[PATH_MAX];

                if ((size_t)snprintf(path, sizeof(path), "%s%s", w->hierarchy.host, container_state_folders[i]) < sizeof(path))
                        w->state_wds[i] = inotify_add_watch(w->fd, path, IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR);
        }
}

static bool is_of_state(const CgroupWatch *w, const struct inotify_event *event) {
        for (size_t i = 0; i < STATE_FOLDERS_MAX; i++)
                if (w->state_wds[i] == event->wd && event->len > 0 && container_state_is_file(event->name))
                        return true;
        return false;
}

int cgroup_watch_add(CgroupWatch *w, CgroupNaming naming, const char *name, Explanation *e) {
        size_t i = find_name(w, naming, name);
        bool is_new = i == w->n_names;
        int r = 0;

        thread_assert(THREAD_MAIN);
        if (is_new)
                r = keep_name(w, naming, name, e);
        if (r == 0 && naming == CGROUP_BY_CONTAINER)
                watch_state(w); /* again each time: podman makes the folder with its first container */
        if (r == 0)
                r = cgroup_walk(&w->hierarchy, &w->names[i].pattern, watch_folder, w, e);
        if (r != 0 && is_new)
                cgroup_watch_remove(w, naming, name);
        return r;
}

static bool is_needed(const CgroupWatch *w, const char *path) {
        for (size_t i = 0; i < w->n_names; i++) {
                const CgroupPattern *p = &w->names[i].pattern;

                if (cgroup_pattern_goes_on(p, cgroup_pattern_walk(p, path)))
                        return true;
        }
        return false;
}

void cgroup_watch_remove(CgroupWatch *w, CgroupNaming naming, const char *name) {
        size_t i = find_name(w, naming, name);

        if (i == w->n_names)
                return;
        name_deinit(&w->names[i]);
        w->names[i] = w->names[--w->n_names];
        for (i = w->folders.n; i-- > 0;)
                if (!is_needed(w, w->folders.list[i].path))
                        forget_folder(w, &w->folders.list[i]);
}

/* Whether a folder of this name there can be a match, or on the way to one. */
static bool is_of_interest(const CgroupWatch *w, const char *parent, const char *name) {
        for (size_t i = 0; i < w->n_names; i++) {
                const CgroupPattern *p = &w->names[i].pattern;

                if (cgroup_pattern_step(p, cgroup_pattern_walk(p, parent), name) != 0)
                        return true;
        }
        return false;
}

/* What had this path, and all below. If there is a new one already, it is watched again: this is a change. */
static void forget_below(CgroupWatch *w, const char *parent, const char *name) {
        size_t n = strcmp(parent, "/") == 0 ? 0 : strlen(parent), n_name = strlen(name);

        for (size_t i = w->folders.n; i-- > 0;) {
                const char *path = w->folders.list[i].path;

                if (strncmp(path, parent, n) == 0 && path[n] == '/' && strncmp(path + n + 1, name, n_name) == 0 &&
                    (path[n + 1 + n_name] == '/' || path[n + 1 + n_name] == '\0'))
                        forget_folder(w, &w->folders.list[i]);
        }
}

static bool event_changes(CgroupWatch *w, const struct inotify_event *event) {
        CgroupWatched *f = cgroup_folders_find(&w->folders, event->wd);

        if (event->mask & IN_Q_OVERFLOW || (f && event->mask & (IN_MOVE_SELF | IN_UNMOUNT))) {
                forget_folders(w); /* some are gone, or called otherwise; the caller lets all be watched again */
                return true;
        }
        if (!f && is_of_state(w, event))
                return true;
        if (!f || event->len == 0 || !(event->mask & IN_ISDIR)) {
                if (f && event->mask & IN_IGNORED)
                        cgroup_folders_remove(&w->folders, f); /* the folder above has said so */
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
                        return error_origin(-errno);
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
