/*
 * Packets. Their memory is cut to what was used when they are sealed: a quiet stream makes many packets of few items,
 * and a stopped subscriber may hold thousands of these.
 */
#include "daemon/stream/packet.h"

Packet *packet_new(size_t capacity) {
        _cleanup_(packet_unrefp) Packet *p = calloc(1, sizeof(*p));

        assert(capacity <= PACKET_MAX);
        if (!p)
                return NULL;
        *p = (Packet){
                .n_refs = 1, .capacity = capacity, .max_items = capacity / PACKET_BYTES_PER_ITEM + 1, .from = UINT64_MAX
        };
        p->bytes = malloc(capacity ? capacity : 1);
        p->events = malloc(p->max_items * sizeof(*p->events));
        if (!p->bytes || !p->events)
                return NULL;
        return TAKE_PTR(p);
}

Packet *packet_ref(Packet *p) {
        if (p)
                p->n_refs++;
        return p;
}

Packet *packet_unref(Packet *p) {
        if (!p || --p->n_refs > 0)
                return NULL;
        free(p->bytes);
        free(p->events);
        free(p);
        return NULL;
}

bool packet_append_field(Packet *p, const uint8_t *fields, size_t length) {
        assert(!p->sealed);
        if (length > p->capacity - p->length)
                return false;
        if (length > 0)
                memcpy(p->bytes + p->length, fields, length);
        p->length += length;
        p->keep = true;
        return true;
}

/* A smaller block, or the same if that is not to be had. */
static void *shrink(void *block, size_t size) {
        void *smaller = realloc(block, size ? size : 1);

        return smaller ? smaller : block;
}

void packet_seal(Packet *p) {
        p->sealed = true;
        if (p->capacity - p->length < p->capacity / 8)
                return;
        p->capacity = p->length;
        p->max_items = p->n_items;
        p->bytes = shrink(p->bytes, p->length);
        p->events = shrink(p->events, p->n_items * sizeof(*p->events));
}
