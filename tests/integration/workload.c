/*
 * A load whose events can be counted beforehand, to the last one.
 *
 * The traced processes are stopped by SIGSTOP at both ends of the load, not blocked in a read(2): a stop is reported to
 * the parent by waitpid(2), so that "ready" means that nothing is left to happen before the load, and a stopped process
 * neither restarts a system call nor makes another one when it goes on.
 *
 *   workload syscalls N [CPUS]            each process makes N calls of getppid(2) as fast as it can
 *   workload flood SECONDS RATE [CPUS]    each makes RATE calls of getppid(2) a second, 0: as fast as it can;
 *                                         SECONDS 0: until the line "stop"
 *   workload spin N RATE [CPUS]           each makes N calls, RATE a second, and keeps its CPU in between
 *   workload paced N RATE [CPUS]          each makes N calls, and sleeps in between: in each millisecond no more than RATE / 1000,
 *                                         so that a CPU that is taken away for a moment makes it last longer, and no burst
 *   workload forks N [CPUS]               each forks N children, one after the other, that exit at once
 *   workload execs N [CPUS]               the same, and each child executes this program, which exits at once
 *
 * CPUS is a list such as 0,2-3; there is one process for each, pinned to it. Without it: one for each allowed CPU.
 *
 * What is said on stdout (>) and expected on stdin (<), a line each:
 *   > ready PID...      one for each CPU, pinned and stopped: attach now
 *   < go
 *   < stop              flood with SECONDS 0 only
 *   > done COUNT...     in the order of the PIDs, which are stopped again and still there: read the counters now
 *   < go                syscalls only: the same again, and COUNT is that of this time
 *   < exit              they end, then the program, with status 0
 * End of file on stdin, or a process that dies, ends everything with status 1. Wrong arguments: 2.
 *
 * Calls that a traced process enters between "ready" and "done", and leaves too (raw_syscalls:sys_enter, sys_exit):
 *   syscalls   N getppid, 1 kill (its own stop)                                      N + 1 each time
 *   spin       the same                                                              N + 1
 *   paced      the same, and clock_nanosleep, 1000 a second
 *   flood      COUNT getppid, 1 kill; with a RATE also clock_nanosleep, at most 1000 a second
 *   forks      N clone, N wait4, 1 kill                                              2 N + 1
 *              each child: leaves clone, enters exit_group: N enters, N leaves more, if children are followed
 *   execs      as forks, and in each child one execve and what the dynamic linker does, which is not exact
 * and after "exit" each process enters exit_group, which is never left. COUNT of forks and execs is the number of
 * children that ended with status 0, which is also the number of sched_process_fork, sched_process_exit (of children)
 * and, for execs, sched_process_exec.
 *
 * The clock is read without a system call, where the vDSO knows the clock source of the machine.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC UINT64_C(1000000000)

typedef struct Shared {
        atomic_bool stop;
        atomic_bool is_over; /* no other time follows */
        uint64_t counts[CPU_SETSIZE]; /* each written by its own process, read when that has stopped */
} Shared;

typedef struct Load {
        const char *name;
        uint64_t (*run)(const struct Load *load, Shared *shared);
        int n_numbers;
        uint64_t numbers[2];
} Load;

static void fail(const char *what) {
        perror(what);
        exit(EXIT_FAILURE);
}

