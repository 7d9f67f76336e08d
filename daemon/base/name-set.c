/* What the index finds is the place in the list plus one, not a text: so it says the place too, and NULL stays "empty". */
#include "daemon/base/name-set.h"

#include <string.h>

#include "daemon/base/checkpoint.h"

void name_set_deinit(NameSet *s) {
        index_deinit(&s->index);
        strings_deinit(&s->list);
}

static bool find_under(const NameSet *s, uint64_t key, const char *name, size_t *ret_at) {
        const void *found;
        size_t next = 0;

        while ((found = index_next(&s->index, key, &next))) {
                const size_t at = (uintptr_t)found - 1;

                if (strcmp(s->list.items[at], name) == 0) {
                        *ret_at = at;
                        return true;
                }
        }
        return false;
}

bool name_set_find(const NameSet *s, const char *name, size_t *ret_at) {
        return s->list.n > 0 && find_under(s, index_key_of_name(name), name, ret_at);
}

int name_set_fill(NameSet *s, char *const *names, size_t n, size_t most, bool *ret_more, Explanation *e) {
        *ret_more = false;
        for (size_t i = 0; i < n; i++) {
                const uint64_t key = index_key_of_name(names[i]);
                size_t at;
                int r;

                if (find_under(s, key, names[i], &at))
                        r = 0;
                else if (s->list.n >= most) {
                        *ret_more = true;
                        return 0;
                } else if ((r = index_reserve(&s->index, 1)) == 0 && (r = strings_add(&s->list, names[i])) == 0)
                        index_add(&s->index, key, (void *)(uintptr_t)s->list.n);
                if (r == 0)
                        r = checkpoint(e);
                if (r != 0)
                        return r;
        }
        return 0;
}
