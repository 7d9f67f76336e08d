/*
 * What a format's fields are, libtraceevent 1.7.1 reads, but not of any text: it crashes at a byte that does not print
 * behind a '[', and leaks at declarations of one word and at attributes. So it is given only what is checked here, and
 * never the print format (tracefs/format-names.c says why), of which only brackets, strings and commas are looked at.
 */
#include "daemon/kernel/tracefs/format-text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/error.h"

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

/*
 * "__attribute__((btf_type_tag("user")))" comes from kernels that Clang built; newer ones leave it out themselves.
 * False: one is left that libtraceevent would stumble over.
 */
static bool remove_attributes(char *head) {
        static const char attribute[] = "__attribute__(";

        for (char *at = head; (at = strstr(at, attribute));) {
                const char *behind = span_bracket_end(at + strlen(attribute) - 1, strchrnul(at, '\n'));

                if (!behind)
                        return false;
                behind += *behind == ' ';
                memmove(at, behind, strlen(behind) + 1);
        }
        return !strstr(head, "__attribute__");
}

/* A word, and more of a declaration behind it: one word alone is no type and name, and leaks. */
static bool is_declaration(Span s) {
        while (s.at < s.end && format_is_word(*s.at))
                s.at++;
        s = span_trim(s);
        return !span_is_empty(s) && (format_is_word(*s.at) || *s.at == '*');
}

/* As loose about spaces as libtraceevent is, so that it sees no field that is not checked. */
bool format_text_next(const char **head, Span *ret_declaration) {
        static const char field[] = "field";

        while ((*head = strchr(*head, '\n'))) {
                *head += 1 + strspn(*head + 1, " \t");
                if (strncmp(*head, field, strlen(field)) != 0)
                        continue;
                *head += strlen(field);
                *head += strspn(*head, " \t:");
                *ret_declaration = (Span){ *head, *head + strcspn(*head, ";\n") };
                return true;
        }
        return false;
}

int format_text_init(FormatText *t, const char *text, size_t length) {
        static const char print[] = "\nprint fmt: ", no_print[] = "\"\"\n";
        const char *at = memmem(text, length, print, strlen(print));
        Span declaration;
        size_t n;

        *t = FORMAT_TEXT_NULL;
        t->refused = (Span){ text, text + length };
        if (!at || text[length - 1] != '\n')
                return REFUSED_INVALID;
        at += strlen(print);
        t->print = (Span){ at, text + length - 1 };
        n = (size_t)(at - text);
        for (size_t i = 0; i < n; i++)
                if (!isprint((unsigned char)text[i]) && text[i] != '\n' && text[i] != '\t')
                        return REFUSED_INVALID;
        if (asprintf(&t->head, "%.*s%s", (int)n, text, no_print) < 0) {
                t->head = NULL;
                return error_origin(-ENOMEM);
        }
        /* X_PR_FMT: for three such words, of mac80211 in 2011, libtraceevent puts strings, and leaks these as names */
        if (!remove_attributes(t->head) || strstr(t->head, "_PR_FMT"))
                return REFUSED_INVALID;
        for (const char *rest = t->head; format_text_next(&rest, &declaration);)
                if (!is_declaration(declaration)) {
                        t->refused = declaration;
                        return REFUSED_INVALID;
                }
        return 0;
}

void format_text_deinit(FormatText *t) {
        free(t->head);
        *t = FORMAT_TEXT_NULL;
}
