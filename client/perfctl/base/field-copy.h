/* For verbs that keep values: fields that stay when the event to which they belong is gone. */
#pragma once

#include "client/perfd.h"

/* With this name, which has to live as long as the copy. */
perfd_field *field_copy(const perfd_field *f, const char *name);
void field_free(perfd_field *f);
/* Values of both are shown alike. */
bool field_is_like(const perfd_field *a, const perfd_field *b);

static inline bool field_is_number(const perfd_field *f) {
        return f->kind != PERFD_TEXT && f->kind != PERFD_BYTES;
}
