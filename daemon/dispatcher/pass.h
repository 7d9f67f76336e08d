/*
 * For dispatcher/append.c: items that come in turns, of which each goes another way than the one before it, into packets that
 * are open already, as long as nothing has to be done before: no thread to describe, no packet to send.
 */
#pragma once

#include "daemon/dispatcher/dispatcher.h"

/* Where items go: by the bits of channels of one group. */
typedef struct Pass {
        uint64_t bits;
        TaskHints hints;
        Channel *const *by_bit;
} Pass;

static inline Pass pass_of(const Dispatcher *d, StreamOrder order, uint32_t group, uint64_t bits) {
        return (Pass){ .bits = bits, .hints = task_table_hints(&d->tasks[order], group), .by_bit = d->groups[order][group].by_bit };
}

/* An open packet on the desk: what it knows of itself follows when it is taken off. */
typedef struct WriteCursor {
        Packet *packet;
        uint8_t *to, *end;
        size_t n; /* items since it was laid there */
} WriteCursor;

/* Packets of channels, by their bits. */
typedef struct CursorSet {
        uint64_t bits; /* of those that lie on it */
        WriteCursor cursors[BATCH_BITS];
} CursorSet;

static inline void cursor_set_init(CursorSet *cursors) {
        cursors->bits = 0; /* nothing else is looked at */
}

/* The packets of these channels are taken off, before anything else is done with them. */
void cursor_set_clear(CursorSet *cursors, uint64_t bits);

/* The first entry that did not go: it begins a run, or something has to be done before; the last one of all may be left. */
const BatchEntry *pass_interleaved(const Pass *pass, CursorSet *cursors, const uint8_t *arena, const BatchEntry *e, const BatchEntry *last);

/* The first of these n entries, of the pass's group, before each of which nothing has to be done: how many went. */
size_t pass_few(const Pass *pass, const uint8_t *arena, const BatchEntry *e, size_t n);

static inline const BatchEntry *pass_entries(const Pass *pass, CursorSet *cursors, const uint8_t *arena, const BatchEntry *e,
                                             const BatchEntry *end) {
        bool is_run = e + 1 >= end || (e[1].mask & pass->bits) == (e->mask & pass->bits);

        return is_run ? e : pass_interleaved(pass, cursors, arena, e, end - 1);
}
