/* Modules of the kernel, and the symbols in .gnu_debugdata. */
#include "client/symbols/unpack.h"

#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define XZ_MEMORY_MAX (UINT64_C(128) << 20)

char *unpack_xz(const void *from, size_t n, size_t max, size_t *ret_n) {
        lzma_stream xz = LZMA_STREAM_INIT;
        char *bytes = NULL;
        size_t room = 0;
        lzma_ret r = lzma_stream_decoder(&xz, XZ_MEMORY_MAX, 0);

        xz.next_in = from;
        xz.avail_in = n;
        while (r == LZMA_OK && room < max) {
                const size_t more = room ? room * 2 : 65536;
                char *grown = realloc(bytes, more);

                if (!grown)
                        break;
                bytes = grown;
                xz.next_out = (uint8_t *)bytes + room;
                xz.avail_out = more - room;
                room = more;
                while (r == LZMA_OK && xz.avail_out > 0)
                        r = lzma_code(&xz, LZMA_FINISH);
        }
        *ret_n = (size_t)xz.total_out;
        lzma_end(&xz);
        if (r == LZMA_STREAM_END)
                return bytes;
        free(bytes);
        return NULL;
}

/* zstd(1) writes the size of what it compresses, if it is a file. */
static char *unpack_zstd(const void *from, size_t n, size_t max, size_t *ret_n) {
        const unsigned long long size = ZSTD_getFrameContentSize(from, n);
        char *bytes = size > 0 && size <= max ? malloc(size) : NULL; /* not known, and none, are larger than any max */

        *ret_n = bytes ? ZSTD_decompress(bytes, size, from, n) : 0;
        if (bytes && *ret_n == size)
                return bytes;
        free(bytes);
        return NULL;
}

char *unpack(const void *from, size_t n, size_t max, size_t *ret_n) {
        static const unsigned char xz[] = { 0xfd, '7', 'z', 'X', 'Z', 0 }, zstd[] = { 0x28, 0xb5, 0x2f, 0xfd };

        if (n > sizeof(xz) && memcmp(from, xz, sizeof(xz)) == 0)
                return unpack_xz(from, n, max, ret_n);
        return n > sizeof(zstd) && memcmp(from, zstd, sizeof(zstd)) == 0 ? unpack_zstd(from, n, max, ret_n) : NULL;
}
