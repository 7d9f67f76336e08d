/* Memory: what came, the window, and a block. What is made of it goes to the caller's room, however much that is. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "proto/compression.h"

#define MAGIC_SIZE 4
#define ROOM ((size_t)16 << 10) /* a record of TLS */

typedef enum {
        STATE_UNKNOWN, /* its first bytes have not come */
        STATE_PLAIN,
        STATE_COMPRESSED,
        STATE_ENDED, /* the stream of zstd has */
        STATE_BAD,
} State;

struct Decompressor {
        ZSTD_DCtx *context; /* NULL: not needed yet */
        State state;
        bool may_hold; /* the context has more than there was room for */
        size_t begin, end;
        uint8_t bytes[ROOM];
};

Decompressor *decompressor_new(void) {
        return calloc(1, sizeof(Decompressor));
}

Decompressor *decompressor_free(Decompressor *d) {
        if (d)
                ZSTD_freeDCtx(d->context);
        free(d);
        return NULL;
}

size_t decompressor_room(Decompressor *d, uint8_t **ret_room) {
        if (d->begin == d->end)
                d->begin = d->end = 0;
        *ret_room = d->bytes + d->end;
        return sizeof(d->bytes) - d->end;
}

void decompressor_fed(Decompressor *d, size_t n) {
        assert(n <= sizeof(d->bytes) - d->end);
        d->end += n;
}

/* By its first bytes. */
static int decide(Decompressor *d) {
        static const uint8_t magic[MAGIC_SIZE] = { 0x28, 0xb5, 0x2f, 0xfd };

        if (d->end - d->begin < MAGIC_SIZE)
                return DECOMPRESSOR_E_NEED_MORE;
        d->state = memcmp(d->bytes + d->begin, magic, MAGIC_SIZE) == 0 ? STATE_COMPRESSED : STATE_PLAIN;
        if (d->state == STATE_PLAIN)
                return 0;
        d->context = ZSTD_createDCtx();
        if (!d->context || ZSTD_isError(ZSTD_DCtx_setParameter(d->context, ZSTD_d_windowLogMax, COMPRESSION_WINDOW_LOG)))
                return -ENOMEM;
        return 0;
}

static int next_plain(Decompressor *d, uint8_t *to, size_t size, size_t *ret_n) {
        size_t held = d->end - d->begin, n = held < size ? held : size;

        if (n == 0)
                return DECOMPRESSOR_E_NEED_MORE;
        memcpy(to, d->bytes + d->begin, n);
        d->begin += n;
        *ret_n = n;
        return 0;
}

static int next_compressed(Decompressor *d, uint8_t *to, size_t size, size_t *ret_n) {
        ZSTD_inBuffer in = { .src = d->bytes, .size = d->end, .pos = d->begin };
        ZSTD_outBuffer out = { .dst = to, .size = size };
        size_t left = 1;

        while (left > 0 && out.pos == 0 && (in.pos < in.size || d->may_hold)) {
                left = ZSTD_decompressStream(d->context, &out, &in);
                if (ZSTD_isError(left)) {
                        d->state = STATE_BAD;
                        return ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation ? -ENOMEM : DECOMPRESSOR_E_BAD;
                }
                d->may_hold = out.pos == out.size;
        }
        d->begin = in.pos;
        if (left == 0) {
                d->state = STATE_ENDED;
                d->may_hold = false;
        }
        *ret_n = out.pos;
        return out.pos > 0 ? 0 : DECOMPRESSOR_E_NEED_MORE;
}

int decompressor_next(Decompressor *d, uint8_t *to, size_t size, size_t *ret_n) {
        int r = d->state == STATE_UNKNOWN ? decide(d) : 0;

        if (r == 0 && d->state == STATE_COMPRESSED)
                r = next_compressed(d, to, size, ret_n);
        else if (r == 0 && d->state == STATE_PLAIN)
                r = next_plain(d, to, size, ret_n);
        else if (r == 0)
                r = d->state == STATE_ENDED && d->begin == d->end ? DECOMPRESSOR_E_NEED_MORE : DECOMPRESSOR_E_BAD;
        if (r == DECOMPRESSOR_E_NEED_MORE && d->state == STATE_ENDED && d->begin < d->end)
                r = DECOMPRESSOR_E_BAD;
        if (r < 0 || r == DECOMPRESSOR_E_BAD)
                d->state = STATE_BAD;
        return r;
}

bool decompressor_has_pending(const Decompressor *d) {
        return d->state != STATE_UNKNOWN && d->state != STATE_BAD && (d->begin < d->end || d->may_hold);
}

bool decompressor_is_compressed(const Decompressor *d) {
        return d->context != NULL;
}
