/*
 * Items to packets. What is done is done for runs: items that lie in a batch one behind the other and go the same way; what
 * comes in turns has a quick way of its own (dispatcher-pass.h). A long run is sent from where it lies, so that a flood is
 * not copied; what a socket does not take at once is copied then, before the batch goes back to its reader. Short ones wait
 * together for the end of the turn, or until a packet is full.
 */
#include "daemon/dispatcher-pass.h"

#include <errno.h>
#include <stdlib.h>

#define LENT_SIZE ((size_t)16 << 10) /* so much is sent without a copy; less, together with what follows */

_Static_assert(POOL_BUFFER >= BATCH_ARENA, "a run is in one packet");

static int channel_send_to(Dispatcher *d, Subscriber *s, Packet *p) {
        int r = p->buffers ? subscriber_refer(d, s, p) : 0;

        return r != 0 ? r : subscriber_push(d, s, p);
}

/* A packet goes to every subscriber of the channel. Whoever can not send it at once holds it from then on. */
static int channel_send(Dispatcher *d, Channel *c, Packet *p) {
        int r = 0;

        if (!p)
                return 0;
        if (p->is_placed)
                return channel_send_placed(d, c, p);
        packet_seal(p);
        for (Subscriber *s = c->subscribers, *next; s && r >= 0; s = next) {
                next = s->next; /* a push may end the subscriber */
                r = channel_send_to(d, s, p);
        }
        if (p->n_refs > 1) {
                int settled = packet_settle(p, &d->packets);

                r = r < 0 ? r : settled;
        }
        packet_unref(p);
        return r;
}

int channel_flush(Dispatcher *d, Channel *c) {
        int r = channel_send(d, c, TAKE_PTR(c->tasks)), sent = channel_send(d, c, TAKE_PTR(c->open));

        return r < 0 ? r : sent;
}

/* Items that lie in a batch one behind the other. */
typedef struct Run {
        const uint8_t *bytes;
        size_t length, n;
} Run;

/*
 * Much at once is sent from where it lies; what does not leave at once is copied then. Where several can read one copy, there
 * is one.
 */
static int channel_lend(Dispatcher *d, Channel *c, const Run *run) {
        int r = channel_flush(d, c);
        Packet *p;

        if (r < 0)
                return r;
        p = channel_share(d, c);
        if (p)
                (void)packet_append(p, run->bytes, run->length, run->n); /* of one batch: it has room for that */
        else
                p = packet_new_lent(run->bytes, run->length, run->n);
        return p ? channel_send(d, c, p) : -ENOMEM;
}

static int channel_open(Dispatcher *d, Channel *c, const Run *run) {
        int r;

        if (run->length >= LENT_SIZE)
                return channel_lend(d, c, run);
        r = c->open ? channel_flush(d, c) : 0;
        if (r < 0)
                return r;
        c->open = channel_place(c, LENT_SIZE);
        if (!c->open)
                c->open = channel_share(d, c);
        if (!c->open)
                c->open = packet_new_pooled(&d->packets);
        if (!c->open)
                return -ENOMEM;
        (void)packet_append(c->open, run->bytes, run->length, run->n); /* less than it has room for */
        return 0;
}

static inline int channel_append(Dispatcher *d, Channel *c, const Run *run) {
        bool is_in = c->open && (run->n == 1 ? packet_append_one(c->open, run->bytes, run->length) :
                                 run->length < LENT_SIZE && packet_append(c->open, run->bytes, run->length, run->n));

        return is_in ? 0 : channel_open(d, c, run);
}

static inline bool dispatcher_has_named(Dispatcher *d, StreamOrder order, uint32_t tid, uint64_t bits) {
        return !(bits & ~task_table_described(&d->tasks[order], tid));
}

/* How many of these n entries go where the first one goes, and lie behind it: whoever did them, if that was said already. */
static size_t run_length(Dispatcher *d, StreamOrder order, uint64_t bits, const BatchEntry *first, size_t n) {
        uint64_t wanted = first->mask & bits;
        uint32_t tid = first->tid;
        size_t i;

        for (i = 1; i < n; i++) {
                const BatchEntry *e = &first[i];

                if ((e->mask & bits) != wanted || e->offset != e[-1].offset + e[-1].length)
                        break;
                if (e->tid != tid) {
                        if (!dispatcher_has_named(d, order, e->tid, wanted))
                                break;
                        tid = e->tid;
                }
        }
        return i;
}

static int dispatcher_follow_note(Dispatcher *d, unsigned noted, const Batch *b, const BatchEntry *e) {
        int r = 0;

        for (int order = 0; order < _STREAM_ORDER_MAX && r >= 0; order++)
                if (noted & 1U << order)
                        r = dispatcher_note(d, (StreamOrder)order, b, e);
        return r;
}

/* Entries that go one way, the first of these n and those behind it. How many they were. */
static int dispatcher_append_run(Dispatcher *d, StreamOrder order, uint64_t bits, const Batch *b, const BatchEntry *e, size_t n,
                                 size_t *ret_n) {
        uint64_t wanted = e->mask & bits;
        Run run = { .bytes = b->arena + e->offset };
        int r = 0;

        if (!dispatcher_has_named(d, order, e->tid, wanted))
                r = dispatcher_name(d, order, e->tid, wanted);
        run.n = run_length(d, order, bits, e, n);
        run.length = e[run.n - 1].offset + e[run.n - 1].length - e->offset;
        for (uint64_t m = wanted; m && r >= 0; m &= m - 1)
                r = channel_append(d, d->by_bit[order][__builtin_ctzll(m)], &run);
        *ret_n = run.n;
        return r;
}

int dispatcher_append(Dispatcher *d, StreamOrder order, unsigned noted, uint64_t bits, const Batch *b, const BatchEntry *e,
                      size_t n) {
        const BatchEntry *end = e + n;
        Desk desk;
        int r = 0;

        desk_init(&desk);
        while (r >= 0) {
                const Pass pass = pass_of(d, order, bits);
                size_t n_run = 1;

                e = pass_entries(&pass, &desk, b->arena, e, end);
                if (e == end)
                        break;
                if (e->mask & bits) {
                        desk_clear(&desk, e->mask & bits); /* those of other channels stay as they are */
                        r = dispatcher_append_run(d, order, bits, b, e, (size_t)(end - e), &n_run);
                } else if (e->event == BATCH_NOTE)
                        r = dispatcher_follow_note(d, noted, b, e);
                e += n_run;
        }
        desk_clear(&desk, UINT64_MAX);
        return r;
}

/* A channel whose last subscriber left. */
static void dispatcher_remove_channel(Dispatcher *d, Channel *c) {
        for (Channel **p = &d->channels; *p; p = &(*p)->next)
                if (*p == c) {
                        *p = c->next;
                        break;
                }
        d->by_bit[c->order][c->bit] = NULL;
        d->order_bits[c->order] &= ~(1ULL << c->bit);
        d->n_channel_changes++;
        free(c);
}

int dispatcher_flush(Dispatcher *d) {
        int r = 0;

        for (Channel *c = d->channels, *next; c && r >= 0; c = next) {
                next = c->next;
                r = channel_flush(d, c);
                if (!c->subscribers)
                        dispatcher_remove_channel(d, c);
        }
        packet_pool_turn(&d->packets);
        return r;
}
