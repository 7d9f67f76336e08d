/*
 * Runs: samples of one stream, one behind the other and as long as each other, which is what a flood is made of. What
 * reader_route() asks about each sample is asked once here, and what is left is a loop that looks, matches, encodes and
 * appends.
 *
 * The decision to doubt is a second way from the ring to the batch. It is one for the plain case only, with at most one
 * encoding; whatever is not as the one before ends the run, untouched, and is taken as if there were none. Decoding,
 * questions and encoding are the same functions in both.
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

typedef struct RunShape {
        const SnapshotStream *stream;
        const Route *route;
        const ItemTemplate *alike; /* NULL: they differ in their lengths */
        size_t length;             /* of each record */
        size_t need;               /* room for an item */
        uint32_t excluded;         /* the pid whose samples end it; UINT32_MAX, of tasks that are gone: nobody's, and no harm */
} RunShape;

/* Compiled for each kind of run, of which `program` and `alike` are known then. */
static inline __attribute__((always_inline)) uint64_t run_route(Reader *r, Ring *ring, uint64_t until, const RunShape *s,
                                                                const MatchProgram *program, const ItemTemplate *alike) {
        const EncodePlan *plan = s->route->plan;
        const uint64_t id = s->stream->id, bit = s->route->bit;
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

static uint64_t run_all(Reader *r, Ring *ring, uint64_t until, const RunShape *s) {
        return s->alike ? run_route(r, ring, until, s, NULL, s->alike) : run_route(r, ring, until, s, NULL, NULL);
}

static uint64_t run_some(Reader *r, Ring *ring, uint64_t until, const RunShape *s) {
        const MatchProgram *program = s->route->program;

        return s->alike ? run_route(r, ring, until, s, program, s->alike) : run_route(r, ring, until, s, program, NULL);
}

uint64_t reader_take_run(Reader *r, Ring *ring, uint64_t until, const SnapshotStream *stream, size_t length) {
        const SnapshotEvent *e = stream->of;
        RunShape s = { .stream = stream, .route = e->routes, .length = length };
        ItemTemplate alike;

        if (e->n_routes == 0)
                return run_skip(r, ring, until, stream, length);
        if (e->n_routes > 1 || e->needs_comm || !s.route->plan->is_simple || !r->batch)
                return 0;
        s.need = s.route->plan->room + (s.route->plan->payload != PAYLOAD_FIELDS ? length : 0);
        s.excluded = e->exclude_self ? r->own_pid : UINT32_MAX;
        if (s.need > BATCH_ARENA)
                return 0;
        if (item_template_init(&alike, s.route->plan, r->cpu, r->plain.raw_size))
                s.alike = &alike;
        return s.route->program ? run_some(r, ring, until, &s) : run_all(r, ring, until, &s);
}
