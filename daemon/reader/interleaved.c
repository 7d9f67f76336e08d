/*
 * Samples of many streams in turns, which form no run. What a run determines once is determined for each of them, from the first
 * cache line of its stream; the rest is as in a run: one loop with the current batch.
 *
 * Design: they are taken PREFETCH_DEPTH at a time, in three steps. With a thousand events, fetching the cache lines that a sample
 * needs takes longer than all the rest. So the streams of all of them are prefetched first, then what these point to; and while
 * the first sample is written, the lines of the others are being fetched.
 */
#include "daemon/reader/cycle.h"

#include <string.h>

#include "daemon/decode/record-base.h"
#include "daemon/encode/item-template.h"
#include "daemon/route/match-program.h"

#define PREFETCH_DEPTH 16
#define SAME_ENOUGH 3 /* consecutive samples of one stream after its first: from so many on, reader/run.c is faster */

/* A sample that is not consumed yet. */
typedef struct Lookahead {
        const uint8_t *bytes;
        size_t length;
        const SnapshotStream *stream;
} Lookahead;

/* The record at a position, if it is contiguous, begins before `until` and may be a sample with base layout; else NULL. */
static inline const uint8_t *lookahead_peek(const Ring *ring, uint64_t position, uint64_t until, size_t *ret_length) {
        size_t at = position & (ring->size - 1), most = ring->size - at;
        const uint8_t *bytes = ring->data + at;
        struct perf_event_header header;

        if (until - position < most)
                most = until - position;
        if (most < RECORD_BASE_RAW)
                return NULL;
        memcpy(&header, bytes, sizeof(header));
        if (header.type != PERF_RECORD_SAMPLE || header.size % 8 != 0 ||
            header.size - (size_t)RECORD_BASE_RAW > most - RECORD_BASE_RAW) /* shorter or longer than possible */
                return NULL;
        *ret_length = header.size;
        return bytes;
}

/*
 * Looks at the next samples, at most PREFETCH_DEPTH, and prefetches the streams of their ids. Returns how many. n_same: how many
 * of the last ones are of one stream, up to SAME_ENOUGH.
 */
static inline unsigned lookahead_fill(const Ring *ring, uint64_t until, const SnapshotCpu *c, uint64_t *last_id,
                                  unsigned *n_same, Lookahead *ahead, unsigned most) {
        uint64_t position = ring->tail;
        unsigned n = 0;

        for (; n < most && *n_same < SAME_ENOUGH; n++) {
                Lookahead *s = &ahead[n];
                uint32_t slot;
                uint64_t id;

                s->bytes = lookahead_peek(ring, position, until, &s->length);
                if (!s->bytes)
                        break;
                id = load64(s->bytes + RECORD_BASE_ID);
                slot = c->slots[snapshot_hash(id) & c->mask];
                if (slot == 0)
                        break;
                s->stream = &c->streams[slot - 1];
                __builtin_prefetch(s->stream);
                *n_same = id == *last_id ? *n_same + 1 : 0;
                *last_id = id;
                position += s->length;
        }
        return n;
}

/* Returns how many of them, from the first on, can be taken here; their streams are resolved. */
static inline unsigned lookahead_prefetch(const SnapshotCpu *c, unsigned head, Lookahead *ahead, unsigned n) {
        for (unsigned i = 0; i < n; i++) {
                uint64_t id = load64(ahead[i].bytes + RECORD_BASE_ID);
                const SnapshotStream *stream = ahead[i].stream;
                const EncodePlan *plan;

                if (__builtin_expect(stream->id != id, 0))
                        stream = ahead[i].stream = snapshot_find(c, id);
                if (!stream || stream->path != PATH_INTERLEAVED)
                        return i;
                __builtin_prefetch(stream->counters, 1);
                plan = stream->only.plan;
                if (plan) {
                        __builtin_prefetch(&plan->event_id);
                        __builtin_prefetch(&plan->heads[head]);
                }
        }
        return n;
}

typedef struct Interleaved {
        Batch *batch;
        BatchEntry *begin, *end, *last; /* entries that the batch does not count yet */
        uint8_t *to, *to_end;
        uint64_t mask; /* mask of all of these entries, */
        uint32_t number; /* number of their subscription, */
        uintptr_t base;  /* address from which their places are counted */
        nsec_t before;
        bool sorted;
} Interleaved;

