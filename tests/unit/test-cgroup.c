/*
 * Which hierarchy is used, by mountinfo and /proc/cgroups of many kinds of host, and what names mean in a tree that is
 * laid out: exact paths, and exact refusals.
 */
#include "tests/unit/cgroup-rig.h"

#include <sys/resource.h>

#include "daemon/kernel/cgroup/mounts.h"
#include "daemon/kernel/cgroup/pattern.h"

static void test_mounts(void **state) {
        CgroupMount *list = NULL;
        size_t n = 0;

        assert_int_equal(
                cgroup_mounts_parse(
                        "23 1 254:0 / / rw,relatime - ext4 /dev/root rw\n"
                        "30 23 0:28 / /sys/fs/cgroup rw,relatime shared:4 master:1 - tmpfs tmpfs rw,mode=755\n"
                        "31 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                        "32 30 0:30 /docker/3d /sys/fs/cgroup/perf_event ro - cgroup  rw,perf_event\n" /* no source */
                        "33 30 0:31 /.. /mnt/a\\040b\\134040\\011c rw unbindable - cgroup2 - rw,nsdelegate\n"
                        "34 33 0:32 / /mnt/a\\040b\\134040\\011c rw - tmpfs tmpfs rw\n"
                        "35 30 0:33 / /x\\9 rw propagate_from:2 - cgroup none rw,name=perf_event\n",
                        &list, &n, NULL),
                0);
        assert_int_equal(n, 4);
        assert_string_equal(list[0].path, "/sys/fs/cgroup/cpu,cpuacct");
        assert_false(list[0].is_v2 || list[0].has_perf_event || list[0].is_covered);
        assert_string_equal(list[1].root, "/docker/3d");
        assert_true(list[1].has_perf_event && !list[1].is_v2 && !list[1].is_covered);
        assert_int_equal(list[1].id, 32);
        assert_int_equal(list[1].parent, 30);
        assert_int_equal(list[1].minor, 30);
        assert_string_equal(list[2].root, "/..");
        assert_string_equal(list[2].path, "/mnt/a b\\040\tc");
        assert_true(list[2].is_v2 && !list[2].has_perf_event && list[2].is_covered);
        assert_string_equal(list[3].path, "/x\\9");
        assert_false(list[3].has_perf_event);
        cgroup_mounts_free(list, n);
}

static void test_bad_mounts(void **state) {
        static const char *const lines[] = {
                "x", "31 30 0:29", "31 30 0:29 / /x rw - cgroup2", "31 30 0:29 / /x rw cgroup2 none rw",
                "31 30 0:29 a /x rw - cgroup2 none rw", "31 30 0 / /x rw - cgroup2 none rw", "31 30 0:29 / /x rw - ",
        };

        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                Explanation e = EXPLANATION_NULL;
                CgroupMount *list = NULL;
                char text[256];
                size_t n = 7;

                (void)snprintf(text, sizeof(text), "31 30 0:29 / /x rw - cgroup2 none rw\n%s\n", lines[i]);
                assert_int_equal(cgroup_mounts_parse(text, &list, &n, &e), REFUSED_UNSUPPORTED);
                assert_string_equal(e.reason, "kernel");
                assert_non_null(strstr(e.text, "line 2 "));
                assert_true(!list && n == 7);
        }
}

static void test_controllers(void **state) {
        static const char head[] = "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpuset\t3\t1\t1\n";
        static const struct {
                const char *line;
                CgroupUse use;
        } rows[] = {
                { "perf_event\t0\t1\t1\n", CGROUP_USE_V2 },      { "perf_event\t9\t1\t1\n", CGROUP_USE_V1 },
                { "perf_event\t0\t1\t0\n", CGROUP_USE_NOTHING }, { "", CGROUP_USE_NOTHING },
                { "perf_event_2\t0\t1\t1\n", CGROUP_USE_NOTHING },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                char text[256];

                (void)snprintf(text, sizeof(text), "%s%spids\t8\t1\t1\n", head, rows[i].line);
                assert_int_equal(cgroup_controllers_parse(text), rows[i].use);
        }
}

