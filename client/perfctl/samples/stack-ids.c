#include "client/perfctl/samples/stack-ids.h"

#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/memory.h"
#include "client/perfctl/samples/hash-seed.h"

#define ROOM_FIRST 64

void stack_ids_init(StackIds *s) {
        *s = (StackIds){ .room = ROOM_FIRST, .frames_room = ROOM_FIRST * 16, .seed = seed_new() };
        s->frames = must_have(calloc(s->frames_room, sizeof(*s->frames)));
        s->begins = must_have(calloc((size_t)s->room + 1, sizeof(*s->begins)));
}

void stack_ids_deinit(StackIds *s) {
        free(s->frames);
        free(s->begins);
        id_table_deinit(&s->ids);
        *s = (StackIds){ .frames = NULL };
}

static void make_room(StackIds *s, size_t n_frames) {
        if (n_frames > s->frames_room - s->n_frames) {
                s->frames_room = 2 * s->frames_room + n_frames;
                s->frames = must_have(reallocarray(s->frames, s->frames_room, sizeof(*s->frames)));
        }
        if (s->n == s->room) {
                s->room *= 2;
                s->begins = must_have(reallocarray(s->begins, (size_t)s->room + 1, sizeof(*s->begins)));
        }
}

uint32_t stack_ids_add(StackIds *s, const uint32_t *frames, size_t n_frames) {
        const size_t size = n_frames * sizeof(*frames);
        uint32_t hash = id_hash(s->seed, frames, size), id;
        size_t at = hash;

        while (id_table_next(&s->ids, hash, &at, &id)) {
                size_t n;
                const uint32_t *known = stack_ids_get(s, id, &n);

                if (n == n_frames && memcmp(known, frames, size) == 0)
                        return id;
        }
        make_room(s, n_frames);
        ids_must_have(id_table_add(&s->ids, hash, s->n));
        memcpy(s->frames + s->n_frames, frames, size);
        s->n_frames += n_frames;
        s->begins[s->n + 1] = s->n_frames;
        return s->n++;
}