static inline void interleaved_begin(Interleaved *m, const Route *route) {
        Batch *b = m->batch;

        m->begin = m->end = b->entries + b->n_entries;
        m->before = b->n_entries > 0 ? m->end[-1].time : 0;
        m->sorted = true;
        m->mask = route->bit;
        m->number = route->bit ? route->number : UINT32_MAX; /* no subscription wants the first one: the next one sets the mask */
        m->base = (uintptr_t)b->arena - BATCH_PLACE(BATCH_GROUP(route->number), 0);
}

static inline void interleaved_end(Interleaved *m) {
        batch_extend(m->batch, (size_t)(m->end - m->begin), BATCH_GROUP(m->number), m->mask,
                     (size_t)(m->to - m->batch->arena), m->sorted);
}

static inline bool interleaved_has_room(const Interleaved *m, const EncodePlan *plan, size_t raw_size) {
        size_t need = plan->room + (plan->payload != PAYLOAD_FIELDS ? raw_size : 0);

        return m->end < m->last && (size_t)(m->to_end - m->to) >= need;
}

/* Adds the entry of an item that was written behind the others and ends at `to`. */
static inline void interleaved_add(Interleaved *m, const Route *route, const Record *record, uint8_t *to) {
        if (__builtin_expect(route->number != m->number, 0)) {
                interleaved_end(m);
                interleaved_begin(m, route);
        }
        *m->end++ = (BatchEntry){ .time = record->time, .mask = m->mask, .event = route->plan->event_id,
                                  .place = (uint32_t)((uintptr_t)m->to - m->base), .length = (uint32_t)(to - m->to),
                                  .tid = record->tid };
        m->to = to;
        m->sorted &= record->time >= m->before;
        m->before = record->time;
}

/* The most frequent case: unconditional, and encoded by one copy. False: it is another case, and nothing was done. */
static inline bool interleaved_take_one_copy(Interleaved *m, const Reader *r, const Lookahead *s) {
        const SnapshotStream *stream = s->stream;
        const Route *route = &stream->only;
        Record record;

        record.cpu = r->cpu;
        if (!route->plan || route->program ||
            record_decode_base(s->bytes, s->length, stream->min_raw_size, &record) != 0 ||
            (stream->exclude_self && record.pid == r->own_pid) || route->plan->encoding != ITEM_ONE_COPY ||
            !item_has_all(&record) || !interleaved_has_room(m, route->plan, 0))
                return false;
        interleaved_add(m, route, &record, item_put_one_copy(route->plan, &record, m->to));
        counter_add(&stream->counters->delivered, 1);
        return true;
}

/* False: it was not taken. */
static inline bool interleaved_take(Interleaved *m, Reader *r, const Lookahead *s) {
        const SnapshotStream *stream = s->stream;
        const Route *route = &stream->only;
        Record *record = &r->in_place;

        if (record_decode_base(s->bytes, s->length, stream->min_raw_size, record) != 0)
                return false;
        if (!route->plan || (stream->exclude_self && record->pid == r->own_pid) ||
            (route->program && !match_ask(route->program, record))) {
                counter_add(&stream->counters->filtered, 1);
                return true;
        }
        if (!interleaved_has_room(m, route->plan, record->raw_size))
                return false;
        interleaved_add(m, route, record, item_put_fixed(route->plan, record, m->to));
        counter_add(&stream->counters->delivered, 1);
        return true;
}

uint64_t reader_take_interleaved(Reader *r, Ring *ring, uint64_t until, const SnapshotStream **stream) {
        const SnapshotCpu *c = &r->snapshot->cpus[r->slot];
        const unsigned head = r->cpu == 0 ? HEAD_WITHOUT_CPU : 0;
        uint64_t n_taken = 0, last_id = (*stream)->id;
        unsigned n_same = 0, most = 1, n, i; /* looks ahead only if one sample after the other can be taken */
        Lookahead ahead[PREFETCH_DEPTH];
        Batch *b = r->batch;
        Interleaved m;

        if (!b)
                return 0;
        m = (Interleaved){ .batch = b, .last = b->entries + BATCH_ENTRIES, .to = b->arena + b->used,
                   .to_end = b->arena + BATCH_ARENA };
        interleaved_begin(&m, &(*stream)->only);
        do {
                most = most < PREFETCH_DEPTH ? 2 * most : PREFETCH_DEPTH;
                n = lookahead_fill(ring, until, c, &last_id, &n_same, ahead, most);
                n = lookahead_prefetch(c, head, ahead, n);
                for (i = 0; i < n && (interleaved_take_one_copy(&m, r, &ahead[i]) || interleaved_take(&m, r, &ahead[i])); i++) {
                        ring_consume(ring, ahead[i].length);
                        *stream = ahead[i].stream;
                }
                n_taken += i;
        } while (i == most);
        interleaved_end(&m);
        return n_taken;
}
