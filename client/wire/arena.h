/*
 * For rows that live and die together: memory that is freed as one. A row is never freed alone, so that a half-built
 * result needs no bookkeeping.
 */
#pragma once

#include <stddef.h>

typedef struct Arena {
        struct ArenaBlock *blocks;
} Arena;

#define ARENA_NULL ((Arena){ .blocks = NULL })

/* n zeroed elements, aligned for any of them; also for n = 0. NULL: no memory. */
void *arena_push(Arena *a, size_t n, size_t size);
void arena_deinit(Arena *a);
