/* For the printers of plain samples: values by a plan, written where its room is. */
#pragma once

#include "client/perfctl/base/plain.h"
#include "client/perfctl/item/plan.h"

/* What is left of a line, behind something that was written without the plan. */
static inline char *plan_go_on(Output *o, const ItemPlan *plan) {
        return output_begin(o, plan->room);
}

/* Whether it has its room in the line, and nothing in it is to be escaped. */
static inline bool plan_has_text(perfd_text text, PlainClass class) {
        return text.length <= TEXT_ROOM && plain_is(text.bytes, text.length, class);
}

static inline char *plan_put_element(char *to, ValueForm form, uint64_t mask, uint64_t number) {
        if (form == VALUE_HEX)
                return hex_put((char *)mempcpy(to, "0x", 2), number & mask);
        return form == VALUE_SIGNED ? signed_put(to, (int64_t)number) : decimal_put(to, number);
}

/* The form is a constant where it is called: a loop of its own for each. */
static inline __attribute__((always_inline)) char *plan_put_array(char *to, const PlannedField *f, ValueForm form, const uint64_t *numbers,
                                                                  const char *brackets) {
        *to++ = brackets[0];
        for (uint32_t i = 0; i < f->count; i++) {
                to = plan_put_element(to, form, f->mask, numbers[i]);
                *to++ = ',';
        }
        to -= f->count > 0; /* the last comma */
        *to++ = brackets[1];
        return to;
}

/* All numbers of a field. brackets: around those of an array */
static inline char *plan_put_numbers(char *to, const PlannedField *f, const uint64_t *numbers, const char *brackets) {
        if (!f->is_array)
                return plan_put_element(to, (ValueForm)f->form, f->mask, *numbers);
        switch ((ValueForm)f->form) {
        case VALUE_HEX:
                return plan_put_array(to, f, VALUE_HEX, numbers, brackets);
        case VALUE_SIGNED:
                return plan_put_array(to, f, VALUE_SIGNED, numbers, brackets);
        default:
                return plan_put_array(to, f, VALUE_UNSIGNED, numbers, brackets);
        }
}

#define PUT_LITERAL(to, literal) ((char *)mempcpy((to), (literal), sizeof(literal) - 1))
