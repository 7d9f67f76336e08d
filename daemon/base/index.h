/*
 * A hash index: finds values by a number or a name in constant time. It stores pointers that the caller owns, under a key. Several
 * values can have the same key, so the caller compares them. One thread at a time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct IndexSlot {
        uint64_t key;
        void *value; /* NULL: empty */
} IndexSlot;

typedef struct Index {
        IndexSlot *slots;
        size_t n, n_slots; /* n_slots: a power of two, at most half of them used, or 0 */
} Index;

#define INDEX_NULL ((Index){ .slots = NULL })

void index_deinit(Index *i);
/* Seeded, because names come from clients: nobody outside this process can predict which names collide. */
uint64_t index_key_of_name(const char *name);
static inline uint64_t index_key_of_number(uint64_t number) {
        return number;
}
/* Reserves room for n_more values, so that index_add() cannot fail. -ENOMEM */
int index_reserve(Index *i, size_t n_more);
/* There must be room: index_reserve(). */
void index_add(Index *i, uint64_t key, void *value);
/* The value must be in the index. */
void index_remove(Index *i, uint64_t key, const void *value);
/* The next value with this key; *at is 0 before the first call. NULL: there are no more. The index must not change meanwhile. */
void *index_next(const Index *i, uint64_t key, size_t *at);
