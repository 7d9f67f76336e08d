/*
 * A recording that was cut becomes one that perf opens: its records up to the last one that is whole, then the sections of its header, as far
 * as they are there, and at last the header says how much that is. Values are written in the recording's own byte order. Sections that perf
 * needs, and that a recorder which was killed has not written, are made.
 */
#include <byteswap.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client/recording/damage.h"
#include "client/recording/left-out.h"
#include "client/recording/made-sections.h"

#define CHUNK ((size_t)1 << 20) /* bytes that are copied at a time */
#define DATA_SIZE_AT 48         /* in the header */
#define BITS_AT 72

typedef struct Repair {
        perfd_recording *r;
        int fd;
        uint64_t at; /* bytes written */
        MadeSections made;
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

/* All up to the last record that is whole, but those that are left out, and what says how many samples these were. */
static int copy_records(Repair *w) {
        const perfd_recording *r = w->r;
        uint8_t lost[LEFT_OUT_MAX];
        uint64_t from = 0;
        int code = 0;

        for (size_t i = 0; i < r->left_out.n && code == 0; i++) {
                code = copy(w, from, r->left_out.list[i].offset - from);
                from = r->left_out.list[i].offset + r->left_out.list[i].size;
        }
        if (code == 0)
                code = copy(w, from, r->whole - from);
        return code == 0 ? put(w, lost, left_out_record(r, lost)) : code;
}

static bool is_there(const perfd_recording *r, unsigned bit) {
        return recording_has(r, bit) && (r->cut[bit / 64] >> bit % 64 & 1) == 0;
}

static bool is_put(const Repair *w, unsigned bit) {
        return is_there(w->r, bit) || made_section(&w->made, bit);
}

/* Where the sections are to be; those that stand before the records stay there, the others follow these rows. */
static int put_sections(Repair *w, uint64_t bits[static PERF_DATA_FEATURES / 64]) {
        const perfd_recording *r = w->r;
        uint64_t at = w->at;
        int code = 0;

        for (unsigned bit = 0; bit < PERF_DATA_FEATURES; bit++)
                at += is_put(w, bit) ? PERF_DATA_SECTION : 0;
        for (unsigned bit = 0; bit < PERF_DATA_FEATURES && code == 0; bit++) {
                const MadeSection *made = made_section(&w->made, bit);
                const Section *s = &r->sections[bit];
                const bool stays = !made && s->offset + s->size <= r->data;
                const uint64_t size = made ? made->n : s->size, row[2] = { in_order(r, stays ? s->offset : at), in_order(r, size) };

                if (!is_put(w, bit))
                        continue;
                bits[bit / 64] |= UINT64_C(1) << bit % 64;
                at += stays ? 0 : size;
                code = put(w, row, sizeof(row));
        }
        for (unsigned bit = 0; bit < PERF_DATA_FEATURES && code == 0; bit++)
                if (made_section(&w->made, bit))
                        code = put(w, made_section(&w->made, bit)->bytes, made_section(&w->made, bit)->n);
                else if (is_there(r, bit) && r->sections[bit].offset + r->sections[bit].size > r->data)
                        code = copy(w, r->sections[bit].offset, r->sections[bit].size);
        return code;
}

static int put_file(Repair *w) {
        perfd_recording *r = w->r;
        const uint64_t size = in_order(r, w->at - r->data); /* which ends here so far */
        uint64_t bits[PERF_DATA_FEATURES / 64] = { 0 };
        int code = made_sections_init(&w->made, r);

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
        if (r->whole > r->source.size)
                return recording_fail(r, PERFD_E_INVALID, "it ends at byte %llu, before its first record: there is nothing to mend",
                                      (unsigned long long)r->source.size);
        code = copy_records(&w);
        if (code == 0 && !r->is_pipe)
                code = put_file(&w);
        made_sections_deinit(&w.made);
        return code;
}
