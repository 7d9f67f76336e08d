/*
 * A print format shows values, and not fields: one may be shown twice, "flags=0x3 (READ|WRITE)", in parts, "dev 8,0", or only by
 * what is computed of it. So for each field that run of conversions is chosen which says most of it: one with names before one
 * with a number. A number that is computed from a field is taken for the field only if the format calls it by the field's name, or
 * shows all its parts in one run; what else is computed has a meaning of its own, and the field is shown as it is.
 */
#include <ctype.h>
#include <string.h>

#include "client/print/format.h"

#define NOBODY SIZE_MAX
#define SEVERAL (SIZE_MAX - 1)

static size_t merge(size_t a, size_t b) {
        return a == NOBODY ? b : b == NOBODY || a == b ? a : SEVERAL;
}

/* The field that an expression shows: of names, of whose value; of a choice, that of its results, if one has any. */
static size_t owner(const PrintNode *node) {
        size_t who = NOBODY;

        switch ((PrintKind)node->kind) {
        case PRINT_FIELD:
        case PRINT_BITMASK:
                return node->field;
        case PRINT_LENGTH:
        case PRINT_NAME:
                return NOBODY;
        case PRINT_FLAGS:
        case PRINT_SYMBOLIC:
        case PRINT_HEX:
        case PRINT_HEX_STRING:
        case PRINT_ARRAY:
        case PRINT_DYNAMIC_ARRAY:
                return owner(node->first);
        case PRINT_CHOICE:
                who = merge(owner(node->first->next), owner(node->first->next->next));
                return who == NOBODY ? owner(node->first) : who;
        default:
                for (const PrintNode *n = node->first; n; n = n->next)
                        who = merge(who, owner(n));
                return who;
        }
}

static bool is_masked(const PrintNode *node) {
        return node->kind == PRINT_BINARY && node->code == '&';
}

/* Whether all of a field is shown: not shifted, not calculated with. */
static bool is_whole(const PrintNode *node) {
        switch ((PrintKind)node->kind) {
        case PRINT_FIELD:
        case PRINT_BITMASK:
                return true;
        case PRINT_CAST:
        case PRINT_HEX:
        case PRINT_HEX_STRING:
        case PRINT_ARRAY:
        case PRINT_DYNAMIC_ARRAY:
        case PRINT_SECONDS:
                return is_whole(node->first);
        case PRINT_FLAGS:
        case PRINT_SYMBOLIC:
                return is_whole(node->first) || (is_masked(node->first) && owner(node->first) < SEVERAL);
        case PRINT_CHOICE: {
                const PrintNode *yes = node->first->next, *no = yes->next;

                if (owner(yes) == NOBODY && owner(no) == NOBODY)
                        return is_whole(node->first);
                return (owner(yes) != NOBODY && is_whole(yes)) || (owner(no) != NOBODY && is_whole(no));
        }
        default:
                return false;
        }
}

static bool has_names(const PrintNode *node) {
        if (node->kind == PRINT_FLAGS || node->kind == PRINT_SYMBOLIC)
                return true;
        if (node->kind == PRINT_CAST)
                return has_names(node->first);
        return node->kind == PRINT_CHOICE &&
               (has_names(node->first->next) || has_names(node->first->next->next) ||
                (node->first->next->kind == PRINT_TEXT && node->first->next->next->kind == PRINT_TEXT));
}

static bool is_word(char c) {
        return isalnum((unsigned char)c) || c == '_';
}

/* What stands before the conversion ends in the field's name, "name=", "name: 0x". */
static bool is_called(const PrintConversion *c, const char *name) {
        size_t n = c->n_literal, length = strlen(name);

        if (n >= 2 && c->literal[n - 1] == 'x' && c->literal[n - 2] == '0')
                n -= 2;
        while (n > 0 && !is_word(c->literal[n - 1]))
                n--;
        return n >= length && memcmp(c->literal + n - length, name, length) == 0 &&
               (n == length || !is_word(c->literal[n - length - 1]));
}

/* "%d,%d", "%s%s": these belong together. */
static bool is_joined(const PrintConversion *c) {
        size_t n = c->n_literal;

        if (n >= 2 && c->literal[n - 1] == 'x' && c->literal[n - 2] == '0')
                n -= 2;
        for (size_t i = 0; i < n; i++)
                if (!memchr(",:.+-/;", c->literal[i], 7))
                        return false;
        return true;
}

