/*
 * Names come from walking the whole expression tree, because __print_flags() hides in conditions and casts. Only names
 * of a field's own value are taken: those of a part that was shifted out of it would be wrong for the whole.
 */
#include "daemon/kernel/format-names.h"

#include <errno.h>
#include <event-parse.h>
#include <string.h>

/*
 * The field that an argument shows: itself, cast, masked, one element of it or handed over as an array. Not shifted or
 * added to, for then the names would be those of another number.
 */
static PlanField *shown_field(Plan *p, const struct tep_print_arg *arg) {
        const char *name = NULL;
        PlanField *f;

        if (!arg)
                return NULL;
        switch (arg->type) {
        case TEP_PRINT_FIELD:
                name = arg->field.name;
                break;
        case TEP_PRINT_DYNAMIC_ARRAY:
                name = arg->dynarray.field ? arg->dynarray.field->name : NULL;
                break;
        case TEP_PRINT_TYPE:
                return shown_field(p, arg->typecast.item);
        case TEP_PRINT_OP:
                if (strcmp(arg->op.op, "[") == 0)
                        return shown_field(p, arg->op.left);
                if (strcmp(arg->op.op, "&") != 0)
                        return NULL;
                f = shown_field(p, arg->op.left);
                return f ? f : shown_field(p, arg->op.right);
        default:
                return NULL;
        }
        for (size_t i = 0; name && i < p->n_fields; i++)
                if (strcmp(p->fields[i].name, name) == 0)
                        return &p->fields[i];
        return NULL;
}

/* The value as the field's numbers come: cut to its size and widened by its sign. */
static uint64_t field_value(const PlanField *f, uint64_t value) {
        unsigned unused = 64 - 8 * f->element_size;

        return f->kind == FIELD_SIGNED ? (uint64_t)((int64_t)(value << unused) >> unused) : value << unused >> unused;
}

/* The first list of a field stays: a second one shows it from another side, under a condition. */
static int add_values(Plan *p, const struct tep_print_arg *arg, const struct tep_print_flag_sym *values,
                      const char *delimiter) {
        PlanField *f = shown_field(p, arg);

        if (!f || f->n_values > 0 || !field_is_number(f))
                return 0;
        for (; values; values = values->next) {
                if (!values->value || !values->str)
                        continue;
                if (delimiter && strcmp(values->str, "0") == 0) /* { 0, NULL }, the end of the kernel's own list */
                        continue;
                if (plan_field_add_value(f, field_value(f, strtoull(values->value, NULL, 0)), values->str) < 0)
                        return -ENOMEM;
        }
        if (!delimiter)
                return 0;
        f->flags = true;
        f->delimiter = strdup(delimiter);
        return f->delimiter ? 0 : -ENOMEM;
}

/* `flags ? __print_flags(flags, ...) : "none"` names the zero, if the list does not. */
static int add_zero(Plan *p, const struct tep_print_arg *choice) {
        const struct tep_print_arg *otherwise;
        PlanField *f;

        if (!choice || choice->type != TEP_PRINT_OP || strcmp(choice->op.op, ":") != 0 || !choice->op.left)
                return 0;
        otherwise = choice->op.right;
        if (choice->op.left->type != TEP_PRINT_FLAGS || !otherwise || otherwise->type != TEP_PRINT_ATOM ||
            !otherwise->atom.atom || !*otherwise->atom.atom)
                return 0;
        f = shown_field(p, choice->op.left->flags.field);
        if (!f || f->n_values == 0)
                return 0;
        for (size_t i = 0; i < f->n_values; i++)
                if (f->values[i].value == 0)
                        return 0;
        return plan_field_add_value(f, 0, otherwise->atom.atom);
}

static void set_hex(Plan *p, const struct tep_print_arg *arg) {
        PlanField *f = shown_field(p, arg);

        if (f)
                f->hex = true;
}

/* __print_hex() and %pU: a char array that is shown so is no text (uuids), and a zero does not end it. */
static void set_hex_bytes(Plan *p, const struct tep_print_arg *arg) {
        PlanField *f = shown_field(p, arg);

        if (!f)
                return;
        f->hex = true;
        if (f->kind == FIELD_TEXT)
                f->kind = FIELD_BYTES;
}

static int add_names(Plan *p, const struct tep_print_arg *arg) {
        int error = 0;

        for (; arg && error == 0; arg = arg->next)
                switch (arg->type) {
                case TEP_PRINT_FLAGS:
                        error = add_values(p, arg->flags.field, arg->flags.flags,
                                           arg->flags.delim ? arg->flags.delim : "|");
                        break;
                case TEP_PRINT_SYMBOL:
                        error = add_values(p, arg->symbol.field, arg->symbol.symbols, NULL);
                        break;
                case TEP_PRINT_HEX:
                case TEP_PRINT_HEX_STR:
                        set_hex_bytes(p, arg->hex.field);
                        break;
                case TEP_PRINT_TYPE:
                        error = add_names(p, arg->typecast.item);
                        break;
                case TEP_PRINT_OP:
                        error = add_names(p, arg->op.left);
                        if (error == 0)
                                error = add_names(p, arg->op.right);
                        if (error == 0 && strcmp(arg->op.op, "?") == 0)
                                error = add_zero(p, arg->op.right);
                        break;
                default:
                        break;
                }
        return error;
}

/* Goes through conversions and arguments side by side; a '*' eats an argument of its own. printf(3) */
static void add_hex(Plan *p, const char *format, const struct tep_print_arg *arg) {
        for (const char *at = format; arg && (at = strchr(at, '%')); at++) {
                at++;
                for (; *at && strchr("-+ #0123456789.*hlLqjzt", *at); at++)
                        if (*at == '*' && arg)
                                arg = arg->next;
                if (*at == '\0')
                        return;
                if (*at == '%')
                        continue;
                if (*at == 'x' || *at == 'X')
                        set_hex(p, arg);
                else if (*at == 'p' && at[1] != 'I') /* %pI4: an address, in decimal */
                        set_hex_bytes(p, arg);
                arg = arg ? arg->next : NULL;
        }
}

int format_add_names(Plan *p, const struct tep_event *event) {
        int error = add_names(p, event->print_fmt.args);

        if (error < 0)
                return error;
        if (event->print_fmt.format)
                add_hex(p, event->print_fmt.format, event->print_fmt.args);
        return 0;
}
