/* Nothing is left out: an empty word is an error that its reader names. */
#include "client/perfctl/print/list-text.h"

#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/perfctl.h"

const char **list_split(const char *text, size_t *ret_n) {
        size_t n = 1, size = strlen(text) + 1;
        const char **list;
        char *rest;

        for (const char *comma = text; (comma = strchr(comma, ',')); comma++)
                n++;
        list = must_have(malloc(n * sizeof(*list) + size));
        rest = memcpy(list + n, text, size);
        for (size_t i = 0; i < n; i++)
                list[i] = strsep(&rest, ",");
        *ret_n = n;
        return list;
}
