/*
 * A format is lines of one shape and, at the end, C. The lines are taken strictly: what is not as the kernel writes it
 * is refused as a whole, so that a cut text never becomes an event with fewer fields. Of the C only brackets, strings
 * and commas are looked at here.
 */
#include "daemon/kernel/format-text.h"

#include <string.h>

#define DEPTH_MAX 64 /* brackets in brackets: all recursion over a print format ends here */

Span span_trim(Span s) {
        while (s.at < s.end && isspace((unsigned char)*s.at))
                s.at++;
        while (s.at < s.end && isspace((unsigned char)s.end[-1]))
                s.end--;
        return s;
}

bool span_equal(Span s, const char *word) {
        size_t n = strlen(word);

        return (size_t)(s.end - s.at) == n && memcmp(s.at, word, n) == 0;
}

bool span_skip(Span *s, const char *word) {
        size_t n = strlen(word);

        if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
                return false;
        s->at += n;
        return true;
}

const char *span_quoted_end(const char *at, const char *end) {
        char quote = *at++;

        for (; at < end; at++) {
                if (*at == '\\')
                        at++;
                else if (*at == quote)
                        return at + 1;
        }
        return end;
}

const char *span_bracket_end(const char *at, const char *end) {
        char closing[DEPTH_MAX];
        size_t depth = 0;

        while (at < end) {
                char c = *at;

                if (c == '"' || c == '\'') {
                        at = span_quoted_end(at, end);
                        continue;
                }
                at++;
                if (c == '(' || c == '[' || c == '{') {
                        if (depth == DEPTH_MAX)
                                return NULL;
                        closing[depth++] = c == '(' ? ')' : c == '[' ? ']' : '}';
                } else if (c == ')' || c == ']' || c == '}') {
                        if (depth == 0 || closing[--depth] != c)
                                return NULL;
                        if (depth == 0)
                                return at;
                }
        }
        return NULL;
}

const char *span_find_outside(Span s, char c) {
        while (s.at < s.end && *s.at != c) {
                const char *behind = s.at + 1;

                if (*s.at == '"' || *s.at == '\'')
                        behind = span_quoted_end(s.at, s.end);
                else if (*s.at == '(' || *s.at == '[' || *s.at == '{')
                        behind = span_bracket_end(s.at, s.end);
                if (!behind)
                        return NULL;
                s.at = behind;
        }
        return s.at < s.end ? s.at : NULL;
}

bool span_next_argument(Span *s, Span *ret_argument) {
        const char *comma;

        if (span_is_empty(span_trim(*s)))
                return false;
        comma = span_find_outside(*s, ',');
        *ret_argument = span_trim((Span){ s->at, comma ? comma : s->end });
        s->at = comma ? comma + 1 : s->end;
        return true;
}

static bool skip_number(Span *s, uint32_t *ret) {
        const char *begin = s->at;
        uint32_t value = 0;

        while (s->at < s->end && isdigit((unsigned char)*s->at) && s->at - begin < 9)
                value = value * 10 + (uint32_t)(*s->at++ - '0');
        *ret = value;
        return s->at > begin;
}

/* Printable and not ';', closed by it. */
static bool skip_declaration(Span *s, Span *ret) {
        ret->at = s->at;
        while (s->at < s->end && *s->at != ';' && isprint((unsigned char)*s->at))
                s->at++;
        ret->end = s->at;
        return s->at > ret->at;
}

/* field:DECLARATION;	offset:N;	size:N;	signed:N; */
static bool skip_field(Span *s, FormatField *ret) {
        uint32_t is_signed;

        if (!span_skip(s, "\tfield:") || !skip_declaration(s, &ret->declaration) || !span_skip(s, ";\toffset:") ||
            !skip_number(s, &ret->offset) || !span_skip(s, ";\tsize:") || !skip_number(s, &ret->size) ||
            !span_skip(s, ";\tsigned:") || !skip_number(s, &is_signed) || !span_skip(s, ";\n"))
                return false;
        ret->is_signed = is_signed != 0;
        return true;
}

int format_text_init(FormatText *t, const char *text, size_t length) {
        Span s = { text, text + length };

        if (!span_skip(&s, "name: "))
                return FORMAT_E_BAD;
        t->name.at = s.at;
        while (s.at < s.end && format_is_word(*s.at))
                s.at++;
        t->name.end = s.at;
        if (span_is_empty(t->name) || !span_skip(&s, "\nID: ") || !skip_number(&s, &t->id) ||
            !span_skip(&s, "\nformat:\n"))
                return FORMAT_E_BAD;
        t->rest = s;
        return 0;
}

int format_text_next(FormatText *t, FormatField *ret) {
        FormatField f;

        while (span_skip(&t->rest, "\n"))
                ;
        if (skip_field(&t->rest, &f)) {
                *ret = f;
                return 0;
        }
        if (!span_skip(&t->rest, "print fmt: ") || span_is_empty(t->rest) || t->rest.end[-1] != '\n')
                return FORMAT_E_BAD;
        t->print = (Span){ t->rest.at, t->rest.end - 1 };
        return FORMAT_E_END;
}
