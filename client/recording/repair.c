/*
 * A recording that was cut becomes one that perf opens: its records up to the last one that is whole, then the sections of its header, as far
 * as they are there, and at last the header says how much that is. Values are written in the recording's own byte order. Of compressed records
 * perf reads none without the section COMPRESSED, which a recorder that was killed has not written: it is made of what was read.
 */
#include <byteswap.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/recording/recording.h"

#define CHUNK ((size_t)1 << 20) /* bytes that are copied at a time */
#define DATA_SIZE_AT 48         /* in the header */
#define BITS_AT 72
#define COMPRESSED_WORDS 5
#define COMPRESSED_ZSTD 1
#define COMPRESSED_LEAST 524288 /* bytes: perf's buffers have no less */
#define PAGE 4096

typedef struct Repair {
        perfd_recording *r;
        int fd;
        uint64_t at; /* bytes written */
        bool makes_compressed;
        uint32_t compressed[COMPRESSED_WORDS]; /* the section, in the order of the recording */
} Repair;

static uint64_t in_order(const perfd_recording *r, uint64_t number) {
        return r->is_swapped ? bswap_64(number) : number;
}

static int failed_to_write(Repair *w, int code) {
        return recording_fail(w->r, code, "writing what was whole, at byte %llu: %s", (unsigned long long)w->at, strerror(-code));
}

static int put(Repair *w, const void *bytes, size_t n) {
        const uint8_t *from = bytes;

        while (n > 0) {
                const ssize_t done = write(w->fd, from, n);

                if (done < 0 && errno == EINTR)
                        continue;
                if (done <= 0)
                        return failed_to_write(w, done < 0 ? -errno : -EIO);
                from += done;
                n -= (size_t)done;
                w->at += (uint64_t)done;
        }
        return 0;
}

static int put_at(Repair *w, off_t at, const void *bytes, size_t n) {
        const ssize_t done = pwrite(w->fd, bytes, n, at);

        return done == (ssize_t)n ? 0 : failed_to_write(w, done < 0 ? -errno : -EIO);
}

/* As they are in the recording. */
static int copy(Repair *w, uint64_t from, uint64_t n) {
        while (n > 0) {
                Bytes b;
                int code = recording_get(w->r, from, n < CHUNK ? (size_t)n : CHUNK, &b);
                const size_t got = code == 0 ? bytes_left(&b) : 0;

                if (code == 0 && got == 0)
                        code = recording_fail(w->r, -EIO, "at byte %llu: it has become shorter meanwhile", (unsigned long long)from);
                if (code == 0)
                        code = put(w, b.at, got);
                if (code != 0)
                        return code;
                from += got;
                n -= got;
        }
        return 0;
}

static bool is_there(const perfd_recording *r, unsigned bit) {
        return recording_has(r, bit) && (r->cut[bit / 64] >> bit % 64 & 1) == 0;
}

static bool is_made(const Repair *w, unsigned bit) {
        return bit == PERF_DATA_FEATURE_COMPRESSED && w->makes_compressed;
}

static bool is_put(const Repair *w, unsigned bit) {
        return is_there(w->r, bit) || is_made(w, bit);
}

/* perf takes as much memory for what comes out of a compressed record as it says, and no more comes out. */
static int make_compressed(Repair *w) {
        const perfd_recording *r = w->r;
        const uint64_t max = decompress_max(r);
        const uint32_t words[COMPRESSED_WORDS] = { 1, COMPRESSED_ZSTD, 1, 1,
                                                   max > COMPRESSED_LEAST ? (uint32_t)((max + PAGE - 1) / PAGE * PAGE) : COMPRESSED_LEAST };

        w->makes_compressed = max > 0 && !is_there(r, PERF_DATA_FEATURE_COMPRESSED);
        if (w->makes_compressed && max > UINT32_MAX - PAGE)
                return recording_fail(w->r, PERFD_E_INVALID, "a compressed record becomes %llu bytes: perf reads less than 4 GiB", (unsigned long long)max);
        for (size_t i = 0; i < COMPRESSED_WORDS; i++)
                w->compressed[i] = r->is_swapped ? bswap_32(words[i]) : words[i];
        return 0;
}

/* Where the sections are to be; those that stand before the records stay there, the others follow these rows. */
static int put_sections(Repair *w, uint64_t bits[static PERF_DATA_FEATURES / 64]) {
        const perfd_recording *r = w->r;
        const Section made = { .size = sizeof(w->compressed) };
        uint64_t at = w->at;
        int code = 0;

        for (unsigned bit = 0; bit < PERF_DATA_FEATURES; bit++)
                at += is_put(w, bit) ? PERF_DATA_SECTION : 0;
        for (unsigned bit = 0; bit < PERF_DATA_FEATURES && code == 0; bit++) {
                const Section *s = is_made(w, bit) ? &made : &r->sections[bit];
                const bool stays = !is_made(w, bit) && s->offset + s->size <= r->data;
                const uint64_t row[2] = { in_order(r, stays ? s->offset : at), in_order(r, s->size) };

                if (!is_put(w, bit))
                        continue;
                bits[bit / 64] |= UINT64_C(1) << bit % 64;
                at += stays ? 0 : s->size;
                code = put(w, row, sizeof(row));
        }
        for (unsigned bit = 0; bit < PERF_DATA_FEATURES && code == 0; bit++)
                if (is_made(w, bit))
                        code = put(w, w->compressed, sizeof(w->compressed));
                else if (is_there(r, bit) && r->sections[bit].offset + r->sections[bit].size > r->data)
                        code = copy(w, r->sections[bit].offset, r->sections[bit].size);
        return code;
}

static int put_file(Repair *w) {
        perfd_recording *r = w->r;
        const uint64_t size = in_order(r, r->whole - r->data);
        uint64_t bits[PERF_DATA_FEATURES / 64] = { 0 };
        int code = make_compressed(w);

        if (code == 0)
                code = put_sections(w, bits);
        for (size_t i = 0; i < PERF_DATA_FEATURES / 64; i++)
                bits[i] = in_order(r, bits[i]);
        if (code == 0)
                code = put_at(w, BITS_AT, bits, sizeof(bits));
        return code == 0 ? put_at(w, DATA_SIZE_AT, &size, sizeof(size)) : code;
}

int perfd_recording_repair(perfd_recording *r, int fd) {
        Repair w = { .r = r, .fd = fd };
        int code;

        if (!r->has_ended || r->order)
                return recording_fail(r, PERFD_E_STATE, "it has to be read to its end first, in its own order");
        if (!source_is_seekable(&r->source))
                return recording_fail(r, PERFD_E_STATE, "a pipe cannot be read again: give the name of a file");
        if (!r->is_pipe && r->data < PERF_DATA_HEADER_SIZE)
                return recording_fail(r, PERFD_E_INVALID, "its header is of a perf before Linux 2.6.35, and has no room for what is missing");
        code = copy(&w, 0, r->whole);
        return code == 0 && !r->is_pipe ? put_file(&w) : code;
}
