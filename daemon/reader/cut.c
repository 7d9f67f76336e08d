/*
 * A cut is one position of the ring with all numbers that belong to it: everything before it has been read and counted, and the
 * kernel's own counts were taken exactly there.
 *
 * This is possible because the reader runs on the ring's CPU: a tracepoint is counted and writes its record with preemption
 * disabled, so that no occurrence on this CPU is half counted while this thread runs. If the head did not move from before the
 * read(2) of the counts until after it, the counts belong to the head. When reading from another CPU, the head must also not have
 * moved for a guard time (reader/remote.c); if it always does, the ledger relies on what was read.
 *
 * All events of its scope have the same position, at which a batch ends too, so that a stream can begin and end there. With many events,
 * interrupts write records while the counts are read. Then only the events of those records are read again: a count is valid at
 * any later position, as long as no record of its event was read in between. So each pass has fewer events to read than the one
 * before. For the same reason the first passes, which read most, can be done in slices (reader/slice.c), and others run in between:
 * what is written meanwhile is read again in the passes that follow, of which the last ones are in one piece.
 */
#include "daemon/reader/cycle.h"

#include "daemon/kernel/event/open.h"

#define TRIES 1000 /* between two interrupts or preemptions there is time for at least one system call */
#define PASSES 32 /* each reads again what occurred during the one before */
#define SLICED_PASSES 3 /* the first ones: behind them there is little left to read, or it occurs all the time */
#define TRIES_REMOTE 8 /* each is an interrupt of the ring's CPU, and succeeds only if nothing occurs there meanwhile */

static int reader_read_counts(const Reader *r, const SnapshotCpu *c, size_t first, size_t last, EventCut *cut) {
        cut->count = cut->ring_lost = cut->expected = cut->standby_lost = cut->standby_expected = 0;
        cut->is_approximate = false;
        for (size_t i = first; i < last; i++) {
                const SnapshotStream *stream = &c->streams[i];
                ReadCount read;
                uint64_t expected;
                int error;

                if (stream->member > 0)
                        continue; /* its leader's read has its count, and it has no samples */
                error = open_read_patiently(stream->fd, stream->read_format, &read);
                /* Linux does not report the counts of this group now: only what was read of it is known */
                if (error == OPEN_E_APART) {
                        cut->is_approximate = true;
                        continue;
                }
                if (error < 0)
                        return error_trace_of(error, "event %s", r->snapshot->events[stream->event].event->spec.name);
                expected = stream->is_sampling ? read.lost : read.value;
                cut->count += read.value;
                cut->ring_lost += read.lost;
                cut->expected += expected;
                if (stream->is_standby) {
                        cut->standby_lost += read.lost;
                        cut->standby_expected += expected;
                }
        }
        return 0;
}

static void cut_take(EventCut *cut, const EventCounters *counters) {
        cut->delivered = counter_get(&counters->delivered);
        cut->filtered = counter_get(&counters->filtered);
        cut->duplicates = counter_get(&counters->duplicates);
        cut->duplicates_sampled = counter_get(&counters->duplicates_sampled);
        cut->sampled = counter_get(&counters->sampled);
        for (int i = 0; i < _LOSS_EVENT_MAX; i++)
                cut->lost[i] = counter_get(&counters->lost[i]);
}

/*
 * What the kernel counted, and what was read or lost. Counts of closed fds do not change, unless main no longer waits for this
 * cut; then the row is marked inexact, and its counts are not used.
 */
static void cut_sum(const EventCut *cut, const EventCounters *counters, uint64_t *ret_counted, uint64_t *ret_known) {
        uint64_t known = cut->delivered + cut->filtered + cut->duplicates + cut->ring_lost + counter_get(&counters->closed_lost);

        for (int i = 0; i < _LOSS_EVENT_MAX; i++) /* a cut that is complete has those of the kernel too, which are in the sum */
                known += i != LOSS_KERNEL_RING && i != LOSS_KERNEL_UNWRITTEN ? cut->lost[i] : 0;
        *ret_counted = cut->expected + counter_get(&counters->closed_expected) + cut->sampled;
        *ret_known = known;
}

