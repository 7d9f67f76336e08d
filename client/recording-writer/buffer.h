/* For this folder alone: bytes that are put one value after the other, in this machine's byte order. After the first allocation that fails
 * nothing is put any more. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct Buffer {
        uint8_t *bytes;
        size_t n, room;
        bool failed; /* no memory */
} Buffer;

static inline void buffer_deinit(Buffer *b) {
        free(b->bytes);
        *b = (Buffer){ .n = 0 };
}

static inline uint8_t *buffer_reserve(Buffer *b, size_t n) {
        if (!b->failed && n > b->room - b->n) {
                const size_t room = 2 * b->room + n + 256;
                uint8_t *larger = realloc(b->bytes, room);

                b->failed = !larger;
                if (larger) {
                        b->bytes = larger;
                        b->room = room;
                }
        }
        return b->failed ? NULL : b->bytes + b->n;
}

static inline void buffer_put(Buffer *b, const void *bytes, size_t n) {
        uint8_t *at = buffer_reserve(b, n);

        if (!at || n == 0)
                return;
        memcpy(at, bytes, n);
        b->n += n;
}

static inline void buffer_put_zeros(Buffer *b, size_t n) {
        uint8_t *at = buffer_reserve(b, n);

        if (!at)
                return;
        memset(at, 0, n);
        b->n += n;
}

static inline void buffer_put_u16(Buffer *b, uint16_t v) {
        buffer_put(b, &v, sizeof(v));
}

static inline void buffer_put_u32(Buffer *b, uint32_t v) {
        buffer_put(b, &v, sizeof(v));
}

static inline void buffer_put_u64(Buffer *b, uint64_t v) {
        buffer_put(b, &v, sizeof(v));
}

/* perf's string: u32 length, as many bytes: its text and zeros up to a multiple of 64, of which there is one at least. */
static inline void buffer_put_string(Buffer *b, const char *s, size_t n) {
        const size_t length = (n + 64) / 64 * 64;

        buffer_put_u32(b, (uint32_t)length);
        buffer_put(b, s, n);
        buffer_put_zeros(b, length - n);
}
