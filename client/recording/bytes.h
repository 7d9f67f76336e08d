/*
 * For this folder, recorded/ and symbols/: bytes of a recording that are read one value after the other, in its byte order. Nothing is
 * read behind their end: then, and after anything else that is wrong, `failed` says what, and whatever is read is 0.
 */
#pragma once

#include <byteswap.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "client/perfd/field.h"

typedef struct Bytes {
        const uint8_t *at, *end;
        uint64_t offset;    /* in the recording, of `at` */
        bool swap;          /* it is of the other byte order */
        const char *failed; /* what is wrong, at `offset`; NULL: nothing */
} Bytes;

static inline size_t bytes_left(const Bytes *b) {
        return (size_t)(b->end - b->at);
}

/* Nothing is read any more. */
static inline void bytes_fail(Bytes *b, const char *why) {
        if (!b->failed)
                b->failed = why;
        b->at = b->end;
}

/* The next n; NULL: there are not so many. */
static inline const uint8_t *bytes_take(Bytes *b, uint64_t n) {
        const uint8_t *from = b->at;

        if (n > bytes_left(b)) {
                bytes_fail(b, "ends in the middle of a value");
                return NULL;
        }
        b->at += n;
        b->offset += n;
        return from;
}

static inline uint16_t bytes_u16(Bytes *b) {
        const uint8_t *from = bytes_take(b, sizeof(uint16_t));
        uint16_t v = 0;

        if (from)
                memcpy(&v, from, sizeof(v));
        return b->swap ? bswap_16(v) : v;
}

static inline uint32_t bytes_u32(Bytes *b) {
        const uint8_t *from = bytes_take(b, sizeof(uint32_t));
        uint32_t v = 0;

        if (from)
                memcpy(&v, from, sizeof(v));
        return b->swap ? bswap_32(v) : v;
}

static inline uint64_t bytes_u64(Bytes *b) {
        const uint8_t *from = bytes_take(b, sizeof(uint64_t));
        uint64_t v = 0;

        if (from)
                memcpy(&v, from, sizeof(v));
        return b->swap ? bswap_64(v) : v;
}

/* The next n as bytes of their own, which are those of `b` no more. */
static inline Bytes bytes_split(Bytes *b, uint64_t n) {
        Bytes part = { .offset = b->offset, .swap = b->swap };

        part.at = bytes_take(b, n);
        part.end = part.at ? part.at + n : NULL;
        part.failed = b->failed;
        return part;
}

/* perf's string: u32 length, as many bytes, which its text and a 0 behind it need not fill. */
static inline perfd_text bytes_string(Bytes *b) {
        const uint32_t n = bytes_u32(b);
        const char *from = (const char *)bytes_take(b, n);

        return from ? (perfd_text){ .bytes = from, .length = strnlen(from, n) } : (perfd_text){ .bytes = "" };
}
