/* Refusals with their explanation. */
#include "daemon/base/error.h"

#include <stdio.h>

int refuse(Explanation *e, Refusal refusal, const char *reason, const char *format, ...) {
        va_list ap;

        assert(refusal > 0 && refusal < _REFUSED_MAX);
        if (e) {
                va_start(ap, format);
                (void)vsnprintf(e->text, sizeof(e->text), format, ap); /* a longer text is cut */
                va_end(ap);
                e->reason = reason;
                e->position = 0;
        }
        return refusal;
}

/* Bytes of the character at `p`, 0 if there is none: overlong forms and surrogates are none. */
static size_t utf8_length(const unsigned char *p) {
        static const struct {
                unsigned char first, last, second_first, second_last, length;
        } forms[] = {
                { 0x00, 0x7f, 0, 0, 1 },       { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
                { 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
                { 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
        };

        for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
                if (p[0] < forms[i].first || p[0] > forms[i].last)
                        continue;
                if (forms[i].length > 1 && (p[1] < forms[i].second_first || p[1] > forms[i].second_last))
                        return 0;
                for (size_t k = 2; k < forms[i].length; k++) /* a terminating zero is no continuation */
                        if ((p[k] & 0xc0) != 0x80)
                                return 0;
                return forms[i].length;
        }
        return 0;
}

void utf8_mend(char *text) {
        for (unsigned char *p = (unsigned char *)text; *p;) {
                size_t n = utf8_length(p);

                if (n == 0)
                        *p = '?';
                p += n ? n : 1;
        }
}
