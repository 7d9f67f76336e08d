/*
 * What inotify is asked to tell, and what is made of its words: a change of a name's meaning is always seen, also at
 * depths that are not there yet, and what has nothing to do with a name is none. The kernel's own list of watches
 * (/proc/self/fdinfo) shows that none is left behind. And each allocation fails once, everywhere in kernel/cgroup*.c.
 */
#include "tests/unit/cgroup-rig.h"

#include <poll.h>
#include <sys/inotify.h>

static CgroupWatch *watch;

static int set_up_watch(void **state) {
        _cleanup_(cgroup_hierarchy_deinit) CgroupHierarchy h = CGROUP_HIERARCHY_NULL;

        if (set_up_host(state) < 0)
                return -1;
        h = host_hierarchy();
        return cgroup_watch_open(&h, &watch, NULL);
}

static int tear_down_watch(void **state) {
        watch = cgroup_watch_close(watch);
        return tear_down_host(state);
}

static void watch_name(CgroupNaming naming, const char *name) {
        Explanation e = EXPLANATION_NULL;

        if (cgroup_watch_add(watch, naming, name, &e) != 0)
                fail_msg("%s: %s", name, e.text);
}

static bool has_word(void) {
        struct pollfd p = { .fd = cgroup_watch_fd(watch), .events = POLLIN };

        return poll(&p, 1, 0) == 1;
}

/* Whether anything has changed. What rmdir(2) and mkdir(2) cause is there when they return. */
static bool changed(void) {
        bool yes = true;

        assert_int_equal(cgroup_watch_dispatch(watch, &yes), 0);
        assert_false(has_word());
        return yes;
}

