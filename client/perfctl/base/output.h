/*
 * For everything that goes to stdout: one block of memory, written when it is full or when the caller says so. Streams
 * print millions of lines a second, which stdio(3) with its lock for each call would not.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "client/perfctl/base/digits.h"

#define OUTPUT_SIZE ((size_t)1 << 17)
#define OUTPUT_ROOM ((size_t)1 << 16) /* at most this much is asked for in one piece: so each full block is at least as large */

typedef struct Output {
        int fd;
        size_t n;
        size_t n_flushed; /* how often */
        int error; /* errno of the first write that failed; what is put afterwards is dropped */
        char bytes[OUTPUT_SIZE];
} Output;

void output_init(Output *o, int fd);
void output_flush(Output *o);
void output_put_slow(Output *o, const char *bytes, size_t n);
void output_put_hex_bytes(Output *o, const char *bytes, size_t n);
void output_print(Output *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Where n bytes can be written, at most OUTPUT_ROOM; output_end() says how far they were. */
static inline char *output_begin(Output *o, size_t n) {
        if (n > OUTPUT_SIZE - o->n)
                output_flush(o);
        return o->bytes + o->n;
}

static inline void output_end(Output *o, const char *end) {
        o->n = (size_t)(end - o->bytes);
}

static inline void output_put(Output *o, const char *bytes, size_t n) {
        if (n > OUTPUT_SIZE - o->n) {
                output_put_slow(o, bytes, n);
                return;
        }
        memcpy(o->bytes + o->n, bytes, n);
        o->n += n;
}

static inline void output_put_number(Output *o, uint64_t number) {
        output_end(o, decimal_put(output_begin(o, DECIMAL_ROOM), number));
}

static inline void output_put_signed(Output *o, int64_t number) {
        output_end(o, signed_put(output_begin(o, 1 + DECIMAL_ROOM), number));
}

/* Without 0x. */
static inline void output_put_hex(Output *o, uint64_t number) {
        output_end(o, hex_put(output_begin(o, HEX_ROOM), number));
}

static inline void output_put_string(Output *o, const char *s) {
        output_put(o, s, strlen(s));
}

static inline void output_put_char(Output *o, char c) {
        if (o->n == OUTPUT_SIZE)
                output_flush(o);
        o->bytes[o->n++] = c;
}
