/*
 * The ring of a CPU that has no reader of its own is read by a thread on another CPU, and that thread sees less: it may
 * look while the ring's CPU is in the middle of an occurrence, which has its time, or is counted, and is not in the ring
 * yet. Nothing says so. What can be said is only how long this takes at most: the guard. An occurrence is written with
 * preemption off, so that only interrupts come in between, and softirqs, which end after 2 ms (MAX_SOFTIRQ_TIME); or,
 * on a virtual machine, its host.
 *
 * So such a reader says of everything that it was read a guard later than one on the ring's CPU would (what still comes
 * later is late, and counted so); and that a place of the ring is between two occurrences only when nothing came for a
 * guard. Where something always comes, that place is not found, and the ledger does not call the row exact.
 */
#include "daemon/reader/cycle.h"

#include <sched.h>
#include <string.h>
#include <sys/prctl.h>

nsec_t reader_guard(const Reader *r) {
        if (r->guard > 0 || r->away_guard == 0)
                return r->guard;
        if (atomic_load_explicit(&r->is_backup, memory_order_relaxed))
                return r->away_guard;
        return sched_getcpu() == (int)r->cpu ? 0 : r->away_guard;
}

nsec_t reader_visible(const Reader *r) {
        nsec_t now = clock_now(r->clock);

        return now - reader_guard(r); /* where it runs behind the clock, and before the head */
}

void reader_wait_guard(const Reader *r) {
        nsec_t guard = reader_guard(r);
        struct timespec ts;
        int slack;

        if (guard == 0)
                return;
        ts = nsec_timespec(clock_now(CLOCK_MONOTONIC) + guard);
        slack = prctl(PR_GET_TIMERSLACK); /* that of an idle reader is longer than any guard */
        (void)prctl(PR_SET_TIMERSLACK, 1);
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
                ;
        (void)prctl(PR_SET_TIMERSLACK, slack);
}

bool reader_has_seen_all(const Reader *r) {
        /* the new one first: what fires between the two looks is seen in the old one, where it is written too */
        if (ring_head(&r->ring) != r->ring.tail)
                return false;
        return !r->retiring.page || ring_head(&r->retiring) == r->retiring.tail;
}

bool reader_is_quiescent(const Reader *r) {
        if (!reader_has_seen_all(r))
                return false;
        if (reader_guard(r) == 0)
                return true;
        reader_wait_guard(r);
        return reader_has_seen_all(r);
}
