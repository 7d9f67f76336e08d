/*
 * For readers: the bytes of one kernel record to a Record. Pure: bytes and a length in, pointers into these bytes out;
 * no fd, no state, any thread. `length` is that of the whole record, header included, and must be the header's own.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "daemon/base/error.h"
#include "daemon/model/record.h"

enum {
        DECODE_E_TRUNCATED = 1, /* ends before what it says, or what its layout says, that it holds */
        DECODE_E_MALFORMED,     /* a length or a string in it cannot be right */
};

/* What every event of perfd is opened with, so that the commonest samples have one shape. */
#define SAMPLE_TYPE_BASE ((uint64_t)(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME))

/*
 * Where the parts of a record lie for one attr: offsets of the parts of a sample from its beginning, and of the trailer
 * of all other records from the trailer's beginning; 0xff: not there. Immutable, may be shared and copied.
 */
typedef struct SampleLayout {
        uint64_t sample_type;
        RecordLayout layout; /* BASE: exactly SAMPLE_TYPE_BASE | PERF_SAMPLE_RAW */
        uint8_t identifier, ip, tid, time, addr, id, stream_id, cpu, period;
        uint8_t head_size; /* of a sample's fixed parts, header included */
        uint8_t own_id;    /* where PERF_SAMPLE_READ has the id of the sample's own event; 0: it has none */
        uint8_t trailer_tid, trailer_time, trailer_id, trailer_cpu, trailer_identifier;
        uint8_t trailer_size;

        /* for what is not in every sample */
        uint32_t parts; /* bits of sample_type that go to Record.extra */
        uint64_t read_format;
        bool branch_hw_index, branch_counters;
        uint64_t user_registers, interrupt_registers; /* masks */
} SampleLayout;

/*
 * By all of attr that shapes a record: sample_type, read_format, branch_sample_type, sample_regs_user,
 * sample_regs_intr, sample_id_all. Of a group in which any event has PERF_SAMPLE_BRANCH_COUNTERS, the samples of all
 * have them: then attr has to say so. REFUSED_UNSUPPORTED for bits whose place in a record is not known.
 */
int sample_layout_init(SampleLayout *l, const struct perf_event_attr *attr);
/* Of an event that is no group: PERF_SAMPLE_READ was asked for only because of own_id, and is left out of the Records. */
void sample_layout_hide_read(SampleLayout *l);

/* Of an event of perfd whose attr has nothing in it that shapes records but this sample type. */
static inline int sample_layout_init_type(SampleLayout *l, uint64_t sample_type) {
        struct perf_event_attr attr = { .size = sizeof(attr), .sample_type = sample_type, .sample_id_all = 1 };

        return sample_layout_init(l, &attr);
}

/*
 * The stream id of a record without knowing its layout yet: PERF_SAMPLE_IDENTIFIER is the first u64 of a sample and,
 * with sample_id_all, the last of every other record, but of those of which record_body_end() says where it is. 0 or
 * DECODE_E_TRUNCATED.
 */
static inline int record_peek_id(const uint8_t *bytes, size_t length, uint64_t *ret_id) {
        struct perf_event_header header;

        if (length < sizeof(header) + sizeof(uint64_t))
                return DECODE_E_TRUNCATED;
        memcpy(&header, bytes, sizeof(header));
        memcpy(ret_id, bytes + (header.type == PERF_RECORD_SAMPLE ? sizeof(header) : length - sizeof(uint64_t)),
               sizeof(*ret_id));
        return 0;
}

/*
 * Where the body ends of a record whose trailer need not be its last bytes; 0: the trailer is. The kernel adds the trailer's size
 * to the header of a KSYMBOL, BPF_EVENT or TEXT_POKE record once more for each event, anybody's, that gets the record
 * (perf_event_ksymbol_output() and its like in kernel/events/core.c), and writes it once: behind it is what was in the ring
 * before. So the place of these trailers is found from the front. As `length` if the body has no end.
 */
size_t record_body_end(const uint8_t *bytes, size_t length);

/* The u64 at an offset of a layout. 0 or DECODE_E_TRUNCATED. */
static inline int record_peek_at(const uint8_t *bytes, size_t length, uint8_t at, uint64_t *ret) {
        if (length < at + sizeof(*ret))
                return DECODE_E_TRUNCATED;
        memcpy(ret, bytes + at, sizeof(*ret));
        return 0;
}

/*
 * Fills all of *ret but what only the ring's reader knows: comm is "" and cpu is 0 unless the layout has it. ret is
 * untouched on DECODE_E_TRUNCATED and DECODE_E_MALFORMED. MMAP comes as mmap2 with what it has; type stays MMAP. A type
 * that is not known is no error: it comes as `unknown`.
 */
int record_decode(const SampleLayout *l, const uint8_t *bytes, size_t length, Record *ret);
