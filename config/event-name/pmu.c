/*
 * What a PMU is asked for in its own words: rNNN for the core PMU, pmu/term,.../ for any. Which terms there are stands
 * in sysfs (daemon/kernel/pmu/pmu.h); here it is only form. Modifiers follow the closing slash, with or without a colon.
 */
#include <string.h>

#include "config/event-name/forms.h"
#include "daemon/base/array.h"
#include "daemon/base/cleanup.h"

#define HEX_DIGITS "0123456789abcdefABCDEF"
#define RAW_DIGITS_MAX 16

/* "1a8" or "0x1a8" in text[from, to). */
static bool raw_number(const char *text, size_t from, size_t to, uint64_t *ret) {
        char digits[2 + RAW_DIGITS_MAX + 1] = "0x";

        if (to - from > 2 && text[from] == '0' && (text[from + 1] == 'x' || text[from + 1] == 'X'))
                from += 2;
        if (to - from > RAW_DIGITS_MAX)
                return false;
        memcpy(digits + 2, text + from, to - from);
        return event_number(digits, 0, 2 + to - from, ret);
}

bool event_claims_raw(const char *text) {
        size_t from = 1, n;

        if (text[0] != 'r')
                return false;
        if (text[1] == '0' && (text[2] == 'x' || text[2] == 'X'))
                from = 3;
        n = strspn(text + from, HEX_DIGITS);
        return n > 0 && (text[from + n] == '\0' || text[from + n] == ':');
}

int event_parse_raw(const char *text, EventName *ret, Explanation *e) {
        size_t end = strcspn(text, ":");

        ret->kind = EVENT_NAME_RAW;
        if (!raw_number(text, 1, end, &ret->config))
                return event_refuse_at(e, text, 1, "a raw event has at most %d hexadecimal digits", RAW_DIGITS_MAX);
        return text[end] ? event_modifiers_parse(text, end + 1, &ret->modifiers, e) : 0;
}

/* A slash, and no colon before it. */
bool event_claims_pmu(const char *text) {
        size_t n = strcspn(text, ":/");

        return text[n] == '/';
}

/* What may stand in a PMU's name, in a term's name and in its value. */
static bool is_name(char c) {
        return c && strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:*?[]!+@", c);
}

/* The value of a term, text[from, to), perhaps in quotes, which are not part of it. */
static int value_parse(const char *text, size_t from, size_t to, EventTerm *term, Explanation *e) {
        if (from == to)
                return event_refuse_at(e, text, from, "the term's value is missing after the '='");
        if (text[from] == '\'' || text[from] == '"') {
                if (to - from < 3 || text[to - 1] != text[from])
                        return event_refuse_at(e, text, from, to - from < 3 ? "the quotes are empty or not closed"
                                                                            : "the quote ends before the term does");
                return event_take(text, from + 1, to - 1, &term->text);
        }
        for (size_t i = from; i < to; i++)
                if (!is_name(text[i]))
                        return event_refuse_at(e, text, i, "this character is not part of a term's value");
        term->is_number = event_number(text, from, to, &term->value);
        if (!term->is_number && strspn(text + from, "0123456789") == to - from)
                return event_refuse_at(e, text, from, "this number does not fit in 64 bits");
        if (!term->is_number && to - from > 2 && text[from] == '0' && (text[from + 1] | 32) == 'x')
                return event_refuse_at(e, text, from, "this is not a 64-bit hexadecimal number");
        return event_take(text, from, to, &term->text);
}

/* "r1a8" as a term is config, as in perf-list(1); without a digit it is a name, such as "read". */
static bool raw_term(const char *text, size_t from, size_t to, EventTerm *term) {
        bool has_digit = false;

        for (size_t i = from + 1; i < to; i++)
                has_digit |= text[i] >= '0' && text[i] <= '9';
        return text[from] == 'r' && has_digit && raw_number(text, from + 1, to, &term->value);
}

/* Fills a null image, which the caller frees in every case. */
static int term_parse(const char *text, size_t from, size_t to, EventTerm *term, Explanation *e) {
        const char *equals = memchr(text + from, '=', to - from);
        size_t end = equals ? (size_t)(equals - text) : to;
        int r;

        term->position = from;
        if (from == end)
                return event_refuse_at(e, text, from, "a term's name is missing");
        for (size_t i = from; i < end; i++)
                if (!is_name(text[i]))
                        return event_refuse_at(e, text, i, "this character is not part of a term's name");
        if (!equals && raw_term(text, from, to, term)) {
                term->is_number = true;
                term->name = strdup("config");
                return term->name ? event_take(text, from + 1, to, &term->text) : error_origin(-ENOMEM);
        }
        r = event_take(text, from, end, &term->name);
        if (r == 0 && equals)
                r = value_parse(text, end + 1, to, term, e);
        if (r == 0 && term->text && strcmp(term->name, "name") == 0 && strpbrk(term->text, "*?["))
                return event_refuse_at(e, text, end + 1 + strcspn(text + end + 1, "*?["), "a name with * ? or [ would be a glob "
                        "in requests");
        return r;
}

/* Where the term that begins at `from` ends: a comma in quotes does not end it. */
static size_t term_end(const char *text, size_t from, size_t close) {
        char quote = '\0';

        for (size_t i = from; i < close; i++) {
                if (quote && text[i] == quote)
                        quote = '\0';
                else if (!quote && (text[i] == '\'' || text[i] == '"'))
                        quote = text[i];
                else if (!quote && text[i] == ',')
                        return i;
        }
        return close;
}

static int terms_parse(const char *text, size_t from, size_t close, EventName *ret, Explanation *e) {
        if (from == close) /* "intel_pt//": the PMU's own event */
                return 0;
        for (;;) {
                size_t end = term_end(text, from, close);
                int r;

                if (!ARRAY_ROOM(ret->terms, ret->n_terms))
                        return error_origin(-ENOMEM);
                ret->terms[ret->n_terms] = (EventTerm){ .position = from };
                r = term_parse(text, from, end, &ret->terms[ret->n_terms++], e);
                if (r != 0 || end == close)
                        return r;
                from = end + 1;
        }
}

int event_parse_pmu(const char *text, EventName *ret, Explanation *e) {
        size_t slash = strcspn(text, "/"), close, behind;
        int r;

        ret->kind = EVENT_NAME_PMU;
        if (slash == 0)
                return event_refuse_at(e, text, 0, "the PMU's name is missing before the slash");
        for (size_t i = 0; i < slash; i++)
                if (!is_name(text[i]) || (i == 0 && text[i] == '.'))
                        return event_refuse_at(e, text, i, "this character is not part of a PMU's name");
        close = slash + 1 + strcspn(text + slash + 1, "/");
        if (text[close] == '\0')
                return event_refuse_at(e, text, close, "the slash after the PMU's terms is missing");
        r = event_take(text, 0, slash, &ret->group);
        if (r == 0)
                r = terms_parse(text, slash + 1, close, ret, e);
        behind = close + 1;
        if (r != 0 || text[behind] == '\0')
                return r;
        return event_modifiers_parse(text, text[behind] == ':' ? behind + 1 : behind, &ret->modifiers, e);
}
