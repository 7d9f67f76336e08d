/*
 * errno is classified here and nowhere above: what a configuration or a limit can cause is a refusal with its remedy,
 * what is left is fatal to the daemon's caller.
 */
#include "daemon/kernel/event/open.h"

#include "config/attr/attr-setting.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/fd-limit.h"
#include "daemon/base/thread.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static int call_perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags) {
        return (int)syscall(SYS_perf_event_open, attr, pid, cpu, group, flags);
}

int (*open_perf_event)(struct perf_event_attr *attr, pid_t pid, int cpu, int group,
                       unsigned long flags) = call_perf_event_open;

#define LONG_ATTR_SIZE 136 /* PERF_ATTR_SIZE_VER8 */

/* struct perf_event_attr as far as config3, whether the header has it or not. */
typedef union LongAttr {
        struct perf_event_attr attr;
        struct {
                uint8_t before[LONG_ATTR_SIZE - sizeof(uint64_t)]; /* PERF_ATTR_SIZE_VER7 */
                uint64_t config3;
        };
} LongAttr;

static long read_sysctl(const char *path) {
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        long value = -1;

        if (f && fscanf(f, "%ld", &value) != 1)
                value = -1;
        return value;
}

static int explain_denied(const struct perf_event_attr *attr, const char *what, int error, Explanation *e) {
        long paranoid = read_sysctl("/proc/sys/kernel/perf_event_paranoid");

        if (attr->type >= PERF_TYPE_MAX)
                return refuse(e, REFUSED_DENIED, "no-permission",
                              "opening %s was refused: %s. Probes and the events of some PMUs need CAP_PERFMON, and on new "
                              "kernels user probes CAP_SYS_ADMIN (`perfctl doctor` tries them)", what, strerror(error));
        return refuse(e, REFUSED_DENIED, "no-permission",
                      "opening %s was refused: %s. perfd needs CAP_PERFMON (Linux 5.8) or root while "
                      "kernel.perf_event_paranoid is %ld%s; a container's seccomp profile may forbid perf_event_open too",
                      what, strerror(error), paranoid,
                      paranoid > 2 ? " (Debian's and Ubuntu's kernels require CAP_SYS_ADMIN above 2: give it to perfd, or set "
                              "sysctl kernel.perf_event_paranoid=2; if it was lower when perfd started and dropped "
                              "CAP_SYS_ADMIN, restart perfd)"
                                   : "");
}

static int explain_no_fds(const char *what, int error, Explanation *e) {
        if (error == ENFILE)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-fds",
                              "opening %s: the system's file table is full (fs.file-max)", what);
        return refuse(e, REFUSED_EXHAUSTED, "too-many-fds",
                      "opening %s: all of the %llu fds that perfd may have are in use, except its own reserve; raise "
                      "LimitNOFILE= (RLIMIT_NOFILE), or trace fewer events, pids or CPUs", what, (unsigned long long)fd_limit());
}

/* The kernel's, of what somebody asked for; ours is fatal. */
static int explain_no_memory(const char *what, Explanation *e) {
        return refuse(e, REFUSED_EXHAUSTED, "no-memory", "opening %s: the kernel has no memory for it: trace fewer events, "
                      "tasks or CPUs, or raise the limits of perfd's cgroup (MemoryMax=)", what);
}

/* What ENOENT, EOPNOTSUPP and EINVAL mean for each kind of event. */
static int explain_unsupported(const struct perf_event_attr *attr, const char *what, int error, OpenPlace place,
                               Explanation *e) {
        bool is_hardware = attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE ||
                           attr->type == PERF_TYPE_RAW;

        if (place.is_cgroup && error == ENOENT)
                return refuse(e, REFUSED_UNSUPPORTED, "no-cgroups",
                              "opening %s: perf_event_open(2) cannot use this cgroup hierarchy: while a v1 perf_event hierarchy "
                              "is mounted it uses only that one, and a v2 hierarchy needs a controller enabled in the root's "
                              "cgroup.subtree_control", what);
        if (error == EILSEQ)
                return refuse(e, REFUSED_INVALID, "bad-address", "opening %s: no instruction of a function begins there: the "
                        "offset is in the middle of one, or after the end of the function", what);
        if (error == E2BIG)
                return refuse(e, REFUSED_UNSUPPORTED, "kernel",
                              "opening %s: this kernel does not know one of the fields of perf_event_attr: omit what `attr` "
                              "sets", what);
        if (error == EINVAL && place.leader_fd >= 0)
                return refuse(e, REFUSED_INVALID, "bad-group",
                              "opening %s: the PMU cannot count it together with the members before it: the group is too "
                              "large for its counters, or mixes PMUs", what);
        if (is_hardware && (error == ENOENT || error == EOPNOTSUPP || error == ENODEV))
                return refuse(e, REFUSED_UNSUPPORTED, "no-counter",
                              "this machine cannot count %s (%s): it has no PMU for it, like most virtual machines%s", what,
                              strerror(error), attr->type == PERF_TYPE_HARDWARE && attr->config == PERF_COUNT_HW_CPU_CYCLES ?
                              "; `fallback: cpu-clock` (--fallback cpu-clock of perfctl) counts that instead" : "");
        if (error == EINVAL && attr->type == PERF_TYPE_BREAKPOINT)
                return refuse(e, REFUSED_INVALID, "bad-event",
                              "this CPU cannot watch %s: the address must be a multiple of the length, which is 1, 2, 4 or "
                              "8, and x86 has no watchpoints for reads alone: use rw", what);
        if (error == EOPNOTSUPP)
                return refuse(e, REFUSED_UNSUPPORTED, "no-counter",
                              "%s cannot be counted or sampled in this way here: %s", what, strerror(error));
        return refuse(e, REFUSED_UNSUPPORTED, "kernel", "opening %s (pid %d, cpu %d): perf_event_open(2) says %s", what,
                      place.is_cgroup ? -1 : place.pid, place.cpu, strerror(error));
}

