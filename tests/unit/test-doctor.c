/*
 * The doctor on hosts that are laid out here: what perf_event_open(2) says is played, /proc, /sys and tracefs are files.
 * What comes from the process itself (threads, inotify) is whatever it is, and not looked at.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/kernel/doctor/trial.h"
#include "daemon/kernel/event/open.h"

static char root[64], tracing[80];
static unsigned n_own_filters;

/* What the played kernel says: to events of the host, of hardware, and to all. 0: yes. */
static struct {
        int all, host, hardware, probes, lost;
        bool seals; /* its fds can be mapped for reading only */
        unsigned n_opened;
} kernel;

static int play_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags) {
        int fd;

        errno = kernel.all;
        if (!errno && (attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_RAW))
                errno = kernel.hardware;
        if (!errno && attr->type >= 100)
                errno = kernel.probes;
        if (!errno && cpu >= 0)
                errno = kernel.host;
        if (!errno && attr->read_format == PERF_FORMAT_LOST)
                errno = kernel.lost;
        if (!errno && attr->type == PERF_TYPE_TRACEPOINT && attr->use_clockid && attr->clockid != CLOCK_MONOTONIC &&
            attr->clockid != CLOCK_MONOTONIC_RAW)
                errno = EINVAL;
        if (errno)
                return -1;
        assert_true(attr->disabled || attr->type == PERF_TYPE_BREAKPOINT); /* which counts what doctor itself writes */
        assert_true(flags & PERF_FLAG_FD_CLOEXEC);
        kernel.n_opened++;
        fd = memfd_create("played", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        assert_int_equal(ftruncate(fd, 1 << 20), 0);
        if (kernel.seals)
                assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
        return fd;
}

static void make_folders(char *path) {
        for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                (void)mkdir(path, 0700);
                *slash = '/';
        }
}

static void put_file(const char *path, const char *text) {
        char whole[256];
        FILE *f;

        (void)snprintf(whole, sizeof(whole), "%s%s", root, path);
        make_folders(whole);
        f = fopen(whole, "w");
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
}

static void put_link(const char *path, const char *target) {
        char whole[256];

        (void)snprintf(whole, sizeof(whole), "%s%s", root, path);
        make_folders(whole);
        (void)unlink(whole);
        assert_int_equal(symlink(target, whole), 0);
}

static void read_file(const char *path, char *to, size_t size) {
        char whole[256];
        size_t n;
        FILE *f;

        (void)snprintf(whole, sizeof(whole), "%s%s", root, path);
        f = fopen(whole, "r");
        assert_non_null(f);
        n = fread(to, 1, size - 1, f);
        to[n] = '\0';
        fclose(f);
}

/* A host that allows everything. */
static int lay_out(void **state) {
        strcpy(root, "/tmp/test-doctor-XXXXXX");
        if (!mkdtemp(root))
                return -1;
        (void)snprintf(tracing, sizeof(tracing), "%s/tracing", root);
        put_file("/proc/self/status", "Name:\tperfd\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n");
        put_link("/proc/self/ns/user", "user:[4026531837]");
        put_link("/proc/self/ns/pid", "pid:[4026531836]");
        put_link("/proc/1/root", root);
        put_file("/proc/sys/kernel/osrelease", "6.12.0-1-amd64\n");
        put_file("/proc/sys/kernel/perf_event_paranoid", "3\n");
        put_file("/proc/sys/kernel/perf_event_max_sample_rate", "5000\n");
        put_file("/proc/sys/kernel/perf_cpu_time_max_percent", "25\n");
        put_file("/proc/sys/kernel/perf_event_mlock_kb", "20\n");
        put_file("/proc/sys/kernel/kptr_restrict", "1\n");
        put_file("/proc/kallsyms", "0000000000000000 A a\nffffffff81000000 T b\n");
        put_file("/sys/devices/system/cpu/online", "0\n");
        put_file("/sys/bus/event_source/devices/kprobe/type", "100\n");
        put_file("/sys/bus/event_source/devices/uprobe/type", "101\n");
        put_file("/sys/kernel/btf/vmlinux", "BTF");
        put_file("/tracing/events/header_event", "#\n");
        put_file("/tracing/events/sched/sched_switch/id", "314\n");
        put_file("/tracing/kprobe_events", "");
        put_file("/tracing/uprobe_events", "");
        put_file("/tracing/error_log", "");
        put_file("/tracing/instances/x", "");
        open_perf_event = play_open;
        n_own_filters = 0;
        memset(&kernel, 0, sizeof(kernel));
        return 0;
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *ftw) {
        return remove(path);
}