#define V2 "perf_event\t0\t1\t1\n"
#define V1 "perf_event\t4\t1\t1\n"
#define OURS "41 23 DEVICE / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
#define UNIFIED "41 23 DEVICE / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
#define PERF_EVENT "42 23 DEVICE / /sys/fs/cgroup/perf_event rw - cgroup cgroup rw,perf_event\n"
#define CPU "43 23 DEVICE / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
#define SUBTREE "44 23 DEVICE /docker/3d /a\\040b rw - cgroup2 cgroup2 rw\n"
#define DEEPER "45 23 DEVICE /docker/3d/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
#define ABOVE "46 23 DEVICE /.. /sys/fs/cgroup/cpu rw - cgroup2 cgroup2 rw\n"
#define COVER "47 41 DEVICE / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
#define ELSEWHERE "48 23 1:99 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"

static const struct {
        const char *mountinfo, *cgroups; /* NULL: no such file */
        const char *path, *root;
        bool is_v1;
        const char *words; /* of the refusal */
} hosts[] = {
        { OURS, V2, "/sys/fs/cgroup", "/", false, NULL },
        { OURS, NULL, "/sys/fs/cgroup", "/", false, NULL },
        { CPU UNIFIED, V2, "/sys/fs/cgroup/unified", "/", false, NULL },
        { CPU PERF_EVENT UNIFIED, V1, "/sys/fs/cgroup/perf_event", "/", true, NULL },
        { SUBTREE, V2, "/a b", "/docker/3d", false, NULL },
        { DEEPER SUBTREE, V2, "/a b", "/docker/3d", false, NULL },
        { DEEPER SUBTREE UNIFIED, V2, "/sys/fs/cgroup/unified", "/", false, NULL },
        { UNIFIED ABOVE, V2, "/sys/fs/cgroup/cpu", "/..", false, NULL },
        { OURS UNIFIED, V2, "/sys/fs/cgroup", "/", false, NULL },
        { OURS COVER SUBTREE, V2, "/a b", "/docker/3d", false, NULL },
        { ELSEWHERE SUBTREE, V2, "/a b", "/docker/3d", false, NULL },
        { UNIFIED, V1, NULL, NULL, false, "`mount -t cgroup -o perf_event cgroup /sys/fs/cgroup/perf_event`" },
        { CPU UNIFIED, V1, NULL, NULL, false, "v1 hierarchy" },
        { CPU, V2, NULL, NULL, false, "`mount -t cgroup2 none /sys/fs/cgroup`" },
        { "", V2, NULL, NULL, false, "no cgroup v2" },
        { OURS, "", NULL, NULL, false, "CONFIG_CGROUP_PERF" },
        { OURS, "perf_event\t0\t1\t0\n", NULL, NULL, false, "cgroup_disable=perf_event" },
        { NULL, V2, NULL, NULL, false, "is /proc mounted?" },
};

static void write_or_remove(const char *path, const char *text) {
        char out[2048] = "";
        const char *place;

        if (!text) {
                assert_true(unlink(at(path)) == 0 || errno == ENOENT);
                return;
        }
        for (; (place = strstr(text, "DEVICE")); text = place + strlen("DEVICE"))
                (void)snprintf(out + strlen(out), sizeof(out) - strlen(out), "%.*s%s", (int)(place - text), text,
                               host_device());
        write_file(path, strcat(out, text));
}