static uint64_t now(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

static uint64_t run_syscalls(const Load *load, Shared *shared) {
        for (uint64_t i = 0; i < load->numbers[0]; i++)
                syscall(SYS_getppid);
        return load->numbers[0];
}

/* What should have been done by now: a CPU that is taken away for a moment does not lower the rate. */
static uint64_t run_spin(const Load *load, Shared *shared) {
        uint64_t begin = now(), n = 0;

        while (n < load->numbers[0]) {
                uint64_t due = (uint64_t)((double)(now() - begin) / 1e9 * (double)load->numbers[1]);

                for (; n < due && n < load->numbers[0]; n++)
                        syscall(SYS_getppid);
        }
        return n;
}

static uint64_t run_paced(const Load *load, Shared *shared) {
        uint64_t at = now(), n = 0, each = load->numbers[1] / 1000;

        while (n < load->numbers[0]) {
                struct timespec until;

                for (uint64_t end = n + (each > 0 ? each : 1); n < end && n < load->numbers[0]; n++)
                        syscall(SYS_getppid);
                at = at + 2 * NSEC_PER_SEC / 1000 > now() ? at + NSEC_PER_SEC / 1000 : now();
                until = (struct timespec){ .tv_sec = (time_t)(at / NSEC_PER_SEC), .tv_nsec = (long)(at % NSEC_PER_SEC) };
                syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        }
        return n;
}

static uint64_t run_flood(const Load *load, Shared *shared) {
        uint64_t begin = now(), end = load->numbers[0] ? begin + load->numbers[0] * NSEC_PER_SEC : UINT64_MAX;
        uint64_t rate = load->numbers[1], n = 0;
        uint64_t tick = rate < 1000 && rate > 0 ? NSEC_PER_SEC / rate : NSEC_PER_SEC / 1000;

        for (uint64_t t = begin; t < end && !atomic_load_explicit(&shared->stop, memory_order_relaxed); t = now()) {
                /* what should have been done by now, so that a late wakeup does not lower the rate */
                uint64_t due = (uint64_t)((double)(t - begin + tick) / 1e9 * (double)rate);

                if (rate == 0)
                        due = n + 1000;
                for (; n < due && !atomic_load_explicit(&shared->stop, memory_order_relaxed); n++)
                        syscall(SYS_getppid);
                if (rate > 0) {
                        struct timespec until = { .tv_sec = (time_t)((t + tick) / NSEC_PER_SEC),
                                                  .tv_nsec = (long)((t + tick) % NSEC_PER_SEC) };

                        syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
                }
        }
        return n;
}

/* clone(2) itself: what fork(3) of the C library does around it are system calls of its own. */
static uint64_t run_children(uint64_t n_children, const char *path) {
        char *argv[] = { (char *)"workload", (char *)"nothing", NULL }, *envp[] = { NULL };
        uint64_t n = 0;

        for (uint64_t i = 0; i < n_children; i++) {
                long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
                int status;

                if (pid == 0) {
                        if (path)
                                syscall(SYS_execve, path, argv, envp);
                        syscall(SYS_exit_group, path ? 127 : 0);
                }
                if (pid < 0 || syscall(SYS_wait4, pid, &status, 0, NULL) != pid || status != 0)
                        return n;
                n++;
        }
        return n;
}

static uint64_t run_forks(const Load *load, Shared *shared) {
        return run_children(load->numbers[0], NULL);
}

static uint64_t run_execs(const Load *load, Shared *shared) {
        char path[4096];
        ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

        if (length < 0)
                return 0;
        path[length] = 0;
        return run_children(load->numbers[0], path);
}

static const Load loads[] = {
        { "syscalls", run_syscalls, 1, {} },
        { "flood", run_flood, 2, {} },
        { "spin", run_spin, 2, {} },
        { "paced", run_paced, 2, {} },
        { "forks", run_forks, 1, {} },
        { "execs", run_execs, 1, {} },
};

static void be_traced(const Load *load, Shared *shared, int cpu, int index, pid_t parent) {
        pid_t self = getpid();
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
                _exit(EXIT_FAILURE);
        if (sched_setaffinity(0, sizeof(set), &set) < 0) {
                fprintf(stderr, "workload: pinning to CPU %d: %s\n", cpu, strerror(errno));
                _exit(EXIT_FAILURE);
        }
        syscall(SYS_kill, self, SIGSTOP);
        do {
                shared->counts[index] = load->run(load, shared);
                syscall(SYS_kill, self, SIGSTOP);
        } while (!atomic_load(&shared->is_over));
        syscall(SYS_exit_group, 0);
}

static bool parse_number(const char *text, uint64_t *ret_number) {
        char *end;
        unsigned long long number;

        errno = 0;
        number = strtoull(text, &end, 10);
        if (errno != 0 || end == text || *end || *text == '-')
                return false;
        *ret_number = number;
        return true;
}

static bool parse_cpus(const char *text, cpu_set_t *ret_cpus) {
        cpu_set_t cpus;

        CPU_ZERO(&cpus);
        for (const char *p = text;; p++) {
                char *end;
                long from = strtol(p, &end, 10), to = from;

                if (end == p)
                        return false;
                if (*end == '-') {
                        p = end + 1;
                        to = strtol(p, &end, 10);
                        if (end == p)
                                return false;
                }
                if (from < 0 || to < from || to >= CPU_SETSIZE)
                        return false;
                for (; from <= to; from++)
                        CPU_SET(from, &cpus);
                p = end;
                if (!*p)
                        break;
                if (*p != ',')
                        return false;
        }
        *ret_cpus = cpus;
        return true;
}

/* One of these, or -1 */
static int read_line(const char *const *expected) {
        char line[64];

        if (!fgets(line, sizeof(line), stdin))
                return -1;
        line[strcspn(line, "\n")] = 0;
        for (int i = 0; expected[i]; i++)
                if (strcmp(line, expected[i]) == 0)
                        return i;
        fprintf(stderr, "workload: expected the line '%s' on stdin, read '%s'\n", expected[0], line);
        return -1;
}

static bool expect_line(const char *expected) {
        return read_line((const char *const[]){ expected, NULL }) == 0;
}

static bool wait_stopped(const pid_t *pids, int n_pids) {
        for (int i = 0; i < n_pids; i++) {
                int status;

                if (waitpid(pids[i], &status, WUNTRACED) != pids[i] || !WIFSTOPPED(status)) {
                        fprintf(stderr, "workload: process %d died\n", (int)pids[i]);
                        return false;
                }
        }
        return true;
}

static bool wait_exited(const pid_t *pids, int n_pids) {
        bool good = true;

        for (int i = 0; i < n_pids; i++) {
                int status;

                good = waitpid(pids[i], &status, 0) == pids[i] && status == 0 && good;
        }
        return good;
}

static bool run_once(const Load *load, Shared *shared, const pid_t *pids, int n_pids) {
        for (int i = 0; i < n_pids; i++)
                kill(pids[i], SIGCONT);
        if (load->run == run_flood && load->numbers[0] == 0) {
                if (!expect_line("stop"))
                        return false;
                atomic_store(&shared->stop, true);
        }
        if (!wait_stopped(pids, n_pids))
                return false;
        printf("done");
        for (int i = 0; i < n_pids; i++)
                printf(" %llu", (unsigned long long)shared->counts[i]);
        printf("\n");
        return true;
}

static bool conduct(const Load *load, Shared *shared, const pid_t *pids, int n_pids) {
        const char *const next[] = { "exit", load->run == run_syscalls ? "go" : NULL, NULL };
        int word;

        if (!wait_stopped(pids, n_pids))
                return false;
        printf("ready");
        for (int i = 0; i < n_pids; i++)
                printf(" %d", (int)pids[i]);
        printf("\n");
        if (!expect_line("go"))
                return false;
        do {
                if (!run_once(load, shared, pids, n_pids))
                        return false;
                word = read_line(next);
                if (word < 0)
                        return false;
        } while (word > 0);
        atomic_store(&shared->is_over, true);
        for (int i = 0; i < n_pids; i++)
                kill(pids[i], SIGCONT);
        return wait_exited(pids, n_pids);
}

static int usage(void) {
        fprintf(stderr, "usage: workload syscalls N [CPUS] | flood SECONDS RATE [CPUS] | spin N RATE [CPUS] | paced N RATE [CPUS] | "
                        "forks N [CPUS] | execs N [CPUS]\n");
        return 2;
}

int main(int argc, char **argv) {
        static pid_t pids[CPU_SETSIZE];
        int n_pids = 0;
        pid_t self = getpid();
        Load load = {};
        Shared *shared;
        cpu_set_t cpus;

        if (argc == 2 && strcmp(argv[1], "nothing") == 0)
                return EXIT_SUCCESS;
        for (size_t i = 0; argc > 1 && i < sizeof(loads) / sizeof(loads[0]); i++)
                if (strcmp(argv[1], loads[i].name) == 0)
                        load = loads[i];
        if (!load.run || argc < 2 + load.n_numbers || argc > 3 + load.n_numbers)
                return usage();
        for (int i = 0; i < load.n_numbers; i++)
                if (!parse_number(argv[2 + i], &load.numbers[i]))
                        return usage();
        if (argc == 3 + load.n_numbers) {
                if (!parse_cpus(argv[2 + load.n_numbers], &cpus))
                        return usage();
        } else if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
                fail("sched_getaffinity");

        setvbuf(stdout, NULL, _IOLBF, 0);
        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared == MAP_FAILED)
                fail("mmap");
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
                pid_t pid;

                if (!CPU_ISSET(cpu, &cpus))
                        continue;
                pid = fork();
                if (pid < 0)
                        fail("fork"); /* the others die with us, by PR_SET_PDEATHSIG */
                if (pid == 0)
                        be_traced(&load, shared, cpu, n_pids, self);
                pids[n_pids++] = pid;
        }
        if (conduct(&load, shared, pids, n_pids))
                return EXIT_SUCCESS;
        for (int i = 0; i < n_pids; i++)
                kill(pids[i], SIGKILL);
        (void)wait_exited(pids, n_pids);
        return EXIT_FAILURE;
}
