#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/profile/perfetto-names.h"

void perfetto_names_deinit(PerfettoNames *names) {
        id_table_deinit(&names->table);
        free(names->entries);
        free(names->content);
        *names = (PerfettoNames){ .seed = names->seed };
}

size_t perfetto_names_size(const PerfettoNames *names) {
        return names->table.n_slots * sizeof(*names->table.slots) + names->entries_room * sizeof(*names->entries) + names->content_room;
}

static uint32_t hash_of(const PerfettoNames *names, NameKind kind, const void *content, size_t n) {
        return id_hash(names->seed + (uint64_t)kind, content, n);
}

bool perfetto_names_find(const PerfettoNames *names, NameKind kind, const void *content, size_t n, uint64_t *ret_number) {
        const uint32_t hash = hash_of(names, kind, content, n);
        size_t at = hash;
        uint32_t id;

        while (id_table_next(&names->table, hash, &at, &id)) {
                const NameEntry *e = &names->entries[id];

                if (e->kind == kind && e->n == n && (n == 0 || memcmp(names->content + e->at, content, n) == 0)) {
                        *ret_number = e->number;
                        return true;
                }
        }
        return false;
}

static int reserve(PerfettoNames *names, size_t n) {
        if (names->n_entries == names->entries_room) {
                size_t room = 2 * names->entries_room + 64;
                NameEntry *grown = reallocarray(names->entries, room, sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                names->entries = grown;
                names->entries_room = room;
        }
        if (names->n_content + n > names->content_room) {
                size_t room = 2 * (names->n_content + n) + 1024;
                char *grown = realloc(names->content, room);

                if (!grown)
                        return -ENOMEM;
                names->content = grown;
                names->content_room = room;
        }
        return 0;
}

int perfetto_names_add(PerfettoNames *names, NameKind kind, const void *content, size_t n, uint64_t number, uint64_t *ret_number) {
        int r = reserve(names, n);

        if (r == 0)
                r = id_table_add(&names->table, hash_of(names, kind, content, n), names->n_entries);
        if (r < 0)
                return r;
        if (number == 0)
                number = ++names->numbers[kind];
        if (n > 0)
                memcpy(names->content + names->n_content, content, n);
        names->entries[names->n_entries++] = (NameEntry){ .at = names->n_content, .n = n, .kind = kind, .number = number };
        names->n_content += n;
        *ret_number = number;
        return 0;
}
