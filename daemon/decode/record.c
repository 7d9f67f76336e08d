/*
 * The kernel's records, perf_event_open(2), as it wrote them into a ring. A ring is shared memory and its records are
 * foreign data: every length and offset is checked against the record before it is used, and what does not fit is
 * refused as a whole instead of being half believed.
 *
 *     sample   | header (8) | IDENTIFIER IP TID TIME ADDR ID STREAM_ID CPU PERIOD | n u64 * n | size (4) bytes |
 *     others   | header (8) | body of the type | TID TIME ID STREAM_ID CPU IDENTIFIER |
 *
 * The middle part and the trailer hold only what attr.sample_type asked for, so their offsets are computed once in a
 * SampleLayout. Bytes behind the last known part are allowed in samples and in bodies: newer kernels append.
 */
#include "daemon/decode/record.h"

#define ABSENT 0xff
#define HEADER_SIZE sizeof(struct perf_event_header)
#define BUILD_ID_MAX 20

#define SAMPLE_TYPES                                                                                                   \
        ((uint64_t)(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |  \
                    PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |                    \
                    PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW))

static uint8_t place(uint64_t sample_type, uint64_t bit, uint8_t *at) {
        uint8_t offset = *at;

        if (!(sample_type & bit))
                return ABSENT;
        *at += sizeof(uint64_t);
        return offset;
}

int sample_layout_init(SampleLayout *l, uint64_t sample_type) {
        uint8_t at = HEADER_SIZE, behind = 0;

        if (sample_type & ~SAMPLE_TYPES)
                return REFUSED_UNSUPPORTED;
        *l = (SampleLayout){ .sample_type = sample_type, .plain = sample_type == (SAMPLE_TYPE_BASE | PERF_SAMPLE_RAW) };
        l->identifier = place(sample_type, PERF_SAMPLE_IDENTIFIER, &at);
        l->ip = place(sample_type, PERF_SAMPLE_IP, &at);
        l->tid = place(sample_type, PERF_SAMPLE_TID, &at);
        l->time = place(sample_type, PERF_SAMPLE_TIME, &at);
        l->addr = place(sample_type, PERF_SAMPLE_ADDR, &at);
        l->id = place(sample_type, PERF_SAMPLE_ID, &at);
        l->stream_id = place(sample_type, PERF_SAMPLE_STREAM_ID, &at);
        l->cpu = place(sample_type, PERF_SAMPLE_CPU, &at);
        l->period = place(sample_type, PERF_SAMPLE_PERIOD, &at);
        l->head_size = at;

        l->trailer_tid = place(sample_type, PERF_SAMPLE_TID, &behind);
        l->trailer_time = place(sample_type, PERF_SAMPLE_TIME, &behind);
        l->trailer_id = place(sample_type, PERF_SAMPLE_ID, &behind);
        (void)place(sample_type, PERF_SAMPLE_STREAM_ID, &behind);
        l->trailer_cpu = place(sample_type, PERF_SAMPLE_CPU, &behind);
        l->trailer_identifier = place(sample_type, PERF_SAMPLE_IDENTIFIER, &behind);
        l->trailer_size = behind;
        return 0;
}

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

static inline uint64_t part64(const uint8_t *from, uint8_t offset) {
        return offset == ABSENT ? 0 : load64(from + offset);
}

static inline uint32_t part32(const uint8_t *from, uint8_t offset, size_t half) {
        return offset == ABSENT ? 0 : load32(from + offset + half * sizeof(uint32_t));
}

/*
 * What a sample does not have is null, field by field: the union of the other types is not part of it, and clearing all
 * of a Record costs more than decoding.
 */
static inline void set_sample(Record *r, const struct perf_event_header *header) {
        r->type = header->type;
        r->misc = header->misc;
        r->cpu = 0;
        r->ip = r->addr = r->period = 0;
        r->comm = "";
        r->raw = NULL;
        r->raw_size = 0;
        r->callchain = NULL;
        r->n_callchain = 0;
}

/* | size (4) | size bytes |, and the next part is 8-aligned again: the kernel counts the padding into size. */
static inline int check_raw(const uint8_t *at, size_t left, uint32_t *ret_size) {
        if (left < sizeof(*ret_size))
                return DECODE_E_TRUNCATED;
        *ret_size = load32(at);
        return *ret_size > left - sizeof(*ret_size) ? DECODE_E_TRUNCATED : 0;
}

