/* Strings, characters, brackets and commas of C, which is all that is known of a print format before it is parsed. */
#include "client/print/text.h"

#include <ctype.h>
#include <string.h>

const char *print_quoted_end(const char *at, const char *end) {
        char quote = *at++;

        for (; at < end; at++) {
                if (*at == '\\')
                        at++;
                else if (*at == quote)
                        return at + 1;
        }
        return NULL;
}

const char *print_argument_end(const char *at, const char *end) {
        size_t depth = 0;

        while (at < end) {
                if (*at == '"' || *at == '\'') {
                        at = print_quoted_end(at, end);
                        if (!at)
                                return NULL;
                        continue;
                }
                if (*at == ',' && depth == 0)
                        return at;
                if (strchr("([{", *at) && *at)
                        depth++;
                else if (strchr(")]}", *at) && *at && depth-- == 0)
                        return NULL;
                at++;
        }
        return depth == 0 ? end : NULL;
}

char print_unescaped(char c) {
        return c == 'n' ? '\n' : c == 't' ? '\t' : c;
}

bool print_text_new(Arena *arena, const char *at, const char *end, const char **ret_text, size_t *ret_length) {
        char *text = arena_push(arena, (size_t)(end - at) + 1, 1);
        size_t n = 0;

        *ret_text = text;
        if (!text)
                return true;
        while (at < end) {
                const char *behind;

                if (isspace((unsigned char)*at)) {
                        at++;
                        continue;
                }
                behind = *at == '"' ? print_quoted_end(at, end) : NULL;
                if (!behind)
                        return false;
                for (at++; at < behind - 1; at++) {
                        if (*at == '\\' && at + 1 < behind - 1)
                                text[n++] = print_unescaped(*++at);
                        else
                                text[n++] = *at;
                }
                at = behind;
        }
        *ret_length = n;
        return true;
}
