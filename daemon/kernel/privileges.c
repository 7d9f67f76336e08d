/*
 * Linux opens perf events with CAP_PERFMON; the kernels of Debian and Ubuntu ask for CAP_SYS_ADMIN above level 2 of
 * kernel.perf_event_paranoid, which is their default. The service is given both, and keeps the mighty one only where it
 * opens nothing without. The level alone does not say that: what is above 2 means nothing to other kernels, and another
 * distribution's may mean something else by it. So it is tried: the capability is taken out of the effective ones, and an
 * event is opened.
 *
 * Capabilities are each thread's own, and threads inherit them: so this is done before there is a second thread.
 */
#include "daemon/kernel/privileges.h"

#include "daemon/base/cleanup.h"
#include "daemon/base/thread.h"
#include "daemon/kernel/open.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <unistd.h>

#ifndef CAP_PERFMON /* Linux 5.8 */
#define CAP_PERFMON 38
#endif

static bool has_capability(cap_t set, cap_value_t capability) {
        cap_flag_value_t value = CAP_CLEAR;

        return cap_get_flag(set, capability, CAP_EFFECTIVE, &value) == 0 && value == CAP_SET;
}

/* Whether perfd can be what it is for: the whole of a CPU, the kernel included. What it has just then decides. */
static bool opens_events(void) {
        struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = PERF_ATTR_SIZE_VER0, .disabled = 1,
                                        .config = PERF_COUNT_SW_CPU_CLOCK };
        int cpu = sched_getcpu();
        _cleanup_close_ int fd = open_perf_event(&attr, -1, cpu < 0 ? 0 : cpu, -1, PERF_FLAG_FD_CLOEXEC);

        return fd >= 0;
}

static long read_level(void) {
        _cleanup_fclose_ FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
        long level;

        return f && fscanf(f, "%ld", &level) == 1 ? level : -1;
}

/* Takes the capability out of `n` of the sets, and makes that the thread's. */
static int drop(cap_t own, const cap_flag_t *sets, size_t n) {
        static const cap_value_t admin[] = { CAP_SYS_ADMIN };

        for (size_t i = 0; i < n; i++)
                if (cap_set_flag(own, sets[i], 1, admin, CAP_CLEAR) < 0)
                        return -errno;
        return cap_set_proc(own) < 0 ? -errno : 0;
}

static int reduce(cap_t own, cap_t reduced, PrivilegesReport *report) {
        static const cap_flag_t sets[] = { CAP_EFFECTIVE, CAP_PERMITTED, CAP_INHERITABLE };
        const size_t size = sizeof(report->text);
        int r = drop(reduced, sets, 1);

        if (r < 0) {
                report->is_wrong = true;
                (void)snprintf(report->text, size, "CAP_SYS_ADMIN is kept, because it can not be given up: capset(2) says %s; "
                               "a seccomp filter (SystemCallFilter=) has to allow it", strerror(-r));
                return 0;
        }
        if (!opens_events()) {
                (void)snprintf(report->text, size, "CAP_SYS_ADMIN is kept: this kernel asks for it to open perf events, at "
                               "kernel.perf_event_paranoid %ld; started at 2 perfd goes on without it", read_level());
                return cap_set_proc(own) < 0 ? -errno : 0;
        }
        r = drop(reduced, sets, ARRAY_SIZE(sets)); /* what is not in both is not ambient either */
        if (r < 0)
                return r;
        report->has_given_up = true;
        (void)snprintf(report->text, size, "CAP_SYS_ADMIN is given up: this kernel opens perf events with CAP_PERFMON, at "
                       "kernel.perf_event_paranoid %ld", read_level());
        return 0;
}

int privileges_reduce(PrivilegesReport *report) {
        cap_t own, reduced;
        int r = 0;

        thread_assert(THREAD_MAIN);
        *report = (PrivilegesReport){ .keep = report->keep };
        own = cap_get_proc();
        reduced = own ? cap_dup(own) : NULL;
        if (!reduced)
                r = -errno;
        else if (geteuid() != 0 && has_capability(own, CAP_SYS_ADMIN)) {
                if (report->keep)
                        (void)snprintf(report->text, sizeof(report->text), "CAP_SYS_ADMIN is kept, as asked for");
                else if (!has_capability(own, CAP_PERFMON))
                        (void)snprintf(report->text, sizeof(report->text),
                                       "CAP_SYS_ADMIN is kept: without CAP_PERFMON nothing else opens perf events");
                else
                        r = reduce(own, reduced, report);
        }
        (void)cap_free(own);
        (void)cap_free(reduced);
        return r;
}
