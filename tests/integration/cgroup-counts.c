/*
 * Names of cgroups on the real hierarchy of this host: what they are resolved to is what perf_event_open(2) counts by,
 * exactly, and what comes and goes there is told. All cgroups are this program's own, and removed at the end. Exits
 * with 77, which meson counts as skipped, where cgroups cannot be made.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/kernel/cgroup/cgroup.h"
#include "daemon/kernel/task/tasks.h"
#include "daemon/kernel/tracefs/tracing.h"

#define N_CALLS 1000
#define ID "c0ffee0e1a95c3cb7ef3c7c4ff4d9ad2a92ed1b2a5a3bb1d6ff41e0a3b7c9d1"

static CgroupHierarchy hierarchy;
static Tracing tracing;
static char top[64];   /* "/perfd-test-PID" */
static char scope[96]; /* "docker-<id>.scope", whose last digit is this program's own */

static const char *const folders[] = { "", "/inner", "/inner/deep", "/outside", "/perfd-test@1.service" };

/* Those who call it end with it; what was made is removed by tear_down(). */
static void check(bool yes, const char *what, int line) {
        if (yes)
                return;
        fprintf(stderr, "cgroup-counts.c:%d: not so: %s (%s)\n", line, what, strerror(errno));
        exit(EXIT_FAILURE);
}

#define CHECK(condition) check((condition), #condition, __LINE__)

static void path_of(const char *name, char ret[static PATH_MAX]) {
        (void)snprintf(ret, PATH_MAX, "%s%s%s", hierarchy.path, top, name);
}

static int make(const char *name) {
        char path[PATH_MAX];

        path_of(name, path);
        return mkdir(path, 0755);
}

static int unmake(const char *name) {
        char path[PATH_MAX];

        path_of(name, path);
        return rmdir(path);
}

static void tear_down(void) {
        static const char *const passing[] = { "/inner/new/x", "/inner/new/y", "/inner/new" };

        for (size_t i = 0; i < ARRAY_SIZE(passing); i++)
                (void)unmake(passing[i]); /* if test_watch() did not come to it */
        (void)unmake(scope);
        for (size_t i = ARRAY_SIZE(folders); i-- > 0;)
                (void)unmake(folders[i]);
        tracing_close(&tracing);
        cgroup_hierarchy_deinit(&hierarchy);
}

static void set_up(void) {
        (void)snprintf(top, sizeof(top), "/perfd-test-%d", (int)getpid());
        (void)snprintf(scope, sizeof(scope), "/docker-" ID "%x.scope", (unsigned)getpid() % 16);
        CHECK(atexit(tear_down) == 0);
        for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
                CHECK(make(folders[i]) == 0);
        CHECK(make(scope) == 0);
}

static void resolve_one(CgroupNaming naming, const char *name, Cgroup *ret) {
        Explanation e = EXPLANATION_NULL;
        Cgroup *list = NULL;
        size_t n = 0;

        check(cgroup_resolve(&hierarchy, naming, name, &list, &n, &e) == 0, e.text, __LINE__);
        CHECK(n == 1);
        *ret = list[0];
        free(list);
}

static void resolve_below(const char *name, Cgroup *ret) {
        char whole[256];

        (void)snprintf(whole, sizeof(whole), "%s/%s", top, name);
        resolve_one(CGROUP_BY_PATH, whole, ret);
}

static uint64_t getppid_id(void) {
        unsigned long long id = 0;
        char path[256];
        FILE *f;

        (void)snprintf(path, sizeof(path), "%s/events/syscalls/sys_enter_getppid/id", tracing.root);
        f = fopen(path, "re");
        CHECK(f != NULL);
        CHECK(fscanf(f, "%llu", &id) == 1);
        fclose(f);
        return id;
}

typedef struct Counts {
        uint32_t *cpus;
        size_t n;
        int *fds;
} Counts;

static void counts_open(Counts *c, const Cgroup *cgroup) {
        struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .size = PERF_ATTR_SIZE_VER0,
                                        .config = getppid_id() };

        CHECK(cpus_online(&c->cpus, &c->n, NULL) == 0);
        c->fds = calloc(c->n, sizeof(*c->fds));
        CHECK(c->fds != NULL);
        for (size_t i = 0; i < c->n; i++) {
                c->fds[i] = (int)syscall(SYS_perf_event_open, &attr, cgroup->fd, (int)c->cpus[i], -1,
                                         PERF_FLAG_PID_CGROUP | PERF_FLAG_FD_CLOEXEC);
                CHECK(c->fds[i] >= 0);
        }
}

static uint64_t counts_close(Counts *c) {
        uint64_t sum = 0;

        for (size_t i = 0; i < c->n; i++) {
                uint64_t one = 0;

                CHECK(read(c->fds[i], &one, sizeof(one)) == sizeof(one));
                sum += one;
                close(c->fds[i]);
        }
        free(c->fds);
        free(c->cpus);
        return sum;
}

