/*
 * tracefs, tracepoints, and by which clocks they and others can be stamped. Where it is not mounted it is mounted without a place
 * (fsmount(2)): then everything behind it can be tried all the same, and nobody sees it.
 */
#include "daemon/kernel/doctor/trial.h"

#include "daemon/base/cleanup.h"
#include "daemon/kernel/event/open.h"

#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>

static const char standard[] = "/sys/kernel/tracing";

int doctor_mount_tracing(void) {
        _cleanup_close_ int fd = fsopen("tracefs", FSOPEN_CLOEXEC);
        int mounted;

        if (fd < 0 || fsconfig(fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return error_origin(-errno);
        mounted = fsmount(fd, FSMOUNT_CLOEXEC, 0);
        return mounted < 0 ? error_origin(-errno) : mounted;
}

static int take_hidden(int fd_or_error) {
        int fd = fd_or_error < 0 ? fd_or_error : fcntl(fd_or_error, F_DUPFD_CLOEXEC, 0);

        return fd == -1 && fd_or_error >= 0 ? error_origin(-errno) : fd;
}

static int take_tracing(Doctor *d, const char *path) {
        free(d->tracing);
        d->tracing = strdup(path);
        if (d->tracing)
                return 0;
        return d->error = error_origin(-ENOMEM);
}

/* 0: d->tracing is known, ret_how says how. */
static int find_tracing(Doctor *d, const char **ret_how) {
        FILE *mounts;
        char path[32];

        *ret_how = "mounted on";
        if (d->wants->tracing)
                return take_tracing(d, d->wants->tracing);
        mounts = setmntent(doctor_path(d, "/proc/self/mounts"), "re");
        if (mounts) { /* as tracing_open() looks for it; asking /sys/kernel/debug/tracing itself would mount it there */
                for (struct mntent *m = getmntent(mounts); m && d->error == 0; m = getmntent(mounts))
                        if (strcmp(m->mnt_type, "tracefs") == 0 && (!d->tracing || strcmp(m->mnt_dir, standard) == 0))
                                (void)take_tracing(d, m->mnt_dir);
                endmntent(mounts);
        }
        if (d->tracing || d->error < 0)
                return d->error;
        d->tracing_fd = d->wants->hidden_tracing ? take_hidden(*d->wants->hidden_tracing) : doctor_mount_tracing();
        if (d->tracing_fd < 0)
                return d->tracing_fd;
        *ret_how = "not mounted, but perfd may mount it; tried at";
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", d->tracing_fd);
        return take_tracing(d, path);
}

/* A file of tracefs as text; -errno. */
static int read_tracing(const Doctor *d, const char *path, char *to, size_t size) {
        _cleanup_free_ char *whole = NULL;
        _cleanup_close_ int fd = -1;
        ssize_t n;

        if (asprintf(&whole, "%s/%s", d->tracing, path) < 0)
                return error_origin(-ENOMEM);
        fd = open(whole, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return error_origin(-errno);
        n = read(fd, to, size - 1);
        if (n < 0)
                return error_origin(-errno);
        to[n] = '\0';
        return 0;
}

static void examine_tracefs(Doctor *d) {
        const char *how;
        char text[64];
        int r = find_tracing(d, &how);

        if (d->error < 0)
                return;
        if (r < 0) {
                doctor_no(d, "tracefs",
                          "as root: mount -t tracefs tracefs /sys/kernel/tracing; the kernel needs CONFIG_TRACING",
                          "not mounted on %s, and mounting it: %s; perfd starts without tracepoints", standard,
                          strerror(-r));
                return;
        }
        r = read_tracing(d, "events/header_event", text, sizeof(text));
        if (r == 0)
                doctor_yes(d, "tracefs", "%s %s, and readable", how, d->tracing);
        else
                doctor_no(d, "tracefs",
                          r == -EACCES || r == -EPERM ? doctor_permit(d, CAP_DAC_READ_SEARCH, NULL)
                                                      : "mount -t tracefs tracefs /sys/kernel/tracing",
                          "%s %s; reading it: %s", how, d->tracing, strerror(-r));
}

/* The first that this kernel has; -errno of the first. */
static int find_tracepoint(const Doctor *d, const char **ret_name, uint64_t *ret_id) {
        static const char *const names[] = { "sched/sched_process_exec", "sched/sched_switch",
                                             "raw_syscalls/sys_enter" };
        int first = 0;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char path[64], text[32];
                int r;

                (void)snprintf(path, sizeof(path), "events/%s/id", names[i]);
                r = read_tracing(d, path, text, sizeof(text));
                if (r == 0) {
                        *ret_name = names[i];
                        *ret_id = strtoull(text, NULL, 10);
                        return 0;
                }
                first = first < 0 ? first : r;
        }
        return first;
}

static void examine_filter(Doctor *d, int fd) {
        if (fd < 0)
                doctor_no(d, "kernel filters", "see tracepoints", "there is no tracepoint to try it with");
        else if (ioctl(fd, PERF_EVENT_IOC_SET_FILTER, "common_pid != 0") == 0)
                doctor_yes(d, "kernel filters", "the kernel accepts a filter: events that do not match cost nearly nothing");
        else
                doctor_no(d, "kernel filters",
                          "use a kernel with CONFIG_EVENT_TRACING; until then filter by `watch --where`",
                          "PERF_EVENT_IOC_SET_FILTER: %s", strerror(errno));
}

typedef struct ClockName {
        const char *name;
        clockid_t id;
} ClockName;

static const ClockName clocks[] = {
        { "monotonic", CLOCK_MONOTONIC },
        { "monotonic-raw", CLOCK_MONOTONIC_RAW },
        { "boottime", CLOCK_BOOTTIME },
        { "realtime", CLOCK_REALTIME },
};

/* ret: the names of those that such an event opens with, each behind a space. NULL, or the name of that which is wanted and refused. */
static const char *try_clocks(const Doctor *d, struct perf_event_attr attr, int pid, int cpu, char *ret, size_t size) {
        const char *wanted = NULL;
        size_t n = 0;

        *ret = '\0';
        attr.use_clockid = 1;
        for (size_t i = 0; i < ARRAY_SIZE(clocks); i++) {
                attr.clockid = clocks[i].id;
                if (doctor_try(&attr, pid, cpu) == 0)
                        n += (size_t)snprintf(ret + n, size - n, " %s", clocks[i].name);
                else if (clocks[i].id == d->wants->clock)
                        wanted = clocks[i].name;
        }
        return wanted;
}

static void examine_clocks(Doctor *d) {
        const struct perf_event_attr dummy = doctor_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
        char works[64];
        const char *wanted = try_clocks(d, dummy, 0, -1, works, sizeof(works));

        if (!wanted)
                doctor_yes(d, "clocks", "software events can use the clocks:%s", works);
        else
                doctor_no(d, "clocks", d->can_open ? "set `clock` to another one" : "see perf_event_open",
                          "no event can use the clock %s, only:%s", wanted, *works ? works : " none");
}

/* Linux wants for them one that is safe in an NMI (perf_event_set_clock()). */
static void examine_tracepoint_clocks(Doctor *d, const struct perf_event_attr *tracepoint) {
        static const char what[] = "clocks of tracepoints";
        char works[64];
        const char *wanted = try_clocks(d, *tracepoint, -1, (int)d->cpus[0], works, sizeof(works));

        if (!*works)
                doctor_no(d, what, "see tracepoints", "none was opened");
        else if (wanted)
                doctor_no(d, what, "set `clock` to one of them, or trace only software events",
                          "tracepoints, probes and breakpoints cannot use the clock %s, only:%s", wanted, works);
        else
                doctor_yes(d, what, "tracepoints, probes and breakpoints can use the clocks:%s", works);
}

/* Its samples have the tracepoint's bytes, which is more than a count of it needs. */
static void examine_tracepoints(Doctor *d) {
        struct perf_event_attr attr = doctor_attr(PERF_TYPE_TRACEPOINT, 0);
        _cleanup_(open_closep) int fd = -1;
        const char *name = "";
        uint64_t id = 0;
        int r = d->tracing ? find_tracepoint(d, &name, &id) : -ENOENT;

        if (r < 0) {
                doctor_no(d, "tracepoints", "see tracefs", "the ids of tracepoints cannot be read: %s", strerror(-r));
                doctor_no(d, "clocks of tracepoints", "see tracepoints", "there is no tracepoint to try them with");
                examine_filter(d, -1);
                return;
        }
        attr.config = id;
        attr.sample_period = 1;
        attr.sample_type = PERF_SAMPLE_RAW;
        attr.exclude_kernel = attr.exclude_hv = 0;
        fd = doctor_open(&attr, -1, (int)d->cpus[0], 0);
        if (fd >= 0)
                doctor_yes(d, "tracepoints", "%s opens, with its raw bytes", name);
        else
                doctor_no(d, "tracepoints",
                          fd == -EACCES || fd == -EPERM
                                  ? doctor_permit(d, CAP_PERFMON, "sysctl kernel.perf_event_paranoid=-1")
                                  : "use a kernel with CONFIG_EVENT_TRACING and CONFIG_PERF_EVENTS",
                          "%s: %s", name, strerror(-fd));
        examine_tracepoint_clocks(d, &attr);
        examine_filter(d, fd);
}

/* Only about saying it better: filters themselves work without. */
static void examine_complaints(Doctor *d) {
        _cleanup_free_ char *path = NULL;

        if (!d->tracing)
                return;
        if (asprintf(&path, "%s/instances", d->tracing) < 0) {
                path = NULL;
                d->error = error_origin(-ENOMEM);
                return;
        }
        if (faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0)
                doctor_yes(d, "filter complaints",
                           "%s can be written: perfd can quote the kernel's message for a refused filter", path);
        else {
                int error = errno;

                doctor_no(d, "filter complaints", error == ENOENT ? "see tracefs" : doctor_permit_writing(d, path, NULL),
                          "%s cannot be written: %s; perfd cannot quote the kernel's message for a refused "
                          "filter", path, strerror(error));
        }
}

void doctor_examine_tracing(Doctor *d) {
        d->topic = "events";
        examine_clocks(d);
        examine_tracefs(d);
        examine_tracepoints(d);
        examine_complaints(d);
}
