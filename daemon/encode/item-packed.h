/*
 * For readers: items of which only values differ, of events without texts whose numbers lie behind one another in words
 * of 8 bytes, as arguments of system calls do: the head, stored over, and one copy.
 */
#pragma once

#include "daemon/base/copy.h"
#include "daemon/encode/item-simple.h"

/* Zeros are left out of the wire. */
static inline bool item_is_packed(const EncodePlan *p, const Record *r) {
        return p->is_packed && r->pid != 0 && r->tid != 0 && r->time != 0;
}

/* One that is packed, with the plan's min_size, to where its room is known to be; where the item ends. */
static inline uint8_t *item_put_packed(const EncodePlan *p, const Record *r, uint8_t *to) {
        const ItemHead *h = &p->heads[r->cpu == 0 ? HEAD_WITHOUT_CPU : 0];
        uint64_t time = htole64(r->time);
        uint32_t cpu = htole32(r->cpu), pid = htole32(r->pid), tid = htole32(r->tid);
        size_t size = p->runs->n * sizeof(uint64_t);

        memcpy(to, h->bytes, sizeof(h->bytes));
        memcpy(to + h->time, &time, sizeof(time));
        if (r->cpu != 0)
                memcpy(to + h->cpu, &cpu, sizeof(cpu));
        memcpy(to + h->pid, &pid, sizeof(pid));
        memcpy(to + h->tid, &tid, sizeof(tid));
        copy_short(to + h->size, r->raw + p->runs->offset, size);
        return to + h->size + size;
}
