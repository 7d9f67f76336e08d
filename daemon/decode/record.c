/*
 * The kernel's records, perf_event_open(2), as it wrote them into a ring. A ring is shared memory and its records are
 * foreign data: every length and offset is checked against the record before it is used, and what does not fit is
 * refused as a whole instead of being half believed.
 *
 *     sample   | header (8) | IDENTIFIER IP TID TIME ADDR ID STREAM_ID CPU PERIOD | n u64 * n | size (4) bytes |
 *     others   | header (8) | body of the type | TID TIME ID STREAM_ID CPU IDENTIFIER |      record_body_end(): or more
 *
 * The middle part and the trailer hold only what attr.sample_type asked for, so their offsets are computed once in a
 * SampleLayout. Bytes behind the last known part are allowed in samples and in bodies: newer kernels append. What few
 * events ask for, before the callchain and behind the raw bytes, is read elsewhere (record-parts.c), so that the common
 * samples do not pay for it.
 */
#include "daemon/decode/record-bytes.h"
#include "daemon/decode/record-base.h"

#define ABSENT 0xff
#define HEADER_SIZE sizeof(struct perf_event_header)

#define SAMPLE_TYPES                                                                                                   \
        ((uint64_t)(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |  \
                    PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW))

static uint8_t place(uint64_t sample_type, uint64_t bit, uint8_t *at) {
        uint8_t offset = *at;

        if (!(sample_type & bit))
                return ABSENT;
        *at += sizeof(uint64_t);
        return offset;
}

static void place_trailer(SampleLayout *l, uint64_t sample_type) {
        uint8_t at = 0;

        l->trailer_tid = place(sample_type, PERF_SAMPLE_TID, &at);
        l->trailer_time = place(sample_type, PERF_SAMPLE_TIME, &at);
        l->trailer_id = place(sample_type, PERF_SAMPLE_ID, &at);
        (void)place(sample_type, PERF_SAMPLE_STREAM_ID, &at);
        l->trailer_cpu = place(sample_type, PERF_SAMPLE_CPU, &at);
        l->trailer_identifier = place(sample_type, PERF_SAMPLE_IDENTIFIER, &at);
        l->trailer_size = at;
}

/* Both weights are one word, of which a sample has one. */
static bool has_two_weights(uint64_t sample_type) {
        return (sample_type & PERF_SAMPLE_WEIGHT) && (sample_type & PERF_SAMPLE_WEIGHT_STRUCT);
}

