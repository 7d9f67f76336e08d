/* For tests of recordings: one is written value by value, in either byte order. What does not fit fails the test. */
#pragma once

#include <byteswap.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "proto/recording-format.h"

#ifndef BUILT_MAX
#define BUILT_MAX ((size_t)1 << 18) /* bytes */
#endif

typedef struct Built {
        bool swap;
        size_t n;
        uint8_t bytes[BUILT_MAX];
} Built;

static inline void built_bytes(Built *b, const void *bytes, size_t n) {
        assert_true(b->n + n <= sizeof(b->bytes));
        if (n > 0)
                memcpy(b->bytes + b->n, bytes, n);
        b->n += n;
}

static inline void built_zeros(Built *b, size_t n) {
        assert_true(b->n + n <= sizeof(b->bytes));
        memset(b->bytes + b->n, 0, n);
        b->n += n;
}

static inline void built_u16(Built *b, uint16_t v) {
        v = b->swap ? bswap_16(v) : v;
        built_bytes(b, &v, sizeof(v));
}

static inline void built_u32(Built *b, uint32_t v) {
        v = b->swap ? bswap_32(v) : v;
        built_bytes(b, &v, sizeof(v));
}

static inline void built_u64(Built *b, uint64_t v) {
        v = b->swap ? bswap_64(v) : v;
        built_bytes(b, &v, sizeof(v));
}

/* At a place that was left for it. */
static inline void built_u64_at(Built *b, size_t at, uint64_t v) {
        const size_t n = b->n;

        b->n = at;
        built_u64(b, v);
        b->n = n;
}

static inline void built_u16_at(Built *b, size_t at, uint16_t v) {
        const size_t n = b->n;

        b->n = at;
        built_u16(b, v);
        b->n = n;
}

/* perf's string, padded as perf does. */
static inline void built_string(Built *b, const char *text) {
        const size_t n = strlen(text) + 1, padded = (n + 63) / 64 * 64;

        built_u32(b, (uint32_t)padded);
        built_bytes(b, text, n);
        built_zeros(b, padded - n);
}

/* Gives where it begins; built_record_end() writes its size there. */
static inline size_t built_record(Built *b, uint32_t type, uint16_t misc) {
        const size_t at = b->n;

        built_u32(b, type);
        built_u16(b, misc);
        built_u16(b, 0);
        return at;
}

static inline void built_record_end(Built *b, size_t at) {
        built_u16_at(b, at + 6, (uint16_t)(b->n - at));
}

/* An attr of that size, as a compiler of the other byte order lays out its bits, too. */
static inline void built_attr(Built *b, size_t size, uint32_t type, uint64_t config, uint64_t sample_type, uint64_t flags) {
        const size_t at = b->n;
        uint8_t bits[8];

        built_u32(b, type);
        built_u32(b, (uint32_t)size);
        built_u64(b, config);
        built_u64(b, 4000); /* period */
        built_u64(b, sample_type);
        built_u64(b, 0);
        for (int i = 0; i < 64; i++) {
                const int from = b->swap && (i == 15 || i == 16) ? 31 - i : i; /* the two of precise_ip are one number */
                uint8_t *byte = &bits[i / 8];

                if (i % 8 == 0)
                        *byte = 0;
                if ((flags >> from & 1) != 0)
                        *byte |= (uint8_t)(b->swap ? 0x80 >> i % 8 : 1 << i % 8);
        }
        built_bytes(b, bits, sizeof(bits));
        built_u32(b, 7); /* wakeup_events */
        built_u32(b, 3); /* bp_type */
        built_u64(b, 0x1234);
        while (b->n - at + 8 <= size)
                built_u64(b, 0x0102030405060708);
        built_zeros(b, size - (b->n - at));
}
