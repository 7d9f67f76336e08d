/*
 * When subscribers are woken: at the end of a cycle, and not more often than their latency requires. The readers' ticks are those of
 * whoever requested the lowest latency of a CPU; others have their items in their memory or outbox meanwhile, and are woken at
 * ticks of their own, half of their latency at most, because an item may have waited as long for its reader and for other CPUs.
 * These are multiples of the shortest tick of the readers, at which somebody is awake anyway: so they are longer than a third of
 * the latency, and a subscriber is woken at most three times in it. Who cannot skip a tick of the readers is woken at each, less
 * than four times in its latency.
 */
#include "daemon/dispatcher/cycle.h"

/* When its subscribers, which were woken in this tick already, are to be woken again; 0: now. */
static nsec_t channel_next_wakeup(const Dispatcher *d, const Channel *c) {
        const nsec_t shortest = atomic_load_explicit(&d->dispatching.tick, memory_order_relaxed);
        nsec_t tick, now;

        if (!channel_has_own_tick(d, c))
                return 0;
        tick = c->tick_most - c->tick_most % shortest;
        now = clock_now(CLOCK_MONOTONIC);
        return now / tick == c->woken_at / tick ? now - now % tick + tick : 0;
}

static int channel_wake(Dispatcher *d, Channel *c) {
        int r = 0;

        c->woken_at = c->tick_most ? clock_now(CLOCK_MONOTONIC) : 0;
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
                const nsec_t then = channel_next_wakeup(d, c);

                to_wake = c->next_to_wake;
                c->is_to_wake = false;
                if (then > 0) {
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
