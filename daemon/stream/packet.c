/*
 * Packets. One that everybody got at once was lent, or its room is used again, so that a stream that flows needs no pages
 * that the kernel would have to clear. One that has to wait moves to memory of its own size: a quiet stream makes many
 * packets of few items, a stopped subscriber may hold thousands of these, and rooms that are cut off behind them would
 * leave holes into which no other room fits.
 */
#include "daemon/stream/packet.h"

#include <errno.h>

#include "daemon/base/error-trail.h"

static uint8_t *pool_take(PacketPool *pool) {
        if (++pool->n_taken > pool->max && pool->max < PACKET_SPARES) /* trimmed in a cycle it may be far behind */
                pool->max = pool->n_taken < PACKET_SPARES ? pool->n_taken : PACKET_SPARES;
        return pool->n > 0 ? pool->rooms[--pool->n] : malloc(PACKET_SIZE);
}

static void pool_give(PacketPool *pool, uint8_t *room) {
        if (pool && pool->n < pool->max)
                pool->rooms[pool->n++] = room;
        else
                free(room);
}

static void pool_limit(PacketPool *pool, size_t max) {
        pool->max = max;
        while (pool->n > max)
                free(pool->rooms[--pool->n]);
}

void packet_pool_end_cycle(PacketPool *pool) {
        if (pool->n_taken > pool->most_taken)
                pool->most_taken = pool->n_taken;
        pool->n_taken = 0;
        if (++pool->n_turns < PACKET_CYCLES)
                return;
        pool_limit(pool, pool->most_taken < PACKET_SPARES ? pool->most_taken : PACKET_SPARES);
        pool->most_taken = 0;
        pool->n_turns = 0;
}

void packet_pool_trim(PacketPool *pool) {
        pool_limit(pool, 0);
        pool->most_taken = 0;
}

/* Takes the room. */
static Packet *packet_of_room(uint8_t *room, size_t capacity, PacketPool *pool) {
        Packet *p = room ? malloc(sizeof(*p)) : NULL;

        if (p)
                *p = (Packet){ .n_refs = 1, .capacity = capacity, .bytes = room, .room = room, .pool = pool };
        else
                free(room);
        return p;
}

Packet *packet_new(size_t capacity) {
        assert(capacity <= PACKET_MAX);
        return packet_of_room(malloc(capacity ? capacity : 1), capacity, NULL);
}

Packet *packet_new_pooled(PacketPool *pool) {
        return packet_of_room(pool_take(pool), PACKET_SIZE, pool);
}

Packet *packet_new_borrowed(const uint8_t *items, size_t length, size_t n_items) {
        Packet *p = malloc(sizeof(*p));

        assert(length <= PACKET_MAX);
        if (p)
                *p = (Packet){ .n_refs = 1, .sealed = true, .capacity = length, .length = length, .n_items = n_items,
                               .bytes = items };
        return p;
}

Packet *packet_new_reserved(uint8_t *room, size_t capacity) {
        Packet *p = malloc(sizeof(*p));

        if (p)
                *p = (Packet){ .n_refs = 1, .capacity = capacity, .bytes = room, .room = room, .is_reserved = true };
        return p;
}

Packet *packet_new_buffered(BufferPool *buffers) {
        unsigned buffer;
        uint8_t *room = buffer_pool_take(buffers, &buffer);
        Packet *p = room ? malloc(sizeof(*p)) : NULL;

        if (p)
                *p = (Packet){ .n_refs = 1, .capacity = POOL_BUFFER, .bytes = room, .room = room,
                               .buffers = buffer_pool_ref(buffers), .buffer = buffer };
        else if (room)
                buffer_pool_leave(buffers, buffer);
        return p;
}

Packet *packet_ref(Packet *p) {
        if (p)
                p->n_refs++;
        return p;
}

/* Its room is that of others again. */
static void packet_leave_room(Packet *p) {
        if (p->buffers) {
                buffer_pool_leave(p->buffers, p->buffer);
                p->buffers = buffer_pool_unref(p->buffers);
        } else if (p->room && !p->is_reserved)
                pool_give(p->pool, p->room);
}

Packet *packet_unref(Packet *p) {
        if (!p || --p->n_refs > 0)
                return NULL;
        packet_leave_room(p);
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

int packet_settle(Packet *p, PacketPool *pool) {
        bool fills = p->length <= PACKET_SIZE && p->length >= PACKET_SIZE - PACKET_SIZE / 8; /* a room of the pool, nearly */
        uint8_t *room;

        assert(p->sealed && !p->is_reserved);
        if (p->room && !p->buffers && (!p->pool || fills))
                return 0;
        room = fills ? pool_take(pool) : malloc(p->length ? p->length : 1);
        if (!room)
                return p->room ? 0 : error_origin(-ENOMEM);
        copy_long(room, p->bytes, p->length);
        packet_leave_room(p);
        p->capacity = fills ? PACKET_SIZE : p->length;
        p->pool = fills ? pool : NULL;
        p->bytes = p->room = room;
        return 0;
}

int packet_of_fields(const uint8_t *bytes, size_t n, Packet **ret) {
        Packet *p = packet_new(n);

        if (!p)
                return error_origin(-ENOMEM);
        packet_append_field(p, bytes, n);
        packet_seal(p);
        *ret = p;
        return 0;
}
