/*
 * For encode/: protobuf's wire format, written forward into memory that the caller has shown to be large enough. Every
 * function gives back the first byte behind what it wrote. So that nothing is checked byte by byte, up to WIRE_SLACK
 * bytes behind that may be overwritten.
 *
 *     key      | field << 3 | wire type |   here always one or two bytes: a constant of WIRE_KEY()
 */
#pragma once

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "daemon/base/copy.h"

#define WIRE_SLACK ((size_t)8)      /* a varint is stored eight bytes at a time */
#define WIRE_VARINT_MAX ((size_t)10) /* bytes of a 64-bit varint */
#define WIRE_LENGTH_MAX ((size_t)5)  /* bytes of a 32-bit varint */

enum {
        WIRE_VARINT = 0,
        WIRE_FIXED64 = 1,
        WIRE_BYTES = 2,
        WIRE_FIXED32 = 5,
};

#define WIRE_KEY(field, wire_type) ((uint32_t)(field) << 3 | (uint32_t)(wire_type))

static inline size_t wire_varint_size(uint64_t value) {
        unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);

        return (bits * 9 + 64) / 64; /* = (bits + 6) / 7 for 1 to 64 bits, without a division */
}

/* Spreads 56 bits over eight bytes, seven to each, by halves: 28 + 28, 14 * 4, 7 * 8. */
static inline uint64_t wire_spread(uint64_t value) {
        value = (value & 0x000000000fffffff) | ((value & 0x00fffffff0000000) << 4);
        value = (value & 0x00003fff00003fff) | ((value & 0x0fffc0000fffc000) << 2);
        return (value & 0x007f007f007f007f) | ((value & 0x3f803f803f803f80) << 1);
}

/* Most of them fit into one byte, and the same ones each time, so that the branch is known beforehand. */
static inline uint8_t *wire_put_varint(uint8_t *to, uint64_t value) {
        const uint64_t more = 0x8080808080808080;
        uint64_t word;
        size_t size;

        if (value < 0x80) {
                *to = (uint8_t)value;
                return to + 1;
        }
        size = wire_varint_size(value);
        word = wire_spread(value);
        if (size <= 8) {
                word = htole64(word | (more & (((uint64_t)1 << (8 * (size - 1))) - 1)));
                memcpy(to, &word, sizeof(word));
        } else {
                word = htole64(word | more);
                memcpy(to, &word, sizeof(word));
                to[8] = (uint8_t)((value >> 56 & 0x7f) | (size > 9 ? 0x80 : 0));
                to[9] = (uint8_t)(value >> 63);
        }
        return to + size;
}

/* Only its own bytes are written: for places with something behind them. Shortest form. */
static inline void wire_put_length(uint8_t *to, size_t length) {
        for (; length >= 0x80; length >>= 7)
                *to++ = (uint8_t)(length | 0x80);
        *to = (uint8_t)length;
}

static inline uint8_t *wire_put_key(uint8_t *to, uint32_t key) {
        if (key >= 0x80) {
                *to++ = (uint8_t)(key | 0x80);
                key >>= 7;
        }
        *to++ = (uint8_t)key;
        return to;
}

/* Scalars: a zero is not written, that is proto3's default. */
static inline uint8_t *wire_put_number(uint8_t *to, unsigned field, uint64_t value) {
        if (value == 0)
                return to;
        return wire_put_varint(wire_put_key(to, WIRE_KEY(field, WIRE_VARINT)), value);
}

static inline uint8_t *wire_put_word(uint8_t *to, uint64_t value) {
        value = htole64(value);
        memcpy(to, &value, sizeof(value));
        return to + sizeof(value);
}

static inline uint8_t *wire_put_fixed64(uint8_t *to, unsigned field, uint64_t value) {
        if (value == 0)
                return to;
        return wire_put_word(wire_put_key(to, WIRE_KEY(field, WIRE_FIXED64)), value);
}

static inline uint8_t *wire_put_fixed32(uint8_t *to, unsigned field, uint32_t value) {
        if (value == 0)
                return to;
        to = wire_put_key(to, WIRE_KEY(field, WIRE_FIXED32));
        value = htole32(value);
        memcpy(to, &value, sizeof(value));
        return to + sizeof(value);
}

/* Also when empty, as elements of repeated fields are. */
static inline uint8_t *wire_put_element(uint8_t *to, unsigned field, const void *bytes, size_t length) {
        to = wire_put_varint(wire_put_key(to, WIRE_KEY(field, WIRE_BYTES)), length);
        if (length > 0)
                copy_long(to, bytes, length); /* as stacks are, and few others */
        return to + length;
}

static inline uint8_t *wire_put_bytes(uint8_t *to, unsigned field, const void *bytes, size_t length) {
        return length > 0 ? wire_put_element(to, field, bytes, length) : to;
}

/*
 * Something whose length is known only behind it: wire_begin() leaves room for a length of about `guess`, wire_end()
 * writes it and moves the content if its length has another width. *ret_content is where the content begins.
 */
static inline uint8_t *wire_begin(uint8_t *to, unsigned field, size_t guess, uint8_t **ret_content) {
        to = wire_put_key(to, WIRE_KEY(field, WIRE_BYTES));
        *ret_content = to + wire_varint_size(guess);
        return to;
}

static inline uint8_t *wire_end(uint8_t *begin, uint8_t *content, uint8_t *end) {
        size_t length = (size_t)(end - content), size;

        if (length < 0x80 && content == begin + 1) {
                *begin = (uint8_t)length;
                return end;
        }
        size = wire_varint_size(length);
        if (begin + size != content)
                memmove(begin + size, content, length);
        wire_put_length(begin, length);
        return begin + size + length;
}
