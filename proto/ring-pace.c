#include "proto/ring-pace.h"

#define SLACK_LESS 1000 /* ns: about one look of sixteen is too early */
#define SLACK_MORE 16000
#define SLACK_SHARE 4 /* of a tick: not more */
#define NEEDED_LEAST 2
#define NEEDED_MOST 64

/* Something came, for which it was rung, or not: was it late, or is there nothing to be expected at ticks? */
static void ring_pace_learn(RingPace *p, uint64_t now, bool is_rung) {
        const uint64_t most = p->tick.length / SLACK_SHARE;
        bool is_late = p->has_missed ? now < p->tick.next + p->tick.length : is_rung && now < p->due;

        if (is_late) {
                p->slack = p->slack + SLACK_MORE < most ? p->slack + SLACK_MORE : most;
        } else if (p->has_missed) {
                p->needed = 4 * p->needed < NEEDED_MOST ? 4 * p->needed : NEEDED_MOST;
        } else if (p->due > 0 && now >= p->due) {
                p->slack -= p->slack > SLACK_LESS ? SLACK_LESS : 0;
                p->needed -= p->needed > NEEDED_LEAST;
        }
}

void ring_pace_looked(RingPace *p, const RingReader *r, uint64_t now, size_t n, bool is_rung) {
        RingTick tick = ring_reader_tick(r);

        if (n == 0) {
                p->has_missed |= p->due > 0 && now >= p->due;
        } else {
                if (n <= r->size / 2) /* else it was rung for a ring that gets full */
                        ring_pace_learn(p, now, is_rung);
                p->has_missed = false;
                if (now >= p->tick.next + p->tick.length + p->slack)
                        p->streak = 0;
                else if (tick.next > p->tick.next)
                        p->streak++;
                p->tick = tick;
        }
        p->due = 0;
}

uint64_t ring_pace_sleep(RingPace *p, RingReader *r, uint64_t now) {
        const uint64_t due = p->tick.next + p->slack;

        /* whatever the daemon says: no longer than a tick */
        if (p->streak < p->needed || p->has_missed || due <= now || due - now > p->tick.length + p->slack)
                return UINT64_MAX;
        p->due = due;
        ring_reader_set_due(r, due);
        return due;
}