static bool opens_with_clock(const struct perf_event_attr *attr, clockid_t clock, OpenPlace place) {
        unsigned long flags = PERF_FLAG_FD_CLOEXEC | (place.is_cgroup ? PERF_FLAG_PID_CGROUP : 0);
        LongAttr copy = { .before = { 0 } };
        _cleanup_(open_closep) int fd = -1;

        copy.attr = *attr;
        copy.attr.clockid = clock;
        copy.attr.disabled = 1;
        copy.attr.size = attr_least_size(&copy.attr); /* CLOCK_REALTIME is 0, which needs no room */
        copy.config3 = place.config3;
        if (place.config3)
                copy.attr.size = LONG_ATTR_SIZE;
        fd = open_perf_event(&copy.attr, place.pid, place.cpu, -1, flags);
        return fd >= 0;
}

/* perf_event_set_clock(): only software events may have a clock that is not safe in an NMI. Members are tried without their leader. */
static bool is_refused_for_clock(const struct perf_event_attr *attr, int error, OpenPlace place) {
        return error == EINVAL && attr->use_clockid && !clock_is_nmi_safe(attr->clockid) &&
               !opens_with_clock(attr, attr->clockid, place) && opens_with_clock(attr, CLOCK_MONOTONIC, place);
}

static bool cpu_is_offline(int cpu) {
        char path[64];

        (void)snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
        return read_sysctl(path) == 0;
}

/* A tracepoint that the kernel lets be counted but not sampled, whoever asks. */
static bool is_only_counted(const struct perf_event_attr *attr, OpenPlace place) {
        struct perf_event_attr counting = { .type = attr->type, .size = PERF_ATTR_SIZE_VER0, .config = attr->config,
                                            .disabled = 1 };
        _cleanup_(open_closep) int fd = -1;

        if (attr->type != PERF_TYPE_TRACEPOINT)
                return false;
        fd = open_perf_event(&counting, place.is_cgroup ? -1 : place.pid, place.cpu, -1, PERF_FLAG_FD_CLOEXEC);
        return fd >= 0;
}

static int explain_open(const struct perf_event_attr *attr, const char *what, int error, OpenPlace place,
                        Explanation *e) {
        switch (error) {
        case ENODEV:
        case ESRCH:
                if (place.pid > 0 && !place.is_cgroup && error == ESRCH)
                        return OPEN_E_EXITED;
                if (place.cpu >= 0 && cpu_is_offline(place.cpu))
                        return OPEN_E_OFFLINE;
                break;
        case EACCES:
        case EPERM:
                if (error == EPERM && is_only_counted(attr, place))
                        return refuse(e, REFUSED_DENIED, "not-sampled", "the kernel does not allow sampling of %s: it occurs "
                                "within perf itself (TRACE_EVENT_PERF_PERM); count it, or choose another event", what);
                return explain_denied(attr, what, error, e);
        case EMFILE:
        case ENFILE:
                return explain_no_fds(what, error, e);
        case ENOMEM:
                return explain_no_memory(what, e);
        case ENOSYS:
                return refuse(e, REFUSED_UNSUPPORTED, "kernel",
                              "this kernel has no perf_event_open(2): it needs CONFIG_PERF_EVENTS");
        case ENOSPC:
                if (attr->type != PERF_TYPE_BREAKPOINT)
                        break;
                return refuse(e, REFUSED_EXHAUSTED, "no-breakpoint", "opening %s: all breakpoint registers of CPU %d are "
                              "in use, by other events or a debugger", what, place.cpu);
        }
        return explain_unsupported(attr, what, error, place, e);
}

