/*
 * For everything that goes to stdout: one block of memory, written when it is full or when the caller says so. Streams
 * print a million lines a second, which stdio(3) with its lock for each call would not.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define OUTPUT_SIZE ((size_t)1 << 16)

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
void output_put_number(Output *o, uint64_t number);
void output_put_signed(Output *o, int64_t number);
void output_put_hex(Output *o, uint64_t number); /* without 0x */
void output_put_hex_bytes(Output *o, const char *bytes, size_t n);
void output_print(Output *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline void output_put(Output *o, const char *bytes, size_t n) {
        if (n > OUTPUT_SIZE - o->n) {
                output_put_slow(o, bytes, n);
                return;
        }
        memcpy(o->bytes + o->n, bytes, n);
        o->n += n;
}

static inline void output_put_string(Output *o, const char *s) {
        output_put(o, s, strlen(s));
}

static inline void output_put_char(Output *o, char c) {
        if (o->n == OUTPUT_SIZE)
                output_flush(o);
        o->bytes[o->n++] = c;
}
