/*
 * A plan is checked against a sample once, as a whole. Most plans have no dynamic place, and then this is one
 * comparison; that the loop runs over all fields to find out is cheaper than another list beside the plan.
 */
#include "daemon/decode/fields.h"

int plan_check(const Plan *p, const uint8_t *raw, size_t raw_size) {
        if (raw_size < p->min_size)
                return FIELD_E_OUTSIDE;
        for (size_t i = 0; i < p->n_fields; i++) {
                const uint8_t *bytes;
                uint32_t size;

                if (p->fields[i].place != PLACE_FIXED &&
                    field_locate(&p->fields[i], raw, raw_size, &bytes, &size) != 0)
                        return FIELD_E_OUTSIDE;
        }
        return 0;
}
