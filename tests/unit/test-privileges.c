/*
 * System calls that are given up; and: CAP_SYS_ADMIN is given up for good where events open without, and else is there as before; and
 * of root's capabilities all but those that perfd needs. In user namespaces, where everybody has all capabilities: each case in a
 * process of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/thread.h"
#include "daemon/kernel/event/open.h"
#include "daemon/kernel/privileges/privileges.h"
#include "daemon/kernel/privileges/system-calls.h"

#define NO_NAMESPACE 77

static bool asks_for_admin; /* the kernel that is played */
static unsigned n_opened;
static int probes_error; /* of access(2) to uprobe_events; 0: it can be written */

int __wrap_access(const char *path, int mode);
int __wrap_access(const char *path, int mode) {
        errno = probes_error;
        return probes_error ? -1 : 0;
}

static bool has(cap_flag_t set, cap_value_t capability) {
        cap_flag_value_t value = CAP_CLEAR;
        cap_t own = cap_get_proc();

        if (cap_get_flag(own, capability, set, &value) < 0)
                _exit(2);
        cap_free(own);
        return value == CAP_SET;
}

static bool has_in_all(cap_value_t capability) {
        return has(CAP_EFFECTIVE, capability) && has(CAP_PERMITTED, capability);
}

static bool has_in_none(cap_value_t capability) {
        return !has(CAP_EFFECTIVE, capability) && !has(CAP_PERMITTED, capability) && !has(CAP_INHERITABLE, capability) &&
               cap_get_ambient(capability) == 0;
}

static int play_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group, unsigned long flags) {
        n_opened++;
        if (pid != -1 || cpu < 0 || attr->exclude_kernel || !attr->disabled)
                _exit(3); /* what everybody may have says nothing */
        if (asks_for_admin && !has(CAP_EFFECTIVE, CAP_SYS_ADMIN)) {
                errno = EACCES;
                return -1;
        }
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* As systemd starts a service. */
static void make_ambient(void) {
        static const cap_value_t both[] = { CAP_SYS_ADMIN, CAP_PERFMON };
        cap_t own = cap_get_proc();

        if (cap_set_flag(own, CAP_INHERITABLE, 2, both, CAP_SET) < 0 || cap_set_proc(own) < 0)
                _exit(4);
        cap_free(own);
        for (size_t i = 0; i < 2; i++)
                if (cap_set_ambient(both[i], CAP_SET) < 0)
                        _exit(5);
}

static void drop(cap_value_t capability) {
        cap_t own = cap_get_proc();

        if (cap_set_flag(own, CAP_EFFECTIVE, 1, &capability, CAP_CLEAR) < 0 ||
            cap_set_flag(own, CAP_PERMITTED, 1, &capability, CAP_CLEAR) < 0 || cap_set_proc(own) < 0)
                _exit(6);
        cap_free(own);
}

static bool is_given_up(void) {
        PrivilegesReport r = PRIVILEGES_REPORT_NULL;

        return privileges_reduce(&r) == 0 && r.has_given_up && !r.is_wrong && n_opened == 1 &&
               strstr(r.text, "is dropped") && has_in_none(CAP_SYS_ADMIN) && has_in_all(CAP_PERFMON) &&
               cap_get_ambient(CAP_PERFMON) == 1;
}

static bool is_kept(void) {
        PrivilegesReport r = PRIVILEGES_REPORT_NULL;

        asks_for_admin = true;
        return privileges_reduce(&r) == 0 && !r.has_given_up && !r.is_wrong && n_opened == 1 &&
               strstr(r.text, "is kept: this kernel requires it") && has_in_all(CAP_SYS_ADMIN) &&
               cap_get_ambient(CAP_SYS_ADMIN) == 1;
}

static bool is_kept_as_asked(void) {
        PrivilegesReport r = PRIVILEGES_REPORT_NULL;

        r.keep = true;
        return privileges_reduce(&r) == 0 && !r.has_given_up && n_opened == 0 && strstr(r.text, "as requested") &&
               has_in_all(CAP_SYS_ADMIN);
}

static bool is_all_there_is(void) {
        PrivilegesReport r = PRIVILEGES_REPORT_NULL;

        drop(CAP_PERFMON);
        return privileges_reduce(&r) == 0 && !r.has_given_up && n_opened == 0 && strstr(r.text, "without CAP_PERFMON") &&
               has_in_all(CAP_SYS_ADMIN);
}

static bool is_not_there(void) {
        PrivilegesReport r = PRIVILEGES_REPORT_NULL;

        drop(CAP_SYS_ADMIN);
        return privileges_reduce(&r) == 0 && !r.has_given_up && n_opened == 0 && !*r.text;
}

/* What root has besides is gone for good: its files, its modules, other processes. */
static bool has_what_root_keeps(void) {
        static const cap_value_t gone[] = { CAP_SYS_MODULE, CAP_SYS_BOOT, CAP_SETUID, CAP_NET_ADMIN, CAP_MKNOD, CAP_SETPCAP };

        for (size_t i = 0; i < sizeof(gone) / sizeof(*gone); i++)
                if (!has_in_none(gone[i]))
                        return false;
        return has_in_all(CAP_PERFMON) && has_in_all(CAP_DAC_READ_SEARCH) && has_in_all(CAP_SYS_NICE) && has_in_all(CAP_KILL);
}

static bool is_reduced_root(int error, bool asks, bool keeps_admin, const char *words) {
        PrivilegesReport r = PRIVILEGES_REPORT_NULL;

        probes_error = error;
        asks_for_admin = asks;
        return privileges_reduce(&r) == 0 && !r.is_wrong && r.has_given_up == !keeps_admin && n_opened == 1 &&
               strstr(r.text, words) && has_in_all(CAP_SYS_ADMIN) == keeps_admin && has_what_root_keeps();
}

static bool root_needs_no_admin(void) {
        return is_reduced_root(0, false, false, "except those that perfd needs") &&
               has_in_none(CAP_SYS_ADMIN);
}

static bool root_without_tracefs_needs_none(void) {
        return is_reduced_root(ENOENT, false, false, "except those that perfd needs");
}

static bool root_needs_it_for_events(void) {
        return is_reduced_root(0, true, true, "; CAP_SYS_ADMIN is one: this kernel requires it to open perf events");
}

static bool root_needs_it_for_probes(void) {
        return is_reduced_root(EROFS, false, true, "; CAP_SYS_ADMIN is one: user probes require it where uprobe_events is read-only");
}

static bool root_keeps_all(void) {
        PrivilegesReport r = PRIVILEGES_REPORT_NULL;

        r.keep = true;
        return privileges_reduce(&r) == 0 && !r.has_given_up && n_opened == 0 && strstr(r.text, "are kept, as requested") &&
               has_in_all(CAP_SYS_ADMIN) && has_in_all(CAP_SYS_MODULE);
}

/* Of a container, whose root has less: what it has not is not asked for. */
static bool root_has_less(void) {
        drop(CAP_SYS_ADMIN);
        drop(CAP_SYSLOG);
        {
                PrivilegesReport r = PRIVILEGES_REPORT_NULL;

                return privileges_reduce(&r) == 0 && !r.is_wrong && !r.has_given_up && n_opened == 0 && has_in_none(CAP_SYSLOG) &&
                       has_what_root_keeps();
        }
}

/* In the namespace; whoever the test runs as outside. */
static void become_root(uid_t outside) {
        char line[32];
        int fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC), n = snprintf(line, sizeof(line), "0 %u 1", (unsigned)outside);

        if (fd < 0 || write(fd, line, (size_t)n) != n || close(fd) < 0 || geteuid() != 0)
                _exit(7);
}