static bool task_is_gone(OpenPlace place) {
        struct perf_event_attr dummy = { .type = PERF_TYPE_SOFTWARE, .size = PERF_ATTR_SIZE_VER0, .config = PERF_COUNT_SW_DUMMY,
                                         .disabled = 1, .exclude_kernel = 1 };
        _cleanup_(open_closep) int fd = open_perf_event(&dummy, place.pid, place.cpu, -1, PERF_FLAG_FD_CLOEXEC);

        return fd < 0 && errno == ESRCH;
}

/*
 * A task and its child exchange their contexts where one follows the other on a CPU, if both have the same inherited events
 * (perf_event_context_sched_out()). A leader that was opened on the task is the child's then, and a member is refused by EINVAL,
 * or by ENODEV once that child has ended, although the task lives. perf_event_open(2) looks at the leader before it looks for the task,
 * so that ENODEV is also what it says of one that has ended itself. 0: it is something else.
 */
static int look_for_leader(OpenPlace place, int error) {
        if (place.leader_fd < 0 || place.pid <= 0 || place.is_cgroup || (error != EINVAL && error != ENODEV))
                return 0;
        if (task_is_gone(place))
                return OPEN_E_EXITED;
        return place.may_try_again ? OPEN_E_LEADER_LEFT : 0;
}

int open_event(const struct perf_event_attr *attr, const char *what, OpenPlace place, int *ret_fd, Explanation *e) {
        unsigned long flags = PERF_FLAG_FD_CLOEXEC | (place.is_cgroup ? PERF_FLAG_PID_CGROUP : 0);
        LongAttr copy = { .before = { 0 } };
        int fd;

        thread_assert(THREAD_MAIN);
        copy.attr = *attr;
        copy.config3 = place.config3;
        if (place.config3)
                copy.attr.size = LONG_ATTR_SIZE;
        fd = open_perf_event(&copy.attr, place.pid, place.cpu, place.leader_fd, flags);
        if (fd < 0) {
                int error = errno, left = look_for_leader(place, error);
                long rate = read_sysctl("/proc/sys/kernel/perf_event_max_sample_rate");

                if (left != 0)
                        return left;
                if (error == EINVAL && attr->freq && rate >= 0 && attr->sample_freq > (uint64_t)rate)
                        return refuse(e, REFUSED_INVALID, "bad-event", "%s: a frequency of %llu is above "
                                      "kernel.perf_event_max_sample_rate, which is %ld: request less, or raise it", what,
                                      (unsigned long long)attr->sample_freq, rate);
                if (is_refused_for_clock(attr, error, place))
                        return refuse(e, REFUSED_UNSUPPORTED, "no-clock", "opening %s: the kernel opens it only with the clocks "
                                      "monotonic and monotonic-raw: set `clock` to one of them, and restart perfd", what);
                return explain_open(attr, what, error, place, e);
        }
        *ret_fd = fd;
        return 0;
}

static void (*give_away)(void *userdata, int fd);
static void *closer;

void open_set_closer(void (*close)(void *userdata, int fd), void *userdata) {
        thread_assert(THREAD_MAIN);
        give_away = close;
        closer = userdata;
}

int open_close(int fd) {
        int error = errno;

        if (!give_away || fd < 0)
                return close_fd(fd);
        give_away(closer, fd);
        errno = error;
        return -1;
}

int open_close_of(uint32_t type, int fd) {
        return type == PERF_TYPE_BREAKPOINT ? close_fd(fd) : open_close(fd);
}

bool open_is_missing(const struct perf_event_attr *attr, int cpu) {
        struct perf_event_attr copy = *attr;
        int fd = open_perf_event(&copy, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC), error = fd < 0 ? errno : 0;

        (void)open_close_of(attr->type, fd);
        return error == EOPNOTSUPP || error == ENOENT || error == ENODEV || error == EINVAL || error == EACCES;
}

bool open_is_only_counted(const struct perf_event_attr *attr, int cpu) {
        struct perf_event_attr copy = *attr;
        _cleanup_(open_closep) int fd = -1;

        copy.freq = 0;
        copy.sample_period = UINT64_C(1) << 40; /* not one is taken: it is disabled */
        fd = open_perf_event(&copy, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
        if (fd >= 0 || (errno != EINVAL && errno != EOPNOTSUPP))
                return false;
        copy.sample_period = 0;
        fd = open_perf_event(&copy, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
        return fd >= 0;
}

static int explain_ioctl(const char *what, const char *call, Explanation *e) {
        if (errno == ENOMEM)
                return explain_no_memory(what, e);
        return refuse(e, REFUSED_UNSUPPORTED, "kernel", "%s: %s says %s", what, call, strerror(errno));
}

int open_id(int fd, uint64_t *ret_id, Explanation *e) {
        if (ioctl(fd, PERF_EVENT_IOC_ID, ret_id) < 0)
                return explain_ioctl("a perf event", "PERF_EVENT_IOC_ID", e);
        return 0;
}

int open_redirect(int fd, int carrier_fd, const char *what, uint64_t *ret_id, Explanation *e) {
        if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, carrier_fd) < 0)
                return explain_ioctl(what, "PERF_EVENT_IOC_SET_OUTPUT", e);
        return open_id(fd, ret_id, e);
}

