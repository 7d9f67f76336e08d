/*
 * "( unsigned long)(( gfp_t)((((1UL))) << (5)))": what the preprocessor leaves of a flag. A recursive descent with one
 * function for all binary operators, by precedence. Enum names would be an error of the kernel's author (it wants
 * TRACE_DEFINE_ENUM), and make the expression no number.
 */
#include "daemon/kernel/tracefs/format-number.h"

#include <stddef.h>

#define DEPTH_MAX 200

typedef struct Operator {
        const char *text;
        int precedence;
        char code;
} Operator;

static const Operator operators[] = {
        { "<<", 4, '<' }, { ">>", 4, '>' }, { "*", 6, '*' }, { "/", 6, '/' }, { "%", 6, '%' },
        { "+", 5, '+' },  { "-", 5, '-' },  { "&", 3, '&' }, { "^", 2, '^' }, { "|", 1, '|' },
};

static bool parse_binary(Span *s, int lowest, unsigned depth, uint64_t *ret);

static bool parse_digits(Span *s, uint64_t *ret) {
        unsigned base = span_skip(s, "0x") || span_skip(s, "0X") ? 16 : *s->at == '0' ? 8 : 10;
        const char *begin = s->at;
        uint64_t value = 0;

        for (; s->at < s->end && isxdigit((unsigned char)*s->at); s->at++) {
                char c = *s->at;
                unsigned digit = isdigit((unsigned char)c) ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a') + 10;

                if (digit >= base)
                        return false;
                value = value * base + digit;
        }
        if (s->at == begin)
                return false;
        while (s->at < s->end && (*s->at == 'u' || *s->at == 'U' || *s->at == 'l' || *s->at == 'L'))
                s->at++;
        *ret = value;
        return s->at == s->end || !format_is_word(*s->at);
}

/* "(unsigned long)": words and stars; only behind it comes what is cast */
static bool skip_cast(Span *s) {
        Span t = *s;

        if (!span_skip(&t, "("))
                return false;
        t = (Span){ span_trim(t).at, t.end };
        if (span_is_empty(t) || isdigit((unsigned char)*t.at) || !format_is_word(*t.at))
                return false;
        while (t.at < t.end && (format_is_word(*t.at) || *t.at == ' ' || *t.at == '*'))
                t.at++;
        if (!span_skip(&t, ")"))
                return false;
        *s = t;
        return true;
}

static bool parse_unary(Span *s, unsigned depth, uint64_t *ret) {
        uint64_t value;

        s->at = span_trim(*s).at;
        if (span_is_empty(*s) || depth == DEPTH_MAX)
                return false;
        if (skip_cast(s) || span_skip(s, "+"))
                return parse_unary(s, depth + 1, ret);
        if (span_skip(s, "-") || span_skip(s, "~") || span_skip(s, "!")) {
                char sign = s->at[-1];

                if (!parse_unary(s, depth + 1, &value))
                        return false;
                *ret = sign == '-' ? -value : sign == '~' ? ~value : !value;
                return true;
        }
        if (span_skip(s, "(")) {
                if (!parse_binary(s, 1, depth + 1, &value))
                        return false;
                s->at = span_trim(*s).at;
                *ret = value;
                return span_skip(s, ")");
        }
        if (*s->at == '\'' && s->end - s->at >= 3 && s->at[1] != '\\' && s->at[2] == '\'') {
                *ret = (uint64_t)(int64_t)s->at[1];
                s->at += 3;
                return true;
        }
        return isdigit((unsigned char)*s->at) && parse_digits(s, ret);
}

static bool apply(char code, uint64_t left, uint64_t right, uint64_t *ret) {
        switch (code) {
        case '<':
                *ret = right < 64 ? left << right : 0;
                return true;
        case '>':
                *ret = right < 64 ? left >> right : 0;
                return true;
        case '+':
                *ret = left + right;
                return true;
        case '-':
                *ret = left - right;
                return true;
        case '*':
                *ret = left * right;
                return true;
        case '&':
                *ret = left & right;
                return true;
        case '^':
                *ret = left ^ right;
                return true;
        case '|':
                *ret = left | right;
                return true;
        default:
                if (right == 0)
                        return false;
                *ret = code == '/' ? left / right : left % right;
                return true;
        }
}

/* The operator at the front, if it binds at least as strongly; then *s is behind it. */
static const Operator *skip_operator(Span *s, int lowest) {
        s->at = span_trim(*s).at;
        for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
                if (operators[i].precedence >= lowest && span_skip(s, operators[i].text))
                        return &operators[i];
        return NULL;
}

static bool parse_binary(Span *s, int lowest, unsigned depth, uint64_t *ret) {
        uint64_t left, right;
        const Operator *o;

        if (!parse_unary(s, depth + 1, &left))
                return false;
        while ((o = skip_operator(s, lowest)))
                if (!parse_binary(s, o->precedence + 1, depth + 1, &right) || !apply(o->code, left, right, &left))
                        return false;
        *ret = left;
        return true;
}

bool format_number(Span expression, uint64_t *ret) {
        uint64_t value;

        if (!parse_binary(&expression, 1, 0, &value) || !span_is_empty(span_trim(expression)))
                return false;
        *ret = value;
        return true;
}
