/*
 * One decoder of UTF-8 for the daemon and its configuration. client/perfctl/base/text.c has the same table for its output,
 * because perfctl sees nothing of the daemon; tests/unit/test-printable.c compares them for every character.
 */
#include "daemon/base/printable.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"

size_t utf8_decode(const char *text, uint32_t *ret_character) {
        static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
        const unsigned char *s = (const unsigned char *)text;
        uint32_t c = *s;
        size_t n = 1;

        if (c >= 0x80) {
                if (c < 0xc2 || c > 0xf4)
                        return 0;
                n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
                c &= 0x7fu >> n;
                for (size_t i = 1; i < n; i++) {
                        if ((s[i] & 0xc0) != 0x80) /* a terminating zero is no continuation */
                                return 0;
                        c = c << 6 | (s[i] & 0x3f);
                }
                if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
                        return 0;
        }
        *ret_character = c;
        return n;
}

static bool is_unseen(uint32_t c) {
        static const struct {
                uint32_t first, last;
        } ranges[] = {
                { 0x0000, 0x001f }, { 0x007f, 0x009f },   /* controls */
                { 0x2028, 0x2029 }, { 0xfff9, 0xfffb },   /* separators of lines and paragraphs; annotations */
                /* Default_Ignorable_Code_Point: perl -CO -e 'for (0..0x10ffff) { printf "%x ", $_ if chr =~ /\p{DI}/ }' */
                { 0x00ad, 0x00ad }, { 0x034f, 0x034f }, { 0x061c, 0x061c }, { 0x115f, 0x1160 }, { 0x17b4, 0x17b5 },
                { 0x180b, 0x180f }, { 0x200b, 0x200f }, { 0x202a, 0x202e }, { 0x2060, 0x206f }, { 0x3164, 0x3164 },
                { 0xfe00, 0xfe0f }, { 0xfeff, 0xfeff }, { 0xffa0, 0xffa0 }, { 0xfff0, 0xfff8 }, { 0x1bca0, 0x1bca3 },
                { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
        };

        for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
                if (c >= ranges[i].first && c <= ranges[i].last)
                        return true;
        return false;
}

size_t printable_length(const char *text) {
        uint32_t c;
        size_t n;

        if (*text >= ' ' && *text < 0x7f)
                return 1;
        n = utf8_decode(text, &c);
        return n > 0 && !is_unseen(c) ? n : 0;
}

void printable_make(char *text, size_t size) {
        _cleanup_free_ char *from = NULL;
        size_t to = 0, cut = 0, n;

        for (; text[to] && (n = printable_length(text + to)) > 0; to += n)
                if (to + sizeof("...") <= size)
                        cut = to;
        if (!text[to])
                return;
        from = strdup(text + to);
        text[to] = '\0';
        for (const char *s = from ? from : ""; *s; s += n > 0 ? n : 1) {
                char escape[sizeof("\\xNN")];
                size_t piece = n = printable_length(s);

                if (n == 0)
                        piece = (size_t)snprintf(escape, sizeof(escape), "\\x%02x", (unsigned char)*s);
                if (to + sizeof("...") <= size)
                        cut = to;
                if (to + piece >= size) {
                        (void)snprintf(text + cut, size - cut, "...");
                        return;
                }
                memcpy(text + to, n > 0 ? s : escape, piece);
                to += piece;
                text[to] = '\0';
        }
}

char *printable_copy(const char *text) {
        size_t size = 4 * strlen(text) + 1; /* every byte as \xNN */
        char *copy = malloc(size);

        if (!copy)
                return NULL;
        strcpy(copy, text);
        printable_make(copy, size);
        return copy;
}

void utf8_mend(char *text) {
        for (char *s = text; *s;) {
                uint32_t c;
                size_t n = utf8_decode(s, &c);

                if (n == 0)
                        *s = '?';
                s += n > 0 ? n : 1;
        }
}
