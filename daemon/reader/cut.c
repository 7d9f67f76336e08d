/*
 * A cut is one place of the ring with all numbers that belong to it: everything before it was read and counted, and
 * the kernel's own counts were taken exactly there.
 *
 * That is possible because the reader runs on the ring's CPU: a tracepoint writes its record and counts it without
 * being preempted, so that no event of this CPU can be half counted while this thread looks. If the head did not move
 * from before the read(2) of the counts until after it, the counts belong to the head. From another CPU it must not have
 * moved for a guard either (reader/remote.c); if it always does, what was read is all that the ledger has to go by.
 *
 * All events have the same place, at which a batch ends too, so that a stream can begin and end just there. With many events
 * an interrupt writes something while their counts are read. Then only those are read again of which a record came: a count
 * holds at any place between which and its own nothing of its event was read. So the second pass has few, the third fewer.
 */
#include "daemon/reader/cycle.h"

#include "daemon/kernel/event/open.h"

#define TRIES 1000 /* between two interrupts or preemptions there is room for one system call */
#define PASSES 32 /* each reads what came in the one before */
#define TRIES_REMOTE 8 /* each interrupts the ring's CPU, and succeeds only if nothing happens there meanwhile */

static int reader_read_counts(const Reader *r, const SnapshotCpu *c, size_t first, size_t last, EventCut *cut) {
        cut->count = cut->ring_lost = cut->expected = cut->standby_lost = cut->standby_expected = 0;
        cut->is_approximate = false;
        for (size_t i = first; i < last; i++) {
                const SnapshotStream *stream = &c->streams[i];
                ReadCount read;
                uint64_t expected;
                int error;

                if (stream->member > 0)
                        continue; /* it counts for its leader, and has no samples */
                error = open_read_patiently(stream->fd, stream->read_format, &read);
                if (error == OPEN_E_APART) { /* a group whose counts Linux does not tell: there is only what was read of it */
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
        cut->doubled = counter_get(&counters->doubled);
        cut->doubled_sampled = counter_get(&counters->doubled_sampled);
        cut->sampled = counter_get(&counters->sampled);
        for (int i = 0; i < _LOSS_EVENT_MAX; i++)
                cut->lost[i] = counter_get(&counters->lost[i]);
}

/*
 * What the kernel counted; what was read or lost. What closed fds have counted is still, unless main does not wait for this cut
 * any more: then the row is not exact, and nothing of it is believed.
 */
static void cut_sum(const EventCut *cut, const EventCounters *counters, uint64_t *ret_counted, uint64_t *ret_known) {
        uint64_t known = cut->delivered + cut->filtered + cut->doubled + cut->ring_lost + counter_get(&counters->closed_lost);

        for (int i = 0; i < _LOSS_EVENT_MAX; i++)
                known += cut->lost[i];
        *ret_counted = cut->expected + counter_get(&counters->closed_expected) + cut->sampled;
        *ret_known = known;
}

static bool cut_is_even(const EventCut *cut, const EventCounters *counters) {
        uint64_t counted, known;

        cut_sum(cut, counters, &counted, &known);
        return counted == known;
}

/*
 * An event that read(2) itself sets off, as system calls do, never lets the ring stand still. Then the counts belong to what
 * had been read before them, or to what is read behind them, whichever is even.
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
 * The CPU was never quiet while another one looked. What was counted had begun before, and so is in the ring a guard later, but
 * for what the kernel never writes, or what its CPU was kept in the middle of for longer, by the host of a virtual machine above all;
 * how much of what is in the ring then was counted is not known. So the counts prove nothing either way: the row is what was read
 * and lost, and is called inexact.
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

/* Whatever it had open here is closed, and was read to its end before that. */
static void reader_cut_closed(const Reader *r, const SnapshotEvent *e) {
        EventCounters *counters = &e->event->counters[r->slot];
        EventCut cut = { .is_consistent = true };

        cut_take(&cut, counters);
        counters->cut = cut;
}

/* Streams first to last of a CPU are those of an event. */
typedef struct EventStreams {
        size_t event, first, last;
} EventStreams;

/* The next event that has some; false: there is none. What has none here has an end, which is its cut. */
static bool next_streams(const Reader *r, const SnapshotCpu *c, EventStreams *at) {
        const Snapshot *s = r->snapshot;

        for (; at->event < s->n_events; at->event++) {
                at->first = at->last;
                while (at->last < c->n_streams && c->streams[at->last].event == at->event)
                        at->last++;
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

/* Whether the counts that it was made with belong to this place too. */
static bool cut_holds(const EventCut *cut, const EventCounters *counters) {
        EventCut now = *cut;
        uint64_t counted, known, before;

        cut_sum(cut, counters, &counted, &before);
        cut_take(&now, counters);
        cut_sum(&now, counters, &counted, &known);
        return known == before || counted == known;
}

/* After a drain. Reads the counts that do not hold here, or, first, all of them: how many. */
static int reader_cut_pass(Reader *r, const SnapshotCpu *c, bool is_first, size_t *ret_n_read) {
        EventStreams at = { .event = 0 };

        *ret_n_read = 0;
        while (next_streams(r, c, &at)) {
                EventCounters *counters = counters_of(c, &at);
                EventCut cut = { .is_consistent = false };
                int error;

                if (!is_first && cut_holds(&counters->cut, counters))
                        continue;
                cut_take(&cut, counters);
                error = reader_read_counts(r, c, at.first, at.last, &cut);
                if (error != 0)
                        return error;
                counters->cut = cut;
                ++*ret_n_read;
        }
        return 0;
}

/* What holds here has this place; what never does, as what read(2) itself sets off, a place of its own. */
static int reader_settle_cuts(Reader *r, const SnapshotCpu *c) {
        EventStreams at = { .event = 0 };

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

static int reader_cut_here(Reader *r, const SnapshotCpu *c) {
        size_t n_read = 1;

        for (int i = 0; i < PASSES && n_read > 0; i++) {
                int error = reader_drain(r);

                if (error == 0)
                        error = reader_cut_pass(r, c, i == 0, &n_read);
                if (error != 0)
                        return error;
        }
        return reader_settle_cuts(r, c);
}

/* From another CPU each event is cut by itself. An approximate one goes by what was read, which is what it is at the end. */
static int reader_cut_remote(Reader *r, const SnapshotCpu *c) {
        EventStreams at = { .event = 0 };

        while (next_streams(r, c, &at)) {
                int error = reader_cut_event(r, c, at.first, at.last);

                if (error != 0)
                        return error;
        }
        at = (EventStreams){ .event = 0 };
        while (next_streams(r, c, &at))
                if (counters_of(c, &at)->cut.is_approximate)
                        cut_take(&counters_of(c, &at)->cut, counters_of(c, &at));
        return 0;
}

int reader_cut(Reader *r) {
        const SnapshotCpu *c = &r->snapshot->cpus[r->slot];
        int error = reader_guard(r) > 0 ? 0 : reader_cut_here(r, c);

        if (error == 0 && reader_guard(r) > 0) /* perhaps since a moment ago */
                error = reader_cut_remote(r, c);
        return error != 0 ? error : reader_cut_ring(r);
}
