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

/* Eight digits, with zeros in front. */
static inline void digits_put_8(char *to, uint32_t number) {
        uint32_t high = number / 10000, low = number % 10000;

        digits_put_pair(to, high / 100);
        digits_put_pair(to + 2, high % 100);
        digits_put_pair(to + 4, low / 100);
        digits_put_pair(to + 6, low % 100);
}

/* How many digits a number below 10^8 has; 0 has one. */
static inline size_t digits_count(uint32_t number) {
        static const uint32_t powers[] = { 0, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000 };
        size_t about = (32 - (size_t)__builtin_clz(number | 1)) * 1233 >> 12; /* times log10(2) */

        return about + (number >= powers[about]);
}

/*
 * Below 10^8, where there is room for eight digits; gives the end. Of those behind it some are written that mean nothing, which is
 * faster than to copy as many as there are.
 */
static inline char *digits_put_short(char *to, uint32_t number) {
        const size_t n = digits_count(number);
        char digits[16] = { 0 };

        if (n <= 2) {
                memcpy(to, digits_pair(number) + 2 - n, 2);
                return to + n;
        }
        if (n <= 4) {
                digits_put_pair(digits, number / 100);
                digits_put_pair(digits + 2, number % 100);
                memcpy(to, digits + 4 - n, 4);
                return to + n;
        }
        digits_put_8(digits, number);
        memcpy(to, digits + 8 - n, 8);
        return to + n;
}

/* Up to DECIMAL_ROOM digits; gives the end. */
static inline char *decimal_put(char *to, uint64_t number) {
        const uint64_t part = 100000000; /* 10^8 */

        if (number < part)
                return digits_put_short(to, (uint32_t)number);
        to = number < part * part ? digits_put_short(to, (uint32_t)(number / part)) : decimal_put(to, number / part);
        digits_put_8(to, (uint32_t)(number % part));
        return to + 8;
}

static inline char *signed_put(char *to, int64_t number) {
        if (number >= 0)
                return decimal_put(to, (uint64_t)number);
        *to = '-';
        return decimal_put(to + 1, -(uint64_t)number);
}

/* Eight hexadecimal digits: each half byte in a byte of its own, all of them turned into letters at once. */
static inline void hex_put_8(char *to, uint32_t number) {
        const uint64_t ones = UINT64_C(0x0101010101010101);
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
        const size_t n = number ? (67 - (size_t)__builtin_clzll(number)) / 4 : 1;

        number <<= 64 - 4 * n;
        hex_put_8(to, (uint32_t)(number >> 32));
        if (n > 8)
                hex_put_8(to + 8, (uint32_t)number);
        return to + n;
}
