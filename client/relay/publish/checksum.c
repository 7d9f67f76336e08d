/* Eight bytes at a step by eight tables of the polynomial 0x1edc6f41, whose bits are reversed here. */
#include "client/relay/publish/checksum.h"

#include <stdbool.h>

#define POLYNOMIAL UINT32_C(0x82f63b78)

static uint32_t tables[8][256];

static void make_tables(void) {
        for (uint32_t i = 0; i < 256; i++) {
                uint32_t c = i;

                for (int bit = 0; bit < 8; bit++)
                        c = c >> 1 ^ (c & 1 ? POLYNOMIAL : 0);
                tables[0][i] = c;
        }
        for (int t = 1; t < 8; t++)
                for (int i = 0; i < 256; i++)
                        tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 0xff];
}

uint32_t checksum(uint32_t before, const uint8_t *bytes, size_t length) {
        uint32_t c = ~before;

        if (tables[0][1] == 0)
                make_tables();
        for (; length >= 8; bytes += 8, length -= 8) {
                uint32_t low = c ^ ((uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24);

                c = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^ tables[4][low >> 24] ^
                    tables[3][bytes[4]] ^ tables[2][bytes[5]] ^ tables[1][bytes[6]] ^ tables[0][bytes[7]];
        }
        for (; length > 0; bytes++, length--)
                c = c >> 8 ^ tables[0][(c ^ *bytes) & 0xff];
        return ~c;
}
