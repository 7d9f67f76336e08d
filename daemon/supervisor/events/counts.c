/* What the closed fds of an event have counted. */

#include "daemon/kernel/event/open.h"

#include "daemon/supervisor/events/events.h"
#include "daemon/supervisor/events/open.h"
#include "daemon/supervisor/events/registration.h"
#include "daemon/supervisor/readers/perf-fd.h"
#include "daemon/supervisor/readers/stall.h"

/*
 * Whether what an fd counted last was on standby. A reader that does not answer turns only what it was told to: if it was not told
 * of the change, what was replaced is active for it until the end, and its replacement never was.
 */
static bool reader_mutes(const Events *s, const PerfFd *stream, bool is_standby) {
        const Answering *a = &s->readers->answering.readers[stream->slot];
        const SnapshotStream *known;

        if (!reader_is_stalled(a) || !a->snapshot)
                return is_standby;
        known = snapshot_find(&a->snapshot->cpus[stream->slot], stream->id);
        return known && known->is_standby;
}

static void add_closed(EventCounters *c, const ReadCount *read, bool is_sampling, bool is_standby) {
        uint64_t expected = is_sampling ? read->lost : read->value;

        c->closed_count += read->value;
        counter_add(&c->closed_lost, read->lost);
        counter_add(&c->closed_expected, expected);
        if (!is_standby)
                return;
        counter_add(&c->closed_standby_lost, read->lost);
        counter_add(&c->closed_standby_expected, expected);
}

/*
 * What closed fds have counted stays in the ledger. They are disabled: nothing of this moves any more, and others are served
 * between two reads, each of which is of all children.
 */
int registration_keep_counts(const Events *s, Registration *r, const PerfFdSet *o, bool is_standby) {
        for (size_t i = 0; i < o->n; i++) {
                const PerfFd *stream = &o->fds[i];
                EventCounters *c = &r->event->counters[stream->slot];
                ReadCount *kept = &r->event->closed_reads[stream->slot * r->event->n_members + stream->member];
                ReadCount read;
                int error = open_read_patiently(stream->fd, stream->read_format, &read), served;

                if (error < 0)
                        return error_trace_of(error, "event %s, CPU slot %u", r->event->spec.name, stream->slot);
                served = operations_serve_sometimes(s->operations);
                if (served < 0)
                        return served;
                if (error == OPEN_E_APART) { /* what it counted is lost with it */
                        c->is_inexact = true;
                        continue;
                }
                if (stream->member == 0)
                        add_closed(c, &read, stream->is_sampling, reader_mutes(s, stream, is_standby));
                if (stream->is_successor)
                        continue;
                kept->value += read.value;
                kept->enabled += read.enabled;
                kept->running += read.running;
                kept->lost += read.lost;
        }
        return 0;
}
