/*
 * The closing ledger of a stream whose rule has a predicate (access.rules, where): how often something occurred that its client
 * may not see is not its to know either. What was lost stays, because it may have been the client's.
 */
#include "daemon/supervisor/ledger/limit.h"

#include <stdbool.h>

static uint64_t sum_of(Perfd__V1__Count *const *counts, size_t n) {
        uint64_t sum = 0;

        for (size_t i = 0; i < n; i++)
                sum += counts[i]->count;
        return sum;
}

/* As much as it was during the stream, where that is known. */
static void keep_since(Perfd__V1__Count *const *lost, size_t n, Perfd__V1__Count *const *since) {
        for (size_t i = 0; i < n; i++)
                lost[i]->count = since[i]->count;
}

static void limit_event(Perfd__V1__EventLedger *row) {
        Perfd__V1__LedgerSince *since = row->since;

        if (since && since->n_lost == row->n_lost)
                keep_since(row->lost, row->n_lost, since->lost);
        row->delivered = row->filtered = row->count = row->duplicates = 0;
        row->exact = false;
        row->occurred = sum_of(row->lost, row->n_lost);
        if (!since)
                return;
        since->delivered = since->filtered = 0;
        since->occurred = sum_of(since->lost, since->n_lost);
}

/* Behind `lost` there are unknown ids and undecodable records, which are the last two and among the records. */
static void limit_ring(Perfd__V1__RingLedger *row) {
        if (row->n_lost_since == row->n_lost)
                keep_since(row->lost, row->n_lost, row->lost_since);
        row->samples = row->side_records = row->foreign_times = 0;
        row->records = row->n_lost > 1 ? sum_of(row->lost + 1, row->n_lost - 1) : 0;
}

void ledger_limit(Perfd__V1__Ledger *ledger) {
        ledger->limited = true;
        for (size_t i = 0; i < ledger->n_events; i++)
                limit_event(ledger->events[i]);
        for (size_t i = 0; i < ledger->n_rings; i++)
                limit_ring(ledger->rings[i]);
        for (size_t i = 0; i < ledger->n_probes; i++) {
                ledger->probes[i]->hits = 0;
                ledger->probes[i]->missed = ledger->probes[i]->missed_since;
        }
}
