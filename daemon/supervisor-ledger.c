/*
 * The ledger: every reader takes its cut, the dispatcher reports its rows, and here they are put side by side. Each
 * CPU's cut is consistent in itself; the dispatcher is asked afterwards, so that it has seen all that the cuts count.
 */
#include "daemon/supervisor-ledger.h"

#include <string.h>
#include "daemon/base/log.h"
#include "daemon/supervisor-external.h"
#include "daemon/supervisor-ledger-events.h"
#include "daemon/supervisor-removed.h"

#define PATIENCE_S 30
#define LEDGER_MAX (FRAME_MAX_SERVER - ((size_t)64 << 10)) /* bytes, with room for what is around it in a frame */

int supervisor_cut(Supervisor *s) {
        int r = supervisor_order(s, READER_CUT, NULL);

        if (r == 0)
                supervisor_cut_external(s);
        return r;
}

void supervisor_wait_for_dispatcher(Supervisor *s, sem_t *done, const char *what) {
        nsec_t fed = clock_now(CLOCK_MONOTONIC);

        for (int patience = PATIENCE_S;; patience--) { /* as for the readers */
                struct timespec second;

                supervisor_feed_while_waiting(&fed);
                clock_gettime(CLOCK_REALTIME, &second); /* not time(2), which lags: its next second may be over */
                second.tv_sec++;
                if (sem_timedwait(done, &second) == 0)
                        break;
                if (errno != EINTR && patience <= 0) {
                        char stalled[256];

                        supervisor_say_stalled(s, stalled, sizeof(stalled)); /* one may have been stopped in the dispatcher's work */
                        log_print(LOG_CRIT, "the dispatcher (tid %d) has not answered for %d s, when it was asked %s; it is %s%s%s: "
                                  "perfd ends to be restarted", (int)s->dispatcher.thread.tid, PATIENCE_S, what,
                                  supervisor_thread_state(s->dispatcher.thread.tid), stalled[0] ? "; " : "", stalled);
                        abort();
                }
        }
}

int supervisor_report(Supervisor *s, DispatcherReport *ret) {
        DispatcherMail *mail = calloc(1, sizeof(*mail));
        sem_t done;

        if (!mail)
                return -ENOMEM;
        sem_init(&done, 0, 0);
        *mail = (DispatcherMail){ .order = DISPATCHER_REPORT, .report = ret, .done = &done };
        dispatcher_post(&s->dispatcher, mail);
        supervisor_wait_for_dispatcher(s, &done, "for its rows of the ledger");
        sem_destroy(&done);
        return ret->subscribers && ret->late ? 0 : -ENOMEM;
}

typedef struct RingCut {
        uint64_t records, samples, side_records, side_lost, unknown_id, undecodable;
} RingCut;

/* Of a reader that does not answer what it has counted by now: it may be in the middle of a cut. */
static RingCut ring_cut(const RingCounters *c, bool is_stalled) {
        if (is_stalled)
                return (RingCut){ .records = counter_get(&c->records), .samples = counter_get(&c->samples),
                                  .side_records = counter_get(&c->side_records), .side_lost = c->closed_side_lost,
                                  .unknown_id = counter_get(&c->unknown_id), .undecodable = counter_get(&c->undecodable) };
        return (RingCut){ c->cut_records, c->cut_samples, c->cut_side_records, c->cut_side_lost, c->cut_unknown_id,
                          c->cut_undecodable };
}