static void test_hierarchy(void **state) {
        make_folder("/sys/fs/cgroup/unified");
        make_folder("/sys/fs/cgroup/perf_event");
        make_folder("/sys/fs/cgroup/cpu");
        make_folder("/a b");
        for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
                _cleanup_(cgroup_hierarchy_deinit) CgroupHierarchy h = CGROUP_HIERARCHY_NULL;
                Explanation e = EXPLANATION_NULL;
                int r;

                write_or_remove("/proc/self/mountinfo", hosts[i].mountinfo);
                write_or_remove("/proc/cgroups", hosts[i].cgroups);
                r = cgroup_find_hierarchy(host, &h, &e);
                if (!hosts[i].words) {
                        if (r != 0)
                                fail_msg("host %zu: %s", i, e.text);
                        assert_string_equal(h.path, at(hosts[i].path));
                        assert_string_equal(h.root, hosts[i].root);
                        assert_int_equal(h.is_v1, hosts[i].is_v1);
                } else {
                        assert_int_equal(r, REFUSED_UNSUPPORTED);
                        assert_string_equal(e.reason, "no-cgroups");
                        if (!strstr(e.text, hosts[i].words))
                                fail_msg("host %zu: %s", i, e.text);
                        assert_null(h.path);
                }
        }
}

static void test_normalise(void **state) {
        static const struct {
                const char *name, *path; /* NULL: refused */
                unsigned position;
        } rows[] = {
                { "/", "/", 0 },
                { ".", "/", 0 },
                { "//", "/", 0 },
                { "system.slice/nginx.service", "/system.slice/nginx.service", 0 },
                { "/a//b/", "/a/b", 0 },
                { "./a/./b/.", "/a/b", 0 },
                { "/...", "/...", 0 },
                { "a\\x2db *", "/a\\x2db *", 0 },
                { "", NULL, 1 },
                { "..", NULL, 1 },
                { "/a/../b", NULL, 4 },
                { "a/..", NULL, 3 },
                { "a\nb", NULL, 2 },
        };
        char longest[PATH_MAX + 1], *path = NULL;
        Explanation e;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                e = EXPLANATION_NULL;
                if (rows[i].path) {
                        assert_int_equal(cgroup_normalise(rows[i].name, &path, &e), 0);
                        assert_string_equal(path, rows[i].path);
                        free(path);
                } else {
                        assert_int_equal(cgroup_normalise(rows[i].name, &path, &e), REFUSED_INVALID);
                        assert_string_equal(e.reason, "bad-cgroup");
                        assert_int_equal(e.position, rows[i].position);
                }
        }
        memset(longest, 'a', PATH_MAX);
        longest[PATH_MAX] = '\0';
        assert_int_equal(cgroup_normalise(longest, &path, NULL), REFUSED_INVALID);
        longest[256] = '\0'; /* one byte more than a file's name has */
        assert_int_equal(cgroup_normalise(longest, &path, NULL), REFUSED_INVALID);
        longest[255] = '\0';
        assert_int_equal(cgroup_normalise(longest, &path, NULL), 0);
        assert_string_equal(path + 1, longest);
        free(path);
}

static void make_tree(void) {
        static const char *const cgroups[] = {
                "/init.scope",
                "/system.slice/nginx.service",
                "/system.slice/nginx@1.service",
                "/system.slice/nginx@2.service/sub",
                "/system.slice/nginx@2.service/nginx@3.service",
                "/system.slice/dev-disk-by\\x2duuid-1.mount",
                "/system.slice/_cgroup.service",
                "/system.slice.d",
                "/system.slice/docker-" ID_A ".scope/init.scope",
                "/user.slice/user-1.slice/user@1.service/app.slice/nginx.service",
                "/user.slice/user-1.slice/user@1.service/user.slice/libpod-" ID_B ".scope/container",
                "/user.slice/user-1.slice/user@1.service/user.slice/libpod-conmon-" ID_B ".scope",
                "/kubepods/burstable/pod0e7cb72e-64e6-4c1d-8f2a-9b7a1f3c5d60/" ID_C "/docker/" ID_C,
                "/lxc.payload.web",
                "/lxc.payload.f00dfeed1a95", /* a name that is hexadecimal */
                "/lxc.payload.dead",
        };

        for (size_t i = 0; i < ARRAY_SIZE(cgroups); i++)
                make_cgroup(cgroups[i]);
        write_file("/sys/fs/cgroup/system.slice/cgroup.procs", "1\n");
        make_folder("/outside/nginx.service");
        assert_int_equal(symlink("../../../outside", at("/sys/fs/cgroup/link")), 0);
}

