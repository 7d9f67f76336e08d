/*
 * Runs: consecutive samples of one stream with the same length, as in a flood. What reader_route() determines for each sample is
 * determined once, for the first one. Each other sample is only compared with it, by three comparisons, and if a subscription has
 * a condition, one number of the sample is compared in the ring. Counters are calculated at the end, from the length of the run.
 *
 * Design: this is a second path from the ring to the batch, for simple cases only. Whatever is not like the first sample ends the
 * run, is not consumed, and takes the general path. Both paths evaluate conditions and encode by the same functions.
 */
#include "daemon/reader/run.h"

#include <string.h>

/* Begins a run with the next record. False: it is of another kind. */
static bool run_begin(Run *s, const Ring *ring, uint64_t until, const SnapshotStream *stream, size_t length) {
        size_t at = ring->tail & (ring->size - 1), most = ring->size - at;
        const uint8_t *first = ring->data + at;
        struct perf_event_header header;

        if (until - ring->tail < most)
                most = until - ring->tail;
        if (most < length || length < RECORD_BASE_RAW)
                return false;
        s->stream = stream;
        s->first = first;
        s->like = (RunSignature){ .header = load64(first), .id = load64(first + RECORD_BASE_ID), .length = length,
                             .raw_size = load32(first + RECORD_BASE_SIZE), .last = first + most - length };
        memcpy(&header, first, sizeof(header));
        return header.type == PERF_RECORD_SAMPLE && header.size == length && s->like.id == stream->id &&
               s->like.raw_size <= length - RECORD_BASE_RAW && s->like.raw_size >= stream->min_raw_size;
}

uint64_t run_end(const Run *s, Ring *ring, const uint8_t *at, uint64_t delivered) {
        size_t taken = (size_t)(at - s->first), n = taken / s->like.length;

        ring_consume(ring, taken);
        counter_add(&s->stream->counters->delivered, delivered);
        counter_add(&s->stream->counters->filtered, n - delivered);
        return n;
}

/* Consumes the samples of a run that no subscription wants. */
static uint64_t run_skip(const Run *s, Ring *ring) {
        const uint8_t *at = s->first;

        while (run_has(&s->like, at))
                at += s->like.length;
        return run_end(s, ring, at, 0);
}

/* Translates a condition on a Record to one on the record's bytes in the ring. False: the field is not in these bytes. */
static bool run_range_init(MatchRange *q, const MatchRange *from) {
        static const struct {
                uint32_t end, ring_end; /* end offsets of a number: in a Record, in the ring */
        } parts[] = { { offsetof(Record, pid) + 4, RECORD_BASE_PID + 4 }, { offsetof(Record, tid) + 4, RECORD_BASE_TID + 4 },
                      { offsetof(Record, time) + 8, RECORD_BASE_TIME + 8 } };
        uint32_t at = from->at + RECORD_BASE_RAW;

        if (from->base != 0) {
                size_t i = 0;

                while (i < ARRAY_SIZE(parts) && from->at + sizeof(uint64_t) != parts[i].end)
                        i++;
                if (i == ARRAY_SIZE(parts))
                        return false;
                at = parts[i].ring_end - (uint32_t)sizeof(uint64_t);
        }
        *q = *from;
        q->at = at;
        return true;
}

unsigned run_ranges_init(MatchRange *ranges, const Run *s, const MatchProgram *program) {
        unsigned n = 0, refuses = 0;

        while (n < program->n_ranges && run_range_init(&ranges[n], &program->ranges[n]))
                n++;
        while (refuses < n && match_range_holds(&ranges[refuses], s->first + ranges[refuses].at))
                refuses++;
        if (refuses > 0 && refuses < n) {
                MatchRange first = ranges[refuses];

                ranges[refuses] = ranges[0];
                ranges[0] = first;
        }
        return n;
}

static void run_predicate_init(RunPredicate *q, const Run *s, const Route *route) {
        MatchRange ranges[MATCH_RANGES];

        q->first = run_ranges_init(ranges, s, route->program) > 0 ? ranges[0] : (MatchRange){ .span = UINT64_MAX };
        q->program = route->program;
        q->bit = route->bit;
}

/*
 * Adds the routes of one encoding, beginning with `route`. Returns where those of the next one begin; NULL: this cannot be a run.
 */
static const Route *run_add_item(Run *s, const Reader *r, const Route *route, const Route *end) {
        RunItem *i = &s->items[s->n_items];

        if (s->n_items == RUN_ITEMS)
                return NULL;
        i->plan = route->plan;
        i->always = 0;
        i->predicates = s->predicates + s->n_predicates;
        for (; route < end && route->plan == i->plan; route++)
                if (route->program)
                        run_predicate_init(&s->predicates[s->n_predicates++], s, route);
                else
                        i->always |= route->bit;
        i->predicates_end = s->predicates + s->n_predicates;
        i->asks = i->predicates < i->predicates_end;
        i->is_counted = i->asks && s->group == 0;
        i->entry = (BatchEntry){ .event = i->plan->event_id };
        i->encoding = item_template_init(&i->template, i->plan, r->cpu, s->like.raw_size);
        s->need += i->plan->room + (i->plan->payload != PAYLOAD_FIELDS ? s->like.length : 0);
        s->n_items++;
        return route;
}

uint64_t reader_take_run(Reader *r, Ring *ring, uint64_t until, const SnapshotStream *stream, size_t length) {
        const SnapshotEvent *e = stream->of;
        Run s;

        if (stream->path < PATH_RUN || !r->batch || !run_begin(&s, ring, until, stream, length))
                return 0;
        if (e->n_routes == 0)
                return run_skip(&s, ring);
        s.group = BATCH_GROUP(e->routes[0].number);
        s.need = s.n_items = s.n_predicates = 0;
        s.excluded = e->exclude_self ? r->own_pid : UINT32_MAX;
        for (const Route *route = e->routes, *end = route + e->n_routes; route < end;)
                if (!(route = run_add_item(&s, r, route, end)))
                        return 0;
        if (s.need > BATCH_ARENA)
                return 0;
        if (s.n_items == 1 && s.items[0].encoding >= ITEM_TEMPLATE && (!s.items[0].asks || e->n_routes == 1))
                return run_take_single(r, ring, &s);
        return run_take_many(r, ring, &s);
}
