/*
 * Packets that are never copied: while a channel has one subscriber, who shares memory with us and has read so far that
 * nothing waits for it, items are written where it reads them. It sees them when the packet is sent. Nothing may leave for it
 * meanwhile: whatever is to come before an item is told after what is in the packet already has left.
 */
#include "daemon/dispatcher.h"

Packet *channel_place(const Channel *c, size_t least) {
        const Subscriber *s = c->subscribers;
        uint8_t *room;
        size_t n;

        if (!s || s->next || !s->ring || s->held || s->ended || c->tasks)
                return NULL;
        room = outbox_place(&s->outbox, s->ring, least, &n);
        return room ? packet_new_placed(room, n < PACKET_SIZE ? n : PACKET_SIZE) : NULL;
}

int channel_send_placed(Dispatcher *d, Channel *c, Packet *p) {
        Subscriber *s = c->subscribers;

        packet_seal(p);
        shared_ring_expect(s->ring, &d->tick_told);
        outbox_send_placed(&s->outbox, s->ring, p);
        packet_unref(p);
        return subscriber_send(d, s);
}
