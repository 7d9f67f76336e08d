/* Time in nanoseconds, and the clock that ring buffers, batches and streams share. Any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

typedef uint64_t nsec_t;

#define NSEC_PER_USEC ((nsec_t)1000)
#define NSEC_PER_MSEC ((nsec_t)1000000)
#define NSEC_PER_SEC ((nsec_t)1000000000)

static inline nsec_t timespec_nsec(struct timespec ts) {
        return (nsec_t)ts.tv_sec * NSEC_PER_SEC + (nsec_t)ts.tv_nsec;
}

static inline struct timespec nsec_timespec(nsec_t ns) {
        return (struct timespec){ .tv_sec = (time_t)(ns / NSEC_PER_SEC), .tv_nsec = (long)(ns % NSEC_PER_SEC) };
}

/* clock_gettime(2) of a clock that exists: it cannot fail. */
static inline nsec_t clock_now(clockid_t clock) {
        struct timespec ts;

        clock_gettime(clock, &ts);
        return timespec_nsec(ts);
}

/* What perf_event_set_clock() lets every perf event have; others only those that no NMI writes, as software events. */
static inline bool clock_is_nmi_safe(clockid_t clock) {
        return clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW;
}
