/*
 * Two forms are read:
 *
 *     REC->group_dead ? "true" : "false"             a name for 1, and one for 0
 *     REC->prev_state & 0x100 ? "+" : ""             behind a list of flags: an ending for one more bit
 *
 * The second one ends a name, and is no flag of its own: prev_state 256 is "R+" and not "R|+". So what has this bit and one
 * name, or that of zero, becomes a value with a name. A number with several flags and this bit is shown as flags.
 */
#include "daemon/kernel/tracefs/format-choice.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/error-trail.h"
#include "daemon/kernel/tracefs/format-names.h"
#include "daemon/kernel/tracefs/format-number.h"

typedef struct Choice {
        PlanField *field;
        uint64_t bits; /* that are looked at; UINT64_MAX: all */
        char *yes, *no;
} Choice;

static void choice_deinit(Choice *c) {
        free(c->yes);
        free(c->no);
}

/* (( X )) is X. */
static Span unwrapped(Span s) {
        for (s = span_trim(s); !span_is_empty(s) && *s.at == '(' && span_bracket_end(s.at, s.end) == s.end;)
                s = span_trim((Span){ s.at + 1, s.end - 1 });
        return s;
}

/* FIELD, or FIELD & CONSTANT. False: it is something else. */
static bool read_condition(Plan *p, Span s, Choice *ret) {
        const char *mask;

        s = unwrapped(s);
        ret->bits = UINT64_MAX;
        ret->field = format_shown_field(p, s);
        if (!ret->field)
                return false;
        mask = span_find_outside(s, '&');
        return !mask || (format_number((Span){ mask + 1, s.end }, &ret->bits) && format_shown_field(p, (Span){ s.at, mask }));
}

/* -ENOMEM; without a field: it is no choice. */
static int read_choice(Plan *p, Span argument, Choice *ret) {
        Span s = unwrapped(argument);
        const char *question = span_find_outside(s, '?'),
                   *colon = question ? span_find_outside((Span){ question, s.end }, ':') : NULL;
        int error = 0;

        if (!colon)
                return 0;
        ret->yes = format_unquote((Span){ question + 1, colon }, &error);
        if (ret->yes)
                ret->no = format_unquote((Span){ colon + 1, s.end }, &error);
        if (error < 0 || !ret->no)
                return error;
        if (!read_condition(p, (Span){ s.at, question }, ret))
                ret->field = NULL;
        return 0;
}

/* Both of them are words: what adds a mark to a number that is shown elsewhere names nothing. */
static int add_two(const Choice *c) {
        PlanField *f = c->field;
        int r;

        if (f->n_values > 0 || !*c->yes || !*c->no)
                return 0;
        r = plan_field_add_value(f, 0, c->no);
        return r < 0 ? r : plan_field_add_value(f, 1, c->yes);
}

static int add_ended(PlanField *f, uint64_t value, const char *name, const char *ending) {
        _cleanup_free_ char *text = NULL;

        if (asprintf(&text, "%s%s", name, ending) < 0) {
                text = NULL;
                return error_origin(-ENOMEM);
        }
        return plan_field_add_value(f, value, text);
}

static int add_ending(const Choice *c) {
        PlanField *f = c->field;
        const size_t n = f->n_values;
        int r = 0;

        for (size_t i = 0; i < n; i++)
                if (f->values[i].value & c->bits)
                        return 0; /* it has a name of its own */
        for (size_t i = 0; i < n && r == 0; i++)
                r = add_ended(f, f->values[i].value | c->bits, f->values[i].name, c->yes);
        return r;
}

int format_add_choice(Plan *p, Span argument) {
        _cleanup_(choice_deinit) Choice c = { .field = NULL };
        int r = read_choice(p, argument, &c);
        bool is_bit;

        if (r < 0 || !c.field || !field_is_number(c.field) || c.field->kind == FIELD_POINTER || c.field->count != 1)
                return r;
        is_bit = c.bits != 0 && (c.bits & (c.bits - 1)) == 0;
        if (c.bits == UINT64_MAX)
                return add_two(&c);
        return is_bit && c.field->flags && *c.yes && !*c.no ? add_ending(&c) : 0;
}
