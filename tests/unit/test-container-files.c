/*
 * The state of container runtimes, as they leave it in files: read once, anew when it has changed, and always what it is now; and
 * what containerd, for a kubelet or for nerdctl, calls its containers.
 */
#include "tests/unit/cgroup-rig.h"

#include <time.h>

#include "daemon/kernel/cgroup/container-files.h"

#define DOCKER "/var/lib/docker/containers/"
#define PODMAN "/var/lib/containers/storage/overlay-containers"
#define TASKS "/run/containerd/io.containerd.runtime.v2.task/"
#define POD_UID "0e7cb72e-64e6-4c1d-8f2a-9b7a1f3c5d60"
#define PATIENCE_SEC 20

static void write_docker(const char *id, const char *name) {
        char path[256], text[256];

        (void)snprintf(path, sizeof(path), DOCKER "%s", id);
        make_folder(path);
        (void)snprintf(path, sizeof(path), DOCKER "%s/config.v2.json", id);
        (void)snprintf(text, sizeof(text), "{\"ID\":\"%s\",\"Name\":\"/%s\"}", id, name);
        write_file(path, text);
}

static int compare_names(const void *a, const void *b) {
        return strcmp(((const KnownContainer *)a)->name, ((const KnownContainer *)b)->name);
}

/* Their names, as "a b"; expected NULL: there is a problem. */
static void check_names(ContainerFiles *f, const char *expected) {
        KnownContainers *known;
        char names[512] = "";

        assert_int_equal(container_files_read(f, host, "/sys/fs/cgroup", &known), 0);
        assert_int_equal(known->problem[0] != '\0', expected == NULL);
        if (known->n > 0)
                qsort(known->list, known->n, sizeof(*known->list), compare_names);
        for (size_t i = 0; i < known->n; i++)
                strcat(strcat(names, i > 0 ? " " : ""), known->list[i].name);
        if (expected)
                assert_string_equal(names, expected);
}

/* Until what is there is older than a tick of the clock of file times. */
static void let_settle(ContainerFiles *f, const char *expected) {
        time_t end = time(NULL) + PATIENCE_SEC;

        while (!f->is_kept && time(NULL) < end)
                check_names(f, expected);
        assert_true(f->is_kept);
}

/* A change is seen by the next look, however it is made, and costs one reading. */
static void check_changed(ContainerFiles *f, const char *expected) {
        unsigned n = f->n_reads;

        check_names(f, expected);
        assert_int_equal(f->n_reads, n + 1);
        let_settle(f, expected);
}

static void test_kept(void **state) {
        _cleanup_(container_files_deinit) ContainerFiles f = CONTAINER_FILES_NULL;
        char from[2 * PATH_MAX];
        unsigned n;

        check_names(&f, "");
        write_docker(ID_A, "shop");
        check_names(&f, "shop");
        let_settle(&f, "shop");
        n = f.n_reads;
        for (int i = 0; i < 1000; i++)
                check_names(&f, "shop");
        assert_int_equal(f.n_reads, n);

        write_docker(ID_A, "shed"); /* as long, in the same file */
        check_changed(&f, "shed");
        write_docker(ID_B, "barn"); /* one more folder */
        check_changed(&f, "barn shed");
        assert_int_equal(unlink(at(DOCKER ID_B "/config.v2.json")), 0);
        check_changed(&f, "shed");
        write_docker(ID_B, "byre"); /* a file, in a folder that was there */
        check_changed(&f, "byre shed");
        write_file(DOCKER "new", "{\"ID\":\"" ID_A "\",\"Name\":\"/mill\"}");
        (void)snprintf(from, sizeof(from), "%s", at(DOCKER "new"));
        assert_int_equal(rename(from, at(DOCKER ID_A "/config.v2.json")), 0); /* as docker does it */
        check_changed(&f, "byre mill");
        make_folder(PODMAN); /* where there was none */
        write_file(PODMAN "/containers.json", "[{\"id\":\"" ID_C "\",\"names\":[\"well\"]}]");
        check_changed(&f, "byre mill well");
        make_folder("/run/runc/gate");
        write_file("/run/runc/gate/state.json", "{\"id\":\"gate\",\"cgroup_paths\":{\"\":\"/sys/fs/cgroup/gate\"}}");
        check_changed(&f, "byre gate mill well");
}

/* Written twice within a tick, it has the same stamp and another name. */
static void test_hasty(void **state) {
        _cleanup_(container_files_deinit) ContainerFiles f = CONTAINER_FILES_NULL;
        char name[16];

        for (unsigned i = 0; i < 3000; i++) {
                (void)snprintf(name, sizeof(name), "shop-%04u", i);
                write_docker(ID_A, name);
                check_names(&f, name);
        }
}

