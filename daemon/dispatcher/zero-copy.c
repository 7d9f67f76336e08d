/*
 * Packets that are not copied. While a channel has a single subscriber, which shares memory with perfd and has read everything
 * that was sent, items are written directly into that memory. They become visible when the packet is sent. Nothing else may be
 * sent to the subscriber meanwhile: anything that has to precede an item is sent after the open packet.
 *
 * Several subscribers with equal subscriptions share a pool of buffers (stream/buffer-pool.h). Items are written into one of
 * these, and each subscriber is told where. A subscriber that holds too many buffers gets a copy; the others use the buffers that
 * it does not hold. Where the subscribers of a channel have several pools, because their rights may come to differ, items are
 * written into that which most of them have.
 */
#include "daemon/dispatcher/cycle.h"

static BufferPool *subscriber_pool(const Subscriber *s) {
        return s->ring && !s->ended ? s->ring->pool : NULL;
}

void channel_choose_pool(Channel *c) {
        c->pool = NULL;
        for (const Subscriber *s = c->subscribers; s; s = s->next)
                if (subscriber_pool(s))
                        s->ring->pool->n_sharers = 0;
        for (const Subscriber *s = c->subscribers; s; s = s->next) {
                BufferPool *pool = subscriber_pool(s);

                if (pool && ++pool->n_sharers >= 2 && (!c->pool || pool->n_sharers > c->pool->n_sharers))
                        c->pool = pool;
        }
}

/* NULL: fewer than two subscribers get items there. */
static BufferPool *channel_pool(const Channel *c) {
        unsigned n = 0;

        for (const Subscriber *s = c->pool ? c->subscribers : NULL; s; s = s->next)
                if (subscriber_pool(s) == c->pool && subscriber_gets(s, *c->side) && ++n == 2)
                        return c->pool;
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

        if (!s->ring || s->is_corked || s->ended)
                return 0;
        shared_ring_expect(s->ring, &d->tick_told);
        if (!outbox_send_ref(&s->outbox, s->ring, p))
                return 0;
        r = subscriber_send(d, s);
        return r < 0 ? r : 1;
}

/* The only subscriber that still gets items; NULL: there is none, or there are several. */
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

        if (!s || !s->ring || s->is_corked || c->tasks)
                return NULL;
        room = outbox_reserve(&s->outbox, s->ring, least, &n);
        return room ? packet_new_reserved(room, n < PACKET_SIZE ? n : PACKET_SIZE) : NULL;
}

int channel_send_reserved(Dispatcher *d, Channel *c, Packet *p) {
        /* the same as when the packet was reserved, because subscribers come and go only after a flush */
        Subscriber *s = channel_only(c);

        packet_seal(p);
        shared_ring_expect(s->ring, &d->tick_told);
        outbox_send_reserved(&s->outbox, s->ring, p);
        packet_unref(p);
        return subscriber_send(d, s);
}
