/*
 * Samples that clients emit: as messages, as records, matched and encoded for who wants them. A few are taken at once, because they
 * are to be in their place in the order of time. Many take main as long as a change may, and so they are an operation: what has a
 * turn of its own serves others at its checkpoints, and nothing that is registered changes until it is over.
 */
#include "daemon/supervisor/requests/requests.h"

#include <assert.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/checkpoint.h"
#include "daemon/base/printable.h"
#include "daemon/model/external-plan.h"
#include "daemon/reader/route-sample.h"
#include "daemon/supervisor/events/registered.h"
#include "daemon/supervisor/readers/emit-pipe.h"
#include "daemon/supervisor/subscriptions/routes.h"

#define AHEAD_MAX NSEC_PER_SEC
#define AT_ONCE_COST ((size_t)50000) /* as filter_cost(), some nanoseconds each: a quarter of a millisecond */
#define SAMPLE_COST ((size_t)200)    /* measured: 1 us, to be checked, taken and encoded once */
#define TEXT_OF_COST ((size_t)256)   /* a condition costs so much of so long a text, and of a longer one in proportion */

static size_t cost_of_sample(const Perfd__V1__ExternalSample *m, size_t conditions) {
        size_t length = 0;

        for (size_t i = 0; i < m->n_values; i++)
                if (m->values[i]->value_case == PERFD__V1__EXTERNAL_VALUE__VALUE_TEXT)
                        length += m->values[i]->text.len;
        return SAMPLE_COST + conditions * (1 + length / TEXT_OF_COST);
}

/* By what all conditions cost that clients may have: which of them are asked of an event is known later. */
bool emit_takes_long(const Requests *s, const Perfd__V1__EmitRequest *q) {
        size_t cost = 0;

        if (q->n_samples <= 1)
                return false;
        for (size_t i = 0; i < q->n_samples && cost <= AT_ONCE_COST; i++)
                cost += cost_of_sample(q->samples[i], s->subscriptions->memory.conditions);
        return cost > AT_ONCE_COST;
}

/*
 * Items that are too long for one batch together: each of them fits into one (EXTERNAL_RAW_MAX). The batch has those before
 * `at`, and nothing else.
 */
static int put_apart(Requests *s, const RouteTable *t, const Record *record, RouteCursor *at) {
        EmitPipe *o = &s->readers->emit_pipe;

        if (EMIT_BATCHES - emit_pipe_n_away(o) < t->n_encodings - at->encoding + 1) {
                batch_take_back(o->batch, 0, 0);
                return EMIT_E_LOST;
        }
        do {
                int r;

                readers_flush_emitted(s->readers);
                r = readers_need_emit_batch(s->readers);
                assert(r != EMIT_E_LOST); /* counted above */
                if (r < 0)
                        return r;
        } while (route_sample(o->batch, t, record, at) != 0);
        return 0;
}

/* All items of a sample, or, EMIT_E_LOST, none; a batch that is full goes first. */
static int put(Requests *s, const RouteTable *t, const Record *record, bool *ret_is_wanted) {
        EmitPipe *o = &s->readers->emit_pipe;
        RouteCursor at = { 0 };
        int r = readers_need_emit_batch(s->readers);

        while (r == 0) {
                const size_t n_entries = o->batch->n_entries, used = o->batch->used;

                at = (RouteCursor){ 0 };
                if (route_sample(o->batch, t, record, &at) == 0) {
                        *ret_is_wanted = at.is_wanted;
                        return 0;
                }
                if (n_entries == 0)
                        break;
                batch_take_back(o->batch, n_entries, used);
                readers_flush_emitted(s->readers);
                r = readers_need_emit_batch(s->readers);
        }
        *ret_is_wanted = r == 0 || route_wants(t, record);
        if (r == EMIT_E_LOST && !*ret_is_wanted)
                return 0;
        return r == 0 ? put_apart(s, t, record, &at) : r;
}

/* EMIT_E_LOST: it is counted so, and nobody gets it. Late is only what somebody wants. */
static int take_sample(Requests *s, Registration *g, const Record *record, bool *ret_is_late) {
        EventCounters *c = &g->event->counters[s->readers->n_cpus];
        _cleanup_(route_table_unrefp) RouteTable *table = NULL;
        bool is_wanted = false;
        int r = registration_route_table(g, &table);

        if (r == 0 && table)
                r = put(s, table, record, &is_wanted);
        if (r < 0)
                return r;
        if (record->time > g->latest)
                g->latest = record->time;
        c->emitted++;
        counter_add(!is_wanted ? &c->filtered : r == EMIT_E_LOST ? &c->lost[LOSS_BATCH_POOL] : &c->delivered, 1);
        if (r == EMIT_E_LOST)
                loss_bell_note(&s->ledger->losses.bell);
        *ret_is_late = is_wanted && r == 0 &&
                       record->time < atomic_load_explicit(&s->readers->dispatcher.released_until, memory_order_relaxed);
        return r;
}

