/*
 * Outboxes. A packet gets its number when it leaves and not when it is pushed: what is dropped before it then needs no
 * number of its own kept anywhere, and a gap becomes a packet, with final numbers, when it reaches the head. So the
 * n-th packet of a run without gaps has the number next_sequence + n, and nothing else has to be remembered.
 */
#include "daemon/stream/outbox-queue.h"

#include <errno.h>

#include "daemon/base/thread.h"

void outbox_init(Outbox *o, size_t limit, Overflow overflow) {
        assert(overflow < _OVERFLOW_MAX);
        *o = OUTBOX_NULL;
        o->limit = limit;
        o->overflow = overflow;
        o->next_sequence = 1;
}

void outbox_set_accounts(Outbox *o, QueueAccount *of_uid, QueueAccount *of_all) {
        o->accounts[OUTBOX_ACCOUNT_UID] = of_uid;
        o->accounts[OUTBOX_ACCOUNT_ALL] = of_all;
}

/* What the accounts are charged with while it holds so many bytes. */
static size_t charge_of(size_t bytes) {
        return bytes > OUTBOX_FLOOR ? bytes - OUTBOX_FLOOR : 0;
}

static size_t outbox_bytes(const Outbox *o) {
        return o->queued_bytes + o->kept_bytes + o->gap_bytes;
}

/* Whoever reads as fast as it comes stays below OUTBOX_FLOOR, and costs nothing here. */
static void outbox_settle_charge(Outbox *o) {
        const size_t bytes = outbox_bytes(o), charge = charge_of(bytes);

        if (bytes > o->most_bytes)
                o->most_bytes = bytes;
        if (charge == o->charged)
                return;
        for (size_t i = 0; i < _OUTBOX_ACCOUNT_MAX; i++)
                if (o->accounts[i])
                        queue_account_change(o->accounts[i], o->charged, charge);
        o->charged = charge;
}

static OutboxEntry *outbox_add(Outbox *o) {
        OutboxEntry *e = malloc(sizeof(*e));

        if (!e)
                return NULL;
        *e = (OutboxEntry){ .previous = o->tail, .gap = GAP_NULL };
        if (o->tail)
                o->tail->next = e;
        else
                o->head = e;
        o->tail = e;
        return e;
}

void outbox_charge_gap(Outbox *o, OutboxEntry *e, size_t bytes) {
        o->gap_bytes = o->gap_bytes - e->gap_bytes + bytes;
        e->gap_bytes = bytes;
        outbox_settle_charge(o);
}

void outbox_remove(Outbox *o, OutboxEntry *e) {
        if (e->previous)
                e->previous->next = e->next;
        else
                o->head = e->next;
        if (e->next)
                e->next->previous = e->previous;
        else
                o->tail = e->previous;
        if (e->gap_bytes > 0)
                outbox_charge_gap(o, e, 0);
        packet_unref(e->packet);
        gap_deinit(&e->gap);
        free(e);
}

void outbox_deinit(Outbox *o) {
        while (o->head)
                outbox_remove(o, o->head);
        o->queued_bytes = o->kept_bytes = 0;
        outbox_settle_charge(o);
        *o = OUTBOX_NULL;
}

void outbox_charge(Outbox *o, const Packet *p, bool comes) {
        size_t cost = p->length + OUTBOX_PACKET_COST, *bytes = p->keep ? &o->kept_bytes : &o->queued_bytes;

        *bytes = comes ? *bytes + cost : *bytes - cost;
        o->queued_items = comes ? o->queued_items + p->n_items : o->queued_items - p->n_items;
        outbox_settle_charge(o);
}

void outbox_pass_oldest(Outbox *o) {
        do
                o->oldest = o->oldest->next;
        while (o->oldest && (!o->oldest->packet || o->oldest->packet->keep));
}

static int outbox_append(Outbox *o, Packet *p) {
        OutboxEntry *e = outbox_add(o);

        if (!e)
                return error_origin(-ENOMEM);
        e->packet = packet_ref(p);
        if (!p->keep && !o->oldest)
                o->oldest = e;
        outbox_charge(o, p, true);
        return 0;
}

/* A packet of items that is missing, in a gap that is there. */
static int outbox_miss(Outbox *o, OutboxEntry *e, const Packet *p, GapReason reason) {
        int r;

        e->gap.reason = reason;
        r = gap_add(&e->gap, p);
        if (r < 0)
                return r;
        outbox_charge_gap(o, e, OUTBOX_PACKET_COST + gap_bytes(&e->gap));
        o->dropped_items[reason] += p->n_items;
        return 0;
}

static bool is_gap_for(const OutboxEntry *e, GapReason reason) {
        return e && !e->packet && e->gap.reason == reason;
}

