/*
 * The ledger: every reader takes its cut, the dispatcher reports its rows, and here they are put side by side. Each
 * CPU's cut is consistent in itself; the dispatcher is asked afterwards, so that it has seen all that the cuts count.
 * What a ledger is of, all or the events of somebody, is its scope.
 */
#include "daemon/supervisor/ledger/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/supervisor/events/select.h"
#include "daemon/supervisor/ledger/events.h"
#include "daemon/supervisor/ledger/limit.h"
#include "daemon/supervisor/ledger/removed.h"
#include "daemon/supervisor/ledger/ring.h"
#include "daemon/supervisor/readers/publish.h"
#include "daemon/supervisor/readers/wait.h"
#include "daemon/supervisor/resolve/external.h"

#define LEDGER_MAX (FRAME_MAX_SERVER - ((size_t)64 << 10)) /* bytes, with room for what is around it in a frame */

static int ring_counts_new(const RingLosses *l, Perfd__V1__Count ***ret, size_t *ret_n) {
        const char *const names[] = { loss_name(LOSS_KERNEL_RING), loss_name(LOSS_UNKNOWN_ID), loss_name(LOSS_UNDECODABLE) };
        const uint64_t counts[] = { l->side_lost, l->unknown_id, l->undecodable };

        return ledger_counts_new(counts, names, ARRAY_SIZE(names), ret, ret_n);
}

/* A stream's ledger has what concerns it: where its side records come from, and where what it wanted may have been lost. */
static bool ring_is_in(const LedgerScope *scope, const RingLosses *since) {
        if (scope->stream)
                return scope->stream->has_records || since->side_lost || since->unknown_id || since->undecodable;
        return scope->is_all;
}

static int ledger_add_ring(const Ledger *s, const LedgerScope *scope, uint32_t slot, Perfd__V1__Ledger *ledger) {
        const bool is_stalled = reader_is_stalled(&s->readers->answering.readers[slot]);
        const RingCut c = ledger_ring_cut(&s->readers->by_slot[slot].counters, is_stalled);
        RingLosses lost = ledger_ring_losses(s, slot), since = lost;
        Perfd__V1__RingLedger *row;
        int r;

        if (scope->stream && scope->stream->base) {
                const RingLosses *base = &scope->stream->base->rings[slot];

                since = (RingLosses){ lost.side_lost - base->side_lost, lost.unknown_id - base->unknown_id,
                                      lost.undecodable - base->undecodable };
        }
        if (!ring_is_in(scope, &since))
                return 0;
        row = malloc(sizeof(*row));
        if (!row)
                return error_origin(-ENOMEM);
        perfd__v1__ring_ledger__init(row);
        ledger->rings[ledger->n_rings++] = row;
        row->cpu = s->readers->cpus[slot];
        row->records = c.records;
        row->samples = c.samples;
        row->side_records = c.side_records;
        row->foreign_times = counter_get(&s->readers->by_slot[slot].counters.foreign_times);
        row->stalled = is_stalled;
        row->balanced = !is_stalled && row->records == row->samples + row->side_records + lost.unknown_id + lost.undecodable;
        r = ring_counts_new(&lost, &row->lost, &row->n_lost);
        return r < 0 || !scope->stream || !scope->stream->base ? r : ring_counts_new(&since, &row->lost_since, &row->n_lost_since);
}

static int ledger_add_rings(const Ledger *s, const LedgerScope *scope, Perfd__V1__Ledger *ledger) {
        int r = 0;

        ledger->rings = calloc(s->readers->n_cpus + 1, sizeof(*ledger->rings));
        if (!ledger->rings)
                return error_origin(-ENOMEM);
        for (uint32_t slot = 0; slot < s->readers->n_cpus && r == 0; slot++)
                r = ledger_add_ring(s, scope, slot, ledger);
        return r;
}

static int ledger_add_probe(const LedgerScope *scope, const Event *event, bool known, uint64_t hits, uint64_t missed,
                            Perfd__V1__Ledger *ledger) {
        Perfd__V1__ProbeLedger **more = reallocarray(ledger->probes, ledger->n_probes + 1, sizeof(*more));
        Perfd__V1__ProbeLedger *row = more ? malloc(sizeof(*row)) : NULL;

        if (more)
                ledger->probes = more;
        if (!row)
                return error_origin(-ENOMEM);
        perfd__v1__probe_ledger__init(row);
        ledger->probes[ledger->n_probes++] = row;
        row->id = event->id;
        row->known = known;
        row->hits = hits;
        row->missed = missed;
        if (scope->stream)
                row->missed_since = missed - ledger_base_missed(scope->stream->base, event->id);
        return (row->name = strdup(event->spec.name)) ? 0 : error_origin(-ENOMEM);
}

/* Hits that the kernel could not even count, where it says how many. */
static int ledger_add_probes(const Ledger *s, const LedgerScope *scope, Perfd__V1__Ledger *ledger) {
        int r = 0;

        for (const Registration *g = s->events->registrations; g && r == 0; g = g->next) {
                uint64_t hits = 0, missed = 0;
                bool known;

                if (!g->probe || !ledger_has(scope, g->event))
                        continue;
                known = probe_read_profile(&s->host->tracing, g->probe, &hits, &missed);
                r = ledger_add_probe(scope, g->event, known, hits, missed, ledger);
        }
        return r;
}

