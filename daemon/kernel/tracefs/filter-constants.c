/*
 * The kernel parses a filter, and says what is wrong with its form (kernel/trace/trace_events_filter.c); what it does not say is that
 * a constant does not fit: it keeps as many bits of a number as the field has, so that of a u8 300 is 44. Comparisons are always
 * FIELD OPERATOR CONSTANT, so that no more than these three words is understood here.
 */
#include "daemon/kernel/tracefs/filter-constants.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "config/text/words.h"
#include "daemon/base/cleanup.h"

#define COMM_SIZE 16 /* TASK_COMM_LEN, with the zero behind it */

typedef struct Comparison {
        char field[64], operator[3];
        const char *constant;
        size_t n_constant; /* without its quotes */
        bool is_text;
} Comparison;

static const char *skip_blanks(const char *at) {
        return at + strspn(at, " \t\n");
}

static size_t word_length(const char *at) {
        size_t n = 0;

        while (isalnum((unsigned char)at[n]) || at[n] == '_' || at[n] == '.')
                n++;
        return n;
}

/* Behind the text that begins with this quote. */
static const char *skip_text(const char *at) {
        const char *end = strchr(at + 1, *at);

        return end ? end + 1 : at + strlen(at);
}

/* The three words that begin here; NULL: they do not. Else the end. */
static const char *read_comparison(const char *at, Comparison *ret) {
        static const char *const operators[] = { "==", "!=", "<=", ">=", "<", ">", "&", "~" };
        size_t n = word_length(at), k = 0;

        if (n == 0 || n >= sizeof(ret->field))
                return NULL;
        memcpy(ret->field, at, n);
        ret->field[n] = '\0';
        at = skip_blanks(at + n);
        while (k < ARRAY_SIZE(operators) && strncmp(at, operators[k], strlen(operators[k])) != 0)
                k++;
        if (k == ARRAY_SIZE(operators) || strncmp(at, "&&", 2) == 0)
                return NULL;
        strcpy(ret->operator, operators[k]);
        at = skip_blanks(at + strlen(operators[k]));
        ret->is_text = *at == '"' || *at == '\'';
        ret->constant = at + ret->is_text;
        ret->n_constant = ret->is_text ? strcspn(at + 1, *at == '"' ? "\"" : "'") : (size_t)(*at == '-') + word_length(at + (*at == '-'));
        return ret->is_text ? skip_text(at) : at + ret->n_constant;
}

static bool read_number(const Comparison *c, uint64_t *ret, bool *ret_is_negative) {
        char text[32], *end;

        if (c->is_text || c->n_constant == 0 || c->n_constant >= sizeof(text))
                return false;
        memcpy(text, c->constant, c->n_constant);
        text[c->n_constant] = '\0';
        *ret_is_negative = *text == '-';
        if (!isdigit((unsigned char)text[*ret_is_negative]))
                return false;
        errno = 0;
        *ret = strtoull(text + *ret_is_negative, &end, 0);
        return *end == '\0' && errno == 0;
}

static int refuse_at(const char *filter, const Comparison *c, int r, Explanation *e) {
        if (e)
                e->position = 1 + (unsigned)(c->constant - filter);
        return r;
}

/* In hexadecimal a negative number may be written by its bits. */
static int check_number(const PlanField *f, const char *filter, const Comparison *c, Explanation *e) {
        unsigned bits = 8 * f->element_size;
        bool is_negative;
        uint64_t number, kept, most;

        if (f->place != PLACE_FIXED || f->count != 1 || bits >= 64 || f->kind == FIELD_TEXT || f->kind == FIELD_BYTES ||
            !read_number(c, &number, &is_negative))
                return 0;
        most = ((uint64_t)1 << bits) - 1;
        if (is_negative ? number <= (most >> 1) + 1 : number <= most)
                return 0;
        kept = (is_negative ? -number : number) & most;
        return refuse_at(filter, c, refuse(e, REFUSED_INVALID, "bad-filter", "the filter %s compares %s, which has %u bits, with a number that has "
                                           "more: the kernel would compare it with %" PRIu64, QUOTE(filter), QUOTE(f->name), bits, kept), e);
}

static int check_cpu(const char *filter, const Comparison *c, uint32_t n_cpus, Explanation *e) {
        bool is_negative;
        uint64_t number;

        if (n_cpus == 0 || !read_number(c, &number, &is_negative) || is_negative)
                return 0;
        if (!(strcmp(c->operator, "==") == 0 || strcmp(c->operator, ">=") == 0 ? number >= n_cpus : *c->operator == '>' && number + 1 >= n_cpus))
                return 0;
        return refuse_at(filter, c, refuse(e, REFUSED_INVALID, "bad-filter", "the filter %s can never match: the CPUs of this host are 0 to %u",
                                           QUOTE(filter), n_cpus - 1), e);
}

