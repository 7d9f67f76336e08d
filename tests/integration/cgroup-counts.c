/*
 * Names of cgroups on the real hierarchy of this host: what they are resolved to is what perf_event_open(2) counts by,
 * exactly, and what comes and goes there is told. All cgroups are this program's own, and removed at the end. Exits with
 * 77, which meson counts as skipped, where cgroups can not be made.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/kernel/cgroup.h"
#include "daemon/kernel/tasks.h"
#include "daemon/kernel/tracing.h"

#define N_CALLS 1000
#define ID "c0ffee0e1a95c3cb7ef3c7c4ff4d9ad2a92ed1b2a5a3bb1d6ff41e0a3b7c9d1"

static CgroupHierarchy hierarchy;
static Tracing tracing;
static char top[64];   /* "/perfd-test-PID" */
static char scope[96]; /* "docker-<id>.scope", whose last digit is this program's own */

static const char *const folders[] = { "", "/inner", "/inner/deep", "/outside", "/perfd-test@1.service" };

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

static int set_up(void **state) {
        (void)snprintf(top, sizeof(top), "/perfd-test-%d", (int)getpid());
        (void)snprintf(scope, sizeof(scope), "/docker-" ID "%x.scope", (unsigned)getpid() % 16);
        for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
                if (make(folders[i]) < 0)
                        return -1;
        return make(scope);
}

static int tear_down(void **state) {
        int r = unmake(scope);

        for (size_t i = ARRAY_SIZE(folders); i-- > 0;)
                r |= unmake(folders[i]);
        return r;
}

static void resolve_one(CgroupNaming naming, const char *name, Cgroup *ret) {
        Explanation e = EXPLANATION_NULL;
        Cgroup *list = NULL;
        size_t n = 0;

        if (cgroup_resolve(&hierarchy, naming, name, &list, &n, &e) != 0)
                fail_msg("%s: %s", name, e.text);
        assert_int_equal(n, 1);
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
        assert_non_null(f);
        assert_int_equal(fscanf(f, "%llu", &id), 1);
        fclose(f);
        return id;
}

typedef struct Counts {
        uint32_t *cpus;
        size_t n;
        int *fds;
} Counts;

static void counts_open(Counts *c, const Cgroup *cgroup) {
        struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .size = PERF_ATTR_SIZE_VER0, .config = getppid_id() };

        assert_int_equal(cpus_online(&c->cpus, &c->n, NULL), 0);
        c->fds = calloc(c->n, sizeof(*c->fds));
        assert_non_null(c->fds);
        for (size_t i = 0; i < c->n; i++) {
                c->fds[i] = (int)syscall(SYS_perf_event_open, &attr, cgroup->fd, (int)c->cpus[i], -1,
                                         PERF_FLAG_PID_CGROUP | PERF_FLAG_FD_CLOEXEC);
                if (c->fds[i] < 0)
                        fail_msg("%s: %s", cgroup->path, strerror(errno));
        }
}

