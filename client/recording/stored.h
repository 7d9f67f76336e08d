/*
 * For this folder alone: a record as it is kept until its turn comes, in memory and in a temporary file, and memory for them.
 *
 *      Stored | bytes of the record behind its header | up to 7 bytes, so that the next one begins at a multiple of 8
 */
#pragma once

#include "client/recording/recording.h"

typedef struct Stored {
        uint64_t time;             /* ns; STORED_NO_TIME: it has none */
        uint64_t offset;           /* of the recording */
        uint64_t sequence : 45;    /* its number in the order of the recording */
        uint64_t is_sorted : 1;    /* by its time; else it keeps its place */
        uint64_t was_given : 1;
        uint64_t is_compressed : 1;
        uint64_t misc : 16;
        uint32_t type;
        uint32_t size;             /* bytes behind it */
} Stored;
_Static_assert(sizeof(Stored) == 32, "a multiple of 8 bytes, and no padding, which a file would get");

#define STORED_NO_TIME UINT64_MAX
#define STORED_MAX ((sizeof(Stored) + RECORD_MAX + 2 * PERF_DATA_RECORD_HEADER + 7) & ~(size_t)7) /* bytes of the largest one */

static inline size_t stored_size(const Stored *s) {
        return (sizeof(*s) + s->size + 7) & ~(size_t)7;
}

/* By time; records of the same time keep the order of the recording. */
static inline bool stored_is_before(const Stored *a, const Stored *b) {
        return a->time != b->time ? a->time < b->time : a->sequence < b->sequence;
}

/* A record in memory, by what it is sorted by. */
typedef struct Entry {
        uint64_t time;
        uint64_t at;               /* of its Stored, or in Source.held; those behind have a higher one */
} Entry;

/* Those in memory, sorted ones and the rest apart. Null image: {}. */
typedef struct Memory {
        uint8_t *bytes;
        size_t size, n;            /* bytes: there are, and are used */
        size_t n_given;            /* bytes of them that nobody needs any more */
        Entry *entries, *rest, *scratch; /* as many as there can be records: pages that are not touched take no memory */
        size_t sorted_at, n_sorted, rest_at, n_rest; /* [at, n) are to be given */
        bool is_in_order;          /* entries[sorted_at, n_sorted) */
} Memory;

/* size: bytes, of everything. 0; -ENOMEM */
int memory_init(Memory *m, size_t size);
/* For so many entries of what is elsewhere. 0; -ENOMEM */
int memory_init_entries(Memory *m, size_t n);
/* One of them, behind all others. */
void memory_note(Memory *m, uint64_t time, uint64_t at, bool is_sorted);
/* Those that are sorted by time; memory_first_sorted() does it, too. */
void memory_sort(Memory *m);
/* Idempotent. */
void memory_deinit(Memory *m);
/* Whether one more fits, however large. */
static inline bool memory_has_room(const Memory *m) {
        return m->size - m->n >= STORED_MAX;
}
/* Adds a copy, for which there is room. */
void memory_add(Memory *m, const Stored *head, const void *bytes);
/* Removes those that were given, so that there is room for others; the rest moves. */
void memory_compact(Memory *m);
/* Removes all. */
void memory_clear(Memory *m);
/* The first by time; of the rest the first of the recording. NULL: there is none. */
Stored *memory_first_sorted(Memory *m);
Stored *memory_first_rest(const Memory *m);
/* That one was given. It stays where it is until the next memory_compact() or memory_clear(). */
void memory_give_sorted(Memory *m);
void memory_give_rest(Memory *m);