/* It becomes a gap, or part of the one beside it: the numbers of both are behind one another. */
static int outbox_drop(Outbox *o, OutboxEntry *e, GapReason reason) {
        OutboxEntry *gap = is_gap_for(e->previous, reason) ? e->previous : is_gap_for(e->next, reason) ? e->next : e;
        Packet *p = e->packet;
        int r = outbox_miss(o, gap, p, reason);

        if (r < 0)
                return r;
        if (e == o->oldest)
                outbox_pass_oldest(o);
        outbox_charge(o, p, false);
        o->freed_bytes += p->length;
        e->packet = packet_unref(p);
        if (gap != e)
                outbox_remove(o, e);
        return 0;
}

/* It never comes in, and is missing behind all that waits. */
static int outbox_drop_newest(Outbox *o, const Packet *p, GapReason reason) {
        OutboxEntry *e = is_gap_for(o->tail, reason) ? o->tail : outbox_add(o);
        int r;

        if (!e)
                return error_origin(-ENOMEM);
        r = outbox_miss(o, e, p, reason);
        if (r < 0)
                return r;
        return o->overflow == OVERFLOW_DISCONNECT ? OUTBOX_E_OVERFLOW : 0;
}

/* This one, or the next before it, that can be dropped; NULL: there is none. What was begun is before `oldest`. */
static OutboxEntry *outbox_newest(const Outbox *o, OutboxEntry *e) {
        if (!o->oldest)
                return NULL;
        while (!e->packet || e->packet->keep)
                e = e->previous;
        return e;
}

static size_t outbox_growth_by(const Outbox *o, size_t cost) {
        const size_t charge = charge_of(outbox_bytes(o) + cost);

        return charge > o->charged ? charge - o->charged : 0;
}

size_t outbox_growth(const Outbox *o, const Packet *p) {
        return outbox_growth_by(o, p->length + OUTBOX_PACKET_COST);
}

static bool outbox_may_grow(const Outbox *o, size_t cost) {
        const size_t more = outbox_growth_by(o, cost);

        for (size_t i = 0; more > 0 && i < _OUTBOX_ACCOUNT_MAX; i++)
                if (o->accounts[i] && queue_account_is_short(o->accounts[i], more))
                        return false;
        return true;
}

/* False: what is in the way is *ret. A packet that comes into an empty queue is above its limit, if it has to be. */
static bool outbox_has_room(const Outbox *o, size_t cost, GapReason *ret) {
        *ret = o->queued_bytes > 0 && o->queued_bytes + cost > o->limit ? GAP_OUTBOX : GAP_MEMORY;
        return *ret == GAP_MEMORY && outbox_may_grow(o, cost);
}

ssize_t outbox_shed(Outbox *o, size_t bytes) {
        const size_t before = o->charged, enough = before > bytes ? before - bytes : 0;
        OutboxEntry *from = o->tail;
        int r = 0;

        thread_assert(THREAD_DISPATCHER);
        while (r == 0 && o->oldest && o->charged > enough) {
                OutboxEntry *e = o->oldest;

                if (o->overflow != OVERFLOW_DROP_OLDEST) {
                        e = outbox_newest(o, from);
                        from = e->previous; /* if it was not the last one, there is one */
                }
                r = outbox_drop(o, e, GAP_MEMORY);
        }
        return r < 0 ? r : (ssize_t)(before > o->charged ? before - o->charged : 0);
}

int outbox_make_room(Outbox *o, const Packet *kept) {
        const size_t cost = kept->length + OUTBOX_PACKET_COST;

        if (o->kept_bytes + o->gap_bytes + cost > OUTBOX_KEPT_MAX)
                return OUTBOX_E_OVERFLOW;
        while (!outbox_may_grow(o, cost)) {
                ssize_t n = outbox_shed(o, outbox_growth_by(o, cost));

                if (n <= 0)
                        return n < 0 ? (int)n : OUTBOX_E_OVERFLOW;
        }
        return 0;
}

static int outbox_push_kept(Outbox *o, Packet *p) {
        int r = outbox_make_room(o, p);

        return r == 0 ? outbox_append(o, p) : r;
}

int outbox_push(Outbox *o, Packet *p) {
        size_t cost = p->length + OUTBOX_PACKET_COST;
        GapReason reason = GAP_OUTBOX;

        thread_assert(THREAD_DISPATCHER);
        assert(p->sealed);
        if (p->keep)
                return outbox_push_kept(o, p);
        if (outbox_is_over(o))
                return outbox_drop_newest(o, p, reason); /* what would still fit as well */
        while (!outbox_has_room(o, cost, &reason)) {
                int r;

                if (o->overflow != OVERFLOW_DROP_OLDEST || !o->oldest)
                        return outbox_drop_newest(o, p, reason);
                r = outbox_drop(o, o->oldest, reason);
                if (r < 0)
                        return r;
        }
        return outbox_append(o, p);
}
