/*
 * Open addressing, at most half full: one cache miss finds most ids. Slots keep the hash, so that the table grows without its content,
 * and the content is looked at for hardly any but the one that is sought.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/profile/id-table.h"

#define FIRST_SLOTS ((size_t)64)

void id_table_deinit(IdTable *t) {
        free(t->slots);
        *t = ID_TABLE_NULL;
}

static void put(IdTable *t, uint32_t hash, uint32_t id) {
        size_t at = hash;

        while (t->slots[at & (t->n_slots - 1)].id != ID_NONE)
                at++;
        t->slots[at & (t->n_slots - 1)] = (IdSlot){ .hash = hash, .id = id };
}

static int grow(IdTable *t) {
        IdTable grown = { .n_slots = t->n_slots > 0 ? 2 * t->n_slots : FIRST_SLOTS, .n = t->n };

        grown.slots = reallocarray(NULL, grown.n_slots, sizeof(*grown.slots));
        if (!grown.slots)
                return -ENOMEM;
        memset(grown.slots, 0xff, grown.n_slots * sizeof(*grown.slots));
        for (size_t i = 0; i < t->n_slots; i++)
                if (t->slots[i].id != ID_NONE)
                        put(&grown, t->slots[i].hash, t->slots[i].id);
        free(t->slots);
        *t = grown;
        return 0;
}

int id_table_add(IdTable *t, uint32_t hash, uint32_t id) {
        int r = 2 * (t->n + 1) > t->n_slots ? grow(t) : 0;

        if (r < 0)
                return r;
        put(t, hash, id);
        t->n++;
        return 0;
}

uint32_t id_hash(uint64_t seed, const void *bytes, size_t n) {
        const char *at = bytes;
        uint64_t hash = seed ^ n, word;

        for (; n >= sizeof(word); at += sizeof(word), n -= sizeof(word)) {
                memcpy(&word, at, sizeof(word));
                hash = id_mix(hash ^ word, seed);
        }
        word = 0;
        if (n > 0) /* of a stack without frames there is nothing, at NULL */
                memcpy(&word, at, n);
        hash = id_mix(hash ^ word, seed);
        return (uint32_t)(hash >> 32);
}
