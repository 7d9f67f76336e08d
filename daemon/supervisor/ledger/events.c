/*
 * The ledger's rows of events: what the kernel counted, against what was read, filtered and lost. Of each CPU all numbers
 * are of one cut; nothing is added up that was not read at the same place of a ring.
 */
#include "daemon/supervisor/ledger/events.h"

#include <string.h>

#include "daemon/base/checkpoint.h"
#include "daemon/supervisor/ledger/ledger.h"
#include "daemon/supervisor/readers/publish.h"

/* What clients emit is never among them: no kernel counts it. */
static bool has_unwritten(const Ledger *s, uint32_t slot) {
        return slot < s->readers->n_cpus && s->readers->attr.has_lost;
}

/*
 * Of a reader that has not answered what it has counted by now, which is no cut: it may be in the middle of one. The kernel's own
 * counts are not known then.
 */
static const EventCounters *counters_of(const Ledger *s, const Event *event, uint32_t slot, EventCounters *live) {
        const EventCounters *c = &event->counters[slot];

        if (slot >= s->readers->n_cpus ||
            (!reader_is_stalled(&s->readers->answering.readers[slot]) && reader_has_answered(s->readers, slot)))
                return c;
        memset(live, 0, sizeof(*live));
        live->cut = (EventCut){ .delivered = counter_get(&c->delivered), .filtered = counter_get(&c->filtered),
                                .duplicates = counter_get(&c->duplicates), .is_approximate = true };
        live->delivered = live->cut.delivered;
        live->filtered = live->cut.filtered;
        for (int i = 0; i < _LOSS_EVENT_MAX; i++)
                live->lost[i] = live->cut.lost[i] = counter_get(&c->lost[i]);
        live->closed_count = c->closed_count;
        live->closed_lost = counter_get(&c->closed_lost);
        counters_note_kernel(live);
        return live;
}

/*
 * What readers count as of now, and what the kernel lost as of the last cut: it was added up then, because in the middle of a change
 * main has kept what some of the old fds have counted, which is in that cut too.
 */
EventCut ledger_event_totals(const Ledger *s, const Registration *g) {
        EventCut sum = { .is_consistent = true };

        for (uint32_t slot = 0; slot < g->event->n_slots; slot++) {
                EventCounters live;
                const EventCounters *c = counters_of(s, g->event, slot, &live);

                sum.delivered += counter_get(&c->delivered);
                sum.filtered += counter_get(&c->filtered);
                for (int i = 0; i < _LOSS_EVENT_MAX; i++)
                        sum.lost[i] += counter_get(&c->lost[i]);
                sum.lost[LOSS_KERNEL_RING] += c->cut.lost[LOSS_KERNEL_RING];
                sum.lost[LOSS_KERNEL_UNWRITTEN] += has_unwritten(s, slot) ? c->cut.lost[LOSS_KERNEL_UNWRITTEN] : 0;
        }
        return sum;
}

int ledger_counts_new(const uint64_t *values, const char *const *names, size_t n, Perfd__V1__Count ***ret, size_t *ret_n) {
        *ret = calloc(n + 1, sizeof(**ret));
        if (!*ret)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < n; i++) {
                Perfd__V1__Count *c = malloc(sizeof(*c));

                if (!c)
                        return error_origin(-ENOMEM);
                perfd__v1__count__init(c);
                (*ret)[(*ret_n)++] = c;
                c->count = values[i];
                if (!(c->reason = strdup(names[i])))
                        return error_origin(-ENOMEM);
        }
        return 0;
}

/*
 * The dispatcher's row has what came to the readers before the cut. Of a reader that does not answer that is another moment: what
 * is more than was delivered belongs to a later one.
 */
static uint64_t late_of(const DispatcherReport *report, const EventCut *cut, uint32_t event, uint32_t slot) {
        const LateRow *row = late_rows_find(report->late, report->n_late, event, slot);
        uint64_t late = row ? row->count : 0;

        return late < cut->delivered ? late : cut->delivered;
}

