/* Samples of one thread and one event often follow each other: the text that was asked for last is compared before it is hashed. */
#include "client/perfctl/samples/text-ids.h"

#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/memory.h"
#include "client/perfctl/samples/hash-seed.h"

#define ROOM_FIRST 64

void text_ids_init(TextIds *t) {
        *t = (TextIds){ .n_room = ROOM_FIRST, .room = ROOM_FIRST * 16, .last = ID_NONE, .seed = seed_new() };
        t->bytes = must_have(malloc(t->room));
        t->begins = must_have(calloc(t->n_room + 1, sizeof(*t->begins)));
        t->numbers = must_have(calloc(t->n_room, sizeof(*t->numbers)));
}

void text_ids_deinit(TextIds *t) {
        free(t->bytes);
        free(t->begins);
        free(t->numbers);
        id_table_deinit(&t->ids);
        *t = (TextIds){ .bytes = NULL };
}

static void make_room(TextIds *t, size_t length) {
        if (length > t->room - t->n_bytes) {
                t->room = 2 * t->room + length;
                t->bytes = must_have(realloc(t->bytes, t->room));
        }
        if (t->n == t->n_room) {
                t->n_room *= 2;
                t->begins = must_have(reallocarray(t->begins, (size_t)t->n_room + 1, sizeof(*t->begins)));
                t->numbers = must_have(reallocarray(t->numbers, t->n_room, sizeof(*t->numbers)));
        }
}

uint32_t text_ids_add(TextIds *t, perfd_text text, bool is_number) {
        uint32_t hash, id;
        size_t at;

        if (t->last != ID_NONE && t->numbers[t->last] == is_number && text_ids_is(t, t->last, text))
                return t->last;
        at = hash = id_hash(t->seed ^ is_number, text.bytes, text.length);
        while (id_table_next(&t->ids, hash, &at, &id))
                if (t->numbers[id] == is_number && text_ids_is(t, id, text))
                        return t->last = id;
        make_room(t, text.length);
        ids_must_have(id_table_add(&t->ids, hash, t->n));
        if (text.length > 0)
                memcpy(t->bytes + t->n_bytes, text.bytes, text.length);
        t->numbers[t->n] = is_number;
        t->n_bytes += text.length;
        t->begins[t->n + 1] = t->n_bytes;
        return t->last = t->n++;
}

perfd_text text_ids_get(const TextIds *t, uint32_t id) {
        return (perfd_text){ .bytes = t->bytes + t->begins[id], .length = t->begins[id + 1] - t->begins[id] };
}
