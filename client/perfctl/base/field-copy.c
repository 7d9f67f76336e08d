/* What belongs to the copy is not const to who has it: only field_free() knows that. */
#include "client/perfctl/base/field-copy.h"

#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/perfctl.h"

perfd_field *field_copy(const perfd_field *f, const char *name) {
        perfd_value_name *values = must_have(calloc(f->n_values + 1, sizeof(*values)));
        perfd_field *copy = must_have(malloc(sizeof(*copy)));

        for (size_t i = 0; i < f->n_values; i++)
                values[i] = (perfd_value_name){ .value = f->values[i].value, .name = must_have(strdup(f->values[i].name)) };
        *copy = *f;
        copy->name = copy->type = name;
        copy->values = values;
        copy->delimiter = must_have(strdup(f->delimiter ? f->delimiter : ""));
        return copy;
}

void field_free(perfd_field *f) {
        if (!f)
                return;
        for (size_t i = 0; i < f->n_values; i++)
                free((char *)f->values[i].name);
        free((void *)f->values);
        free((char *)f->delimiter);
        free(f);
}

bool field_is_like(const perfd_field *a, const perfd_field *b) {
        if (a->kind != b->kind || a->size != b->size || a->count != b->count || a->hex != b->hex || a->flags != b->flags ||
            a->n_values != b->n_values || strcmp(a->delimiter, b->delimiter) != 0)
                return false;
        for (size_t i = 0; i < a->n_values; i++)
                if (a->values[i].value != b->values[i].value || strcmp(a->values[i].name, b->values[i].name) != 0)
                        return false;
        return true;
}
