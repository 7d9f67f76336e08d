#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

#include "proto/compression.h"

#define ROOM_OF_STREAM 64 /* bytes: the header of the stream, and the block that ends it */

#define TABLE_LOG 15      /* numbers of 4 bytes in each of at most two */

struct Compressor {
        ZSTD_CCtx *context;
};

/* Of a level only its search counts: the window and the tables that are searched are the same for all. */
Compressor *compressor_new(int level) {
        const struct {
                ZSTD_cParameter parameter;
                int value;
        } settings[] = {
                { ZSTD_c_compressionLevel, level },
                { ZSTD_c_windowLog, COMPRESSION_WINDOW_LOG },
                { ZSTD_c_hashLog, TABLE_LOG },
                { ZSTD_c_chainLog, TABLE_LOG },
        };
        Compressor *c = calloc(1, sizeof(*c));
        bool is_set;

        if (c)
                c->context = ZSTD_createCCtx();
        is_set = c && c->context;
        for (size_t i = 0; is_set && i < sizeof(settings) / sizeof(settings[0]); i++)
                is_set = !ZSTD_isError(ZSTD_CCtx_setParameter(c->context, settings[i].parameter, settings[i].value));
        return is_set ? c : compressor_free(c);
}

Compressor *compressor_free(Compressor *c) {
        if (c)
                ZSTD_freeCCtx(c->context);
        free(c);
        return NULL;
}

size_t compressor_room(size_t n) {
        return ZSTD_compressBound(n) + ROOM_OF_STREAM;
}

int compressor_put(Compressor *c, const uint8_t *bytes, size_t n, bool is_last, uint8_t *to, size_t *ret_n) {
        ZSTD_inBuffer in = { .src = bytes, .size = n };
        ZSTD_outBuffer out = { .dst = to, .size = compressor_room(n) };
        size_t left;

        do {
                left = ZSTD_compressStream2(c->context, &out, &in, is_last ? ZSTD_e_end : ZSTD_e_flush);
                if (ZSTD_isError(left)) /* of memory: all else is as it has to be */
                        return -ENOMEM;
                assert(left == 0 || out.pos < out.size);
        } while (left > 0 || in.pos < in.size);
        *ret_n = out.pos;
        return 0;
}
