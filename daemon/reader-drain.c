/*
 * From the ring's bytes to a batch: once for each record, whatever the number of subscribers.
 *
 * A record is consumed only when all of its items are in a batch, or its loss is counted. When the items do not fit,
 * what was begun is taken back and the whole record tried again in an empty batch; when there is no empty batch, the
 * record stays in the ring, and the kernel counts exactly what it can not write meanwhile.
 */
#include "daemon/reader.h"

#include "daemon/decode/fields.h"
#include "daemon/encode/item.h"
#include "daemon/route/match.h"

#include <string.h>

#define PUBLISH_EACH ((uint64_t)64 * 1024) /* bytes of ring that are given back at a time */
#define MAX_ENCODINGS BATCH_BITS

static void reader_push(Reader *r, Batch *b, nsec_t watermark) {
        bool pushed;

        b->watermark = watermark;
        batch_sort(b);
        pushed = queue_push(&r->full, b);
        assert(pushed); /* as many slots as batches */
        counter_add(&r->counters.batches, 1);
        doorbell_ring(r->dispatcher);
}

/* What a batch says that nobody knows a next one behind: nothing that is or comes into the ring is older. */
static nsec_t reader_last_watermark(Reader *r) {
        nsec_t now, least;

        reader_wait_guard(r); /* or the youngest in the batches would wait for a watermark that none is left to carry */
        now = reader_visible(r); /* before the head, as in reader_drain() */
        least = reader_horizon(r, ring_head(&r->ring));
        return least < now ? least : now;
}

/* In the middle of a drain: the record at the tail is not in it. */
static void reader_push_full_batch(Reader *r) {
        nsec_t watermark = queue_is_empty(&r->free) ? reader_last_watermark(r) : 0;

        reader_push(r, TAKE_PTR(r->batch), watermark);
}

int reader_need_batch(Reader *r) {
        if (r->batch)
                return 0;
        r->batch = queue_pop(&r->free);
        if (!r->batch) {
                atomic_store_explicit(&r->starving, true, memory_order_relaxed);
                atomic_thread_fence(memory_order_seq_cst); /* the other side: dispatcher_give_back() */
                r->batch = queue_pop(&r->free); /* one may have come between the look and the word */
                if (!r->batch) {
                        counter_add(&r->counters.pool_waits, 1);
                        return READER_E_STARVED;
                }
                atomic_store_explicit(&r->starving, false, memory_order_relaxed);
        }
        batch_reset(r->batch, r->snapshot->generation);
        return 0;
}

int reader_push_batch(Reader *r) {
        int n = reader_need_batch(r);

        if (n != 0)
                return n;
        reader_push(r, TAKE_PTR(r->batch), queue_is_empty(&r->free) ? reader_last_watermark(r) : r->watermark);
        return 0;
}

/* Appends what `length` says was written at the batch's room. */
static int reader_append(Reader *r, int written, const Record *record, uint64_t mask, uint32_t event, size_t length) {
        if (written == ITEM_E_NO_ROOM)
                return READER_E_NO_ROOM;
        assert(written == 0);
        batch_append(r->batch, record->time, mask, event, record->tid, length);
        return 0;
}

/* Where a batch stood before a record, to take back what of the record was already in it. */
typedef struct Mark {
        size_t n_entries, used;
} Mark;

static void reader_take_back(Reader *r, Mark mark) {
        Batch *b = r->batch;

        for (size_t i = mark.n_entries; i < b->n_entries; i++) {
                b->n_notes -= b->entries[i].event == BATCH_NOTE;
                for (uint64_t m = b->entries[i].mask; m; m &= m - 1)
                        if (--b->matched[__builtin_ctzll(m)] == 0)
                                b->mask &= ~(m & -m); /* a batch without entries must not look wanted */
        }
        b->n_entries = mark.n_entries;
        b->used = mark.used;
}

/* Which subscriptions want it, by encoding; false if none. */
static bool reader_match(const SnapshotEvent *e, const Record *record, uint64_t *masks) {
        bool any = false;

        for (size_t i = 0; i < e->n_encodings; i++)
                masks[i] = 0;
        for (size_t i = 0; i < e->n_routes; i++) {
                const Route *route = &e->routes[i];

                if (!route->program || match_run(route->program, record)) {
                        masks[route->encoding] |= route->bit;
                        any = true;
                }
        }
        return any;
}

static int reader_encode(Reader *r, const SnapshotEvent *e, const Record *record, const uint64_t *masks) {
        for (size_t i = 0; i < e->n_encodings; i++) {
                size_t room, length = 0;
                uint8_t *to;
                int n;

                if (masks[i] == 0)
                        continue;
                if (!batch_has_entry_room(r->batch))
                        return READER_E_NO_ROOM;
                to = batch_room(r->batch, &room);
                n = item_encode(e->encodings[i], record, to, room, &length);
                n = reader_append(r, n, record, masks[i], e->event->id, length);
                if (n != 0)
                        return n;
        }
        return 0;
}

