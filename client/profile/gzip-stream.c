/* deflate(3) fails only for what is not there: a stream that is initialized, with room for its output, cannot. */
#include <assert.h>
#include <errno.h>
#include <limits.h>

#include "client/profile/gzip-stream.h"

#define WINDOW_OF_GZIP (MAX_WBITS + 16)
#define MEMORY_LEVEL 8 /* what zlib has as its default */
#define QUICK 1 /* level: a recording waits for nothing else here */

int gzip_stream_init(GzipStream *g, FILE *out) {
        *g = (GzipStream){ .out = out };
        return deflateInit2(&g->z, QUICK, Z_DEFLATED, WINDOW_OF_GZIP, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK ? 0 : -ENOMEM;
}

static void pump(GzipStream *g, int flush) {
        unsigned char block[1 << 14];

        do {
                int r;

                g->z.next_out = block;
                g->z.avail_out = sizeof(block);
                r = deflate(&g->z, flush);
                assert(r != Z_STREAM_ERROR);
                (void)fwrite(block, 1, sizeof(block) - g->z.avail_out, g->out);
        } while (g->z.avail_out == 0);
}

void gzip_stream_put(GzipStream *g, const void *bytes, size_t n) {
        assert(n <= UINT_MAX);
        g->z.next_in = (unsigned char *)bytes;
        g->z.avail_in = (unsigned)n;
        pump(g, Z_NO_FLUSH);
}

void gzip_stream_finish(GzipStream *g) {
        pump(g, Z_FINISH);
        (void)deflateEnd(&g->z);
}
