/*
 * The ring of a CPU without a reader of its own is read by a thread on another CPU. It may read while the ring's CPU is in the
 * middle of an occurrence, which has its time already, or is counted, but is not in the ring yet; nothing indicates this. Only
 * the maximum duration is known: the guard time. An occurrence is written with preemption disabled, so only interrupts and
 * softirqs come in between, which end after 2 ms (MAX_SOFTIRQ_TIME); or, on a virtual machine, its host.
 *
 * So the watermark of such a reader is a guard time behind the clock; what arrives even later is counted as late. A position of
 * the ring counts as between two occurrences only when nothing arrived for a guard time. If something always arrives, no such
 * position is found, and the ledger marks the row as inexact.
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

        return now - reader_guard(r); /* the CPU is determined after the clock was read, and before the head is */
}

void reader_wait_guard(const Reader *r) {
        nsec_t guard = reader_guard(r);
        struct timespec ts;
        int slack;

        if (guard == 0)
                return;
        ts = nsec_timespec(clock_now(CLOCK_MONOTONIC) + guard);
        slack = prctl(PR_GET_TIMERSLACK); /* by default 50 us, which is longer than most guards */
        (void)prctl(PR_SET_TIMERSLACK, 1);
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
                ;
        (void)prctl(PR_SET_TIMERSLACK, slack);
}

bool reader_has_seen_all(const Reader *r) {
        /* the new ring first: what occurs between the two reads is seen in the old one, to which it is written too */
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