static bool cut_is_even(const EventCut *cut, const EventCounters *counters) {
        uint64_t counted, known;

        cut_sum(cut, counters, &counted, &known);
        return counted == known;
}

/*
 * An event that occurs because of the read(2) itself, such as a system call, moves the head each time. Its counts then belong
 * either to what had been read before them or to what is read behind them, whichever makes the sums balance.
 */
static int reader_settle_cut(Reader *r, const EventCounters *counters, EventCut *cut) {
        int error;

        cut_take(cut, counters);
        cut->is_consistent = cut->is_approximate || cut_is_even(cut, counters) || reader_is_quiescent(r);
        if (cut->is_consistent)
                return 0;
        error = reader_drain(r);
        if (error != 0)
                return error;
        cut_take(cut, counters);
        cut->is_consistent = cut_is_even(cut, counters);
        return 0;
}

/*
 * The ring's CPU was never quiet while its counts were read from another CPU. What was counted had begun before, and so is in the
 * ring a guard time later, except for what the kernel never writes, and for what was interrupted for longer, above all by the
 * host of a virtual machine. How much of what is in the ring then was counted is not known. So the counts prove nothing: the row
 * is what was read and lost, and is marked inexact.
 */
static int reader_settle_loosely(Reader *r, const EventCounters *counters, EventCut *cut) {
        int error;

        reader_wait_guard(r);
        error = reader_drain(r);
        if (error != 0)
                return error;
        cut_take(cut, counters);
        cut->is_consistent = cut->is_approximate = true;
        return 0;
}

/* Streams first to last belong to one event. */
static int reader_cut_event(Reader *r, const SnapshotCpu *c, size_t first, size_t last) {
        const Event *event = r->snapshot->events[c->streams[first].event].event;
        EventCounters *counters = &event->counters[r->slot];
        EventCut cut = { .is_consistent = false };
        int error;

        for (int i = 0; i < (reader_guard(r) > 0 ? TRIES_REMOTE : TRIES) && !cut.is_consistent; i++) {
                error = reader_drain(r);
                if (error == 0)
                        error = reader_read_counts(r, c, first, last, &cut);
                if (error == 0)
                        error = reader_settle_cut(r, counters, &cut);
                if (error != 0)
                        return error;
        }
        if (!cut.is_consistent && reader_guard(r) > 0) {
                error = reader_settle_loosely(r, counters, &cut);
                if (error != 0)
                        return error;
        }
        counters->cut = cut;
        return 0;
}

static int reader_cut_ring(Reader *r) {
        RingCounters *c = &r->counters;
        ReadCount read;
        int error = open_read(r->carrier_fd, r->carrier_read_format, &read);

        if (error < 0)
                return error_trace_of(error, "the ring's carrier");
        c->cut_side_lost = c->closed_side_lost + read.lost;
        c->cut_records = counter_get(&c->records);
        c->cut_samples = counter_get(&c->samples);
        c->cut_side_records = counter_get(&c->side_records);
        c->cut_unknown_id = counter_get(&c->unknown_id);
        c->cut_undecodable = counter_get(&c->undecodable);
        return 0;
}

/* All fds of the event on this CPU are closed, and their records were read before that. */
static void reader_cut_closed(const Reader *r, const SnapshotEvent *e) {
        EventCounters *counters = &e->event->counters[r->slot];
        EventCut cut = { .is_consistent = true };

        cut_take(&cut, counters);
        counters->cut = cut;
        counters_note_kernel(counters);
}

/* Streams first to last of a CPU belong to one event. */
typedef struct EventStreams {
        const CutScope *scope; /* NULL: all events */
        size_t event, first, last;
} EventStreams;

/*
 * Finds the next event of the scope that has streams; false: there is none. An event without streams on this CPU does not change, so its cut
 * remains valid.
 */
static bool next_streams(const Reader *r, const SnapshotCpu *c, EventStreams *at) {
        const Snapshot *s = r->snapshot;

        for (; at->event < s->n_events; at->event++) {
                at->first = at->last;
                while (at->last < c->n_streams && c->streams[at->last].event == at->event)
                        at->last++;
                if (!cut_scope_has(at->scope, s->events[at->event].event->id))
                        continue;
                if (at->last > at->first) {
                        at->event++;
                        return true;
                }
                reader_cut_closed(r, &s->events[at->event]);
        }
        return false;
}

