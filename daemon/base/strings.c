/* Lists are short and cold: one allocation for each text, one more for the array, grown by one. */
#include "daemon/base/strings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/error-trail.h"

void strings_deinit(Strings *s) {
        for (size_t i = 0; i < s->n; i++)
                free(s->items[i]);
        free(s->items);
        *s = STRINGS_NULL;
}

int strings_add(Strings *s, const char *text) {
        char **more = reallocarray(s->items, s->n + 1, sizeof(*more));

        if (!more)
                return error_origin(-ENOMEM);
        s->items = more;
        more[s->n] = strdup(text);
        if (!more[s->n])
                return error_origin(-ENOMEM);
        s->n++;
        return 0;
}

int strings_copy(char *const *items, size_t n, Strings *ret) {
        Strings copy = STRINGS_NULL;

        for (size_t i = 0; i < n; i++)
                if (strings_add(&copy, items[i]) < 0) {
                        strings_deinit(&copy);
                        return error_origin(-ENOMEM);
                }
        *ret = copy;
        return 0;
}

bool strings_equal(const Strings *a, const Strings *b) {
        if (a->n != b->n)
                return false;
        for (size_t i = 0; i < a->n; i++)
                if (strcmp(a->items[i], b->items[i]) != 0)
                        return false;
        return true;
}