static void test_paths(void **state) {
        static const char scope[] = "/system.slice/docker-" ID_A ".scope";

        make_tree();
        check_resolves(CGROUP_BY_PATH, "/", "/");
        check_resolves(CGROUP_BY_PATH, "system.slice//nginx.service/", "/system.slice/nginx.service");
        check_resolves(CGROUP_BY_PATH, "/system.slice/dev-disk-by\\x2duuid-1.mount",
                       "/system.slice/dev-disk-by\\x2duuid-1.mount");

        check_resolves(CGROUP_BY_PATH, "system.slice/nginx*",
                       "/system.slice/nginx.service /system.slice/nginx@1.service /system.slice/nginx@2.service");
        check_resolves(CGROUP_BY_PATH, "system.slice/nginx@[!2].service", "/system.slice/nginx@1.service");
        check_resolves(CGROUP_BY_PATH, "*/*uuid\\x2*", "");
        check_resolves(CGROUP_BY_PATH, "*/*\\x2duuid-?.mount", "/system.slice/dev-disk-by\\x2duuid-1.mount");
        check_resolves(CGROUP_BY_PATH, "*/cgroup.procs", ""); /* a file */
        check_resolves(CGROUP_BY_PATH, "nothing*", "");
        check_resolves(CGROUP_BY_PATH, "*", "/init.scope /kubepods /lxc.payload.dead /lxc.payload.f00dfeed1a95 "
                                            "/lxc.payload.web /system.slice /system.slice.d /user.slice");
        check_resolves(CGROUP_BY_PATH, "**", "/");
        check_resolves(CGROUP_BY_PATH, "system.slice/**", "/system.slice");
        check_resolves(CGROUP_BY_PATH, "**/nginx.service",
                       "/system.slice/nginx.service "
                       "/user.slice/user-1.slice/user@1.service/app.slice/nginx.service");
        check_resolves(CGROUP_BY_PATH, "**/nginx@?.service",
                       "/system.slice/nginx@1.service /system.slice/nginx@2.service");
        check_resolves(CGROUP_BY_PATH, "/**/**/us*/**/c*r",
                       "/user.slice/user-1.slice/user@1.service/user.slice/libpod-" ID_B ".scope/container");
        check_resolves(CGROUP_BY_PATH, "**/docker-*", scope);

        check_refused(CGROUP_BY_PATH, "system.slice/ngnix.service", REFUSED_NOT_FOUND, "unknown-cgroup",
                      "'/system.slice' has no 'ngnix.service'; did you mean 'nginx.service'?");
        check_refused(CGROUP_BY_PATH, "/sistem.slice/a/b", REFUSED_NOT_FOUND, "unknown-cgroup",
                      "'/' has no 'sistem.slice'; did you mean 'system.slice'?");
        check_refused(CGROUP_BY_PATH, at("/sys/fs/cgroup/init.scope"), REFUSED_NOT_FOUND, "unknown-cgroup",
                      "paths are relative to");
        check_refused(CGROUP_BY_PATH, "link/nginx.service", REFUSED_NOT_FOUND, "unknown-cgroup", "'/' has no 'link'");
        check_resolves(CGROUP_BY_PATH, "l*k/nginx.service", "");
        check_refused(CGROUP_BY_PATH, "system.slice/cgroup.procs", REFUSED_NOT_FOUND, "unknown-cgroup", "has no");
        check_refused(CGROUP_BY_PATH, "system.slice/../init.scope", REFUSED_INVALID, "bad-cgroup", "'..'");
        check_refused(CGROUP_BY_PATH, "*/../*", REFUSED_INVALID, "bad-cgroup", "'..'");
        check_refused(CGROUP_BY_PATH,
                      "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/"
                      "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a",
                      REFUSED_INVALID, "bad-cgroup", "63 components");
}

