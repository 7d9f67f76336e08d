/* Fields are numbers of 64 bits, signed or not, and a key can have both, from two events: 128 bits hold each of them, and all sums. */
#include "client/perfctl/count/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/memory.h"

const char *count_function_name(CountFunction f) {
        static const char *const names[] = { "sum", "avg", "min", "max" };

        return names[f];
}

const char *count_function_noun(CountFunction f) {
        static const char *const nouns[] = { "a sum", "an average", "a minimum", "a maximum" };

        return nouns[f];
}

void count_number_merge(CountNumber *c, CountFunction f, const CountNumber *more) {
        bool is_first = c->n == 0;

        if (more->n == 0)
                return;
        c->n += more->n;
        if (f == COUNT_SUM || f == COUNT_AVG)
                c->value += more->value;
        else if (is_first || (f == COUNT_MIN ? more->value < c->value : more->value > c->value))
                c->value = more->value;
}

void count_number_add(CountNumber *c, CountFunction f, uint64_t number, bool is_signed) {
        const CountNumber one = { .value = is_signed ? (CountWide)(int64_t)number : (CountWide)number, .n = 1 };

        count_number_merge(c, f, &one);
}

static long double average(const CountNumber *c) {
        return (long double)c->value / (long double)c->n;
}

int count_number_compare(const CountNumber *a, const CountNumber *b, CountFunction f) {
        if (a->n == 0 || b->n == 0)
                return (a->n == 0) - (b->n == 0);
        if (f == COUNT_AVG)
                return (average(a) < average(b)) - (average(a) > average(b));
        return (a->value < b->value) - (a->value > b->value);
}

/* printf(3) knows no such numbers. */
static char *digits(CountWide value) {
        unsigned __int128 rest = value < 0 ? -(unsigned __int128)value : (unsigned __int128)value;
        char text[48], *at = text + sizeof(text) - 1;

        *at = '\0';
        do
                *--at = (char)('0' + (int)(rest % 10));
        while ((rest /= 10) > 0);
        if (value < 0)
                *--at = '-';
        return must_have(strdup(at));
}

char *count_number_text(const CountNumber *c, CountFunction f) {
        char *text;

        if (c->n == 0)
                return must_have(strdup("-"));
        if (f != COUNT_AVG)
                return digits(c->value);
        must_have(asprintf(&text, "%.2Lf", average(c)) < 0 ? NULL : text);
        return text;
}

void count_number_put_json(Json *j, const CountNumber *c, CountFunction f) {
        char *text;

        json_put_name(j, count_function_name(f));
        if (c->n == 0)
                json_put_null(j);
        else if (f == COUNT_AVG)
                json_put_real(j, (double)average(c));
        else {
                text = digits(c->value);
                json_put_digits(j, text);
                free(text);
        }
}
