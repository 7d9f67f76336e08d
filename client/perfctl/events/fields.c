/* The shape is that of perfd.v1.FieldDescriptor, so that nobody learns two. */
#include "client/perfctl/events/fields.h"

const char *field_kind_name(perfd_kind kind) {
        static const char *const names[] = { "unsigned", "signed", "pointer", "bool", "text", "bytes" };

        return (unsigned)kind <= PERFD_BYTES ? names[kind] : "unknown";
}

static void put_field(Json *j, const perfd_field *f) {
        json_begin(j, '{');
        JSON_STRING(j, "name", f->name);
        JSON_STRING(j, "type", f->type);
        JSON_STRING(j, "kind", field_kind_name(f->kind));
        JSON_NUMBER(j, "size", f->size);
        JSON_NUMBER(j, "count", f->count);
        JSON_BOOL(j, "hex", f->hex);
        JSON_BOOL(j, "flags", f->flags);
        json_put_name(j, "values");
        json_begin(j, '[');
        for (size_t i = 0; i < f->n_values; i++) {
                json_begin(j, '{');
                JSON_NUMBER(j, "value", f->values[i].value);
                JSON_STRING(j, "name", f->values[i].name);
                json_end(j, '}');
        }
        json_end(j, ']');
        json_end(j, '}');
}

void fields_put_json(Json *j, const perfd_field *fields, size_t n_fields) {
        json_put_name(j, "fields");
        json_begin(j, '[');
        for (size_t i = 0; i < n_fields; i++)
                put_field(j, &fields[i]);
        json_end(j, ']');
}
