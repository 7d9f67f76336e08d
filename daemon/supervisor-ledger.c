/*
 * The ledger: every reader takes its cut, the dispatcher reports its rows, and here they are put side by side. Each
 * CPU's cut is consistent in itself; the dispatcher is asked afterwards, so that it has seen all that the cuts count.
 */
#include "daemon/supervisor-ledger.h"

#include <string.h>
#include "daemon/base/log.h"
#include "daemon/supervisor-external.h"
#include "daemon/supervisor-removed.h"

#define PATIENCE_S 30
#define LEDGER_MAX (FRAME_MAX_SERVER - ((size_t)64 << 10)) /* bytes, with room for what is around it in a frame */

/*
 * What has to be accounted for: the kernel's count of the fds that wrote each occurrence, and of those that did not,
 * whose count says nothing of their samples, what was read and lost. An event can have had both, by a live change of its
 * period; so what it was exact for stays proven.
 */
static uint64_t event_owed(const EventCounters *c) {
        return c->cut.owed + c->closed_owed + c->cut.sampled;
}

/*
 * Occurrences that the kernel counted without writing a record and without counting that as a loss: it does so when a
 * change of perf events from another CPU, anybody's, interrupts it in between (seen on 6.18). They are what is left of
 * its count when everything that was read and lost is taken off; that everything that was read is accounted for is what
 * the ring's own row says.
 */
static uint64_t event_unwritten(const Supervisor *s, const Event *event, uint32_t slot) {
        const EventCounters *c = &event->counters[slot];
        uint64_t owed = event_owed(c);
        uint64_t known = c->cut.delivered + c->cut.filtered + c->cut.doubled + c->cut.ring_lost + c->closed_lost;

        for (int i = 0; i < _LOSS_EVENT_MAX; i++)
                known += c->cut.lost[i];
        return s->attr.has_lost && c->cut.settled && !c->cut.loose && owed > known ? owed - known : 0;
}

/* As of the last cut, or later. */
EventCut supervisor_event_totals(const Supervisor *s, const Registration *g) {
        EventCut sum = { .settled = true };

        for (uint32_t slot = 0; slot < g->event->n_slots; slot++) {
                const EventCounters *c = &g->event->counters[slot];

                sum.delivered += counter_get(&c->delivered);
                sum.filtered += counter_get(&c->filtered);
                for (int i = 0; i < _LOSS_EVENT_MAX; i++)
                        sum.lost[i] += counter_get(&c->lost[i]);
                sum.lost[LOSS_KERNEL_RING] += c->closed_lost + c->cut.ring_lost;
                sum.lost[LOSS_KERNEL_UNWRITTEN] += event_unwritten(s, g->event, slot);
        }
        return sum;
}

int supervisor_cut(Supervisor *s) {
        int r = supervisor_order(s, READER_CUT, NULL);

        if (r == 0)
                supervisor_cut_external(s);
        return r;
}

