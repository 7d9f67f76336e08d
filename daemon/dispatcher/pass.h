/*
 * For dispatcher/append.c: items that come in turns, of which each goes another way than the one before it, into packets that
 * are open already, as long as nothing has to be done before: no thread to describe, no packet to send.
 */
#pragma once

#include "daemon/dispatcher/cycle.h"

/* Where items go: by the bits of channels of one group. */
typedef struct Pass {
        uint64_t bits;
        TaskHints hints;
        Channel *const *by_bit;
} Pass;

static inline Pass pass_of(const Dispatcher *d, StreamOrder order, uint32_t group, uint64_t bits) {
        return (Pass){ .bits = bits, .hints = task_table_hints(&d->tasks[order], group), .by_bit = d->groups[order][group].by_bit };
}

/* Where the next item of an open packet goes. The packet's own length and count are stale until the cursor is cleared. */
typedef struct WriteCursor {
        Packet *packet;
        uint8_t *to, *end;
        size_t n; /* items since the cursor was set */
} WriteCursor;

/* Packets of channels, by their bits. */
typedef struct CursorSet {
        uint64_t bits; /* of those that are set */
        WriteCursor cursors[BATCH_BITS];
} CursorSet;

static inline void cursor_set_init(CursorSet *cursors) {
        cursors->bits = 0; /* nothing else is looked at */
}

/* Writes the cursors of these channels back to their packets: before anything else is done with these. */
void cursor_set_clear(CursorSet *cursors, uint64_t bits);

/* The first entry that did not go: it begins a run, or something has to be done before; the last one of all may be left. */
const BatchEntry *pass_interleaved(const Pass *pass, CursorSet *cursors, const uint8_t *arena, const BatchEntry *e,
                                   const BatchEntry *last);

/* The first of these n entries, of the pass's group, before each of which nothing has to be done: how many went. */
size_t pass_few(const Pass *pass, const uint8_t *arena, const BatchEntry *e, size_t n);

static inline const BatchEntry *pass_entries(const Pass *pass, CursorSet *cursors, const uint8_t *arena, const BatchEntry *e,
                                             const BatchEntry *end) {
        bool is_run = e + 1 >= end || (e[1].mask & pass->bits) == (e->mask & pass->bits);

        return is_run ? e : pass_interleaved(pass, cursors, arena, e, end - 1);
}
