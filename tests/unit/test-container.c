/*
 * Who runs in a cgroup, by its path: the shapes that runtimes, kubelets and systemd give their cgroups, with both cgroup
 * drivers, as they stand in /proc/PID/cgroup.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/model/container.h"

#define A "3dcb1e0e1a95c3cb7ef3c7c4ff4d9ad2a92ed1b2a5a3bb1d6ff41e0a3b7c9d10"
#define B "f00dfeed1a95c3cb7ef3c7c4ff4d9ad2a92ed1b2a5a3bb1d6ff41e0a3b7c9d11"
#define UID "0e7cb72e-64e6-4c1d-8f2a-9b7a1f3c5d60"
#define UID_ "0e7cb72e_64e6_4c1d_8f2a_9b7a1f3c5d60"
#define STATIC_UID "7f8e9a0b1c2d3e4f5061728394a5b6c7"
#define NAME_64 "a234567890123456789012345678901234567890123456789012345678901234"
#define USER "/user.slice/user-1000.slice/user@1000.service"

static const struct {
        const char *path, *id, *runtime, *pod_uid, *unit;
} rows[] = {
        /* no container */
        { "/", "", NULL, "", "" },
        { "", "", NULL, "", "" },
        { "/init.scope", "", NULL, "", "init.scope" },
        { "/system.slice/nginx.service", "", NULL, "", "nginx.service" },
        { "/system.slice/system-getty.slice/getty@tty1.service", "", NULL, "", "getty@tty1.service" },
        { "/system.slice/systemd-fsck@dev-disk-by\\x2duuid-1.service", "", NULL, "",
          "systemd-fsck@dev-disk-by\\x2duuid-1.service" },
        { "/system.slice/_cgroup.procs.service", "", NULL, "", "cgroup.procs.service" },
        { "/user.slice/user-1000.slice/session-3.scope", "", NULL, "", "session-3.scope" },
        { USER "/app.slice/app-org.gnome.Terminal.slice/vte-spawn-1.scope", "", NULL, "", "vte-spawn-1.scope" },
        { "/system.slice/docker.service", "", NULL, "", "docker.service" },
        { "/system.slice/a b.service", "", NULL, "", "system.slice" },
        { "/.service/x", "", NULL, "", "" },
        { "/process_api/c17e0dd3945b7b98bf175b5d4723cde0", "", NULL, "", "" },
        { "/docker", "", NULL, "", "" },
        { "/build/" A "0", "", NULL, "", "" },
        { "/x-" A "0.scope", "", NULL, "", "x-" A "0.scope" },

        /* docker */
        { "/docker/" A, A, "docker", "", "" },
        { "/docker/" A "/init.scope", A, "docker", "", "init.scope" },
        { "/system.slice/docker-" A ".scope", A, "docker", "", "docker-" A ".scope" },
        { "/system.slice/docker-" A ".scope (deleted)", A, "docker", "", "docker-" A ".scope" },
        { USER "/user.slice/docker-" A ".scope", A, "docker", "", "docker-" A ".scope" },
        { "/../../docker-" A ".scope", A, "docker", "", "docker-" A ".scope" },
        { "/docker/" A "/docker/" B, B, "docker", "", "" },
        { "/system.slice:docker:" A, A, "docker", "", "" },

        /* an id without a runtime's name: --cgroup-parent */
        { "/ecs/5f3c1a/" A, A, NULL, "", "" },
        { "/builds.slice/runc-" A ".scope", A, NULL, "", "runc-" A ".scope" },

        /* containerd */
        { "/k8s.io/" A, A, "containerd", "", "" },
        { "/default/" A, A, "containerd", "", "" },
        { "/system.slice/nerdctl-" A ".scope", A, "containerd", "", "nerdctl-" A ".scope" },
        { "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice/cri-containerd-" A ".scope", A,
          "containerd", UID, "cri-containerd-" A ".scope" },
        { "/system.slice/containerd.service/kubepods-besteffort-pod" UID_ ".slice:cri-containerd:" A, A, "containerd", UID,
          "containerd.service" },

        /* Kubernetes, runtime not told */
        { "/kubepods/burstable/pod" UID "/" A, A, "kubernetes", UID, "" },
        { "/kubepods/pod" UID "/" A, A, "kubernetes", UID, "" },
        { "/kubepods/besteffort/pod" UID, "", NULL, UID, "" },
        { "/kubepods/burstable/pod" STATIC_UID "/" A, A, "kubernetes", STATIC_UID, "" },
        { "/kubepods.slice/kubepods-pod" UID_ ".slice", "", NULL, UID, "kubepods-pod" UID_ ".slice" },
        { "/kubepods/burstable/podx" UID "/" A, A, NULL, "", "" },
        { "/kubepods/burstable/pod" UID "x", "", NULL, "", "" },
        { "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UID_ ".slice/cri-containerd-" A ".scope", A,
          "containerd", UID, "cri-containerd-" A ".scope" },
        { "/system.slice/docker-" B ".scope/kubelet/kubepods/besteffort/pod" UID "/" A, A, "kubernetes", UID,
          "docker-" B ".scope" },
        { "/kubepods/burstable/pod" UID "/" A "/docker/" B, B, "docker", UID, "" },

        /* CRI-O */
        { "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_ ".slice/crio-" A ".scope", A, "cri-o",
          UID, "crio-" A ".scope" },
        { "/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" A ".scope/container", A, "cri-o", UID, "crio-" A ".scope" },
        { "/kubepods.slice/kubepods-pod" UID_ ".slice/crio-conmon-" A ".scope", "", NULL, UID,
          "crio-conmon-" A ".scope" },

        /* podman */
        { "/machine.slice/libpod-" A ".scope/container", A, "podman", "", "libpod-" A ".scope" },
        { "/machine.slice/libpod-conmon-" A ".scope", "", NULL, "", "libpod-conmon-" A ".scope" },
        { "/machine.slice/machine-libpod_pod_" B ".slice/libpod-" A ".scope", A, "podman", "", "libpod-" A ".scope" },
        { USER "/user.slice/libpod-" A ".scope", A, "podman", "", "libpod-" A ".scope" },
        { "/libpod_parent/libpod-" A, A, "podman", "", "" },
        { "/libpod_parent/" B "/libpod-" A, A, "podman", "", "" },
        { "/libpod_parent/" B, "", NULL, "", "" },
        { "/libpod_parent/conmon", "", NULL, "", "" },
        { "/system.slice/web.service/libpod-payload-" A, A, "podman", "", "web.service" },

        /* LXC, nspawn, libvirt */
        { "/lxc.payload.web/system.slice/nginx.service", "web", "lxc", "", "nginx.service" },
        { "/lxc.payload/web", "web", "lxc", "", "" },
        { "/lxc/101/ns", "101", "lxc", "", "" },
        { "/lxc.monitor.web", "", NULL, "", "" },
        { "/lxc.payload.a/lxc.payload.b", "b", "lxc", "", "" },
        { "/lxc.payload.web/docker/" A, A, "docker", "", "" },
        { "/lxc.payload." NAME_64, NAME_64, "lxc", "", "" },
        { "/lxc.payload." NAME_64 "5", "", NULL, "", "" },
        { "/machine.slice/machine-web.scope/payload", "web", "systemd-nspawn", "", "machine-web.scope" },
        { "/machine.slice/machine-my\\x2dweb.scope", "my-web", "systemd-nspawn", "", "machine-my\\x2dweb.scope" },
        { "/machine.slice/machine-a\\x0ab\\x2f\\x2.scope", "a\\x0ab\\x2f\\x2", "systemd-nspawn", "",
          "machine-a\\x0ab\\x2f\\x2.scope" },
        { "/machine.slice/systemd-nspawn@web.service/payload", "web", "systemd-nspawn", "", "systemd-nspawn@web.service" },
        { "/machine.slice/machine-qemu\\x2d3\\x2dvm.scope", "", NULL, "", "machine-qemu\\x2d3\\x2dvm.scope" },
        { "/machine.slice/machine-lxc\\x2d7\\x2dweb.scope", "lxc-7-web", "lxc", "", "machine-lxc\\x2d7\\x2dweb.scope" },
};

static void test_shapes(void **state) {
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                ContainerName name;

                memset(&name, 0x55, sizeof(name)); /* whatever was there */
                container_name_of(rows[i].path, &name);
                if (strcmp(name.id, rows[i].id) != 0 || strcmp(name.unit, rows[i].unit) != 0 ||
                    strcmp(name.pod_uid, rows[i].pod_uid) != 0 ||
                    strcmp(name.runtime ? name.runtime : "-", rows[i].runtime ? rows[i].runtime : "-") != 0)
                        fail_msg("%s: id '%s' runtime '%s' pod '%s' unit '%s'", rows[i].path, name.id,
                                 name.runtime ? name.runtime : "-", name.pod_uid, name.unit);
        }
}

/* Longer than any name of the kernel's: nothing is found in it, nothing is cut, and what is before it stays. */
static void test_long(void **state) {
        char path[1024] = "/docker/" A "/";
        ContainerName name;

        memset(path + strlen(path), 'a', 256);
        strcat(path, ".scope");
        container_name_of(path, &name);
        assert_string_equal(name.id, A);
        assert_string_equal(name.unit, "");
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_shapes), cmocka_unit_test(test_long) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
