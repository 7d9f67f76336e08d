/*
 * AMD's processors since Zen 3 say that their string moves are fast, and so memcpy(3) of glibc before 2.40 uses these from 2 KiB
 * on. They are slow there: on Zen 4 a tenth to a fifth slower than vectors, on Zen 3 many times, where the destination is not
 * aligned, as that of items never is. So lines are copied by vectors there, each written as a whole. What is right for other
 * processors their C library knows better.
 */
#include "daemon/base/copy.h"

#include <stdbool.h>

#if defined(__x86_64__)

#define LINE 64 /* bytes: of a cache */
#define AT_ONCE 4

typedef uint8_t Line __attribute__((vector_size(LINE)));
typedef uint8_t LooseLine __attribute__((vector_size(LINE), aligned(1)));

#define LINE_AT(from) (*(const LooseLine *)(from))

/* The first line and the last one are copied where they are, those between at whole lines of the destination. */
static inline __attribute__((always_inline)) void copy_lines(uint8_t *restrict to, const uint8_t *restrict from, size_t n) {
        size_t first = LINE - (uintptr_t)to % LINE;
        uint8_t *const last = to + n - LINE;

        *(LooseLine *)last = LINE_AT(from + n - LINE);
        *(LooseLine *)to = LINE_AT(from);
        for (to += first, from += first; to + AT_ONCE * LINE <= last; to += AT_ONCE * LINE, from += AT_ONCE * LINE) {
                Line a = LINE_AT(from), b = LINE_AT(from + LINE), c = LINE_AT(from + 2 * LINE), d = LINE_AT(from + 3 * LINE);

                *(Line *)to = a;
                *(Line *)(to + LINE) = b;
                *(Line *)(to + 2 * LINE) = c;
                *(Line *)(to + 3 * LINE) = d;
        }
        for (; to < last; to += LINE, from += LINE)
                *(Line *)to = LINE_AT(from);
}

__attribute__((target("avx512f"))) static void copy_by_512(uint8_t *restrict to, const uint8_t *restrict from, size_t n) {
        copy_lines(to, from, n);
}

__attribute__((target("avx"))) static void copy_by_256(uint8_t *restrict to, const uint8_t *restrict from, size_t n) {
        copy_lines(to, from, n);
}

static void copy_by_128(uint8_t *restrict to, const uint8_t *restrict from, size_t n) {
        copy_lines(to, from, n);
}

static bool has_slow_strings(void) {
        return __builtin_cpu_is("amd") && __builtin_cpu_supports("avx2"); /* before Zen 3 memcpy(3) uses these vectors too */
}

CopyWay *copy_way(unsigned i) {
        CopyWay *ways[3];
        unsigned n = 0;

        if (__builtin_cpu_supports("avx512f"))
                ways[n++] = copy_by_512;
        if (__builtin_cpu_supports("avx"))
                ways[n++] = copy_by_256;
        ways[n++] = copy_by_128;
        return i < n ? ways[i] : NULL;
}

void copy_long(uint8_t *restrict to, const uint8_t *restrict from, size_t n) {
        if (n < COPY_LONG || !has_slow_strings())
                memcpy(to, from, n);
        else if (__builtin_cpu_supports("avx512f"))
                copy_by_512(to, from, n);
        else
                copy_by_256(to, from, n);
}

#else

CopyWay *copy_way(unsigned i) {
        return NULL;
}

void copy_long(uint8_t *restrict to, const uint8_t *restrict from, size_t n) {
        memcpy(to, from, n);
}

#endif
