/* Text that may be anything. Plain ASCII is found first and copied as a whole: nearly all of it is. */
#include "client/perfctl/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "client/perfctl/base/plain.h"

static bool is_continuation(const char *at, size_t i, size_t n) {
        return i < n && ((unsigned char)at[i] & 0xc0) == 0x80;
}

size_t utf8_length(const char *at, size_t n) {
        unsigned char a = (unsigned char)at[0], b = n > 1 ? (unsigned char)at[1] : 0;

        if (a < 0x80)
                return 1;
        if (a < 0xc2 || a > 0xf4 || !is_continuation(at, 1, n))
                return 0;
        if (a < 0xe0)
                return 2;
        if (!is_continuation(at, 2, n))
                return 0;
        if (a < 0xf0)
                return (a == 0xe0 && b < 0xa0) || (a == 0xed && b > 0x9f) ? 0 : 3;
        if (!is_continuation(at, 3, n))
                return 0;
        return (a == 0xf0 && b < 0x90) || (a == 0xf4 && b > 0x8f) ? 0 : 4;
}

static bool is_plain(char c) {
        return c >= ' ' && c < 0x7f && c != '\\';
}

uint32_t utf8_character(const char *at, size_t length) {
        uint32_t c = (unsigned char)*at;

        if (length > 1)
                c &= 0x7fu >> length;
        for (size_t i = 1; i < length; i++)
                c = c << 6 | ((unsigned char)at[i] & 0x3f);
        return c;
}

/* The table of daemon/base/printable.c. */
static bool is_unseen(uint32_t c) {
        static const struct {
                uint32_t first, last;
        } ranges[] = {
                { 0x0000, 0x001f },
                { 0x007f, 0x009f }, /* controls */
                { 0x2028, 0x2029 },
                { 0xfff9, 0xfffb }, /* separators of lines and paragraphs; annotations */
                /* Default_Ignorable_Code_Point: perl -CO -e 'for (0..0x10ffff) { printf "%x ", $_ if chr =~ /\p{DI}/ }' */
                { 0x00ad, 0x00ad },
                { 0x034f, 0x034f },
                { 0x061c, 0x061c },
                { 0x115f, 0x1160 },
                { 0x17b4, 0x17b5 },
                { 0x180b, 0x180f },
                { 0x200b, 0x200f },
                { 0x202a, 0x202e },
                { 0x2060, 0x206f },
                { 0x3164, 0x3164 },
                { 0xfe00, 0xfe0f },
                { 0xfeff, 0xfeff },
                { 0xffa0, 0xffa0 },
                { 0xfff0, 0xfff8 },
                { 0x1bca0, 0x1bca3 },
                { 0x1d173, 0x1d17a },
                { 0xe0000, 0xe0fff },
        };

        for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
                if (c >= ranges[i].first && c <= ranges[i].last)
                        return true;
        return false;
}

size_t text_printable_length(const char *at, size_t n) {
        size_t length = utf8_length(at, n);

        return length > 0 && !is_unseen(utf8_character(at, length)) ? length : 0;
}

/* For who doubles backslashes. */
static size_t printable_length(const char *at, size_t n) {
        return *at == '\\' ? 0 : text_printable_length(at, n);
}

void text_put(Output *o, const char *bytes, size_t n) {
        if (plain_is(bytes, n, PLAIN_TEXT)) {
                output_put(o, bytes, n);
                return;
        }
        for (size_t i = 0; i < n;) {
                size_t plain = i, length;

                while (plain < n && is_plain(bytes[plain]))
                        plain++;
                output_put(o, bytes + i, plain - i);
                i = plain;
                if (i == n)
                        return;
                length = printable_length(bytes + i, n - i);
                if (length > 0)
                        output_put(o, bytes + i, length);
                else if (bytes[i] == '\\')
                        output_put(o, "\\\\", 2);
                else {
                        output_put(o, "\\x", 2);
                        output_put_hex_bytes(o, bytes + i, 1);
                }
                i += length > 0 ? length : 1;
        }
}

void text_put_string(Output *o, const char *string) {
        text_put(o, string, strlen(string));
}

