/*
 * Names, numbers and operators. Numbers are as in C, so that what a person copies from a header or from strace(1) means
 * the same here; what the language does not have (arithmetic, =, and, or) is answered with what to write instead.
 */
#include "daemon/route/filter-lex.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "config/text/words.h"

/* Longer spellings first. */
static const struct {
        char spelling[3];
        FilterKind kind;
} operators[] = {
        { "==", FILTER_EQUAL },         { "!=", FILTER_UNEQUAL }, { "<=", FILTER_LESS_EQUAL },
        { ">=", FILTER_GREATER_EQUAL }, { "&&", FILTER_AND },     { "||", FILTER_OR },
        { "<", FILTER_LESS },           { ">", FILTER_GREATER },  { "~", FILTER_GLOB },
        { "&", FILTER_BIT_AND },        { "|", FILTER_BIT_OR },   { "!", FILTER_NOT },
};

const char *filter_operator(FilterKind k) {
        for (size_t i = 0; i < ARRAY_SIZE(operators); i++)
                if (operators[i].kind == k)
                        return operators[i].spelling;
        return "";
}

static bool is_name_begin(char c) {
        return isalpha((unsigned char)c) || c == '_';
}

static bool is_name(char c) {
        return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/*
 * A unit that other options take, behind a number: fields are compared as the kernel wrote them, and which unit that is, no format
 * says. 0: it is none.
 */
static int refuse_unit(const Lexer *l, const char *at, uint64_t number, Explanation *e) {
        static const struct {
                char name[4];
                uint64_t factor;
                const char *of;
        } units[] = {
                { "ns", 1, "nanoseconds" },      { "us", 1000, "nanoseconds" },        { "ms", 1000000, "nanoseconds" },
                { "s", 1000000000, "nanoseconds" }, { "m", 60000000000, "nanoseconds" }, { "min", 60000000000, "nanoseconds" },
                { "h", 3600000000000, "nanoseconds" }, { "d", 86400000000000, "nanoseconds" }, { "B", 1, "bytes" },
                { "k", 1U << 10, "bytes" },      { "K", 1U << 10, "bytes" },           { "KB", 1U << 10, "bytes" },
                { "KiB", 1U << 10, "bytes" },    { "M", 1U << 20, "bytes" },           { "MB", 1U << 20, "bytes" },
                { "MiB", 1U << 20, "bytes" },    { "G", 1U << 30, "bytes" },           { "GB", 1U << 30, "bytes" },
                { "GiB", 1U << 30, "bytes" },
        };
        size_t n = 0;

        while (is_name(at[n]))
                n++;
        for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
                uint64_t product;

                if (strlen(units[i].name) != n || memcmp(units[i].name, at, n) != 0 ||
                    __builtin_mul_overflow(number, units[i].factor, &product))
                        continue;
                return filter_refuse(e, (size_t)(at - l->text), "'%.*s': numbers have no units here, and are in that of the field: in %s write "
                                     "%" PRIu64, (int)n, at, units[i].of, product);
        }
        return 0;
}

static int next_number(Lexer *l, Token *ret, Explanation *e) {
        const char *begin = l->text + l->at, *s = begin;
        bool negative = *s == '-';
        unsigned base = 10;
        uint64_t number = 0;
        int r;

        s += negative;
        if (s[0] == '0' && (s[1] | 0x20) == 'x') {
                base = 16;
                s += 2;
        } else if (s[0] == '0' && isdigit((unsigned char)s[1])) {
                base = 8;
                s++;
        }
        if (!is_name(*s))
                return filter_refuse(e, l->at, "0x must be followed by hexadecimal digits");
        for (; is_name(*s); s++) {
                unsigned digit = isdigit((unsigned char)*s)   ? (unsigned)(*s - '0')
                                 : isxdigit((unsigned char)*s) ? (unsigned)((*s | 0x20) - 'a' + 10)
                                                               : 16;

                if (digit >= base && base == 10 && (r = refuse_unit(l, s, number, e)) != 0)
                        return r;
                if (digit >= base)
                        return filter_refuse(e, (size_t)(s - l->text), "'%c' is not a digit of a%s number%s", *s,
                                             base == 16   ? " hexadecimal"
                                             : base == 8 ? "n octal"
                                                         : " decimal",
                                             base == 8 ? ", which begins with 0" : "");
                if (number > (UINT64_MAX - digit) / base)
                        return filter_refuse(e, l->at, "the number does not fit in 64 bits");
                number = number * base + digit;
        }
        if (negative && number > (uint64_t)1 << 63)
                return filter_refuse(e, l->at, "the number does not fit in 64 bits");
        negative = negative && number != 0;
        ret->kind = TOKEN_LEAF;
        ret->length = (size_t)(s - begin);
        ret->node = (FilterNode){ .kind = FILTER_NUMBER, .number = negative ? -number : number, .negative = negative };
        return 0;
}

