/*
 * COMPRESSED and COMPRESSED2: perf writes one zstd stream, cut into records wherever it was flushed, and what comes out of it are records
 * that need not end where theirs does. Only as much is decompressed as the next record needs, so that a few bytes which become gigabytes
 * cost time and no memory.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "client/recording/damage.h"
#include "client/recording/decompress.h"
#include "client/recording/left-out.h"

#define OUT_SIZE ((size_t)256 << 10)  /* bytes that are decompressed at a time: more than a record has */
#define WINDOW_LOG_MAX 27             /* 128 MiB of what came before, at most, can be referred to: what zstd(1) takes, too */

struct Decompress {
        ZSTD_DStream *stream;
        uint8_t in[RECORD_MAX + PERF_DATA_RECORD_HEADER + sizeof(uint64_t)]; /* what is compressed */
        size_t in_at, in_n;
        uint64_t offset;              /* of the record that has it */
        uint8_t *out;                 /* OUT_SIZE; out[at, n) are records */
        size_t at, n;
        uint64_t n_record, n_max;     /* bytes that came out of this compressed record, and out of the one with the most */
        bool is_broken;               /* nothing can be had out of the stream any more */
        const char *error;            /* why, as long as that is not said */
        bool is_full;                 /* there may be more to come out of what was put in */
        perfd_recorded shown;
};

void decompress_free(Decompress *d) {
        if (!d)
                return;
        ZSTD_freeDStream(d->stream);
        free(d->out);
        free(d);
}

static int decompress_new(perfd_recording *r) {
        Decompress *d = calloc(1, sizeof(*d));

        if (d) {
                d->stream = ZSTD_createDStream();
                d->out = malloc(OUT_SIZE);
        }
        if (!d || !d->stream || !d->out || ZSTD_isError(ZSTD_initDStream(d->stream)) ||
            ZSTD_isError(ZSTD_DCtx_setParameter(d->stream, ZSTD_d_windowLogMax, WINDOW_LOG_MAX))) {
                decompress_free(d);
                return recording_fail(r, -ENOMEM, "no memory");
        }
        r->decompress = d;
        return 0;
}

/* A record that says more bytes than it has is none of the stream. */
static int refuse_size(perfd_recording *r, const Bytes *body, uint64_t n, uint64_t offset) {
        const size_t room = bytes_left(body);
        const int code = room < sizeof(n) ? recording_damage(r, offset, "a record COMPRESSED2: it has no room for its size") :
                                            recording_damage(r, offset, "a record COMPRESSED2: its size: found %" PRIu64 ", expected at most %zu", n,
                                                             room - sizeof(n));

        return code == 0 ? left_out_add(r, &r->shown) : code;
}

int decompress_feed(perfd_recording *r, uint32_t type, const Bytes *body, uint64_t offset) {
        Bytes b = *body;
        int code = r->decompress ? 0 : decompress_new(r);
        Decompress *d = r->decompress;
        uint64_t n = bytes_left(&b);

        if (code != 0 || d->is_broken)
                return code;
        if (type == PERF_DATA_COMPRESSED2) {
                n = bytes_u64(&b);
                if (b.failed || n > bytes_left(&b))
                        return refuse_size(r, body, n, offset);
        }
        memcpy(d->in, b.at, (size_t)n); /* no more than a record has */
        d->in_at = 0;
        d->in_n = (size_t)n;
        d->offset = offset;
        d->n_record = 0;
        return 0;
}

/* Moves what is left of a record to the front, and decompresses behind it. False: nothing came. */
static bool decompress_more(Decompress *d) {
        ZSTD_inBuffer in = { .src = d->in, .size = d->in_n, .pos = d->in_at };
        ZSTD_outBuffer out = { .dst = d->out, .size = OUT_SIZE };
        size_t r;

        if (d->is_broken || (d->in_at == d->in_n && !d->is_full))
                return false;
        memmove(d->out, d->out + d->at, d->n - d->at);
        out.pos = d->n -= d->at;
        d->at = 0;
        do {
                r = ZSTD_decompressStream(d->stream, &out, &in);
        } while (!ZSTD_isError(r) && in.pos < in.size && out.pos < out.size);
        if (ZSTD_isError(r)) {
                d->error = ZSTD_getErrorName(r);
                d->is_broken = true;
        }
        d->is_full = out.pos == out.size;
        d->in_at = in.pos;
        if (out.pos == d->n)
                return false;
        d->n_record += out.pos - d->n;
        d->n_max = d->n_record > d->n_max ? d->n_record : d->n_max;
        d->n = out.pos;
        return true;
}

/* 0: nothing is known of its size yet. */
static size_t record_size(const perfd_recording *r, const Decompress *d, uint32_t *type, uint16_t *misc) {
        Bytes b = { .at = d->out + d->at, .end = d->out + d->n, .swap = r->is_swapped };
        size_t size;

        if (bytes_left(&b) < PERF_DATA_RECORD_HEADER)
                return 0;
        *type = bytes_u32(&b);
        *misc = bytes_u16(&b);
        size = bytes_u16(&b);
        return size;
}

static int break_off(perfd_recording *r, const char *why) {
        Decompress *d = r->decompress;

        d->is_broken = true;
        d->error = NULL;
        d->in_at = d->in_n;
        d->at = d->n;
        return recording_damage(r, d->offset, "a compressed record: %s; nothing of those behind it can be read", why);
}

int decompress_next(perfd_recording *r, perfd_recorded **ret) {
        Decompress *d = r->decompress;

        for (;;) {
                uint32_t type = 0;
                uint16_t misc = 0;
                size_t size = record_size(r, d, &type, &misc);

                if (d->n - d->at >= PERF_DATA_RECORD_HEADER && size < PERF_DATA_RECORD_HEADER) {
                        int code = break_off(r, "a record in it has a size below that of a header");

                        return code != 0 ? code : PERFD_E_ENDED;
                }
                if (size > 0 && size <= d->n - d->at) {
                        d->shown = (perfd_recorded){ .type = type, .misc = misc, .is_compressed = true, .offset = d->offset,
                                                     .bytes = d->out + d->at + PERF_DATA_RECORD_HEADER,
                                                     .size = size - PERF_DATA_RECORD_HEADER };
                        d->at += size;
                        *ret = &d->shown;
                        return 0;
                }
                if (decompress_more(d))
                        continue;
                if (d->error) {
                        int code = break_off(r, d->error);

                        if (code != 0)
                                return code;
                }
                return PERFD_E_ENDED;
        }
}

uint64_t decompress_max(const perfd_recording *r) {
        return r->decompress ? r->decompress->n_max : 0;
}

int decompress_end(perfd_recording *r) {
        const Decompress *d = r->decompress;

        if (!d || d->is_broken || d->n == d->at)
                return 0;
        return recording_damage(r, d->offset, "a compressed record: the recording ends within a record in it, of which %zu bytes are there",
                                d->n - d->at);
}
