/*
 * Periodic reads of counters, by the reader of each CPU: read(2) on that CPU needs no inter-processor interrupt, and the item is
 * at the right position in its CPU's order. All CPUs read at multiples of the interval, so that a client can combine their items.
 *
 * The counts are those since the event was added, not differences: the loss of an item costs only that item. The last counts of
 * an event that is disabled are sent then, so that nobody waits for a multiple that does not come.
 *
 * Reads may come later than their multiple: what they take is measured, and those of one uid have a share
 * of the CPU's time (model/read-budget.h). A read counts all children of a task, however many it has got since the event was added.
 * What is postponed is read in the order in which it was due, and what it counts then is all that it would have counted before.
 */
#include "daemon/reader/cycle.h"

#include <linux/perf_event.h>
#include <string.h>

#include "config/event-name/event-name.h"
#include "daemon/base/log.h"
#include "daemon/encode/item.h"
#include "daemon/kernel/event/open.h"

#define TRIES_REMOTE 8 /* each is an interrupt of the ring's CPU */

static void add_counts(ReadCount *to, const ReadCount *more, size_t n) {
        for (size_t i = 0; i < n; i++) {
                to[i].value += more[i].value;
                to[i].enabled += more[i].enabled;
                to[i].running += more[i].running;
                to[i].lost += more[i].lost;
        }
}

/*
 * Members follow their leader. A read of the leader has the counts of all at one moment (PERF_FORMAT_GROUP); members are read
 * separately only if the kernel cannot do this. OPEN_E_APART: a leader that is read with its members has no counts now.
 * of_successors: these only, or else all others, including those on standby: what was replaced a moment ago has counted until then,
 * and is not yet among the closed ones.
 */