static void next_name(Lexer *l, Token *ret) {
        const char *begin = l->text + l->at;
        Filter *f = l->filter;
        char *name = f->names + f->n_names;
        size_t n = 1;

        while (is_name(begin[n]))
                n++;
        memcpy(name, begin, n); /* the pool is zero */
        f->n_names += n + 1;
        ret->kind = TOKEN_LEAF;
        ret->length = n;
        ret->node = (FilterNode){ .kind = FILTER_NAME, .name = name, .element = -1 };
}

static int next_sign(Lexer *l, Token *ret, Explanation *e) {
        static const struct {
                char sign;
                TokenKind kind;
        } signs[] = { { '(', TOKEN_OPEN }, { ')', TOKEN_CLOSE }, { '[', TOKEN_INDEX }, { ']', TOKEN_INDEX_END } };
        const char *s = l->text + l->at;

        for (size_t i = 0; i < ARRAY_SIZE(signs); i++)
                if (*s == signs[i].sign) {
                        ret->kind = signs[i].kind;
                        ret->length = 1;
                        return 0;
                }
        for (size_t i = 0; i < ARRAY_SIZE(operators); i++)
                if (strncmp(s, operators[i].spelling, strlen(operators[i].spelling)) == 0) {
                        ret->kind = TOKEN_OPERATOR;
                        ret->length = strlen(operators[i].spelling);
                        ret->node = (FilterNode){ .kind = operators[i].kind };
                        return 0;
                }
        if (s[0] == '=' && s[1] == '~')
                return filter_refuse(e, l->at, "there is no =~ and no regular expression: write ~ with a pattern, as in "
                                     "comm ~ \"nginx*\"");
        if (*s == '=')
                return filter_refuse(e, l->at, "found a single '=': write == to compare");
        if (*s == '+' && l->at > 0 && isalpha((unsigned char)s[-1]))
                return filter_refuse(e, l->at, "found '+', but there is no arithmetic: the name of a value that is no word stands "
                                     "in quotes, as in prev_state == \"R+\"");
        if (strchr("+-*/%^", *s))
                return filter_refuse(e, l->at, "found '%c', but there is no arithmetic: only & and | work on numbers%s", *s,
                                     *s == '-' ? ", and a - must be directly before digits" : "");
        return filter_refuse(e, l->at, "found %s: expected a name, a number, a text in quotes, or an "
                "operator", QUOTE(((char[2]){ *s })));
}

int lexer_next(Lexer *l, Token *ret, Explanation *e) {
        Token token = { .kind = TOKEN_END };
        const char *s;
        int k = 0;

        l->at += strspn(l->text + l->at, " \t\r\n");
        s = l->text + l->at;
        token.position = l->at;
        if (isdigit((unsigned char)s[0]) || (s[0] == '-' && isdigit((unsigned char)s[1])))
                k = next_number(l, &token, e);
        else if (*s == '"' || *s == '\'')
                k = lexer_next_text(l, &token, e);
        else if (is_name_begin(*s))
                next_name(l, &token);
        else if (*s)
                k = next_sign(l, &token, e);
        if (k != 0)
                return k;
        token.node.position = (uint32_t)token.position;
        l->at += token.length;
        *ret = token;
        return 0;
}
