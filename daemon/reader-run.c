/*
 * Runs: samples of one stream, one behind the other and as long as each other, which is what a flood is made of. What
 * reader_route() asks about each sample is asked once here, and what is left is a loop that looks, matches, encodes and
 * appends.
 *
 * The decision to doubt is a second way from the ring to the batch. It is one for the plain case only; whatever is not as
 * the one before ends the run, untouched, and is taken as if there were none. Decoding, questions and encoding are the same
 * functions in both.
 */
#include "daemon/reader.h"

#include <string.h>

#include "daemon/decode/record-plain.h"
#include "daemon/encode/item-template.h"
#include "daemon/route/match-program.h"

/* The next record, if it is a sample with this id, so long, in one piece and before `until`; else NULL. */
static inline const uint8_t *run_peek(const Ring *ring, uint64_t until, uint64_t id, size_t length) {
        size_t at = ring->tail & (ring->size - 1);
        const uint8_t *bytes = ring->data + at;
        struct perf_event_header header;

        if (until - ring->tail < length || ring->size - at < length)
                return NULL;
        memcpy(&header, bytes, sizeof(header));
        if (header.type != PERF_RECORD_SAMPLE || header.size != length || load64(bytes + RECORD_PLAIN_ID) != id)
                return NULL;
        return bytes;
}

/* Nobody wants them. */
static uint64_t run_skip(Reader *r, Ring *ring, uint64_t until, const SnapshotStream *stream, size_t length) {
        const uint8_t *bytes;
        uint64_t n = 0;

        for (; (bytes = run_peek(ring, until, stream->id, length)); n++) {
                if (record_decode_plain(bytes, length, stream->min_raw_size, &r->plain) != 0)
                        break;
                ring_consume(ring, length);
        }
        counter_add(&stream->counters->filtered, n);
        return n;
}

#define RUN_ITEMS 8 /* encodings of one sample; with more there are no runs */

/* One encoding, and who wants it. */
typedef struct RunItem {
        const Route *routes, *end;
        const EncodePlan *plan;
        uint64_t always; /* bits of those who ask no questions */
        bool asks;       /* others do */
        bool is_alike;   /* false: they differ in their lengths */
        ItemTemplate alike;
} RunItem;

typedef struct Run {
        const SnapshotStream *stream;
        size_t length;     /* of each record */
        size_t need;       /* room for all of its items */
        uint32_t excluded; /* the pid whose samples end it; UINT32_MAX, of tasks that are gone: nobody's, and no harm */
        size_t n_items;
        RunItem items[RUN_ITEMS];
} Run;

/* For one subscription. Compiled for each kind of run, of which `program` and `alike` are known then. */
static inline __attribute__((always_inline)) uint64_t run_route(Reader *r, Ring *ring, uint64_t until, const Run *s,
                                                                const MatchProgram *program, const ItemTemplate *alike) {
        const EncodePlan *plan = s->items[0].plan;
        const uint64_t id = s->stream->id, bit = s->items[0].routes->bit;
        const uint32_t least = s->stream->min_raw_size, event_id = plan->event_id;
        Batch *b = r->batch;
        BatchEntry *begin = b->entries + b->n_entries, *e = begin, *end = b->entries + BATCH_ENTRIES;
        uint8_t *to = b->arena + b->used, *last = b->arena + BATCH_ARENA - s->need;
        nsec_t before = b->n_entries > 0 ? e[-1].time : 0;
        uint64_t filtered = 0;
        bool sorted = true;
        Record record = r->plain;
        const uint8_t *bytes;

        while (e < end && to <= last && (bytes = run_peek(ring, until, id, s->length))) {
                uint8_t *item = to;

                if (record_decode_plain(bytes, s->length, least, &record) != 0 || record.pid == s->excluded)
                        break;
                if (program && !match_ask(program, &record)) {
                        ring_consume(ring, s->length);
                        filtered++;
                        continue;
                }
                if (alike && !item_template_fits(alike, &record))
                        break;
                ring_consume(ring, s->length);
                if (alike) {
                        item_put_alike(alike, plan, &record, to);
                        to += alike->length;
                } else
                        to = item_put_simple(plan, &record, to);
                *e++ = (BatchEntry){ .time = record.time, .mask = bit, .event = event_id, .tid = record.tid,
                                     .offset = (uint32_t)(item - b->arena), .length = (uint32_t)(to - item) };
                sorted = sorted && record.time >= before;
                before = record.time;
        }
        batch_extend(b, (size_t)(e - begin), bit, (size_t)(to - b->arena), sorted);
        counter_add(&s->stream->counters->delivered, (uint64_t)(e - begin));
        counter_add(&s->stream->counters->filtered, filtered);
        return (uint64_t)(e - begin) + filtered;
}

