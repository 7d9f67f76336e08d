/*
 * What perfd says of each errno of perf_event_open(2), and of an event's ioctls: played. So is a group's member whose leader is
 * not where it was.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/base/cleanup.h"
#include "daemon/kernel/event/open.h"

#define PID 4242
#define LEADER 77

static struct {
        int member, task; /* errno for a member, and for anything else on the task; 0: it is opened */
        unsigned n_calls;
} kernel;

static int play_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags) {
        kernel.n_calls++;
        assert_true(flags & PERF_FLAG_FD_CLOEXEC);
        errno = group == LEADER ? kernel.member : kernel.task;
        return errno ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int open_member(int error, int task_error, OpenPlace place, Explanation *e) {
        struct perf_event_attr attr = { .size = sizeof(attr), .type = PERF_TYPE_TRACEPOINT, .config = 1 };
        int fd = -1, r;

        kernel.member = error;
        kernel.task = task_error;
        kernel.n_calls = 0;
        *e = EXPLANATION_NULL;
        r = open_event(&attr, "member", place, &fd, e);
        close_fd(fd);
        return r;
}

static void test_leader_left(void **state) {
        static const int errors[] = { EINVAL, ENODEV };
        OpenPlace place = { .pid = PID, .cpu = 0, .leader_fd = LEADER }, again = place, alone = place, host = place, cgroup = place;
        Explanation e;

        again.may_try_again = true;
        alone.leader_fd = -1;
        host.pid = -1;
        cgroup.is_cgroup = true;
        for (size_t i = 0; i < 2; i++) {
                assert_int_equal(open_member(errors[i], ESRCH, place, &e), OPEN_E_EXITED);
                assert_int_equal(open_member(errors[i], ESRCH, again, &e), OPEN_E_EXITED);
                assert_int_equal(open_member(errors[i], 0, again, &e), OPEN_E_LEADER_LEFT);
                assert_int_equal(kernel.n_calls, 2);
                /* it stays so: then it is what it is without a group that moves */
                assert_in_range(open_member(errors[i], 0, place, &e), 1, _REFUSED_MAX - 1);
                assert_string_equal(e.reason, errors[i] == EINVAL ? "bad-group" : "kernel");
                host.may_try_again = cgroup.may_try_again = true; /* who has no contexts of tasks exchanges none */
                assert_in_range(open_member(errors[i], 0, host, &e), 1, _REFUSED_MAX - 1);
                assert_int_equal(kernel.n_calls, 1);
                assert_in_range(open_member(errors[i], 0, cgroup, &e), 1, _REFUSED_MAX - 1);
                assert_int_equal(kernel.n_calls, 1);
        }
        assert_int_equal(open_member(0, ESRCH, again, &e), 0);
        assert_int_equal(open_member(ESRCH, ESRCH, again, &e), OPEN_E_EXITED);
        assert_int_equal(open_member(0, ESRCH, alone, &e), OPEN_E_EXITED);
        assert_int_equal(kernel.n_calls, 1);
}

static int play(void **state) {
        open_perf_event = play_open;
        return 0;
}

/* What the next calls say, one after the other: an errno, or 0. */
static struct {
        int errors[3];
        size_t n;
        uint32_t size; /* of the last attr */
} next;

static int play_next(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags) {
        assert_in_range(next.n, 0, ARRAY_SIZE(next.errors) - 1);
        errno = next.errors[next.n++];
        next.size = attr->size;
        return errno ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int play_errors(void **state) {
        open_perf_event = play_next;
        return 0;
}

int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...) {
        assert_in_range(next.n, 0, ARRAY_SIZE(next.errors) - 1);
        errno = next.errors[next.n++];
        return errno ? -1 : 0;
}

#define WHAT "the-event"

/* Where no fd is wanted ret_fd stays as it was. */
static void check_refused(const struct perf_event_attr *attr, OpenPlace place, int first, int second, int refusal, const char *reason) {
        Explanation e = EXPLANATION_NULL;
        int fd = -7;

        next.errors[0] = first;
        next.errors[1] = second;
        next.n = 0;
        assert_int_equal(open_event(attr, WHAT, place, &fd, &e), refusal);
        assert_int_equal(fd, -7);
        if (!reason) {
                assert_null(e.reason);
                return;
        }
        assert_string_equal(e.reason, reason);
        if (first != ENOSYS) /* which is said of all events */
                assert_non_null(strstr(e.text, WHAT));
}

static void test_errors_of_opening(void **state) {
        static const struct {
                uint32_t type;
                int error, refusal;
                const char *reason;
        } cases[] = {
                { PERF_TYPE_SOFTWARE, EACCES, REFUSED_DENIED, "no-permission" },
                { PERF_TYPE_SOFTWARE, EPERM, REFUSED_DENIED, "no-permission" },
                { PERF_TYPE_MAX, EACCES, REFUSED_DENIED, "no-permission" },
                { PERF_TYPE_SOFTWARE, EMFILE, REFUSED_EXHAUSTED, "too-many-fds" },
                { PERF_TYPE_SOFTWARE, ENFILE, REFUSED_EXHAUSTED, "too-many-fds" },
                { PERF_TYPE_SOFTWARE, ENOMEM, REFUSED_EXHAUSTED, "no-memory" },
                { PERF_TYPE_SOFTWARE, ENOSYS, REFUSED_UNSUPPORTED, "kernel" },
                { PERF_TYPE_SOFTWARE, E2BIG, REFUSED_UNSUPPORTED, "kernel" },
                { PERF_TYPE_SOFTWARE, EINVAL, REFUSED_UNSUPPORTED, "kernel" },
                { PERF_TYPE_SOFTWARE, ENODEV, REFUSED_UNSUPPORTED, "kernel" },
                { PERF_TYPE_SOFTWARE, EBUSY, REFUSED_UNSUPPORTED, "kernel" },
                { PERF_TYPE_SOFTWARE, ENOSPC, REFUSED_UNSUPPORTED, "kernel" },
                { PERF_TYPE_SOFTWARE, EOPNOTSUPP, REFUSED_UNSUPPORTED, "no-counter" },
                { PERF_TYPE_HARDWARE, ENOENT, REFUSED_UNSUPPORTED, "no-counter" },
                { PERF_TYPE_HW_CACHE, EOPNOTSUPP, REFUSED_UNSUPPORTED, "no-counter" },
                { PERF_TYPE_RAW, ENODEV, REFUSED_UNSUPPORTED, "no-counter" },
                { PERF_TYPE_BREAKPOINT, ENOSPC, REFUSED_EXHAUSTED, "no-breakpoint" },
                { PERF_TYPE_BREAKPOINT, EINVAL, REFUSED_INVALID, "bad-event" },
                { PERF_TYPE_MAX, EILSEQ, REFUSED_INVALID, "bad-address" },
        };
        const OpenPlace host = { .pid = -1, .cpu = 0, .leader_fd = -1 }, task = { .pid = PID, .cpu = -1, .leader_fd = -1 },
                        cgroup = { .pid = 5, .is_cgroup = true, .cpu = 0, .leader_fd = -1 };
        struct perf_event_attr software = { .size = sizeof(software), .type = PERF_TYPE_SOFTWARE };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct perf_event_attr attr = { .size = sizeof(attr), .type = cases[i].type };

                check_refused(&attr, host, cases[i].error, 0, cases[i].refusal, cases[i].reason);
                assert_int_equal(next.n, 1);
        }
        check_refused(&software, task, ESRCH, 0, OPEN_E_EXITED, NULL);
        check_refused(&software, cgroup, ENOENT, 0, REFUSED_UNSUPPORTED, "no-cgroups");
        software.freq = 1;
        software.sample_freq = UINT64_MAX; /* above any kernel.perf_event_max_sample_rate */
        check_refused(&software, host, EINVAL, 0, REFUSED_INVALID, "bad-event");
}

