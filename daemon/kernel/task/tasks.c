/* A thread list is a moment's truth: who needs more looks twice (supervisor/events/open.c). */
#include "daemon/kernel/task/tasks.h"

#include "config/host.h"
#include "daemon/base/checkpoint.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/cpu-list.h"
#include "daemon/kernel/host/whole-file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ROOT_PID_NAMESPACE 0xEFFFFFFCU /* PROC_PID_INIT_INO, include/linux/proc_ns.h */

#define STAT_SIZE 1024 /* of a line of numbers, with its zero */

DEFINE_CLEANUP(DIR *, closedir)

static int compare_tids(const void *a, const void *b) {
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return (x > y) - (x < y);
}

/* Only what is really gone is "gone": a process that cannot be looked at for lack of an fd is still there. */
static int explain_proc(const char *path, uint32_t pid, int error, Explanation *e) {
        if (error == ENOENT || error == ESRCH)
                return refuse(e, REFUSED_NOT_FOUND, "gone", "there is no process %u", pid);
        if (error == ENOMEM)
                return refuse_kernel_memory(e, path);
        if (error == EMFILE || error == ENFILE)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-fds",
                              "no fd is left to read %s; raise LimitNOFILE= (RLIMIT_NOFILE) or trace less", path);
        if (error == EACCES || error == EPERM)
                return refuse(e, REFUSED_DENIED, "no-permission",
                              "%s cannot be read: %s; is /proc mounted with hidepid?", path, strerror(error));
        return refuse(e, REFUSED_UNSUPPORTED, "kernel", "%s cannot be read: %s", path, strerror(error));
}

int tasks_of_process(uint32_t pid, uint32_t **ret_tids, size_t *ret_n, Explanation *e) {
        _cleanup_(closedirp) DIR *d = NULL;
        _cleanup_free_ uint32_t *tids = NULL;
        struct dirent *entry;
        char path[64];
        size_t n = 0;

        (void)snprintf(path, sizeof(path), "/proc/%u/task", pid);
        d = opendir(path);
        if (!d)
                return explain_proc(path, pid, errno, e);
        while (errno = 0, (entry = readdir(d))) {
                char *end;
                unsigned long tid = strtoul(entry->d_name, &end, 10);
                uint32_t *more;

                if (*end || tid == 0)
                        continue;
                more = reallocarray(tids, n + 1, sizeof(*tids));
                if (!more)
                        return error_origin(-ENOMEM);
                tids = more;
                tids[n++] = (uint32_t)tid;
        }
        if (n == 0 || errno != 0) /* one that is gone has no threads any more */
                return explain_proc(path, pid, errno != 0 ? errno : ESRCH, e);
        qsort(tids, n, sizeof(*tids), compare_tids);
        *ret_tids = TAKE_PTR(tids);
        *ret_n = n;
        return 0;
}

typedef struct Family {
        uint32_t pid, parent;
        bool ours;
} Family;

/*
 * What is behind the comm, which may hold anything: " S PPID ...". NULL, and errno: it cannot be read. The file of the thread: in that
 * of the process the kernel adds up the times of all threads, 0.1 ms for 1,000 of them (fs/proc/array.c, do_task_stat()).
 */
static const char *read_stat(uint32_t tid, char stat[static STAT_SIZE]) {
        _cleanup_close_ int fd = -1;
        const char *comm_end;
        char path[48];
        ssize_t n;

        (void)snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", tid, tid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, stat, STAT_SIZE - 1);
        if (n == 0)
                errno = ESRCH;
        if (n <= 0)
                return NULL;
        stat[n] = '\0';
        comm_end = strrchr(stat, ')');
        return comm_end ? comm_end + 1 : stat + n;
}

static int parent_of(uint32_t pid, uint32_t *ret_parent, Explanation *e) {
        char path[48], text[STAT_SIZE];
        const char *stat = read_stat(pid, text);

        (void)snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", pid, pid);
        if (!stat)
                return explain_proc(path, pid, errno, e);
        *ret_parent = strlen(stat) > 3 ? (uint32_t)strtoul(stat + 3, NULL, 10) : 0;
        return 0;
}

