/* Where there is nothing to say about a processor: its C library knows best. For others see copy-x86-64.c. */
#include "daemon/base/copy.h"

CopyWay *copy_way(unsigned i) {
        return NULL;
}

void copy_long(uint8_t *restrict to, const uint8_t *restrict from, size_t n) {
        memcpy(to, from, n);
}
