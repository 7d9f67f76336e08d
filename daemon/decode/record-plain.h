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
        r->raw = NULL;
        r->raw_size = 0;
        r->parts = 0;
        r->is_bare = false;
        r->callchain = NULL;
        r->n_callchain = 0;
}

/*
 * What every event of a tracepoint without extras looks like: | header | id | pid tid | time | size raw |. Less raw bytes
 * than least_raw are refused.
 */
static inline int record_decode_plain(const struct perf_event_header *header, const uint8_t *bytes, uint32_t least_raw,
                                      Record *ret) {
        enum { ID = sizeof(*header), PID = ID + 8, TID = PID + 4, TIME = TID + 4, SIZE = TIME + 8, RAW = SIZE + 4 };
        uint32_t raw_size;

        if (header->size < RAW)
                return DECODE_E_TRUNCATED;
        raw_size = load32(bytes + SIZE);
        if (raw_size > header->size - (uint32_t)RAW || raw_size < least_raw)
                return DECODE_E_TRUNCATED;
        record_set_sample(ret, header);
        ret->stream_id = load64(bytes + ID);
        ret->pid = load32(bytes + PID);
        ret->tid = load32(bytes + TID);
        ret->time = load64(bytes + TIME);
        ret->raw = bytes + RAW;
        ret->raw_size = raw_size;
        ret->is_bare = true;
        return 0;
}
