/*
 * Drains the ring into batches: each record is decoded and encoded once, whatever the number of subscribers.
 *
 * A record is consumed only when all of its items are in a batch, or its loss is counted. If the items do not fit, those already
 * appended are removed, and the record is tried again in an empty batch. If there is no empty batch, the record stays in the
 * ring, and the kernel counts exactly what it cannot write meanwhile.
 *
 * A command is executed at the end of the ring. A reader might never reach it, if more is written each time that it waits for
 * batches than these have room for. So a reader that has waited for batches with a pending command gives no space back to the
 * kernel until it reaches the end: the head of a full ring does not move. What is lost meanwhile, when so much happens that no
 * batch is free, is counted by the kernel.
 */
#include "daemon/reader/cycle.h"

#include <string.h>

#include "daemon/decode/record-base.h"
#include "daemon/reader/route.h"

#define FULL_SHARE 8 /* of a ring: with less than this share free, a record may have found no room */
#define PUBLISH_EACH ((uint64_t)64 * 1024) /* bytes of the ring that are given back at a time */

/*
 * The fast path: a sample of a tracepoint with fixed layout, each of which is an occurrence. Returns its stream; NULL, with
 * nothing done, for all others, and if it does not fit.
 */
static inline const SnapshotStream *reader_take_in_place(Reader *r, const SnapshotCpu *c, const uint8_t *bytes, size_t length) {
        const SnapshotStream *stream;
        Batch *b = r->batch;
        size_t n_entries, used;
        uint32_t type;
        uint64_t id;

        memcpy(&type, bytes + offsetof(struct perf_event_header, type), sizeof(type));
        if (type != PERF_RECORD_SAMPLE || !b || record_peek_at(bytes, length, sizeof(struct perf_event_header), &id) != 0)
                return NULL;
        stream = snapshot_find(c, id);
        if (!stream || stream->path == PATH_GENERAL)
                return NULL;
        if (record_decode_base(bytes, length, stream->min_raw_size, &r->in_place) != 0) {
                counter_add(&stream->counters->lost[LOSS_UNDECODABLE], 1);
                loss_bell_note(r->losses);
                return stream;
        }
        n_entries = b->n_entries;
        used = b->used;
        if (__builtin_expect(reader_route(r, stream, &r->in_place) == 0, 1))
                return stream;
        batch_take_back(b, n_entries, used);
        return NULL;
}

/* READER_E_STARVED: the record was not consumed. */
static int reader_take_whole(Reader *r, const uint8_t *bytes, size_t length, bool *ret_is_sample) {
        for (;;) {
                int n = reader_need_batch(r);
                size_t n_entries, used;

                if (n != 0)
                        return n;
                n_entries = r->batch->n_entries;
                used = r->batch->used;
                n = reader_take(r, bytes, length, ret_is_sample);
                if (__builtin_expect(n == 0, 1))
                        return 0;
                batch_take_back(r->batch, n_entries, used);
                if (n_entries == 0) {
                        reader_lose(r, bytes, length, *ret_is_sample);
                        return 0;
                }
                reader_push_full_batch(r);
        }
}

static void reader_give_back(const Reader *r, Ring *ring) {
        if (!r->holds)
                ring_publish(ring);
}

static int drain_ring(Reader *r, Ring *ring, uint64_t head) {
        uint64_t published = ring->tail, records = 0, samples = 0;
        const SnapshotCpu *c = &r->snapshot->cpus[r->slot];
        const SnapshotStream *stream = NULL, *before;
        const uint8_t *bytes;
        size_t length;
        int n, taken = 0;

        if (head - ring->tail > ring->size - ring->size / FULL_SHARE)
                loss_bell_note(r->losses); /* the kernel reports that it had no room only when it writes the next record, if ever */
        while ((n = ring_peek(ring, head, &bytes, &length)) == 0) {
                bool is_sample = true;
                uint64_t run, until;

                before = stream;
                stream = reader_take_in_place(r, c, bytes, length);
                if (!stream)
                        taken = reader_take_whole(r, bytes, length, &is_sample);
                if (taken != 0)
                        break;
                records++;
                samples += is_sample;
                ring_consume(ring, length);
                if (ring->tail - published >= PUBLISH_EACH) {
                        reader_give_back(r, ring);
                        published = ring->tail;
                }
                if (!stream || !before)
                        continue;
                until = head - published < PUBLISH_EACH ? head : published + PUBLISH_EACH;
                if (stream == before) /* a third one is likely */
                        run = reader_take_run(r, ring, until, stream, length);
                else
                        run = reader_take_interleaved(r, ring, until, &stream);
                records += run;
                samples += run;
        }
        counter_add(&r->counters.records, records);
        counter_add(&r->counters.samples, samples);
        if (n == RING_E_CORRUPT)
                counter_add(&r->counters.resyncs, 1);
        if (ring->tail != published)
                reader_give_back(r, ring);
        return taken;
}

/*
 * While some events write into one ring and some into the other: takes records from both in turns, from each as long as they are
 * not younger than the next record of the other, so that what does not fit into a batch is not older than what does.
 */
static int drain_both(Reader *r) {
        Ring *const rings[] = { &r->retiring, &r->ring };
        const uint64_t heads[] = { ring_head(&r->retiring), ring_head(&r->ring) };
        int taken = 0;

        while (taken == 0) {
                nsec_t next[] = { reader_next_time(r, rings[0], heads[0]), reader_next_time(r, rings[1], heads[1]) };
                unsigned i = next[1] < next[0];

                if (next[i] == UINT64_MAX)
                        break; /* both are empty, or their contents are invalid */
                taken = drain_ring(r, rings[i], reader_find_younger(r, rings[i], heads[i], next[!i]));
        }
        for (unsigned i = 0; i < ARRAY_SIZE(rings) && taken == 0; i++)
                taken = drain_ring(r, rings[i], heads[i]);
        return taken;
}

/* Called when the end of the ring was reached. */
static void reader_let_go(Reader *r) {
        r->holds = false;
        ring_publish(&r->ring);
        if (r->retiring.page)
                ring_publish(&r->retiring);
}

int reader_drain(Reader *r) {
        nsec_t began = reader_visible(r); /* before the heads are read: everything older is visible then */
        int taken;

        r->began = began;
        taken = r->retiring.page ? drain_both(r) : drain_ring(r, &r->ring, ring_head(&r->ring));
        if (counter_get(&r->counters.foreign_times) != r->told_times)
                reader_tell_times(r);
        if (taken != 0)
                return taken;
        r->watermark = began;
        if (r->holds)
                reader_let_go(r);
        return 0;
}