/* Of the first character, and how many bytes that is. */
static size_t first_width(const char *bytes, size_t n, size_t *ret_length) {
        size_t length = text_printable_length(bytes, n);
        wchar_t c;
        int width;

        *ret_length = length > 0 ? length : 1;
        if (length == 0)
                return strlen("\\xHH");
        if (length == 1)
                return *bytes == '\\' ? 2 : 1;
        width = mbtowc(&c, bytes, length) > 0 ? wcwidth(c) : 1; /* main() sets LC_CTYPE */
        return width < 0 ? 1 : (size_t)width;
}

size_t text_width(const char *bytes, size_t n) {
        size_t width = 0;

        for (size_t i = 0, length; i < n; i += length)
                width += first_width(bytes + i, n - i, &length);
        return width;
}

size_t text_shown_width(const char *bytes, size_t n) {
        size_t width = 0;

        for (size_t i = 0, length; i < n; i += length) {
                const char *end = bytes[i] == '\033' ? memchr(bytes + i, 'm', n - i) : NULL;

                if (end)
                        length = (size_t)(end - bytes) + 1 - i;
                else if (bytes[i] == '\\') {
                        length = 1;
                        width++;
                } else
                        width += first_width(bytes + i, n - i, &length);
        }
        return width;
}

size_t text_wrap(const char *bytes, size_t n, size_t width) {
        size_t used = 0, space = 0;

        for (size_t i = 0, length; i < n; i += length) {
                used += first_width(bytes + i, n - i, &length);
                if (used > width && bytes[i] != ' ')
                        return space > 0 ? space : i > 0 ? i : length;
                if (bytes[i] == ' ' && i > 0)
                        space = i;
        }
        return n;
}

size_t text_put_cut(Output *o, const char *bytes, size_t n, size_t width) {
        size_t left = text_width(bytes, n), i = 0, length;

        if (left <= width) {
                text_put(o, bytes, n);
                return left;
        }
        for (; i < n && left + 1 > width; i += length)
                left -= first_width(bytes + i, n - i, &length);
        output_put_string(o, "\u2026");
        text_put(o, bytes + i, n - i);
        return left + 1;
}

size_t text_put_begin(Output *o, const char *bytes, size_t n, size_t width) {
        size_t used = 0, i = 0, length;

        if (text_width(bytes, n) <= width) {
                text_put(o, bytes, n);
                return text_width(bytes, n);
        }
        for (; i < n && used + first_width(bytes + i, n - i, &length) + 1 <= width; i += length)
                used += first_width(bytes + i, n - i, &length);
        text_put(o, bytes, i);
        output_put_string(o, "\u2026");
        return used + 1;
}

void text_put_value(Output *o, perfd_text text) {
        bool quote = text.length == 0;

        if (!quote && plain_is(text.bytes, text.length, PLAIN_VALUE)) {
                output_put(o, text.bytes, text.length);
                return;
        }
        for (size_t i = 0; i < text.length && !quote; i++)
                quote = text.bytes[i] == ' ' || text.bytes[i] == '"' || text.bytes[i] == '=';
        if (!quote) {
                text_put(o, text.bytes, text.length);
                return;
        }
        output_put_char(o, '"');
        for (size_t i = 0, part; i < text.length; i += part) {
                const char *end = memchr(text.bytes + i, '"', text.length - i);

                part = end ? (size_t)(end - text.bytes) - i : text.length - i;
                text_put(o, text.bytes + i, part);
                if (end) {
                        output_put(o, "\\\"", 2);
                        part++;
                }
        }
        output_put_char(o, '"');
}

void text_print_message(const char *message) {
        size_t n = strlen(message);

        for (size_t i = 0; i < n;) {
                size_t length = printable_length(message + i, n - i);

                if (length == 0 && (message[i] == '\n' || message[i] == '\t' || message[i] == '\\'))
                        length = 1;
                if (length > 0)
                        (void)fwrite(message + i, 1, length, stderr);
                else
                        fprintf(stderr, "\\x%02x", (unsigned char)message[i]);
                i += length > 0 ? length : 1;
        }
}
