/*
 * Ledger rows. Each sum is done again here: the daemon's own word that a row is balanced would be worth little, and a
 * subscriber is promised that he can check it.
 */
#include <errno.h>
#include <string.h>

#include "client/result/result.h"

int result_counts_new(Arena *arena, Perfd__V1__Count *const *messages, size_t n, const perfd_count **ret) {
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

/* *ret stays NULL without one. *ret_right: its sum is. */
static int since_new(Arena *arena, const Perfd__V1__LedgerSince *m, const perfd_ledger_since **ret, bool *ret_right) {
        perfd_ledger_since *since;

        *ret_right = true;
        if (!m)
                return 0;
        since = arena_push(arena, 1, sizeof(*since));
        if (!since)
                return -ENOMEM;
        *since = (perfd_ledger_since){ .occurred = m->occurred, .delivered = m->delivered, .filtered = m->filtered,
                                       .n_lost = m->n_lost };
        if (result_counts_new(arena, m->lost, m->n_lost, &since->lost) < 0)
                return -ENOMEM;
        *ret_right = since->occurred == since->delivered + since->filtered + counts_sum(since->lost, since->n_lost);
        *ret = since;
        return 0;
}

static int add_events(perfd_result *result, const Perfd__V1__Ledger *ledger) {
        perfd_event_ledger *rows = arena_push(&result->arena, ledger->n_events, sizeof(*rows));

        if (!rows)
                return -ENOMEM;
        for (size_t i = 0; i < ledger->n_events; i++) {
                const Perfd__V1__EventLedger *m = ledger->events[i];
                perfd_event_ledger *row = &rows[i];
                bool is_right;

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
                        .duplicates = m->duplicates,
                        .external = m->external,
                        .removed = m->removed,
                        .stalled = m->stalled,
                };
                if (result_counts_new(&result->arena, m->lost, m->n_lost, &row->lost) < 0 ||
                    since_new(&result->arena, m->since, &row->since, &is_right) < 0)
                        return -ENOMEM;
                row->balanced = m->balanced && is_right &&
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
                        .foreign_times = m->foreign_times,
                        .n_lost = m->n_lost,
                        .n_lost_since = m->n_lost_since,
                        .stalled = m->stalled,
                };
                if (result_counts_new(&result->arena, m->lost, m->n_lost, &row->lost) < 0 ||
                    result_counts_new(&result->arena, m->lost_since, m->n_lost_since, &row->lost_since) < 0)
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
                        .latency = m->latency,
                };
                if (result_counts_new(&result->arena, m->dropped, m->n_dropped, &row->dropped) < 0)
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
                        .missed_since = ledger->probes[i]->missed_since,
                };
        result->probe_ledgers = rows;
        result->n_probe_ledgers = ledger->n_probes;
        return 0;
}

int result_add_ledger(perfd_result *result, const Perfd__V1__Ledger *ledger) {
        result->balanced = true;
        result->loss_exact = ledger->loss_exact;
        result->truncated = ledger->truncated;
        result->limited = ledger->limited;
        if (add_events(result, ledger) < 0 || add_rings(result, ledger) < 0 ||
            add_subscribers(result, ledger) < 0 || add_probes(result, ledger) < 0)
                return -ENOMEM;
        return 0;
}

/* To the count of this reason, a new one if it is the first. counts has room for all reasons. */
static void sum_add(perfd_count *counts, size_t *n, const char *reason, uint64_t count) {
        size_t i = 0;

        while (i < *n && strcmp(counts[i].reason, reason) != 0)
                i++;
        if (count == 0)
                return;
        if (i == *n)
                counts[(*n)++] = (perfd_count){ .reason = reason };
        counts[i].count += count;
}

static void sum_add_all(perfd_count *counts, size_t *n, const perfd_count *from, size_t n_from, const char *but) {
        for (size_t i = 0; i < n_from; i++)
                if (!but || strcmp(from[i].reason, but) != 0)
                        sum_add(counts, n, from[i].reason, from[i].count);
}

/* What a full ring lost of its own records is told from what it lost of the events' samples. */
static void sum_add_ring(perfd_count *counts, size_t *n, const perfd_ring_ledger *r) {
        for (size_t i = 0; i < r->n_lost_since; i++) {
                const perfd_count *c = &r->lost_since[i];

                sum_add(counts, n, strcmp(c->reason, "kernel_ring") == 0 ? "side_records" : c->reason, c->count);
        }
}

/* Reasons come from the daemon: at most as many as there are counts in all rows. */
static size_t count_reasons(const perfd_result *r) {
        size_t n = r->n_probe_ledgers;

        for (size_t i = 0; i < r->n_event_ledgers; i++)
                n += r->event_ledgers[i].n_lost + (r->event_ledgers[i].since ? r->event_ledgers[i].since->n_lost : 0);
        for (size_t i = 0; i < r->n_ring_ledgers; i++)
                n += r->ring_ledgers[i].n_lost_since;
        for (size_t i = 0; i < r->n_subscriber_ledgers; i++)
                n += r->subscriber_ledgers[i].n_dropped;
        return n;
}

/* What an event's row calls late no stream got: what this one did not is in its own row. */
int result_sum_losses(perfd_result *r, const perfd_count **ret, size_t *ret_n) {
        perfd_count *counts = arena_push(&r->arena, count_reasons(r) + 1, sizeof(*counts));
        size_t n = 0;

        if (!counts)
                return -ENOMEM;
        for (size_t i = 0; i < r->n_event_ledgers; i++) {
                const perfd_event_ledger *e = &r->event_ledgers[i];

                if (e->since)
                        sum_add_all(counts, &n, e->since->lost, e->since->n_lost, "late");
                else
                        sum_add_all(counts, &n, e->lost, e->n_lost, "late");
        }
        for (size_t i = 0; i < r->n_ring_ledgers; i++)
                sum_add_ring(counts, &n, &r->ring_ledgers[i]);
        for (size_t i = 0; i < r->n_probe_ledgers; i++)
                sum_add(counts, &n, "probe_missed", r->probe_ledgers[i].missed_since);
        for (size_t i = 0; i < r->n_subscriber_ledgers; i++)
                sum_add_all(counts, &n, r->subscriber_ledgers[i].dropped, r->subscriber_ledgers[i].n_dropped, NULL);
        *ret = counts;
        *ret_n = n;
        return 0;
}
