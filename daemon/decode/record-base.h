/*
 * For readers: the commonest sample by far, that of a tracepoint without extras, decoded in place where it is used. What
 * all samples have in common is here too, for decode/record.c.
 */
#pragma once

#include "daemon/decode/record-bytes.h"

/*
 * What a sample does not have is null, field by field: the union of the other types is not part of it, and clearing all
 * of a Record costs more than decoding.
 */
static inline void record_set_sample(Record *r, const struct perf_event_header *header) {
        r->type = header->type;
        r->misc = header->misc;
        r->cpu = 0;
        r->ip = r->addr = r->period = 0;
        r->comm = "";
        r->is_comm_sure = false;
        r->raw = NULL;
        r->raw_size = 0;
        r->parts = 0;
        r->layout = RECORD_LAYOUT_ANY;
        r->callchain = NULL;
        r->n_callchain = 0;
}

/* For record_decode_base(): what is the same in all that it decodes. */
static inline void record_begin_base(Record *r) {
        record_set_sample(r, &(struct perf_event_header){ .type = PERF_RECORD_SAMPLE });
        r->layout = RECORD_LAYOUT_BASE;
}

/* What every event of a tracepoint without extras looks like: | header | id | pid tid | time | size raw |. */
enum {
        RECORD_BASE_ID = sizeof(struct perf_event_header),
        RECORD_BASE_PID = RECORD_BASE_ID + 8,
        RECORD_BASE_TID = RECORD_BASE_PID + 4,
        RECORD_BASE_TIME = RECORD_BASE_TID + 4,
        RECORD_BASE_SIZE = RECORD_BASE_TIME + 8,
        RECORD_BASE_RAW = RECORD_BASE_SIZE + 4,
};

/* One that has so many raw bytes. Into a Record that was begun, and is used again and again. */
static inline void record_set_base(Record *r, const uint8_t *bytes, uint32_t raw_size) {
        r->misc = load16(bytes + offsetof(struct perf_event_header, misc));
        r->stream_id = load64(bytes + RECORD_BASE_ID);
        r->pid = load32(bytes + RECORD_BASE_PID);
        r->tid = load32(bytes + RECORD_BASE_TID);
        r->time = load64(bytes + RECORD_BASE_TIME);
        r->raw = bytes + RECORD_BASE_RAW;
        r->raw_size = raw_size;
}

/* Less raw bytes than least_raw are refused. Into a Record as above. */
static inline int record_decode_base(const uint8_t *bytes, size_t length, uint32_t least_raw, Record *ret) {
        uint32_t raw_size;

        if (length < RECORD_BASE_RAW)
                return DECODE_E_TRUNCATED;
        raw_size = load32(bytes + RECORD_BASE_SIZE);
        if (raw_size > length - RECORD_BASE_RAW || raw_size < least_raw)
                return DECODE_E_TRUNCATED;
        record_set_base(ret, bytes, raw_size);
        return 0;
}
