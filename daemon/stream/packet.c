/*
 * Packets. What is in the bytes is shared by all who hold a packet. Only those that have to wait cost memory of their
 * size: one that everybody got at once was lent, or its room is used again, so that a stream that flows needs neither
 * the allocator nor pages that the kernel would have to clear.
 */
#include "daemon/stream/packet.h"

#include <errno.h>

Packet *packet_new(size_t capacity) {
        Packet *p = malloc(sizeof(*p));
        uint8_t *room = malloc(capacity ? capacity : 1);

        assert(capacity <= PACKET_MAX);
        if (!p || !room) {
                free(p);
                free(room);
                return NULL;
        }
        *p = (Packet){ .n_refs = 1, .capacity = capacity, .bytes = room, .room = room };
        return p;
}

Packet *packet_new_lent(const uint8_t *items, size_t length, size_t n_items) {
        Packet *p = malloc(sizeof(*p));

        assert(length <= PACKET_MAX);
        if (p)
                *p = (Packet){ .n_refs = 1, .sealed = true, .is_lent = true, .capacity = length, .length = length,
                               .n_items = n_items, .bytes = items };
        return p;
}

Packet *packet_ref(Packet *p) {
        if (p)
                p->n_refs++;
        return p;
}

Packet *packet_unref(Packet *p) {
        PacketPool *pool;

        if (!p || --p->n_refs > 0)
                return NULL;
        pool = p->pool;
        if (pool && pool->n < PACKET_SPARES && p->capacity == PACKET_SIZE) {
                *p = (Packet){ .capacity = p->capacity, .bytes = p->room, .room = p->room, .pool = pool };
                pool->spares[pool->n++] = p;
                return NULL;
        }
        free(p->room);
        free(p);
        return NULL;
}

bool packet_append_field(Packet *p, const uint8_t *fields, size_t length) {
        assert(!p->sealed);
        if (length > p->capacity - p->length)
                return false;
        if (length > 0)
                memcpy(p->room + p->length, fields, length);
        p->length += length;
        p->keep = true;
        return true;
}

static int packet_copy_lent(Packet *p, PacketPool *pool) {
        Packet *own = p->length <= PACKET_SIZE ? packet_pool_take(pool) : packet_new(p->length);

        if (!own)
                return -ENOMEM;
        memcpy(own->room, p->bytes, p->length);
        p->is_lent = false;
        p->capacity = own->capacity;
        p->bytes = p->room = own->room;
        p->pool = own->pool;
        free(own);
        return 0;
}

int packet_settle(Packet *p, PacketPool *pool) {
        int r = p->is_lent ? packet_copy_lent(p, pool) : 0;
        uint8_t *smaller;

        assert(p->sealed);
        if (r < 0 || p->capacity - p->length < p->capacity / 8)
                return r;
        smaller = realloc(p->room, p->length ? p->length : 1);
        if (!smaller)
                return 0; /* it stays as large as it is */
        p->bytes = p->room = smaller;
        p->capacity = p->length;
        return 0;
}

Packet *packet_pool_take(PacketPool *pool) {
        Packet *p = pool->n > 0 ? pool->spares[--pool->n] : packet_new(PACKET_SIZE);

        if (p) {
                p->n_refs = 1;
                p->pool = pool;
        }
        return p;
}

void packet_pool_deinit(PacketPool *pool) {
        while (pool->n > 0) {
                Packet *p = pool->spares[--pool->n];

                free(p->room);
                free(p);
        }
}
