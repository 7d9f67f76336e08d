/*
 * The position of the ring at which an event's replacement becomes active.
 *
 * While both fds are enabled, both count, and both lose what they cannot write. What an fd counted and lost while another one was
 * active is not an occurrence of its own: the ledger has it as duplicates. So the counts of all fds that change their role are
 * read at this position. They belong to it if nothing was written from before they were read until after it; or, where something
 * is always written, if two reads around it are equal, because then the event did not occur in between.
 *
 * An event that occurs because of the read(2) itself is never found quiet. Then only the losses of its fds are known. This
 * suffices as long as each occurrence has its record; the ledger calculates the rest from what was read.
 */
#include "daemon/reader/cycle.h"

#include "daemon/kernel/event/open.h"

#define BOUNDARY_TRIES 8
#define SETTLE_TRIES 1000 /* only what interrupts this thread can write meanwhile */

/* True if the stream becomes active, or ceases to be. */
static bool is_turned(const Reader *r, const SnapshotStream *stream) {
        const SnapshotStream *before = snapshot_find(&r->snapshot->cpus[r->slot], stream->id);

        return before && before->is_standby != stream->is_standby;
}

static size_t find_turned(const Reader *r, const SnapshotCpu *c, TurnedStream *turned) {
        size_t n = 0;

        for (size_t i = 0; i < c->n_streams; i++)
                if (is_turned(r, &c->streams[i]))
                        turned[n++] = (TurnedStream){ .stream = &c->streams[i] };
        return n;
}

static int read_turned(const Snapshot *next, TurnedStream *turned, size_t n) {
        for (size_t i = 0; i < n; i++) {
                const SnapshotStream *stream = turned[i].stream;
                int error;

                turned[i].before = turned[i].now;
                if (stream->member > 0)
                        continue; /* its leader's read has its count, and it has no samples */
                error = open_read_patiently(stream->fd, stream->read_format, &turned[i].now);
                turned[i].is_apart = error == OPEN_E_APART;
                if (error < 0)
                        return error_trace_of(error, "event %s", next->events[stream->event].event->spec.name);
        }
        return 0;
}

/* Drains up to a position common to both rings, if there are two. Stores whether it was found. READER_E_STARVED, negative. */
static int reader_settle(Reader *r, bool *ret_found) {
        for (int i = 0; i < SETTLE_TRIES; i++) {
                int error = reader_drain(r);

                if (error != 0)
                        return error;
                *ret_found = !r->retiring.page || reader_has_seen_all(r);
                if (*ret_found)
                        break;
        }
        return 0;
}

/* True for events whose samples are counted as they are read: their own count is not used, and may be a time. */
static bool is_quiet(const TurnedStream *t) {
        return (t->stream->is_sampling || t->before.value == t->now.value) && t->before.lost == t->now.lost;
}

static bool all_quiet(const TurnedStream *turned, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (!is_quiet(&turned[i]))
                        return false;
        return true;
}

/*
 * Assigns what an fd has counted until now to the role that ends here. On the ring's CPU, a common position of both rings is
 * between two occurrences, whatever happens behind it.
 */
static void turn(const Reader *r, const TurnedStream *t, bool is_between) {
        EventCounters *c = t->stream->counters;
        uint64_t expected = t->stream->is_sampling ? t->now.lost : t->now.value;

        c->standby_lost += t->stream->is_standby ? -t->now.lost : t->now.lost;
        c->standby_expected += t->stream->is_standby ? -expected : expected;
        if (is_quiet(t) && !t->is_apart)
                return;
        c->standby_unsure = true;
        if (t->is_apart || reader_guard(r) > 0 || !is_between || t->before.lost != t->now.lost)
                c->is_inexact = true;
}

int reader_find_boundary(Reader *r, const Snapshot *next, TurnedStream *turned) {
        size_t n = find_turned(r, &next->cpus[r->slot], turned);
        bool is_between = true;

        if (n == 0)
                return 0;
        for (int i = 0; i <= BOUNDARY_TRIES; i++) {
                int error = reader_settle(r, &is_between);

                if (error == 0)
                        error = read_turned(next, turned, n);
                if (error != 0)
                        return error;
                if (reader_is_quiescent(r)) { /* nothing was written since: what was read belongs to this position */
                        for (size_t k = 0; k < n; k++)
                                turned[k].before = turned[k].now;
                        break;
                }
                if (i > 0 && all_quiet(turned, n))
                        break;
                if (i < BOUNDARY_TRIES)
                        reader_wait_guard(r);
        }
        for (size_t i = 0; i < n; i++)
                turn(r, &turned[i], is_between);
        return 0;
}
