/*
 * A folder is opened from the one that holds it, never by its path again: what is renamed or recreated meanwhile is not mistaken for
 * what was looked at. That the folder is the user's says only that it was given to him. Whom he may trace is asked of each process,
 * because anybody who may write to two cgroups can move a process, and a setuid program stays in the cgroup of its caller.
 */
#include "daemon/kernel/cgroup/own-cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/checkpoint.h"
#include "daemon/base/error-trail.h"
#include "daemon/kernel/cgroup/walk.h"
#include "daemon/kernel/task/own-task.h"
#include "daemon/kernel/host/whole-file.h"

typedef struct Search {
        const Cgroup *cgroup;
        uid_t uid;
        gid_t gid;
        dev_t device;
        size_t n_folders, most;
        OwnPids *to;
} Search;

void own_pids_deinit(OwnPids *p) {
        free(p->list);
        *p = OWN_PIDS_NULL;
}

static int pids_add(Search *q, uint32_t pid, Explanation *e) {
        OwnPids *p = q->to;

        if (p->n == q->most)
                return refuse(e, REFUSED_EXHAUSTED, "bad-target", "cgroup %s and what is below it have more than %zu processes, "
                        "the limit of an event of a client of the stream socket: name a cgroup below it",
                              q->cgroup->path, q->most);
        if (p->n == p->n_allocated) {
                size_t n = p->n_allocated * 2 + 16;
                uint32_t *more = reallocarray(p->list, n, sizeof(*more));

                if (!more)
                        return error_origin(-ENOMEM);
                p->list = more;
                p->n_allocated = n;
        }
        p->list[p->n++] = pid;
        return 0;
}

static int take_process(Search *q, uint32_t pid, Explanation *e) {
        OwnTask task;
        int r = checkpoint(e);

        if (r == 0)
                r = own_task_open(pid, &task, e);
        if (r != 0)
                return r == OWN_TASK_E_GONE ? 0 : r;
        r = own_task_check(&task, q->uid, q->gid);
        close_fd(task.fd);
        return r == 0 ? pids_add(q, pid, e) : 0;
}

/* A cgroup of threads answers EOPNOTSUPP: its processes are in one above it. 0 is one that perfd's pid namespace does not have. */
static int take_processes(Search *q, int fd, Explanation *e) {
        _cleanup_free_ char *text = NULL;
        size_t length;
        char *at, *end;
        int r = whole_file_read_at(fd, "cgroup.procs", &text, &length);

        if (r < 0)
                return r == -ENOMEM ? r : 0;
        for (at = text; r == 0; at = end) {
                unsigned long pid = strtoul(at, &end, 10);

                if (end == at)
                        break;
                r = pid > 0 ? take_process(q, (uint32_t)pid, e) : 0;
        }
        return r;
}

static int search(Search *q, int fd, size_t depth, Explanation *e);

static int search_below(Search *q, int fd, size_t depth, Explanation *e) {
        _cleanup_(strings_deinit) Strings names = STRINGS_NULL;
        int r = cgroup_walk_list(fd, q->cgroup->path, &names, e);

        for (size_t i = 0; i < names.n && r == 0; i++) {
                _cleanup_close_ int next = openat(fd, names.items[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

                if (next >= 0)
                        r = search(q, next, depth + 1, e);
                else if (errno == EMFILE || errno == ENFILE)
                        r = refuse(e, REFUSED_EXHAUSTED, "too-many-fds", "the cgroups below %s cannot be examined: %s",
                                   q->cgroup->path, strerror(errno));
                r = r == OWN_CGROUP_E_FOREIGN ? 0 : r;
        }
        return r;
}

static int search(Search *q, int fd, size_t depth, Explanation *e) {
        struct stat st;
        int r = checkpoint(e);

        if (r != 0)
                return r;
        if (fstat(fd, &st) < 0 || st.st_uid != q->uid || st.st_dev != q->device)
                return OWN_CGROUP_E_FOREIGN;
        if (depth > OWN_CGROUP_DEPTH_MAX || q->n_folders++ == OWN_CGROUP_FOLDERS_MAX)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-cgroups", "below cgroup %s there are more than %d others, or more "
                        "than %d nested ones: name a cgroup below it", q->cgroup->path, OWN_CGROUP_FOLDERS_MAX,
                              OWN_CGROUP_DEPTH_MAX);
        r = take_processes(q, fd, e);
        return r == 0 ? search_below(q, fd, depth, e) : r;
}

int own_cgroup_find(const Cgroup *c, uid_t uid, gid_t gid, size_t most, OwnPids *to, Explanation *e) {
        Search q = { .cgroup = c, .uid = uid, .gid = gid, .most = most, .to = to };
        struct stat st;

        if (fstat(c->fd, &st) < 0)
                return OWN_CGROUP_E_FOREIGN;
        q.device = st.st_dev;
        return search(&q, c->fd, 0, e);
}