/* A process that goes there first and then calls. */
static void call_in(const char *name, int n) {
        char path[PATH_MAX];
        int status = -1, fd;
        pid_t pid;

        path_of(name, path);
        strcat(path, "/cgroup.procs");
        fd = open(path, O_WRONLY | O_CLOEXEC);
        CHECK(fd >= 0);
        pid = fork();
        if (pid == 0) {
                if (write(fd, "0", 1) != 1)
                        _exit(1);
                for (int i = 0; i < n; i++)
                        (void)syscall(SYS_getppid);
                _exit(0);
        }
        close(fd);
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(status == 0);
}

static void test_counts(void) {
        Cgroup inner, outer, glob, outside;
        Counts counts[4];

        resolve_below("inner", &inner);
        resolve_below("", &outer);
        resolve_below("[i]nn*/d**p", &glob);
        resolve_below("outside", &outside);
        counts_open(&counts[0], &inner);
        counts_open(&counts[1], &outer);
        counts_open(&counts[2], &glob);
        counts_open(&counts[3], &outside);
        call_in("/inner", N_CALLS);
        call_in("/inner/deep", 7);
        call_in("/perfd-test@1.service", 11);
        for (int i = 0; i < 500; i++)
                (void)syscall(SYS_getppid); /* of none of them */
        CHECK(counts_close(&counts[0]) == N_CALLS + 7); /* with what lies below it */
        CHECK(counts_close(&counts[1]) == N_CALLS + 7 + 11);
        CHECK(counts_close(&counts[2]) == 7);
        CHECK(counts_close(&counts[3]) == 0);
        cgroup_deinit(&inner);
        cgroup_deinit(&outer);
        cgroup_deinit(&glob);
        cgroup_deinit(&outside);
}

static void test_names(void) {
        char id[80];
        Counts counts;
        Cgroup c;

        (void)snprintf(id, sizeof(id), "%.64s", scope + strlen("/docker-"));
        resolve_one(CGROUP_BY_CONTAINER, id, &c);
        counts_open(&counts, &c);
        call_in(scope, N_CALLS);
        call_in("/inner", 3);
        CHECK(counts_close(&counts) == N_CALLS);
        cgroup_deinit(&c);

        resolve_one(CGROUP_BY_UNIT, "perfd-test@*.service", &c);
        counts_open(&counts, &c);
        call_in("/perfd-test@1.service", N_CALLS);
        CHECK(counts_close(&counts) == N_CALLS);
        cgroup_deinit(&c);
}

static bool changed(CgroupWatch *w) {
        bool yes = false;

        CHECK(cgroup_watch_dispatch(w, &yes) == 0);
        return yes;
}

static size_t count_watches(const CgroupWatch *w) {
        char path[64], line[512];
        size_t n = 0;
        FILE *f;

        (void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", cgroup_watch_fd(w));
        f = fopen(path, "re");
        CHECK(f != NULL);
        while (fgets(line, sizeof(line), f))
                n += strncmp(line, "inotify wd:", strlen("inotify wd:")) == 0;
        fclose(f);
        return n;
}

/* As in any other file system, though the kernel tells less of cgroups: a removed one does not end its watch. */
static void test_watch(void) {
        _cleanup_(cgroup_watch_closep) CgroupWatch *w = NULL;
        char name[256];
        size_t n;
        Cgroup c;

        (void)snprintf(name, sizeof(name), "%s/inner/*/x", top);
        CHECK(cgroup_watch_open(&hierarchy, &w, NULL) == 0);
        CHECK(cgroup_watch_add(w, CGROUP_BY_PATH, name, NULL) == 0);
        n = count_watches(w);
        CHECK(n == 4); /* the root, the top, inner, deep */
        for (int i = 0; i < 3; i++) {
                CHECK(make("/inner/new") == 0);
                CHECK(changed(w));
                CHECK(cgroup_watch_add(w, CGROUP_BY_PATH, name, NULL) == 0);
                CHECK(count_watches(w) == n + 1);
                CHECK(make("/inner/new/y") == 0);
                CHECK(!changed(w));
                CHECK(make("/inner/new/x") == 0);
                CHECK(changed(w));
                resolve_one(CGROUP_BY_PATH, name, &c);
                CHECK(!cgroup_is_gone(&hierarchy, &c));
                CHECK(unmake("/inner/new/x") == 0);
                CHECK(changed(w));
                CHECK(cgroup_is_gone(&hierarchy, &c));
                cgroup_deinit(&c);
                CHECK(unmake("/inner/new/y") == 0);
                CHECK(unmake("/inner/new") == 0);
                CHECK(changed(w));
                CHECK(count_watches(w) == n);
        }
}

int main(void) {
        Explanation e = EXPLANATION_NULL;
        int r = cgroup_find_hierarchy("", &hierarchy, &e);

        if (r != 0 || access(hierarchy.path, W_OK) < 0) {
                fprintf(stderr, "skipped: cgroups cannot be made here: %s\n", r != 0 ? e.text : strerror(errno));
                return 77;
        }
        r = tracing_open(&tracing, NULL, &e);
        if (r != 0) {
                fprintf(stderr, "skipped: %s\n", e.text);
                return 77;
        }
        set_up();
        test_counts();
        test_names();
        test_watch();
        printf("exact in the v%d hierarchy at %s\n", hierarchy.is_v1 ? 1 : 2, hierarchy.path);
        return EXIT_SUCCESS;
}
