/*
 * Ledger rows. Each sum is done again here: the daemon's own word that a row is balanced would be worth little, and a
 * subscriber is promised that he can check it.
 */
#include <errno.h>
#include <string.h>

#include "client/result.h"

static int counts_new(Arena *arena, Perfd__V1__Count *const *messages, size_t n, const perfd_count **ret) {
        perfd_count *counts = arena_push(arena, n, sizeof(*counts));

        if (!counts)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                counts[i] = (perfd_count){ .reason = messages[i]->reason, .count = messages[i]->count };
        *ret = counts;
        return 0;
}

static uint64_t counts_sum(const perfd_count *counts, size_t n) {
        uint64_t sum = 0;

        for (size_t i = 0; i < n; i++)
                sum += counts[i].count;
        return sum;
}

static uint64_t counts_get(const perfd_count *counts, size_t n, const char *reason) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(counts[i].reason, reason) == 0)
                        return counts[i].count;
        return 0;
}

static int add_events(perfd_result *result, const Perfd__V1__Ledger *ledger) {
        perfd_event_ledger *rows = arena_push(&result->arena, ledger->n_events, sizeof(*rows));

        if (!rows)
                return -ENOMEM;
        for (size_t i = 0; i < ledger->n_events; i++) {
                const Perfd__V1__EventLedger *m = ledger->events[i];
                perfd_event_ledger *row = &rows[i];

                *row = (perfd_event_ledger){
                        .id = m->id,
                        .name = m->name,
                        .cpu = m->cpu,
                        .occurred = m->occurred,
                        .delivered = m->delivered,
                        .filtered = m->filtered,
                        .n_lost = m->n_lost,
                        .exact = m->exact,
                        .count = m->count,
                        .doubled = m->doubled,
                        .external = m->external,
                        .removed = m->removed,
                };
                if (counts_new(&result->arena, m->lost, m->n_lost, &row->lost) < 0)
                        return -ENOMEM;
                row->balanced = m->balanced &&
                                row->occurred == row->delivered + row->filtered + counts_sum(row->lost, row->n_lost);
                result->balanced = result->balanced && row->balanced;
        }
        result->event_ledgers = rows;
        result->n_event_ledgers = ledger->n_events;
        return 0;
}

static int add_rings(perfd_result *result, const Perfd__V1__Ledger *ledger) {
        perfd_ring_ledger *rows = arena_push(&result->arena, ledger->n_rings, sizeof(*rows));

        if (!rows)
                return -ENOMEM;
        for (size_t i = 0; i < ledger->n_rings; i++) {
                const Perfd__V1__RingLedger *m = ledger->rings[i];
                perfd_ring_ledger *row = &rows[i];

                *row = (perfd_ring_ledger){
                        .cpu = m->cpu,
                        .records = m->records,
                        .samples = m->samples,
                        .side_records = m->side_records,
                        .n_lost = m->n_lost,
                };
                if (counts_new(&result->arena, m->lost, m->n_lost, &row->lost) < 0)
                        return -ENOMEM;
                row->balanced = m->balanced && row->records == row->samples + row->side_records +
                                                                       counts_get(row->lost, row->n_lost, "unknown_id") +
                                                                       counts_get(row->lost, row->n_lost, "undecodable");
                result->balanced = result->balanced && row->balanced;
        }
        result->ring_ledgers = rows;
        result->n_ring_ledgers = ledger->n_rings;
        return 0;
}

static int add_subscribers(perfd_result *result, const Perfd__V1__Ledger *ledger) {
        perfd_subscriber_ledger *rows = arena_push(&result->arena, ledger->n_subscribers, sizeof(*rows));

        if (!rows)
                return -ENOMEM;
        for (size_t i = 0; i < ledger->n_subscribers; i++) {
                const Perfd__V1__SubscriberLedger *m = ledger->subscribers[i];
                perfd_subscriber_ledger *row = &rows[i];

                *row = (perfd_subscriber_ledger){
                        .id = m->id,
                        .peer = m->peer,
                        .matched = m->matched,
                        .sent = m->sent,
                        .n_dropped = m->n_dropped,
                        .queued = m->queued,
                        .order = m->order,
                };
                if (counts_new(&result->arena, m->dropped, m->n_dropped, &row->dropped) < 0)
                        return -ENOMEM;
                row->balanced = m->balanced &&
                                row->matched == row->sent + counts_sum(row->dropped, row->n_dropped) + row->queued;
                result->balanced = result->balanced && row->balanced;
        }
        result->subscriber_ledgers = rows;
        result->n_subscriber_ledgers = ledger->n_subscribers;
        return 0;
}

static int add_probes(perfd_result *result, const Perfd__V1__Ledger *ledger) {
        perfd_probe_ledger *rows = arena_push(&result->arena, ledger->n_probes, sizeof(*rows));

        if (!rows)
                return -ENOMEM;
        for (size_t i = 0; i < ledger->n_probes; i++)
                rows[i] = (perfd_probe_ledger){
                        .id = ledger->probes[i]->id,
                        .name = ledger->probes[i]->name,
                        .hits = ledger->probes[i]->hits,
                        .missed = ledger->probes[i]->missed,
                        .known = ledger->probes[i]->known,
                };
        result->probe_ledgers = rows;
        result->n_probe_ledgers = ledger->n_probes;
        return 0;
}

int result_add_ledger(perfd_result *result, const Perfd__V1__Ledger *ledger) {
        result->balanced = true;
        result->loss_exact = ledger->loss_exact;
        result->truncated = ledger->truncated;
        if (add_events(result, ledger) < 0 || add_rings(result, ledger) < 0 ||
            add_subscribers(result, ledger) < 0 || add_probes(result, ledger) < 0)
                return -ENOMEM;
        return 0;
}
