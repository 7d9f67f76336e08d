/*
 * External events: main is their reader. It matches and encodes like one, into a batch pipe of its own, whose samples
 * the dispatcher merges by time. Nobody waits for that one: what comes later than the merge is counted as late.
 */
#include "daemon/supervisor/resolve/external.h"

#include <assert.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/printable.h"
#include "daemon/model/external-plan.h"
#include "daemon/supervisor/requests/requests.h"

#define EXTERNAL_WINDOW (5 * NSEC_PER_MSEC) /* from a client's clock to our socket, with a busy main thread in between */
#define AHEAD_MAX NSEC_PER_SEC
#define OWN_PROMPT ((size_t)8)            /* batches away, from which on requests share the next one */
#define OWN_HOLD_USEC UINT64_C(1000)

enum {
        OWN_E_LOST = 1, /* the dispatcher has all batches */
};

int supervisor_resolve_external(Supervisor *s, uint32_t id, EventSpec *spec, Registration **ret, Explanation *e) {
        _cleanup_(plan_unrefp) Plan *plan = NULL;
        Registration *g;
        int r;

        if (!event_spec_is_host(spec) || spec->target || spec->no_inherit || spec->include_self || spec->cpus || spec->period || spec->frequency || spec->callchain ||
            spec->filter || spec->interval || spec->attr.n)
                return refuse(e, REFUSED_INVALID, "bad-event", "clients emit %s: it has fields, and cannot have a target, "
                        "period, frequency, callchain, filter, interval, attr or include-self", spec->event);
        r = external_plan_new(spec->name, &spec->fields, &plan, e);
        if (r != 0)
                return r;
        g = calloc(1, sizeof(*g));
        if (!g)
                return error_origin(-ENOMEM);
        g->event = event_new(id, spec, plan, (uint32_t)s->n_cpus + 1);
        if (!g->event) {
                registration_free(s, g);
                return error_origin(-ENOMEM);
        }
        g->event->external = g->event->exact = true;
        g->event->period = 1;
        *ret = g;
        return 0;
}

/* ---- the batch pipe of main -------------------------------------------------------------------------------------------- */

int emit_pipe_init(EmitPipe *o) {
        int r = queue_init(&o->full, OWN_BATCHES);

        return r < 0 ? r : queue_init(&o->free, OWN_BATCHES);
}

void emit_pipe_deinit(EmitPipe *o) {
        Batch *b;

        while (o->full.slots && (b = queue_pop(&o->full)))
                batch_free(b);
        while (o->free.slots && (b = queue_pop(&o->free)))
                batch_free(b);
        o->batch = batch_free(o->batch);
        o->hold = sd_event_source_disable_unref(o->hold);
        queue_deinit(&o->full);
        queue_deinit(&o->free);
}

BatchPipe emit_pipe(EmitPipe *o) {
        return (BatchPipe){ .full = &o->full, .free = &o->free, .needs_batch = &o->needs_batch, .reader = NULL };
}

/* Batches that the dispatcher has not given back. */
static size_t own_away(const EmitPipe *o) {
        return o->n_batches - queue_count(&o->free) - (o->batch != NULL);
}

void supervisor_flush_external(Supervisor *s) {
        Batch *b = s->own.batch;
        bool pushed;

        if (!b || b->n_entries == 0)
                return;
        s->own.batch = NULL;
        b->cut = s->own.cut;
        batch_seal(b);
        pushed = queue_push(&s->own.full, b);
        assert(pushed); /* as many slots as batches */
        doorbell_ring(&s->dispatcher.dispatching.bell);
}

static int on_held_enough(sd_event_source *source, uint64_t usec, void *userdata) {
        Supervisor *s = userdata;

        s->own.is_held = false;
        supervisor_flush_external(s);
        return 0;
}

/*
 * After a request. Its samples leave at once while few batches are away. Otherwise they wait for those of the next requests,
 * the longer the fewer batches are left: so no number of requests can use them up, only a number of bytes.
 */
static int own_send(Supervisor *s) {
        EmitPipe *o = &s->own;
        size_t away = own_away(o);
        uint64_t usec;
        int r;

        if (away < OWN_PROMPT) {
                supervisor_flush_external(s);
                return 0;
        }
        if (!o->batch || o->batch->n_entries == 0 || o->is_held)
                return 0;
        usec = OWN_HOLD_USEC << (away / OWN_PROMPT - 1);
        if (!o->hold) {
                r = error_origin(sd_event_add_time_relative(s->event, &o->hold, CLOCK_MONOTONIC, usec, OWN_HOLD_USEC / 4, on_held_enough, s));
                if (r >= 0)
                        r = error_origin(sd_event_source_set_exit_on_failure(o->hold, true));
        } else {
                r = error_origin(sd_event_source_set_time_relative(o->hold, usec));
                if (r >= 0)
                        r = error_origin(sd_event_source_set_enabled(o->hold, SD_EVENT_ONESHOT));
        }
        o->is_held = r >= 0;
        return r < 0 ? r : 0;
}

