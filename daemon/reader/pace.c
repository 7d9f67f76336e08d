/*
 * How often a reader drains its ring.
 *
 * A wakeup costs as much as a thousand samples. So a reader sleeps up to the lowest latency of what is wanted of its ring, or until
 * so much may have come that a late reader would lose some: the rate is known from the drains before, and what comes faster wakes
 * the reader by the ring's watermark. After a drain in vain the wait is doubled, up to the latency.
 *
 * Waits are ticks: READER_TICK, or a lower latency, times a power of two, on the monotonic clock. So the ticks of a CPU with few
 * records are ticks of all others too: readers wake together, and the merge has all of their batches at once. A reader for which
 * the merge waits reports at the shortest tick of all readers, as long as that lasts; this costs half of asking it each time.
 *
 * The first record after a quiet time waits for the next look at the ring: the watermark of a ring cannot be changed, and a wakeup
 * for each record would cost the traced program more than everything else. A reader that has found nothing within its longest tick
 * becomes dormant: it sleeps without a timeout, and the dispatcher looks at the rings of all dormant readers at once
 * (dispatcher/dormant.c). So quiet CPUs cost one wakeup of one of them for each tick, and idle CPUs none.
 */
#include "daemon/reader/cycle.h"

#define UNWANTED_LATENCY (128 * NSEC_PER_MSEC) /* of a ring that fills although nobody wants its records */
#define DORMANT_FROM (16 * NSEC_PER_MSEC) /* ns: waking a reader by another thread delays its records: not those of shorter ticks */
#define TICK_SHARE 8 /* of a ring: what a tick may bring; of the default ring about what its reader may dispatch by itself */

static void reader_publish_tick(Reader *r, nsec_t tick) {
        if (tick != atomic_load_explicit(&r->told_tick, memory_order_relaxed))
                atomic_store_explicit(&r->told_tick, tick, memory_order_relaxed);
}

void reader_set_default_pace(Reader *r) {
        r->wait = r->tick = r->tick_min = r->tick_max = r->base_tick;
        r->is_in_vain = false;
        r->paced_at = 0;
        atomic_store_explicit(&r->told_tick, r->tick, memory_order_relaxed); /* the dispatcher may look meanwhile */
}

void reader_set_pace(Reader *r) {
        const nsec_t latency = r->snapshot->cpus[r->slot].latency ?: UNWANTED_LATENCY;

        r->tick_min = latency < r->base_tick ? latency : r->base_tick;
        r->tick_max = reader_longest_tick(r->tick_min, latency);
        r->wait = r->tick = r->tick_min; /* until it is known how much comes */
        r->is_in_vain = false;
        r->paced_at = 0;
        reader_publish_tick(r, r->tick);
}

/* Behind a look that found records. */
static void reader_fit_tick(Reader *r, nsec_t now) {
        const uint64_t bytes = r->ring.tail - r->paced_tail, share = r->ring.size / TICK_SHARE;
        const nsec_t over = now - r->paced_at;
        nsec_t tick = 2 * r->tick <= r->tick_max ? 2 * r->tick : r->tick;

        if (r->paced_at > 0 && over < r->tick_min && bytes < share)
                return; /* too little to tell, as when it was asked just behind a look */
        if (r->paced_at > 0) {
                while (tick > r->tick_min && (double)bytes * (double)tick > (double)over * (double)share)
                        tick /= 2;
                r->tick = tick;
        }
        r->paced_tail = r->ring.tail;
        r->paced_at = now;
}

/* The shortest tick of all readers that have something to say, but not longer than one of its own: of `tick` while records come. */
static nsec_t reader_along_tick(const Reader *r, bool came) {
        const nsec_t tick = atomic_load_explicit(&r->dispatching->tick, memory_order_relaxed), own = came ? r->tick : r->tick_max;

        return tick > 0 && tick < own ? tick : own;
}

/*
 * Who was woken for something else before its time has not looked in vain; nor has who finds nothing at its time because what
 * came since the last tick was read before.
 */
void reader_choose_wait(Reader *r, bool along, bool had_records) {
        const nsec_t now = clock_now(CLOCK_MONOTONIC);
        const bool is_early = now < r->next_look, came = had_records || r->has_read_early;

        if (had_records)
                reader_fit_tick(r, now);
        r->has_read_early = is_early && came;
        if (is_early && !had_records && !along)
                return;
        r->is_in_vain = !came && !along;
        reader_publish_tick(r, came ? r->tick : r->tick_max);
        if (along)
                r->wait = reader_along_tick(r, came);
        else if (came)
                r->wait = r->tick;
        else
                r->wait = 2 * r->wait < r->tick_max ? 2 * r->wait : r->tick_max;
}

/* Who found nothing looks apart from the ticks of others, at which they see whether its CPU is idle. */
static nsec_t reader_phase(const Reader *r) {
        return r->is_in_vain && r->wait > r->tick_min ? r->tick_min / 2 : 0;
}

nsec_t reader_next_tick(const Reader *r, nsec_t now) {
        return now + r->wait - (now - reader_phase(r)) % r->wait;
}

/*
 * The tick at which it would have come. Who looks between short ticks, because it found nothing before, is not later than the one
 * behind that; who waits longer for each tick is told at once.
 */
nsec_t reader_due(const Reader *r) {
        nsec_t phase = reader_phase(r);

        if (r->is_asked)
                return 0;
        return phase > 0 && r->tick == r->tick_min ? r->next_look - phase + r->tick : r->next_look;
}

/* Not if it has to wake by itself anyway, to read counters, nor if nobody else can see its ring. */
bool reader_can_be_dormant(const Reader *r) {
        return r->is_in_vain && r->wait == r->tick_max && r->wait >= DORMANT_FROM && r->snapshot->active &&
               r->next_read == UINT64_MAX && r->guard == 0 && !r->retiring.page;
}
