/* For benchmarks: CPU time of this thread and, where the machine counts them, its instructions in user space. */
#pragma once

#include <linux/perf_event.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/clock.h"

typedef struct Stopwatch {
        nsec_t spent, began;
        uint64_t instructions, instructions_began;
        uint64_t n; /* how often it ran */
} Stopwatch;

extern int stopwatch_counter; /* fd, -1: this machine does not count instructions */

/* This thread, to the last CPU that it may run on. */
static inline void stopwatch_pin(void) {
        cpu_set_t allowed, one;
        int last = -1;

        if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
                return;
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
                if (CPU_ISSET(cpu, &allowed))
                        last = cpu;
        CPU_ZERO(&one);
        CPU_SET(last, &one);
        (void)sched_setaffinity(0, sizeof(one), &one); /* only steadier numbers */
}

static inline void stopwatch_open_counter(void) {
        struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_INSTRUCTIONS,
                                        .size = sizeof(attr), .exclude_kernel = 1, .exclude_hv = 1 };

        stopwatch_counter = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static inline uint64_t stopwatch_count(void) {
        uint64_t count;

        return stopwatch_counter >= 0 && read(stopwatch_counter, &count, sizeof(count)) == sizeof(count) ? count : 0;
}

static inline void stopwatch_start(Stopwatch *w) {
        w->instructions_began = stopwatch_count();
        w->began = clock_now(CLOCK_THREAD_CPUTIME_ID);
}

static inline void stopwatch_stop(Stopwatch *w) {
        w->spent += clock_now(CLOCK_THREAD_CPUTIME_ID) - w->began;
        w->instructions += stopwatch_count() - w->instructions_began;
        w->n++;
}

/* What it measures each time that it runs, of itself: ns. */
static inline double stopwatch_own(void) {
        Stopwatch w = { .spent = 0 };

        while (w.n < 1000) {
                stopwatch_start(&w);
                stopwatch_stop(&w);
        }
        return (double)w.spent / (double)w.n;
}

/* Without that. */
static inline double stopwatch_spent(const Stopwatch *w, double own) {
        double spent = (double)w->spent - own * (double)w->n;

        return spent > 0 ? spent : 0;
}
