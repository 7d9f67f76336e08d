/* For report: stacks as numbers; the same one for the same frames. One thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "client/profile/id-table.h"

typedef struct StackIds {
        uint32_t *frames; /* of all stacks, one behind the other */
        size_t n_frames, frames_room;
        size_t *begins;   /* of each in `frames`; of the one that comes next, too */
        uint32_t n, room;
        IdTable ids;
        uint64_t seed;
} StackIds;

void stack_ids_init(StackIds *s);
void stack_ids_deinit(StackIds *s);
uint32_t stack_ids_add(StackIds *s, const uint32_t *frames, size_t n_frames);

/* Until another one is added. */
static inline const uint32_t *stack_ids_get(const StackIds *s, uint32_t id, size_t *ret_n_frames) {
        *ret_n_frames = s->begins[id + 1] - s->begins[id];
        return s->frames + s->begins[id];
}
