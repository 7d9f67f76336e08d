/*
 * /proc, one process after the other. Nothing holds it still meanwhile: each process has the time before it was first
 * looked at, so that whatever the kernel tells of it later is known to be newer.
 */
#include "daemon/kernel/task/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/checkpoint.h"
#include "daemon/kernel/host/whole-file.h"
#include "daemon/model/task-note.h"

DEFINE_CLEANUP(DIR *, closedir)

/* Starts are in clock ticks of CLOCK_BOOTTIME. */
typedef struct Scanner {
        clockid_t clock;
        const char *cgroups;
        long ticks;    /* a second */
        nsec_t behind; /* the stream's clock is behind CLOCK_BOOTTIME */
        bool is_ahead; /* or ahead of it, by that much */
} Scanner;

/* As much of the file as fits, terminated; false: gone, or not for us. */
static bool read_file(int folder, const char *name, char *text, size_t size) {
        _cleanup_close_ int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
        size_t used = 0;
        ssize_t n = 0;

        if (fd < 0)
                return false;
        while (used < size - 1 && (n = read(fd, text + used, size - 1 - used)) > 0)
                used += (size_t)n;
        text[used] = '\0';
        return n >= 0 && used > 0;
}

static nsec_t start_of(const Scanner *s, uint64_t ticks) {
        nsec_t boot = ticks / (uint64_t)s->ticks * NSEC_PER_SEC + ticks % (uint64_t)s->ticks * (NSEC_PER_SEC / (uint64_t)s->ticks);

        if (s->is_ahead)
                return boot + s->behind;
        return boot > s->behind ? boot - s->behind : 0;
}

bool process_parse_stat(const char *text, uint32_t *ret_parent, uint64_t *ret_ticks) {
        const char *at = strrchr(text, ')');
        unsigned long long ticks;
        unsigned parent;

        if (!at || sscanf(at + 1, " %*c %u %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &parent,
                          &ticks) != 2)
                return false;
        *ret_parent = parent;
        *ret_ticks = ticks;
        return true;
}

bool process_parse_uid(const char *text, uint32_t *ret_uid) {
        const char *at = strstr(text, "\nUid:");

        return at && sscanf(at + strlen("\nUid:"), "%u", ret_uid) == 1;
}

/* One line that is much shorter: the comm has at most 64 bytes. */
static bool read_stat(const Scanner *s, int folder, ScannedProcess *p) {
        char text[1024];
        uint64_t ticks;

        if (!read_file(folder, "stat", text, sizeof(text)) || !process_parse_stat(text, &p->parent, &ticks))
                return false;
        p->start = start_of(s, ticks);
        return true;
}

/* The uid stands before what can be long, the groups. */
static bool read_uid(int folder, ScannedProcess *p) {
        char text[1024];

        return read_file(folder, "status", text, sizeof(text)) && process_parse_uid(text, &p->uid);
}

const char *process_cgroup_path(const char *text, size_t *ret_length) {
        const char *found = NULL;

        for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
                const char *controllers = strchr(line, ':'), *path;

                end = strchrnul(line, '\n');
                path = controllers && controllers < end ? memchr(controllers + 1, ':', (size_t)(end - controllers - 1)) : NULL;
                if (!path)
                        continue;
                if (strncmp(line, "0::", 3) == 0 && !found) {
                        found = path + 1;
                        *ret_length = (size_t)(end - found);
                }
                for (const char *c = controllers + 1, *next; c < path; c = next + 1) {
                        next = memchr(c, ',', (size_t)(path - c));
                        next = next ? next : path;
                        if (next - c == 10 && memcmp(c, "perf_event", 10) == 0) {
                                *ret_length = (size_t)(end - path - 1);
                                return path + 1;
                        }
                }
        }
        return found;
}

/* 0 also if it has none; -ENOMEM. */
static int read_cgroup(const Scanner *s, int folder, ScannedProcess *p) {
        _cleanup_free_ char *text = NULL; /* a line for each hierarchy, each as long as a path can be */
        char path[2 * TASK_TEXT_MAX];
        const char *found;
        struct stat st;
        size_t length;
        int r = whole_file_read_at(folder, "cgroup", &text, &length);

        if (r == -ENOMEM)
                return r;
        if (r < 0 || !(found = process_cgroup_path(text, &length)))
                return 0;
        p->cgroup = strndup(found, length);
        if (!p->cgroup)
                return error_origin(-ENOMEM);
        if (s->cgroups && strncmp(p->cgroup, "/..", 3) != 0 && /* outside of our cgroup namespace */
            snprintf(path, sizeof(path), "%s%s", s->cgroups, p->cgroup) < (int)sizeof(path) && stat(path, &st) == 0)
                p->cgroup_id = st.st_ino;
        return 0;
}

static int read_executable(int folder, ScannedProcess *p) {
        char path[TASK_TEXT_MAX];
        ssize_t n = readlinkat(folder, "exe", path, sizeof(path));

        if (n <= 0) /* a kernel thread, or it is ending */
                return 0;
        p->executable = strndup(path, (size_t)n);
        return p->executable ? 0 : error_origin(-ENOMEM);
}

