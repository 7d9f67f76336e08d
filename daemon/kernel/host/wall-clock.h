/*
 * What wall time is at times of another clock. Both are read together, and what they differ by stays: the kernel slews
 * CLOCK_MONOTONIC and CLOCK_BOOTTIME as it slews CLOCK_REALTIME, so that only a wall clock that is set changes it. It is looked at
 * behind everything that was received and before anything of it is told, so that each time that is told has a reading that holds.
 * One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "daemon/base/clock.h"

#define WALL_READING_AGE (10 * NSEC_PER_SEC) /* after which there is a new one */

typedef struct WallReading {
        nsec_t time;  /* of the other clock */
        nsec_t wall;  /* CLOCK_REALTIME then */
        nsec_t error; /* by which `wall` - `time` can be wrong, now and until the next reading */
        nsec_t since; /* the wall clock was set after this time and before `time`; 0: it was not */
        nsec_t host_error; /* adjtimex(2), maxerror; 0: not known */
        bool is_synchronized; /* adjtimex(2): not STA_UNSYNC */
} WallReading;

/* clock_gettime(2) and adjtimex(2), or a test's. */
typedef struct WallSource {
        nsec_t (*read)(clockid_t clock);
        bool (*adjustment)(nsec_t *ret_error, bool *ret_is_synchronized);
} WallSource;

extern const WallSource wall_source_host;

typedef struct WallClock {
        const WallSource *source;
        clockid_t clock;
        WallReading last;
        nsec_t half_width; /* of the bracket in which it was read */
        nsec_t least;  /* between two readings of `clock` with one of wall time in between: what this machine needs */
        nsec_t looked; /* the last time at which nothing had changed */
} WallClock;

/* With a first reading, `last`. */
void wall_clock_init(WallClock *w, clockid_t clock, const WallSource *source);
/* True: `last` is a new one, because wall time was set, or because the one before is of WALL_READING_AGE. Some 100 ns. */
bool wall_clock_look(WallClock *w);
