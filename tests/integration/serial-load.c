/*
 * System calls that each carry a serial number, so many as it is told, on each of its CPUs: what traces them can be asked for
 * each one.
 *
 *   serial-load CPUS          a list of CPU numbers with commas: one process for each, pinned to it
 *
 * What is said on stdout (>) and expected on stdin (<), a line each:
 *   > ready PID...            in the order of the CPUs; each process is stopped
 *   < go FORKS PACE FIRST COUNT FIRST COUNT...
 *                             each makes COUNT calls, with the serial numbers from FIRST on. FORKS: half of them are made by
 *                             so many children, one after the other. PACE: it sleeps for 100 us after each so many, 0: never
 *   > done                    they are stopped again
 * The end of stdin ends it with status 0. A process that dies ends it with status 1.
 *
 * Call s: getpriority(2) with which = 1000 + s % 4 and who = s if s is a multiple of 3, else lseek(2) of no file, with whence =
 * 1000 + s % 4 and offset = s. Both are refused, and nothing of this program or of its C library makes such a call otherwise.
 * Before each twelfth call it calls mark(s), for probes.
 */
#include <sched.h>
#include <signal.h>
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

#define CPUS_MAX 64
#define PAUSE_NS 100000

typedef struct Order {
        uint64_t n_forks, pace, first, count;
} Order;

__attribute__((noinline)) static void mark(uint64_t serial) {
        __asm__ volatile("" : : "r"(serial) : "memory");
}

static void call(uint64_t first, uint64_t count, uint64_t pace) {
        for (uint64_t s = first; s < first + count; s++) {
                if (s % 12 == 0)
                        mark(s);
                if (s % 3 == 0)
                        syscall(SYS_getpriority, (int)(1000 + s % 4), (int)s);
                else
                        syscall(SYS_lseek, -1, (long)s, (int)(1000 + s % 4));
                if (pace > 0 && (s - first) % pace == pace - 1)
                        syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
        }
}

/* Half of it by children. How much of it each makes is of no interest. */
static bool follow(const Order *o) {
        uint64_t each = o->n_forks ? o->count / 2 / o->n_forks : 0, first = o->first;

        for (uint64_t i = 0; i < o->n_forks; i++, first += each) {
                pid_t pid = fork();
                int status;

                if (pid == 0) {
                        call(first, each, o->pace);
                        _exit(0);
                }
                if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
                        return false;
        }
        call(first, o->first + o->count - first, o->pace);
        return true;
}

static void be_traced(const volatile Order *order, int cpu, pid_t parent) {
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent || sched_setaffinity(0, sizeof(set), &set) < 0)
                _exit(1);
        for (;;) {
                Order now;

                raise(SIGSTOP);
                now = *order;
                if (!follow(&now))
                        _exit(1);
        }
}

static bool wait_stopped(const pid_t *pids, int n) {
        for (int i = 0; i < n; i++) {
                int status;

                if (waitpid(pids[i], &status, WUNTRACED) != pids[i] || !WIFSTOPPED(status))
                        return false;
        }
        return true;
}

static bool read_orders(Order *orders, int n) {
        unsigned long long forks, pace, first, count;

        if (scanf(" go %llu %llu", &forks, &pace) != 2)
                return false;
        for (int i = 0; i < n; i++) {
                if (scanf("%llu %llu", &first, &count) != 2)
                        return false;
                orders[i] = (Order){ .n_forks = forks, .pace = pace, .first = first, .count = count };
        }
        return true;
}

int main(int argc, char **argv) {
        pid_t pids[CPUS_MAX] = { 0 }, self = getpid();
        Order *orders;
        int n = 0;

        if (argc != 2) {
                fputs("usage: serial-load CPU[,CPU...]\n", stderr);
                return 2;
        }
        orders = mmap(NULL, sizeof(*orders) * CPUS_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (orders == MAP_FAILED)
                return 1;
        for (char *word = strtok(argv[1], ","); word && n < CPUS_MAX; word = strtok(NULL, ","), n++) {
                pids[n] = fork();
                if (pids[n] == 0)
                        be_traced(&orders[n], atoi(word), self);
                if (pids[n] < 0)
                        return 1;
        }
        if (!wait_stopped(pids, n))
                return 1;
        printf("ready");
        for (int i = 0; i < n; i++)
                printf(" %d", (int)pids[i]);
        for (;;) {
                puts("");
                fflush(stdout);
                if (!read_orders(orders, n))
                        break;
                for (int i = 0; i < n; i++)
                        kill(pids[i], SIGCONT);
                if (!wait_stopped(pids, n))
                        return 1;
                printf("done");
        }
        for (int i = 0; i < n; i++)
                kill(pids[i], SIGKILL);
        return 0;
}