/* Batches are made as they are needed and used again. OWN_E_LOST: all are on their way. */
static int own_need_batch(Supervisor *s) {
        EmitPipe *o = &s->own;

        if (o->batch && o->batch->n_entries > 0)
                return 0;
        if (!o->batch)
                o->batch = queue_pop(&o->free);
        if (!o->batch) {
                if (o->n_batches == OWN_BATCHES)
                        return OWN_E_LOST;
                if (!(o->batch = batch_new((uint32_t)s->n_cpus)))
                        return error_origin(-ENOMEM);
                o->n_batches++;
        }
        batch_reset(o->batch, s->generation);
        return 0;
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

typedef struct Wanted {
        EncodePlan *encoding;
        SubscriptionSet set;
} Wanted;

#define WANTED_MAX (ENCODINGS_MAX + _PAYLOAD_MAX)

/* Of all that is wanted: what the dispatcher is to decide, in the order of numbers. */
typedef struct Words {
        ConditionWord words[CONDITIONAL_MAX];
        size_t n;
        uint64_t groups; /* conditional ones */
} Words;

static int compare_words(const void *a, const void *b) {
        const ConditionWord *x = a, *y = b;

        return (x->number > y->number) - (x->number < y->number);
}

static void words_add(Words *w, const Subscription *u, const MatchProgram *program, const Record *record) {
        if (!u->asks_process)
                return;
        assert(w->n < CONDITIONAL_MAX); /* each has a number of its own */
        w->words[w->n++] = match_run_parts(program, record, u->number);
        w->groups |= 1ULL << BATCH_GROUP(u->number);
}

/* Who wants it, by encoding. */
static size_t find_wanted(const Registration *g, const Record *record, Wanted *ret, Words *words) {
        size_t n = 0;

        words->n = words->groups = 0;
        for (size_t i = 0; i < g->n_routes; i++) {
                const Subscription *u = g->routes[i].subscription;
                const SubscriptionRoute *route = &u->routes[g->routes[i].at];
                size_t k = 0;

                if (route->program && !match_run(route->program, record))
                        continue;
                while (k < n && ret[k].encoding != route->encoding)
                        k++;
                if (k == n) {
                        assert(n < WANTED_MAX);
                        ret[n].encoding = route->encoding;
                        ret[n++].set.groups = 0;
                }
                subscription_set_add(&ret[k].set, u->number);
                words_add(words, u, route->program, record);
        }
        qsort(words->words, words->n, sizeof(*words->words), compare_words);
        return n;
}

/* Behind an item for this set, of `words`. */
static size_t words_of(const Words *words, const SubscriptionSet *set) {
        size_t n = 0;

        FOR_EACH_BIT(group, set->groups & words->groups)
                n += (size_t)__builtin_popcountll(set->masks[group]);
        return n;
}

static void batch_put_words(Batch *b, size_t at, const Words *words, const SubscriptionSet *set) {
        batch_mark_conditional(b, at, words->groups);
        for (size_t i = 0; i < words->n; i++)
                if (subscription_set_has(set, words->words[i].number))
                        batch_add_word(b, &words->words[i]);
}

/* All of these items, in one batch; is_first: there are none before. False: there is no room for them, and none was appended. */
static bool batch_put(Batch *b, const Registration *g, const Record *record, const Wanted *wanted, size_t n, const Words *words,
                      bool is_first) {
        size_t lengths[WANTED_MAX], room, used = 0, n_entries = 0;
        uint8_t *to = batch_room(b, &room);

        for (size_t i = 0; i < n; i++)
                n_entries += subscription_set_count_groups(&wanted[i].set);
        if (!batch_has_entry_room(b) || !batch_has_room_for_more(b, n_entries))
                return false;
        for (size_t i = 0; i < n; i++) {
                if (used > room || item_encode(wanted[i].encoding, record, to + used, room - used, &lengths[i]) != 0)
                        return false;
                used += lengths[i] + words_of(words, &wanted[i].set) * sizeof(ConditionWord);
        }
        if (used > room)
                return false;
        for (size_t i = 0; i < n; i++) {
                size_t at = b->n_entries;

                batch_append_set(b, record->time, &wanted[i].set, g->event->id, record->tid, lengths[i]);
                batch_put_words(b, at, words, &wanted[i].set);
                b->entries[at].place |= is_first && i == 0 ? 0 : BATCH_MORE;
        }
        return true;
}

/* Items that are too long for one batch together: each of them fits into one (EXTERNAL_RAW_MAX). */
static int own_put_apart(Supervisor *s, const Registration *g, const Record *record, const Wanted *wanted, size_t n,
                         const Words *words) {
        if (OWN_BATCHES - own_away(&s->own) < n)
                return OWN_E_LOST;
        for (size_t i = 0; i < n; i++) {
                bool put;
                int r;

                supervisor_flush_external(s);
                r = own_need_batch(s);
                assert(r != OWN_E_LOST); /* counted above */
                if (r < 0)
                        return r;
                put = batch_put(s->own.batch, g, record, &wanted[i], 1, words, i == 0);
                assert(put);
        }
        return 0;
}

/* One item for each encoding, or, OWN_E_LOST, none at all; a batch that is full goes first. */
static int own_put(Supervisor *s, const Registration *g, const Record *record, const Wanted *wanted, size_t n,
                   const Words *words) {
        int r = own_need_batch(s);

        if (r != 0 || batch_put(s->own.batch, g, record, wanted, n, words, true))
                return r;
        supervisor_flush_external(s);
        r = own_need_batch(s);
        if (r != 0 || batch_put(s->own.batch, g, record, wanted, n, words, true))
                return r;
        return own_put_apart(s, g, record, wanted, n, words);
}

/* OWN_E_LOST: it is counted so, and nobody gets it. Late is only what somebody wants. */
static int take_sample(Supervisor *s, Registration *g, const Record *record, bool *ret_is_late) {
        EventCounters *c = &g->event->counters[s->n_cpus];
        Wanted wanted[WANTED_MAX];
        Words words;
        size_t n = find_wanted(g, record, wanted, &words);
        int r = n > 0 ? own_put(s, g, record, wanted, n, &words) : 0;

        if (r < 0)
                return r;
        if (record->time > g->latest)
                g->latest = record->time;
        c->closed_count++;
        counter_add(&c->closed_expected, 1);
        counter_add(n == 0 ? &c->filtered : r == OWN_E_LOST ? &c->lost[LOSS_BATCH_POOL] : &c->delivered, 1);
        if (r == OWN_E_LOST)
                loss_bell_note(&s->losses.bell);
        *ret_is_late = n > 0 && r == 0 && record->time < atomic_load_explicit(&s->dispatcher.released_until, memory_order_relaxed);
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
static int sample_from_message(Supervisor *s, const Perfd__V1__ExternalSample *m, uint8_t *raw,
                               Registration **ret_registration, Record *ret, Explanation *e) {
        Registration *g = supervisor_find(s, m->event);
        ExternalInput values[EXTERNAL_FIELDS_MAX];
        nsec_t now = clock_now(s->attr.clock);
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
                              config_clock_name(s->started_with), (unsigned long long)now);
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
                         .comm = "", .raw = raw, .raw_size = (uint32_t)size };
        return 0;
}

