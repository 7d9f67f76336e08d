/*
 * An index: finds values by a number or a name in constant time, however many there are. It holds pointers that stay the
 * caller's, under a key that the caller compares: several values may be found under one. One thread at a time.
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
        size_t n, n_slots; /* slots: a power of two, of which a half is used at most, or 0 */
} Index;

#define INDEX_NULL ((Index){ .slots = NULL })

void index_deinit(Index *i);
/* Names come from clients: which of them have equal keys nobody outside this process can know. */
uint64_t index_key_of_name(const char *name);
static inline uint64_t index_key_of_number(uint64_t number) {
        return number;
}
/* Room for so many more, so that adding them cannot fail. -ENOMEM */
int index_reserve(Index *i, size_t n_more);
/* There is room for it. */
void index_add(Index *i, uint64_t key, void *value);
/* It is there. */
void index_remove(Index *i, uint64_t key, const void *value);
/* The next value under a key; *at is 0 before the first one. NULL: there is no other. Nothing may change in between. */
void *index_next(const Index *i, uint64_t key, size_t *at);
