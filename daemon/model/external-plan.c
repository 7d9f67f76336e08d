/* Texts are dynamic places as tracepoints have them (__data_loc), so that a sample is as long as what is in it. */
#include "daemon/model/external-plan.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct ExternalType {
        const char *name;
        FieldKind kind;
        uint32_t size; /* 0: as long as it is */
} ExternalType;

static const ExternalType types[] = {
        { "u8", FIELD_UNSIGNED, 1 }, { "u16", FIELD_UNSIGNED, 2 }, { "u32", FIELD_UNSIGNED, 4 },
        { "u64", FIELD_UNSIGNED, 8 }, { "s8", FIELD_SIGNED, 1 },   { "s16", FIELD_SIGNED, 2 },
        { "s32", FIELD_SIGNED, 4 },   { "s64", FIELD_SIGNED, 8 },  { "bool", FIELD_BOOL, 1 },
        { "text", FIELD_TEXT, 0 },    { "bytes", FIELD_BYTES, 0 },
};

static bool is_identifier(const char *name, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (!(name[i] == '_' || (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z') ||
                      (i > 0 && name[i] >= '0' && name[i] <= '9')))
                        return false;
        return n > 0 && n <= 64;
}

static int add_field(Plan *p, const char *text, Explanation *e) {
        const char *colon = strchr(text, ':');
        size_t n = colon ? (size_t)(colon - text) : strlen(text);
        char name[65];
        PlanField *f;

        if (!colon || !is_identifier(text, n))
                return refuse(e, REFUSED_INVALID, "bad-field",
                              "field '%.80s': expected NAME:TYPE, where the name consists of letters, digits and "
                              "underscores", text);
        memcpy(name, text, n);
        name[n] = '\0';
        if (plan_find(p, name))
                return refuse(e, REFUSED_INVALID, "bad-field", "field %s is declared twice", name);
        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
                const ExternalType *t = &types[i];

                if (strcmp(colon + 1, t->name) != 0)
                        continue;
                f = plan_add_field(p, name, t->name);
                if (!f)
                        return error_origin(-ENOMEM);
                f->kind = t->kind;
                f->place = t->size ? PLACE_FIXED : PLACE_DATA_LOC;
                f->element_size = t->size ? t->size : 1;
                f->count = t->size ? 1 : 0;
                return 0;
        }
        return refuse(e, REFUSED_INVALID, "bad-field",
                      "field %s: type '%.40s' is unknown: expected one of u8 u16 u32 u64 s8 s16 s32 s64 bool text bytes", name,
                      colon + 1);
}

static void place_fields(Plan *p) {
        uint32_t at = 0;

        for (size_t i = 0; i < p->n_fields; i++) {
                PlanField *f = &p->fields[i];
                uint32_t size = f->place == PLACE_FIXED ? f->element_size : (uint32_t)sizeof(uint32_t);

                at = (at + size - 1) / size * size;
                f->offset = at;
                at += size;
        }
        p->min_size = at;
}

int external_plan_new(const char *name, const Strings *fields, Plan **ret, Explanation *e) {
        _cleanup_(plan_unrefp) Plan *p = plan_new(0, "external", name);

        if (!p)
                return error_origin(-ENOMEM);
        if (fields->n > EXTERNAL_FIELDS_MAX)
                return refuse(e, REFUSED_INVALID, "bad-field", "%zu fields: an external event has at most %d", fields->n,
                              EXTERNAL_FIELDS_MAX);
        for (size_t i = 0; i < fields->n; i++) {
                int r = add_field(p, fields->items[i], e);

                if (r != 0)
                        return r;
        }
        place_fields(p);
        *ret = TAKE_PTR(p);
        return 0;
}

static bool fits(const PlanField *f, const ExternalInput *v) {
        unsigned bits = 8 * f->element_size;
        int64_t number = (int64_t)v->number;

        if (f->kind == FIELD_BOOL)
                return !v->is_signed && v->number <= 1;
        if (f->kind == FIELD_SIGNED) {
                if (!v->is_signed && v->number > INT64_MAX)
                        return false;
                return bits == 64 || (number >= -((int64_t)1 << (bits - 1)) && number < (int64_t)1 << (bits - 1));
        }
        return !v->is_signed && (bits == 64 || v->number < (uint64_t)1 << bits);
}

