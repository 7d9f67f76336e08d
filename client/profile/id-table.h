/*
 * For what is found again by its content: a hash table of ids, which leaves the content and its comparison to whoever has it. Any
 * thread, one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ID_NONE UINT32_MAX

typedef struct IdSlot {
        uint32_t hash;
        uint32_t id; /* ID_NONE: free */
} IdSlot;

typedef struct IdTable {
        IdSlot *slots; /* n_slots, a power of two, at most half of them taken */
        size_t n_slots, n;
} IdTable;

#define ID_TABLE_NULL ((IdTable){ .slots = NULL })

void id_table_deinit(IdTable *t);
/* 0 or -ENOMEM, and then the table is as it was. */
int id_table_add(IdTable *t, uint32_t hash, uint32_t id);

/* Hash of n bytes. Names are chosen by whoever is traced, so that the seed has to be one that nobody can guess. */
uint32_t id_hash(uint64_t seed, const void *bytes, size_t n);

/* The next id with this hash; *at is the hash when the search begins. Whoever asks compares the content. */
static inline bool id_table_next(const IdTable *t, uint32_t hash, size_t *at, uint32_t *ret_id) {
        while (t->n_slots > 0) {
                const IdSlot *slot = &t->slots[(*at)++ & (t->n_slots - 1)];

                if (slot->id == ID_NONE)
                        return false;
                if (slot->hash == hash) {
                        *ret_id = slot->id;
                        return true;
                }
        }
        return false;
}
