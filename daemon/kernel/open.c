/*
 * errno is classified here and nowhere above: what a configuration or a limit can cause is a refusal with its remedy,
 * what is left is fatal to the daemon's caller.
 */
#include "daemon/kernel/open.h"

#include "daemon/base/cleanup.h"
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

static long read_sysctl(const char *path) {
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        long value = -1;

        if (f && fscanf(f, "%ld", &value) != 1)
                value = -1;
        return value;
}

static int explain_denied(const char *what, int error, Explanation *e) {
        return refuse(e, REFUSED_DENIED, "no-permission",
                      "opening %s was refused: %s. perfd needs CAP_PERFMON (Linux 5.8) or root while "
                      "kernel.perf_event_paranoid is %ld; a container's seccomp profile may forbid perf_event_open too",
                      what, strerror(error), read_sysctl("/proc/sys/kernel/perf_event_paranoid"));
}

static int explain_no_fds(const char *what, int error, Explanation *e) {
        struct rlimit limit = { 0 };

        (void)getrlimit(RLIMIT_NOFILE, &limit);
        if (error == ENFILE)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-fds",
                              "opening %s: the system's file table is full (fs.file-max)", what);
        return refuse(e, REFUSED_EXHAUSTED, "too-many-fds",
                      "opening %s: all %llu fds that perfd may have are in use; raise LimitNOFILE= (RLIMIT_NOFILE) or "
                      "trace fewer events, pids or CPUs", what, (unsigned long long)limit.rlim_cur);
}

static int explain_open(const char *what, int error, pid_t pid, int cpu, Explanation *e) {
        switch (error) {
        case ENODEV:
        case ESRCH:
                if (pid > 0 && error == ESRCH)
                        return OPEN_E_EXITED;
                if (cpu >= 0 && pid == -1)
                        return OPEN_E_OFFLINE;
                break;
        case EACCES:
        case EPERM:
                return explain_denied(what, error, e);
        case EMFILE:
        case ENFILE:
                return explain_no_fds(what, error, e);
        case ENOMEM:
                return -ENOMEM;
        case ENOSYS:
                return refuse(e, REFUSED_UNSUPPORTED, "kernel",
                              "this kernel has no perf_event_open(2): it needs CONFIG_PERF_EVENTS");
        }
        return refuse(e, REFUSED_UNSUPPORTED, "kernel", "opening %s (pid %d, cpu %d): perf_event_open(2) says %s", what,
                      (int)pid, cpu, strerror(error));
}

int open_event(const struct perf_event_attr *attr, const char *what, pid_t pid, int cpu, int *ret_fd, Explanation *e) {
        struct perf_event_attr copy = *attr;
        int fd;

        thread_assert(THREAD_MAIN);
        fd = open_perf_event(&copy, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
        if (fd < 0) {
                int error = errno;
                long rate = read_sysctl("/proc/sys/kernel/perf_event_max_sample_rate");

                if (error == EINVAL && attr->freq && rate >= 0 && attr->sample_freq > (uint64_t)rate)
                        return refuse(e, REFUSED_INVALID, "bad-event", "%s: a frequency of %llu is above "
                                      "kernel.perf_event_max_sample_rate, which is %ld: ask for less or raise it", what,
                                      (unsigned long long)attr->sample_freq, rate);
                return explain_open(what, error, pid, cpu, e);
        }
        *ret_fd = fd;
        return 0;
}

static int explain_ioctl(const char *what, const char *call, Explanation *e) {
        if (errno == ENOMEM)
                return -ENOMEM;
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
        return ioctl(fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) < 0 ? -errno : 0;
}

int open_explain_switch(int r, const char *what, Explanation *e) {
        errno = -r;
        return explain_ioctl(what, "PERF_EVENT_IOC_ENABLE", e);
}

int open_read(int fd, bool has_lost, uint64_t *ret_count, uint64_t *ret_lost) {
        uint64_t values[2] = { 0 };
        ssize_t size = has_lost ? 16 : 8;

        if (read(fd, values, (size_t)size) != size)
                return errno ? -errno : -EIO;
        *ret_count = values[0];
        *ret_lost = values[1];
        return 0;
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
                return explain_open("a software event", errno, 0, -1, e);
        attr.read_format = 0;
        r = open_event(&attr, "a software event", 0, -1, &fd, e);
        if (r == 0)
                *ret_has_lost = false;
        return r;
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
