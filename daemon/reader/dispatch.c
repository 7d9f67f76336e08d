/*
 * How batches that a reader has pushed are dispatched: by the dispatcher, which is woken for them, or by the reader itself.
 *
 * Wakeups are most of what a sample costs. The dispatcher usually runs on another CPU, so that all bytes have to leave this one's
 * caches, which costs more than all that is done with the samples of a tick. So where a drain brought no more than BATCHES_MOST
 * batches, and the dispatcher sleeps, the reader takes the dispatch lock and runs a cycle. The decision to doubt is that this is
 * time of the CPU on which the traced program runs. It is bounded: more batches wake the dispatcher before the drain is over, and
 * after a cycle of more than CYCLE_MOST, as many subscribers make them, the dispatcher has all cycles for NO_ASSIST_FOR.
 */
#include "daemon/reader/cycle.h"

#define BATCHES_MOST 8 /* a tick of 1.5 M samples a second; half a MiB, of which a second cache has one */
#define CYCLE_MOST (250 * NSEC_PER_USEC)
#define NO_ASSIST_FOR (16 * NSEC_PER_MSEC)

static void reader_ring(Reader *r) {
        r->not_notified = 0;
        r->has_rung = true;
        doorbell_ring(&r->dispatching->bell);
}

/* Of a small pool the dispatcher has to give back some while the reader goes on. */
void reader_pushed(Reader *r) {
        r->not_notified++;
        if (r->not_notified > BATCHES_MOST || r->not_notified > r->n_pool / 2)
                reader_ring(r);
}

static bool reader_owns_timer(const Reader *r) {
        return atomic_load_explicit(&r->dispatching->timer_owner, memory_order_relaxed) == r;
}

nsec_t reader_next_cycle(const Reader *r) {
        return reader_owns_timer(r) ? r->cycle_due : UINT64_MAX;
}

void reader_release_timer(Reader *r) {
        const void *timer_owner = r;

        if (atomic_compare_exchange_strong_explicit(&r->dispatching->timer_owner, &timer_owner, NULL, memory_order_relaxed,
                                                    memory_order_relaxed))
                doorbell_ring(&r->dispatching->bell);
}

/* It took long, and somebody else waits, or the next one may take as long: the dispatcher goes on. */
static void reader_leave_cycle(Reader *r, nsec_t now) {
        Dispatching *d = r->dispatching;

        atomic_store_explicit(&d->no_assist_until, now + NO_ASSIST_FOR, memory_order_relaxed);
        atomic_store_explicit(&d->timer_owner, NULL, memory_order_relaxed);
        owner_lock_leave(&d->lock);
        doorbell_ring(&d->bell);
}

/* If the lock is held, its holder runs a cycle more, which sees what was pushed. */
static int reader_dispatch(Reader *r, nsec_t began) {
        Dispatching *d = r->dispatching;
        nsec_t wait;

        if (!owner_lock_try(&d->lock)) {
                r->cycle_due = UINT64_MAX; /* its holder owns the timer then; to wait for that would be to spin */
                return 0;
        }
        do {
                nsec_t now;
                int error = d->work(d->userdata, &wait);

                if (error < 0)
                        return error;
                now = clock_now(CLOCK_MONOTONIC);
                if (now - began > CYCLE_MOST) {
                        reader_leave_cycle(r, now);
                        return 0;
                }
                r->cycle_due = wait == UINT64_MAX ? wait : now + wait;
                atomic_store_explicit(&d->timer_owner, r, memory_order_relaxed);
        } while (wait == 0 || !owner_lock_release(&d->lock));
        return 0;
}

int reader_hand_off(Reader *r, bool can_dispatch) {
        const Dispatching *d = r->dispatching;
        bool is_much = r->has_rung;
        nsec_t now;

        r->has_rung = false;
        if (r->not_notified == 0 && !reader_owns_timer(r))
                return 0;
        now = clock_now(CLOCK_MONOTONIC);
        if (r->not_notified == 0 && now < r->cycle_due)
                return 0;
        if (can_dispatch && !is_much && d->is_shared &&
            now >= atomic_load_explicit(&d->no_assist_until, memory_order_relaxed)) {
                r->not_notified = 0;
                return reader_dispatch(r, now);
        }
        if (r->not_notified > 0)
                reader_ring(r);
        else
                reader_release_timer(r);
        r->has_rung = false;
        return 0;
}
