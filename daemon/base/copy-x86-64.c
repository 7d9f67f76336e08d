/*
 * AMD's processors since Zen 3 say that their string moves are fast, and so memcpy(3) of glibc before 2.40 uses these from 2 KiB
 * on. They are slow there: on Zen 4 a tenth to a fifth slower than vectors, on Zen 3 many times, where the destination is not
 * aligned, as that of items hardly ever is. So these processors copy by vectors, at whole lines of the destination. What is
 * right for others their C library knows better.
 */
#include "daemon/base/copy.h"

#include <assert.h>
#include <stdbool.h>

#define LINE 64 /* bytes: of a cache */
#define AT_ONCE 4 /* lines */

typedef uint8_t Vector256 __attribute__((vector_size(32), aligned(1)));
typedef uint8_t Vector512 __attribute__((vector_size(64), aligned(1)));

static inline __attribute__((always_inline)) void copy_line(uint8_t *to, const uint8_t *from, bool has_512) {
        if (has_512)
                *(Vector512 *)to = *(const Vector512 *)from;
        else {
                *(Vector256 *)to = *(const Vector256 *)from;
                *(Vector256 *)(to + LINE / 2) = *(const Vector256 *)(from + LINE / 2);
        }
}

/* The first line and the last one are copied to where they are, those between to whole lines. */
static inline __attribute__((always_inline)) void copy_lines(uint8_t *restrict to, const uint8_t *restrict from, size_t n,
                                                             bool has_512) {
        const size_t first = LINE - (uintptr_t)to % LINE;
        uint8_t *const last = to + n - LINE;

        assert(n >= COPY_LONG);
        copy_line(to, from, has_512);
        copy_line(last, from + n - LINE, has_512);
        for (to += first, from += first; last - to >= AT_ONCE * LINE; to += AT_ONCE * LINE, from += AT_ONCE * LINE)
                for (size_t i = 0; i < AT_ONCE; i++)
                        copy_line(to + i * LINE, from + i * LINE, has_512);
        for (; to < last; to += LINE, from += LINE)
                copy_line(to, from, has_512);
}

__attribute__((target("avx512f"))) static void copy_by_512(uint8_t *restrict to, const uint8_t *restrict from, size_t n) {
        copy_lines(to, from, n, true);
}

__attribute__((target("avx2"))) static void copy_by_256(uint8_t *restrict to, const uint8_t *restrict from, size_t n) {
        copy_lines(to, from, n, false);
}

CopyWay *copy_way(unsigned i) {
        CopyWay *ways[2];
        unsigned n = 0;

        if (__builtin_cpu_supports("avx512f"))
                ways[n++] = copy_by_512;
        if (__builtin_cpu_supports("avx2"))
                ways[n++] = copy_by_256;
        return i < n ? ways[i] : NULL;
}

/* Zen 3 and later: it was the first to have this too. */
static bool has_slow_strings(void) {
        return __builtin_cpu_is("amd") && __builtin_cpu_supports("vpclmulqdq");
}

void copy_long(uint8_t *restrict to, const uint8_t *restrict from, size_t n) {
        if (n < COPY_LONG || !has_slow_strings())
                memcpy(to, from, n);
        else if (__builtin_cpu_supports("avx512f"))
                copy_by_512(to, from, n);
        else
                copy_by_256(to, from, n); /* they have AVX2 */
}
