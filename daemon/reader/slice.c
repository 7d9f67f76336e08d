/*
 * What a command asks a reader to do may take long: with attr.inherit, Linux reads and switches all children of each fd. So it is
 * done in slices, and one system call is the least that a slice has. Between two of them what was written meanwhile is read, and
 * others have the CPU for a moment: a real-time thread would keep it from main too, which has others to answer.
 */
#include "daemon/reader/cycle.h"

#include <time.h>

#define SLICE NSEC_PER_MSEC
#define SLICES_OF_OTHERS 10 /* a pause is behind each slice of a client that is limited, and behind so many of all others */
#define PAUSE_MIN (2 * NSEC_PER_MSEC) /* and as long as what came before it, because both readers and main may have one CPU to run on, */
#define PAUSE_MAX (20 * NSEC_PER_MSEC) /* but no longer than a ring has room for */

void reader_begin_slices(Reader *r) {
        r->slice_began = r->paused = clock_now(CLOCK_MONOTONIC);
}

static void reader_pause(nsec_t now, nsec_t worked) {
        const nsec_t wait = worked < PAUSE_MIN ? PAUSE_MIN : worked > PAUSE_MAX ? PAUSE_MAX : worked;
        const struct timespec end = nsec_timespec(now + wait);

        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
}

int reader_end_slice(Reader *r) {
        const bool is_limited = r->command && r->command->budget;
        const nsec_t most = is_limited ? SLICE : SLICES_OF_OTHERS * SLICE;
        nsec_t now = clock_now(CLOCK_MONOTONIC);
        int error;

        if (now - r->slice_began < SLICE)
                return 0;
        heartbeat_move(&r->heartbeat);
        counter_add(&r->n_slices, 1);
        if (now - r->paused >= most) {
                reader_pause(now, now - r->paused);
                r->paused = clock_now(CLOCK_MONOTONIC);
        }
        error = reader_drain(r);
        r->slice_began = clock_now(CLOCK_MONOTONIC);
        return error;
}
