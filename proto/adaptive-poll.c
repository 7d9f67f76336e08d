#include "proto/adaptive-poll.h"

#define SLACK_LEAST ADAPTIVE_POLL_SLACK /* at a tick itself the daemon looks which CPUs are idle: it is not for us to wake one */
#define SLACK_LESS 1000 /* ns: about one look of sixteen is too early */
#define SLACK_MORE 16000
#define SLACK_SHARE 4 /* of a tick: not more */
#define NEEDED_LEAST 2
#define NEEDED_MOST 64

static uint64_t adaptive_poll_most(const AdaptivePoll *p) {
        return p->tick.length / SLACK_SHARE;
}

/* Ticks may be nothing to wait for. */
static void adaptive_poll_doubt(AdaptivePoll *p) {
        p->needed = 2 * p->needed < NEEDED_MOST ? 2 * p->needed : NEEDED_MOST;
}

/* It waits for the second tick by itself, behind one at which nothing came. */
static bool adaptive_poll_forgives(const AdaptivePoll *p) {
        return p->n_missed == 1 && p->due > 0;
}

/* Something came, for which it was rung, or not: was it late, later than can be waited for, or nothing to be expected? */
static void adaptive_poll_learn(AdaptivePoll *p, uint64_t now, bool is_rung) {
        const uint64_t most = adaptive_poll_most(p);
        bool is_late = p->n_missed > 0 ? now < p->tick.next + p->tick.length : is_rung && now < p->due;

        if (is_late && p->slack < most) {
                p->slack = p->slack + SLACK_MORE < most ? p->slack + SLACK_MORE : most;
        } else if (!is_late && adaptive_poll_forgives(p)) {
                adaptive_poll_doubt(p);
        } else if (is_late || p->n_missed > 0) {
                p->streak = 0;
                adaptive_poll_doubt(p);
        } else if (p->due > 0 && now >= p->due) {
                p->slack -= p->slack >= SLACK_LEAST + SLACK_LESS ? SLACK_LESS : 0;
                p->needed -= p->needed > NEEDED_LEAST;
        }
}

/* Something came: was it at the tick behind the last one at which something did? */
static void adaptive_poll_count(AdaptivePoll *p, uint64_t now, uint64_t next) {
        const unsigned waited = adaptive_poll_forgives(p) ? 2 : 1;

        if (now >= p->tick.next + waited * p->tick.length)
                p->streak = 0;
        else if (next > p->tick.next)
                p->streak++;
}

void adaptive_poll_looked(AdaptivePoll *p, const RingReader *r, uint64_t now, size_t n, bool is_rung) {
        RingTick tick = ring_reader_tick(r);

        if (n == 0) {
                p->n_missed += p->due > 0 && now >= p->due;
        } else {
                adaptive_poll_count(p, now, tick.next);
                if (n <= r->size / 2) /* else it was rung for a ring that gets full */
                        adaptive_poll_learn(p, now, is_rung);
                p->n_missed = 0;
                p->tick = tick;
        }
        p->due = 0;
}

/* It is worth it, and no longer than a tick, whatever the daemon says. Who never doubted forgives one look in vain. */
static bool adaptive_poll_can_wait(const AdaptivePoll *p, uint64_t now, uint64_t due) {
        return p->streak >= p->needed && p->n_missed <= (p->needed == NEEDED_LEAST) && due > now &&
               due - now <= p->tick.length + adaptive_poll_most(p);
}

uint64_t adaptive_poll_sleep(AdaptivePoll *p, RingReader *r, uint64_t now) {
        const uint64_t most = adaptive_poll_most(p), slack = p->slack < most ? p->slack : most;
        const uint64_t due = p->tick.next + p->n_missed * p->tick.length + slack;
        const uint8_t *bytes;
        size_t n;

        if (p->due > 0)
                return p->due; /* it said so since it looked last: until it looks nothing else holds, be it over */
        if (ring_reader_peek(r, &bytes, &n) != 0 || n > 0 || !adaptive_poll_can_wait(p, now, due))
                return UINT64_MAX; /* what came since it looked is rung for, and was not late */
        p->due = due;
        ring_reader_set_due(r, due);
        return due;
}
