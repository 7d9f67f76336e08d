/*
 * For relay, `perfctl stdio` and client: what is sent to a client may be one stream of zstd (RFC 8878), if it has asked for it. It is one
 * if it begins with zstd's magic number, which is no length of a frame (proto/frame.h): so the first bytes say whether it is. One owner
 * each, no thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COMPRESSION_ALPN "perfd/1+zstd"              /* how a client of TLS asks for it */
#define COMPRESSION_VARIABLE "PERFD_STDIO_COMPRESS"  /* and one of ssh, in the environment of `perfctl stdio` */
#define COMPRESSION_NAME "zstd"                      /* its value */
#define COMPRESSION_LEVEL 1
#define COMPRESSION_LEVEL_MAX 9
#define COMPRESSION_WINDOW_LOG 16 /* 64 KiB: what is sent refers to that much behind it, so it bounds the memory of both sides */

typedef struct Compressor Compressor;

/* level: 1 to COMPRESSION_LEVEL_MAX. NULL: no memory. */
Compressor *compressor_new(int level);
Compressor *compressor_free(Compressor *c);
/* Bytes of room that compressor_put() needs for n bytes. */
size_t compressor_room(size_t n);
/*
 * Compresses n bytes completely, so that the other side can read all of them at once; is_last: and ends the stream. `to` has
 * compressor_room(n). -ENOMEM, which can only be the first time.
 */
int compressor_put(Compressor *c, const uint8_t *bytes, size_t n, bool is_last, uint8_t *to, size_t *ret_n);

enum {
        DECOMPRESSOR_E_NEED_MORE = 1, /* all that came is taken */
        DECOMPRESSOR_E_BAD,           /* it is no stream of zstd, needs a larger window, or goes on behind its end: for ever */
};

typedef struct Decompressor Decompressor;

/* NULL: no memory. */
Decompressor *decompressor_new(void);
Decompressor *decompressor_free(Decompressor *d);
/* Room for bytes that come, of which decompressor_fed() says how many: at least one after DECOMPRESSOR_E_NEED_MORE. */
size_t decompressor_room(Decompressor *d, uint8_t **ret_room);
void decompressor_fed(Decompressor *d, size_t n);
/*
 * What they say, compressed or not: at most `size` bytes, which is more than 0, and the rest the next time. 0: *ret_n are more than 0;
 * DECOMPRESSOR_E_NEED_MORE, DECOMPRESSOR_E_BAD, -ENOMEM.
 */
int decompressor_next(Decompressor *d, uint8_t *to, size_t size, size_t *ret_n);
/* There may be bytes for decompressor_next() without any that come. */
bool decompressor_has_pending(const Decompressor *d);
/* It is a stream of zstd; false also before that is known. */
bool decompressor_is_compressed(const Decompressor *d);
