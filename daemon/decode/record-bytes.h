/*
 * For decode/: how a record's bytes are read, and what its files offer each other. A Cursor stands before the next
 * part; whoever reads moves it on, and nothing is read that does not lie whole before the end.
 */
#pragma once

#include "daemon/decode/record.h"

/* PERF_SAMPLE_BRANCH_COUNTERS of Linux 6.8: an enumerator, which the headers of some distributions do not have yet. */
#define BRANCH_COUNTERS ((uint64_t)1 << 19)

typedef struct Cursor {
        const uint8_t *at, *end;
} Cursor;

static inline uint64_t load64(const uint8_t *from) {
        uint64_t value;

        memcpy(&value, from, sizeof(value));
        return value;
}

static inline uint32_t load32(const uint8_t *from) {
        uint32_t value;

        memcpy(&value, from, sizeof(value));
        return value;
}

static inline uint16_t load16(const uint8_t *from) {
        uint16_t value;

        memcpy(&value, from, sizeof(value));
        return value;
}

static inline size_t cursor_left(const Cursor *c) {
        return (size_t)(c->end - c->at);
}

/* n elements of `size` bytes; false if they do not lie before the end. */
static inline bool cursor_take(Cursor *c, uint64_t n, size_t size, const uint8_t **ret) {
        if (n > cursor_left(c) / size)
                return false;
        *ret = c->at;
        c->at += n * size;
        return true;
}

static inline bool cursor_take64(Cursor *c, uint64_t *ret) {
        const uint8_t *at;

        if (!cursor_take(c, 1, sizeof(*ret), &at))
                return false;
        *ret = load64(at);
        return true;
}

/* record-parts.c: bits of sample_type whose parts go to Record.extra, and of read_format that are known. */
extern const uint64_t sample_parts, read_formats;

/* struct read_format, as l->read_format has it. DECODE_E_TRUNCATED */
int record_decode_read(const SampleLayout *l, Cursor *c, RecordRead *ret);
/* What lies behind PERF_SAMPLE_RAW, to the end of the sample. DECODE_E_ */
int record_decode_parts(const SampleLayout *l, Cursor *c, RecordExtra *e);

/* record-side.c: the body of any record but a sample, into r, whose type and misc are set. DECODE_E_ */
int record_decode_body(const SampleLayout *l, const uint8_t *body, size_t left, Record *r);
