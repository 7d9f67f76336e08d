/* A list of blocks as malloc(3) gives them: results are cold and have few arrays, so that no slab is worth its code. */
#include "client/wire/arena.h"

#include <stdint.h>
#include <stdlib.h>

typedef struct ArenaBlock {
        struct ArenaBlock *next;
        _Alignas(max_align_t) unsigned char bytes[];
} ArenaBlock;

void *arena_push(Arena *a, size_t n, size_t size) {
        ArenaBlock *block;

        if (n > (SIZE_MAX - sizeof(*block)) / size)
                return NULL;
        block = calloc(1, sizeof(*block) + n * size);
        if (!block)
                return NULL;
        block->next = a->blocks;
        a->blocks = block;
        return block->bytes;
}

void arena_deinit(Arena *a) {
        while (a->blocks) {
                ArenaBlock *next = a->blocks->next;

                free(a->blocks);
                a->blocks = next;
        }
}
