/*
 * Packets that are never copied. While a channel has one subscriber, who shares memory with us and has read so far that
 * nothing waits for it, items are written where it reads them. It sees them when the packet is sent. Nothing may leave for it
 * meanwhile: whatever is to come before an item is told after what is in the packet already has left.
 *
 * Several subscribers have a pool of buffers in common (stream/buffer-pool.h): items are written into one of these, and each
 * subscriber is told where. Who is too far behind for that gets a copy; the others have what buffers he does not hold.
 */
#include "daemon/dispatcher/cycle.h"

/* That of two of its subscribers, or more. */
static BufferPool *channel_pool(const Channel *c) {
        BufferPool *pool = NULL;

        for (const Subscriber *s = c->subscribers; s; s = s->next) {
                if (!s->ring || !s->ring->pool || !subscriber_gets(s, *c->side))
                        continue;
                if (pool == s->ring->pool)
                        return pool;
                pool = s->ring->pool;
        }
        return NULL;
}

Packet *channel_new_buffered(const Dispatcher *d, const Channel *c) {
        BufferPool *pool = d->is_closing_all ? NULL : channel_pool(c);

        if (!pool)
                return NULL;
        for (const Subscriber *s = c->subscribers; s && pool->n_free == 0; s = s->next)
                if (s->ring)
                        (void)shared_ring_reclaim(s->ring);
        return packet_new_buffered(pool);
}

int subscriber_send_ref(Dispatcher *d, Subscriber *s, const Packet *p) {
        int r;

        if (!s->ring || s->held || s->ended)
                return 0;
        shared_ring_expect(s->ring, &d->tick_told);
        if (!outbox_send_ref(&s->outbox, s->ring, p))
                return 0;
        r = subscriber_send(d, s);
        return r < 0 ? r : 1;
}

/* The one that still gets something; NULL: there is none, or there are several. */
static Subscriber *channel_only(const Channel *c) {
        Subscriber *only = NULL;

        for (Subscriber *s = c->subscribers; s; s = s->next) {
                if (!subscriber_gets(s, *c->side))
                        continue;
                if (only)
                        return NULL;
                only = s;
        }
        return only;
}

Packet *channel_reserve(const Channel *c, size_t least) {
        const Subscriber *s = channel_only(c);
        uint8_t *room;
        size_t n;

        if (!s || !s->ring || s->held || c->tasks)
                return NULL;
        room = outbox_reserve(&s->outbox, s->ring, least, &n);
        return room ? packet_new_reserved(room, n < PACKET_SIZE ? n : PACKET_SIZE) : NULL;
}

int channel_send_reserved(Dispatcher *d, Channel *c, Packet *p) {
        Subscriber *s = channel_only(c); /* as when it was placed: others come and end behind a flush */

        packet_seal(p);
        shared_ring_expect(s->ring, &d->tick_told);
        outbox_send_reserved(&s->outbox, s->ring, p);
        packet_unref(p);
        return subscriber_send(d, s);
}
