#include "client/stream/wall-times.h"

#include <string.h>

#include "client/stream/stream.h"

#define DRIFT_DIVISOR 1000 /* PROTOCOL.md, "Clocks": of monotonic-raw */

void wall_times_add(WallTimes *w, const perfd_wall_reading *reading) {
        if (w->n > 0 && reading->since == 0) {
                w->kept[w->n - 1].reading = *reading;
                return;
        }
        if (w->n == WALL_TIMES_KEPT) {
                memmove(w->kept, w->kept + 1, (WALL_TIMES_KEPT - 1) * sizeof(*w->kept));
                w->n--;
        }
        w->kept[w->n++] = (WallTime){ .reading = *reading, .since = reading->since,
                                      .set = reading->since > 0 ? reading->time : 0 };
}

static uint64_t distance(uint64_t a, uint64_t b) {
        int64_t d = (int64_t)(a - b);

        return d < 0 ? -(uint64_t)d : (uint64_t)d;
}

static uint64_t at(const WallTimes *w, const perfd_wall_reading *r, uint64_t time, uint64_t *ret_error) {
        *ret_error = r->error + (w->drifts ? distance(time, r->time) / DRIFT_DIVISOR : 0);
        return r->wall + (time - r->time);
}

uint64_t wall_times_at(const WallTimes *w, uint64_t time, uint64_t *ret_error) {
        uint64_t wall, before, error;
        size_t i = w->n;

        if (i == 0) {
                *ret_error = UINT64_MAX;
                return time + (uint64_t)w->offset;
        }
        for (i--; i > 0 && time <= w->kept[i].since; i--)
                ;
        wall = at(w, &w->kept[i].reading, time, ret_error);
        if (i == 0 || time >= w->kept[i].set)
                return wall;
        before = at(w, &w->kept[i - 1].reading, time, &error); /* it was set in between: one of both is true */
        *ret_error = distance(wall, before) + (error > *ret_error ? error : *ret_error);
        return wall;
}

int perfd_stream_wall(const perfd_client *c, uint64_t time, uint64_t *ret_wall, uint64_t *ret_error) {
        uint64_t error;

        if (!c->stream || !c->stream->started)
                return PERFD_E_STATE;
        *ret_wall = wall_times_at(&c->stream->wall, time, ret_error ? ret_error : &error);
        return 0;
}
