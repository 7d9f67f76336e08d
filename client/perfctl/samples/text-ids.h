/*
 * For report: names as numbers, so that rows are compared by numbers, and so are those of two recordings, which share one table. Each text
 * is kept once. One thread.
 */
#pragma once

#include <string.h>

#include "client/perfd.h"
#include "client/profile/id-table.h"

typedef struct TextIds {
        char *bytes; /* of all texts, one behind the other */
        size_t n_bytes, room;
        size_t *begins; /* of each in `bytes`; of the one that comes next, too */
        bool *numbers;  /* whether it is a number in decimal, for JSON */
        uint32_t n, n_room;
        uint32_t last; /* asked for */
        uint64_t seed;
        IdTable ids;
} TextIds;

void text_ids_init(TextIds *t);
void text_ids_deinit(TextIds *t);
/* The same for the same. */
uint32_t text_ids_add(TextIds *t, perfd_text text, bool is_number);
/* Until another one is added. */
perfd_text text_ids_get(const TextIds *t, uint32_t id);
/* Without adding it. */
static inline bool text_ids_is(const TextIds *t, uint32_t id, perfd_text text) {
        return t->begins[id + 1] - t->begins[id] == text.length && memcmp(t->bytes + t->begins[id], text.bytes, text.length) == 0;
}