/* What ended while the stream was there; behind all others. */
static int ledger_add_removed(const Ledger *s, const LedgerScope *scope, const DispatcherReport *report,
                              Perfd__V1__Ledger *ledger) {
        int r = 0;

        for (const RemovedEvent *e = s->removed.first; e && r == 0; e = e->next) {
                if (!removed_concerns(e, scope->stream->id) || !scope->stream->wants.has(scope->stream->wants.userdata, e->event))
                        continue;
                r = ledger_add_removed_event(s, scope, report, e, ledger);
                if (r == 0 && e->has_probe)
                        r = ledger_add_probe(scope, e->event, e->probe_known, e->probe_hits, e->probe_missed, ledger);
        }
        ledger->truncated = s->removed.forgotten > 0 && s->removed.forgotten >= scope->stream->id;
        return r;
}

static int ledger_add_subscribers(const LedgerScope *scope, const DispatcherReport *report,
                                  Perfd__V1__Ledger *ledger) {
        ledger->subscribers = calloc(report->n_subscribers + 1, sizeof(*ledger->subscribers));
        if (!ledger->subscribers)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < report->n_subscribers; i++) {
                Perfd__V1__Count counts[N_SUBSCRIBER_DROPS], *dropped[N_SUBSCRIBER_DROPS];
                Perfd__V1__SubscriberLedger borrowed;
                uint8_t bytes[512]; /* the longest row: a peer's text and eleven numbers */
                size_t n;

                if (!scope->has_subscriber(scope->userdata, scope, report->subscribers[i].id))
                        continue;
                subscriber_row_fill(&report->subscribers[i], &borrowed, counts, dropped);
                n = perfd__v1__subscriber_ledger__pack(&borrowed, bytes);
                ledger->subscribers[ledger->n_subscribers] = perfd__v1__subscriber_ledger__unpack(NULL, n, bytes);
                if (!ledger->subscribers[ledger->n_subscribers])
                        return error_origin(-ENOMEM);
                ledger->n_subscribers++;
        }
        return 0;
}

/* A ledger is one frame: what is beyond that is left out, and said. */
static void ledger_truncate(Perfd__V1__Ledger *ledger) {
        size_t size = perfd__v1__ledger__get_packed_size(ledger);

        while (size > LEDGER_MAX && ledger->n_events > 0) {
                Perfd__V1__EventLedger *last = ledger->events[--ledger->n_events];

                size -= perfd__v1__event_ledger__get_packed_size(last);
                perfd__v1__event_ledger__free_unpacked(last, NULL);
                ledger->truncated = true;
        }
}

int ledger_make(const Ledger *s, const LedgerScope *scope, const DispatcherReport *report, Perfd__V1__Ledger **ret) {
        Perfd__V1__Ledger *ledger = malloc(sizeof(*ledger));
        int r;

        if (!ledger)
                return error_origin(-ENOMEM);
        perfd__v1__ledger__init(ledger);
        ledger->loss_exact = s->readers->attr.has_lost;
        r = ledger_add_events(s, scope, report, ledger);
        if (r == 0)
                r = ledger_add_rings(s, scope, ledger);
        if (r == 0)
                r = ledger_add_probes(s, scope, ledger);
        if (r == 0)
                r = scope->stream ? ledger_add_removed(s, scope, report, ledger) :
                                    ledger_add_subscribers(scope, report, ledger);
        if (r == 0 && scope->stream && scope->stream->is_limited)
                ledger_limit(ledger);
        ledger_truncate(ledger);
        if (r != 0) {
                perfd__v1__ledger__free_unpacked(ledger, NULL);
                return r;
        }
        *ret = ledger;
        return 0;
}

static int find_events(const Ledger *s, char *const *names, size_t n_names, CutScope **ret, Explanation *e) {
        _cleanup_free_ Registration **selected = NULL;
        size_t n;
        int r = events_select(s->events, names, n_names, &selected, &n, e);

        return r == 0 ? events_cut_scope(selected, n, ret) : r;
}

int ledger_answer(Ledger *s, char *const *names, size_t n_names,
                  bool (*has_subscriber)(const void *userdata, const LedgerScope *scope, uint64_t id), const void *userdata,
                  Perfd__V1__Ledger **ret, Explanation *e) {
        LedgerScope scope = { .is_all = n_names == 0, .has_subscriber = has_subscriber, .userdata = userdata };
        DispatcherReport report = { .n_subscribers = 0 };
        _cleanup_(cut_scope_unrefp) CutScope *cut = NULL;
        int r = 0;

        thread_assert(THREAD_MAIN);
        if (n_names > 0)
                r = find_events(s, names, n_names, &cut, e);
        if (cut) {
                scope.ids = cut->ids;
                scope.n_ids = cut->n_ids;
        }
        if (r == 0)
                r = readers_cut(s->readers, cut);
        if (r == 0)
                r = readers_report(s->readers, &report, e);
        if (r == 0)
                r = ledger_make(s, &scope, &report, ret);
        dispatcher_report_deinit(&report);
        return r;
}
