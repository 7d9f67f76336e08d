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

/* | size (4) | size bytes |, and the next part is 8-aligned again: the kernel counts the padding into size. */
static inline int record_check_raw(const uint8_t *at, size_t left, uint32_t *ret_size) {
        if (left < sizeof(*ret_size))
                return DECODE_E_TRUNCATED;
        *ret_size = load32(at);
        return *ret_size > left - sizeof(*ret_size) ? DECODE_E_TRUNCATED : 0;
}

/* What every event of a tracepoint without extras looks like: | header | id | pid tid | time | size raw |. */
static inline int record_decode_plain(const struct perf_event_header *header, const uint8_t *bytes, Record *ret) {
        enum { IDENTIFIER = sizeof(struct perf_event_header), PID = IDENTIFIER + 8, TID = PID + 4, TIME = TID + 4, RAW = TIME + 8 };
        uint32_t raw_size;

        if (header->size < RAW || record_check_raw(bytes + RAW, header->size - RAW, &raw_size) != 0)
                return DECODE_E_TRUNCATED;
        record_set_sample(ret, header);
        ret->stream_id = load64(bytes + IDENTIFIER);
        ret->pid = load32(bytes + PID);
        ret->tid = load32(bytes + TID);
        ret->time = load64(bytes + TIME);
        ret->raw = bytes + RAW + sizeof(raw_size);
        ret->raw_size = raw_size;
        ret->is_bare = true;
        return 0;
}
