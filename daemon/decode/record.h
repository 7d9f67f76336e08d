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
        DECODE_E_MALFORMED,     /* a length or a string in it can not be right */
        DECODE_E_UNKNOWN_TYPE,  /* not a type that is decoded; header and trailer (time, pid, id) are */
};

/* What every event of perfd is opened with, so that the commonest samples have one shape. */
#define SAMPLE_TYPE_BASE ((uint64_t)(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME))

/*
 * Where the parts of a record lie for one attr.sample_type (with attr.sample_id_all set): offsets of the parts of a
 * sample from its beginning, and of the trailer of all other records from the trailer's beginning; 0xff: not there.
 * Immutable, may be shared and copied.
 */
typedef struct SampleLayout {
        uint64_t sample_type;
        bool plain; /* exactly SAMPLE_TYPE_BASE | PERF_SAMPLE_RAW */
        uint8_t identifier, ip, tid, time, addr, id, stream_id, cpu, period;
        uint8_t head_size; /* of a sample's fixed parts, header included */
        uint8_t trailer_tid, trailer_time, trailer_id, trailer_cpu, trailer_identifier;
        uint8_t trailer_size;
} SampleLayout;

/*
 * Any combination of IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD, CALLCHAIN, RAW; everything else is
 * REFUSED_UNSUPPORTED.
 */
int sample_layout_init(SampleLayout *l, uint64_t sample_type);

/*
 * The stream id of a record without knowing its layout yet: PERF_SAMPLE_IDENTIFIER is the first u64 of a sample and,
 * with sample_id_all, the last of every other record. 0 or DECODE_E_TRUNCATED.
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
 * Fills all of *ret but what only the ring's reader knows: comm is "" and cpu is 0 unless the layout has it. ret is
 * untouched on DECODE_E_TRUNCATED and DECODE_E_MALFORMED. MMAP comes as mmap2 with what it has; type stays MMAP.
 */
int record_decode(const SampleLayout *l, const uint8_t *bytes, size_t length, Record *ret);
