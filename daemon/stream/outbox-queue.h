/*
 * For outbox.c and outbox-send.c: what waits, one behind the other.
 */
#pragma once

#include "daemon/stream/gap.h"
#include "daemon/stream/outbox.h"

struct OutboxEntry {
        OutboxEntry *previous, *next;
        Packet *packet; /* NULL: a gap */
        Gap gap;
        size_t gap_bytes; /* that are charged for it */
};

/* It has overflowed, and ends for that: no item comes behind what is missing. */
static inline bool outbox_is_over(const Outbox *o) {
        return o->overflow == OVERFLOW_DISCONNECT && outbox_dropped(o) > 0;
}

/* A packet comes into the queue, or leaves it. */
void outbox_charge(Outbox *o, const Packet *p, bool comes);
/* A gap has grown, or become a packet: it takes so much now. */
void outbox_charge_gap(Outbox *o, OutboxEntry *e, size_t bytes);
/* `oldest` was sent, dropped or begun: the next one is behind it, if there is one. */
void outbox_pass_oldest(Outbox *o);
void outbox_remove(Outbox *o, OutboxEntry *e);
