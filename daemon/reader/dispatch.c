/*
 * How the batches that a reader has pushed are dispatched: by the dispatcher, which is woken for them, or by the reader itself.
 *
 * Wakeups are most of what a sample costs. The dispatcher usually runs on another CPU, so that all bytes have to move to the
 * caches of that CPU, which costs more than all that is done with the samples of a tick. So if a drain brought at most
 * BATCHES_MOST batches and the dispatcher sleeps, the reader takes the dispatch lock and runs a cycle. The price is time of the
 * CPU on which the traced program runs. It is bounded: more batches wake the dispatcher before the drain is over, and after a
 * cycle longer than CYCLE_MOST for each READER_TICK that a tick has, as with many subscribers, the dispatcher runs all cycles for
 * NO_ASSIST_FOR.
 */
#include "daemon/reader/cycle.h"

#define BATCHES_MOST 8 /* a tick at 1.5 million samples a second; half a MiB, which fits into an L2 cache */
#define CYCLE_MOST (250 * NSEC_PER_USEC)
#define CYCLE_MOST_EVER NSEC_PER_MSEC
#define NO_ASSIST_FOR (16 * NSEC_PER_MSEC)

static void reader_ring(Reader *r) {
        r->not_notified = 0;
        r->has_rung = true;
        doorbell_ring(&r->dispatching->bell);
}

/* With a small pool, the dispatcher has to return batches while the reader continues. */
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

void reader_become_dormant(Reader *r) {
        atomic_store_explicit(&r->view.is_dormant, true, memory_order_relaxed);
        atomic_fetch_add_explicit(&r->dispatching->n_dormant, 1, memory_order_seq_cst);
        if (atomic_load_explicit(&r->dispatching->looks_at, memory_order_seq_cst) == UINT64_MAX)
                doorbell_ring(&r->dispatching->bell);
}

/* The cycle took long, and another thread waits for the lock, or the next cycle may take as long: the dispatcher continues. */
static void reader_leave_cycle(Reader *r, nsec_t now) {
        Dispatching *d = r->dispatching;

        atomic_store_explicit(&d->no_assist_until, now + NO_ASSIST_FOR, memory_order_relaxed);
        atomic_store_explicit(&d->timer_owner, NULL, memory_order_relaxed);
        owner_lock_leave(&d->lock);
        doorbell_ring(&d->bell);
}

/* The same share of its CPU's time, however long a tick is, but not so long that a program notices. */
static nsec_t reader_cycle_most(const Reader *r) {
        const nsec_t most = r->tick > READER_TICK ? CYCLE_MOST * (r->tick / READER_TICK) : CYCLE_MOST;

        return most < CYCLE_MOST_EVER ? most : CYCLE_MOST_EVER;
}

/* If the lock is held, its holder runs another cycle, which finds what was pushed. */
static int reader_dispatch(Reader *r, nsec_t began) {
        Dispatching *d = r->dispatching;
        nsec_t wait;

        if (!owner_lock_try(&d->lock)) {
                r->cycle_due = UINT64_MAX; /* the lock's holder owns the timer then; this reader must not wait for it */
                return 0;
        }
        do {
                nsec_t now;
                int error = d->work(d->userdata, &wait);

                if (error < 0)
                        return error;
                now = clock_now(CLOCK_MONOTONIC);
                if (now - began > reader_cycle_most(r)) {
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
