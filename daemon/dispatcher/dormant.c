/*
 * Dormant readers (reader/pace.c): the holder of dispatching.lock looks at their rings in their place, at all of them at once, and
 * asks those readers to look that have something. An interrupt or a timeout of the kernel's for each of them would wake CPUs that
 * have nothing to do.
 */
#include "daemon/dispatcher/cycle.h"

#include "daemon/ring/ring-view.h"

/* Asks dormant readers that have records. Returns the shortest tick of the others, UINT64_MAX: there are none. */
static nsec_t dispatcher_look_at_rings(Dispatcher *d, bool is_due) {
        nsec_t least = UINT64_MAX;

        for (uint32_t i = 0; i < d->n_pipes; i++) {
                const BatchPipe *l = &d->pipes[i];
                nsec_t tick;

                if (!d->live[i] || !l->view || !l->tick || !atomic_load_explicit(&l->view->is_dormant, memory_order_relaxed))
                        continue;
                if (is_due && ring_view_has_records(l->view)) {
                        mailbox_ask(l->reader, READER_ASK_LOOK);
                        continue;
                }
                tick = atomic_load_explicit(l->tick, memory_order_relaxed);
                least = tick < least ? tick : least;
        }
        return least;
}

bool dispatcher_has_new_dormant(const Dispatcher *d) {
        return atomic_load_explicit(&d->dispatching.n_dormant, memory_order_seq_cst) != d->n_dormant;
}

nsec_t dispatcher_look_for_dormant(Dispatcher *d) {
        Dispatching *shared = &d->dispatching;
        nsec_t looks_at = atomic_load_explicit(&shared->looks_at, memory_order_relaxed), now, tick;
        uint64_t n = atomic_load_explicit(&shared->n_dormant, memory_order_relaxed);

        if (looks_at == UINT64_MAX && n == d->n_dormant)
                return UINT64_MAX;
        now = clock_now(CLOCK_MONOTONIC);
        if (now < looks_at && n == d->n_dormant)
                return looks_at - now;
        atomic_store_explicit(&shared->looks_at, UINT64_MAX, memory_order_seq_cst);
        d->n_dormant = atomic_load_explicit(&shared->n_dormant, memory_order_seq_cst);
        tick = dispatcher_look_at_rings(d, now >= looks_at);
        if (tick == UINT64_MAX)
                return UINT64_MAX;
        looks_at = now - now % tick + tick;
        atomic_store_explicit(&shared->looks_at, looks_at, memory_order_seq_cst);
        return looks_at - now;
}
