/*
 * The watermark that a reader gives with its last free batch: the time of the oldest record that is still in the ring. The merge
 * holds batches until every CPU has reported a watermark; if this reader could report one only at the end of a drain, for which
 * it has no batch, both would wait for ever. For the same reason the clock is read again: what came between the beginning of the
 * drain and its head is newer than that beginning, and may be in all batches.
 *
 * A ring buffer is only roughly ordered by time: an interrupt writes its records between the time that another record gets from
 * the clock and its place in the ring. So the next record is not necessarily the oldest. Each record's time is read once and the
 * lowest time of each chunk stored; only the chunk that is being drained is read again.
 */
#include "daemon/reader/cycle.h"

#include <linux/perf_event.h>
#include <string.h>

int backlog_init(Backlog *h, size_t ring_size) {
        *h = (Backlog){ .n_chunks = ring_size / BACKLOG_CHUNK + 2 };
        h->least = calloc(h->n_chunks, sizeof(nsec_t));
        return h->least ? 0 : error_origin(-ENOMEM);
}

int reader_init_backlog(Reader *r) {
        return backlog_init(&r->backlog, r->ring.size);
}

/* UINT64_MAX if the record has no time, or one that cannot be right. */
static nsec_t record_time(const Reader *r, const uint8_t *bytes, size_t length) {
        const SnapshotStream *stream;
        struct perf_event_header header;
        uint64_t id, at;
        nsec_t time;

        memcpy(&header, bytes, sizeof(header));
        if (header.type == PERF_RECORD_SAMPLE) {
                if (record_peek_id(bytes, length, &id) != 0)
                        return UINT64_MAX;
                stream = reader_find_sample(r, id, bytes, length);
                if (!stream && id != r->moves.id)
                        return UINT64_MAX;
                at = stream ? stream->layout->time : r->moves.layout.time;
        } else {
                if (length < sizeof(header) + r->side_layout.trailer_size)
                        return UINT64_MAX;
                at = record_body_end(bytes, length);
                if (at == 0)
                        at = length - r->side_layout.trailer_size;
                at += r->side_layout.trailer_time;
        }
        if (at + sizeof(time) > length)
                return UINT64_MAX;
        memcpy(&time, bytes + at, sizeof(time));
        return time < r->given ? UINT64_MAX : time; /* the time of another tool's clock (reader/time.c), or late in any case */
}

/* The lowest time of the records that begin in [from, to). Stores where the first record behind them begins. */
static nsec_t least_time(const Reader *r, const Ring *of, uint64_t from, uint64_t to, uint64_t head, uint64_t *ret_next) {
        Ring ring = *of; /* a copy with a position of its own; its scratch buffer is unused between two calls of ring_peek() */
        nsec_t least = UINT64_MAX;
        const uint8_t *bytes;
        size_t length;

        ring.tail = from;
        while (ring.tail < to && ring_peek(&ring, head, &bytes, &length) == 0) {
                nsec_t time = record_time(r, bytes, length);

                if (time < least)
                        least = time;
                ring_consume(&ring, length);
        }
        *ret_next = ring.tail;
        return least;
}

/* The lowest time of the next n records of one ring. */
static nsec_t least_ahead(const Reader *r, const Ring *of, unsigned n) {
        uint64_t head = ring_head(of);
        Ring ring = *of; /* as above */
        nsec_t least = UINT64_MAX;
        const uint8_t *bytes;
        size_t length;

        for (; n > 0 && ring_peek(&ring, head, &bytes, &length) == 0; n--) {
                nsec_t time = record_time(r, bytes, length);

                if (time < least)
                        least = time;
                ring_consume(&ring, length);
        }
        return least;
}

nsec_t reader_least_ahead(const Reader *r, unsigned n) {
        nsec_t least = least_ahead(r, &r->ring, n), old = r->retiring.page ? least_ahead(r, &r->retiring, n) : UINT64_MAX;

        return old < least ? old : least;
}

/* The time by which records of two rings are taken in turns: records without a time are taken at once. */
static nsec_t record_turn(const Reader *r, const uint8_t *bytes, size_t length) {
        nsec_t time = record_time(r, bytes, length);

        return time == UINT64_MAX ? 0 : time;
}

nsec_t reader_next_time(const Reader *r, const Ring *of, uint64_t head) {
        Ring ring = *of; /* as above */
        const uint8_t *bytes;
        size_t length;

        return ring_peek(&ring, head, &bytes, &length) == 0 ? record_turn(r, bytes, length) : UINT64_MAX;
}

uint64_t reader_find_younger(const Reader *r, const Ring *of, uint64_t head, nsec_t time) {
        Ring ring = *of; /* as above */
        const uint8_t *bytes;
        size_t length;

        while (ring_peek(&ring, head, &bytes, &length) == 0 && record_turn(r, bytes, length) <= time)
                ring_consume(&ring, length);
        return ring.tail;
}

/* Starts again at a position that was not reached record by record. */
static void backlog_jump(Backlog *h, uint64_t to) {
        h->scanned = to;
        h->chunk = to / BACKLOG_CHUNK;
        h->least[h->chunk % h->n_chunks] = UINT64_MAX;
}

/* Moves to the beginning of the next record. Chunks that are begun or skipped have had no record yet. */
static void backlog_move(Backlog *h, uint64_t to) {
        h->scanned = to;
        while (h->chunk < to / BACKLOG_CHUNK)
                h->least[++h->chunk % h->n_chunks] = UINT64_MAX;
}

nsec_t reader_backlog_watermark(Reader *r, uint64_t head) {
        Backlog *h = &r->backlog;
        uint64_t tail = r->ring.tail, chunk_end = (tail / BACKLOG_CHUNK + 1) * BACKLOG_CHUNK, next;
        nsec_t least;

        if (head - tail > r->ring.size)
                return UINT64_MAX; /* the ring's contents are invalid: the next drain discards them */
        if (h->scanned < tail || h->scanned > head)
                backlog_jump(h, tail);
        while (h->scanned < head) {
                uint64_t end = (h->chunk + 1) * BACKLOG_CHUNK;
                nsec_t *kept = &h->least[h->chunk % h->n_chunks];

                least = least_time(r, &r->ring, h->scanned, end < head ? end : head, head, &next);
                if (least < *kept)
                        *kept = least;
                if (next <= h->scanned)
                        break;
                backlog_move(h, next);
        }
        least = least_time(r, &r->ring, tail, chunk_end < head ? chunk_end : head, head, &next);
        for (uint64_t chunk = tail / BACKLOG_CHUNK + 1; chunk <= h->chunk; chunk++)
                if (h->least[chunk % h->n_chunks] < least)
                        least = h->least[chunk % h->n_chunks];
        if (r->retiring.page) { /* only while a ring is replaced, so all of it is searched */
                uint64_t end = ring_head(&r->retiring);
                nsec_t old = least_time(r, &r->retiring, r->retiring.tail, end, end, &next);

                if (old < least)
                        least = old;
        }
        return least;
}