static int read_members(const SnapshotCpu *c, size_t first, size_t last, bool of_successors, ReadCount *values, size_t n_members) {
        bool together = false;

        for (size_t i = first; i < last; i++) {
                const SnapshotStream *stream = &c->streams[i];
                ReadCount read[EVENT_MEMBERS_MAX];
                int error = OPEN_E_APART;

                if (stream->is_successor != of_successors || (stream->member > 0 && together))
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
                        error = (of_successors ? open_read_patiently : open_read)(stream->fd, stream->read_format, read);
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
 * From another CPU, Linux reads one member after the other while that CPU continues, so their counts may differ by what happens
 * in between: two equal reads prove that nothing did. If reads always differ: a reader that may run in a moment reads them itself
 * (OPEN_E_APART); for one that is away the last read is used.
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

/* Streams first to last belong to one event. READER_E_STARVED: to be tried again later. */
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
                return 0; /* the next item includes it */
        to = batch_room(r->batch, &room);
        if (!batch_has_room_for(r->batch, subscription_set_count_groups(&set)) ||
            read_item_encode(event->id, r->cpu, now, values, event->n_members, to, room, &length) != 0) {
                n = reader_push_batch(r);
                return n != 0 ? n : reader_read_event(r, c, first, last); /* an empty batch has room */
        }
        batch_append_set(r->batch, now, &set, event->id, 0, length);
        return 0;
}

/*
 * The same, charged to the uid whose read it is. measured: the CPU time of the thread behind the last one that was charged, or 0;
 * asking for it takes a tenth of what a read takes.
 */
static int reader_read_charged(Reader *r, const SnapshotCpu *c, size_t first, size_t last, nsec_t *measured) {
        const SnapshotEvent *e = &r->snapshot->events[c->streams[first].event];
        nsec_t before = *measured;
        int n;

        if (!e->budget || e->n_routes == 0) {
                *measured = 0;
                return reader_read_event(r, c, first, last);
        }
        if (before == 0)
                before = clock_now(CLOCK_THREAD_CPUTIME_ID);
        n = reader_read_event(r, c, first, last);
        *measured = clock_now(CLOCK_THREAD_CPUTIME_ID);
        read_account_charge(&e->budget->accounts[r->slot], clock_now(CLOCK_MONOTONIC), *measured - before);
        return n;
}

static void reader_tell_postponed(const Reader *r, ReadBudget *b, nsec_t now) {
        if (!read_budget_is_to_tell(b, now))
                return;
        log_print_with(LOG_WARNING, MESSAGE_READS_POSTPONED, LOG_FIELDS({ "CPU", LOG_NUMBER(r->cpu) }),
                       "reads of counters of uid %u take more than %d %% of CPU %u, and are postponed: count fewer events, or processes "
                       "with fewer children, or set longer intervals", (unsigned)b->uid, 100 / READ_BUDGET_SHARE, r->cpu);
}

/* It was due. False: another time; ret_wait says how long to wait until then. */
static bool reader_may_read(const Reader *r, const SnapshotEvent *e, EventCounters *counters, nsec_t *ret_wait) {
        ReadAccount *a = e->budget && e->n_routes > 0 ? &e->budget->accounts[r->slot] : NULL;
        nsec_t now = a ? clock_now(CLOCK_MONOTONIC) : 0;

        if (!a || read_account_permits(a, r->read_pass, counters->next_read, now))
                return true;
        counters->is_postponed = true;
        *ret_wait = read_account_permits_from(a, now) - now;
        reader_tell_postponed(r, e->budget, now);
        return false;
}

/* It was read at last: how many multiples of its interval have passed since it was due. */
static void count_postponed(EventCounters *counters, nsec_t interval, nsec_t now) {
        if (counters->is_postponed)
                counter_add(&counters->n_postponed, now / interval - counters->next_read / interval + 1);
        counters->is_postponed = false;
}

int reader_read_intervals(Reader *r, nsec_t *ret_next) {
        const SnapshotCpu *c = &r->snapshot->cpus[r->slot];
        nsec_t now = clock_now(r->clock), next = UINT64_MAX, measured = 0;

        r->read_pass++;

        for (size_t first = 0, last; first < c->n_streams; first = last) {
                const SnapshotEvent *e = &r->snapshot->events[c->streams[first].event];
                EventCounters *counters = &e->event->counters[r->slot];

                for (last = first + 1; last < c->n_streams && c->streams[last].event == c->streams[first].event;)
                        last++;
                if (e->interval == 0)
                        continue;
                if (counters->next_read > 0 && now >= counters->next_read) {
                        nsec_t wait;
                        int n;

                        if (!reader_may_read(r, e, counters, &wait)) {
                                next = now + wait < next ? now + wait : next;
                                continue;
                        }
                        n = reader_read_charged(r, c, first, last, &measured);
                        if (n != 0)
                                return n;
                        count_postponed(counters, e->interval, now);
                }
                if (now >= counters->next_read || counters->next_read > now + e->interval)
                        counters->next_read = (now / e->interval + 1) * e->interval;
                if (counters->next_read < next)
                        next = counters->next_read;
        }
        *ret_next = next;
        return 0;
}

/* An event that is in `next` and not read there any more has been disabled. */
int reader_read_disabled(Reader *r, const Snapshot *next) {
        const SnapshotCpu *c = &r->snapshot->cpus[r->slot];
        nsec_t measured = 0;

        for (size_t first = 0, last; first < c->n_streams; first = last) {
                const SnapshotStream *stays = NULL;
                int n = 0;

                for (last = first + 1; last < c->n_streams && c->streams[last].event == c->streams[first].event;)
                        last++;
                if (r->snapshot->events[c->streams[first].event].interval > 0)
                        stays = snapshot_find(&next->cpus[r->slot], c->streams[first].id);
                if (stays && next->events[stays->event].interval == 0)
                        n = reader_read_charged(r, c, first, last, &measured);
                if (n != 0)
                        return n;
        }
        return 0;
}

/*
 * While an fd is replaced, old and new fd both count. What is sent is the count of the old one until it is disabled, and then
 * that of the new one, less what it had counted by then. Both are read here, between two occurrences on this CPU, so that each
 * occurrence is in exactly one of them.
 */
int reader_hand_over(Reader *r) {
        const SnapshotCpu *c = &r->snapshot->cpus[r->slot];

        for (size_t first = 0, last; first < c->n_streams; first = last) {
                const Event *event = r->snapshot->events[c->streams[first].event].event;
                ReadCount standby[EVENT_MEMBERS_MAX] = { { 0 } }, *closed = &event->closed_reads[r->slot * event->n_members];
                int error;

                for (last = first + 1; last < c->n_streams && c->streams[last].event == c->streams[first].event;)
                        last++;
                error = read_members(c, first, last, true, standby, event->n_members);
                if (error < 0)
                        return error_trace_of(error, "event %s", event->spec.name);
                if (error == OPEN_E_APART)
                        continue; /* cannot be read at all while that child lives */
                for (size_t i = 0; i < event->n_members; i++) { /* may be negative until the count of the old fd is added */
                        closed[i].value -= standby[i].value;
                        closed[i].enabled -= standby[i].enabled;
                        closed[i].running -= standby[i].running;
                        closed[i].lost -= standby[i].lost;
                }
        }
        return 0;
}
