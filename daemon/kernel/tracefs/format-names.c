/*
 * Own code beside a library that can do the same, because libtraceevent 1.7.1 ends the program on some print formats,
 * __print_flags(REC->absent, ...) of a member that is no field is enough; it leaks at kvm_inj_exception; it gives the
 * value 0 to { ENUM_NAME, "one" } if the kernel left the name of the enum there; and names nothing at all if any
 * argument is beyond it, a statement or a call of a kernel function, as in dma_map_sg.
 *
 * A print format is any C that the kernel's compiler accepted: statements, helper functions, nested conditions. It is
 * not parsed as a whole. Calls of __print_flags() and the like are found wherever they stand, and only these are read,
 * by brackets and commas; so one strange argument does not cost the names in the others.
 *
 * Only names of a field's own value are taken, cast or masked: those of a part that was shifted out of it would be
 * wrong for the whole.
 */
#include "daemon/kernel/tracefs/format-names.h"

#include <errno.h>
#include <string.h>

#include "daemon/base/error-trail.h"
#include "daemon/kernel/tracefs/format-choice.h"
#include "daemon/kernel/tracefs/format-number.h"

char *format_unquote(Span s, int *ret_error) {
        _cleanup_free_ char *text = NULL;
        char *to;

        s = span_trim(s);
        if (span_is_empty(s))
                return NULL;
        to = text = malloc((size_t)(s.end - s.at) + 1);
        if (!text) {
                *ret_error = error_origin(-ENOMEM);
                return NULL;
        }
        for (; !span_is_empty(s); s = span_trim(s)) {
                const char *behind;

                if (*s.at != '"')
                        return NULL;
                behind = span_quoted_end(s.at, s.end);
                for (const char *at = s.at + 1; at < behind - 1; at++) {
                        if (*at == '\\' && at + 1 < behind - 1)
                                at++;
                        *to++ = *at;
                }
                s.at = behind;
        }
        *to = '\0';
        return TAKE_PTR(text);
}

static PlanField *find_field(Plan *p, Span name) {
        for (size_t i = 0; i < p->n_fields; i++)
                if (span_equal(name, p->fields[i].name))
                        return &p->fields[i];
        return NULL;
}

/* Without brackets around the whole and casts in front, as often as there are. */
static Span bare(Span s) {
        for (s = span_trim(s); !span_is_empty(s) && *s.at == '(';) {
                const char *behind = span_bracket_end(s.at, s.end);
                Span rest;

                if (!behind)
                        return s;
                rest = span_trim((Span){ behind, s.end });
                if (span_is_empty(rest))
                        s = span_trim((Span){ s.at + 1, behind - 1 });
                else if (format_is_word(*rest.at) || *rest.at == '(')
                        s = rest; /* no operator between: a cast */
                else
                        return s;
        }
        return s;
}

static PlanField *shown_array(Plan *p, Span s) {
        static const char *const calls[] = { "__get_dynamic_array(", "__get_rel_dynamic_array(", "__get_cpumask(",
                                             "__get_bitmask(" };

        for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
                if (span_skip(&s, calls[i]))
                        return s.end[-1] == ')' ? find_field(p, span_trim((Span){ s.at, s.end - 1 })) : NULL;
        return NULL;
}

/* REC->name, or one element of it */
static PlanField *shown_member(Plan *p, Span s) {
        Span name;

        if (!span_skip(&s, "REC->"))
                return NULL;
        name.at = s.at;
        while (s.at < s.end && format_is_word(*s.at))
                s.at++;
        name.end = s.at;
        if (!span_is_empty(s) && (*s.at != '[' || span_bracket_end(s.at, s.end) != s.end))
                return NULL;
        return find_field(p, name);
}

PlanField *format_shown_field(Plan *p, Span s) {
        const char *mask;
        PlanField *f;

        s = bare(s);
        if (span_is_empty(s) || span_find_outside(s, '?'))
                return NULL;
        while ((mask = span_find_outside(s, '&'))) {
                if (mask + 1 < s.end && mask[1] == '&')
                        return NULL;
                f = format_shown_field(p, (Span){ s.at, mask });
                if (f)
                        return f;
                s = bare((Span){ mask + 1, s.end });
        }
        f = shown_array(p, s);
        return f ? f : shown_member(p, s);
}

/* The value as the field's numbers come: cut to its size and widened by its sign. */
static uint64_t field_value(const PlanField *f, uint64_t value) {
        unsigned unused = 64 - 8 * f->element_size;

        return f->kind == FIELD_SIGNED ? (uint64_t)((int64_t)(value << unused) >> unused) : value << unused >> unused;
}

/* { VALUE, "NAME" }. The end of the kernel's own lists, { 0, NULL }, has no name and is left out. */
static int add_value(PlanField *f, Span s) {
        _cleanup_free_ char *name = NULL;
        Span value;
        uint64_t number;
        int error = 0;

        if (span_is_empty(s) || *s.at != '{' || s.end[-1] != '}')
                return 0;
        s = (Span){ s.at + 1, s.end - 1 };
        if (!span_next_argument(&s, &value) || !format_number(value, &number))
                return 0;
        name = format_unquote(s, &error);
        return name ? plan_field_add_value(f, field_value(f, number), name) : error;
}

