/* What perf_event_open(2) opens. Each event is disabled, and closed at once. */
#include "daemon/kernel/doctor/trial.h"

#include "config/event-name/event-name.h"
#include "daemon/base/cleanup.h"
#include "daemon/kernel/event/attr.h"
#include "daemon/kernel/event/open.h"

#include <dirent.h>
#include <linux/hw_breakpoint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char no_pmu[] =
        "let the hypervisor give this machine a PMU (qemu: -cpu host,pmu=on); without one, cycles can fall back to cpu-clock "
        "(`fallback: cpu-clock`)";

static void examine_open(Doctor *d) {
        static const char what[] = "perf_event_open";
        struct perf_event_attr attr = doctor_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
        int r = doctor_try(&attr, 0, -1);

        d->can_open = r == 0;
        if (r == 0)
                doctor_yes(d, what, "an event on an own thread opens");
        else if (r == -ENOSYS)
                doctor_no(d, what,
                          d->has_seccomp ? "allow perf_event_open in the seccomp filter of this process"
                                         : "use a kernel with CONFIG_PERF_EVENTS",
                          "%s", strerror(-r));
        else
                doctor_no(d, what, doctor_permit(d, CAP_PERFMON, "sysctl kernel.perf_event_paranoid=2"),
                          "not even an event on an own thread opens: %s", strerror(-r));
}

static const char *paranoid_meaning(long paranoid) {
        if (paranoid < 0)
                return "all users may use all events";
        if (paranoid == 0)
                return "without CAP_PERFMON no tracepoints of the host";
        if (paranoid == 1)
                return "without CAP_PERFMON no events of the host";
        if (paranoid == 2)
                return "without CAP_PERFMON no events of the host, and nothing of the kernel";
        if (paranoid == 3)
                return "without CAP_PERFMON (Debian: CAP_SYS_ADMIN) no events at all";
        return "without CAP_SYS_ADMIN no events at all";
}

/* The carrier of a ring is what perfd cannot do without. */
static void examine_host(Doctor *d) {
        AttrBase base = { .clock = d->wants->clock };
        struct perf_event_attr attr = attr_of_carrier(&base);
        int cpu = (int)d->cpus[0], r = doctor_try(&attr, -1, cpu);
        bool is_old = r == -EINVAL || r == -E2BIG;

        if (is_old) {
                attr = attr_of_plain_carrier(&base);
                r = doctor_try(&attr, -1, cpu);
        }
        d->can_host = r == 0;
        if (r == 0)
                doctor_yes(d, "host-wide events", "a host-wide event on CPU %d opens%s", cpu,
                           is_old ? ", with the side records of an older kernel" : "");
        else
                doctor_no(d, "host-wide events", doctor_permit(d, CAP_PERFMON, "sysctl kernel.perf_event_paranoid=-1"),
                          "a host-wide event on CPU %d: %s", cpu, strerror(-r));
        if (d->paranoid == -2)
                doctor_no(d, "perf_event_paranoid", "mount procfs on /proc; the kernel needs CONFIG_PERF_EVENTS",
                          "there is no /proc/sys/kernel/perf_event_paranoid");
        else if (d->can_host)
                doctor_yes(d, "perf_event_paranoid", "%ld: %s%s", d->paranoid, paranoid_meaning(d->paranoid),
                           d->paranoid >= 0 && doctor_has(d, CAP_PERFMON) ? ", which this process has" : "");
        else
                doctor_no(d, "perf_event_paranoid",
                          doctor_permit(d, CAP_PERFMON, "sysctl kernel.perf_event_paranoid=-1"), "%ld: %s", d->paranoid,
                          paranoid_meaning(d->paranoid));
}

static void examine_lost(Doctor *d) {
        struct perf_event_attr attr = doctor_attr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
        int r;

        attr.read_format = PERF_FORMAT_LOST;
        r = doctor_try(&attr, 0, -1);
        if (r == 0)
                doctor_yes(d, "PERF_FORMAT_LOST", "the losses of a full ring buffer are counted exactly");
        else if (r == -EINVAL)
                doctor_no(d, "PERF_FORMAT_LOST", "use Linux 6.0 or later; until then the losses of ring buffers are a lower bound",
                          "not supported by this kernel");
        else
                doctor_no(d, "PERF_FORMAT_LOST", "see perf_event_open", "%s", strerror(-r));
}

static void examine_software(Doctor *d) {
        static const struct {
                const char *what;
                uint64_t config;
        } clocks[] = { { "cpu-clock", PERF_COUNT_SW_CPU_CLOCK }, { "task-clock", PERF_COUNT_SW_TASK_CLOCK } };

        for (size_t i = 0; i < ARRAY_SIZE(clocks); i++) {
                struct perf_event_attr attr = doctor_attr(PERF_TYPE_SOFTWARE, clocks[i].config);
                int r;

                attr.freq = 1;
                attr.sample_freq = 99;
                attr.sample_type = PERF_SAMPLE_IP;
                r = doctor_try(&attr, 0, -1);
                if (r == 0)
                        doctor_yes(d, clocks[i].what, "samples 99 times a second");
                else
                        doctor_no(d, clocks[i].what,
                                  r == -EINVAL ? "raise kernel.perf_event_max_sample_rate" : "see perf_event_open",
                                  "sampling 99 times a second fails: %s", strerror(-r));
        }
}

