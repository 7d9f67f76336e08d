/* Three bytes are the most that a byte of a name becomes. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "client/profile/utf8.h"

#define BYTES 0xef00u /* U+EF80 to U+EFFF are bytes 0x80 to 0xff */

size_t utf8_at(const char *name, uint32_t *ret_character) {
        static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
        const unsigned char *at = (const unsigned char *)name;
        size_t n = at[0] < 0x80 ? 1 : (at[0] & 0xe0) == 0xc0 ? 2 : (at[0] & 0xf0) == 0xe0 ? 3 : (at[0] & 0xf8) == 0xf0 ? 4 : 0;
        uint32_t character = n > 1 ? at[0] & (0x7fu >> n) : at[0];

        for (size_t i = 1; i < n; i++) {
                if ((at[i] & 0xc0) != 0x80) /* a NUL, too */
                        return 0;
                character = character << 6 | (at[i] & 0x3f);
        }
        if (n == 0 || character < least[n] || character > 0x10ffff || (character >= 0xd800 && character < 0xe000))
                return 0;
        *ret_character = character;
        return n;
}

/* The continuation bytes of a character that stands for a byte are no UTF-8 by themselves, and so come out as bytes in their turn. */
size_t utf8_export(const char *at, uint32_t *ret_character) {
        uint32_t character;
        size_t n = utf8_at(at, &character);

        if (n > 0 && (character < (BYTES | 0x80) || character > (BYTES | 0xff))) {
                *ret_character = character;
                return n;
        }
        *ret_character = BYTES | (unsigned char)*at;
        return 1;
}

char *utf8_export_string(const char *name) {
        char *text = malloc(3 * strlen(name) + 1), *to = text;

        while (text && *name) {
                uint32_t character;
                size_t n = utf8_export(name, &character);

                if (n == 1 && character >= 0x80) {
                        *to++ = (char)(0xe0 | character >> 12);
                        *to++ = (char)(0x80 | (character >> 6 & 0x3f));
                        *to++ = (char)(0x80 | (character & 0x3f));
                } else {
                        memcpy(to, name, n);
                        to += n;
                }
                name += n;
        }
        if (text)
                *to = '\0';
        return text;
}
