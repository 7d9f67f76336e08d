/* What the parsers of all forms share: pieces of a name, and how one of them is refused. */
#include <stdio.h>
#include <string.h>

#include "config/event-name/forms.h"
#include "daemon/base/cleanup.h"

int event_refuse_at(Explanation *e, const char *text, size_t offset, const char *format, ...) {
        char why[400];
        va_list ap;
        int r;

        va_start(ap, format);
        (void)vsnprintf(why, sizeof(why), format, ap); /* what does not fit is the end of a hint */
        va_end(ap);
        r = refuse(e, REFUSED_INVALID, "bad-event", "event %s: %s", QUOTE(text), why);
        if (e)
                e->position = 1 + (unsigned)offset;
        return r;
}

bool event_base_is(const char *text, const char *word) {
        size_t n = strlen(word);

        return strncmp(text, word, n) == 0 && (text[n] == ':' || text[n] == '\0');
}

bool event_number(const char *text, size_t from, size_t to, uint64_t *ret) {
        uint64_t n = 0, base = 10;

        if (to - from > 2 && text[from] == '0' && (text[from + 1] == 'x' || text[from + 1] == 'X')) {
                base = 16;
                from += 2;
        }
        if (from >= to)
                return false;
        for (size_t i = from; i < to; i++) {
                const char *digits = "0123456789abcdef", c = text[i] >= 'A' && text[i] <= 'F' ? text[i] + 32 : text[i];
                const char *digit = c ? strchr(digits, c) : NULL;

                if (!digit || (uint64_t)(digit - digits) >= base || __builtin_mul_overflow(n, base, &n) ||
                    __builtin_add_overflow(n, (uint64_t)(digit - digits), &n))
                        return false;
        }
        *ret = n;
        return true;
}

int event_take(const char *text, size_t from, size_t to, char **ret) {
        char *copy = strndup(text + from, to - from);

        if (!copy)
                return error_origin(-ENOMEM);
        *ret = copy;
        return 0;
}