static int add_thread(int folder, const char *tid, ScannedProcess *p) {
        char name[64], comm[COMM_SIZE + 2];
        ScannedThread *more;
        size_t n;

        if (snprintf(name, sizeof(name), "%s/comm", tid) >= (int)sizeof(name) ||
            !read_file(folder, name, comm, sizeof(comm)))
                return 0; /* gone */
        more = reallocarray(p->threads, p->n_threads + 1, sizeof(*more));
        if (!more)
                return error_origin(-ENOMEM);
        p->threads = more;
        more += p->n_threads++;
        *more = (ScannedThread){ .tid = (uint32_t)strtoul(tid, NULL, 10) };
        n = strlen(comm);
        if (n > 0 && comm[n - 1] == '\n')
                n--;
        memcpy(more->comm, comm, n < COMM_SIZE ? n : COMM_SIZE - 1);
        return 0;
}

static int read_threads(int folder, ScannedProcess *p) {
        _cleanup_(closedirp) DIR *d = NULL;
        struct dirent *entry;
        int fd = openat(folder, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;

        if (fd < 0)
                return 0;
        d = fdopendir(fd);
        if (!d) {
                close_fd(fd);
                return error_origin(-ENOMEM);
        }
        while (r == 0 && (entry = readdir(d)))
                if (entry->d_name[0] != '.')
                        r = add_thread(fd, entry->d_name, p);
        return r;
}

/* 0 with *ret_there false: it is gone. */
static int scan_process(const Scanner *s, int proc, const char *pid, ScannedProcess *p, bool *ret_there) {
        _cleanup_close_ int folder = openat(proc, pid, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r;

        *p = (ScannedProcess){ .pid = (uint32_t)strtoul(pid, NULL, 10), .time = clock_now(s->clock) };
        *ret_there = folder >= 0 && read_stat(s, folder, p) && read_uid(folder, p);
        if (!*ret_there)
                return 0;
        if ((r = read_executable(folder, p)) < 0 || (r = read_cgroup(s, folder, p)) < 0)
                return r;
        r = read_threads(folder, p);
        *ret_there = p->n_threads > 0;
        return r;
}

static int add_process(const Scanner *s, int proc, const char *pid, TaskScan *scan) {
        ScannedProcess one, *more;
        bool is_there;
        int r = scan_process(s, proc, pid, &one, &is_there);

        if (r == 0 && is_there) {
                more = reallocarray(scan->processes, scan->n + 1, sizeof(*more));
                if (more) {
                        scan->processes = more;
                        more[scan->n++] = one;
                        return 0;
                }
                r = error_origin(-ENOMEM);
        }
        scanned_process_deinit(&one);
        return r;
}

static int explain(int error, Explanation *e) {
        if (error == ENOMEM)
                return refuse_kernel_memory(e, "/proc");
        if (error == EMFILE || error == ENFILE)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-fds",
                              "no fd is left to read /proc: raise LimitNOFILE= (RLIMIT_NOFILE), or trace less");
        return refuse(e, error == EACCES ? REFUSED_DENIED : REFUSED_UNSUPPORTED, "kernel", "/proc cannot be read: %s",
                      strerror(error));
}

static Scanner scanner_of(clockid_t clock, const char *cgroups) {
        nsec_t now = clock_now(clock), boot = clock_now(CLOCK_BOOTTIME);

        return (Scanner){ .clock = clock, .cgroups = cgroups, .ticks = sysconf(_SC_CLK_TCK), .is_ahead = now > boot,
                          .behind = now > boot ? now - boot : boot - now };
}

int process_read_cgroup(const char *cgroups, uint32_t pid, char **ret_path, uint64_t *ret_id) {
        const Scanner s = { .cgroups = cgroups };
        _cleanup_close_ int folder = -1;
        ScannedProcess p = { .pid = pid };
        char path[32];
        int r;

        (void)snprintf(path, sizeof(path), "/proc/%u", pid);
        folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = folder < 0 ? 0 : read_cgroup(&s, folder, &p);
        if (r < 0)
                return r;
        *ret_path = p.cgroup;
        *ret_id = p.cgroup_id;
        return 0;
}

bool process_read_uid(uint32_t pid, uint32_t *ret) {
        char path[32], text[1024];

        (void)snprintf(path, sizeof(path), "/proc/%u/status", pid);
        return read_file(AT_FDCWD, path, text, sizeof(text)) && process_parse_uid(text, ret);
}

int process_scan(clockid_t clock, const char *cgroups, TaskScan **ret, Explanation *e) {
        _cleanup_(task_scan_freep) TaskScan *scan = calloc(1, sizeof(*scan));
        Scanner s = scanner_of(clock, cgroups);
        _cleanup_(closedirp) DIR *d = NULL;
        struct dirent *entry;
        int r = 0;

        if (!scan)
                return error_origin(-ENOMEM);
        scan->begin = clock_now(clock);
        d = opendir("/proc");
        if (!d)
                return explain(errno, e);
        while (r == 0 && (entry = readdir(d)))
                if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') {
                        r = checkpoint(e);
                        if (r == 0)
                                r = add_process(&s, dirfd(d), entry->d_name, scan);
                }
        if (r == 0)
                *ret = TAKE_PTR(scan);
        return r;
}