/* A call of __print_flags(EXPRESSION, DELIMITER, VALUES) or __print_symbolic(EXPRESSION, VALUES). */
static int add_values(Plan *p, Span arguments, bool flags, PlanField **ret_field) {
        _cleanup_free_ char *delimiter = NULL;
        Span argument;
        PlanField *f;
        int error = 0;

        if (!span_next_argument(&arguments, &argument))
                return 0;
        f = format_shown_field(p, argument);
        if (!f || f->n_values > 0 || !field_is_number(f))
                return 0; /* the first list of a field stays: a second one shows it from another side */
        if (flags) {
                if (!span_next_argument(&arguments, &argument))
                        return 0;
                delimiter = format_unquote(argument, &error);
                if (!delimiter)
                        return error;
        }
        while (error == 0 && span_next_argument(&arguments, &argument))
                error = add_value(f, argument);
        if (error < 0 || f->n_values == 0)
                return error;
        f->flags = flags;
        f->delimiter = TAKE_PTR(delimiter);
        *ret_field = f;
        return 0;
}

/* FIELD ? __print_flags(FIELD, ...) : "none" names the zero, if the list does not. */
static int add_zero(Plan *p, PlanField *f, Span before, Span behind) {
        _cleanup_free_ char *name = NULL;
        int error = 0;

        before = span_trim(before);
        behind = span_trim(behind);
        if (span_is_empty(before) || before.end[-1] != '?' || !span_skip(&behind, ":"))
                return 0;
        if (format_shown_field(p, (Span){ before.at, before.end - 1 }) != f)
                return 0;
        for (size_t i = 0; i < f->n_values; i++)
                if (f->values[i].value == 0)
                        return 0;
        name = format_unquote(behind, &error);
        return name && *name ? plan_field_add_value(f, 0, name) : error;
}

static void set_hex(Plan *p, Span expression) {
        PlanField *f = format_shown_field(p, expression);

        if (f)
                f->hex = true;
}

/* __print_hex() and %pU: a char array that is shown so is no text (uuids), and a zero does not end it. */
static void set_hex_bytes(Plan *p, Span expression) {
        PlanField *f = format_shown_field(p, expression);

        if (!f)
                return;
        f->hex = true;
        if (f->kind == FIELD_TEXT)
                f->kind = FIELD_BYTES;
}

typedef enum Call {
        CALL_FLAGS,
        CALL_SYMBOLIC,
        CALL_HEX,
} Call;

static const struct {
        const char *text;
        Call call;
} calls[] = {
        { "__print_flags(", CALL_FLAGS }, { "__print_flags_u64(", CALL_FLAGS },
        { "__print_symbolic(", CALL_SYMBOLIC }, { "__print_symbolic_u64(", CALL_SYMBOLIC },
        { "__print_hex(", CALL_HEX }, { "__print_hex_str(", CALL_HEX },
};

/* The call that begins at *at inside of an argument, if it is one of these; *at moves on. */
static int read_call(Plan *p, Span argument, const char **at) {
        for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
                Span s = { *at, argument.end }, arguments, first;
                PlanField *f = NULL;
                const char *behind;
                int error;

                if (!span_skip(&s, calls[i].text))
                        continue;
                behind = span_bracket_end(s.at - 1, s.end);
                if (!behind)
                        break;
                arguments = (Span){ s.at, behind - 1 };
                if (calls[i].call == CALL_HEX) {
                        if (span_next_argument(&arguments, &first))
                                set_hex_bytes(p, first);
                } else {
                        error = add_values(p, arguments, calls[i].call == CALL_FLAGS, &f);
                        if (error == 0 && f)
                                error = add_zero(p, f, (Span){ argument.at, *at }, (Span){ behind, argument.end });
                        if (error < 0)
                                return error;
                }
                *at = behind;
                return 0;
        }
        *at += 1;
        return 0;
}

static int read_argument(Plan *p, Span argument) {
        const char *at = argument.at;
        int error = 0;

        while (error == 0 && at < argument.end) {
                if (*at == '"' || *at == '\'')
                        at = span_quoted_end(at, argument.end);
                else if (*at == '_' && (at == argument.at || !format_is_word(at[-1])))
                        error = read_call(p, argument, &at);
                else
                        at++;
        }
        return error;
}

/* Goes through conversions and arguments side by side; a '*' eats an argument of its own. printf(3) */
static void add_hex(Plan *p, const char *format, Span arguments) {
        Span argument;

        for (const char *at = format; (at = strchr(at, '%')); at++) {
                at++;
                for (; *at && strchr("-+ #0123456789.*hlLqjzt", *at); at++)
                        if (*at == '*' && !span_next_argument(&arguments, &argument))
                                return;
                if (*at == '\0')
                        return;
                if (*at == '%')
                        continue;
                if (!span_next_argument(&arguments, &argument))
                        return;
                if (*at == 'x' || *at == 'X')
                        set_hex(p, argument);
                else if (*at == 'p' && at[1] != 'I') /* %pI4: an address, in decimal */
                        set_hex_bytes(p, argument);
        }
}

int format_add_names(Plan *p, Span print) {
        _cleanup_free_ char *format = NULL;
        Span arguments = print, argument;
        int error = 0;

        if (!span_next_argument(&arguments, &argument))
                return 0;
        format = format_unquote(argument, &error);
        if (format)
                add_hex(p, format, arguments);
        for (Span rest = arguments; error == 0 && span_next_argument(&rest, &argument);)
                error = read_argument(p, argument);
        while (error == 0 && span_next_argument(&arguments, &argument))
                error = format_add_choice(p, argument);
        return error;
}
