/*
 * What travels from a reader to the dispatcher and back for reuse: an arena of encoded items, and for each an index
 * entry by which it can be selected and ordered without looking at its bytes. Owned by one thread at a time.
 *
 *     entries  | time mask event offset length tid | ...     capacity BATCH_ENTRIES
 *     arena    | field `items` of perfd.v1.Packet, complete with tag and length | ...     BATCH_ARENA bytes
 *
 * Between them, in the same order of time, lie notes for the dispatcher itself (task-note.h): entries of BATCH_NOTE that
 * no subscription wants.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"

#define BATCH_ARENA ((size_t)64 * 1024)
#define BATCH_ENTRIES ((size_t)1536)
#define BATCH_BITS 64 /* subscriptions that can be told apart: bits of BatchEntry.mask */
#define BATCH_NOTE UINT32_MAX /* as BatchEntry.event: a note, whose mask is 0 */

typedef struct BatchEntry {
        nsec_t time;
        uint64_t mask; /* a bit for each subscription that it matched */
        uint32_t event;
        uint32_t offset, length; /* in the arena */
        uint32_t tid; /* who did it: whom the stream has to describe before */
} BatchEntry;

typedef struct Batch {
        /* written by the reader */
        uint32_t slot;       /* of its CPU */
        uint64_t generation; /* of the snapshot that the masks belong to */
        nsec_t watermark;    /* nothing older will come from this CPU; 0: says nothing */
        nsec_t due;          /* CLOCK_MONOTONIC: the tick at which its reader would have come; 0: it was asked; UINT64_MAX: no tick */
        bool sorted;         /* entries are in the order of their time */
        size_t n_entries, used;
        size_t n_notes;      /* of the entries */
        uint64_t mask;                /* of all entries that are counted */
        uint32_t matched[BATCH_BITS]; /* of these, who have the bit; valid where `mask` has it */
        uint64_t run_mask;            /* entries that are not counted yet have this mask, */
        uint32_t run;                 /* and are so many */

        /* written by the dispatcher */
        size_t next; /* first entry that is not yet released by the merge */
        size_t place;         /* in Merge.batches */
        struct Batch *behind; /* in the merge: the next one of its CPU, or NULL */

        BatchEntry *entries;
        uint8_t *arena;
} Batch;

/* NULL: no memory. The arena costs no memory before it is written. */
Batch *batch_new(uint32_t slot);
Batch *batch_free(Batch *b);
DEFINE_CLEANUP(Batch *, batch_free)

/* Empty again, for the reader. */
void batch_reset(Batch *b, uint64_t generation);
/* Counts those that are not. */
void batch_count_run(Batch *b);
/* Ready for its way: `mask` and `matched` are of all entries, and these in the order of time; equal times stay in theirs. */
void batch_seal(Batch *b);
/* Back to what it was when it had so many entries and used so many bytes. */
void batch_take_back(Batch *b, size_t n_entries, size_t used);
/* The last n entries of a sealed batch, to another one that has room for them. */
void batch_move_last(Batch *b, size_t n, Batch *to);

static inline bool batch_has_entry_room(const Batch *b) {
        return b->n_entries < BATCH_ENTRIES;
}

static inline uint8_t *batch_room(const Batch *b, size_t *ret_room) {
        *ret_room = BATCH_ARENA - b->used;
        return b->arena + b->used;
}

/* n entries have, or will have, this mask. */
static inline void batch_count(Batch *b, uint64_t mask, size_t n) {
        if (mask != b->run_mask) {
                batch_count_run(b);
                b->run_mask = mask;
        }
        b->run += (uint32_t)n;
}

/* Makes what was written at batch_room() an entry, which is no note, and is still to be counted. */
static inline void batch_append_uncounted(Batch *b, nsec_t time, uint64_t mask, uint32_t event, uint32_t tid, size_t length) {
        BatchEntry *e = &b->entries[b->n_entries];

        if (b->n_entries > 0 && time < e[-1].time)
                b->sorted = false;
        *e = (BatchEntry){ .time = time, .mask = mask, .event = event, .offset = (uint32_t)b->used,
                           .length = (uint32_t)length, .tid = tid };
        b->n_entries++;
        b->used += length;
}

/* Makes what was written at batch_room() an entry. */
static inline void batch_append(Batch *b, nsec_t time, uint64_t mask, uint32_t event, uint32_t tid, size_t length) {
        batch_append_uncounted(b, time, mask, event, tid, length);
        b->n_notes += event == BATCH_NOTE;
        batch_count(b, mask, 1);
}

/*
 * Entries that were written behind the last one all have this mask, and none is a note: makes them part of the batch, which
 * is used up to `used` now. sorted: they and the one before them are in the order of time.
 */
static inline void batch_extend(Batch *b, size_t n, uint64_t mask, size_t used, bool sorted) {
        if (n == 0)
                return;
        b->sorted = b->sorted && sorted;
        b->n_entries += n;
        b->used = used;
        batch_count(b, mask, n);
}