/* Of one's own thread where that is all that we may. */
static int try_hardware(Doctor *d, uint32_t type, uint64_t config) {
        struct perf_event_attr attr = doctor_attr(type, config);

        attr.exclude_kernel = attr.exclude_hv = !d->can_host;
        return d->can_host ? doctor_try(&attr, -1, (int)d->cpus[0]) : doctor_try(&attr, 0, -1);
}

static void examine_hardware(Doctor *d) {
        int r = try_hardware(d, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
        char works[192] = "";
        size_t n_events, n = 0;
        const NumberedEvent *events = hardware_events(&n_events);

        if (r == 0)
                doctor_yes(d, "cycles", "the CPU's cycle counter opens");
        else
                doctor_no(d, "cycles", r == -EACCES || r == -EPERM ? "see host-wide events" : no_pmu,
                          "the CPU's cycle counter: %s", strerror(-r));
        for (size_t i = 0; i < n_events; i++)
                if (try_hardware(d, PERF_TYPE_HARDWARE, events[i].config) == 0 && n < sizeof(works))
                        n += (size_t)snprintf(works + n, sizeof(works) - n, " %s", events[i].name);
        if (n > 0)
                doctor_yes(d, "hardware events", "%.*s", (int)sizeof(works), works + 1);
        else
                doctor_no(d, "hardware events", r == -EACCES || r == -EPERM ? "see host-wide events" : no_pmu,
                          "none of the %zu events of perf list opens", n_events);
}

static int compare_names(const struct dirent **a, const struct dirent **b) {
        return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_name(const struct dirent *entry) {
        return entry->d_name[0] != '.';
}

static void examine_pmus(Doctor *d) {
        struct dirent **entries;
        int count = scandir(doctor_path(d, "/sys/bus/event_source/devices"), &entries, is_name, compare_names);
        char names[256] = "";
        size_t n = 0;

        if (count < 0) {
                doctor_no(d, "PMUs", "mount sysfs on /sys", "/sys/bus/event_source/devices: %s", strerror(errno));
                return;
        }
        for (int i = 0; i < count; i++) {
                if (n < sizeof(names))
                        n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i > 0 ? " " : "",
                                              entries[i]->d_name);
                free(entries[i]);
        }
        free(entries);
        doctor_yes(d, "PMUs", "%s", names);
}

/* ret_fires: the address is written once, and that is counted. Some hypervisors let breakpoints be set, and never report one. */
static int try_breakpoint(bool *ret_fires) {
        static volatile long watched;
        struct perf_event_attr attr = doctor_attr(PERF_TYPE_BREAKPOINT, 0);
        uint64_t count = 0;
        int fd;

        attr.bp_addr = (uint64_t)(uintptr_t)&watched;
        attr.bp_len = sizeof(watched);
        attr.bp_type = HW_BREAKPOINT_W;
        attr.disabled = 0;
        fd = doctor_open(&attr, 0, -1, 0);
        watched++;
        *ret_fires = fd >= 0 && (read(fd, &count, sizeof(count)) != sizeof(count) || count > 0);
        (void)open_close_of(attr.type, fd);
        return fd < 0 ? fd : 0;
}

bool doctor_has_breakpoints(void) {
        bool fires;

        return try_breakpoint(&fires) == 0;
}

bool doctor_breakpoints_never_count(void) {
        bool fires;

        return try_breakpoint(&fires) == 0 && !fires;
}

static void examine_breakpoints(Doctor *d) {
        bool fires;
        int r = try_breakpoint(&fires);

        if (r == 0 && fires)
                doctor_yes(d, "breakpoints", "a breakpoint on an address opens, and counts a write");
        else if (r == 0)
                doctor_no(d, "breakpoints", "use a hypervisor that gives this machine its debug registers, or none",
                          "a breakpoint on an address opens, and never counts: events mem:ADDRESS stay at 0");
        else if (r == -ENOSPC)
                doctor_no(d, "breakpoints", "end the debugger or the events that use them",
                          "all of the CPU's breakpoint registers are in use");
        else
                doctor_no(d, "breakpoints",
                          r == -EACCES || r == -EPERM
                                  ? "see perf_event_open"
                                  : "use a CPU and a kernel (CONFIG_HAVE_HW_BREAKPOINT) that support breakpoints",
                          "%s", strerror(-r));
}

void doctor_examine_events(Doctor *d) {
        d->topic = "events";
        examine_open(d);
        examine_host(d);
        examine_lost(d);
        examine_software(d);
        examine_hardware(d);
        examine_pmus(d);
        examine_breakpoints(d);
}
