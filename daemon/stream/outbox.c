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

void outbox_remove(Outbox *o, OutboxEntry *e) {
        if (e->previous)
                e->previous->next = e->next;
        else
                o->head = e->next;
        if (e->next)
                e->next->previous = e->previous;
        else
                o->tail = e->previous;
        packet_unref(e->packet);
        gap_deinit(&e->gap);
        free(e);
}

void outbox_deinit(Outbox *o) {
        while (o->head)
                outbox_remove(o, o->head);
        *o = OUTBOX_NULL;
}

void outbox_charge(Outbox *o, const Packet *p, bool comes) {
        size_t cost = p->length + OUTBOX_PACKET_COST, *bytes = p->keep ? &o->kept_bytes : &o->queued_bytes;

        *bytes = comes ? *bytes + cost : *bytes - cost;
        o->queued_items = comes ? o->queued_items + p->n_items : o->queued_items - p->n_items;
        if (o->queued_bytes + o->kept_bytes > o->most_bytes)
                o->most_bytes = o->queued_bytes + o->kept_bytes;
}

void outbox_pass_oldest(Outbox *o) {
        do
                o->oldest = o->oldest->next;
        while (o->oldest && (!o->oldest->packet || o->oldest->packet->keep));
}

static int outbox_append(Outbox *o, Packet *p) {
        OutboxEntry *e = outbox_add(o);

        if (!e)
                return -ENOMEM;
        e->packet = packet_ref(p);
        if (!p->keep && !o->oldest)
                o->oldest = e;
        outbox_charge(o, p, true);
        return 0;
}

/* It becomes a gap, or part of the gap before it. */
static int outbox_drop_oldest(Outbox *o) {
        OutboxEntry *e = o->oldest, *before = e->previous;
        bool joins = before && !before->packet;
        Packet *p = e->packet;
        int r;

        r = gap_add(joins ? &before->gap : &e->gap, p);
        if (r < 0)
                return r;
        outbox_pass_oldest(o);
        outbox_charge(o, p, false);
        o->dropped_items += p->n_items;
        e->packet = packet_unref(p);
        if (joins)
                outbox_remove(o, e);
        return 0;
}

/* It never comes in, and is missing behind all that waits. */
static int outbox_drop_newest(Outbox *o, const Packet *p) {
        OutboxEntry *e = o->tail && !o->tail->packet ? o->tail : outbox_add(o);
        int r;

        if (!e)
                return -ENOMEM;
        r = gap_add(&e->gap, p);
        if (r < 0)
                return r;
        o->dropped_items += p->n_items;
        return o->overflow == OVERFLOW_DISCONNECT ? OUTBOX_E_OVERFLOW : 0;
}

int outbox_push(Outbox *o, Packet *p) {
        size_t cost = p->length + OUTBOX_PACKET_COST;

        thread_assert(THREAD_DISPATCHER);
        assert(p->sealed);
        if (p->keep)
                return o->kept_bytes + cost > OUTBOX_KEPT_MAX ? OUTBOX_E_OVERFLOW : outbox_append(o, p);
        if (outbox_is_over(o))
                return outbox_drop_newest(o, p); /* what would still fit as well */
        while (o->queued_bytes > 0 && o->queued_bytes + cost > o->limit) {
                int r;

                if (o->overflow != OVERFLOW_DROP_OLDEST || !o->oldest)
                        return outbox_drop_newest(o, p);
                r = outbox_drop_oldest(o);
                if (r < 0)
                        return r;
        }
        return outbox_append(o, p);
}
