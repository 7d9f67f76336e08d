/*
 * Appends items to packets, run by run: a run is a span of items that are adjacent in a batch and go to the same channels.
 * Interleaved items have a fast path of their own (dispatcher/pass.h). A long run is sent from the batch, without a copy; what
 * the socket does not accept at once is copied before the batch is returned to its reader. Short runs are collected in the open
 * packet, which is sent when it is full, or at the end of the cycle.
 */
#include "daemon/dispatcher/pass.h"

#include <errno.h>
#include <stdlib.h>

#define FEW 4 /* entries of one group: for fewer, looking for what they have in common costs more than it saves */
/* bytes: a run of this length is sent without a copy; shorter ones are copied into the open packet */
#define BORROWED_MIN ((size_t)16 << 10)

_Static_assert(POOL_BUFFER >= BATCH_ARENA, "a run is in one packet");

/* Items that are adjacent in a batch. */
typedef struct ItemSpan {
        const uint8_t *bytes;
        size_t length, n;
} ItemSpan;

/*
 * Sends a long span directly from the batch. What does not leave at once is copied. Where several subscribers can read one copy,
 * it is copied once, into a shared buffer.
 */
static int channel_send_borrowed(Dispatcher *d, Channel *c, const ItemSpan *span) {
        int r = channel_flush(d, c);
        Packet *p;

        if (r < 0)
                return r;
        p = channel_new_buffered(d, c);
        if (p)
                /* always fits: the span is from one batch, and the packet has room for one */
                (void)packet_append(p, span->bytes, span->length, span->n);
        else
                p = packet_new_borrowed(span->bytes, span->length, span->n);
        return p ? channel_send(d, c, p) : error_origin(-ENOMEM);
}

static int channel_open(Dispatcher *d, Channel *c, const ItemSpan *span) {
        int r = channel_tell_wall(d, c);

        if (r >= 0 && span->length >= BORROWED_MIN)
                return channel_send_borrowed(d, c, span);
        if (r >= 0 && c->open)
                r = channel_flush(d, c);
        if (r < 0)
                return r;
        dispatcher_note_unflushed(d, c);
        c->open = channel_reserve(c, BORROWED_MIN);
        if (!c->open)
                c->open = channel_new_buffered(d, c);
        if (!c->open)
                c->open = packet_new_pooled(&d->packets);
        if (!c->open)
                return error_origin(-ENOMEM);
        (void)packet_append(c->open, span->bytes, span->length, span->n); /* always fits: the span is shorter than what is left */
        return 0;
}

static inline int channel_append(Dispatcher *d, Channel *c, const ItemSpan *span) {
        bool is_in = c->open && (span->n == 1 ? packet_append_one(c->open, span->bytes, span->length) :
                                 span->length < BORROWED_MIN && packet_append(c->open, span->bytes, span->length, span->n));

        return is_in ? 0 : channel_open(d, c, span);
}

/* A destination of entries: channels of one order and group. */
typedef struct Way {
        StreamOrder order;
        uint32_t group;
        uint64_t bits; /* of these channels */
} Way;

static inline bool dispatcher_has_named(Dispatcher *d, const Way *way, uint32_t tid, uint64_t bits) {
        return !(bits & ~task_table_described(&d->tasks[way->order], way->group, tid));
}

/*
 * The number of these n entries, beginning with the first, that are adjacent and go to the same channels. It ends before an entry
 * whose task has to be described first.
 */
static size_t run_length(Dispatcher *d, const Way *way, const BatchEntry *first, size_t n) {
        const uint64_t bits = way->bits;
        uint64_t wanted = first->mask & bits;
        uint32_t tid = first->tid;
        size_t i;

        for (i = 1; i < n; i++) {
                const BatchEntry *e = &first[i];

                if ((e->mask & bits) != wanted || e->place != e[-1].place + e[-1].length)
                        break;
                if (e->tid != tid) {
                        if (!dispatcher_has_named(d, way, e->tid, wanted))
                                break;
                        tid = e->tid;
                }
        }
        return i;
}

static int dispatcher_apply_note(Dispatcher *d, unsigned noted, const Batch *b, const BatchEntry *e) {
        int r = 0;

        for (int order = 0; order < _STREAM_ORDER_MAX && r >= 0; order++)
                if (noted & 1U << order)
                        r = dispatcher_note(d, (StreamOrder)order, b, e);
        return r;
}

/* Appends the first run of these n entries. Stores how many entries it had. */
static int dispatcher_append_run(Dispatcher *d, const Way *way, const Batch *b, const BatchEntry *e, size_t n, size_t *ret_n) {
        Channel *const *by_bit = d->groups[way->order][way->group].by_bit;
        uint64_t wanted = e->mask & way->bits;
        ItemSpan span = { .bytes = b->arena + entry_offset(e) };
        int r = 0;

        if (!dispatcher_has_named(d, way, e->tid, wanted))
                r = dispatcher_name(d, way->order, way->group, e->tid, wanted);
        span.n = run_length(d, way, e, n);
        span.length = e[span.n - 1].place + e[span.n - 1].length - e->place;
        for (uint64_t m = wanted; m && r >= 0; m &= m - 1)
                r = channel_append(d, by_bit[__builtin_ctzll(m)], &span);
        *ret_n = span.n;
        return r;
}

/* Appends entries of one group. */
static int dispatcher_append_group(Dispatcher *d, const Way *way, unsigned noted, const Batch *b, const BatchEntry *e, size_t n) {
        const BatchEntry *end = e + n;
        const uint64_t bits = way->bits;
        CursorSet cursors;
        int r = 0;

        cursor_set_init(&cursors);
        while (r >= 0) {
                const Pass pass = pass_of(d, way->order, way->group, bits);
                size_t n_run = 1;

                e = pass_entries(&pass, &cursors, b->arena, e, end);
                if (e == end)
                        break;
                if (e->mask & bits) {
                        cursor_set_clear(&cursors, e->mask & bits); /* cursors of other channels stay valid */
                        r = dispatcher_append_run(d, way, b, e, (size_t)(end - e), &n_run);
                } else if (e->event == BATCH_MARKER)
                        r = dispatcher_apply_note(d, noted, b, e);
                e += n_run;
        }
        cursor_set_clear(&cursors, UINT64_MAX);
        return r;
}

static size_t count_same_way(const BatchEntry *e, size_t n) {
        size_t i = 1;

        while (i < n && entry_way(&e[i]) == entry_way(e))
                i++;
        return i;
}

int dispatcher_append(Dispatcher *d, StreamOrder order, unsigned noted, const Batch *b, const BatchEntry *e, size_t n) {
        int r = 0;

        for (size_t n_same; n > 0 && r >= 0; e += n_same, n -= n_same) {
                Way way = { .order = order, .group = entry_group(e) };

                way.bits = dispatcher_live_bits(d, order, way.group, b->generation);
                n_same = b->is_uniform ? n : count_same_way(e, n);
                if (b->n_grouped > 0 && entry_is_conditional(e))
                        r = dispatcher_decide(d, order, b, e, n_same);
                if (r < 0)
                        return r;
                if (b->n_grouped > 0 && n_same < FEW) {
                        const Pass pass = pass_of(d, order, way.group, way.bits);
                        size_t passed = pass_few(&pass, b->arena, e, n_same);

                        e += passed;
                        n -= passed;
                        n_same -= passed;
                }
                if (n_same > 0)
                        r = dispatcher_append_group(d, &way, noted, b, e, n_same);
        }
        return r;
}
