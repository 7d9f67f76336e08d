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

/* Both halves of a product of 128 bits: each bit of both factors reaches all of the result. */
static inline uint64_t id_mix(uint64_t hash, uint64_t seed) {
        const __uint128_t product = (__uint128_t)hash * ((seed >> 1) ^ UINT64_C(0x9e3779b97f4a7c15));

        return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The same of numbers, which takes no call; another one than that of their bytes. */
static inline uint32_t id_hash_words(uint64_t seed, const uint64_t *words, size_t n) {
        uint64_t hash = seed;

        for (size_t i = 0; i < n; i++)
                hash = id_mix(hash ^ words[i], seed);
        return (uint32_t)(hash >> 32);
}

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
