/*
 * For dispatcher/append.c: the fast path of interleaved items, each for other channels than the one before, into packets that are
 * open already. It stops where something has to be done before: a task to describe, a packet to send.
 */
#pragma once

#include "daemon/dispatcher/cycle.h"

/* Destinations of items, by the bits of channels of one group. */
typedef struct Pass {
        uint64_t bits;
        TaskHints hints;
        Channel *const *by_bit;
} Pass;

static inline Pass pass_of(const Dispatcher *d, StreamOrder order, uint32_t group, uint64_t bits) {
        return (Pass){ .bits = bits, .hints = task_table_hints(&d->tasks[order], group), .by_bit = d->groups[order][group].by_bit };
}

/* The position of the next item in an open packet. The packet's own length and count are stale until the cursor is cleared. */
typedef struct WriteCursor {
        Packet *packet;
        uint8_t *to, *end;
        size_t n; /* items since the cursor was set */
} WriteCursor;

/* Cursors of channels, by their bits. */
typedef struct CursorSet {
        uint64_t bits; /* bits of the cursors that are set */
        WriteCursor cursors[BATCH_BITS];
} CursorSet;

static inline void cursor_set_init(CursorSet *cursors) {
        cursors->bits = 0; /* the cursors of other bits are never read */
}

/* Stores the cursors of these channels in their packets. Required before the packets are used otherwise. */
void cursor_set_clear(CursorSet *cursors, uint64_t bits);

/* Returns the first entry that was not appended: it begins a run, or something has to be done before. `last` may be left too. */
const BatchEntry *pass_interleaved(const Pass *pass, CursorSet *cursors, const uint8_t *arena, const BatchEntry *e,
                                   const BatchEntry *last);

/* Appends entries of the pass's group, the first of these n, until something has to be done before one. Returns how many. */
size_t pass_few(const Pass *pass, const uint8_t *arena, const BatchEntry *e, size_t n);

static inline const BatchEntry *pass_entries(const Pass *pass, CursorSet *cursors, const uint8_t *arena, const BatchEntry *e,
                                             const BatchEntry *end) {
        bool is_run = e + 1 >= end || (e[1].mask & pass->bits) == (e->mask & pass->bits);

        return is_run ? e : pass_interleaved(pass, cursors, arena, e, end - 1);
}