int handle_emit(RequestContext *a, Explanation *e) {
        const Perfd__V1__EmitRequest *q = a->request->emit;
        _cleanup_free_ uint8_t *raw = malloc(EXTERNAL_RAW_MAX);
        Perfd__V1__EmitReply *reply = malloc(sizeof(*reply));
        Supervisor *s = a->supervisor;
        Registration *g;
        bool is_late = false;
        Record record;
        int r = 0;

        if (!raw || !reply) {
                free(reply);
                return error_origin(-ENOMEM);
        }
        perfd__v1__emit_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_EMITTED;
        a->response->emitted = reply;
        for (size_t i = 0; i < q->n_samples && r == 0; i++) {
                r = check_emitter(&a->access, q->samples[i], e);
                if (r == 0)
                        r = sample_from_message(s, q->samples[i], raw, &g, &record, e);
        }
        if (r != 0)
                return r;
        for (size_t i = 0; i < q->n_samples && r == 0; i++) {
                r = sample_from_message(s, q->samples[i], raw, &g, &record, e); /* once more: only one is kept at a time */
                if (r != 0 || !g->enabled)
                        continue;
                r = take_sample(s, g, &record, &is_late);
                if (r < 0)
                        return r;
                reply->lost += r == OWN_E_LOST;
                reply->taken += r == 0;
                reply->late += is_late;
                r = 0;
        }
        return r == 0 ? own_send(s) : r;
}

void supervisor_cut_external(Supervisor *s) {
        supervisor_flush_external(s); /* what is delivered is on its way */
        s->own.cut = s->n_cuts;
        for (Registration *g = s->registrations; g; g = g->next)
                if (g->event->external)
                        counters_settle(&g->event->counters[s->n_cpus]);
}

void supervisor_update_window(Supervisor *s) {
        bool any = false;

        for (const Registration *g = s->registrations; g && !any; g = g->next)
                any = g->event->external && g->enabled;
        supervisor_flush_external(s); /* before the merge waits for nobody */
        atomic_store_explicit(&s->dispatcher.window, any ? EXTERNAL_WINDOW : 0, memory_order_relaxed);
}
