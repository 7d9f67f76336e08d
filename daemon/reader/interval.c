/*
 * Periodic reads of counters, by the reader of each CPU: read(2) there costs no interrupt, and the item is in the right
 * place of its CPU's order. All CPUs read at the multiples of the interval, so that a client can put their items together.
 *
 * What is sent are the counts since the event was added, not differences: an item that was lost costs nothing but itself.
 */
#include "daemon/reader/cycle.h"

#include <linux/perf_event.h>
#include <string.h>

#include "config/event-name/event-name.h"
#include "daemon/encode/item.h"
#include "daemon/kernel/event/open.h"

#define TRIES_REMOTE 8 /* each interrupts the ring's CPU */

static void add_counts(ReadCount *to, const ReadCount *more, size_t n) {
        for (size_t i = 0; i < n; i++) {
                to[i].value += more[i].value;
                to[i].enabled += more[i].enabled;
                to[i].running += more[i].running;
                to[i].lost += more[i].lost;
        }
}

/*
 * Members follow their leader, which has the counts of all at one moment; each is read alone only if the kernel does not
 * give them so. OPEN_E_APART: a leader that is read with its members has nothing just now. Of heirs, or of all others, on standby ones too: what was replaced a moment ago has counted until then, and is not
 * among the closed yet.
 */
static int read_members(const SnapshotCpu *c, size_t first, size_t last, bool heirs, ReadCount *values, size_t n_members) {
        bool together = false;

        for (size_t i = first; i < last; i++) {
                const SnapshotStream *stream = &c->streams[i];
                ReadCount read[EVENT_MEMBERS_MAX];
                int error = OPEN_E_APART;

                if (stream->is_successor != heirs || (stream->member > 0 && together))
                        continue;
                together = false;
                if (stream->member == 0 && stream->read_format & PERF_FORMAT_GROUP)
                        error = open_read_group(stream->fd, stream->read_format, read, n_members);
                if (error == 0) {
                        add_counts(values, read, n_members);
                        together = true;
                        continue;
                }
                if (error > 0)
                        error = (heirs ? open_read_patiently : open_read)(stream->fd, stream->read_format, read);
                if (error != 0)
                        return error;
                add_counts(&values[stream->member], read, 1);
        }
        return 0;
}

static bool have_same_values(const ReadCount *a, const ReadCount *b, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (a[i].value != b[i].value)
                        return false;
        return true;
}

/*
 * From another CPU Linux reads one member after the other while its CPU goes on, so that their counts may differ by what happens in
 * between: twice the same proves that nothing did. Where that is never so, a reader that may run in a moment reads them itself:
 * OPEN_E_APART; and one that is away has what there is.
 */
static int reader_read_consistently(Reader *r, const SnapshotCpu *c, size_t first, size_t last, ReadCount *values,
                                    size_t n_members) {
        ReadCount closed[EVENT_MEMBERS_MAX], before[EVENT_MEMBERS_MAX];
        int error;

        memcpy(closed, values, n_members * sizeof(*values));
        error = read_members(c, first, last, false, values, n_members);
        if (n_members == 1 || reader_guard(r) == 0)
                return error;
        for (int i = 0; i < TRIES_REMOTE && error == 0; i++) {
                memcpy(before, values, n_members * sizeof(*values));
                memcpy(values, closed, n_members * sizeof(*values));
                error = read_members(c, first, last, false, values, n_members);
                if (error == 0 && have_same_values(values, before, n_members))
                        return 0;
        }
        return error == 0 && !reader_may_execute(r) ? OPEN_E_APART : error;
}

/* Streams first to last belong to one event. READER_E_STARVED: another time. */
static int reader_read_event(Reader *r, const SnapshotCpu *c, size_t first, size_t last) {
        const SnapshotEvent *e = &r->snapshot->events[c->streams[first].event];
        const Event *event = e->event;
        ReadCount values[EVENT_MEMBERS_MAX];
        SubscriptionSet set = { .groups = 0 };
        size_t room, length;
        nsec_t now;
        uint8_t *to;
        int n;

        snapshot_event_wants(e, &set);
        if (set.groups == 0)
                return 0;
        n = reader_need_batch(r);
        if (n != 0)
                return n;
        for (size_t i = 0; i < event->n_members; i++)
                values[i] = e->closed[r->slot * event->n_members + i];
        now = clock_now(r->clock);
        n = reader_read_consistently(r, c, first, last, values, event->n_members);
        if (n < 0)
                return error_trace_of(n, "event %s", event->spec.name);
        if (n == OPEN_E_APART)
                return 0; /* the next item has it */
        to = batch_room(r->batch, &room);
        if (!batch_has_room_for(r->batch, subscription_set_count_groups(&set)) ||
            read_item_encode(event->id, r->cpu, now, values, event->n_members, to, room, &length) != 0) {
                n = reader_push_batch(r);
                return n != 0 ? n : reader_read_event(r, c, first, last); /* an empty batch has room */
        }
        batch_append_set(r->batch, now, &set, event->id, 0, length);
        return 0;
}

int reader_read_intervals(Reader *r, nsec_t *ret_next) {
        const SnapshotCpu *c = &r->snapshot->cpus[r->slot];
        nsec_t now = clock_now(r->clock), next = UINT64_MAX;

        for (size_t first = 0, last; first < c->n_streams; first = last) {
                const SnapshotEvent *e = &r->snapshot->events[c->streams[first].event];
                EventCounters *counters = &e->event->counters[r->slot];

                for (last = first + 1; last < c->n_streams && c->streams[last].event == c->streams[first].event;)
                        last++;
                if (e->interval == 0)
                        continue;
                if (counters->next_read > 0 && now >= counters->next_read) {
                        int n = reader_read_event(r, c, first, last);

                        if (n != 0)
                                return n;
                }
                if (now >= counters->next_read || counters->next_read > now + e->interval)
                        counters->next_read = (now / e->interval + 1) * e->interval;
                if (counters->next_read < next)
                        next = counters->next_read;
        }
        *ret_next = next;
        return 0;
}

/*
 * While something is replaced, old and new count side by side. What is sent is the count of the old until it is off, and then
 * that of the new, less what this had by then: both are read here, between two events of the CPU, so that nothing that
 * happens is in both or in none.
 */
int reader_hand_over(Reader *r) {
        const SnapshotCpu *c = &r->snapshot->cpus[r->slot];

        for (size_t first = 0, last; first < c->n_streams; first = last) {
                const Event *event = r->snapshot->events[c->streams[first].event].event;
                ReadCount doubled[EVENT_MEMBERS_MAX] = { { 0 } }, *closed = &event->closed_reads[r->slot * event->n_members];
                int error;

                for (last = first + 1; last < c->n_streams && c->streams[last].event == c->streams[first].event;)
                        last++;
                error = read_members(c, first, last, true, doubled, event->n_members);
                if (error < 0)
                        return error_trace_of(error, "event %s", event->spec.name);
                if (error == OPEN_E_APART)
                        continue; /* it is not read at all while that child lives */
                for (size_t i = 0; i < event->n_members; i++) { /* perhaps below 0, until the count of the old is added */
                        closed[i].value -= doubled[i].value;
                        closed[i].enabled -= doubled[i].enabled;
                        closed[i].running -= doubled[i].running;
                        closed[i].lost -= doubled[i].lost;
                }
        }
        return 0;
}
