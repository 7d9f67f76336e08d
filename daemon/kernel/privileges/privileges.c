/*
 * Linux opens perf events with CAP_PERFMON; the kernels of Debian and Ubuntu ask for CAP_SYS_ADMIN above level 2 of
 * kernel.perf_event_paranoid, which is their default. The service is given both, and keeps the mighty one only where it
 * opens nothing without. The level alone does not say that: what is above 2 means nothing to other kernels, and another
 * distribution's may mean something else by it. So it is tried: the capability is taken out of the effective ones, and an
 * event is opened.
 *
 * Capabilities are each thread's own, and threads inherit them: so this is done before there is a second thread.
 */
#include "daemon/kernel/privileges/privileges.h"

#include "daemon/base/cleanup.h"
#include "daemon/base/thread.h"
#include "daemon/kernel/event/open.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <unistd.h>

#ifndef CAP_PERFMON /* Linux 5.8 */
#define CAP_PERFMON 38
#define CAP_BPF 39
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
                        return error_origin(-errno);
        return cap_set_proc(own) < 0 ? error_origin(-errno) : 0;
}

static int reduce(cap_t own, cap_t reduced, PrivilegesReport *report) {
        static const cap_flag_t sets[] = { CAP_EFFECTIVE, CAP_PERMITTED, CAP_INHERITABLE };
        const size_t size = sizeof(report->text);
        int r = drop(reduced, sets, 1);

        if (r < 0) {
                report->is_wrong = true;
                (void)snprintf(report->text, size, "CAP_SYS_ADMIN is kept, because it cannot be dropped: capset(2): %s; allow "
                        "capset in the seccomp filter (SystemCallFilter=)", strerror(-r));
                return 0;
        }
        if (!opens_events()) {
                (void)snprintf(report->text, size, "CAP_SYS_ADMIN is kept: this kernel requires it to open perf events at "
                        "kernel.perf_event_paranoid %ld; if started at 2, perfd drops it", read_level());
                return cap_set_proc(own) < 0 ? error_origin(-errno) : 0;
        }
        r = drop(reduced, sets, ARRAY_SIZE(sets)); /* what is not in both is not ambient either */
        if (r < 0)
                return r;
        report->has_given_up = true;
        (void)snprintf(report->text, size, "CAP_SYS_ADMIN is dropped: this kernel opens perf events with CAP_PERFMON at "
                "kernel.perf_event_paranoid %ld", read_level());
        return 0;
}

/* What root keeps, beside CAP_SYS_ADMIN where events ask for it. The rest of root's power is in none of these. */
static const cap_value_t of_root[] = {
        CAP_PERFMON,         /* events */
        CAP_BPF,             /* to run the programs that see idle CPUs */
        CAP_DAC_READ_SEARCH, /* tracefs, and programs that probes are in */
        CAP_DAC_OVERRIDE,    /* sockets in a folder of another user, whose group is given to the stream socket: */
        CAP_CHOWN,
        CAP_SYS_PTRACE,      /* which program a process of another user runs (/proc/PID/exe) */
        CAP_SYSLOG,          /* addresses in /proc/kallsyms */
        CAP_SYS_NICE,        /* real-time priority of readers, also of CPUs that come later */
        CAP_IPC_LOCK,        /* rings above the limit of locked memory */
        CAP_SYS_RESOURCE,    /* pipes and queues above their limits */
        CAP_KILL,            /* whether a process that is named in a probe is still there */
};

/* Of what it has: a container's root may have less. */
static int set_of_root(cap_t own, bool with_admin, cap_t *ret) {
        static const cap_value_t admin[] = { CAP_SYS_ADMIN };
        cap_t set = cap_init();
        int r = set ? 0 : error_origin(-errno);

        for (size_t i = 0; i < ARRAY_SIZE(of_root) + with_admin && r == 0; i++) {
                const cap_value_t *c = i < ARRAY_SIZE(of_root) ? &of_root[i] : admin;

                if (has_capability(own, *c) && (cap_set_flag(set, CAP_EFFECTIVE, 1, c, CAP_SET) < 0 ||
                                                cap_set_flag(set, CAP_PERMITTED, 1, c, CAP_SET) < 0))
                        r = error_origin(-errno);
        }
        *ret = set;
        return r;
}

/* Then user probes are those of the uprobe PMU, which asks for CAP_SYS_ADMIN since Linux 6.16. */
static bool can_define_no_probes(void) {
        static const char path[] = "/sys/kernel/tracing/uprobe_events";

        return access(path, W_OK) < 0 && errno != ENOENT; /* without tracefs nothing is said: it may come */
}

static int reduce_root(cap_t own, PrivilegesReport *report) {
        cap_t with = NULL, without = NULL, effective = cap_dup(own);
        bool asks = false, needs_admin = false;
        int r = effective ? 0 : error_origin(-errno);

        if (r == 0)
                r = set_of_root(own, true, &with);
        if (r == 0)
                r = set_of_root(own, false, &without);
        if (r == 0 && has_capability(own, CAP_SYS_ADMIN)) {
                r = drop(effective, (const cap_flag_t[]){ CAP_EFFECTIVE }, 1); /* tried before it cannot be taken back */
                asks = r == 0 && !opens_events();
                needs_admin = asks || can_define_no_probes();
        }
        if (r == 0 && cap_set_proc(needs_admin ? with : without) < 0)
                r = error_origin(-errno);
        if (r == 0) {
                report->has_given_up = !needs_admin && has_capability(own, CAP_SYS_ADMIN);
                (void)snprintf(report->text, sizeof(report->text), "root's capabilities are dropped, except those that perfd "
                        "needs%s",
                               asks          ? "; CAP_SYS_ADMIN is one: this kernel requires it to open perf events"
                               : needs_admin ? "; CAP_SYS_ADMIN is one: user probes require it where uprobe_events is read-only"
                                             : "");
        } else {
                report->is_wrong = true;
                (void)snprintf(report->text, sizeof(report->text), "root's capabilities cannot be dropped: %s", strerror(-r));
        }
        (void)cap_free(with);
        (void)cap_free(without);
        (void)cap_free(effective);
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
                r = error_origin(-errno);
        else if (geteuid() == 0 && report->keep)
                (void)snprintf(report->text, sizeof(report->text), "root's capabilities are kept, as requested");
        else if (geteuid() == 0)
                r = reduce_root(own, report);
        else if (has_capability(own, CAP_SYS_ADMIN)) {
                if (report->keep)
                        (void)snprintf(report->text, sizeof(report->text), "CAP_SYS_ADMIN is kept, as requested");
                else if (!has_capability(own, CAP_PERFMON))
                        (void)snprintf(report->text, sizeof(report->text),
                                       "CAP_SYS_ADMIN is kept: without CAP_PERFMON no other capability opens perf events");
                else
                        r = reduce(own, reduced, report);
        }
        (void)cap_free(own);
        (void)cap_free(reduced);
        return r;
}