static EventCounters *counters_of(const SnapshotCpu *c, const EventStreams *at) {
        return c->streams[at->first].counters;
}

/* True if the counts of its last read are valid at the present position too. */
static bool cut_holds(const EventCut *cut, const EventCounters *counters) {
        EventCut now = *cut;
        uint64_t counted, known, before;

        cut_sum(cut, counters, &counted, &before);
        cut_take(&now, counters);
        cut_sum(&now, counters, &counted, &known);
        return known == before || counted == known;
}

/* After a drain. Reads the counts that are not valid here; in the first pass all. Stores how many. Also READER_E_STARVED. */
static int reader_cut_pass(Reader *r, const SnapshotCpu *c, const CutScope *scope, int pass, size_t *ret_n_read) {
        const bool is_sliced = pass < SLICED_PASSES && !(r->command && r->command->is_resumed);
        EventStreams at = { .scope = scope };

        *ret_n_read = 0;
        while (next_streams(r, c, &at)) {
                EventCounters *counters = counters_of(c, &at);
                EventCut cut = { .is_consistent = false };
                int error;

                if (pass > 0 && cut_holds(&counters->cut, counters))
                        continue;
                cut_take(&cut, counters);
                error = reader_read_counts(r, c, at.first, at.last, &cut);
                if (error != 0)
                        return error;
                counters->cut = cut;
                ++*ret_n_read;
                if (is_sliced && (error = reader_end_slice(r)) != 0)
                        return error;
        }
        return 0;
}

/*
 * Settles the cuts at the present position. Events whose counts never become valid, because read(2) itself triggers them, are
 * settled separately.
 */
static int reader_settle_cuts(Reader *r, const SnapshotCpu *c, const CutScope *scope) {
        EventStreams at = { .scope = scope };

        while (next_streams(r, c, &at)) {
                EventCounters *counters = counters_of(c, &at);
                int error;

                if (cut_holds(&counters->cut, counters)) {
                        cut_take(&counters->cut, counters);
                        counters->cut.is_consistent = true;
                        continue;
                }
                error = reader_cut_event(r, c, at.first, at.last);
                if (error != 0)
                        return error;
        }
        return 0;
}

static int reader_cut_here(Reader *r, const SnapshotCpu *c, const CutScope *scope) {
        size_t n_read = 1;

        reader_begin_slices(r);
        for (int i = 0; i < PASSES && n_read > 0; i++) {
                int error = reader_drain(r);

                if (error == 0)
                        error = reader_cut_pass(r, c, scope, i, &n_read);
                if (error != 0)
                        return error;
        }
        return reader_settle_cuts(r, c, scope);
}

/* From another CPU each event gets a cut of its own. An approximate one is calculated from what was read, as of the end. */
static int reader_cut_remote(Reader *r, const SnapshotCpu *c, const CutScope *scope) {
        EventStreams at = { .scope = scope };

        reader_begin_slices(r);
        while (next_streams(r, c, &at)) {
                int error = reader_cut_event(r, c, at.first, at.last);

                if (error == 0)
                        error = reader_end_slice(r);
                if (error != 0)
                        return error;
        }
        at = (EventStreams){ .scope = scope };
        while (next_streams(r, c, &at))
                if (counters_of(c, &at)->cut.is_approximate)
                        cut_take(&counters_of(c, &at)->cut, counters_of(c, &at));
        return 0;
}

int reader_cut(Reader *r, const CutScope *scope) {
        const SnapshotCpu *c = &r->snapshot->cpus[r->slot];
        EventStreams at = { .scope = scope };
        int error = reader_guard(r) > 0 ? 0 : reader_cut_here(r, c, scope);

        if (error == 0 && reader_guard(r) > 0) /* the thread may have been moved a moment ago */
                error = reader_cut_remote(r, c, scope);
        if (error == READER_E_STARVED && r->command)
                r->command->is_resumed = true; /* others would write again in the pauses, and it might never end */
        if (error != 0)
                return error;
        while (next_streams(r, c, &at))
                counters_note_kernel(counters_of(c, &at));
        return reader_cut_ring(r);
}