/* Where there is nothing to count that by, occurred is what was read and lost. */
static bool has_expected(const Ledger *s, const EventCounters *c, uint32_t slot) {
        bool is_external = slot == s->readers->n_cpus;

        return (s->readers->attr.has_lost || is_external) && !c->cut.is_approximate;
}

/* occurred = delivered + filtered + all of lost. What a on standby generation saw besides is not part of occurred. */
bool ledger_numbers(const Ledger *s, const DispatcherReport *report, const Event *event, uint32_t slot, LedgerNumbers *ret) {
        EventCounters live;
        const EventCounters *c = counters_of(s, event, slot, &live);
        const EventCut *cut = &c->cut;
        uint64_t late = late_of(report, cut, event->id, slot), sum;

        *ret = (LedgerNumbers){ .delivered = cut->delivered - late, .filtered = cut->filtered };
        for (int i = 0; i < _LOSS_EVENT_MAX; i++)
                ret->lost[i] = cut->lost[i];
        ret->lost[LOSS_KERNEL_RING] = counters_ring_lost(c);
        ret->lost[LOSS_KERNEL_UNWRITTEN] = has_unwritten(s, slot) ? counters_unwritten(c) : 0;
        ret->lost[LOSS_LATE] = late;
        sum = ret->delivered + ret->filtered;
        for (int i = 0; i < _LOSS_MAX; i++)
                sum += ret->lost[i];
        ret->occurred = has_expected(s, c, slot) ? counters_occurred(c) : sum;
        return cut->is_consistent && ret->occurred == sum;
}

int ledger_some_losses_new(const uint64_t *lost, Perfd__V1__Count ***ret, size_t *ret_n) {
        const char *names[_LOSS_EVENT_MAX];
        uint64_t counts[_LOSS_EVENT_MAX];
        size_t n = 0;

        for (int i = 0; i < _LOSS_EVENT_MAX; i++)
                if (lost[i] > 0) {
                        names[n] = loss_name((Loss)i);
                        counts[n++] = lost[i];
                }
        return ledger_counts_new(counts, names, n, ret, ret_n);
}

static int ledger_losses_new(const uint64_t *lost, Perfd__V1__Count ***ret, size_t *ret_n) {
        const char *names[_LOSS_MAX];

        for (int i = 0; i < _LOSS_MAX; i++)
                names[i] = loss_name((Loss)i);
        return ledger_counts_new(lost, names, _LOSS_MAX, ret, ret_n);
}

/* now: that add up. What `base` says too is not of the stream's life. */
static int ledger_since_new(const LedgerNumbers *now, const LedgerNumbers *base, Perfd__V1__LedgerSince **ret) {
        Perfd__V1__LedgerSince *since = malloc(sizeof(*since));
        uint64_t lost[_LOSS_MAX];

        if (!since)
                return error_origin(-ENOMEM);
        perfd__v1__ledger_since__init(since);
        *ret = since;
        since->occurred = now->occurred - base->occurred;
        since->delivered = now->delivered - base->delivered;
        since->filtered = now->filtered - base->filtered;
        for (int i = 0; i < _LOSS_MAX; i++)
                lost[i] = now->lost[i] - base->lost[i];
        return ledger_losses_new(lost, &since->lost, &since->n_lost);
}

/* None of them ever goes back: if one did, there is nothing to be said of the time in between. */
static bool is_behind(const LedgerNumbers *now, const LedgerNumbers *base) {
        bool is = now->occurred >= base->occurred && now->delivered >= base->delivered && now->filtered >= base->filtered;

        for (int i = 0; i < _LOSS_MAX; i++)
                is = is && now->lost[i] >= base->lost[i];
        return is;
}