/* Refused with the clock that it has, and also alone, and opened with CLOCK_MONOTONIC: it is the clock. */
static void test_clocks(void **state) {
        const OpenPlace host = { .pid = -1, .cpu = 0, .leader_fd = -1 }, member = { .pid = -1, .cpu = 0, .leader_fd = 3 };
        struct perf_event_attr attr = { .size = PERF_ATTR_SIZE_VER0, .type = PERF_TYPE_TRACEPOINT, .config = 1, .use_clockid = 1,
                                        .clockid = CLOCK_REALTIME };

        next.errors[2] = 0;
        check_refused(&attr, host, EINVAL, EINVAL, REFUSED_UNSUPPORTED, "no-clock");
        assert_int_equal(next.n, 3);
        assert_true(next.size >= offsetof(struct perf_event_attr, clockid) + sizeof(attr.clockid));
        check_refused(&attr, member, EINVAL, EINVAL, REFUSED_UNSUPPORTED, "no-clock");
        check_refused(&attr, member, EINVAL, 0, REFUSED_INVALID, "bad-group");
        next.errors[2] = EINVAL;
        check_refused(&attr, host, EINVAL, EINVAL, REFUSED_UNSUPPORTED, "kernel");
        attr.size = sizeof(attr);
        attr.clockid = CLOCK_MONOTONIC_RAW;
        check_refused(&attr, host, EINVAL, 0, REFUSED_UNSUPPORTED, "kernel");
        assert_int_equal(next.n, 1);
        next.errors[2] = 0;
}

/* TRACE_EVENT_PERF_PERM: EPERM to whoever samples it, and only to those. */
static void test_what_is_only_counted(void **state) {
        const struct perf_event_attr attr = { .size = sizeof(attr), .type = PERF_TYPE_TRACEPOINT, .config = 1 };
        const OpenPlace host = { .pid = -1, .cpu = 0, .leader_fd = -1 };

        check_refused(&attr, host, EPERM, 0, REFUSED_DENIED, "not-sampled");
        assert_int_equal(next.n, 2);
        check_refused(&attr, host, EPERM, EPERM, REFUSED_DENIED, "no-permission");
        assert_int_equal(next.n, 2);
        check_refused(&attr, host, EACCES, 0, REFUSED_DENIED, "no-permission");
        assert_int_equal(next.n, 1);
}

