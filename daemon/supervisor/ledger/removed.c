/*
 * The counters of a removed event are kept as they are, because its samples may still be in the merge: what of them comes too
 * late is known only when a stream is closed. Bounded by bytes; the oldest are forgotten first, and the ledgers that miss them
 * are marked as truncated.
 */
#include "daemon/supervisor/ledger/removed.h"

#include "daemon/supervisor/events/open.h"
#include "daemon/supervisor/ledger/ledger.h"

#define REMOVED_BYTES ((size_t)8 << 20)
#define EVENT_BYTES ((size_t)4096) /* spec, plan and names of one */

static size_t removed_size(const RemovedEvent *e) {
        return EVENT_BYTES + e->event->n_slots * sizeof(EventCounters);
}

static void forget_first(Ledger *s) {
        RemovedEvents *l = &s->removed;
        RemovedEvent *e = l->first;

        l->first = e->next;
        if (!l->first)
                l->last = NULL;
        l->n_bytes -= removed_size(e);
        event_unref(e->event);
        free(e);
}

/* For want of room or memory. */
static void miss(Ledger *s, uint64_t last_subscriber) {
        if (last_subscriber > s->removed.forgotten)
                s->removed.forgotten = last_subscriber;
}

static void append(Ledger *s, RemovedEvent *e) {
        RemovedEvents *l = &s->removed;

        if (l->last)
                l->last->next = e;
        else
                l->first = e;
        l->last = e;
        l->n_bytes += removed_size(e);
        while (l->n_bytes > REMOVED_BYTES && l->first != e) {
                miss(s, l->first->last_subscriber);
                forget_first(s);
        }
}

static int remember(Ledger *s, Registration *g, uint64_t last_subscriber) {
        RemovedEvent *e = calloc(1, sizeof(*e) + g->event->n_slots * sizeof(*e->has_slot));
        int r;

        if (!e) {
                miss(s, last_subscriber);
                return 0;
        }
        e->event = event_ref(g->event);
        e->last_subscriber = last_subscriber;
        for (uint32_t slot = 0; slot < g->event->n_slots; slot++)
                e->has_slot[slot] = registration_has_slot(g, slot);
        e->is_exact = !g->probe || probe_is_exact(g->probe);
        e->has_probe = g->probe != NULL;
        if (g->probe)
                e->probe_known = probe_read_profile(&s->host->tracing, g->probe, &e->probe_hits, &e->probe_missed);
        r = registration_keep_counts(s->events, g, &g->opened, false);
        for (uint32_t slot = 0; slot < g->event->n_slots; slot++)
                if (slot >= s->readers->n_cpus)
                        counters_settle_emitted(&g->event->counters[slot]);
                else if (!reader_is_stalled(&s->readers->answering.readers[slot])) /* which may go on at any time, with a cut */
                        counters_settle(&g->event->counters[slot]);
        append(s, e);
        return r;
}

int ledger_remember_removed(Ledger *s, Registration *const *removed, size_t n, uint64_t last_subscriber) {
        int r = 0;

        thread_assert(THREAD_MAIN);
        for (size_t i = 0; last_subscriber != 0 && i < n && r == 0; i++)
                r = remember(s, removed[i], last_subscriber);
        return r;
}

void ledger_forget_removed(Ledger *s, uint64_t oldest) {
        while (s->removed.first && s->removed.first->last_subscriber < oldest)
                forget_first(s);
}

void ledger_free_removed(Ledger *s) {
        while (s->removed.first)
                forget_first(s);
}

bool removed_concerns(const RemovedEvent *e, uint64_t subscriber) {
        return e->last_subscriber >= subscriber;
}