static int check_comm(const char *name, const char *filter, const Comparison *c, Explanation *e) {
        size_t n = 0;

        if (!c->is_text || (strcmp(c->operator, "==") != 0 && *c->operator != '~') || strcspn(c->constant, "\\[") < c->n_constant)
                return 0;
        for (size_t i = 0; i < c->n_constant; i++)
                n += *c->operator != '~' || c->constant[i] != '*';
        if (n < COMM_SIZE)
                return 0;
        return refuse_at(filter, c, refuse(e, REFUSED_INVALID, "bad-filter", "the filter %s can never match: the kernel cuts the names of threads to "
                                           "%d bytes, and this one of %s needs %zu: write its beginning, as in %s ~ \"name*\"", QUOTE(filter), COMM_SIZE - 1,
                                           QUOTE(name), n, name), e);
}

static bool ends_with_comm(const char *name) {
        size_t n = strlen(name);

        return n >= 4 && strcmp(name + n - 4, "comm") == 0;
}

/* What each event has beside its own fields: trace_define_generic_fields(). */
static int check_generic(const char *filter, const Comparison *c, uint32_t n_cpus, Explanation *e) {
        if (strcmp(c->field, "cpu") == 0 || strcmp(c->field, "CPU") == 0)
                return check_cpu(filter, c, n_cpus, e);
        return strcmp(c->field, "comm") == 0 || strcmp(c->field, "COMM") == 0 ? check_comm(c->field, filter, c, e) : 0;
}

int filter_constants_check(const Plan *plan, const char *filter, uint32_t n_cpus, Explanation *e) {
        const char *at = filter;
        int r = 0;

        while (*at && r == 0) {
                Comparison c;
                const char *end = read_comparison(at, &c);
                const PlanField *f = end && plan ? plan_find(plan, c.field) : NULL;

                if (!end) {
                        at = *at == '"' || *at == '\'' ? skip_text(at) : at + (word_length(at) > 0 ? word_length(at) : 1);
                        continue;
                }
                if (!f)
                        r = check_generic(filter, &c, n_cpus, e);
                else if (f->kind == FIELD_TEXT)
                        r = f->place == PLACE_FIXED && f->count == COMM_SIZE && ends_with_comm(f->name) ? check_comm(f->name, filter, &c, e) : 0;
                else
                        r = check_number(f, filter, &c, e);
                at = end;
        }
        return r;
}

static int refuse_form(const char *filter, size_t at, const char *why, Explanation *e) {
        (void)refuse(e, REFUSED_INVALID, "bad-filter", "the filter %s: %s", QUOTE(filter), why);
        if (e)
                e->position = 1 + (unsigned)at;
        return REFUSED_INVALID;
}

int filter_equals_check(const char *filter, Explanation *e) {
        for (const char *at = filter; *at;) {
                if (*at == '"' || *at == '\'')
                        at = skip_text(at);
                else if (strchr("=!<>", *at) && at[1] == '=')
                        at += 2;
                else if (*at == '=')
                        return refuse_form(filter, (size_t)(at - filter), "found '=', expected '=='", e);
                else
                        at++;
        }
        return 0;
}

int filter_form_check(const char *filter, Explanation *e) {
        size_t depth = 0, end = 0; /* behind the last sign that is no blank */
        int r = filter_equals_check(filter, e);
        bool is_text = false;

        for (const char *at = filter; *at && r == 0;) {
                const char *next = at + 1;

                is_text = *at == '"' || *at == '\'' || (is_text && isspace((unsigned char)*at));
                if (*at == '"' || *at == '\'') {
                        next = skip_text(at);
                        if (next == at + 1 || next[-1] != *at)
                                return refuse_form(filter, (size_t)(at - filter), "the text that begins here has no end", e);
                } else if (*at == '(')
                        depth++;
                else if (*at == ')' && depth-- == 0)
                        return refuse_form(filter, (size_t)(at - filter), "found ')' without '('", e);
                if (!isspace((unsigned char)*at))
                        end = (size_t)(next - filter);
                at = next;
        }
        if (r == 0 && end > 0 && !is_text && strchr("=!<>&|~", filter[end - 1]))
                return refuse_form(filter, end, "something is missing at its end", e);
        return r == 0 && depth > 0 ? refuse_form(filter, end, "found the end, expected ')'", e) : r;
}
