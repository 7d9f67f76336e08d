/*
 * The load: one process, pinned to one CPU, that makes calls of getppid(2) and says how long they took it.
 *
 *     flood SECONDS RATE CPU      RATE calls a second; 0: as fast as it can
 *
 * Between two calls it spins on the clock, which the vDSO reads without a system call. So calls are spread evenly, the
 * CPU is never idle, and what there is to be traced is exact: COUNT calls and the kill(2) by which the process stops
 * itself. The first argument of a call is its number modulo 100: `args[0] == 7` is true for one in a hundred.
 *
 * Said on stdout (>) and expected on stdin (<):
 *     > ready PID          stopped by SIGSTOP: attach now
 *     < go
 *     > done COUNT NS      stopped again; ns of real time in COUNT calls, with the clock read before and after
 *     < exit
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/clock.h"

#define AT_ONCE 1000 /* calls between two looks at the clock, flat out */

typedef struct Result {
        uint64_t n_calls;
        nsec_t busy;
} Result;

static void fail(const char *what) {
        perror(what);
        exit(EXIT_FAILURE);
}

static Result flood(nsec_t duration, uint64_t rate) {
        nsec_t begin = clock_now(CLOCK_MONOTONIC), now = begin;
        Result result = { .n_calls = 0 };

        while (now - begin < duration) {
                /* what should have been done by now: whoever takes the CPU away does not lower the rate */
                uint64_t due = (uint64_t)((double)(now - begin) / 1e9 * (double)rate);
                nsec_t before = now;

                if (rate == 0)
                        due = result.n_calls + AT_ONCE;
                if (result.n_calls >= due) {
                        now = clock_now(CLOCK_MONOTONIC);
                        continue;
                }
                for (; result.n_calls < due; result.n_calls++)
                        syscall(SYS_getppid, result.n_calls % 100);
                now = clock_now(CLOCK_MONOTONIC);
                result.busy += now - before;
        }
        return result;
}

static void be_traced(nsec_t duration, uint64_t rate, int cpu, pid_t parent, Result *shared) {
        pid_t self = getpid();
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent || sched_setaffinity(0, sizeof(set), &set) < 0)
                _exit(EXIT_FAILURE);
        syscall(SYS_kill, self, SIGSTOP);
        *shared = flood(duration, rate);
        syscall(SYS_kill, self, SIGSTOP);
        syscall(SYS_exit_group, 0);
}

static void expect_line(const char *expected) {
        char line[16];

        if (!fgets(line, sizeof(line), stdin) || strncmp(line, expected, strlen(expected)) != 0)
                exit(EXIT_FAILURE); /* the child dies with us */
}

static void wait_stopped(pid_t pid) {
        int status;

        if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
                fail("flood: the traced process died");
}

int main(int argc, char **argv) {
        Result *result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        pid_t pid, self = getpid();
        int status;

        if (argc != 4) {
                fprintf(stderr, "usage: flood SECONDS RATE CPU\n");
                return 2;
        }
        if (result == MAP_FAILED || (pid = fork()) < 0)
                fail("flood");
        if (pid == 0)
                be_traced((nsec_t)(atof(argv[1]) * 1e9), strtoull(argv[2], NULL, 0), atoi(argv[3]), self, result);
        setvbuf(stdout, NULL, _IOLBF, 0);
        wait_stopped(pid);
        printf("ready %d\n", (int)pid);
        expect_line("go");
        kill(pid, SIGCONT);
        wait_stopped(pid);
        printf("done %llu %llu\n", (unsigned long long)result->n_calls, (unsigned long long)result->busy);
        expect_line("exit");
        kill(pid, SIGCONT);
        return waitpid(pid, &status, 0) == pid && status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