static void test_units(void **state) {
        make_tree();
        check_resolves(CGROUP_BY_UNIT, "nginx",
                       "/system.slice/nginx.service /user.slice/user-1.slice/user@1.service/app.slice/nginx.service");
        check_resolves(CGROUP_BY_UNIT, "nginx@2.service", "/system.slice/nginx@2.service");
        check_resolves(CGROUP_BY_UNIT, "nginx@*.service",
                       "/system.slice/nginx@1.service /system.slice/nginx@2.service");
        check_resolves(CGROUP_BY_UNIT, "user.slice", "/user.slice"); /* and another in it, counted with it */
        check_resolves(CGROUP_BY_UNIT, "cgroup.service", "/system.slice/_cgroup.service");
        check_resolves(CGROUP_BY_UNIT, "dev-disk-by\\x2duuid-1.mount", "/system.slice/dev-disk-by\\x2duuid-1.mount");
        check_resolves(CGROUP_BY_UNIT, "*.timer", "");
        check_refused(CGROUP_BY_UNIT, "nginx@.service", REFUSED_NOT_FOUND, "unknown-unit",
                      "all of its instances are 'nginx@*.service'");
        check_refused(CGROUP_BY_UNIT, "ngnix", REFUSED_NOT_FOUND, "unknown-unit", "did you mean 'nginx.service'?");
        check_refused(CGROUP_BY_UNIT, "", REFUSED_INVALID, "bad-unit", "expected nginx.service");
        check_refused(CGROUP_BY_UNIT, "a/b", REFUSED_INVALID, "bad-unit", "expected nginx.service");
        check_refused(CGROUP_BY_UNIT, "a b", REFUSED_INVALID, "bad-unit", "space");
}

#define SEVENTEEN "[a-c]????????????????"

/* One syntax for all three, and its limits: what would cost more than the length of a name is refused, wherever it stands. */
static void test_globs(void **state) {
        static const char *const wide[] = { "*" SEVENTEEN "*", "/**/*" SEVENTEEN "*", "/system.slice/*" SEVENTEEN "*.service" };
        static const char *const reason = "16 characters at most between two stars";

        make_tree();
        check_resolves(CGROUP_BY_UNIT, "nginx@[[:digit:]].service", "/system.slice/nginx@1.service /system.slice/nginx@2.service");
        check_resolves(CGROUP_BY_UNIT, "nginx@[^1].service", "/system.slice/nginx@2.service");
        check_resolves(CGROUP_BY_UNIT, "[_c]group.service", "/system.slice/_cgroup.service");
        check_resolves(CGROUP_BY_UNIT, "dev-*\\x2duuid-?.mount", "/system.slice/dev-disk-by\\x2duuid-1.mount");
        check_resolves(CGROUP_BY_UNIT, "dev-*[\\]x2duuid-?.mount", "/system.slice/dev-disk-by\\x2duuid-1.mount");
        check_resolves(CGROUP_BY_PATH, "/system.slice/nginx@[!2].service", "/system.slice/nginx@1.service");
        check_resolves(CGROUP_BY_CONTAINER, "[[:lower:]]?[a-b]", "/lxc.payload.web");
        for (size_t i = 0; i < ARRAY_SIZE(wide); i++)
                check_refused(CGROUP_BY_PATH, wide[i], REFUSED_INVALID, "bad-name", reason);
        check_refused(CGROUP_BY_UNIT, wide[0], REFUSED_INVALID, "bad-name", reason);
        check_refused(CGROUP_BY_CONTAINER, wide[0], REFUSED_INVALID, "bad-name", reason);
}

