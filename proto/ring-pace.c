#include "proto/ring-pace.h"

#define SLACK_LEAST RING_PACE_SLACK /* at a tick itself the daemon looks which CPUs are idle: it is not for us to wake one */
#define SLACK_LESS 1000 /* ns: about one look of sixteen is too early */
#define SLACK_MORE 16000
#define SLACK_SHARE 4 /* of a tick: not more */
#define NEEDED_LEAST 2
#define NEEDED_MOST 64

static uint64_t ring_pace_most(const RingPace *p) {
        return p->tick.length / SLACK_SHARE;
}

/* Ticks are nothing to wait for. */
static void ring_pace_give_up(RingPace *p) {
        p->streak = 0;
        p->needed = 4 * p->needed < NEEDED_MOST ? 4 * p->needed : NEEDED_MOST;
}

/* Something came, for which it was rung, or not: was it late, later than can be waited for, or nothing to be expected? */
static void ring_pace_learn(RingPace *p, uint64_t now, bool is_rung) {
        const uint64_t most = ring_pace_most(p);
        bool is_late = p->has_missed ? now < p->tick.next + p->tick.length : is_rung && now < p->due;

        if (is_late && p->slack < most) {
                p->slack = p->slack + SLACK_MORE < most ? p->slack + SLACK_MORE : most;
        } else if (is_late || p->has_missed) {
                ring_pace_give_up(p);
        } else if (p->due > 0 && now >= p->due) {
                p->slack -= p->slack >= SLACK_LEAST + SLACK_LESS ? SLACK_LESS : 0;
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

/* It is worth it, and no longer than a tick, whatever the daemon says. */
static bool ring_pace_can_wait(const RingPace *p, uint64_t now, uint64_t due) {
        return p->streak >= p->needed && !p->has_missed && due > now && due - now <= p->tick.length + ring_pace_most(p);
}

uint64_t ring_pace_sleep(RingPace *p, RingReader *r, uint64_t now) {
        const uint64_t most = ring_pace_most(p), due = p->tick.next + (p->slack < most ? p->slack : most);
        const uint8_t *bytes;
        size_t n;

        if (p->due > 0)
                return p->due; /* it said so since it looked last: until it looks nothing else holds, be it over */
        if (ring_reader_peek(r, &bytes, &n) != 0 || n > 0 || !ring_pace_can_wait(p, now, due))
                return UINT64_MAX; /* what came since it looked is rung for, and was not late */
        p->due = due;
        ring_reader_set_due(r, due);
        return due;
}