static void check_cases(bool (*const *cases)(void), size_t n, bool as_root) {
        for (size_t i = 0; i < n; i++) {
                pid_t pid = fork();
                int status;

                assert_true(pid >= 0);
                if (pid == 0) {
                        const uid_t outside = geteuid();

                        if (unshare(CLONE_NEWUSER) < 0 || geteuid() == 0)
                                _exit(NO_NAMESPACE);
                        thread_become(THREAD_MAIN);
                        open_perf_event = play_open;
                        if (as_root)
                                become_root(outside);
                        else
                                make_ambient();
                        _exit(cases[i]() ? 0 : 1);
                }
                assert_int_equal(waitpid(pid, &status, 0), pid);
                assert_true(WIFEXITED(status));
                if (WEXITSTATUS(status) == NO_NAMESPACE) {
                        print_message("no user namespaces for who asks here\n");
                        skip();
                }
                if (WEXITSTATUS(status) != 0)
                        fail_msg("case %zu: status %d", i, WEXITSTATUS(status));
        }
}

static void test_each(void **state) {
        static bool (*const cases[])(void) = { is_given_up, is_kept, is_kept_as_asked, is_all_there_is, is_not_there };

        check_cases(cases, sizeof(cases) / sizeof(*cases), false);
}

static void test_root(void **state) {
        static bool (*const cases[])(void) = { root_needs_no_admin, root_without_tracefs_needs_none, root_needs_it_for_events,
                                               root_needs_it_for_probes, root_keeps_all, root_has_less };

        check_cases(cases, sizeof(cases) / sizeof(*cases), true);
}

static bool fails_with_eperm(long r) {
        return r == -1 && errno == EPERM;
}

/* What perfd never does fails, and what it does works, in this thread and in one that is made later. */
static bool is_reduced(void) {
        static const int families[] = { AF_UNSPEC, AF_INET, AF_INET6, AF_PACKET, AF_BLUETOOTH, AF_VSOCK, AF_ALG };
        char *const none[] = { NULL };
        int fd;

        for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
                if (!fails_with_eperm(socket(families[i], SOCK_STREAM, 0)))
                        return false;
        if ((fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0 || close(fd) < 0)
                return false;
        if ((fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0)) < 0 || close(fd) < 0)
                return false;
        return fails_with_eperm(execve("/nonexistent", none, none)) && fails_with_eperm(unshare(0)) &&
               fails_with_eperm(mount("none", "/nonexistent", "tmpfs", 0, NULL)) &&
               fails_with_eperm(syscall(SYS_process_vm_readv, getpid(), NULL, 0UL, NULL, 0UL, 0UL)) &&
               fails_with_eperm(syscall(SYS_finit_module, -1, "", 0)) && fails_with_eperm(syscall(SYS_setuid, getuid())) &&
               fails_with_eperm(syscall(SYS_keyctl, 0, 0, 0, 0, 0)) && kill(getpid(), 0) == 0 &&
               (fd = syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0UL)) == -1 && errno != EPERM && errno != ENOSYS;
}

static void *run_reduced(void *userdata) {
        *(bool *)userdata = is_reduced();
        return NULL;
}

static void test_system_calls(void **state) {
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                bool here, there = false;
                pthread_t thread;

                thread_become(THREAD_MAIN);
                if (unshare(0) != 0 || system_calls_reduce() != 0)
                        _exit(2);
                here = is_reduced();
                if (pthread_create(&thread, NULL, run_reduced, &there) != 0 || pthread_join(thread, NULL) != 0)
                        _exit(3);
                _exit(here && there && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_each), cmocka_unit_test(test_root),
                                             cmocka_unit_test(test_system_calls) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