static int event_ledger_fill(const Ledger *s, const LedgerScope *scope, const DispatcherReport *report, const Event *event,
                             bool is_exact, uint32_t slot, Perfd__V1__EventLedger *row) {
        EventCounters live;
        const EventCounters *c = counters_of(s, event, slot, &live);
        LedgerNumbers now, base;
        int r = 0;

        row->balanced = ledger_numbers(s, report, event, slot, &now);
        row->id = event->id;
        row->external = slot == s->readers->n_cpus;
        row->cpu = row->external ? 0 : s->readers->cpus[slot];
        row->occurred = now.occurred;
        row->delivered = now.delivered;
        row->filtered = now.filtered;
        row->duplicates = counters_duplicates(c);
        row->count = c->cut.count + c->closed_count;
        row->exact = event->exact && is_exact && !scope->is_unreported && has_expected(s, c, slot) && !c->is_inexact &&
                     !c->unsure && counters_expected(c) == row->count && c->cut.sampled == 0 &&
                     (now.lost[LOSS_KERNEL_UNWRITTEN] == 0 || !c->standby_unsure);
        row->stalled = c == &live;
        if (!(row->name = strdup(event->spec.name)))
                return error_origin(-ENOMEM);
        if (scope->stream && row->balanced && ledger_base_find(scope->stream->base, event->id, slot, &base) &&
            is_behind(&now, &base))
                r = ledger_since_new(&now, &base, &row->since);
        return r < 0 ? r : ledger_losses_new(now.lost, &row->lost, &row->n_lost);
}

bool registration_has_slot(const Registration *g, uint32_t slot) {
        for (size_t i = 0; i < g->opened.n; i++)
                if (g->opened.fds[i].slot == slot)
                        return true;
        if (g->event->external)
                return slot == g->event->n_slots - 1;
        return g->event->counters[slot].closed_count > 0;
}

static int ledger_add_event(const Ledger *s, const LedgerScope *scope, const DispatcherReport *report, const Event *event,
                            bool is_exact, uint32_t slot, Perfd__V1__Ledger *ledger) {
        Perfd__V1__EventLedger *row = malloc(sizeof(*row));

        if (!row)
                return error_origin(-ENOMEM);
        perfd__v1__event_ledger__init(row);
        ledger->events[ledger->n_events++] = row;
        return event_ledger_fill(s, scope, report, event, is_exact, slot, row);
}

/* All of it is of one cut, and there is no other one until the ledger is made. A stream that ends has one in any case. */
static int serve_others(const Ledger *s, const LedgerScope *scope) {
        return scope->stream ? operations_serve_sometimes(s->operations) : checkpoint(NULL);
}

int ledger_add_events(const Ledger *s, const LedgerScope *scope, const DispatcherReport *report, Perfd__V1__Ledger *ledger) {
        size_t n = 0;
        int r = 0;

        for (const Registration *g = s->events->registrations; g; g = g->next)
                n += ledger_has(scope, g->event);
        ledger->events = calloc(n * (s->readers->n_cpus + 1) + 1, sizeof(*ledger->events));
        if (!ledger->events)
                return error_origin(-ENOMEM);
        for (const Registration *g = s->events->registrations; g && r == 0; g = g->next) {
                if (!ledger_has(scope, g->event))
                        continue;
                for (uint32_t slot = 0; slot < g->event->n_slots && r == 0; slot++)
                        if (registration_has_slot(g, slot))
                                r = ledger_add_event(s, scope, report, g->event, !g->probe || probe_is_exact(g->probe), slot,
                                                     ledger);
                if (r == 0)
                        r = serve_others(s, scope);
        }
        return r;
}

int ledger_add_removed_event(const Ledger *s, const LedgerScope *scope, const DispatcherReport *report, const RemovedEvent *e,
                             Perfd__V1__Ledger *ledger) {
        Perfd__V1__EventLedger **more = reallocarray(ledger->events, ledger->n_events + e->event->n_slots + 1, sizeof(*more));
        int r = 0;

        if (!more)
                return error_origin(-ENOMEM);
        ledger->events = more;
        for (uint32_t slot = 0; slot < e->event->n_slots && r == 0; slot++) {
                if (!e->has_slot[slot])
                        continue;
                r = ledger_add_event(s, scope, report, e->event, e->is_exact, slot, ledger);
                more[ledger->n_events - 1]->removed = true;
        }
        return r;
}