static size_t count_watches(void) {
        char path[64], line[512];
        size_t n = 0;
        FILE *f;

        (void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", cgroup_watch_fd(watch));
        f = fopen(path, "re");
        assert_non_null(f);
        while (fgets(line, sizeof(line), f))
                n += strncmp(line, "inotify wd:", strlen("inotify wd:")) == 0;
        fclose(f);
        return n;
}

static void remove_cgroup(const char *path) {
        char whole[PATH_MAX + 16];

        (void)snprintf(whole, sizeof(whole), "/sys/fs/cgroup%s", path);
        remove_folder(whole);
}

/* A plain path, of which nothing is there at first; its parents come, go and come back. */
static void test_path(void **state) {
        watch_name(CGROUP_BY_PATH, "a/b/c");
        assert_int_equal(count_watches(), 1);
        assert_false(changed());

        make_cgroup("/x"); /* not on the way */
        make_cgroup("/ab");
        assert_true(has_word());
        assert_false(changed());

        make_cgroup("/a");
        assert_true(changed());
        make_cgroup("/a/b"); /* before we look: it is found then, without a word */
        assert_false(has_word());
        watch_name(CGROUP_BY_PATH, "a/b/c");
        assert_int_equal(count_watches(), 3);
        make_cgroup("/a/b/c");
        assert_true(changed());
        make_cgroup("/a/b/c/d");
        make_cgroup("/a/b/e");
        assert_false(changed());

        remove_cgroup("/a/b/c/d");
        assert_false(changed());
        remove_cgroup("/a/b/c");
        assert_true(changed());
        remove_cgroup("/a/b/e");
        assert_false(changed());
        remove_cgroup("/a/b");
        remove_cgroup("/a");
        assert_true(changed());
        watch_name(CGROUP_BY_PATH, "a/b/c");
        assert_int_equal(count_watches(), 1);

        make_cgroup("/a/b/c"); /* at once */
        assert_true(changed());
        watch_name(CGROUP_BY_PATH, "a/b/c");
        assert_int_equal(count_watches(), 3);
        check_resolves(CGROUP_BY_PATH, "a/b/c", "/a/b/c");
        watch_name(CGROUP_BY_PATH, "a/b/c");
        assert_int_equal(count_watches(), 3);

        remove_cgroup("/a/b/c"); /* goes and comes before we look */
        make_cgroup("/a/b/c");
        assert_true(changed());
}

static void test_glob(void **state) {
        make_cgroup("/kubepods/other");
        watch_name(CGROUP_BY_PATH, "kubepods/pod*/web-?");
        assert_int_equal(count_watches(), 2);
        make_cgroup("/kubepods/other/web-1");
        make_cgroup("/kubepods/xpod1");
        assert_false(changed());
        make_cgroup("/kubepods/pod1");
        assert_true(changed());
        watch_name(CGROUP_BY_PATH, "kubepods/pod*/web-?");
        assert_int_equal(count_watches(), 3);
        make_cgroup("/kubepods/pod1/db-1");
        make_cgroup("/kubepods/pod1/web-10");
        assert_false(changed());
        make_cgroup("/kubepods/pod1/web-1");
        assert_true(changed());
        write_file("/sys/fs/cgroup/kubepods/pod1/web-2", ""); /* a file */
        assert_false(changed());
}

/* A unit or container may appear wherever there is a folder. */
static void test_anywhere(void **state) {
        make_cgroup("/system.slice");
        make_cgroup("/user.slice/user-1.slice");
        watch_name(CGROUP_BY_UNIT, "nginx");
        assert_int_equal(count_watches(), 4);
        watch_name(CGROUP_BY_CONTAINER, "3dcb1e0e1a95");
        assert_int_equal(count_watches(), 4);
        make_cgroup("/user.slice/user-1.slice/user@1.service/app.slice");
        assert_true(changed());
        watch_name(CGROUP_BY_UNIT, "nginx");
        assert_int_equal(count_watches(), 6);
        make_cgroup("/user.slice/user-1.slice/user@1.service/app.slice/nginx.service");
        assert_true(changed());
        check_resolves(CGROUP_BY_UNIT, "nginx", "/user.slice/user-1.slice/user@1.service/app.slice/nginx.service");

        cgroup_watch_remove(watch, CGROUP_BY_UNIT, "nginx");
        assert_int_equal(count_watches(), 6); /* the container may still be anywhere */
        cgroup_watch_remove(watch, CGROUP_BY_CONTAINER, "3dcb1e0e1a95");
        cgroup_watch_remove(watch, CGROUP_BY_CONTAINER, "3dcb1e0e1a95");
        assert_int_equal(count_watches(), 0);
        make_cgroup("/more");
        assert_false(changed());
}

/* A name that another one overlaps takes only its own folders with it. */
static void test_remove(void **state) {
        make_cgroup("/a/b/c");
        make_cgroup("/a/d/e");
        watch_name(CGROUP_BY_PATH, "a/b/c/x");
        watch_name(CGROUP_BY_PATH, "a/d/e/x");
        watch_name(CGROUP_BY_PATH, "a/*");
        assert_int_equal(count_watches(), 6);
        cgroup_watch_remove(watch, CGROUP_BY_PATH, "a/b/c/x");
        assert_int_equal(count_watches(), 4);
        make_cgroup("/a/b/c/x");
        assert_false(changed());
        make_cgroup("/a/d/e/x");
        assert_true(changed());
        cgroup_watch_remove(watch, CGROUP_BY_PATH, "a/d/e/x");
        assert_int_equal(count_watches(), 2);
        make_cgroup("/a/y");
        assert_true(changed());
}

/* cgroups of v1 can be renamed: a path that led to one leads elsewhere then. */
static void test_rename(void **state) {
        char to[2 * PATH_MAX];

        make_cgroup("/a/b/c");
        watch_name(CGROUP_BY_PATH, "*/b/c");
        assert_int_equal(count_watches(), 3);
        (void)snprintf(to, sizeof(to), "%s", at("/sys/fs/cgroup/z"));
        assert_int_equal(rename(at("/sys/fs/cgroup/a"), to), 0);
        assert_true(changed());
        assert_int_equal(count_watches(), 1); /* of the root */
        watch_name(CGROUP_BY_PATH, "*/b/c");
        assert_int_equal(count_watches(), 3);
        check_resolves(CGROUP_BY_PATH, "*/b/c", "/z/b/c");
        remove_cgroup("/z/b/c");
        assert_true(changed());
}

/* More words than the queue holds are one: look again. */
static void test_overflow(void **state) {
        unsigned long length;
        FILE *f = fopen("/proc/sys/fs/inotify/max_queued_events", "re");

        assert_non_null(f);
        assert_int_equal(fscanf(f, "%lu", &length), 1);
        fclose(f);
        if (length > 100000)
                skip(); /* this host's queue is too long to be filled here */
        make_cgroup("/a");
        watch_name(CGROUP_BY_PATH, "a/b");
        for (unsigned long i = 0; i <= length / 2; i++) { /* each is two words, of nothing that matters */
                assert_int_equal(mkdir(at("/sys/fs/cgroup/a/x"), 0755), 0);
                assert_int_equal(rmdir(at("/sys/fs/cgroup/a/x")), 0);
        }
        make_cgroup("/a/b"); /* unsaid */
        for (bool yes = false; !yes;) {
                assert_true(has_word());
                assert_int_equal(cgroup_watch_dispatch(watch, &yes), 0);
        }
        assert_int_equal(count_watches(), 0);
        watch_name(CGROUP_BY_PATH, "a/b");
        check_resolves(CGROUP_BY_PATH, "a/b", "/a/b");
        remove_cgroup("/a/b");
        assert_true(changed());
}

static void test_bad_names(void **state) {
        Explanation e = EXPLANATION_NULL;

        assert_int_equal(cgroup_watch_add(watch, CGROUP_BY_PATH, "a/..", &e), REFUSED_INVALID);
        assert_string_equal(e.reason, "bad-cgroup");
        assert_int_equal(count_watches(), 0);
        cgroup_watch_remove(watch, CGROUP_BY_PATH, "a/..");
}

static int fail_at; /* 1: the next allocation fails; 0: none does */

static bool fails(void) {
        return fail_at > 0 && --fail_at == 0;
}

void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size) {
        return fails() ? NULL : __real_reallocarray(p, n, size);
}

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text) {
        return fails() ? NULL : __real_strdup(text);
}

