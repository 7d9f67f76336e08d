/* What perf_event_open(2) says of a group's member whose leader is not where it was: played. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_leader_left) };

        return cmocka_run_group_tests(tests, play, NULL);
}