static int take_away(void **state) {
        return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static unsigned n_taken;

/* What the kernel would keep main waiting for. */
static void take_fd(void *userdata, int fd) {
        char path[32], link[64] = "";

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        assert_true(readlink(path, link, sizeof(link) - 1) > 0);
        assert_string_equal(link, "anon_inode:inotify");
        assert_int_equal(close(fd), 0);
        n_taken++;
}

static DoctorReport examine_for(clockid_t clock) {
        static const PrivilegesReport none = PRIVILEGES_REPORT_NULL;
        DoctorWants wants = { .root = root,
                              .tracing = tracing,
                              .privileges = &none,
                              .clock = clock,
                              .ring_size = 65536,
                              .n_own_filters = n_own_filters,
                              .n_own_fds = 64,
                              .n_fds_each_cpu = 2,
                              .close = take_fd };
        DoctorReport report;

        assert_int_equal(doctor_examine(&wants, &report, NULL), 0);
        return report;
}

static DoctorReport examine(void) {
        return examine_for(CLOCK_MONOTONIC);
}

static const DoctorRow *row_of(const DoctorReport *r, const char *what) {
        for (size_t i = 0; i < r->n; i++)
                if (strcmp(r->rows[i].what, what) == 0)
                        return &r->rows[i];
        fail_msg("no row %s", what);
        return NULL;
}

static void check_yes(const DoctorReport *r, const char *what, const char *found) {
        const DoctorRow *row = row_of(r, what);

        assert_string_equal(row->found, found);
        assert_string_equal(row->remedy, "");
        assert_true(row->works);
}

static void check_no(const DoctorReport *r, const char *what, const char *found, const char *remedy) {
        const DoctorRow *row = row_of(r, what);

        assert_string_equal(row->found, found);
        assert_string_equal(row->remedy, remedy);
        assert_false(row->works);
}

static int count_fds(void) {
        int n = 0;

        for (int fd = 0; fd < 200; fd++)
                n += fcntl(fd, F_GETFD) >= 0;
        return n;
}

static void test_all_allowed(void **state) {
        int fds = count_fds();
        DoctorReport r = examine();

        assert_int_equal(count_fds(), fds);
        assert_true(r.can_run);
        check_yes(&r, "perf_event_open", "an event on an own thread opens");
        check_yes(&r, "host-wide events", "a host-wide event on CPU 0 opens");
        check_yes(&r, "perf_event_paranoid", "3: without CAP_PERFMON (Debian: CAP_SYS_ADMIN) no events at all, which this process has");
        check_yes(&r, "PERF_FORMAT_LOST", "the losses of a full ring buffer are counted exactly");
        check_yes(&r, "clocks", "software events can use the clocks: monotonic monotonic-raw boottime realtime");
        check_yes(&r, "clocks of tracepoints", "tracepoints, probes and breakpoints can use the clocks: monotonic monotonic-raw");
        check_yes(&r, "hardware events",
                  "cpu-cycles instructions cache-references cache-misses branch-instructions branch-misses bus-cycles "
                  "stalled-cycles-frontend stalled-cycles-backend ref-cycles");
        check_yes(&r, "PMUs", "kprobe uprobe");
        check_yes(&r, "tracepoints", "sched/sched_switch opens, with its raw bytes");
        check_no(&r, "kernel filters", "PERF_EVENT_IOC_SET_FILTER: Inappropriate ioctl for device",
                 "use a kernel with CONFIG_EVENT_TRACING; until then filter by `watch --where`");
        check_yes(&r, "kprobes", "a probe on vfs_fsync_range opens through the kprobe PMU");
        check_yes(&r, "uprobes", "a probe on a file opens through the uprobe PMU");
        check_yes(&r, "kprobe_events", "a probe was defined and removed: probes with arguments work");
        check_yes(&r, "kernel symbols", "/proc/kallsyms has names and addresses; kernel.kptr_restrict is 1");
        check_yes(&r, "BTF", "/sys/kernel/btf/vmlinux can be read");
        check_yes(&r, "/proc/PID/root", "that of pid 1 can be followed: uprobe:/proc/PID/root/PATH finds programs of "
                  "containers");
        check_yes(&r, "pids", "those of the whole host");
        check_yes(&r, "locked memory", "rings of 64 KiB were mapped on 1 CPUs");
        check_yes(&r, "perf_event_max_sample_rate", "up to 5000 samples a second for each event and CPU");
        check_yes(&r, "seccomp", "no filter");
        check_yes(&r, "container", "none detected");
        doctor_report_deinit(&r);
}

static void test_clock_of_few(void **state) {
        DoctorReport r = examine_for(CLOCK_REALTIME);

        assert_true(r.can_run);
        check_yes(&r, "clocks", "software events can use the clocks: monotonic monotonic-raw boottime realtime");
        check_no(&r, "clocks of tracepoints",
                 "tracepoints, probes and breakpoints cannot use the clock realtime, only: monotonic monotonic-raw",
                 "set `clock` to one of them, or trace only software events");
        doctor_report_deinit(&r);
}

/* What is defined for the trial has the name of a perfd, and is removed by that name. */
static void test_definitions(void **state) {
        DoctorReport r = examine();
        char text[512], group[32], expected[160];
        int fd;

        read_file("/tracing/kprobe_events", text, sizeof(text));
        assert_int_equal(sscanf(text, "p:%31[^/]", group), 1);
        assert_int_equal(strlen(group), strlen("perfd_") + 16);
        (void)snprintf(expected, sizeof(expected), "p:%s/doctor vfs_fsync_range-:%s/doctor", group, group);
        assert_string_equal(text, expected); /* a write is a line there */
        read_file("/tracing/uprobe_events", text, sizeof(text));
        assert_int_equal(sscanf(text, "p:%31[^/]/doctor /proc/self/fd/%d:0x100", group, &fd), 2);
        (void)snprintf(expected, sizeof(expected), "p:%s/doctor /proc/self/fd/%d:0x100-:%s/doctor", group, fd, group);
        assert_string_equal(text, expected);
        doctor_report_deinit(&r);
}

/* As the shipped service sees it, but for what is refused by mounts: what remains, and how to get the rest. */
static void test_probes_of_a_service(void **state) {
        DoctorReport r;

        put_file("/proc/kallsyms", "");
        kernel.probes = EACCES;
        r = examine();
        check_no(&r, "kernel symbols", "/proc/kallsyms is empty: perfd asks the kernel whether a name exists, and cannot suggest "
                "similar ones", "ProtectKernelTunables=no in perfd's unit, as yes hides the file; kernel probes do not need it");
        check_yes(&r, "uprobes", "a probe on a file is defined in uprobe_events; the uprobe PMU, which is then not needed, says: "
                  "Permission denied");
        check_yes(&r, "uprobe_events", "a probe was defined and removed: hits are counted exactly, and probes with arguments "
                  "work");
        doctor_report_deinit(&r);
}

/* In a container: its own pid 1 says nothing of others, and with the host's pids the host's files are elsewhere. */
static void test_containers(void **state) {
        DoctorReport r;

        put_link("/proc/self/ns/pid", "pid:[4026532000]");
        r = examine();
        check_no(&r, "/proc/PID/root", "that of pid 1 can be followed, but /proc has only the processes of this container: "
                "uprobes find no program of other containers or of the host",
                 "run perfd in the host's pid namespace (docker --pid=host, hostPID: true)");
        doctor_report_deinit(&r);
        put_link("/proc/self/ns/pid", "pid:[4026531836]");
        put_link("/proc/1/root", "/");
        r = examine();
        check_yes(&r, "/proc/PID/root", "that of pid 1 can be followed: uprobe:/proc/PID/root/PATH finds programs of "
                  "containers; perfd is in one itself, and finds the host's at /proc/1/root/PATH");
        doctor_report_deinit(&r);
}

static void test_nothing_allowed(void **state) {
        static const char permit[] = "give perfd CAP_PERFMON (AmbientCapabilities=CAP_PERFMON in its unit), or sysctl "
                                     "kernel.perf_event_paranoid=-1";
        DoctorReport r;

        put_file("/proc/self/status", "CapEff:\t0000000000000000\nSeccomp:\t0\n");
        put_file("/proc/kallsyms", "0000000000000000 A a\n");
        put_link("/proc/self/ns/pid", "pid:[4026532000]");
        kernel.host = kernel.probes = EACCES;
        kernel.hardware = ENOENT;
        kernel.lost = EINVAL;
        strcat(tracing, "/nowhere");
        r = examine();
        assert_false(r.can_run);
        check_yes(&r, "perf_event_open", "an event on an own thread opens");
        check_no(&r, "host-wide events", "a host-wide event on CPU 0: Permission denied", permit);
        check_no(&r, "perf_event_paranoid", "3: without CAP_PERFMON (Debian: CAP_SYS_ADMIN) no events at all", permit);
        check_no(&r, "PERF_FORMAT_LOST", "not supported by this kernel",
                 "use Linux 6.0 or later; until then the losses of ring buffers are a lower bound");
        check_no(
                &r, "cycles", "the CPU's cycle counter: No such file or directory",
                "let the hypervisor give this machine a PMU (qemu: -cpu host,pmu=on); without one, cycles can fall back to "
                "cpu-clock (`fallback: cpu-clock`)");
        check_no(&r, "tracepoints", "the ids of tracepoints cannot be read: No such file or directory", "see tracefs");
        check_no(&r, "kernel filters", "there is no tracepoint to try it with", "see tracepoints");
        check_no(&r, "kprobes", "a probe on vfs_fsync_range through the PMU: Permission denied",
                 "give perfd CAP_PERFMON (AmbientCapabilities=CAP_PERFMON in its unit)");
        check_yes(&r, "kernel symbols", "/proc/kallsyms has names, but no addresses; only probes at an address and some messages "
                "need them; kernel.kptr_restrict is 1");
        check_no(&r, "pids", "pid:[4026532000]: only the pids of this namespace. Processes outside of it have pid 0 and are called "
                 "outside, or idle-or-outside where a sample does not show that they are no idle CPUs; cgroups and containers are those in /proc when a process is first seen, and none if it has "
                 "ended by then",
                 "run perfd in the host's pid namespace (docker --pid=host, hostPID: true)");
        check_no(&r, "capabilities", "none; refused for lack of CAP_PERFMON",
                 "AmbientCapabilities=CAP_PERFMON in its unit, for everything that is refused here");
        doctor_report_deinit(&r);
}

/* Which has no unit. */
static void test_container_options(void **state) {
        DoctorReport r;

        put_file("/run/.containerenv", "");
        put_file("/proc/sys/kernel/osrelease", "6.16.1\n");
        put_file("/proc/self/status", "CapEff:\t0000000000000000\nSeccomp:\t0\n");
        kernel.host = kernel.probes = EACCES;
        strcat(tracing, "/nowhere");
        r = examine();
        check_no(&r, "capabilities", "none; refused for lack of CAP_PERFMON CAP_SYS_ADMIN",
                 "--cap-add PERFMON --cap-add SYS_ADMIN in the options of its container, for everything that is refused here");
        doctor_report_deinit(&r);
}

/* From Linux 6.16 on user probes want more, which is said at once. */
static void test_newer_kernel(void **state) {
        DoctorReport r;

        put_file("/proc/sys/kernel/osrelease", "6.16.1\n");
        put_file("/proc/self/status", "CapEff:\t0000000000000000\nSeccomp:\t0\n");
        kernel.host = kernel.probes = EACCES;
        strcat(tracing, "/nowhere");
        r = examine();
        check_no(&r, "capabilities", "none; refused for lack of CAP_PERFMON CAP_SYS_ADMIN",
                 "AmbientCapabilities=CAP_PERFMON CAP_SYS_ADMIN in its unit, for everything that is refused here");
        doctor_report_deinit(&r);
}

/* EPERM means another thing each time. */
static void test_remedies(void **state) {
        static const struct {
                const char *status, *user_namespace, *paranoid, *remedy;
                unsigned n_own_filters;
        } cases[] = {
                { "CapEff:\t0000000000000000\nSeccomp:\t2\n", "user:[4026531837]", "2",
                  "give perfd CAP_PERFMON (AmbientCapabilities=CAP_PERFMON in its unit), or sysctl kernel.perf_event_paranoid=-1" },
                { "CapEff:\t0000000000000000\nCapBnd:\t0000000000000004\n", "user:[4026531837]", "2",
                  "give perfd CAP_PERFMON (AmbientCapabilities=CAP_PERFMON and CapabilityBoundingSet=CAP_PERFMON in its unit), or "
                  "sysctl kernel.perf_event_paranoid=-1" },
                { "CapEff:\t0000004000000000\nSeccomp:\t2\n", "user:[4026531837]", "2",
                  "allow the call in the seccomp filter of this process: SystemCallFilter=perf_event_open in perfd's unit, or "
                  "the profile of the container" },
                { "CapEff:\t0000004000000000\nSeccomp:\t0\n", "user:[4026532111]", "2",
                  "run perfd in the host's initial user namespace: CAP_PERFMON has no effect in others" },
                { "CapEff:\t0000004000000000\nSeccomp:\t2\n", "user:[4026531837]", "3",
                  "sysctl kernel.perf_event_paranoid=2, or give perfd CAP_SYS_ADMIN, which this kernel requires above 2" },
                { "CapEff:\t0000000000200000\nSeccomp:\t0\n", "user:[4026531837]", "2",
                  "a security module forbids it: see dmesg, and /sys/kernel/security/lockdown" },
                { "CapEff:\t0000004000000000\nSeccomp:\t2\nSeccomp_filters:\t1\n", "user:[4026531837]", "2",
                  "a security module forbids it: see dmesg, and /sys/kernel/security/lockdown", 1 },
                { "CapEff:\t0000004000000000\nSeccomp:\t2\n", "user:[4026531837]", "2",
                  "a security module forbids it: see dmesg, and /sys/kernel/security/lockdown", 1 },
                { "CapEff:\t0000004000000000\nSeccomp:\t2\nSeccomp_filters:\t2\n", "user:[4026531837]", "2",
                  "allow the call in the seccomp filter of this process: SystemCallFilter=perf_event_open in perfd's unit, or "
                  "the profile of the container", 1 },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                char status[128];
                DoctorReport r;

                (void)snprintf(status, sizeof(status), "Name:\tperfd\n%s", cases[i].status);
                put_file("/proc/self/status", status);
                put_link("/proc/self/ns/user", cases[i].user_namespace);
                put_file("/proc/sys/kernel/perf_event_paranoid", cases[i].paranoid);
                kernel.host = EPERM;
                n_own_filters = cases[i].n_own_filters;
                r = examine();
                check_no(&r, "host-wide events", "a host-wide event on CPU 0: Operation not permitted",
                         cases[i].remedy);
                doctor_report_deinit(&r);
        }
}

static void test_no_perf_events(void **state) {
        DoctorReport r;

        kernel.all = ENOSYS;
        r = examine();
        assert_false(r.can_run);
        assert_int_equal(kernel.n_opened, 0);
        check_no(&r, "perf_event_open", "Function not implemented", "use a kernel with CONFIG_PERF_EVENTS");
        check_no(&r, "clocks", "no event can use the clock monotonic, only: none", "see perf_event_open");
        doctor_report_deinit(&r);
}

/* A ring that cannot be locked: what would fit, of 20 KiB from the sysctl and what RLIMIT_MEMLOCK adds. */
/* It is closed by somebody else. */
static void test_watch(void **state) {
        DoctorReport r;
        int fd = inotify_init1(IN_CLOEXEC);

        if (fd < 0) {
                print_message("skipped: there is nothing to close: inotify: %s\n", strerror(errno));
                skip();
        }
        close(fd);
        n_taken = 0;
        r = examine();
        assert_int_equal(n_taken, 1);
        doctor_report_deinit(&r);
}

static void test_limits(void **state) {
        struct rlimit before, less, few = { .rlim_cur = 120, .rlim_max = 120 };
        DoctorReport r;
        int status;

        assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &before), 0);
        less = before;
        less.rlim_cur = 0;
        assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &less), 0);
        kernel.seals = true;
        put_file("/proc/sys/kernel/perf_event_max_sample_rate", "50\n");
        r = examine();
        assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &before), 0);
        assert_false(r.can_run);
        check_no(
                &r, "locked memory",
                "rings of 64 KiB on 0 of 1 CPUs, then: Operation not permitted; kernel.perf_event_mlock_kb is 20 a CPU, "
                "RLIMIT_MEMLOCK 0 KiB",
                "LimitMEMLOCK=infinity in perfd's unit (ulimit -l unlimited), or rings.size: 16KiB");
        check_no(&r, "perf_event_max_sample_rate", "50: a frequency above it is refused",
                 "sysctl kernel.perf_event_max_sample_rate=100000");
        doctor_report_deinit(&r);

        kernel.seals = false;
        if (fork() == 0) { /* a hard limit cannot be raised again */
                assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
                r = examine();
                check_no(
                        &r, "RLIMIT_NOFILE", "120 fds, of which perfd itself needs 66 on 1 CPUs",
                        "LimitNOFILE=1066 in perfd's unit, or ulimit -Hn 1066: enough for 1000 events on 1 CPUs");
                _exit(r.can_run ? 0 : 1);
        }
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, lay_out, take_away)
        const struct CMUnitTest tests[] = {
                TEST(test_all_allowed), TEST(test_clock_of_few), TEST(test_definitions),
                TEST(test_probes_of_a_service), TEST(test_containers), TEST(test_nothing_allowed),
                TEST(test_newer_kernel), TEST(test_container_options), TEST(test_remedies), TEST(test_no_perf_events),
                TEST(test_watch), TEST(test_limits),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
