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
#include "daemon/reader.h"

#include <string.h>
#include <sys/prctl.h>

#define STAND_TRIES 8

nsec_t reader_visible(const Reader *r) {
        return clock_now(r->clock) - r->guard;
}

void reader_wait_guard(const Reader *r) {
        nsec_t until = clock_now(CLOCK_MONOTONIC) + r->guard;
        struct timespec ts = nsec_timespec(until);
        int slack;

        if (r->guard == 0)
                return;
        slack = prctl(PR_GET_TIMERSLACK); /* that of an idle reader is longer than any guard */
        (void)prctl(PR_SET_TIMERSLACK, 1);
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
                ;
        (void)prctl(PR_SET_TIMERSLACK, slack);
}

bool reader_stands(const Reader *r) {
        if (!reader_is_settled(r))
                return false;
        if (r->guard == 0)
                return true;
        reader_wait_guard(r);
        return reader_is_settled(r);
}

/* It speaks where it was muted, or the other way round. */
static bool is_turned(const Reader *r, const SnapshotStream *stream) {
        const SnapshotStream *before = snapshot_find(&r->snapshot->cpus[r->slot], stream->id);

        return before && before->muted != stream->muted;
}

int reader_part(Reader *r, const Snapshot *next) {
        const SnapshotCpu *c = &next->cpus[r->slot];
        size_t n = 0;

        for (size_t i = 0; r->guard > 0 && i < c->n_streams; i++)
                n += is_turned(r, &c->streams[i]);
        if (n == 0)
                return 0;
        for (int i = 0; i < STAND_TRIES; i++) {
                int error = reader_drain(r);

                if (error != 0)
                        return error;
                if (reader_stands(r))
                        return 0;
        }
        for (size_t i = 0; i < c->n_streams; i++)
                if (is_turned(r, &c->streams[i]))
                        next->events[c->streams[i].event].event->counters[r->slot].parted = true;
        return 0;
}
