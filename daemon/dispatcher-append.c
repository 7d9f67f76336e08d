/*
 * Items to packets. What is done is done for runs: items that lie in a batch one behind the other and go the same way. A
 * long run is sent from where it lies, so that a flood is not copied; what a socket does not take at once is copied then,
 * before the batch goes back to its reader. Short ones wait together for the end of the turn, or until a packet is full.
 */
#include "daemon/dispatcher.h"

#include <errno.h>
#include <stdlib.h>

#define LENT_SIZE ((size_t)16 << 10) /* so much is sent without a copy; less, together with what follows */

/* A packet goes to every subscriber of the channel. Whoever can not send it at once holds it from then on. */
static int channel_send(Dispatcher *d, Channel *c, Packet *p) {
        int r = 0;

        if (!p)
                return 0;
        packet_seal(p);
        for (Subscriber *s = c->subscribers, *next; s && r >= 0; s = next) {
                next = s->next; /* a push may end the subscriber */
                r = subscriber_push(d, s, p);
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

/* Much at once is sent from where it lies; what does not leave at once is copied then. */
static int channel_lend(Dispatcher *d, Channel *c, const Run *run) {
        int r = channel_flush(d, c);
        Packet *p;

        if (r < 0)
                return r;
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

/* Where items go while nothing has to be done before: by the bits of channels. */
typedef struct Pass {
        uint64_t bits;
        TaskHints hints;
        Channel *const *by_bit;
} Pass;

static Pass pass_of(const Dispatcher *d, StreamOrder order, uint64_t bits) {
        return (Pass){ .bits = bits, .hints = task_table_hints(&d->tasks[order]), .by_bit = d->by_bit[order] };
}

/* The open packet of the channel of these bits, if it is one channel, and has one. */
static inline Packet *pass_packet(Channel *const *by_bit, uint64_t wanted) {
        return !wanted || (wanted & (wanted - 1)) ? NULL : by_bit[(unsigned)__builtin_ctzll(wanted)]->open;
}

/* An item to several channels, if each has an open packet with room for it; else, and if there is no channel, to none. */
__attribute__((noinline)) static bool pass_to_all(Channel *const *by_bit, uint64_t wanted, const uint8_t *item, size_t length) {
        for (uint64_t m = wanted; m; m &= m - 1) {
                const Packet *p = by_bit[(unsigned)__builtin_ctzll(m)]->open;

                if (!p || length > p->capacity - p->length)
                        return false;
        }
        for (uint64_t m = wanted; m; m &= m - 1)
                (void)packet_append_one(by_bit[(unsigned)__builtin_ctzll(m)]->open, item, length);
        return wanted != 0;
}

/*
 * Entries of which each goes another way than the one behind it. The first that did not go. What is asked again and again
 * is in variables, because a compiler has to believe that each item that is written might change it.
 */
__attribute__((noinline)) static const BatchEntry *pass_entries(const Pass *pass, const uint8_t *arena, const BatchEntry *e,
                                                                const BatchEntry *end) {
        const TaskHints hints = pass->hints;
        Channel *const *const by_bit = pass->by_bit;
        const uint64_t bits = pass->bits;
        uint64_t wanted, next = e < end ? e->mask & bits : 0;

        for (; e < end; e++) {
                Packet *p;

                wanted = next;
                if (e + 1 < end) {
                        next = e[1].mask & bits;
                        if (next == wanted)
                                break;
                }
                p = pass_packet(by_bit, wanted);
                if (!p) {
                        if (!task_hints_has(hints, e->tid, wanted) ||
                            !pass_to_all(by_bit, wanted, arena + e->offset, e->length))
                                break;
                } else if (!task_hints_has(hints, e->tid, wanted) || !packet_append_one(p, arena + e->offset, e->length))
                        break;
        }
        return e;
}

/* A packet while items go into it and nothing else happens: what it knows of itself follows when the pen is lifted. */
typedef struct Pen {
        uint64_t bits; /* of the packet's channel */
        Packet *packet;
        uint8_t *to;
        size_t room, n;
} Pen;

#define PEN_NULL ((Pen){ .bits = UINT64_MAX }) /* has no room: an item of 64 channels goes the long way */

static inline void pen_lift(Pen *pen) {
        if (pen->packet) {
                pen->packet->length = (size_t)(pen->to - pen->packet->room);
                pen->packet->n_items += pen->n;
        }
        *pen = PEN_NULL;
}

static inline void pen_put_on(Pen *pen, uint64_t bits, Packet *p) {
        pen_lift(pen);
        *pen = (Pen){ .bits = bits, .packet = p, .to = p->room + p->length, .room = p->capacity - p->length };
}

/* The first piece that did not go. */
__attribute__((noinline)) static const MergePiece *pass_pieces(const Pass *pass, const MergePiece *piece,
                                                               const MergePiece *end) {
        const TaskHints hints = pass->hints;
        const uint64_t bits = pass->bits;
        Pen pen = PEN_NULL;

        for (; piece < end && piece->n == 1; piece++) {
                const BatchEntry *e = piece->first;
                uint64_t wanted = e->mask & bits;
                size_t length = e->length;

                if (wanted != pen.bits) {
                        Packet *p = pass_packet(pass->by_bit, wanted);

                        if (!wanted && e->event != BATCH_NOTE)
                                continue;
                        if (p)
                                pen_put_on(&pen, wanted, p);
                        else {
                                pen_lift(&pen);
                                if (!task_hints_has(hints, e->tid, wanted) ||
                                    !pass_to_all(pass->by_bit, wanted, piece->item, length))
                                        break;
                                continue;
                        }
                }
                if (!task_hints_has(hints, e->tid, wanted) || length > pen.room)
                        break;
                copy_short(pen.to, piece->item, length);
                pen.to += length;
                pen.room -= length;
                pen.n++;
        }
        pen_lift(&pen);
        return piece;
}

unsigned dispatcher_pass_pieces(Dispatcher *d, StreamOrder order, uint64_t bits, const MergePiece *pieces, unsigned n) {
        const Pass pass = pass_of(d, order, bits);

        return (unsigned)(pass_pieces(&pass, pieces, pieces + n) - pieces);
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
        int r = 0;

        while (r >= 0) {
                const Pass pass = pass_of(d, order, bits);
                size_t n_run = 1;

                e = pass_entries(&pass, b->arena, e, end);
                if (e == end)
                        break;
                if (e->mask & bits)
                        r = dispatcher_append_run(d, order, bits, b, e, (size_t)(end - e), &n_run);
                else if (e->event == BATCH_NOTE)
                        r = dispatcher_follow_note(d, noted, b, e);
                e += n_run;
        }
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
