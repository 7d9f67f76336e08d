/*
 * For what is copied by the million and is short each time, mostly as short as the time before: a loop without surprises
 * in place, where a call of memcpy(3) has to find out each time how to do it. And for kilobytes, which memcpy(3) does not copy
 * well on each processor.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define COPY_LONG 2048 /* bytes, from which on it matters how */

/* As memcpy(3), of any length; made for COPY_LONG and more. Any thread. */
void copy_long(uint8_t *restrict to, const uint8_t *restrict from, size_t n);

typedef void CopyWay(uint8_t *restrict to, const uint8_t *restrict from, size_t n);
/* For tests: a way of our own that this processor could go, for COPY_LONG bytes or more; NULL: there are no more. */
CopyWay *copy_way(unsigned i);

/* As memcpy(3), of any length; made for 32 to 256 bytes. Its last bytes may be copied twice, which is alike for all. */
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
