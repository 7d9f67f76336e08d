/* Samples that clients emit: as messages, as records, matched and encoded for who wants them. */
#include "daemon/supervisor/requests/requests.h"

#include <assert.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/printable.h"
#include "daemon/model/external-plan.h"
#include "daemon/supervisor/events/registered.h"
#include "daemon/supervisor/readers/emit-pipe.h"

#define AHEAD_MAX NSEC_PER_SEC

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
static int put_apart(Requests *s, const Registration *g, const Record *record, const Wanted *wanted, size_t n,
                         const Words *words) {
        if (EMIT_BATCHES - emit_pipe_n_away(&s->readers->emit_pipe) < n)
                return EMIT_E_LOST;
        for (size_t i = 0; i < n; i++) {
                bool put;
                int r;

                readers_flush_emitted(s->readers);
                r = readers_need_emit_batch(s->readers);
                assert(r != EMIT_E_LOST); /* counted above */
                if (r < 0)
                        return r;
                put = batch_put(s->readers->emit_pipe.batch, g, record, &wanted[i], 1, words, i == 0);
                assert(put);
        }
        return 0;
}

/* One item for each encoding, or, EMIT_E_LOST, none at all; a batch that is full goes first. */
static int put(Requests *s, const Registration *g, const Record *record, const Wanted *wanted, size_t n,
                   const Words *words) {
        int r = readers_need_emit_batch(s->readers);

        if (r != 0 || batch_put(s->readers->emit_pipe.batch, g, record, wanted, n, words, true))
                return r;
        readers_flush_emitted(s->readers);
        r = readers_need_emit_batch(s->readers);
        if (r != 0 || batch_put(s->readers->emit_pipe.batch, g, record, wanted, n, words, true))
                return r;
        return put_apart(s, g, record, wanted, n, words);
}

/* EMIT_E_LOST: it is counted so, and nobody gets it. Late is only what somebody wants. */
static int take_sample(Requests *s, Registration *g, const Record *record, bool *ret_is_late) {
        EventCounters *c = &g->event->counters[s->readers->n_cpus];
        Wanted wanted[WANTED_MAX];
        Words words;
        size_t n = find_wanted(g, record, wanted, &words);
        int r = n > 0 ? put(s, g, record, wanted, n, &words) : 0;

        if (r < 0)
                return r;
        if (record->time > g->latest)
                g->latest = record->time;
        c->closed_count++;
        counter_add(&c->closed_expected, 1);
        counter_add(n == 0 ? &c->filtered : r == EMIT_E_LOST ? &c->lost[LOSS_BATCH_POOL] : &c->delivered, 1);
        if (r == EMIT_E_LOST)
                loss_bell_note(&s->ledger->losses.bell);
        *ret_is_late = n > 0 && r == 0 && record->time < atomic_load_explicit(&s->readers->dispatcher.released_until, memory_order_relaxed);
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
                         .comm = "", .raw = raw, .raw_size = (uint32_t)size };
        return 0;
}

int handle_emit(RequestContext *a, Explanation *e) {
        const Perfd__V1__EmitRequest *q = a->request->emit;
        _cleanup_free_ uint8_t *raw = malloc(EXTERNAL_RAW_MAX);
        Perfd__V1__EmitReply *reply = malloc(sizeof(*reply));
        Requests *s = a->requests;
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
                reply->lost += r == EMIT_E_LOST;
                reply->taken += r == 0;
                reply->late += is_late;
                r = 0;
        }
        return r == 0 ? readers_send_emitted(s->readers) : r;
}
