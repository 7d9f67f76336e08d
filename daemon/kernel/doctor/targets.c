/* Whom events can be about: cgroups, other users' processes, CPUs that come and go. */
#include "daemon/kernel/doctor/trial.h"

#include "daemon/base/cleanup.h"
#include "daemon/kernel/cgroup/cgroup.h"
#include "daemon/kernel/host/hotplug.h"
#include "daemon/model/record.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define REMEDY_PIDS "run perfd in the host's pid namespace (docker --pid=host, hostPID: true)"

static const char *cgroup_remedy(Doctor *d, const CgroupHierarchy *h, int r) {
        if (r == -EACCES || r == -EPERM)
                return doctor_permit(d, CAP_PERFMON, "sysctl kernel.perf_event_paranoid=-1");
        if (r == -ENOENT && !h->is_v1)
                return "enable a controller in the root cgroup, as by `echo +pids > cgroup.subtree_control` there; and unmount a "
                        "v1 perf_event hierarchy, if there is one";
        return "use a kernel with CONFIG_CGROUP_PERF";
}

static void examine_cgroups(Doctor *d) {
        struct perf_event_attr attr = doctor_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
        CgroupHierarchy h = CGROUP_HIERARCHY_NULL;
        Explanation e = EXPLANATION_NULL;
        _cleanup_close_ int fd = -1;
        int r = cgroup_find_hierarchy(d->wants->root, &h, &e);

        if (r != 0) {
                doctor_no(d, "cgroups", "mount -t cgroup2 cgroup2 /sys/fs/cgroup", "%s", r > 0 ? e.text : strerror(-r));
                return;
        }
        attr.exclude_kernel = attr.exclude_hv = 0;
        fd = open(h.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = fd < 0 ? error_origin(-errno) : doctor_open(&attr, fd, (int)d->cpus[0], PERF_FLAG_PID_CGROUP);
        if (r >= 0) {
                close(r);
                doctor_yes(d, "cgroups", "an event of a %s cgroup opens; they are below %s", h.is_v1 ? "v1" : "v2",
                           h.path);
        } else
                doctor_no(d, "cgroups", cgroup_remedy(d, &h, r), "an event of the %s cgroup %s: %s",
                          h.is_v1 ? "v1" : "v2", h.path, strerror(-r));
        cgroup_hierarchy_deinit(&h);
}

/* The kernel waits for all who walk over watches: fsnotify_destroy_group(), some 10 ms. */
static void close_watch(const Doctor *d, int fd) {
        if (fd >= 0 && d->wants->close)
                d->wants->close(d->wants->userdata, fd);
        else
                close_fd(fd);
}

static void examine_globs(Doctor *d) {
        long watches = doctor_read_number(d, "/proc/sys/fs/inotify/max_user_watches");
        int fd = inotify_init1(IN_CLOEXEC);

        if (fd >= 0 && inotify_add_watch(fd, "/proc", IN_CREATE) >= 0)
                doctor_yes(d, "cgroup globs", "inotify reports new cgroups, in at most %ld directories", watches);
        else if (errno == EMFILE)
                doctor_no(d, "cgroup globs", "raise fs.inotify.max_user_instances", "inotify: %s", strerror(errno));
        else
                doctor_no(d, "cgroup globs",
                          errno == ENOSPC ? "raise fs.inotify.max_user_watches"
                                          : "use a kernel with CONFIG_INOTIFY_USER",
                          "inotify: %s", strerror(errno));
        close_watch(d, fd);
}

/* ret_link: which it is, or why that is not to be known. */
static bool has_pids_of_host(Doctor *d, char *ret_link, size_t size) {
        int r = doctor_read_link(d, "/proc/self/ns/pid", ret_link, size);

        if (r < 0)
                (void)snprintf(ret_link, size, "%s", strerror(-r));
        return r == 0 && strcmp(ret_link, "pid:[4026531836]") == 0; /* PROC_PID_INIT_INO */
}

/* Whether pid 1 sees other files than perfd does: then perfd is in a container that has the host's pids. */
static bool has_other_root(Doctor *d) {
        struct stat own, first;

        return stat(doctor_path(d, "/"), &own) == 0 && stat(doctor_path(d, "/proc/1/root/"), &first) == 0 &&
               (own.st_dev != first.st_dev || own.st_ino != first.st_ino);
}

static void examine_roots(Doctor *d) {
        char link[256], pids[64];
        int r = doctor_read_link(d, "/proc/1/root", link, sizeof(link));

        if (r < 0)
                doctor_no(d, "/proc/PID/root", doctor_permit(d, CAP_SYS_PTRACE, NULL), "that of pid 1: %s", strerror(-r));
        else if (!has_pids_of_host(d, pids, sizeof(pids)))
                doctor_no(d, "/proc/PID/root", REMEDY_PIDS, "that of pid 1 can be followed, but /proc has only the processes of "
                        "this container: uprobes find no program of other containers or of the host");
        else if (has_other_root(d))
                doctor_yes(d, "/proc/PID/root", "that of pid 1 can be followed: uprobe:/proc/PID/root/PATH finds programs of "
                           "containers; perfd is in one itself, and finds the host's at /proc/1/root/PATH");
        else
                doctor_yes(d, "/proc/PID/root", "that of pid 1 can be followed: uprobe:/proc/PID/root/PATH finds programs of "
                           "containers");
}

/* The first process of this pid namespace, which in most is somebody else's. */
static void examine_processes(Doctor *d) {
        struct perf_event_attr attr = doctor_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
        int r = doctor_try(&attr, 1, -1);

        if (r == 0)
                doctor_yes(d, "other processes", "an event on pid 1 opens");
        else
                doctor_no(d, "other processes", doctor_permit(d, CAP_PERFMON, "CAP_SYS_PTRACE"),
                          "an event on pid 1 fails: %s", strerror(-r));
}

static void examine_pids(Doctor *d) {
        char link[64], own[32], self[32] = "";

        (void)snprintf(own, sizeof(own), "%d", (int)getpid());
        if (has_pids_of_host(d, link, sizeof(link)))
                doctor_yes(d, "pids", "those of the whole host");
        else if (doctor_read_link(d, "/proc/self", self, sizeof(self)) == 0 && strcmp(own, self) != 0)
                doctor_no(d, "pids", REMEDY_PIDS ", or mount -t proc proc /proc", "%s, and /proc belongs to another one: no "
                        "process has an executable, uid, cgroup or container", link);
        else
                doctor_no(d, "pids", REMEDY_PIDS, "%s: only the pids of this namespace. Processes outside of it have pid 0 and "
                        "are called " COMM_OF_OUTSIDE ", or " COMM_OF_NO_PID " where a sample does not show that they are no "
                          "idle CPUs; cgroups and containers are those in /proc when a process is first seen, and none if "
                                  "it has ended by then", link);
}

static void examine_hotplug(Doctor *d) {
        _cleanup_close_ int fd = -1;
        int r = hotplug_open(&fd);

        if (r == 0)
                doctor_yes(d, "CPU hotplug", "the kernel reports CPUs that go online or offline; %zu are online", d->n_cpus);
        else
                doctor_no(
                        d, "CPU hotplug",
                        r == -EAFNOSUPPORT || r == -EPERM || r == -EACCES
                                ? "allow AF_NETLINK (RestrictAddressFamilies= of its unit), or restart perfd after a CPU came "
                                        "online"
                                : "restart perfd after a CPU came online",
                        "the kernel's uevents cannot be received: %s", strerror(-r));
}

void doctor_examine_targets(Doctor *d) {
        d->topic = "targets";
        examine_cgroups(d);
        examine_globs(d);
        examine_processes(d);
        examine_roots(d);
        examine_pids(d);
        examine_hotplug(d);
}
