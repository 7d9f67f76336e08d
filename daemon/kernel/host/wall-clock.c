/* See wall-clock.h. */
#include "daemon/kernel/host/wall-clock.h"

#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>

#define TRIES 8        /* somebody else may run in the middle of one */
#define WIDE 4         /* times what this machine needs: then somebody else did */
#define LEAST_WIDTH 64 /* ns: clocks that tick seldom seem to need nothing */
#define ROUNDING 1     /* ns, of each reading */
#define SLEW_DIVISOR 1000 /* CLOCK_MONOTONIC_RAW is not slewed: wall time may run this part faster or slower */

static bool read_adjustment(nsec_t *ret_error, bool *ret_is_synchronized) {
        struct timex t = { .modes = 0 };
        long state = syscall(SYS_adjtimex, &t); /* the C library's calls clock_adjtime(2), which perfd may not */

        if (state < 0)
                return false;
        *ret_error = t.maxerror > 0 ? (nsec_t)t.maxerror * NSEC_PER_USEC : 0;
        *ret_is_synchronized = state != TIME_ERROR && !(t.status & STA_UNSYNC);
        return true;
}

const WallSource wall_source_host = { clock_now, read_adjustment };

/* Wall time between two readings of the clock. */
typedef struct Bracket {
        nsec_t before, wall, after;
} Bracket;

static Bracket bracket(const WallClock *w) {
        Bracket b;

        b.before = w->source->read(w->clock);
        b.wall = w->source->read(CLOCK_REALTIME);
        b.after = w->source->read(w->clock);
        return b;
}

/* CLOCK_REALTIME as the stream's clock may be set back in the middle of one. */
static nsec_t width(const Bracket *b) {
        return b->after >= b->before ? b->after - b->before : UINT64_MAX;
}

static nsec_t wide(const WallClock *w) {
        return WIDE * (w->least > LEAST_WIDTH ? w->least : LEAST_WIDTH);
}

/* The narrowest of several; the first one that is as narrow as they can be. */
static Bracket bracket_well(const WallClock *w) {
        Bracket best = bracket(w);

        for (int i = 1; i < TRIES && width(&best) > wide(w); i++) {
                Bracket b = bracket(w);

                best = width(&b) < width(&best) ? b : best;
        }
        return best;
}

static nsec_t distance(nsec_t a, nsec_t b) {
        int64_t d = (int64_t)(a - b);

        return d < 0 ? (nsec_t)-d : (nsec_t)d;
}

static nsec_t middle(const Bracket *b) {
        return b->before + width(b) / 2;
}

static nsec_t half_width(const Bracket *b) {
        return (width(b) + 1) / 2 + ROUNDING;
}

/*
 * Wall time may have been set by less than looks can see: by half the widths of this bracket and of the look's, and what is true then
 * is half a width of the look's away from what that saw.
 */
static void take(WallClock *w, const Bracket *b, nsec_t since) {
        w->half_width = half_width(b);
        w->last = (WallReading){
                .time = middle(b), .wall = b->wall, .error = w->half_width + wide(w) + 2 * (ROUNDING + 1), .since = since,
        };
        if (w->clock == CLOCK_REALTIME)
                w->last = (WallReading){ .time = b->wall, .wall = b->wall };
        if (!w->source->adjustment(&w->last.host_error, &w->last.is_synchronized))
                w->last.host_error = 0;
        w->looked = w->last.time;
}

void wall_clock_init(WallClock *w, clockid_t clock, const WallSource *source) {
        Bracket best;

        *w = (WallClock){ .source = source, .clock = clock };
        best = bracket(w);
        for (int i = 1; i < TRIES; i++) {
                Bracket b = bracket(w);

                best = width(&b) < width(&best) ? b : best;
        }
        w->least = width(&best);
        take(w, &best, 0);
}

/* By more than both readings can be wrong. */
static bool has_moved(const WallClock *w, const Bracket *b) {
        nsec_t drift = w->clock == CLOCK_MONOTONIC_RAW ? distance(middle(b), w->last.time) / SLEW_DIVISOR : 0;

        return distance(b->wall - middle(b), w->last.wall - w->last.time) > w->half_width + half_width(b) + drift;
}

bool wall_clock_look(WallClock *w) {
        Bracket b;

        if (w->clock == CLOCK_REALTIME) { /* which cannot differ from itself */
                b.before = b.wall = b.after = w->source->read(CLOCK_REALTIME);
                if (distance(b.wall, w->last.time) < WALL_READING_AGE)
                        return false;
                take(w, &b, 0);
                return true;
        }
        b = bracket_well(w);
        if (has_moved(w, &b)) {
                take(w, &b, w->looked);
                return true;
        }
        if (width(&b) > wide(w))
                return false; /* too wide to say that nothing has changed by a little */
        w->looked = b.before;
        if (b.before - w->last.time < WALL_READING_AGE)
                return false;
        take(w, &b, 0);
        return true;
}