/* | value or n | enabled | running | value, of a group | id |, as perf_output_read() writes them. */
static uint8_t place_own_id(const SampleLayout *l) {
        unsigned before = 1 + !!(l->read_format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
                          !!(l->read_format & PERF_FORMAT_TOTAL_TIME_RUNNING) + !!(l->read_format & PERF_FORMAT_GROUP);

        if (!(l->sample_type & PERF_SAMPLE_READ) || !(l->read_format & PERF_FORMAT_ID))
                return 0;
        return (uint8_t)(l->head_size + before * sizeof(uint64_t));
}

int sample_layout_init(SampleLayout *l, const struct perf_event_attr *attr) {
        uint64_t sample_type = attr->sample_type;
        uint8_t at = HEADER_SIZE;

        if (sample_type & ~(SAMPLE_TYPES | sample_parts) || has_two_weights(sample_type) ||
            attr->read_format & ~read_formats || attr->branch_sample_type >= BRANCH_COUNTERS << 1)
                return REFUSED_UNSUPPORTED;
        *l = (SampleLayout){
                .sample_type = sample_type,
                .layout = sample_type == (SAMPLE_TYPE_BASE | PERF_SAMPLE_RAW) ? RECORD_LAYOUT_BASE : RECORD_LAYOUT_ANY,
                .parts = (uint32_t)(sample_type & sample_parts),
                .read_format = attr->read_format,
                .branch_hw_index = attr->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX,
                .branch_counters = attr->branch_sample_type & BRANCH_COUNTERS,
                .user_registers = attr->sample_regs_user,
                .interrupt_registers = attr->sample_regs_intr,
        };
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
        l->own_id = place_own_id(l);
        place_trailer(l, attr->sample_id_all ? sample_type : 0);
        return 0;
}

void sample_layout_hide_read(SampleLayout *l) {
        assert(!(l->read_format & PERF_FORMAT_GROUP) && l->own_id);
        l->parts &= ~(uint32_t)PERF_SAMPLE_READ;
        l->head_size = (uint8_t)(l->own_id + sizeof(uint64_t) * (l->read_format & PERF_FORMAT_LOST ? 2 : 1));
}

static inline uint64_t part64(const uint8_t *from, uint8_t offset) {
        return offset == ABSENT ? 0 : load64(from + offset);
}

static inline uint32_t part32(const uint8_t *from, uint8_t offset, size_t half) {
        return offset == ABSENT ? 0 : load32(from + offset + half * sizeof(uint32_t));
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

/* `at`: where the callchain begins. *ret_at is the end of what it reads. */
static inline int decode_from_callchain(const SampleLayout *l, const struct perf_event_header *header,
                                        const uint8_t *bytes, const uint8_t *at, Record *ret, const uint8_t **ret_at) {
        const uint8_t *end = bytes + header->size, *callchain = NULL, *raw = NULL;
        uint64_t n_callchain = 0;
        uint32_t raw_size = 0;

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
                at = raw + raw_size;
        }
        record_set_sample(ret, header);
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
        *ret_at = at;
        return 0;
}

static int decode_sample(const SampleLayout *l, const struct perf_event_header *header, const uint8_t *bytes,
                         Record *ret) {
        const uint8_t *at;

        if (header->size < l->head_size)
                return DECODE_E_TRUNCATED;
        return decode_from_callchain(l, header, bytes, bytes + l->head_size, ret, &at);
}

__attribute__((cold, noinline)) static int decode_rare_sample(const SampleLayout *l,
                                                              const struct perf_event_header *header,
                                                              const uint8_t *bytes, Record *ret) {
        Cursor c = { bytes + l->head_size, bytes + header->size };
        RecordExtra extra = { .id = 0 };
        Record r;
        int code = 0;

        if (header->size < l->head_size)
                return DECODE_E_TRUNCATED;
        if (l->parts & PERF_SAMPLE_READ)
                code = record_decode_read(l, &c, &extra.read);
        if (code == 0)
                code = decode_from_callchain(l, header, bytes, c.at, &r, &c.at);
        if (code == 0)
                code = record_decode_parts(l, &c, &extra);
        if (code != 0)
                return code;
        extra.id = part64(bytes, l->id);
        extra.stream_id = part64(bytes, l->stream_id);
        r.parts = l->parts;
        r.extra = extra;
        *ret = r;
        return 0;
}

static int decode_other(const SampleLayout *l, const struct perf_event_header *header, const uint8_t *bytes,
                        Record *ret) {
        Record r = { .type = header->type, .misc = header->misc, .comm = "" };
        size_t left = header->size - HEADER_SIZE, end = record_body_end(bytes, header->size);
        const uint8_t *trailer;
        int code;

        if (left < l->trailer_size || end > header->size - (size_t)l->trailer_size)
                return DECODE_E_TRUNCATED;
        left = end > 0 ? end - HEADER_SIZE : left - l->trailer_size;
        trailer = bytes + HEADER_SIZE + left;
        r.pid = part32(trailer, l->trailer_tid, 0);
        r.tid = part32(trailer, l->trailer_tid, 1);
        r.time = part64(trailer, l->trailer_time);
        r.cpu = part32(trailer, l->trailer_cpu, 0);
        r.stream_id = part64(trailer, l->trailer_identifier != ABSENT ? l->trailer_identifier : l->trailer_id);
        code = record_decode_body(l, bytes + HEADER_SIZE, left, &r);
        if (code == 0)
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
        if (l->layout == RECORD_LAYOUT_BASE) {
                Record r;

                record_begin_base(&r);
                if (record_decode_base(bytes, length, 0, &r) != 0)
                        return DECODE_E_TRUNCATED;
                *ret = r;
                return 0;
        }
        return l->parts ? decode_rare_sample(l, &header, bytes, ret) : decode_sample(l, &header, bytes, ret);
}