/* | n | n addresses | */
static int check_callchain(const uint8_t *at, size_t left, uint64_t *ret_n) {
        if (left < sizeof(*ret_n))
                return DECODE_E_TRUNCATED;
        *ret_n = load64(at);
        return *ret_n > left / sizeof(uint64_t) - 1 ? DECODE_E_TRUNCATED : 0;
}

static int decode_sample(const SampleLayout *l, const struct perf_event_header *header, const uint8_t *bytes,
                         Record *ret) {
        const uint8_t *at = bytes + l->head_size, *end = bytes + header->size, *callchain = NULL, *raw = NULL;
        uint64_t n_callchain = 0;
        uint32_t raw_size = 0;

        if (header->size < l->head_size)
                return DECODE_E_TRUNCATED;
        if (l->sample_type & PERF_SAMPLE_CALLCHAIN) {
                if (check_callchain(at, (size_t)(end - at), &n_callchain) != 0)
                        return DECODE_E_TRUNCATED;
                callchain = at + sizeof(n_callchain);
                at = callchain + n_callchain * sizeof(uint64_t);
        }
        if (l->sample_type & PERF_SAMPLE_RAW) {
                if (check_raw(at, (size_t)(end - at), &raw_size) != 0)
                        return DECODE_E_TRUNCATED;
                raw = at + sizeof(raw_size);
        }
        set_sample(ret, header);
        ret->stream_id = part64(bytes, l->identifier != ABSENT ? l->identifier : l->id);
        ret->ip = part64(bytes, l->ip);
        ret->pid = part32(bytes, l->tid, 0);
        ret->tid = part32(bytes, l->tid, 1);
        ret->time = part64(bytes, l->time);
        ret->addr = part64(bytes, l->addr);
        ret->cpu = part32(bytes, l->cpu, 0);
        ret->period = part64(bytes, l->period);
        ret->callchain = callchain;
        ret->n_callchain = n_callchain;
        ret->raw = raw;
        ret->raw_size = raw_size;
        return 0;
}

/* What every event of a tracepoint without extras looks like: | header | id | pid tid | time | size raw |. */
static inline int decode_plain_sample(const struct perf_event_header *header, const uint8_t *bytes, Record *ret) {
        enum { IDENTIFIER = HEADER_SIZE, PID = IDENTIFIER + 8, TID = PID + 4, TIME = TID + 4, RAW = TIME + 8 };
        uint32_t raw_size;

        if (header->size < RAW || check_raw(bytes + RAW, header->size - RAW, &raw_size) != 0)
                return DECODE_E_TRUNCATED;
        set_sample(ret, header);
        ret->stream_id = load64(bytes + IDENTIFIER);
        ret->pid = load32(bytes + PID);
        ret->tid = load32(bytes + TID);
        ret->time = load64(bytes + TIME);
        ret->raw = bytes + RAW + sizeof(raw_size);
        ret->raw_size = raw_size;
        return 0;
}

/* A string that fills the rest of a body: its zero must be there. */
static int decode_string(const uint8_t *at, size_t left, const char **ret) {
        if (!memchr(at, 0, left))
                return DECODE_E_MALFORMED;
        *ret = (const char *)at;
        return 0;
}

static int decode_comm(const uint8_t *body, size_t left, Record *r) {
        if (left < 8)
                return DECODE_E_TRUNCATED;
        r->comm_record.pid = load32(body);
        r->comm_record.tid = load32(body + 4);
        return decode_string(body + 8, left - 8, &r->comm_record.comm);
}

static int decode_task(const uint8_t *body, size_t left, Record *r) {
        if (left < 24)
                return DECODE_E_TRUNCATED;
        r->task.pid = load32(body);
        r->task.ppid = load32(body + 4);
        r->task.tid = load32(body + 8);
        r->task.ptid = load32(body + 12);
        r->task.time = load64(body + 16);
        return 0;
}

