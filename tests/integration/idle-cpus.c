/*
 * Which CPUs are idle, on the real kernel: the one that asks never is, one on which something spins never is, and one on which
 * nothing runs is, sooner or later; also for a process that has denied itself the rest of bpf(2).
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/kernel/host/idle-cpus.h"
#include "daemon/kernel/privileges/system-calls.h"

#define SKIPPED 77
#define PATIENCE (40 * NSEC_PER_SEC)
#define IDLE_TICKS 50 /* of /proc/stat, 10 ms each */
#define LOOKS 2000

static void fail(const char *what, int error) {
        fprintf(stderr, "idle-cpus: %s: %s\n", what, strerror(error));
        exit(EXIT_FAILURE);
}

static void pin(int cpu) {
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        if (sched_setaffinity(0, sizeof(set), &set) < 0)
                fail("sched_setaffinity", errno);
}

static bool is_idle(IdleCpus *i, uint32_t cpu) {
        int r;

        idle_cpus_want(i, cpu);
        r = idle_cpus_look(i);
        if (r < 0)
                fail("a look", -r);
        return idle_cpus_take(i, cpu);
}

/* Until it is ready, spinning on this CPU. */
static pid_t spin_on(int cpu) {
        int fds[2];
        char ready;
        pid_t pid;

        if (pipe(fds) < 0 || (pid = fork()) < 0)
                fail("a process", errno);
        if (pid == 0) {
                pin(cpu);
                if (write(fds[1], "x", 1) != 1)
                        _exit(EXIT_FAILURE);
                for (;;)
                        ;
        }
        if (read(fds[0], &ready, 1) != 1)
                fail("the process that spins", errno);
        close(fds[0]);
        close(fds[1]);
        return pid;
}

static unsigned count_idle(IdleCpus *i, int cpu, unsigned looks) {
        unsigned n = 0;

        for (unsigned k = 0; k < looks; k++)
                n += is_idle(i, (uint32_t)cpu);
        return n;
}

/* As /proc/stat has it. */
static unsigned long idle_ticks(int cpu) {
        char line[256], name[16];
        unsigned long idle = 0;
        FILE *f = fopen("/proc/stat", "re");

        if (!f)
                fail("/proc/stat", errno);
        (void)snprintf(name, sizeof(name), "cpu%d ", cpu);
        while (fgets(line, sizeof(line), f))
                if (strncmp(line, name, strlen(name)) == 0)
                        (void)sscanf(line + strlen(name), "%*u %*u %*u %lu", &idle);
        fclose(f);
        return idle;
}

/* Looks go on when bpf(2) does nothing else any more: in a process of its own, for which that holds for good. */
static void check_confined(IdleCpus *i, uint32_t here) {
        int status;
        pid_t pid = fork();

        if (pid < 0)
                fail("a process", errno);
        if (pid == 0) {
                int r = system_calls_end_bpf();

                if (r < 0)
                        fail("system_calls_end_bpf", -r);
                (void)is_idle(i, here);
                if (idle_cpus_find(i, here) < 0)
                        fail("idle_cpus_find behind it", EPERM);
                if (bpf_map_create(BPF_MAP_TYPE_ARRAY, "test", 4, 4, 1, NULL) != -EPERM)
                        fail("a BPF map can still be made", 0);
                if (bpf_prog_get_fd_by_id(1) != -EPERM)
                        fail("a BPF program of others can still be opened", 0);
                _exit(EXIT_SUCCESS);
        }
        if (waitpid(pid, &status, 0) != pid || status != 0)
                fail("the confined process", 0);
}

int main(void) {
        const struct timespec pause = { .tv_nsec = 1000000 };
        int here = sched_getcpu(), n_cpus = (int)sysconf(_SC_NPROCESSORS_CONF), other = here == 0 ? 1 : 0;
        _cleanup_(idle_cpus_freep) IdleCpus *i = NULL;
        Explanation e = EXPLANATION_NULL;
        int r = idle_cpus_open((uint32_t)n_cpus, &i, &e);
        nsec_t end = clock_now(CLOCK_MONOTONIC) + PATIENCE;
        unsigned long idle;
        unsigned n;
        pid_t pid;

        if (r > 0) {
                printf("skipped: %s\n", e.text);
                return SKIPPED;
        }
        if (r < 0)
                fail("idle_cpus_open", -r);
        if (is_idle(i, (uint32_t)here))
                fail("a CPU that was not found yet seems to be idle", 0);
        for (int cpu = 0; cpu < n_cpus; cpu++)
                if ((r = idle_cpus_find(i, (uint32_t)cpu)) < 0 && r != -ENXIO)
                        fail("idle_cpus_find", -r);
        if (idle_cpus_find(i, (uint32_t)n_cpus) >= 0)
                fail("a CPU that cannot be was found", 0);
        pin(here);
        if ((n = count_idle(i, here, LOOKS)) > 0)
                fail("the CPU that asks seems to be idle", 0);
        if (n_cpus < 2) {
                printf("skipped: one CPU alone is never seen to be idle\n");
                return SKIPPED;
        }
        check_confined(i, (uint32_t)here);
        pid = spin_on(other);
        n = count_idle(i, other, LOOKS);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        printf("CPU %d: idle %u times of %u while something spun there\n", other, n, LOOKS);
        if (n > 0)
                fail("a CPU on which something spins seems to be idle", 0);
        idle = idle_ticks(other);
        for (n = 0; n == 0 && idle_ticks(other) < idle + IDLE_TICKS && clock_now(CLOCK_MONOTONIC) < end; nanosleep(&pause, NULL))
                n = is_idle(i, (uint32_t)other);
        if (n > 0)
                return EXIT_SUCCESS;
        if (idle_ticks(other) >= idle + IDLE_TICKS)
                fail("the other CPU was idle for half a second, and never seen to be", 0);
        printf("skipped: the other CPU was not idle for half a second within 40\n");
        return SKIPPED;
}
