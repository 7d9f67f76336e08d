/*
 * Texts in quotes. A backslash makes the next character mean itself, so that \* is a star and not a pattern; what a
 * letter or digit behind it could mean in some language and does not mean here is refused, because a text that silently
 * never matches is the worst answer.
 */
#include "daemon/route/filter-lex.h"

#include <ctype.h>
#include <string.h>

#include "config/text/words.h"

typedef struct TextReader {
        const char *text;
        size_t at;     /* of the next character */
        size_t begin;  /* of the opening quote */
        char quote;
} TextReader;

static int hex_digit(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        c = (char)(c | 0x20);
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What stands behind a backslash. */
static int read_escape(TextReader *r, uint8_t *ret_byte, Explanation *e) {
        size_t position = r->at - 1;
        char c = r->text[r->at];

        if (c == 'x') {
                int high = hex_digit(r->text[r->at + 1]), low = high < 0 ? -1 : hex_digit(r->text[r->at + 2]);

                if (low < 0)
                        return filter_refuse(e, position, "\\x must be followed by two hexadecimal digits, as in \\x1b");
                if (high == 0 && low == 0)
                        return filter_refuse(e, position, "\\x00 never matches: a zero byte ends a text");
                r->at += 3;
                *ret_byte = (uint8_t)(high << 4 | low);
                return 0;
        }
        if (isalnum((unsigned char)c)) {
                static const char letters[] = "ntr", meant[] = "\n\t\r";
                const char *found = strchr(letters, c);

                if (!found)
                        return filter_refuse(e, position, "unknown escape \\%c: expected \\n, \\t, \\r, \\xNN, or a backslash "
                                "before a character that is not a letter or digit, as in \\\" \\\\ \\*",
                                             c);
                c = meant[found - letters];
        }
        r->at++;
        *ret_byte = (uint8_t)c;
        return 0;
}

/* One character; *ret_mark: it stands there as it is, so that * ? [ ] - ! ^ are not themselves. */
static int read_byte(TextReader *r, uint8_t *ret_byte, bool *ret_mark, Explanation *e) {
        char c = r->text[r->at];

        if (c == '\0' || (c == '\\' && r->text[r->at + 1] == '\0'))
                return filter_refuse(e, r->begin, "unterminated text: expected another %c at the end", r->quote);
        r->at++;
        *ret_mark = c != '\\';
        if (c == '\\')
                return read_escape(r, ret_byte, e);
        *ret_byte = (uint8_t)c;
        return 0;
}

static int set_end(TextReader *r, size_t open, Explanation *e) {
        if (r->text[r->at] == r->quote)
                return filter_refuse(e, open, "a [ begins a set of characters and needs its ]: "
                                     "write \\[ for the character itself");
        return 0;
}

/* What follows a [: members, a-z ranges, ! or ^ first for all others, ] first for itself. */
static int read_set(TextReader *r, PatternSet *ret, Explanation *e) {
        size_t open = r->at - 1, member;
        PatternSet set = { 0 };
        bool others = false, mark;
        uint8_t from, to;
        int k;

        if (r->text[r->at] == '!' || r->text[r->at] == '^') {
                others = true;
                r->at++;
        }
        for (bool is_first = true;; is_first = false) {
                member = r->at;
                k = set_end(r, open, e) ?: read_byte(r, &from, &mark, e);
                if (k != 0)
                        return k;
                if (mark && from == ']' && !is_first)
                        break;
                to = from;
                if (r->text[r->at] == '-' && r->text[r->at + 1] != ']') {
                        r->at++;
                        k = set_end(r, open, e) ?: read_byte(r, &to, &mark, e);
                        if (k != 0)
                                return k;
                        if (to < from)
                                return filter_refuse(e, member, "the range ends before it begins");
                }
                for (unsigned b = from; b <= to; b++)
                        set.bits[b / 64] |= (uint64_t)1 << (b % 64);
        }
        for (int i = 0; others && i < 4; i++)
                set.bits[i] = ~set.bits[i];
        set.bits[0] &= ~(uint64_t)1;
        if (!(set.bits[0] | set.bits[1] | set.bits[2] | set.bits[3]))
                return filter_refuse(e, open, "this set matches no character");
        *ret = set;
        return 0;
}

static int read_unit(Lexer *l, TextReader *r, uint16_t *ret_unit, Explanation *e) {
        Filter *f = l->filter;
        uint8_t byte;
        bool mark;
        int k;

        k = read_byte(r, &byte, &mark, e);
        if (k != 0)
                return k;
        *ret_unit = byte;
        if (mark && byte == '*')
                *ret_unit = UNIT_STAR;
        else if (mark && byte == '?')
                *ret_unit = UNIT_ANY;
        else if (mark && byte == '[') {
                k = read_set(r, &f->sets[f->n_sets], e);
                if (k != 0)
                        return k;
                *ret_unit = (uint16_t)(UNIT_SET + f->n_sets++);
        }
        return 0;
}

/* A searched part costs its length at each place of a text: it is bounded here, so that base/pattern.c need not. */
static int check_searched(const uint16_t *units, uint32_t n, size_t position, Explanation *e) {
        uint32_t length = 0;
        bool between = false, plain = true;

        for (uint32_t i = 0; i < n; i++) {
                if (units[i] != UNIT_STAR) {
                        plain = plain && units[i] < UNIT_STAR;
                        length++;
                        continue;
                }
                if (between && !plain && length > PATTERN_MAX_SEARCHED)
                        return filter_refuse(e, position, "between two * are %u characters including ? or [ ]: at most %d are "
                                "allowed", length, PATTERN_MAX_SEARCHED);
                between = true;
                plain = true;
                length = 0;
        }
        return 0;
}

int lexer_next_text(Lexer *l, Token *ret, Explanation *e) {
        TextReader r = { .text = l->text, .at = l->at + 1, .begin = l->at, .quote = l->text[l->at] };
        Filter *f = l->filter;
        uint16_t *units = f->units + f->n_units;
        char *name = f->names + f->n_names;
        uint32_t n = 0, n_bytes = 0;
        bool plain = true;
        int k;

        while (r.text[r.at] != r.quote) {
                uint16_t unit;

                k = read_unit(l, &r, &unit, e);
                if (k != 0)
                        return k;
                n_bytes++;
                plain = plain && unit < UNIT_STAR;
                if (unit != UNIT_STAR || n == 0 || units[n - 1] != UNIT_STAR)
                        units[n++] = unit;
        }
        k = check_searched(units, n, r.begin, e);
        if (k != 0)
                return k;
        for (uint32_t i = 0; i < n && plain; i++)
                name[i] = (char)units[i];
        ret->node = (FilterNode){ .kind = FILTER_TEXT, .unit = f->n_units, .n_units = n, .name = plain ? name : NULL };
        if (r.quote == '\'' && n_bytes == 1 && n == 1 && units[0] < UNIT_SET) {
                ret->node.character = true;
                ret->node.number = units[0] == UNIT_STAR ? '*' : units[0] == UNIT_ANY ? '?' : units[0];
        }
        f->n_units += n;
        f->n_names += plain ? n + 1 : 0; /* the pool is zero */
        ret->kind = TOKEN_LEAF;
        ret->length = r.at + 1 - r.begin;
        return 0;
}