static int ledger_add_rings(const Supervisor *s, Perfd__V1__Ledger *ledger) {
        static const Loss reasons[] = { LOSS_KERNEL_RING, LOSS_UNKNOWN_ID, LOSS_UNDECODABLE };
        const char *names[ARRAY_SIZE(reasons)];

        for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
                names[i] = loss_name(reasons[i]);
        ledger->rings = calloc(s->n_cpus + 1, sizeof(*ledger->rings));
        if (!ledger->rings)
                return -ENOMEM;
        for (uint32_t slot = 0; slot < s->n_cpus; slot++) {
                const bool is_stalled = reader_is_stalled(&s->answering.readers[slot]);
                const RingCut c = ring_cut(&s->readers[slot].counters, is_stalled);
                const uint64_t lost[] = { c.side_lost, c.unknown_id, c.undecodable };
                Perfd__V1__RingLedger *row = malloc(sizeof(*row));
                int r;

                if (!row)
                        return -ENOMEM;
                perfd__v1__ring_ledger__init(row);
                ledger->rings[ledger->n_rings++] = row;
                row->cpu = s->cpus[slot];
                row->records = c.records;
                row->samples = c.samples;
                row->side_records = c.side_records;
                row->stalled = is_stalled;
                row->balanced = !is_stalled && row->records == row->samples + row->side_records + c.unknown_id + c.undecodable;
                r = ledger_counts_new(lost, names, ARRAY_SIZE(reasons), &row->lost, &row->n_lost);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int ledger_add_probe(const Event *event, bool known, uint64_t hits, uint64_t missed, Perfd__V1__Ledger *ledger) {
        Perfd__V1__ProbeLedger **more = reallocarray(ledger->probes, ledger->n_probes + 1, sizeof(*more));
        Perfd__V1__ProbeLedger *row = more ? malloc(sizeof(*row)) : NULL;

        if (more)
                ledger->probes = more;
        if (!row)
                return -ENOMEM;
        perfd__v1__probe_ledger__init(row);
        ledger->probes[ledger->n_probes++] = row;
        row->id = event->id;
        row->known = known;
        row->hits = hits;
        row->missed = missed;
        return (row->name = strdup(event->spec.name)) ? 0 : -ENOMEM;
}

/* Hits that the kernel could not even count, where it says how many. */
static int ledger_add_probes(const Supervisor *s, Perfd__V1__Ledger *ledger) {
        int r = 0;

        for (const Registration *g = s->registrations; g && r == 0; g = g->next) {
                uint64_t hits = 0, missed = 0;
                bool known = g->probe && probe_read_profile(&s->tracing, g->probe, &hits, &missed);

                if (g->probe)
                        r = ledger_add_probe(g->event, known, hits, missed, ledger);
        }
        return r;
}

/* What ended while the stream was there; behind all others. */
static int ledger_add_removed(const Supervisor *s, const DispatcherReport *report, uint64_t subscriber,
                              Perfd__V1__Ledger *ledger) {
        int r = 0;

        for (const RemovedEvent *e = s->removed.first; e && r == 0; e = e->next) {
                if (!removed_concerns(e, subscriber))
                        continue;
                r = ledger_add_removed_event(s, report, e, ledger);
                if (r == 0 && e->has_probe)
                        r = ledger_add_probe(e->event, e->probe_known, e->probe_hits, e->probe_missed, ledger);
        }
        ledger->truncated = s->removed.forgotten > 0 && s->removed.forgotten >= subscriber;
        return r;
}

static int ledger_add_subscribers(const DispatcherReport *report, Perfd__V1__Ledger *ledger) {
        ledger->subscribers = calloc(report->n_subscribers + 1, sizeof(*ledger->subscribers));
        if (!ledger->subscribers)
                return -ENOMEM;
        for (size_t i = 0; i < report->n_subscribers; i++) {
                Perfd__V1__Count counts[N_SUBSCRIBER_DROPS], *dropped[N_SUBSCRIBER_DROPS];
                Perfd__V1__SubscriberLedger borrowed;
                uint8_t bytes[512]; /* the longest row: a peer's text and ten numbers */
                size_t n;

                subscriber_row_fill(&report->subscribers[i], &borrowed, counts, dropped);
                n = perfd__v1__subscriber_ledger__pack(&borrowed, bytes);
                ledger->subscribers[i] = perfd__v1__subscriber_ledger__unpack(NULL, n, bytes);
                if (!ledger->subscribers[i])
                        return -ENOMEM;
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

/* closes: NULL, or the subscriber for whose end it is, or 0 for the end of all. */
static int ledger_make(Supervisor *s, const uint64_t *closes, Perfd__V1__Ledger **ret) {
        DispatcherReport report = { .n_subscribers = 0 };
        Perfd__V1__Ledger *ledger;
        int r;

        thread_assert(THREAD_MAIN);
        r = supervisor_cut(s);
        if (r < 0)
                return r;
        ledger = malloc(sizeof(*ledger));
        if (!ledger)
                return -ENOMEM;
        perfd__v1__ledger__init(ledger);
        ledger->loss_exact = s->attr.has_lost;
        r = supervisor_report(s, &report);
        if (r == 0)
                r = ledger_add_events(s, &report, ledger);
        if (r == 0)
                r = ledger_add_rings(s, ledger);
        if (r == 0)
                r = ledger_add_probes(s, ledger);
        if (r == 0 && closes)
                r = ledger_add_removed(s, &report, *closes, ledger);
        if (r == 0 && !closes)
                r = ledger_add_subscribers(&report, ledger);
        ledger_truncate(ledger);
        dispatcher_report_deinit(&report);
        if (r < 0) {
                perfd__v1__ledger__free_unpacked(ledger, NULL);
                return r;
        }
        *ret = ledger;
        return 0;
}

int supervisor_ledger(Supervisor *s, Perfd__V1__Ledger **ret) {
        return ledger_make(s, NULL, ret);
}

int supervisor_close_stream(Supervisor *s, uint64_t id, const char *reason) {
        Perfd__V1__Ledger *ledger = NULL;
        DispatcherMail *mail;
        int r;

        r = ledger_make(s, &id, &ledger);
        if (r < 0)
                return r;
        mail = calloc(1, sizeof(*mail));
        if (mail) {
                *mail = (DispatcherMail){ .order = DISPATCHER_CLOSE, .id = id, .reason = reason,
                                          .at = clock_now(s->attr.clock) };
                mail->n_bytes = perfd__v1__ledger__get_packed_size(ledger);
                mail->bytes = malloc(mail->n_bytes);
        }
        if (mail && mail->bytes) {
                perfd__v1__ledger__pack(ledger, mail->bytes);
                dispatcher_post(&s->dispatcher, TAKE_PTR(mail));
        } else
                r = -ENOMEM;
        free(mail);
        perfd__v1__ledger__free_unpacked(ledger, NULL);
        return r;
}