static int reader_take_sample(Reader *r, const SnapshotStream *stream, const uint8_t *bytes, size_t length) {
        const SnapshotEvent *e = &r->snapshot->events[stream->event];
        EventCounters *counters = &e->event->counters[r->slot];
        uint64_t masks[MAX_ENCODINGS];
        Record record;
        int n;

        if (stream->muted) {
                counter_add(&counters->doubled, 1);
                return 0;
        }
        if (record_decode(stream->layout, bytes, length, &record) != 0 ||
            (e->event->plan && plan_check(e->event->plan, record.raw, record.raw_size) != 0)) {
                counter_add(&counters->lost[LOSS_UNDECODABLE], 1);
                return 0;
        }
        record.cpu = r->cpu;
        if (record.period == 0 && stream->period > 1)
                record.period = stream->period; /* it may be another one by the time that somebody reads the item */
        if (e->n_routes == 0 || (e->exclude_self && record.pid == r->own_pid)) {
                counter_add(&counters->filtered, 1);
                return 0;
        }
        if (e->needs_comm)
                record.comm = reader_comm(r, record.tid, record.time);
        if (!reader_match(e, &record, masks)) {
                counter_add(&counters->filtered, 1);
                return 0;
        }
        n = reader_encode(r, e, &record, masks);
        if (n == 0)
                counter_add(&counters->delivered, 1);
        return n;
}

/* The subscriptions that want a record of this type, whoever wrote it. */
static uint64_t reader_record_bits(const Snapshot *s, uint32_t type) {
        unsigned kind = record_kind_of(type);

        return kind < _RECORD_KIND_MAX ? s->record_bits[kind] : s->event_bits;
}

static uint64_t event_route_bits(const SnapshotEvent *e) {
        uint64_t bits = 0;

        for (size_t i = 0; i < e->n_routes; i++)
                bits |= e->routes[i].bit;
        return bits;
}

/* stream: NULL for what the carrier wrote. */
static int reader_take_side(Reader *r, const SnapshotStream *stream, const uint8_t *bytes, size_t length) {
        const SnapshotEvent *e = stream ? &r->snapshot->events[stream->event] : NULL;
        Record record;
        uint64_t bits;
        size_t room, item_length = 0;
        uint8_t *to;
        int n;

        if (record_decode(stream ? stream->layout : &r->side_layout, bytes, length, &record) != 0) {
                counter_add(&r->counters.undecodable, 1);
                return 0;
        }
        record.cpu = r->cpu;
        reader_learn_comm(r, &record);
        n = !e && r->snapshot->notes ? reader_note(r, &record) : 0;
        if (n != 0)
                return n;
        bits = e ? event_route_bits(e) : 0;
        if (!e || record_kind_of(record.type) < _RECORD_KIND_MAX)
                bits |= reader_record_bits(r->snapshot, record.type);
        if (bits) {
                if (!batch_has_entry_room(r->batch))
                        return READER_E_NO_ROOM;
                to = batch_room(r->batch, &room);
                n = side_item_encode(&record, e ? e->event->id : 0, to, room, &item_length);
                n = reader_append(r, n, &record, bits, e ? e->event->id : 0, item_length);
                if (n != 0)
                        return n;
        }
        counter_add(&r->counters.side_records, 1);
        return 0;
}

/* Of the internal stream of moves between cgroups. */
static int reader_take_move(Reader *r, const uint8_t *bytes, size_t length) {
        Record record;
        int n;

        if (record_decode(&r->moves.layout, bytes, length, &record) != 0)
                n = READER_E_UNDECODABLE;
        else
                n = r->snapshot->notes ? reader_note_move(r, &record) : 0;
        if (n == READER_E_NO_ROOM)
                return n;
        counter_add(n == 0 ? &r->counters.side_records : &r->counters.undecodable, 1);
        return 0;
}

/* Whose sample it is, if its own id is there. */
static const SnapshotStream *reader_find_at(const Reader *r, const uint8_t *bytes, size_t length, uint8_t at) {
        const SnapshotStream *stream;
        uint64_t id;

        if (record_peek_at(bytes, length, at, &id) != 0)
                return NULL;
        stream = snapshot_find(&r->snapshot->cpus[r->slot], id);
        return stream && stream->layout->own_id == at ? stream : NULL;
}

/*
 * Software events of one kind that happened at one moment have one id, `named`, and each its own one where its layout has
 * it (kernel/attr.c); that is rarely another place than that of `named`.
 */