static uint64_t counts_close(Counts *c) {
        uint64_t sum = 0;

        for (size_t i = 0; i < c->n; i++) {
                uint64_t one = 0;

                assert_int_equal(read(c->fds[i], &one, sizeof(one)), sizeof(one));
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
        assert_true(fd >= 0);
        pid = fork();
        if (pid == 0) {
                if (write(fd, "0", 1) != 1)
                        _exit(1);
                for (int i = 0; i < n; i++)
                        (void)syscall(SYS_getppid);
                _exit(0);
        }
        close(fd);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

static void test_counts(void **state) {
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
        assert_int_equal(counts_close(&counts[0]), N_CALLS + 7); /* with what lies below it */
        assert_int_equal(counts_close(&counts[1]), N_CALLS + 7 + 11);
        assert_int_equal(counts_close(&counts[2]), 7);
        assert_int_equal(counts_close(&counts[3]), 0);
        cgroup_deinit(&inner);
        cgroup_deinit(&outer);
        cgroup_deinit(&glob);
        cgroup_deinit(&outside);
}

static void test_names(void **state) {
        char id[80];
        Counts counts;
        Cgroup c;

        (void)snprintf(id, sizeof(id), "%.64s", scope + strlen("/docker-"));
        resolve_one(CGROUP_BY_CONTAINER, id, &c);
        counts_open(&counts, &c);
        call_in(scope, N_CALLS);
        call_in("/inner", 3);
        assert_int_equal(counts_close(&counts), N_CALLS);
        cgroup_deinit(&c);

        resolve_one(CGROUP_BY_UNIT, "perfd-test@*.service", &c);
        counts_open(&counts, &c);
        call_in("/perfd-test@1.service", N_CALLS);
        assert_int_equal(counts_close(&counts), N_CALLS);
        cgroup_deinit(&c);
}

static bool changed(CgroupWatch *w) {
        bool yes = false;

        assert_int_equal(cgroup_watch_dispatch(w, &yes), 0);
        return yes;
}

static size_t count_watches(const CgroupWatch *w) {
        char path[64], line[512];
        size_t n = 0;
        FILE *f;

        (void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", cgroup_watch_fd(w));
        f = fopen(path, "re");
        assert_non_null(f);
        while (fgets(line, sizeof(line), f))
                n += strncmp(line, "inotify wd:", strlen("inotify wd:")) == 0;
        fclose(f);
        return n;
}

/* As in a folder of any other file system, though the kernel tells less of cgroups: a removed one does not end its watch. */
static void test_watch(void **state) {
        _cleanup_(cgroup_watch_closep) CgroupWatch *w = NULL;
        char name[256];
        size_t n;
        Cgroup c;

        (void)snprintf(name, sizeof(name), "%s/inner/*/x", top);
        assert_int_equal(cgroup_watch_open(&hierarchy, &w, NULL), 0);
        assert_int_equal(cgroup_watch_add(w, CGROUP_BY_PATH, name, NULL), 0);
        n = count_watches(w);
        assert_int_equal(n, 4); /* the root, the top, inner, deep */
        for (int i = 0; i < 3; i++) {
                assert_int_equal(make("/inner/new"), 0);
                assert_true(changed(w));
                assert_int_equal(cgroup_watch_add(w, CGROUP_BY_PATH, name, NULL), 0);
                assert_int_equal(count_watches(w), n + 1);
                assert_int_equal(make("/inner/new/y"), 0);
                assert_false(changed(w));
                assert_int_equal(make("/inner/new/x"), 0);
                assert_true(changed(w));
                resolve_one(CGROUP_BY_PATH, name, &c);
                assert_false(cgroup_is_gone(&hierarchy, &c));
                assert_int_equal(unmake("/inner/new/x"), 0);
                assert_true(changed(w));
                assert_true(cgroup_is_gone(&hierarchy, &c));
                cgroup_deinit(&c);
                assert_int_equal(unmake("/inner/new/y"), 0);
                assert_int_equal(unmake("/inner/new"), 0);
                assert_true(changed(w));
                assert_int_equal(count_watches(w), n);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_counts),
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_watch),
        };
        Explanation e = EXPLANATION_NULL;
        int r = cgroup_find_hierarchy("", &hierarchy, &e);

        if (r != 0 || access(hierarchy.path, W_OK) < 0) {
                fprintf(stderr, "skipped: cgroups can not be made here: %s\n", r != 0 ? e.text : strerror(errno));
                return 77;
        }
        r = tracing_open(&tracing, NULL, &e);
        if (r != 0) {
                fprintf(stderr, "skipped: %s\n", e.text);
                return 77;
        }
        r = cmocka_run_group_tests(tests, set_up, tear_down);
        tracing_close(&tracing);
        cgroup_hierarchy_deinit(&hierarchy);
        return r;
}
