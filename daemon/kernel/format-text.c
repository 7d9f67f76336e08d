/*
 * libtraceevent reads far outside of a text that is cut, and gives an event with fewer fields for one that it could not
 * parse to the end. So what it gets is known to have the shape that the kernel writes, f_show() in trace_events.c.
 */
#include "daemon/kernel/format-text.h"

#include <string.h>

/* `at` moves behind `word`. */
static bool skip_word(const char **at, const char *end, const char *word) {
        size_t n = strlen(word);

        if ((size_t)(end - *at) < n || memcmp(*at, word, n) != 0)
                return false;
        *at += n;
        return true;
}

static bool skip_number(const char **at, const char *end) {
        const char *begin = *at;

        while (*at < end && isdigit((unsigned char)**at) && *at - begin < 9)
                (*at)++;
        return *at > begin;
}

/* "unsigned long args[6]": words, stars, and brackets around at most one word, up to the ';' */
static bool skip_declaration(const char **at, const char *end) {
        const char *begin = *at, *bracket = NULL;

        for (; *at < end && **at != ';'; (*at)++) {
                if (**at == '[' && (bracket || !format_text_is_word((*at)[-1])))
                        return false;
                if (**at == ']' && !bracket)
                        return false;
                if (!format_text_is_word(**at) && (bracket ? **at != ']' : **at != ' ' && **at != '*' && **at != '['))
                        return false;
                bracket = **at == '[' ? *at : **at == ']' ? NULL : bracket;
        }
        return *at < end && !bracket && *at > begin && (format_text_is_word((*at)[-1]) || (*at)[-1] == ']') &&
               memchr(begin, ' ', (size_t)(*at - begin)) && format_text_is_word(*begin) && !isdigit((unsigned char)*begin);
}

/* field:DECLARATION;	offset:N;	size:N;	signed:N; */
static bool skip_field(const char **at, const char *end) {
        return skip_word(at, end, "\tfield:") && skip_declaration(at, end) && skip_word(at, end, ";\toffset:") &&
               skip_number(at, end) && skip_word(at, end, ";\tsize:") && skip_number(at, end) &&
               skip_word(at, end, ";\tsigned:") && skip_number(at, end) && skip_word(at, end, ";\n");
}

/* Every bracket of an expression has its other half, every string its end. */
static bool is_balanced(const char *at, const char *end) {
        char open[64];
        size_t depth = 0;
        bool quoted = false;

        for (; at < end; at++) {
                if (quoted) {
                        quoted = *at != '"';
                        at += *at == '\\';
                } else if (*at == '"') {
                        quoted = true;
                } else if (strchr("([{", *at)) {
                        if (*at == '\0' || depth == sizeof(open))
                                return false;
                        open[depth++] = *at == '(' ? ')' : *at == '[' ? ']' : '}';
                } else if (strchr(")]}", *at) && (depth == 0 || open[--depth] != *at)) {
                        return false;
                }
        }
        return !quoted && depth == 0;
}

bool format_text_check(const char *text, size_t length, int *ret_n_fields) {
        const char *at = text, *end = text + length, *name;
        int n = 0;

        if (!skip_word(&at, end, "name: "))
                return false;
        for (name = at; at < end && format_text_is_word(*at);)
                at++;
        if (at == name || !skip_word(&at, end, "\nID: ") || !skip_number(&at, end) ||
            !skip_word(&at, end, "\nformat:\n"))
                return false;
        while (at < end && *at != 'p') {
                if (skip_word(&at, end, "\n"))
                        continue;
                if (!skip_field(&at, end))
                        return false;
                n++;
        }
        *ret_n_fields = n;
        return skip_word(&at, end, "print fmt: \"") && end[-1] == '\n' && is_balanced(at - 1, end);
}

const char *format_text_call_end(const char *from, const char *end) {
        bool quoted = false;
        int depth = 0;

        for (const char *at = from; at < end; at++) {
                if (*at == '\\' && quoted)
                        at++;
                else if (*at == '"')
                        quoted = !quoted;
                else if (!quoted && *at == '(')
                        depth++;
                else if (!quoted && *at == ')' && --depth == 0)
                        return at + 1;
        }
        return NULL;
}

