/* For verbs that show what an event has: its fields as JSON. */
#pragma once

#include "client/perfctl/print/json.h"
#include "client/perfd.h"

const char *field_kind_name(perfd_kind kind);
/* The member "fields": an array of name, type, kind, size, count, and the names of values. */
void fields_put_json(Json *j, const perfd_field *fields, size_t n_fields);