/* 0: it does not show the field. */
static unsigned rank(const PrintFormat *f, PrintField run, const perfd_field *field) {
        const PrintConversion *first = &f->conversions[run.first];
        bool names = false, whole = false;

        for (size_t i = 0; i < run.n; i++) {
                names = names || (has_names(first[i].argument) && is_whole(first[i].argument));
                whole = whole || is_whole(first[i].argument);
        }
        if (names)
                return 4;
        if (is_called(first, field->name))
                return 3;
        return whole ? 2 : run.n > 1 ? 1 : 0;
}

static bool field_is_number(const perfd_field *f) {
        return f->kind != PERFD_TEXT && f->kind != PERFD_BYTES;
}

/* The field, or a cast that leaves its value. */
static bool is_plain(const PrintNode *node, const perfd_field *field) {
        PrintType t = node->type;
        bool is_signed = field->kind == PERFD_SIGNED;

        if (node->kind != PRINT_CAST)
                return node->kind == PRINT_FIELD;
        if (t.size != 0 && !t.is_pointer && (t.size < field->size || (t.size == field->size && t.is_signed != is_signed)))
                return false;
        return is_plain(node->first, field);
}

/* perfd_value_render() makes the same of it, and faster. */
static bool is_known(const PrintFormat *f, PrintField run, const perfd_field *field) {
        const PrintConversion *c = &f->conversions[run.first];

        if (run.n != 1 || !is_plain(c->argument, field))
                return false;
        if (!field_is_number(field))
                return c->code == 's' && !c->precision_is_star && c->precision < 0;
        if (field->n_values > 0 || field->count != 1)
                return false;
        if (c->zeros || c->alternate || c->precision >= 0 || c->size < field->size)
                return false;
        if (field->hex || field->kind == PERFD_POINTER)
                return c->code == 'x' || (c->code == 'p' && c->n_letters == 0);
        return (c->code == 'd' && field->kind == PERFD_SIGNED) || (c->code == 'u' && field->kind == PERFD_UNSIGNED) ||
               (c->code == 'd' && field->kind == PERFD_UNSIGNED && c->size > field->size);
}

/* The result of a system call is a number with a sign: its format, "0x%lx", is right for addresses only. */
static bool is_result(const perfd_event *event, const perfd_field *field) {
        static const char exit[] = "syscalls:sys_exit_";

        return field->kind == PERFD_SIGNED && strcmp(field->name, "ret") == 0 && event->event &&
               strncmp(event->event, exit, sizeof(exit) - 1) == 0;
}

/* Whether an expression has no other field in it. */
static bool is_of_field(const PrintNode *node, size_t field) {
        if ((node->kind == PRINT_FIELD || node->kind == PRINT_LENGTH || node->kind == PRINT_BITMASK) && node->field != field)
                return false;
        for (const PrintNode *n = node->first; n; n = n->next)
                if (!is_of_field(n, field))
                        return false;
        return true;
}

/* A pointer may be shown by its name, which is of who asks. */
static bool is_of_number(const PrintFormat *f, const PrintField *run, const perfd_field *field, size_t i) {
        for (size_t k = run->first; k < run->first + run->n; k++) {
                const PrintConversion *c = &f->conversions[k];

                if (c->code == 'p' || !c->argument || !is_of_field(c->argument, i))
                        return false;
                for (size_t s = 0; s < PRINT_STARS; s++)
                        if (c->stars[s] && !is_of_field(c->stars[s], i))
                                return false;
        }
        return run->n > 0 && field->count == 1 && field_is_number(field);
}

void print_choose_fields(PrintFormat *f, const perfd_event *event) {
        for (size_t i = 0; i < f->n; i++) {
                PrintField run = { .first = i };
                size_t who = f->conversions[i].argument ? owner(f->conversions[i].argument) : NOBODY;
                const perfd_field *field;
                PrintField *known;

                if (who >= SEVERAL)
                        continue;
                do
                        run.n++;
                while (i + run.n < f->n && f->conversions[i + run.n].argument && is_joined(&f->conversions[i + run.n]) &&
                       owner(f->conversions[i + run.n].argument) == who);
                i += run.n - 1;
                field = &event->fields[who];
                known = &f->fields[who];
                if (rank(f, run, field) > (known->n > 0 ? rank(f, *known, field) : 0))
                        *known = run;
        }
        for (size_t i = 0; i < event->n_fields; i++)
                if (f->fields[i].n > 0 && (is_result(event, &event->fields[i]) || is_known(f, f->fields[i], &event->fields[i])))
                        f->fields[i].n = 0;
        for (size_t i = 0; i < event->n_fields; i++)
                f->fields[i].is_of_number = is_of_number(f, &f->fields[i], &event->fields[i], i);
}