bool open_filter_is_closed(const char *filter) {
        size_t depth = 0;
        char quote = 0;

        for (const char *p = filter; *p; p++) {
                if (quote)
                        quote = *p == quote ? 0 : quote;
                else if (*p == '"' || *p == '\'')
                        quote = *p;
                else if (*p == '(')
                        depth++;
                else if (*p == ')' && depth-- == 0)
                        return false;
        }
        return depth == 0 && !quote;
}

/* Parentheses and quotes without their other are EPERM, ENOENT and ESRCH: calc_stack() returns its own -1 to -3. */
static bool is_filter_error(int error) {
        return error == EINVAL || error == E2BIG || error == ENOSPC || error == EPERM || error == ENOENT ||
               error == ESRCH;
}

int open_set_filter(int fd, const char *filter, const char *what, Explanation *e) {
        if (ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) == 0)
                return 0;
        if (is_filter_error(errno))
                return REFUSED_INVALID;
        return explain_ioctl(what, "PERF_EVENT_IOC_SET_FILTER", e);
}

int open_switch(int fd, bool on) {
        return ioctl(fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) < 0 ? error_origin(-errno) : 0;
}

int open_switch_all(const int *fds, size_t n, bool on) {
        int r = 0;

        for (int pass = 0; pass < 2; pass++)
                for (size_t i = 0; i < n && r == 0; i++)
                        r = open_switch(fds[i], on);
        return r;
}

int open_explain_switch(int r, const char *what, Explanation *e) {
        errno = -r;
        return explain_ioctl(what, "PERF_EVENT_IOC_ENABLE", e);
}

int open_probe(bool *ret_has_lost, Explanation *e) {
        struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .disabled = 1,
                                        .config = PERF_COUNT_SW_DUMMY, .read_format = PERF_FORMAT_LOST };
        _cleanup_close_ int fd = -1;
        int r;

        fd = open_perf_event(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
        if (fd >= 0) {
                *ret_has_lost = true;
                return 0;
        }
        if (errno != EINVAL) /* what an older kernel says; the rest has nothing to do with it */
                return explain_open(&attr, "a software event", errno, (OpenPlace){ 0, false, -1, -1 }, e);
        attr.read_format = 0;
        r = open_event(&attr, "a software event", (OpenPlace){ 0, false, -1, -1 }, &fd, e);
        if (r == 0)
                *ret_has_lost = false;
        return r;
}

int open_probe_reads(bool *ret_inherits_reads, Explanation *e) {
        struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .disabled = 1, .inherit = 1,
                                        .config = PERF_COUNT_SW_DUMMY, .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_READ };
        _cleanup_close_ int fd = open_perf_event(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

        if (fd < 0 && errno != EINVAL)
                return explain_open(&attr, "a software event", errno, (OpenPlace){ 0, false, -1, -1 }, e);
        *ret_inherits_reads = fd >= 0;
        return 0;
}

int open_explain_mmap(int r, size_t size, int cpu, Explanation *e) {
        struct rlimit limit = { 0 };

        if (r == -EPERM || r == -EAGAIN) {
                (void)getrlimit(RLIMIT_MEMLOCK, &limit);
                return refuse(e, REFUSED_EXHAUSTED, "locked-memory",
                              "mapping a ring of %zu KiB for CPU %d: more locked memory than kernel.perf_event_mlock_kb "
                              "(%ld a CPU) and RLIMIT_MEMLOCK (%llu KiB) allow; raise LimitMEMLOCK=, give CAP_IPC_LOCK, "
                              "or make rings.size smaller", size / 1024, cpu,
                              read_sysctl("/proc/sys/kernel/perf_event_mlock_kb"),
                              (unsigned long long)limit.rlim_cur / 1024);
        }
        if (r == -ENOMEM)
                return refuse(e, REFUSED_EXHAUSTED, "locked-memory",
                              "mapping a ring of %zu KiB for CPU %d: no memory; make rings.size smaller", size / 1024,
                              cpu);
        return refuse(e, REFUSED_UNSUPPORTED, "kernel", "mapping a ring of %zu KiB for CPU %d: mmap(2) says %s",
                      size / 1024, cpu, strerror(-r));
}