static void test_containers(void **state) {
        static const char pod[] = "/kubepods/burstable/pod0e7cb72e-64e6-4c1d-8f2a-9b7a1f3c5d60/" ID_C;
        static const char libpod[] = "/user.slice/user-1.slice/user@1.service/user.slice/libpod-" ID_B ".scope";

        make_tree();
        check_resolves(CGROUP_BY_CONTAINER, ID_A, "/system.slice/docker-" ID_A ".scope");
        check_resolves(CGROUP_BY_CONTAINER, "docker://" ID_A, "/system.slice/docker-" ID_A ".scope");
        check_resolves(CGROUP_BY_CONTAINER, ID_B, libpod);
        check_resolves(CGROUP_BY_CONTAINER, "3dcb1e0e1a95f", libpod);
        check_resolves(CGROUP_BY_CONTAINER, ID_C, pod);
        check_resolves(CGROUP_BY_CONTAINER, "f00dfeed1a95c", pod);
        check_resolves(CGROUP_BY_CONTAINER, "web", "/lxc.payload.web");
        check_resolves(CGROUP_BY_CONTAINER, "dead", "/lxc.payload.dead");
        check_resolves(CGROUP_BY_CONTAINER, "f00dfeed1a95", "/lxc.payload.f00dfeed1a95");

        check_refused(CGROUP_BY_CONTAINER, "3dcb1e0e1a95", REFUSED_INVALID, "ambiguous-container", ID_A ", " ID_B ";");
        check_refused(CGROUP_BY_CONTAINER, "f00dfeed1a9", REFUSED_NOT_FOUND, "unknown-container", "at least 12 digits");
        check_refused(CGROUP_BY_CONTAINER, "f00dfeed1a96", REFUSED_NOT_FOUND, "unknown-container",
                      "there are 3dcb1e0e1a95, 3dcb1e0e1a95, dead, f00dfeed1a95, f00dfeed1a95, web");
        check_refused(CGROUP_BY_CONTAINER, "", REFUSED_INVALID, "bad-container", "expected its id");
        check_resolves(CGROUP_BY_CONTAINER, "w*", "/lxc.payload.web");
        check_resolves(CGROUP_BY_CONTAINER, "nothing*", "");
}

#define ID_0_SHORT "0123456789ab"
#define ID_0 ID_0_SHORT "c3cb7ef3c7c4ff4d9ad2a92ed1b2a5a3bb1d6ff41e0a3b7c9d120000"

static CgroupFate fate_of(const char *name) {
        _cleanup_(cgroup_hierarchy_deinit) CgroupHierarchy h = host_hierarchy();
        CgroupFate fate = CGROUP_FATE_UNKNOWN;

        assert_int_equal(cgroup_container_fate(&h, name, &fate), 0);
        return fate;
}

