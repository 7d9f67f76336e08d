/* For output: numbers as digits, each written where there is room for the longest. Inline: a line of a stream has ten of them. */
#pragma once

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define DECIMAL_ROOM ((size_t)20)
#define HEX_ROOM ((size_t)16)

/* Two digits of each number from 0 to 99. */
static inline const char *digits_pair(uint32_t number) {
        static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                                    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                                    "8081828384858687888990919293949596979899";

        return pairs + 2 * (size_t)number;
}

static inline void digits_put_pair(char *to, uint32_t number) {
        memcpy(to, digits_pair(number), 2);
}

#define DIGITS_ONES UINT64_C(0x0101010101010101)

/* The eight digits of a number below 10^8, each in a byte, the first in the lowest: all at once, halved three times. */
static inline uint64_t digits_bytes(uint32_t number) {
        uint64_t x = number / 10000 | (uint64_t)(number % 10000) << 32, part;

        part = x * 10486 >> 20 & UINT64_C(0x0000007f0000007f); /* each / 100 */
        x = part | (x - 100 * part) << 16;
        part = x * 103 >> 10 & UINT64_C(0x000f000f000f000f); /* each / 10 */
        return part | (x - 10 * part) << 8;
}

static inline void digits_put_bytes(char *to, uint64_t digits) {
        const uint64_t text = htole64(digits + '0' * DIGITS_ONES);

        memcpy(to, &text, sizeof(text));
}

/* Eight digits, with zeros in front. */
static inline void digits_put_8(char *to, uint32_t number) {
        digits_put_bytes(to, digits_bytes(number));
}

/* Below 10^8, where there is room for eight digits; gives the end. What is written behind it means nothing. */
static inline char *digits_put_short(char *to, uint32_t number) {
        const uint64_t digits = digits_bytes(number);
        const unsigned zeros = (unsigned)__builtin_ctzll(digits | UINT64_C(1) << 56) & 56; /* bits in front; the last digit stays */

        digits_put_bytes(to, digits >> zeros);
        return to + 8 - zeros / 8;
}

/* Of at least nine digits. */
static __attribute__((noinline, unused)) char *decimal_put_long(char *to, uint64_t number) {
        const uint64_t part = 100000000; /* 10^8 */

        to = number < part * part ? digits_put_short(to, (uint32_t)(number / part)) : decimal_put_long(to, number / part);
        digits_put_8(to, (uint32_t)(number % part));
        return to + 8;
}

/* Up to DECIMAL_ROOM digits; gives the end. */
static inline char *decimal_put(char *to, uint64_t number) {
        if (number < 10) {
                *to = (char)('0' + number);
                return to + 1;
        }
        return number < 100000000 ? digits_put_short(to, (uint32_t)number) : decimal_put_long(to, number);
}

static inline char *signed_put(char *to, int64_t number) {
        if (number >= 0)
                return decimal_put(to, (uint64_t)number);
        *to = '-';
        return decimal_put(to + 1, -(uint64_t)number);
}

/* Eight hexadecimal digits: each half byte in a byte of its own, all of them turned into letters at once. */
static inline void hex_put_8(char *to, uint32_t number) {
        const uint64_t ones = DIGITS_ONES;
        uint64_t x = number;

        x = (x << 16 | x) & UINT64_C(0x0000ffff0000ffff);
        x = (x << 8 | x) & UINT64_C(0x00ff00ff00ff00ff);
        x = (x << 4 | x) & UINT64_C(0x0f0f0f0f0f0f0f0f);
        x += '0' * ones + ((x + 6 * ones) >> 4 & ones) * ('a' - '0' - 10);
        x = htobe64(x);
        memcpy(to, &x, sizeof(x));
}

/* Up to HEX_ROOM digits, without 0x, where there is room for as many; gives the end. What is written behind it means nothing. */
static inline char *hex_put(char *to, uint64_t number) {
        size_t n;

        if (number < 10) {
                *to = (char)('0' + number);
                return to + 1;
        }
        n = (67 - (size_t)__builtin_clzll(number)) / 4;
        number <<= 64 - 4 * n;
        hex_put_8(to, (uint32_t)(number >> 32));
        if (n > 8)
                hex_put_8(to + 8, (uint32_t)number);
        return to + n;
}
