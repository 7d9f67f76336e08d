/*
 * For this folder alone: a record as it is kept until its turn comes, in memory and in a temporary file, and memory for them.
 *
 *      Stored | bytes of the record behind its header | up to 7 bytes, so that the next one begins at a multiple of 8
 */
#pragma once

#include "client/recording/reading.h"

typedef struct Stored {
        uint64_t time;             /* ns; STORED_NO_TIME: it has none */
        uint64_t offset;           /* of the recording */
        uint64_t sequence : 46;    /* its number in the order of the recording */
        uint64_t is_sorted : 1;    /* by its time; else it keeps its place */
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

static inline perfd_recorded stored_shown(const Stored *s) {
        return (perfd_recorded){ .type = s->type, .misc = s->misc, .is_compressed = s->is_compressed, .offset = s->offset, .bytes = s + 1,
                                 .size = s->size };
}

/* A record, by what it is sorted by. */
typedef struct Entry {
        uint64_t time;
        uint64_t at;               /* of its Stored in Memory, or with IN_PLACE of the recording, where it is in Source.held */
} Entry;

#define IN_PLACE (UINT64_C(1) << 63)

/*
 * skim.c: of the samples that come next and are here, up to n, steps over them, and says when and where they are. Fewer, or none: what follows
 * is another record, is not here as a whole, or has no time. They are in place.
 */
size_t recording_skim(perfd_recording *r, Entry *to, size_t n);

/* What was kept. */
typedef struct Kept {
        Stored head;
        const void *bytes;
} Kept;

/* Those that wait, sorted ones and the rest apart: copies of records, and places of others. Null image: {}. */
typedef struct Memory {
        uint8_t *bytes;
        size_t size, n;            /* bytes: there are, and are used */
        size_t n_given;            /* bytes of them that nobody needs any more */
        Entry *entries, *rest, *scratch; /* as many as there can be records, of scratch twice: pages that are not touched take no memory */
        size_t room;               /* of `entries`, and of `rest` */
        size_t sorted_at, n_sorted, rest_at, n_rest; /* [at, n) are to be given */
        bool is_in_order;          /* entries[sorted_at, n_sorted) */
} Memory;

/* size: bytes, of everything. 0; -ENOMEM */
int memory_init(Memory *m, size_t size);
/* For so many entries of what is elsewhere. 0; -ENOMEM */
int memory_init_entries(Memory *m, size_t n);
/* One of them, behind all others. */
void memory_note(Memory *m, uint64_t time, uint64_t at, bool is_sorted);
/* As recording_skim(), behind all others, among those that are sorted or the rest. How many there were. */
size_t memory_skim(perfd_recording *r, Memory *m, bool is_sorted);
/* Those that are sorted by time; memory_first_sorted() does it, too. */
void memory_sort(Memory *m);
/* Idempotent. */
void memory_deinit(Memory *m);
/* Whether one more fits, however large. */
static inline bool memory_has_room(const Memory *m) {
        return m->size - m->n >= STORED_MAX && m->n_sorted < m->room && m->n_rest < m->room;
}
/* Adds a copy, for which there is room. */
void memory_add(Memory *m, const Stored *head, const void *bytes);
/* Entries of what was given make room for others. False: there were too few of them to be worth it. */
bool memory_drop_given(Memory *m);
/* Removes copies of what was given, so that there is room for others; the rest moves. */
void memory_compact(Memory *m);
/* All that is in place becomes a copy. False: there is no room for that, and nothing has changed. */
bool memory_copy_places(perfd_recording *r, Memory *m);
/* Removes all. */
void memory_clear(Memory *m);
/* The first by time; of the rest the first of the recording. NULL: there is none. */
const Entry *memory_first_sorted(Memory *m);
static inline const Entry *memory_first_rest(const Memory *m) {
        return m->rest_at < m->n_rest ? &m->rest[m->rest_at] : NULL;
}
static inline uint64_t memory_sequence(const Memory *m, const Entry *e) {
        return (e->at & IN_PLACE) != 0 ? e->at & ~IN_PLACE : ((const Stored *)(const void *)(m->bytes + e->at))->sequence;
}
/* Stays until it is compacted, cleared or made a copy. */
Kept memory_get(const perfd_recording *r, const Memory *m, const Entry *e);
/* r->shown is that record. */
void memory_show(perfd_recording *r, const Memory *m, const Entry *e);
/* That one of the sorted ones, if it is one in place, comes into the caches: rings of other CPUs lie far apart. */
static inline void memory_fetch(const perfd_recording *r, const Memory *m, size_t i) {
        const Source *s = &r->source;

        if (i < m->n_sorted && (m->entries[i].at & IN_PLACE) != 0)
                for (size_t line = 0; line < 3; line++)
                        __builtin_prefetch(s->held + ((m->entries[i].at & ~IN_PLACE) - s->held_at) + 64 * line);
}
/* The first one was given. */
void memory_give_sorted(Memory *m);
void memory_give_rest(Memory *m);