static uint64_t run_all(Reader *r, Ring *ring, uint64_t until, const Run *s) {
        return s->items[0].is_alike ? run_route(r, ring, until, s, NULL, &s->items[0].alike)
                                    : run_route(r, ring, until, s, NULL, NULL);
}

static uint64_t run_some(Reader *r, Ring *ring, uint64_t until, const Run *s) {
        const MatchProgram *program = s->items[0].routes->program;

        return s->items[0].is_alike ? run_route(r, ring, until, s, program, &s->items[0].alike)
                                    : run_route(r, ring, until, s, program, NULL);
}

/* Of those who want this encoding, who want this sample. */
static inline uint64_t run_item_mask(const RunItem *i, const Record *record) {
        uint64_t mask = i->always;

        for (const Route *route = i->routes; i->asks && route < i->end; route++)
                if (route->program && match_ask(route->program, record))
                        mask |= route->bit;
        return mask;
}

static inline void run_put_item(Batch *b, const RunItem *i, const Record *record, uint64_t mask) {
        uint8_t *to = b->arena + b->used;
        size_t length;

        if (i->is_alike) {
                item_put_alike(&i->alike, i->plan, record, to);
                length = i->alike.length;
        } else
                length = (size_t)(item_put_simple(i->plan, record, to) - to);
        batch_append_uncounted(b, record->time, mask, i->plan->event_id, record->tid, length);
        if (i->asks)
                batch_count(b, mask, 1);
}

/* For any number of subscriptions. */
static uint64_t run_routes(Reader *r, Ring *ring, uint64_t until, const Run *s) {
        uint64_t delivered = 0, filtered = 0;
        Record *record = &r->plain;
        Batch *b = r->batch;
        const uint8_t *bytes;

        while (b->n_entries + s->n_items <= BATCH_ENTRIES && b->used + s->need <= BATCH_ARENA &&
               (bytes = run_peek(ring, until, s->stream->id, s->length))) {
                bool any = false;

                if (record_decode_plain(bytes, s->length, s->stream->min_raw_size, record) != 0 ||
                    record->pid == s->excluded || !item_template_fits(&s->items[0].alike, record))
                        break;
                for (const RunItem *i = s->items, *end = i + s->n_items; i < end; i++) {
                        uint64_t mask = run_item_mask(i, record);

                        if (mask)
                                run_put_item(b, i, record, mask);
                        any |= mask != 0;
                }
                delivered += any;
                filtered += !any;
                ring_consume(ring, s->length);
        }
        for (const RunItem *i = s->items, *end = i + s->n_items; i < end; i++)
                if (!i->asks)
                        batch_count(b, i->always, delivered); /* then there are no others */
        counter_add(&s->stream->counters->delivered, delivered);
        counter_add(&s->stream->counters->filtered, filtered);
        return delivered + filtered;
}

/* Adds the routes of one encoding, from `route` on; where the next one's begin, or NULL: there is no such run. */
static const Route *run_add_item(Run *s, const Reader *r, const Route *route, const Route *end) {
        RunItem *i = &s->items[s->n_items];

        if (s->n_items == RUN_ITEMS || !route->plan->is_simple)
                return NULL;
        i->plan = route->plan;
        i->routes = route;
        i->always = 0;
        i->asks = false;
        for (; route < end && route->plan == i->plan; route++)
                if (route->program)
                        i->asks = true;
                else
                        i->always |= route->bit;
        i->end = route;
        i->is_alike = item_template_init(&i->alike, i->plan, r->cpu, r->plain.raw_size);
        s->need += i->plan->room + (i->plan->payload != PAYLOAD_FIELDS ? s->length : 0);
        s->n_items++;
        return route;
}

uint64_t reader_take_run(Reader *r, Ring *ring, uint64_t until, const SnapshotStream *stream, size_t length) {
        const SnapshotEvent *e = stream->of;
        Run s;

        if (e->n_routes == 0)
                return run_skip(r, ring, until, stream, length);
        if (e->needs_comm || !r->batch)
                return 0;
        s.stream = stream;
        s.length = length;
        s.need = s.n_items = 0;
        s.excluded = e->exclude_self ? r->own_pid : UINT32_MAX;
        for (const Route *route = e->routes, *end = route + e->n_routes; route < end;)
                if (!(route = run_add_item(&s, r, route, end)))
                        return 0;
        if (s.need > BATCH_ARENA)
                return 0;
        if (e->n_routes > 1)
                return run_routes(r, ring, until, &s);
        return e->routes->program ? run_some(r, ring, until, &s) : run_all(r, ring, until, &s);
}