void supervisor_wait_for_dispatcher(sem_t *done) {
        for (int patience = PATIENCE_S;; patience--) { /* as for the readers */
                struct timespec second;

                clock_gettime(CLOCK_REALTIME, &second); /* not time(2), which lags: its next second may be over */
                second.tv_sec++;
                if (sem_timedwait(done, &second) == 0)
                        break;
                if (errno != EINTR && patience <= 0) {
                        log_print(LOG_CRIT, "the dispatcher did not answer for %d s: perfd ends to be restarted", PATIENCE_S);
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
        supervisor_wait_for_dispatcher(&done);
        sem_destroy(&done);
        return ret->subscribers && ret->late ? 0 : -ENOMEM;
}

static int counts_new(const uint64_t *values, const char *const *names, size_t n, Perfd__V1__Count ***ret,
                      size_t *ret_n) {
        *ret = calloc(n + 1, sizeof(**ret));
        if (!*ret)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                Perfd__V1__Count *c = malloc(sizeof(*c));

                if (!c)
                        return -ENOMEM;
                perfd__v1__count__init(c);
                (*ret)[(*ret_n)++] = c;
                c->count = values[i];
                if (!(c->reason = strdup(names[i])))
                        return -ENOMEM;
        }
        return 0;
}

static uint64_t late_of(const DispatcherReport *report, uint32_t event, uint32_t slot) {
        for (size_t i = 0; i < report->n_late; i++)
                if (report->late[i].event == event && report->late[i].slot == slot)
                        return report->late[i].count;
        return 0;
}

/* occurred = delivered + filtered + all of lost. What a muted generation saw besides is not part of occurred. */
static int event_ledger_fill(const Supervisor *s, const Event *event, bool is_exact, uint32_t slot, uint64_t late,
                             Perfd__V1__EventLedger *row) {
        const EventCounters *c = &event->counters[slot];
        const EventCut *cut = &c->cut;
        uint64_t lost[_LOSS_MAX], sum = 0, count = cut->count + c->closed_count;
        const char *names[_LOSS_MAX];
        bool has_owed;

        for (int i = 0; i < _LOSS_MAX; i++) {
                lost[i] = i < _LOSS_EVENT_MAX ? cut->lost[i] : 0;
                names[i] = loss_name((Loss)i);
        }
        lost[LOSS_KERNEL_RING] = cut->ring_lost + c->closed_lost;
        lost[LOSS_KERNEL_UNWRITTEN] = event_unwritten(s, event, slot);
        lost[LOSS_LATE] = late;
        for (int i = 0; i < _LOSS_MAX; i++)
                sum += lost[i];
        row->id = event->id;
        row->external = slot == s->n_cpus;
        row->cpu = row->external ? 0 : s->cpus[slot];
        row->delivered = cut->delivered - late;
        row->filtered = cut->filtered;
        row->doubled = cut->doubled;
        row->count = count;
        has_owed = s->attr.has_lost || row->external;
        row->exact = event->exact && is_exact && has_owed && !cut->loose && !c->parted && event_owed(c) == count &&
                     cut->sampled == 0;
        row->occurred = has_owed && !cut->loose ? event_owed(c) - cut->doubled : row->delivered + row->filtered + sum;
        row->balanced = cut->settled && row->occurred == row->delivered + row->filtered + sum;
        if (!(row->name = strdup(event->spec.name)))
                return -ENOMEM;
        return counts_new(lost, names, _LOSS_MAX, &row->lost, &row->n_lost);
}

bool registration_has_slot(const Registration *g, uint32_t slot) {
        for (size_t i = 0; i < g->opened.n; i++)
                if (g->opened.streams[i].slot == slot)
                        return true;
        if (g->event->external)
                return slot == g->event->n_slots - 1;
        return g->event->counters[slot].closed_count > 0;
}

static int ledger_add_event(const Supervisor *s, const DispatcherReport *report, const Event *event, bool is_exact,
                            uint32_t slot, Perfd__V1__Ledger *ledger) {
        Perfd__V1__EventLedger *row = malloc(sizeof(*row));

        if (!row)
                return -ENOMEM;
        perfd__v1__event_ledger__init(row);
        ledger->events[ledger->n_events++] = row;
        return event_ledger_fill(s, event, is_exact, slot, late_of(report, event->id, slot), row);
}

static int ledger_add_events(const Supervisor *s, const DispatcherReport *report, Perfd__V1__Ledger *ledger) {
        int r = 0;

        ledger->events = calloc(s->n_registrations * (s->n_cpus + 1) + 1, sizeof(*ledger->events));
        if (!ledger->events)
                return -ENOMEM;
        for (const Registration *g = s->registrations; g; g = g->next)
                for (uint32_t slot = 0; slot < g->event->n_slots && r == 0; slot++)
                        if (registration_has_slot(g, slot))
                                r = ledger_add_event(s, report, g->event, !g->probe || probe_is_exact(g->probe), slot, ledger);
        return r;
}

static int ledger_add_removed_event(const Supervisor *s, const DispatcherReport *report, const RemovedEvent *e,
                                    Perfd__V1__Ledger *ledger) {
        Perfd__V1__EventLedger **more = reallocarray(ledger->events, ledger->n_events + e->event->n_slots + 1, sizeof(*more));
        int r = 0;

        if (!more)
                return -ENOMEM;
        ledger->events = more;
        for (uint32_t slot = 0; slot < e->event->n_slots && r == 0; slot++) {
                if (!e->has_slot[slot])
                        continue;
                r = ledger_add_event(s, report, e->event, e->is_exact, slot, ledger);
                more[ledger->n_events - 1]->removed = true;
        }
        return r;
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
                const RingCounters *c = &s->readers[slot].counters;
                const uint64_t lost[] = { c->cut_side_lost, c->cut_unknown_id, c->cut_undecodable };
                Perfd__V1__RingLedger *row = malloc(sizeof(*row));
                int r;

                if (!row)
                        return -ENOMEM;
                perfd__v1__ring_ledger__init(row);
                ledger->rings[ledger->n_rings++] = row;
                row->cpu = s->cpus[slot];
                row->records = c->cut_records;
                row->samples = c->cut_samples;
                row->side_records = c->cut_side_records;
                row->balanced = row->records == row->samples + row->side_records + c->cut_unknown_id + c->cut_undecodable;
                r = counts_new(lost, names, ARRAY_SIZE(reasons), &row->lost, &row->n_lost);
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