int __wrap_asprintf(char **ret, const char *format, ...);
int __wrap_asprintf(char **ret, const char *format, ...) {
        va_list ap;
        int n;

        if (fails())
                return -1; /* and *ret is not to be used */
        va_start(ap, format);
        n = vasprintf(ret, format, ap);
        va_end(ap);
        return n;
}

static int try_all(const CgroupHierarchy *h, CgroupNaming naming, const char *name) {
        _cleanup_(cgroup_watch_closep) CgroupWatch *w = NULL;
        Cgroup *list = NULL;
        size_t n = 0;
        int r = cgroup_resolve(h, naming, name, &list, &n, NULL);

        cgroups_free(list, n);
        if (r == 0)
                r = cgroup_watch_open(h, &w, NULL);
        return r == 0 ? cgroup_watch_add(w, naming, name, NULL) : r;
}

/* Nothing is kept, and none but -ENOMEM is said, whichever allocation it is. */
static void test_memory(void **state) {
        static const struct {
                CgroupNaming naming;
                const char *name;
                int result;
        } rows[] = {
                { CGROUP_BY_PATH, "a/*", 0 },
                { CGROUP_BY_PATH, "a/x", REFUSED_NOT_FOUND },
                { CGROUP_BY_UNIT, "nginx", 0 },
                { CGROUP_BY_UNIT, "ngnix", REFUSED_NOT_FOUND },
                { CGROUP_BY_CONTAINER, "3dcb1e0e1a95f", 0 },
                { CGROUP_BY_CONTAINER, "3dcb1e0e1a96", REFUSED_NOT_FOUND },
        };
        _cleanup_(cgroup_hierarchy_deinit) CgroupHierarchy h = host_hierarchy();
        size_t n_fds = count_fds();

        make_cgroup("/a/nginx.service");
        make_cgroup("/docker/" ID_A);
        make_cgroup("/docker/" ID_B);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                int r, n = 0;

                do {
                        fail_at = ++n;
                        r = try_all(&h, rows[i].naming, rows[i].name);
                        if (fail_at == 0)
                                assert_int_equal(r, -ENOMEM);
                        assert_int_equal(count_fds(), n_fds);
                } while (fail_at == 0);
                assert_int_equal(r, rows[i].result);
                assert_true(n > 5);
        }
        fail_at = 0;
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_path, set_up_watch, tear_down_watch),
                cmocka_unit_test_setup_teardown(test_glob, set_up_watch, tear_down_watch),
                cmocka_unit_test_setup_teardown(test_anywhere, set_up_watch, tear_down_watch),
                cmocka_unit_test_setup_teardown(test_remove, set_up_watch, tear_down_watch),
                cmocka_unit_test_setup_teardown(test_rename, set_up_watch, tear_down_watch),
                cmocka_unit_test_setup_teardown(test_overflow, set_up_watch, tear_down_watch),
                cmocka_unit_test_setup_teardown(test_bad_names, set_up_watch, tear_down_watch),
                cmocka_unit_test_setup_teardown(test_memory, set_up_watch, tear_down_watch),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