char task_state(uint32_t tid) {
        char text[STAT_SIZE];
        const char *stat = read_stat(tid, text);

        return stat && *stat ? stat[1] : '\0';
}

/* stat has the birth in clock ticks of CLOCK_BOOTTIME, as its 20th field behind the comm. */
char task_life(clockid_t clock, uint32_t tid, nsec_t *ret_birth) {
        nsec_t now = clock_now(clock), boot = clock_now(CLOCK_BOOTTIME), start;
        unsigned long long ticks;
        char text[STAT_SIZE];
        const char *stat = read_stat(tid, text);

        if (!stat || sscanf(stat, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &ticks) != 1)
                return '\0';
        start = (nsec_t)((double)ticks / (double)sysconf(_SC_CLK_TCK) * (double)NSEC_PER_SEC);
        start = start < boot ? boot - start : 0; /* its age, by both clocks the same */
        *ret_birth = start < now ? now - start : 0;
        return stat[1];
}

bool task_birth(clockid_t clock, uint32_t tid, nsec_t *ret) {
        return task_life(clock, tid, ret) != '\0';
}

static int read_families(Family **ret, size_t *ret_n, Explanation *e) {
        _cleanup_(closedirp) DIR *d = opendir("/proc");
        _cleanup_free_ Family *families = NULL;
        struct dirent *entry;
        size_t n = 0;

        if (!d)
                return explain_proc("/proc", 0, errno, e);
        while (errno = 0, (entry = readdir(d))) {
                char *end;
                unsigned long pid = strtoul(entry->d_name, &end, 10);
                Family *more, one = { .pid = (uint32_t)pid };
                int r;

                if (*end || pid == 0)
                        continue;
                r = checkpoint(e);
                if (r != 0)
                        return r;
                r = parent_of(one.pid, &one.parent, e);
                if (r == REFUSED_NOT_FOUND || r == REFUSED_DENIED)
                        continue; /* gone, or hidden from us with all its children */
                if (r != 0)
                        return r;
                more = reallocarray(families, n + 1, sizeof(*families));
                if (!more)
                        return error_origin(-ENOMEM);
                families = more;
                families[n++] = one;
        }
        if (errno != 0)
                return explain_proc("/proc", 0, errno, e);
        *ret = TAKE_PTR(families);
        *ret_n = n;
        return 0;
}

static int compare_parents(const void *a, const void *b) {
        const Family *x = a, *y = b;

        return (x->parent > y->parent) - (x->parent < y->parent);
}

/* The first of those, sorted by their parents, whose parent it is; n: there is none. */
static size_t find_first_child(const Family *families, size_t n, uint32_t parent) {
        size_t first = 0, last = n;

        while (first < last) {
                size_t middle = first + (last - first) / 2;

                if (families[middle].parent < parent)
                        first = middle + 1;
                else
                        last = middle;
        }
        return first;
}

/* Of one parent, behind those that are there. A pid that is used again may make circles: each is taken once. */
static size_t add_children(Family *families, size_t n, uint32_t parent, uint32_t *pids, size_t n_pids) {
        for (size_t i = find_first_child(families, n, parent); i < n && families[i].parent == parent; i++) {
                if (!families[i].ours)
                        pids[n_pids++] = families[i].pid;
                families[i].ours = true;
        }
        return n_pids;
}

void task_families_deinit(TaskFamilies *f) {
        free(f->list);
        *f = (TaskFamilies){ .list = NULL };
}