static void check_ioctls(int first, int second, int refusal, const char *reason, const char *call) {
        Explanation e = EXPLANATION_NULL;
        uint64_t id = 0;

        next.errors[0] = first;
        next.errors[1] = second;
        next.n = 0;
        assert_int_equal(open_redirect(3, 4, WHAT, &id, &e), refusal);
        if (refusal == 0)
                return;
        assert_string_equal(e.reason, reason);
        if (call)
                assert_non_null(strstr(e.text, call));
}

static void test_errors_of_ioctls(void **state) {
        static const int of_filters[] = { EINVAL, E2BIG, ENOSPC, EPERM, ENOENT, ESRCH };
        Explanation e = EXPLANATION_NULL;

        check_ioctls(0, 0, 0, NULL, NULL);
        assert_int_equal(next.n, 2);
        check_ioctls(EINVAL, 0, REFUSED_UNSUPPORTED, "kernel", "PERF_EVENT_IOC_SET_OUTPUT");
        assert_int_equal(next.n, 1);
        check_ioctls(ENOMEM, 0, REFUSED_EXHAUSTED, "no-memory", WHAT);
        check_ioctls(0, ENOTTY, REFUSED_UNSUPPORTED, "kernel", "PERF_EVENT_IOC_ID");
        for (size_t i = 0; i < ARRAY_SIZE(of_filters); i++) {
                next.errors[0] = of_filters[i];
                next.n = 0;
                assert_int_equal(open_set_filter(3, "a == 1", WHAT, &e), REFUSED_INVALID);
                assert_null(e.reason); /* tracing_explain_filter() says why */
        }
        next.errors[0] = ENOMEM;
        next.n = 0;
        assert_int_equal(open_set_filter(3, "a == 1", WHAT, &e), REFUSED_EXHAUSTED);
        assert_string_equal(e.reason, "no-memory");
        next.errors[0] = EFAULT;
        next.n = 0;
        assert_int_equal(open_set_filter(3, "a == 1", WHAT, &e), REFUSED_UNSUPPORTED);
        assert_string_equal(e.reason, "kernel");
}

/* All are switched, then all once more; the first one that fails ends it. */
static void test_switches(void **state) {
        const int fds[] = { 3 };

        next.errors[0] = next.errors[1] = 0;
        next.n = 0;
        assert_int_equal(open_switch_all(fds, 1, true), 0);
        assert_int_equal(next.n, 2);
        next.errors[0] = ENODEV;
        next.n = 0;
        assert_int_equal(open_switch_all(fds, 1, false), -ENODEV);
        assert_int_equal(next.n, 1);
}

/* Before Linux 6.0 there is no PERF_FORMAT_LOST: EINVAL. */
static void test_what_the_kernel_has(void **state) {
        static const int modern[] = { 0, 0 }, old[] = { EINVAL, 0 }, none[] = { ENOSYS, 0 }, fewer[] = { EINVAL, EMFILE };
        static const struct {
                const int *errors;
                int result, has_lost;
        } cases[] = { { modern, 0, true }, { old, 0, false }, { none, REFUSED_UNSUPPORTED, -1 }, { fewer, REFUSED_EXHAUSTED, -1 } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Explanation e = EXPLANATION_NULL;
                bool has_lost = false, inherits = false;

                memcpy(next.errors, cases[i].errors, 2 * sizeof(int));
                next.n = 0;
                assert_int_equal(open_probe(&has_lost, &e), cases[i].result);
                if (cases[i].has_lost >= 0)
                        assert_int_equal(has_lost, cases[i].has_lost);
                next.n = 0;
                assert_int_equal(open_probe_reads(&inherits, &e), cases[i].errors == none ? REFUSED_UNSUPPORTED : 0);
                assert_int_equal(inherits, cases[i].errors == modern);
        }
}

static void test_errors_of_mapping(void **state) {
        static const struct {
                int error, refusal;
                const char *reason;
        } cases[] = {
                { EPERM, REFUSED_EXHAUSTED, "locked-memory" }, { EAGAIN, REFUSED_EXHAUSTED, "locked-memory" },
                { ENOMEM, REFUSED_EXHAUSTED, "locked-memory" }, { EINVAL, REFUSED_UNSUPPORTED, "kernel" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Explanation e = EXPLANATION_NULL;

                assert_int_equal(open_explain_mmap(-cases[i].error, 1 << 20, 3, &e), cases[i].refusal);
                assert_string_equal(e.reason, cases[i].reason);
                assert_non_null(strstr(e.text, "1024 KiB for CPU 3"));
        }
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_leader_left) };
        const struct CMUnitTest errors[] = {
                cmocka_unit_test(test_errors_of_opening),
                cmocka_unit_test(test_what_is_only_counted), cmocka_unit_test(test_clocks),
                cmocka_unit_test(test_errors_of_ioctls),
                cmocka_unit_test(test_switches),
                cmocka_unit_test(test_what_the_kernel_has),
                cmocka_unit_test(test_errors_of_mapping),
        };
        int r = cmocka_run_group_tests(tests, play, NULL);

        return r + cmocka_run_group_tests(errors, play_errors, NULL);
}