static const SnapshotStream *reader_find_own(const Reader *r, const SnapshotStream *named, const uint8_t *bytes,
                                             size_t length) {
        uint8_t first = named->layout->own_id;
        const SnapshotStream *stream = first ? reader_find_at(r, bytes, length, first) : named;

        for (uint8_t at = sizeof(struct perf_event_header); !stream && at < UINT8_MAX - sizeof(uint64_t); at += sizeof(uint64_t))
                stream = reader_find_at(r, bytes, length, at);
        return stream;
}

static EventCounters *reader_counters(const Reader *r, const SnapshotStream *stream) {
        return &r->snapshot->events[stream->event].event->counters[r->slot];
}

static int reader_take(Reader *r, const uint8_t *bytes, size_t length, bool *ret_is_sample) {
        const SnapshotStream *stream = NULL;
        struct perf_event_header header;
        uint64_t id;
        int n;

        memcpy(&header, bytes, sizeof(header));
        *ret_is_sample = false;
        if (record_peek_id(bytes, length, &id) != 0) {
                counter_add(&r->counters.undecodable, 1);
                return 0;
        }
        if (id != r->carrier_id && id != r->retiring_id) {
                stream = snapshot_find(&r->snapshot->cpus[r->slot], id);
                if (!stream && id == r->moves.id && header.type == PERF_RECORD_SAMPLE)
                        return reader_take_move(r, bytes, length);
                if (stream && header.type == PERF_RECORD_SAMPLE)
                        stream = reader_find_own(r, stream, bytes, length);
                if (!stream) {
                        counter_add(&r->counters.unknown_id, 1);
                        return 0;
                }
        }
        if (header.type != PERF_RECORD_SAMPLE)
                return reader_take_side(r, stream, bytes, length);
        if (!stream) { /* a dummy has no samples */
                counter_add(&r->counters.undecodable, 1);
                return 0;
        }
        *ret_is_sample = true;
        n = reader_take_sample(r, stream, bytes, length);
        if (n == 0 && stream->is_sampling)
                counter_add(&reader_counters(r, stream)->sampled, 1);
        return n;
}

/* A record that does not fit into an empty batch is lost, and said so. */
static void reader_lose(Reader *r, const uint8_t *bytes, size_t length, bool is_sample) {
        const SnapshotStream *stream;
        uint64_t id = 0;

        (void)record_peek_id(bytes, length, &id); /* reader_take() has peeked it */
        stream = snapshot_find(&r->snapshot->cpus[r->slot], id);
        if (stream && is_sample)
                stream = reader_find_own(r, stream, bytes, length);
        if (!stream || !is_sample) {
                counter_add(&r->counters.undecodable, 1);
                return;
        }
        counter_add(&reader_counters(r, stream)->lost[LOSS_BATCH_POOL], 1);
        if (stream->is_sampling)
                counter_add(&reader_counters(r, stream)->sampled, 1);
}

/* READER_E_STARVED: the record was not touched. */
static int reader_take_whole(Reader *r, const uint8_t *bytes, size_t length) {
        bool is_sample = false;

        for (;;) {
                int n = reader_need_batch(r);
                Mark mark;

                if (n != 0)
                        return n;
                mark = (Mark){ r->batch->n_entries, r->batch->used };
                n = reader_take(r, bytes, length, &is_sample);
                if (n == 0)
                        break;
                reader_take_back(r, mark);
                if (mark.n_entries == 0) {
                        reader_lose(r, bytes, length, is_sample);
                        break;
                }
                reader_push_full_batch(r);
        }
        counter_add(&r->counters.records, 1);
        if (is_sample)
                counter_add(&r->counters.samples, 1);
        return 0;
}

static int drain_ring(Reader *r, Ring *ring) {
        uint64_t head = ring_head(ring), published = ring->tail;
        const uint8_t *bytes;
        size_t length;
        int n, taken = 0;

        while ((n = ring_peek(ring, head, &bytes, &length)) == 0) {
                taken = reader_take_whole(r, bytes, length);
                if (taken != 0)
                        break;
                ring_consume(ring, length);
                if (ring->tail - published >= PUBLISH_EACH) {
                        ring_publish(ring);
                        published = ring->tail;
                }
        }
        if (n == RING_E_CORRUPT)
                counter_add(&r->counters.resyncs, 1);
        if (ring->tail != published)
                ring_publish(ring);
        return taken;
}

int reader_drain(Reader *r) {
        nsec_t began = reader_visible(r); /* before the heads: what is older is visible then */
        int taken = r->retiring.page ? drain_ring(r, &r->retiring) : 0;

        if (taken == 0)
                taken = drain_ring(r, &r->ring);
        if (taken == 0)
                r->watermark = began;
        return taken;
}
