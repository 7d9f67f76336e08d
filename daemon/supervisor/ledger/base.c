/*
 * Rows of events that have had something, sorted, so that a closing ledger finds each in the time of a search. What all streams
 * together keep is bounded: a stream that there is no room for has a closing ledger without what happened since it began.
 */
#include "daemon/supervisor/ledger/base.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/supervisor/ledger/events.h"
#include "daemon/supervisor/ledger/ledger.h"
#include "daemon/supervisor/ledger/ring.h"
#include "daemon/supervisor/readers/wait.h"

#define BASES_BYTES ((size_t)16 << 20) /* of all streams */

static int compare_events(const void *a, const void *b) {
        const EventBase *x = a, *y = b;

        if (x->event != y->event)
                return x->event < y->event ? -1 : 1;
        return (x->slot > y->slot) - (x->slot < y->slot);
}

/* Those that had none are found by not being there. */
static bool had_some(const LedgerNumbers *n) {
        uint64_t any = n->occurred | n->delivered | n->filtered;

        for (int i = 0; i < _LOSS_MAX; i++)
                any |= n->lost[i];
        return any > 0;
}

static int add_event(const Ledger *s, LedgerBase *b, const DispatcherReport *report, const Event *event) {
        for (uint32_t slot = 0; slot < event->n_slots; slot++) {
                EventBase row = { .event = event->id, .slot = slot }, *more;

                row.is_balanced = ledger_numbers(s, report, event, slot, &row.numbers);
                if (row.is_balanced && !had_some(&row.numbers))
                        continue;
                if ((b->n_events & (b->n_events - 1)) == 0) { /* there is room for a power of two */
                        more = reallocarray(b->events, b->n_events ? 2 * b->n_events : 1, sizeof(*more));
                        if (!more)
                                return error_origin(-ENOMEM);
                        b->events = more;
                }
                b->events[b->n_events++] = row;
        }
        return 0;
}

static int add_probes(Ledger *s, LedgerBase *b, const LedgerWants *wants) {
        for (const Registration *g = s->events->registrations; g; g = g->next) {
                uint64_t hits, missed;
                ProbeBase *more;

                if (!g->probe || !wants->has(wants->userdata, g->event) ||
                    !probe_read_profile(&s->host->tracing, g->probe, &hits, &missed) || missed == 0)
                        continue;
                more = reallocarray(b->probes, b->n_probes + 1, sizeof(*more));
                if (!more)
                        return error_origin(-ENOMEM);
                b->probes = more;
                b->probes[b->n_probes++] = (ProbeBase){ .event = g->event->id, .missed = missed };
        }
        return 0;
}

static int add_rings(const Ledger *s, LedgerBase *b) {
        b->rings = calloc(s->readers->n_cpus + 1, sizeof(*b->rings));
        if (!b->rings)
                return error_origin(-ENOMEM);
        for (uint32_t slot = 0; slot < s->readers->n_cpus; slot++)
                b->rings[slot] = ledger_ring_losses(s, slot);
        return 0;
}

static int base_fill(Ledger *s, const LedgerWants *wants, LedgerBase *b) {
        DispatcherReport report = { .n_subscribers = 0 };
        const Event *event;
        int r = counter_get(&s->readers->dispatcher.n_late_samples) > 0 ? readers_report(s->readers, &report, NULL) : 0;

        for (size_t i = 0; r == 0 && (event = wants->get(wants->userdata, i)); i++) {
                r = add_event(s, b, &report, event);
                if (r == 0)
                        r = operations_serve_sometimes(s->operations);
        }
        if (r == 0)
                r = add_probes(s, b, wants);
        if (r == 0)
                r = add_rings(s, b);
        dispatcher_report_deinit(&report);
        if (b->n_events > 0)
                qsort(b->events, b->n_events, sizeof(*b->events), compare_events);
        b->n_bytes = sizeof(*b) + 2 * b->n_events * sizeof(*b->events) + b->n_probes * sizeof(*b->probes) +
                     s->readers->n_cpus * sizeof(*b->rings);
        return r;
}

int ledger_base_new(Ledger *s, const LedgerWants *wants, LedgerBase **ret) {
        LedgerBase *b = calloc(1, sizeof(*b));
        int r;

        *ret = NULL;
        if (!b)
                return error_origin(-ENOMEM);
        r = base_fill(s, wants, b);
        s->base_bytes += b->n_bytes;
        if (r != 0 || s->base_bytes > BASES_BYTES)
                b = ledger_base_free(s, b);
        *ret = b;
        return r < 0 ? r : 0; /* refused, as the dispatcher does not answer: as where there is no room */
}

LedgerBase *ledger_base_free(Ledger *s, LedgerBase *b) {
        if (!b)
                return NULL;
        s->base_bytes -= b->n_bytes;
        free(b->events);
        free(b->probes);
        free(b->rings);
        free(b);
        return NULL;
}

bool ledger_base_find(const LedgerBase *b, uint32_t event, uint32_t slot, LedgerNumbers *ret) {
        const EventBase key = { .event = event, .slot = slot }, *row;

        if (!b)
                return false;
        *ret = (LedgerNumbers){ .occurred = 0 };
        row = b->n_events > 0 ? bsearch(&key, b->events, b->n_events, sizeof(*row), compare_events) : NULL;
        if (row)
                *ret = row->numbers;
        return !row || row->is_balanced;
}

uint64_t ledger_base_missed(const LedgerBase *b, uint32_t event) {
        for (size_t i = 0; b && i < b->n_probes; i++)
                if (b->probes[i].event == event)
                        return b->probes[i].missed;
        return 0;
}
