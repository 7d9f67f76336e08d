/*
 * For flame and export: how long threads did not run, by the stacks with which they went, from the context switches of all CPUs in the
 * order of time. A thread is out from the switch that takes its CPU to the next one that gives it a CPU. Memory is bounded by the number
 * of distinct threads. One thread at a time.
 */
#pragma once

#include <stdbool.h>

#include "client/profile/profile.h"

/* sched:sched_switch. Threads are numbered as there, in the pid namespace of the host; 0 is an idle one, which is never out. */
typedef struct OffCpuSwitch {
        uint64_t time;          /* ns */
        uint32_t prev, next;
        bool has_ended;         /* prev does not come back */
        uint32_t task;          /* of the profile: who prev is */
        const uint32_t *frames; /* of the profile, from the outermost to the innermost: where prev went */
        size_t n_frames;
} OffCpuSwitch;

typedef struct OffCpuCounts {
        uint64_t n_added;     /* times that a thread was out, from switch to switch */
        uint64_t n_open;      /* threads that were out at the end: counted up to it */
        uint64_t open_nsec;   /* of these */
        uint64_t n_missed;    /* a thread went that was out already: its return is missing, and that time is not counted */
        uint64_t n_backwards; /* a thread came back before it went: not counted */
} OffCpuCounts;

typedef struct OffCpu OffCpu;

/* The profile has one value, ns, and stays the caller's. NULL: no memory. */
OffCpu *off_cpu_new(Profile *p);
OffCpu *off_cpu_free(OffCpu *o); /* NULL */

/* 0; -ENOMEM or PROFILE_E_*, and then the times so far stay as they were. */
int off_cpu_add(OffCpu *o, const OffCpuSwitch *s);
/* The end of the recording is the time of its last switch: who is out is counted up to it, and nobody is out any more. The same codes. */
int off_cpu_end(OffCpu *o);
const OffCpuCounts *off_cpu_counts(const OffCpu *o);