/* What could not be read may be read the next time, without any file that has changed. */
static void test_problem(void **state) {
        _cleanup_(container_files_deinit) ContainerFiles f = CONTAINER_FILES_NULL;
        unsigned n;

        write_docker(ID_A, "shop");
        write_docker(ID_B, "barn");
        write_file(DOCKER ID_B "/config.v2.json", "{\"ID\":");
        n = f.n_reads;
        for (int i = 0; i < 10; i++)
                check_names(&f, NULL);
        assert_int_equal(f.n_reads, n + 10);
        assert_false(f.is_kept);
        write_docker(ID_B, "barn");
        check_names(&f, "barn shop");
}

static void write_bundle(const char *namespace, const char *id, const char *text) {
        char path[256];

        (void)snprintf(path, sizeof(path), TASKS "%s/%s", namespace, id);
        make_folder(path);
        strcat(path, "/config.json");
        write_file(path, text);
}

static CgroupFate fate_of(const char *name) {
        _cleanup_(cgroup_hierarchy_deinit) CgroupHierarchy h = host_hierarchy();
        CgroupFate fate = CGROUP_FATE_UNKNOWN;

        assert_int_equal(cgroup_container_fate(&h, name, &fate), 0);
        return fate;
}

#define CRI(key, value) "\"io.kubernetes.cri." key "\":\"" value "\""
#define POD CRI("sandbox-name", "web-0") "," CRI("sandbox-namespace", "shop") "," CRI("sandbox-uid", POD_UID)

static void test_containerd(void **state) {
        static const char nginx[] = "/kubepods.slice/cri-containerd-" ID_A ".scope", pause[] = "/kubepods.slice/cri-containerd-" ID_B ".scope";
        static const char nerdctl[] = "/system.slice/nerdctl-" ID_C ".scope";

        make_cgroup(nginx);
        make_cgroup(pause);
        make_cgroup(nerdctl);
        make_cgroup("/default/batch");
        write_bundle("k8s.io", ID_A, "{\"ociVersion\":\"1.1.0\",\"process\":{\"args\":[\"nginx\"],\"env\":[\"nerdctl/name=no\"]},\"annotations\":{"
                     CRI("container-name", "nginx") "," CRI("container-type", "container") "," POD "},"
                     "\"linux\":{\"resources\":{\"devices\":[{\"allow\":false}]},\"cgroupsPath\":\"kubepods.slice:cri-containerd:" ID_A "\"}}");
        write_bundle("k8s.io", ID_B, "{\"annotations\":{" CRI("container-type", "sandbox") "," POD "}}");
        write_bundle("default", ID_C, "{\"annotations\":{\"nerdctl/name\":\"command\",\"nerdctl/namespace\":\"default\"}}");
        write_bundle("default", "batch", "{\"linux\":{\"cgroupsPath\":\"/default/batch\"}}");
        write_bundle("moby", "0123", "{\"annotations\":{\"nerdctl/name\":\"docker-knows-it\"}}");

        check_resolves(CGROUP_BY_CONTAINER, "k8s_nginx_web-0_shop_" POD_UID, nginx);
        check_resolves(CGROUP_BY_CONTAINER, "k8s_nginx_*", nginx);
        check_resolves(CGROUP_BY_CONTAINER, "containerd://k8s_nginx_*", nginx);
        check_resolves(CGROUP_BY_CONTAINER, "docker://k8s_nginx_*", "");
        check_resolves(CGROUP_BY_CONTAINER, "k8s_POD_web-0_shop_*", pause);
        check_resolves(CGROUP_BY_CONTAINER, "k8s_*", "/kubepods.slice/cri-containerd-" ID_A ".scope /kubepods.slice/cri-containerd-" ID_B ".scope");
        check_resolves(CGROUP_BY_CONTAINER, "command", nerdctl);
        check_resolves(CGROUP_BY_CONTAINER, "batch", "/default/batch");
        check_refused(CGROUP_BY_CONTAINER, "docker-knows-it", REFUSED_NOT_FOUND, "unknown-container", "there is no container");
        check_refused(CGROUP_BY_CONTAINER, "k8s_nginx_web-1_shop_" POD_UID, REFUSED_NOT_FOUND, "unknown-container",
                      "did you mean 'k8s_nginx_web-0_shop_" POD_UID "'?");

        /* containerd forgets the bundle of one that is stopped, which nerdctl may start again under its id */
        write_docker(ID_A, "shop");
        assert_int_equal(fate_of("0123456789abcdef"), CGROUP_FATE_UNKNOWN);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_kept, set_up_host, tear_down_host),
                cmocka_unit_test_setup_teardown(test_hasty, set_up_host, tear_down_host),
                cmocka_unit_test_setup_teardown(test_problem, set_up_host, tear_down_host),
                cmocka_unit_test_setup_teardown(test_containerd, set_up_host, tear_down_host),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
