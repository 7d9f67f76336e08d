/*
 * What a client emits: any fields, any values. What is taken is a sample that its plan can read, whose every field has the
 * value that was given, and that can be encoded.
 *
 *     | n fields (1) | their types (1 each) | perfd.v1.ExternalSample |
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/decode/fields.h"
#include "daemon/encode/item.h"
#include "daemon/model/external-plan.h"
#include "proto/perfd.pb-c.h"

#define ROOM ((size_t)64 << 10)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void must_be(int yes) {
        if (!yes)
                abort();
}

static Plan *make_plan(const uint8_t *types, size_t n) {
        static const char *const names[] = { "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "bool", "text", "bytes", "u9" };
        Strings fields = STRINGS_NULL;
        Plan *plan = NULL;
        Explanation e;
        bool is_known = true;
        int r;

        for (size_t i = 0; i < n; i++) {
                const char *type = names[types[i] % ARRAY_SIZE(names)];
                char text[32];

                (void)snprintf(text, sizeof(text), "f%zu:%s", i, type);
                must_be(strings_add(&fields, text) == 0);
                is_known &= strcmp(type, "u9") != 0;
        }
        r = external_plan_new("fuzz", &fields, &plan, &e);
        must_be((r == 0) == (is_known && n <= EXTERNAL_FIELDS_MAX));
        strings_deinit(&fields);
        return plan;
}

/* As the supervisor does it. False: a value is neither. */
static bool take_values(const Perfd__V1__ExternalSample *m, ExternalInput *ret) {
        for (size_t i = 0; i < m->n_values; i++) {
                const Perfd__V1__ExternalValue *v = m->values[i];

                ret[i] = (ExternalInput){ .is_number = v->value_case != PERFD__V1__EXTERNAL_VALUE__VALUE_TEXT };
                if (v->value_case == PERFD__V1__EXTERNAL_VALUE__VALUE_NUMBER)
                        ret[i].number = v->number;
                else if (v->value_case == PERFD__V1__EXTERNAL_VALUE__VALUE_SIGNED_NUMBER) {
                        ret[i].number = (uint64_t)v->signed_number;
                        ret[i].is_signed = true;
                } else if (v->value_case == PERFD__V1__EXTERNAL_VALUE__VALUE_TEXT) {
                        ret[i].text = v->text.data;
                        ret[i].length = v->text.len;
                } else
                        return false;
        }
        return true;
}

static void check_sample(Plan *p, const ExternalInput *values, const uint8_t *raw, size_t size) {
        static uint8_t item[ROOM];
        _cleanup_(encode_plan_unrefp) EncodePlan *fields = encode_plan_new(p, 1, PAYLOAD_BOTH, NULL, 0);
        Record record = { .comm = "", .raw = raw, .raw_size = (uint32_t)size };
        size_t length;

        must_be(fields && size <= EXTERNAL_RAW_MAX && plan_check(p, raw, size) == 0);
        must_be(item_encode(fields, &record, item, ROOM, &length) == 0);
        for (size_t i = 0; i < p->n_fields; i++) {
                const PlanField *f = &p->fields[i];
                const uint8_t *text;
                uint64_t number;
                size_t n;

                if (field_is_number(f))
                        must_be(field_number(f, raw, size, 0, &number) == 0 && number == values[i].number);
                else
                        must_be(field_text(f, raw, size, &text, &n) == 0 && n == values[i].length &&
                                (n == 0 || memcmp(text, values[i].text, n) == 0));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        static uint8_t raw[EXTERNAL_RAW_MAX];
        _cleanup_(plan_unrefp) Plan *plan = NULL;
        ExternalInput values[EXTERNAL_FIELDS_MAX];
        Perfd__V1__ExternalSample *m;
        size_t n, size = SIZE_MAX;
        Explanation e;

        if (length < 1 || length - 1 < bytes[0] % 80u)
                return 0;
        n = bytes[0] % 80;
        plan = make_plan(bytes + 1, n);
        m = plan ? perfd__v1__external_sample__unpack(NULL, length - 1 - n, bytes + 1 + n) : NULL;
        if (!m)
                return 0;
        if (m->n_values <= EXTERNAL_FIELDS_MAX && take_values(m, values)) {
                uint8_t *exact;
                int r = external_raw_encode(plan, values, m->n_values, raw, &size, &e);

                must_be(r == 0 || (r == REFUSED_INVALID && size == SIZE_MAX && strcmp(e.reason, "bad-value") == 0));
                if (r == 0) {
                        exact = malloc(size ? size : 1); /* so that a sanitizer sees one byte more */
                        must_be(exact != NULL);
                        memcpy(exact, raw, size);
                        check_sample(plan, values, exact, size);
                        free(exact);
                }
        }
        perfd__v1__external_sample__free_unpacked(m, NULL);
        return 0;
}
