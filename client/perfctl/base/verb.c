#include "client/perfctl/base/verb.h"

#include <string.h>

const Verb *verb_find(const Verb *const *table, const char *name) {
        for (size_t i = 0; table[i]; i++)
                if (strcmp(table[i]->name, name) == 0)
                        return table[i];
        return NULL;
}