/* | pid tid | addr | len | pgoff |, then MMAP: filename; MMAP2: maj min ino generation or build id, prot, flags. */
static int decode_mmap(const uint8_t *body, size_t left, Record *r) {
        enum { SHORT = 32, IDENTITY = SHORT, IDENTITY_SIZE = 24, LONG = IDENTITY + IDENTITY_SIZE + 8 };
        size_t fixed = r->type == PERF_RECORD_MMAP2 ? LONG : SHORT;

        if (left < fixed)
                return DECODE_E_TRUNCATED;
        r->mmap2.pid = load32(body);
        r->mmap2.tid = load32(body + 4);
        r->mmap2.addr = load64(body + 8);
        r->mmap2.len = load64(body + 16);
        r->mmap2.pgoff = load64(body + 24);
        if (r->type == PERF_RECORD_MMAP2) {
                if (r->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) { /* | size (1) | 0 (3) | build id (20) | */
                        r->mmap2.build_id_size = body[IDENTITY];
                        if (r->mmap2.build_id_size > BUILD_ID_MAX)
                                return DECODE_E_MALFORMED;
                        r->mmap2.build_id = body + IDENTITY + 4;
                } else {
                        r->mmap2.maj = load32(body + IDENTITY);
                        r->mmap2.min = load32(body + IDENTITY + 4);
                        r->mmap2.ino = load64(body + IDENTITY + 8);
                        r->mmap2.ino_generation = load64(body + IDENTITY + 16);
                }
                r->mmap2.prot = load32(body + IDENTITY + IDENTITY_SIZE);
                r->mmap2.flags = load32(body + IDENTITY + IDENTITY_SIZE + 4);
        }
        return decode_string(body + fixed, left - fixed, &r->mmap2.filename);
}

static int decode_lost(const uint8_t *body, size_t left, Record *r) {
        bool has_id = r->type == PERF_RECORD_LOST;

        if (left < (has_id ? 16 : 8))
                return DECODE_E_TRUNCATED;
        r->lost.id = has_id ? load64(body) : 0;
        r->lost.lost = load64(body + (has_id ? 8 : 0));
        return 0;
}

static int decode_throttle(const uint8_t *body, size_t left, Record *r) {
        if (left < 24)
                return DECODE_E_TRUNCATED;
        r->throttle.time = load64(body);
        r->throttle.id = load64(body + 8);
        r->throttle.stream_id = load64(body + 16);
        return 0;
}

static int decode_body(const uint8_t *body, size_t left, Record *r) {
        switch (r->type) {
        case PERF_RECORD_COMM:
                return decode_comm(body, left, r);
        case PERF_RECORD_FORK:
        case PERF_RECORD_EXIT:
                return decode_task(body, left, r);
        case PERF_RECORD_MMAP:
        case PERF_RECORD_MMAP2:
                return decode_mmap(body, left, r);
        case PERF_RECORD_LOST:
        case PERF_RECORD_LOST_SAMPLES:
                return decode_lost(body, left, r);
        case PERF_RECORD_THROTTLE:
        case PERF_RECORD_UNTHROTTLE:
                return decode_throttle(body, left, r);
        default:
                return DECODE_E_UNKNOWN_TYPE;
        }
}

static int decode_other(const SampleLayout *l, const struct perf_event_header *header, const uint8_t *bytes,
                        Record *ret) {
        Record r = { .type = header->type, .misc = header->misc, .comm = "" };
        size_t left = header->size - HEADER_SIZE;
        const uint8_t *trailer;
        int code;

        if (left < l->trailer_size)
                return DECODE_E_TRUNCATED;
        left -= l->trailer_size;
        trailer = bytes + HEADER_SIZE + left;
        r.pid = part32(trailer, l->trailer_tid, 0);
        r.tid = part32(trailer, l->trailer_tid, 1);
        r.time = part64(trailer, l->trailer_time);
        r.cpu = part32(trailer, l->trailer_cpu, 0);
        r.stream_id = part64(trailer, l->trailer_identifier != ABSENT ? l->trailer_identifier : l->trailer_id);
        code = decode_body(bytes + HEADER_SIZE, left, &r);
        if (code == 0 || code == DECODE_E_UNKNOWN_TYPE)
                *ret = r;
        return code;
}

int record_decode(const SampleLayout *l, const uint8_t *bytes, size_t length, Record *ret) {
        struct perf_event_header header;

        if (length < sizeof(header))
                return DECODE_E_TRUNCATED;
        memcpy(&header, bytes, sizeof(header));
        if (header.size != length)
                return header.size > length ? DECODE_E_TRUNCATED : DECODE_E_MALFORMED;
        if (header.type != PERF_RECORD_SAMPLE)
                return decode_other(l, &header, bytes, ret);
        return l->plain ? decode_plain_sample(&header, bytes, ret) : decode_sample(l, &header, bytes, ret);
}
