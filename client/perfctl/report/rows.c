#include "client/perfctl/report/rows.h"

#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/memory.h"
#include "client/perfctl/samples/hash-seed.h"

void rows_init(Rows *r, size_t n_keys) {
        *r = (Rows){ .n_keys = n_keys, .seed = seed_new() };
}

void rows_deinit(Rows *r) {
        free(r->keys);
        free(r->list);
        id_table_deinit(&r->ids);
        *r = (Rows){ .keys = NULL };
}

static bool is_of(const Rows *r, uint32_t row, const uint64_t *key) {
        const uint64_t *of = rows_key(r, row);

        for (size_t i = 0; i < r->n_keys; i++)
                if (of[i] != key[i])
                        return false;
        return true;
}

static uint32_t find(const Rows *r, const uint64_t *key, uint32_t hash) {
        size_t at = hash;
        uint32_t id;

        while (id_table_next(&r->ids, hash, &at, &id))
                if (is_of(r, id, key))
                        return id;
        return ID_NONE;
}

uint32_t rows_find(const Rows *r, const uint64_t *key) {
        return find(r, key, id_hash_words(r->seed, key, r->n_keys));
}

uint32_t rows_get(Rows *r, const uint64_t *key) {
        const size_t size = r->n_keys * sizeof(*key);
        const uint32_t hash = id_hash_words(r->seed, key, r->n_keys), found = find(r, key, hash);

        if (found != ID_NONE)
                return found;
        if (r->n == r->room) {
                r->room = r->room > 0 ? 2 * r->room : 64;
                r->keys = must_have(reallocarray(r->keys, r->room, size));
                r->list = must_have(reallocarray(r->list, r->room, sizeof(*r->list)));
        }
        ids_must_have(id_table_add(&r->ids, hash, r->n));
        memcpy(r->keys + r->n * r->n_keys, key, size);
        r->list[r->n] = (Row){ .last = 0 };
        return r->n++;
}
