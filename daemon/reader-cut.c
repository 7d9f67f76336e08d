/*
 * A cut is one place of the ring with all numbers that belong to it: everything before it was read and counted, and
 * the kernel's own counts were taken exactly there.
 *
 * That is possible because the reader runs on the ring's CPU: a tracepoint writes its record and counts it without
 * being preempted, so that no event of this CPU can be half counted while this thread looks. If the head did not move
 * from before the read(2) of the counts until after it, the counts belong to the head. From another CPU it must not have
 * moved for a guard either (reader-elsewhere.c); if it always does, what was read is all that the ledger has to go by.
 */
#include "daemon/reader.h"

#include "daemon/kernel/open.h"

#define TRIES 1000 /* between two interrupts or preemptions there is room for one system call */
#define TRIES_ELSEWHERE 8 /* each interrupts the ring's CPU, and succeeds only if nothing happens there meanwhile */

static int reader_read_counts(const SnapshotCpu *c, size_t first, size_t last, EventCut *cut) {
        cut->count = cut->ring_lost = cut->owed = cut->standby_lost = cut->standby_owed = 0;
        for (size_t i = first; i < last; i++) {
                const SnapshotStream *stream = &c->streams[i];
                ReadCount read;
                uint64_t owed;
                int error;

                if (stream->member > 0)
                        continue; /* it counts for its leader, and has no samples */
                error = open_read(stream->fd, stream->read_format, &read);
                if (error < 0)
                        return error;
                owed = stream->is_sampling ? read.lost : read.value;
                cut->count += read.value;
                cut->ring_lost += read.lost;
                cut->owed += owed;
                if (stream->muted) {
                        cut->standby_lost += read.lost;
                        cut->standby_owed += owed;
                }
        }
        return 0;
}

static void cut_take(EventCut *cut, const EventCounters *counters) {
        cut->delivered = counter_get(&counters->delivered);
        cut->filtered = counter_get(&counters->filtered);
        cut->doubled = counter_get(&counters->doubled);
        cut->sampled = counter_get(&counters->sampled);
        for (int i = 0; i < _LOSS_EVENT_MAX; i++)
                cut->lost[i] = counter_get(&counters->lost[i]);
}

/* What the kernel counted; what was read or lost. What closed fds have counted is still: main waits for this cut. */
static void cut_sum(const EventCut *cut, const EventCounters *counters, uint64_t *ret_counted, uint64_t *ret_known) {
        uint64_t known = cut->delivered + cut->filtered + cut->doubled + cut->ring_lost + counters->closed_lost;

        for (int i = 0; i < _LOSS_EVENT_MAX; i++)
                known += cut->lost[i];
        *ret_counted = cut->owed + counters->closed_owed + cut->sampled;
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
        cut->settled = cut_is_even(cut, counters) || reader_stands(r);
        if (cut->settled)
                return 0;
        error = reader_drain(r);
        if (error != 0)
                return error;
        cut_take(cut, counters);
        cut->settled = cut_is_even(cut, counters);
        return 0;
}

/*
 * The CPU was never quiet while another one looked. What was counted had begun before, and so is in the ring a guard later;
 * how much of what is in the ring then was counted is not known.
 */
static int reader_settle_loosely(Reader *r, const EventCounters *counters, EventCut *cut) {
        uint64_t counted, read;
        int error;

        reader_wait_guard(r);
        error = reader_drain(r);
        if (error != 0)
                return error;
        cut_take(cut, counters);
        cut_sum(cut, counters, &counted, &read);
        cut->settled = counted <= read;
        cut->loose = true;
        return 0;
}

/* Streams first to last belong to one event. */
static int reader_cut_event(Reader *r, const SnapshotCpu *c, size_t first, size_t last) {
        EventCounters *counters = &r->snapshot->events[c->streams[first].event].event->counters[r->slot];
        EventCut cut = { .settled = false };
        int error;

        for (int i = 0; i < (reader_guard(r) > 0 ? TRIES_ELSEWHERE : TRIES) && !cut.settled; i++) {
                error = reader_drain(r);
                if (error == 0)
                        error = reader_read_counts(c, first, last, &cut);
                if (error == 0)
                        error = reader_settle_cut(r, counters, &cut);
                if (error != 0)
                        return error;
        }
        if (!cut.settled && reader_guard(r) > 0) {
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
                return error;
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
        EventCut cut = { .settled = true };

        cut_take(&cut, counters);
        counters->cut = cut;
}

int reader_cut(Reader *r) {
        const Snapshot *s = r->snapshot;
        const SnapshotCpu *c = &s->cpus[r->slot];
        size_t first = 0, last = 0;

        for (size_t event = 0; event < s->n_events; event++, first = last) {
                int error;

                while (last < c->n_streams && c->streams[last].event == event)
                        last++;
                if (last == first) {
                        reader_cut_closed(r, &s->events[event]);
                        continue;
                }
                error = reader_cut_event(r, c, first, last);
                if (error != 0)
                        return error;
        }
        return reader_cut_ring(r);
}