/* Names out of the files of runtimes: which container one means now, what is there twice, what is stopped, what is gone. */
static void test_named_containers(void **state) {
        static const char podman[] = "/var/lib/containers/storage/overlay-containers";
        static const char docker[] = "/system.slice/docker-" ID_A ".scope";
        static const char libpod[] = "/user.slice/user-1.slice/user@1.service/user.slice/libpod-" ID_B ".scope";
        char runc[256];

        make_tree();
        assert_int_equal(fate_of(ID_C), CGROUP_FATE_UNKNOWN); /* no runtime to be seen */
        make_folder("/var/lib/docker/containers/" ID_A);
        write_file("/var/lib/docker/containers/" ID_A "/config.v2.json",
                   "{\"StreamConfig\":{},\"ID\":\"" ID_A "\",\"Config\":{\"ID\":\"x\",\"Name\":\"y\"},\"Name\":\"/shop-1\"}");
        make_folder(podman);
        write_file("/var/lib/containers/storage/overlay-containers/containers.json",
                   "[{\"id\":\"" ID_B "\",\"names\":[\"shop-2\"]},{\"id\":\"" ID_C "\",\"names\":[\"idle\"]}]");
        check_resolves(CGROUP_BY_CONTAINER, "shop-1", docker);
        check_resolves(CGROUP_BY_CONTAINER, "docker://shop-1", docker);
        check_resolves(CGROUP_BY_CONTAINER, "shop-2", libpod);
        check_resolves(CGROUP_BY_CONTAINER, "*-2", libpod);
        check_refused(CGROUP_BY_CONTAINER, "podman://shop-1", REFUSED_NOT_FOUND, "unknown-container", "there is no container");
        check_refused(CGROUP_BY_CONTAINER, "shop-3", REFUSED_NOT_FOUND, "unknown-container", "did you mean 'shop-");
        check_refused(CGROUP_BY_CONTAINER, "y", REFUSED_NOT_FOUND, "unknown-container", "there is no container");

        /* made anew under its name, and stopped */
        write_file("/var/lib/containers/storage/overlay-containers/containers.json",
                   "[{\"id\":\"" ID_B "\",\"names\":[\"shop-1\"]},{\"id\":\"" ID_0 "\",\"names\":[\"idle\"]}]");
        check_refused(CGROUP_BY_CONTAINER, "shop-1", REFUSED_INVALID, "ambiguous-container", ID_A ", " ID_B ";");
        check_resolves(CGROUP_BY_CONTAINER, "podman://shop-1", libpod);
        check_refused(CGROUP_BY_CONTAINER, "idle", REFUSED_NOT_FOUND, "unknown-container", "podman knows it (" ID_0_SHORT ")");
        assert_int_equal(fate_of("idle"), CGROUP_FATE_STOPPED);
        assert_int_equal(fate_of(ID_0), CGROUP_FATE_STOPPED);
        assert_int_equal(fate_of(ID_0_SHORT), CGROUP_FATE_STOPPED);
        assert_int_equal(fate_of("shop-2"), CGROUP_FATE_UNKNOWN); /* a name can come again */
        assert_int_equal(fate_of(ID_C), CGROUP_FATE_GONE);        /* and an id cannot */

        /* runc says where its containers are */
        make_folder("/run/runc/batch");
        (void)snprintf(runc, sizeof(runc), "{\"id\":\"batch\",\"cgroup_paths\":{\"\":\"%.200s/user.slice\"}}", at("/sys/fs/cgroup"));
        write_file("/run/runc/batch/state.json", runc);
        check_resolves(CGROUP_BY_CONTAINER, "batch", "/user.slice");

        /* a file that is no JSON costs its own containers alone, and nothing is called gone any longer */
        write_file("/var/lib/containers/storage/overlay-containers/containers.json", "[{\"id\":");
        check_resolves(CGROUP_BY_CONTAINER, "shop-1", docker);
        check_refused(CGROUP_BY_CONTAINER, "shop-2", REFUSED_NOT_FOUND, "unknown-container", "containers.json cannot be read");
        assert_int_equal(fate_of(ID_C), CGROUP_FATE_UNKNOWN);
}

static void test_no_containers(void **state) {
        check_refused(CGROUP_BY_CONTAINER, ID_A, REFUSED_NOT_FOUND, "unknown-container",
                      "no cgroup of this host belongs to a container");
}