static int refuse_number(const PlanField *f, const ExternalInput *v, Explanation *e) {
        uint64_t most = f->kind == FIELD_BOOL ? 1 : UINT64_MAX >> (64 - 8 * f->element_size);
        bool is_negative = v->is_signed && (int64_t)v->number < 0;

        if (f->kind == FIELD_SIGNED)
                most /= 2;
        if (v->is_signed && !is_negative && f->kind != FIELD_SIGNED)
                return refuse(e, REFUSED_INVALID, "bad-value", "field %s is of the type %s, which takes `number`, and a "
                        "`signed_number` was given", f->name, f->type);
        return refuse(e, REFUSED_INVALID, "bad-value", "field %s is of the type %s, from %s%llu to %llu, and %s%llu was given",
                      f->name, f->type, f->kind == FIELD_SIGNED ? "-" : "",
                      f->kind == FIELD_SIGNED ? (unsigned long long)most + 1 : 0, (unsigned long long)most,
                      is_negative ? "-" : "", (unsigned long long)(is_negative ? -v->number : v->number));
}

static int put_number(const PlanField *f, const ExternalInput *v, uint8_t *raw, Explanation *e) {
        uint64_t u64 = v->number;
        uint32_t u32 = (uint32_t)u64;
        uint16_t u16 = (uint16_t)u64;
        uint8_t u8 = (uint8_t)u64;
        const void *from = f->element_size == 8 ? (void *)&u64 : f->element_size == 4 ? (void *)&u32
                           : f->element_size == 2 ? (void *)&u16 : (void *)&u8;

        if (!v->is_number)
                return refuse(e, REFUSED_INVALID, "bad-value", "field %s is a number (%s), and a text was given", f->name,
                              f->type);
        if (!fits(f, v))
                return refuse_number(f, v, e);
        memcpy(raw + f->offset, from, f->element_size);
        return 0;
}

static int put_text(const PlanField *f, const ExternalInput *v, uint8_t *raw, size_t *at, Explanation *e) {
        uint32_t place;

        if (v->is_number)
                return refuse(e, REFUSED_INVALID, "bad-value", "field %s is %s, and a number was given", f->name, f->type);
        if (f->kind == FIELD_TEXT && v->length > 0 && memchr(v->text, 0, v->length))
                return refuse(e, REFUSED_INVALID, "bad-value", "field %s: a text cannot contain zero bytes: declare the field as "
                        "bytes",
                              f->name);
        if (v->length > EXTERNAL_RAW_MAX - *at)
                return refuse(e, REFUSED_INVALID, "bad-value", "field %s: the sample is longer than %d bytes", f->name,
                              EXTERNAL_RAW_MAX);
        place = (uint32_t)v->length << 16 | (uint32_t)*at;
        memcpy(raw + f->offset, &place, sizeof(place));
        if (v->length > 0)
                memcpy(raw + *at, v->text, v->length);
        *at += v->length;
        return 0;
}

int external_raw_encode(const Plan *p, const ExternalInput *values, size_t n_values, uint8_t *ret_raw, size_t *ret_size,
                        Explanation *e) {
        size_t at = p->min_size;

        if (n_values != p->n_fields)
                return refuse(e, REFUSED_INVALID, "bad-value", "%s has %zu fields, and was given %zu values: one for each is needed", p->name,
                              p->n_fields, n_values);
        memset(ret_raw, 0, at);
        for (size_t i = 0; i < n_values; i++) {
                const PlanField *f = &p->fields[i];
                int r = field_is_number(f) ? put_number(f, &values[i], ret_raw, e)
                                           : put_text(f, &values[i], ret_raw, &at, e);

                if (r != 0)
                        return r;
        }
        *ret_size = at;
        return 0;
}
