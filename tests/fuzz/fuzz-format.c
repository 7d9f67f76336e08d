/*
 * Any text as a format: refused with a reason, or a Plan whose fields lie inside of a record and can be read out of
 * one. The kernel's own formats are the corpus.
 */
#include <stdint.h>
#include <stdlib.h>

#include "daemon/base/cleanup.h"
#include "daemon/kernel/tracefs/format.h"
#include "daemon/model/field.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void check_field(const Plan *p, const PlanField *f) {
        static const uint8_t raw[FORMAT_MAX_SIZE];
        const uint8_t *place;
        uint32_t size;

        if (f->element_size != 1 && f->element_size != 2 && f->element_size != 4 && f->element_size != 8)
                abort();
        if (!field_is_number(f) && f->element_size != 1)
                abort();
        if ((f->place == PLACE_FIXED) != (f->count > 0))
                abort();
        if (field_locate(f, raw, p->min_size, &place, &size) != 0)
                abort();
        for (size_t i = 0; i < f->n_values; i++)
                if (!f->values[i].name)
                        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        _cleanup_(plan_unrefp) Plan *p = NULL;
        Explanation e = EXPLANATION_NULL;
        int code = format_parse("fuzz", (const char *)bytes, length, &p, &e);

        if (code == 0) {
                if (p->min_size > FORMAT_MAX_SIZE)
                        abort();
                for (size_t i = 0; i < p->n_fields; i++)
                        check_field(p, &p->fields[i]);
        } else if (code != REFUSED_INVALID || p || !e.reason || !e.text[0]) {
                abort();
        }
        return 0;
}
