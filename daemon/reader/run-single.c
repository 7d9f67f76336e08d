/*
 * A run of items of one encoding, for one subscription, or for any number without conditions: the loop that takes a flood.
 *
 * Design: it is compiled four times, with and without a condition, for items that are one copy and for others. What is constant
 * in a run is then not tested in the loop, and each of the four has all registers.
 */
#include "daemon/reader/run.h"

#include <string.h>

/*
 * The condition of the only subscription. Ranges are of the record here, not of its raw bytes; without ranges, the result for the
 * first sample applies to all.
 */
typedef struct RunCondition {
        const MatchProgram *program;
        uint64_t bit;
        MatchRange first, others[MATCH_RANGES - 1];
        unsigned n_others;
        uint16_t rest; /* where the program continues after the ranges, or its result */
} RunCondition;

static void run_condition_init(RunCondition *c, const Run *s) {
        const RunPredicate *q = s->items[0].predicates;
        const MatchProgram *program = q->program;
        MatchRange ranges[MATCH_RANGES];
        unsigned n = run_ranges_init(ranges, s, program);

        c->program = program;
        c->bit = q->bit;
        c->first = q->first;
        c->n_others = n > 0 ? n - 1 : 0;
        memcpy(c->others, ranges + 1, c->n_others * sizeof(*ranges));
        c->rest = n < program->n_ranges ? program->ranges[n].insn : program->rest;
}

/* Evaluates it for the sample at `at`. */
static inline bool run_condition_holds(const RunCondition *c, Record *record, const uint8_t *at, uint32_t raw_size) {
        for (unsigned i = 0; i < c->n_others; i++)
                if (!match_range_holds(&c->others[i], at + c->others[i].at))
                        return false;
        if (c->rest == MATCH_YES)
                return true;
        record_set_base(record, at, raw_size);
        return match_run_from(c->program, c->rest, record);
}

/* The next sample, from `at` on, for which `q` is true, or the end of the run. */
static inline const uint8_t *run_find(const RunSignature *l, const MatchRange *q, const uint8_t *at) {
        while (run_has(l, at) && !match_range_holds(q, at + q->at))
                at += l->length;
        return at;
}

/* Encodes what a template cannot: threads without a number, samples without a time. */
static __attribute__((noinline)) uint8_t *run_put_slow(Record *record, const EncodePlan *plan, const uint8_t *at,
                                                      uint32_t raw_size, uint8_t *to) {
        record_set_base(record, at, raw_size);
        return item_put_fixed(plan, record, to);
}

/*
 * The last position at which a sample of the run may begin, if each becomes an item of this length; there is room for at least
 * one.
 */
static const uint8_t *run_last(const Run *s, const Batch *b, size_t item_length) {
        size_t n = BATCH_ENTRIES - b->n_entries, fit = (BATCH_ARENA - s->need - b->used) / item_length + 1;

        if (fit < n)
                n = fit;
        if ((size_t)(s->like.last - s->first) / s->like.length < n)
                return s->like.last;
        return s->first + (n - 1) * s->like.length;
}

/*
 * Appends items of one template. Compiled with and without (NULL) a condition, and for each kind of item. Usually a sample is of
 * the same task as the one before, and not older; then it needs no slow case either, because `before` is never 0.
 */
static inline __attribute__((always_inline)) uint64_t run_templates(Reader *r, Ring *ring, Run *s, const RunCondition *condition,
                                                                ItemEncoding encoding) {
        const EncodePlan *plan = s->items[0].plan;
        const ItemTemplate t = s->items[0].template;
        const MatchRange first = condition ? condition->first : (MatchRange){ .span = 0 };
        Batch *b = r->batch;
        const uint64_t mask = condition ? condition->bit : s->items[0].always;
        BatchEntry *begin = b->entries + b->n_entries, *e = begin, *end = b->entries + BATCH_ENTRIES;
        uint8_t *to = b->arena + b->used, *const last = b->arena + BATCH_ARENA - s->need;
        nsec_t before = b->n_entries > 0 && e[-1].time > 0 ? e[-1].time : 1;
        const uint8_t *at = s->first;
        uint64_t task = UINT64_MAX;
        uintptr_t base; /* address from which an entry's place is counted */
        bool sorted = true;
        RunSignature l = s->like;

        if (!condition && (e >= end || to > last))
                return 0;
        if (!condition)
                l.last = run_last(s, b, t.length);
        s->items[0].entry = (BatchEntry){ .mask = mask, .event = plan->event_id, .length = t.length };
        base = (uintptr_t)b->arena - BATCH_PLACE(s->group, 0);
        for (;; at += l.length) {
                bool is_slow = false;
                Record record;

                if (condition)
                        at = run_find(&l, &first, at);
                if (!run_has(&l, at))
                        break;
                if (condition && !run_condition_holds(condition, &r->in_place, at, l.raw_size))
                        continue;
                if (condition && (e >= end || to > last))
                        break;
                record_set_base(&record, at, l.raw_size);
                if (load64(at + RECORD_BASE_PID) != task || record.time < before) {
                        if (record.pid == s->excluded)
                                break;
                        sorted = sorted && record.time >= before;
                        is_slow = !item_has_all(&record);
                        task = is_slow ? UINT64_MAX : load64(at + RECORD_BASE_PID);
                }
                *e = s->items[0].entry;
                e->time = record.time;
                e->place = (uint32_t)((uintptr_t)to - base);
                e->tid = record.tid;
                if (__builtin_expect(is_slow, 0)) {
                        to = run_put_slow(&r->in_place, plan, at, l.raw_size, to);
                        before = record.time ? record.time : 1;
                } else {
                        to = item_put_template(&t, plan, &record, encoding, to);
                        before = record.time;
                }
                if (encoding != ITEM_ONE_COPY || __builtin_expect(is_slow, 0))
                        e->length = (uint32_t)((uintptr_t)to - base) - e->place;
                e++;
        }
        batch_extend(b, (size_t)(e - begin), s->group, mask, (size_t)(to - b->arena), sorted);
        return run_end(s, ring, at, (uint64_t)(e - begin));
}

/* Not inlined, so that each loop has all registers. */
static __attribute__((noinline)) uint64_t run_all_one_copy(Reader *r, Ring *ring, Run *s) {
        return run_templates(r, ring, s, NULL, ITEM_ONE_COPY);
}

static __attribute__((noinline)) uint64_t run_all(Reader *r, Ring *ring, Run *s) {
        return run_templates(r, ring, s, NULL, ITEM_TEMPLATE);
}

static __attribute__((noinline)) uint64_t run_some_one_copy(Reader *r, Ring *ring, Run *s, const RunCondition *c) {
        return run_templates(r, ring, s, c, ITEM_ONE_COPY);
}

static __attribute__((noinline)) uint64_t run_some(Reader *r, Ring *ring, Run *s, const RunCondition *c) {
        return run_templates(r, ring, s, c, ITEM_TEMPLATE);
}

uint64_t run_take_single(Reader *r, Ring *ring, Run *s) {
        const RunItem *item = &s->items[0];
        RunCondition c;

        if (!item->asks)
                return item->encoding == ITEM_ONE_COPY ? run_all_one_copy(r, ring, s) : run_all(r, ring, s);
        run_condition_init(&c, s);
        return item->encoding == ITEM_ONE_COPY ? run_some_one_copy(r, ring, s, &c) : run_some(r, ring, s, &c);
}