/* Lists of several names: sorted, nothing twice, nothing that another one counts already, each fd of those closed. */
static void test_lists(void **state) {
        static const char *const names[] = { "user.slice/user-1.slice", "system.slice.d", "system.slice/nginx@*",
                                             "system.slice/nginx@2.service/sub", "user.slice",
                                             "system.slice/nginx@1.service", "system.slice.d" };
        static const size_t n_dropped[] = { 0, 0, 0, 1, 1, 1, 1 };
        _cleanup_(cgroup_hierarchy_deinit) CgroupHierarchy h = host_hierarchy();
        Cgroup *all = NULL, gone = CGROUP_NULL;
        size_t n_all = 0, n_fds = count_fds();

        make_tree();
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                Cgroup *list = NULL;
                size_t n = 0, dropped = 99;

                assert_int_equal(cgroup_resolve(&h, CGROUP_BY_PATH, names[i], &list, &n, NULL), 0);
                assert_int_equal(cgroups_add(&all, &n_all, list, n, &dropped), 0);
                assert_int_equal(dropped, n_dropped[i]);
        }
        assert_int_equal(n_all, 4);
        assert_int_equal(count_fds(), n_fds + n_all);
        assert_string_equal(all[0].path, "/system.slice/nginx@1.service"); /* '/' comes before '.' */
        assert_string_equal(all[1].path, "/system.slice/nginx@2.service");
        assert_string_equal(all[2].path, "/system.slice.d");
        assert_string_equal(all[3].path, "/user.slice");

        assert_false(cgroup_is_gone(&h, &all[2]));
        remove_folder("/sys/fs/cgroup/system.slice.d");
        assert_true(cgroup_is_gone(&h, &all[2]));
        make_cgroup("/other"); /* so that the inode is not taken again */
        make_cgroup("/system.slice.d");
        assert_true(cgroup_is_gone(&h, &all[2]));
        cgroups_free(all, n_all);
        assert_int_equal(count_fds(), n_fds);
        cgroup_deinit(&gone);
        cgroup_deinit(&gone);
        cgroups_free(NULL, 0);
}

static void set_fd_limit(rlim_t n, struct rlimit *ret_before) {
        struct rlimit limit;

        assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
        if (ret_before)
                *ret_before = limit;
        limit.rlim_cur = n;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* A tree that is deeper than there are fds, and more matches than there are fds, or than there may be. */
static void test_limits(void **state) {
        char path[2048] = "";
        struct rlimit before;

        for (int i = 0; i < 300; i++)
                strcat(path, "/d");
        strcat(path, "/x");
        make_cgroup(path);
        set_fd_limit(64, &before);
        check_resolves(CGROUP_BY_PATH, "**/x", path);
        for (int i = 0; i <= CGROUP_MATCHES_MAX; i++) {
                (void)snprintf(path, sizeof(path), "/m%d", i);
                make_cgroup(path);
        }
        check_refused(CGROUP_BY_PATH, "m*", REFUSED_EXHAUSTED, "too-many-fds", "LimitNOFILE=");
        if (before.rlim_max > CGROUP_MATCHES_MAX + 64) {
                set_fd_limit(CGROUP_MATCHES_MAX + 64, NULL);
                check_refused(CGROUP_BY_PATH, "m*", REFUSED_EXHAUSTED, "too-many-cgroups",
                              "more than 10000 cgroups match 'm*'");
        }
        set_fd_limit(before.rlim_cur, NULL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_mounts),
                cmocka_unit_test(test_bad_mounts),
                cmocka_unit_test(test_controllers),
                cmocka_unit_test_setup_teardown(test_hierarchy, set_up_host, tear_down_host),
                cmocka_unit_test(test_normalise),
                cmocka_unit_test_setup_teardown(test_paths, set_up_host, tear_down_host),
                cmocka_unit_test_setup_teardown(test_units, set_up_host, tear_down_host),
                cmocka_unit_test_setup_teardown(test_globs, set_up_host, tear_down_host),
                cmocka_unit_test_setup_teardown(test_containers, set_up_host, tear_down_host),
                cmocka_unit_test_setup_teardown(test_named_containers, set_up_host, tear_down_host),
                cmocka_unit_test_setup_teardown(test_no_containers, set_up_host, tear_down_host),
                cmocka_unit_test_setup_teardown(test_lists, set_up_host, tear_down_host),
                cmocka_unit_test_setup_teardown(test_limits, set_up_host, tear_down_host),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
