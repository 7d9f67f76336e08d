/* What the process itself may, and where it runs. Threads are tried by threads: they end again at once. */
#include "daemon/kernel/doctor/trial.h"

#include "daemon/base/cleanup.h"
#include "daemon/base/thread.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* By the daemon's own call; an exit code would say less than the policy that it has led to. */
static int try_urgent(void *userdata) {
        int *policy = userdata, r = thread_set_urgent(-19);

        *policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
        return r;
}

static void examine_urgency(Doctor *d) {
        struct rlimit limit = { 0 };
        int policy = SCHED_OTHER, r;
        Thread t = THREAD_NULL;

        (void)getrlimit(RLIMIT_RTPRIO, &limit);
        r = thread_start(&t, THREAD_ANY, "perfd-doctor", -1, try_urgent, &policy);
        if (r == 0)
                r = thread_join(&t);
        if (policy == SCHED_FIFO)
                doctor_yes(d, "SCHED_FIFO", "a thread got the lowest real-time priority");
        else
                doctor_no(
                        d, "SCHED_FIFO",
                        doctor_has(d, CAP_SYS_NICE) ? "give perfd's cgroup real-time CPU time (cpu.rt_runtime_us), or set "
                                "RLIMIT_RTPRIO"
                                                    : "LimitRTPRIO=1 in perfd's unit (ulimit -r 1)",
                        "not permitted, RLIMIT_RTPRIO is %llu; a nice value of -19 %s: readers may run late",
                        (unsigned long long)limit.rlim_cur, r == 0 ? "is permitted" : "is not permitted either");
}

static int do_nothing(void *userdata) {
        return 0;
}

/* A ring can only be read in order by a thread on its own CPU. */
static void examine_placement(Doctor *d) {
        d->can_place = true;
        for (size_t i = 0; i < d->n_cpus; i++) {
                Thread t = THREAD_NULL;
                int r = thread_start(&t, THREAD_ANY, "perfd-doctor", (int)d->cpus[i], do_nothing, NULL);

                if (r < 0) {
                        d->can_place = false;
                        doctor_no(d, "threads",
                                  r == -EAGAIN ? "raise TasksMax= of perfd's unit (RLIMIT_NPROC)"
                                               : "let perfd run on all CPUs (CPUAffinity=, cpusets)",
                                  "none on CPU %u: %s", d->cpus[i], strerror(-r));
                        return;
                }
                (void)thread_join(&t);
        }
        doctor_yes(d, "threads", "one ran on each of %zu CPUs", d->n_cpus);
}

/* Ended by a zero; "" for none. */
static void list_capabilities(uint64_t capabilities, char *to, size_t size) {
        static const int known[] = { CAP_PERFMON,    CAP_SYS_ADMIN, CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE,
                                     CAP_SYS_PTRACE, CAP_SYS_NICE,  CAP_IPC_LOCK };
        size_t n = 0;

        *to = '\0';
        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                if (capabilities & 1ULL << known[i] && n < size)
                        n += (size_t)snprintf(to + n, size - n, "%s%s", n > 0 ? " " : "",
                                              doctor_capability_name(known[i]));
}

/* The sum of what the other rows missed, for one line in a unit. */
static void examine_capabilities(Doctor *d) {
        char have[192], missed[192], settings[448], remedy[512];

        list_capabilities(d->capabilities, have, sizeof(have));
        list_capabilities(d->missed, missed, sizeof(missed));
        if (!*missed) {
                doctor_yes(d, "capabilities", "%s: nothing was refused for lack of one", *have ? have : "none");
                return;
        }
        doctor_list_settings(d, d->missed, missed, settings, sizeof(settings));
        (void)snprintf(remedy, sizeof(remedy), "%s in %s, for everything that is refused here", settings, doctor_place(d));
        doctor_no(d, "capabilities", remedy, "%s; refused for lack of %s", *have ? have : "none", missed);
}

static void examine_confinement(Doctor *d) {
        static const char *const marks[] = { "/run/systemd/container", "/.dockerenv", "/run/.containerenv" };
        const char *found = NULL;
        struct stat s;

        for (size_t i = 0; i < ARRAY_SIZE(marks) && !found; i++)
                if (stat(doctor_path(d, marks[i]), &s) == 0)
                        found = marks[i];
        if (d->is_user_namespace)
                doctor_no(d, "container",
                          "run perfd in the host's initial user namespace (no userns-remap, PrivateUsers=no)",
                          "in a user namespace, where capabilities have no effect on perf events%s%s", found ? "; " : "",
                          found ? found : "");
        else if (found)
                doctor_yes(d, "container", "%s says that this is one; the other rows show what it does not allow",
                           found);
        else
                doctor_yes(d, "container", "none detected");
        doctor_yes(d, "seccomp", "%s",
                   d->has_seccomp               ? "a filter is active; the other rows show what it does not allow"
                   : d->wants->n_own_filters > 0 ? "only perfd's own filter, which denies system calls that perfd never makes"
                                                 : "no filter");
}

/* Whoever makes sockets himself gives the stream socket to a group; those of systemd come with theirs. */
static void examine_sockets(Doctor *d) {
        if (d->capabilities & 1ULL << CAP_CHOWN)
                doctor_yes(d, "sockets", "perfd may give the sockets that it creates to any group");
        else if (d->wants->has_given_sockets || getenv("LISTEN_FDS"))
                doctor_yes(d, "sockets", "systemd created them, with their groups");
        else
                doctor_no(d, "sockets", doctor_permit(d, CAP_CHOWN, "podman run --cap-add CHOWN, or let it run in that "
                        "group"), "without CAP_CHOWN perfd can give a socket that it creates only to its own groups: otherwise "
                        "only %s may use the stream socket", geteuid() == 0 ? "root" : "perfd's own user");
}

/* What the process has done with it is of interest where it had it. */
static void examine_admin(Doctor *d) {
        const PrivilegesReport *p = d->wants->privileges;

        if (p->is_wrong)
                doctor_no(d, "CAP_SYS_ADMIN", "allow capset in the seccomp filter of this process, as in "
                          "SystemCallFilter=capset of the unit", "%s", p->text);
        else if (p->text[0])
                doctor_yes(d, "CAP_SYS_ADMIN", "%s", p->text);
}

/* Without, perfd is as exact: streams in the order of time cost more. */
static void examine_idle(Doctor *d) {
        const uint64_t wanted = 1ULL << CAP_BPF | 1ULL << CAP_PERFMON;
        const char *why = d->wants->no_idle;
        char settings[128], remedy[256];

        doctor_list_settings(d, wanted, "CAP_BPF CAP_PERFMON", settings, sizeof(settings));
        (void)snprintf(remedy, sizeof(remedy), "%s%s in %s, on Linux 6.0 or later with BTF",
                       d->has_seccomp ? "SystemCallFilter=bpf and " : "", settings, doctor_place(d));
        if (why && why[0])
                doctor_no(d, "idle CPUs", remedy, "%s: time-ordered streams wake them", why);
        else if (why)
                doctor_yes(d, "idle CPUs", "their idle state is visible to perfd, and time-ordered streams do not wake them");
}

void doctor_examine_service(Doctor *d) {
        d->topic = "service";
        examine_urgency(d);
        examine_placement(d);
        examine_confinement(d);
        examine_sockets(d);
        examine_admin(d);
        examine_idle(d);
        examine_capabilities(d);
}