/* With checkpoints, at which others may do the same. */
static int families_update(TaskFamilies *f, nsec_t max_age, Explanation *e) {
        TaskFamilies now = { .read_at = clock_now(CLOCK_MONOTONIC) };
        int r;

        if (f->list && now.read_at - f->read_at < max_age)
                return 0;
        r = read_families(&now.list, &now.n, e);
        if (r != 0)
                return r;
        if (now.n > 0)
                qsort(now.list, now.n, sizeof(*now.list), compare_parents);
        task_families_deinit(f);
        *f = now;
        return 0;
}

int tasks_descendants(TaskFamilies *f, nsec_t max_age, const uint32_t *roots, size_t n_roots, uint32_t **ret_pids, size_t *ret_n,
                      Explanation *e) {
        size_t n_pids = 0;
        uint32_t *pids;
        int r = families_update(f, max_age, e);

        if (r != 0)
                return r;
        pids = malloc((f->n + 1) * sizeof(*pids));
        if (!pids)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < f->n; i++)
                f->list[i].ours = bsearch(&f->list[i].pid, roots, n_roots, sizeof(*roots), compare_tids);
        for (size_t i = 0; i < n_roots; i++)
                n_pids = add_children(f->list, f->n, roots[i], pids, n_pids);
        for (size_t i = 0; i < n_pids; i++)
                n_pids = add_children(f->list, f->n, pids[i], pids, n_pids);
        *ret_pids = pids;
        *ret_n = n_pids;
        return 0;
}

bool task_comm(uint32_t tid, char ret_comm[static COMM_SIZE]) {
        _cleanup_close_ int fd = -1;
        char path[32];
        ssize_t n;

        (void)snprintf(path, sizeof(path), "/proc/%u/comm", tid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false;
        memset(ret_comm, 0, COMM_SIZE);
        n = read(fd, ret_comm, COMM_SIZE);
        if (n <= 0)
                return false;
        ret_comm[n - 1] = '\0'; /* its newline */
        return true;
}

bool tasks_in_root_namespace(void) {
        struct stat s;

        return stat("/proc/self/ns/pid", &s) == 0 && s.st_ino == ROOT_PID_NAMESPACE;
}

bool tasks_has_own_proc(void) {
        char own[32], found[32] = "";
        ssize_t n = readlink("/proc/self", found, sizeof(found) - 1);

        (void)snprintf(own, sizeof(own), "%d", (int)getpid());
        return n > 0 && strcmp(own, found) == 0;
}

/* As long as it is: each second of 8192 CPUs are 19 KiB. */
int cpus_read(const char *path, uint32_t **ret_cpus, size_t *ret_n, Explanation *e) {
        _cleanup_free_ char *list = NULL;
        size_t length;
        int r = whole_file_read(path, &list, &length);

        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return refuse(e, REFUSED_UNSUPPORTED, "kernel", "%s cannot be read: %s; is sysfs mounted?", path, strerror(-r));
        return cpu_list_parse(list, ret_cpus, ret_n, e);
}

int cpus_possible(uint32_t **ret_cpus, size_t *ret_n, Explanation *e) {
        return cpus_read("/sys/devices/system/cpu/possible", ret_cpus, ret_n, e);
}

int cpus_online(uint32_t **ret_cpus, size_t *ret_n, Explanation *e) {
        return cpus_read("/sys/devices/system/cpu/online", ret_cpus, ret_n, e);
}

int cpus_tell_config(void) {
        _cleanup_free_ uint32_t *possible = NULL, *online = NULL;
        _cleanup_free_ bool *is_online = NULL;
        size_t n_possible, n_online, k = 0;
        int r = cpus_possible(&possible, &n_possible, NULL);

        if (r == 0)
                r = cpus_online(&online, &n_online, NULL);
        if (r != 0)
                return r < 0 ? r : 0; /* who needs them says that they are not known */
        is_online = calloc(n_possible, sizeof(*is_online));
        if (!is_online)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < n_possible; i++) {
                while (k < n_online && online[k] < possible[i])
                        k++;
                is_online[i] = k < n_online && online[k] == possible[i];
        }
        return config_set_host_cpus(possible, is_online, n_possible);
}