static int values_from_message(const Perfd__V1__ExternalSample *m, ExternalInput *ret, Explanation *e) {
        for (size_t i = 0; i < m->n_values; i++) {
                const Perfd__V1__ExternalValue *v = m->values[i];

                ret[i] = (ExternalInput){ .is_number = v->value_case != PERFD__V1__EXTERNAL_VALUE__VALUE_TEXT };
                switch (v->value_case) {
                case PERFD__V1__EXTERNAL_VALUE__VALUE_NUMBER:
                        ret[i].number = v->number;
                        break;
                case PERFD__V1__EXTERNAL_VALUE__VALUE_SIGNED_NUMBER:
                        ret[i].number = (uint64_t)v->signed_number;
                        ret[i].is_signed = true;
                        break;
                case PERFD__V1__EXTERNAL_VALUE__VALUE_TEXT:
                        ret[i].text = v->text.data;
                        ret[i].length = v->text.len;
                        break;
                default:
                        return refuse(e, REFUSED_INVALID, "bad-value", "value %zu of %s is neither a number nor a text", i + 1,
                                      m->event);
                }
        }
        return 0;
}

/* Before anything is said of the event: whether there is one is not for everybody. */
static int check_emitter(const Access *access, const Perfd__V1__ExternalSample *m, Explanation *e) {
        char what[128];

        if (access_may_emit(access, m->event))
                return access_check_emitter(access, m->pid, m->tid, e);
        (void)snprintf(what, sizeof(what), "to emit %.80s", m->event);
        printable_make(what, sizeof(what)); /* it may be cut in a character */
        return access_refuse(access, what, e);
}

/* A message as a record, whose raw bytes are in `raw`. Refused: nothing was taken. */
static int sample_from_message(Requests *s, const Perfd__V1__ExternalSample *m, uint8_t *raw,
                               Registration **ret_registration, Record *ret, Explanation *e) {
        Registration *g = events_find(s->events, m->event);
        ExternalInput values[EXTERNAL_FIELDS_MAX];
        nsec_t now = clock_now(s->readers->attr.clock);
        size_t size;
        int r;

        if (!g)
                return refuse(e, REFUSED_NOT_FOUND, "unknown-event", "no running event is called %s: `perfctl list` shows them",
                              m->event);
        if (!g->event->external)
                return refuse(e, REFUSED_INVALID, "not-external", "%s is not an external event: its samples come from the kernel",
                              m->event);
        if (m->time == 0 || m->time > now + AHEAD_MAX)
                return refuse(e, REFUSED_INVALID, "bad-time", "a sample of %s has the time %llu, and %s is at %llu: use the "
                        "stream's clock; a time may be at most one second in the future", m->event, (unsigned long long)m->time,
                              config_clock_name(s->settings->started_with), (unsigned long long)now);
        if (m->n_values > EXTERNAL_FIELDS_MAX)
                return refuse(e, REFUSED_INVALID, "bad-value", "found %zu values: %s has %zu fields", m->n_values, m->event,
                              g->event->plan->n_fields);
        r = values_from_message(m, values, e);
        if (r == 0)
                r = external_raw_encode(g->event->plan, values, m->n_values, raw, &size, e);
        if (r != 0)
                return r;
        *ret_registration = g;
        *ret = (Record){ .type = PERF_RECORD_SAMPLE, .cpu = m->cpu, .time = m->time, .pid = m->pid, .tid = m->tid,
                         .comm = "", .is_comm_sure = true, .raw = raw, .raw_size = (uint32_t)size };
        return 0;
}

/* Whether all may be taken, before any is. */
static int check_samples(RequestContext *a, uint8_t *raw, Explanation *e) {
        const Perfd__V1__EmitRequest *q = a->request->emit;
        Registration *g;
        Record record;
        int r = 0;

        for (size_t i = 0; i < q->n_samples && r == 0; i++) {
                r = checkpoint(e);
                if (r == 0 && !events_find(a->requests->events, q->samples[i]->event))
                        r = request_check_sample_texts(q->samples[i], e);
                if (r == 0)
                        r = check_emitter(&a->access, q->samples[i], e);
                if (r == 0)
                        r = sample_from_message(a->requests, q->samples[i], raw, &g, &record, e);
        }
        return r;
}

/* What was checked. Now that some are taken all are, also if their client or perfd goes. */
static int take_samples(RequestContext *a, uint8_t *raw, Perfd__V1__EmitReply *reply, Explanation *e) {
        const Perfd__V1__EmitRequest *q = a->request->emit;
        Requests *s = a->requests;

        if (operations_has_turn(s->operations, a->connection))
                operations_set_final(s->operations);
        for (size_t i = 0; i < q->n_samples; i++) {
                bool is_late = false;
                Registration *g;
                Record record;
                int r = checkpoint(e);

                if (r == 0)
                        r = sample_from_message(s, q->samples[i], raw, &g, &record, e); /* once more: only one is kept at a time */
                if (r != 0)
                        return r;
                if (!g->enabled)
                        continue;
                r = take_sample(s, g, &record, &is_late);
                if (r < 0)
                        return r;
                reply->lost += r == EMIT_E_LOST;
                reply->taken += r == 0;
                reply->late += is_late;
        }
        return readers_send_emitted(s->readers);
}

int handle_emit(RequestContext *a, Explanation *e) {
        _cleanup_free_ uint8_t *raw = malloc(EXTERNAL_RAW_MAX);
        Perfd__V1__EmitReply *reply = malloc(sizeof(*reply));
        int r;

        if (!raw || !reply) {
                free(reply);
                return error_origin(-ENOMEM);
        }
        perfd__v1__emit_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_EMITTED;
        a->response->emitted = reply;
        r = check_samples(a, raw, e);
        return r == 0 ? take_samples(a, raw, reply, e) : r;
}
