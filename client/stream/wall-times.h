/*
 * What wall time was at times of a stream's clock, by the readings that came with it. A reading holds from the time on at which wall
 * time was set, if it was, for what comes from then on; so the last ones in which it was set are kept, for items that are older.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/perfd.h"

#define WALL_TIMES_KEPT 8 /* times of being set: how often that can be within the latency of a stream, and be told apart */

typedef struct WallTime {
        perfd_wall_reading reading; /* the newest that holds */
        uint64_t since, set; /* wall time was set between these times of the clock; 0: it was not */
} WallTime;

typedef struct WallTimes {
        WallTime kept[WALL_TIMES_KEPT]; /* one for each time that it was set; the oldest first */
        size_t n;
        int64_t offset; /* of a daemon that sends no readings: wall time - clock when the stream began */
        bool drifts;    /* the clock is not slewed as wall time is */
} WallTimes;

void wall_times_add(WallTimes *w, const perfd_wall_reading *reading);
/* ns since 1970 and its error, UINT64_MAX: there was no reading yet. */
uint64_t wall_times_at(const WallTimes *w, uint64_t time, uint64_t *ret_error);
