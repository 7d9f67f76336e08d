/*
 * Copies for the hot path. Short copies, mostly of the same length as the previous one, are inlined as a predictable loop, because a
 * call of memcpy(3) selects its method each time. Copies of kilobytes have their own implementation, because memcpy(3) is not
 * fast for them on every processor.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define COPY_LONG 2048 /* bytes, from which on it matters how */

/* As memcpy(3), for any length; optimized for COPY_LONG bytes and more. Any thread. */
void copy_long(uint8_t *restrict to, const uint8_t *restrict from, size_t n);

typedef void CopyWay(uint8_t *restrict to, const uint8_t *restrict from, size_t n);
/* For tests: the i-th implementation that this processor supports, for COPY_LONG bytes or more; NULL: there are no more. */
CopyWay *copy_way(unsigned i);

/* As memcpy(3), for any length; optimized for 32 to 256 bytes. The last bytes may be copied twice. */
static inline void copy_short(uint8_t *to, const uint8_t *from, size_t n) {
        if (__builtin_expect(n < 32 || n > 256, 0)) {
                copy_long(to, from, n);
                return;
        }
        memcpy(to, from, 32);
        if (n > 64)
                memcpy(to + 32, from + 32, 32);
        for (size_t i = 64; i + 32 < n; i += 32)
                memcpy(to + i, from + i, 32);
        memcpy(to + n - 32, from + n - 32, 32);
}
