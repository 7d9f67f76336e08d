/*
 * For output: whether a text has only bytes that are written as they are, eight at a time. Nearly each has. A class is what is not
 * plain besides what is no printable ASCII.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum PlainClass {
        PLAIN_TEXT,  /* a backslash, as text_put() writes it */
        PLAIN_VALUE, /* the same, and what text_put_value() puts into quotes: a space, quotes, an equals sign */
        PLAIN_JSON,  /* a backslash, quotes */
} PlainClass;

#define PLAIN_EACH(byte) (UINT64_C(0x0101010101010101) * (uint8_t)(byte))

/* The highest bits of bytes that are 0; of none if none is. */
static inline uint64_t plain_zeros(uint64_t word) {
        return (word - PLAIN_EACH(1)) & ~word & PLAIN_EACH(0x80);
}

static inline bool plain_is_word(uint64_t word, PlainClass class) {
        uint64_t odd = (word | (word + PLAIN_EACH(1))) & PLAIN_EACH(0x80); /* above '~' */

        odd |= (word - PLAIN_EACH(class == PLAIN_VALUE ? ' ' + 1 : ' ')) & ~word & PLAIN_EACH(0x80);
        odd |= plain_zeros(word ^ PLAIN_EACH('\\'));
        if (class != PLAIN_TEXT)
                odd |= plain_zeros(word ^ PLAIN_EACH('"'));
        if (class == PLAIN_VALUE)
                odd |= plain_zeros(word ^ PLAIN_EACH('='));
        return odd == 0;
}

/* All bytes of at most seven, and others that are plain. */
static inline uint64_t plain_short(const char *bytes, size_t n) {
        uint64_t word = PLAIN_EACH('a');
        uint32_t first, last;

        if (n >= 4) {
                memcpy(&first, bytes, 4);
                memcpy(&last, bytes + n - 4, 4);
                return (uint64_t)last << 32 | first;
        }
        for (size_t i = 0; i < n; i++)
                word = word << 8 | (uint8_t)bytes[i];
        return word;
}

static inline bool plain_is(const char *bytes, size_t n, PlainClass class) {
        uint64_t word;

        if (n < 8)
                return plain_is_word(plain_short(bytes, n), class);
        for (size_t i = 0; i + 8 < n; i += 8) {
                memcpy(&word, bytes + i, 8);
                if (!plain_is_word(word, class))
                        return false;
        }
        memcpy(&word, bytes + n - 8, 8);
        return plain_is_word(word, class);
}
