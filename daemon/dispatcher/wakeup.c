/*
 * When subscribers are woken: at the end of a cycle, and not more often than their latency requires. The readers' ticks are those of
 * whoever requested the lowest latency of a CPU; others have their items in their memory or outbox meanwhile, and are woken at
 * ticks of their own, half of their latency at most, because an item may have waited as long for its reader and for other CPUs.
 */
#include "daemon/dispatcher/cycle.h"

nsec_t channel_choose_tick(nsec_t latency) {
        return latency / 2 < READER_TICK ? 0 : reader_longest_tick(READER_TICK, latency / 2);
}

/* Its subscribers were woken in this tick already. */
static bool channel_may_wait(const Dispatcher *d, const Channel *c) {
        return channel_has_own_tick(d, c) && clock_now(CLOCK_MONOTONIC) / c->tick == c->woken_at / c->tick;
}

static int channel_wake(Dispatcher *d, Channel *c) {
        int r = 0;

        c->woken_at = c->tick ? clock_now(CLOCK_MONOTONIC) : 0;
        for (Subscriber *s = c->subscribers, *next; s && r >= 0; s = next) {
                next = s->next; /* subscriber_send() may free it */
                if (s->wakeup_pending)
                        r = subscriber_send(d, s);
        }
        return r;
}

int dispatcher_end_cycle(Dispatcher *d) {
        Channel *to_wake = TAKE_PTR(d->to_wake);
        int r = 0;

        d->in_cycle = false;
        d->next_wakeup = UINT64_MAX;
        while (to_wake) {
                Channel *c = to_wake;

                to_wake = c->next_to_wake;
                c->is_to_wake = false;
                if (channel_may_wait(d, c)) {
                        const nsec_t then = c->woken_at - c->woken_at % c->tick + c->tick;

                        dispatcher_wake_later(d, c);
                        d->next_wakeup = then < d->next_wakeup ? then : d->next_wakeup;
                } else if (r >= 0) {
                        r = channel_wake(d, c);
                }
        }
        return r;
}

nsec_t dispatcher_until_wakeup(const Dispatcher *d) {
        nsec_t now;

        if (d->next_wakeup == UINT64_MAX)
                return UINT64_MAX;
        now = clock_now(CLOCK_MONOTONIC);
        return d->next_wakeup > now ? d->next_wakeup - now : 0;
}
