#include "client/render/render.h"

#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void render_some(Render *r, const char *bytes, size_t n) {
        if (r->length < r->size) {
                size_t room = r->size - r->length;

                memcpy(r->to + r->length, bytes, n < room ? n : room);
        }
        r->length += n;
}

void render_string(Render *r, const char *s) {
        render_bytes(r, s, strlen(s));
}

#define DIGITS_MAX ((size_t)20)

/* n digits at `digits`, where DIGITS_MAX bytes can be read. */
static void put_digits(Render *r, const char *digits, size_t n) {
        if (r->length < r->size && r->size - r->length >= DIGITS_MAX) {
                memcpy(r->to + r->length, digits, DIGITS_MAX); /* faster than n */
                r->length += n;
        } else
                render_some(r, digits, n);
}

/* Two digits at a time. */
void render_unsigned(Render *r, uint64_t number) {
        static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                                    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                                    "8081828384858687888990919293949596979899";
        char digits[2 * DIGITS_MAX] = { 0 }, *end = digits + DIGITS_MAX, *at = end;

        for (; number >= 100; number /= 100)
                memcpy(at -= 2, pairs + 2 * (number % 100), 2);
        if (number >= 10)
                memcpy(at -= 2, pairs + 2 * number, 2);
        else
                *--at = (char)('0' + number);
        put_digits(r, at, (size_t)(end - at));
}

void render_signed(Render *r, int64_t number) {
        if (number < 0)
                render_bytes(r, "-", 1);
        render_unsigned(r, number < 0 ? -(uint64_t)number : (uint64_t)number);
}

/* Eight hexadecimal digits: each half byte in a byte of its own, all of them turned into letters at once. */
static void put_hex_8(char *to, uint32_t number) {
        const uint64_t ones = UINT64_C(0x0101010101010101);
        uint64_t x = number;

        x = (x << 16 | x) & UINT64_C(0x0000ffff0000ffff);
        x = (x << 8 | x) & UINT64_C(0x00ff00ff00ff00ff);
        x = (x << 4 | x) & UINT64_C(0x0f0f0f0f0f0f0f0f);
        x += '0' * ones + ((x + 6 * ones) >> 4 & ones) * ('a' - '0' - 10);
        x = htobe64(x);
        memcpy(to, &x, sizeof(x));
}

void render_hex(Render *r, uint64_t number) {
        const size_t n = number ? (67 - (size_t)__builtin_clzll(number)) / 4 : 1;
        char digits[16 + DIGITS_MAX] = { 0 };

        put_hex_8(digits, (uint32_t)(number >> 32));
        put_hex_8(digits + 8, (uint32_t)number);
        render_bytes(r, "0x", 2);
        put_digits(r, digits + 16 - n, n);
}

void render_number(Render *r, const char *format, ...) {
        char text[64];
        va_list ap;

        va_start(ap, format);
        (void)vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        render_string(r, text);
}

size_t render_end(Render *r) {
        if (r->size > 0)
                r->to[r->length < r->size ? r->length : r->size - 1] = '\0';
        return r->length;
}
