/*
 * The bodies of side records: one function for each, as perf_event_open(2) and linux/perf_event.h lay them out. `left`
 * is what lies between header and trailer. Strings are padded with zeros to eight bytes, so that one ends inside.
 */
#include "daemon/decode/record-bytes.h"

#include "daemon/base/cleanup.h"

#define BUILD_ID_MAX 20
#define BPF_TAG_BYTES 8

/* A string that fills the rest of a body: its zero must be there. */
static int decode_string(const uint8_t *at, size_t left, const char **ret) {
        if (!memchr(at, 0, left))
                return DECODE_E_MALFORMED;
        *ret = (const char *)at;
        return 0;
}

static int decode_comm(const SampleLayout *l, const uint8_t *body, size_t left, Record *r) {
        if (left < 8)
                return DECODE_E_TRUNCATED;
        r->comm_record.pid = load32(body);
        r->comm_record.tid = load32(body + 4);
        return decode_string(body + 8, left - 8, &r->comm_record.comm);
}

static int decode_task(const SampleLayout *l, const uint8_t *body, size_t left, Record *r) {
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
static int decode_mmap(const SampleLayout *l, const uint8_t *body, size_t left, Record *r) {
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

static int decode_lost(const SampleLayout *l, const uint8_t *body, size_t left, Record *r) {
        bool has_id = r->type == PERF_RECORD_LOST;

        if (left < (has_id ? 16 : 8))
                return DECODE_E_TRUNCATED;
        r->lost.id = has_id ? load64(body) : 0;
        r->lost.lost = load64(body + (has_id ? 8 : 0));
        return 0;
}

static int decode_throttle(const SampleLayout *l, const uint8_t *body, size_t left, Record *r) {
        if (left < 24)
                return DECODE_E_TRUNCATED;
        r->throttle.time = load64(body);
        r->throttle.id = load64(body + 8);
        r->throttle.stream_id = load64(body + 16);
        return 0;
}

static int decode_read(const SampleLayout *l, const uint8_t *body, size_t left, Record *r) {
        Cursor c = { body + 8, body + left };

        if (left < 8)
                return DECODE_E_TRUNCATED;
        r->read.pid = load32(body);
        r->read.tid = load32(body + 4);
        return record_decode_read(l, &c, &r->read.values);
}

static int decode_switch(const SampleLayout *l, const uint8_t *body, size_t left, Record *r) {
        if (r->type == PERF_RECORD_SWITCH)
                return 0;
        if (left < 8)
                return DECODE_E_TRUNCATED;
        r->switch_record.next_prev_pid = load32(body);
        r->switch_record.next_prev_tid = load32(body + 4);
        return 0;
}

static int decode_namespaces(const SampleLayout *l, const uint8_t *body, size_t left, Record *r) {
        Cursor c = { body + 8, body + left };

        if (left < 8)
                return DECODE_E_TRUNCATED;
        r->namespaces.pid = load32(body);
        r->namespaces.tid = load32(body + 4);
        if (!cursor_take64(&c, &r->namespaces.n) ||
            !cursor_take(&c, r->namespaces.n, sizeof(struct perf_ns_link_info), &r->namespaces.list))
                return DECODE_E_TRUNCATED;
        return 0;
}

static int decode_ksymbol(const SampleLayout *l, const uint8_t *body, size_t left, Record *r) {
        if (left < 16)
                return DECODE_E_TRUNCATED;
        r->ksymbol.addr = load64(body);
        r->ksymbol.len = load32(body + 8);
        r->ksymbol.type = load16(body + 12);
        r->ksymbol.flags = load16(body + 14);
        return decode_string(body + 16, left - 16, &r->ksymbol.name);
}

static int decode_bpf_event(const SampleLayout *l, const uint8_t *body, size_t left, Record *r) {
        if (left < 8 + BPF_TAG_BYTES)
                return DECODE_E_TRUNCATED;
        r->bpf_event.type = load16(body);
        r->bpf_event.flags = load16(body + 2);
        r->bpf_event.id = load32(body + 4);
        r->bpf_event.tag = body + 8;
        return 0;
}

static int decode_cgroup(const SampleLayout *l, const uint8_t *body, size_t left, Record *r) {
        if (left < 8)
                return DECODE_E_TRUNCATED;
        r->cgroup.id = load64(body);
        return decode_string(body + 8, left - 8, &r->cgroup.path);
}

static int decode_text_poke(const SampleLayout *l, const uint8_t *body, size_t left, Record *r) {
        if (left < 12)
                return DECODE_E_TRUNCATED;
        r->text_poke.addr = load64(body);
        r->text_poke.old_len = load16(body + 8);
        r->text_poke.new_len = load16(body + 10);
        r->text_poke.bytes = body + 12;
        return (size_t)r->text_poke.old_len + r->text_poke.new_len > left - 12 ? DECODE_E_TRUNCATED : 0;
}

static int decode_aux(const SampleLayout *l, const uint8_t *body, size_t left, Record *r) {
        if (left < 24)
                return DECODE_E_TRUNCATED;
        r->aux.offset = load64(body);
        r->aux.size = load64(body + 8);
        r->aux.flags = load64(body + 16);
        return 0;
}

static int decode_itrace_start(const SampleLayout *l, const uint8_t *body, size_t left, Record *r) {
        if (left < 8)
                return DECODE_E_TRUNCATED;
        r->itrace_start.pid = load32(body);
        r->itrace_start.tid = load32(body + 4);
        return 0;
}

static int decode_aux_output_hw_id(const SampleLayout *l, const uint8_t *body, size_t left, Record *r) {
        if (left < 8)
                return DECODE_E_TRUNCATED;
        r->aux_output_hw_id.hw_id = load64(body);
        return 0;
}

static int decode_unknown(const SampleLayout *l, const uint8_t *body, size_t left, Record *r) {
        r->unknown.bytes = body;
        r->unknown.size = left;
        return 0;
}

static size_t whole_words(size_t n) {
        return (n + 7) & ~(size_t)7;
}

size_t record_body_end(const uint8_t *bytes, size_t length) {
        enum { BODY = sizeof(struct perf_event_header), NAME = BODY + 16, TAG = BODY + 8, LENGTHS = BODY + 8 };
        size_t end = length;

        switch (load32(bytes)) {
        case PERF_RECORD_KSYMBOL:
                if (length > NAME && memchr(bytes + NAME, 0, length - NAME))
                        end = NAME + whole_words(strlen((const char *)bytes + NAME) + 1);
                break;
        case PERF_RECORD_BPF_EVENT:
                end = TAG + BPF_TAG_BYTES;
                break;
        case PERF_RECORD_TEXT_POKE: /* | addr | old length (2) | new length (2) | bytes | */
                if (length >= LENGTHS + 4)
                        end = LENGTHS + whole_words((size_t)4 + load16(bytes + LENGTHS) + load16(bytes + LENGTHS + 2));
                break;
        default:
                return 0;
        }
        return end < length ? end : length;
}

int record_decode_body(const SampleLayout *l, const uint8_t *body, size_t left, Record *r) {
        static int (*const bodies[])(const SampleLayout *, const uint8_t *, size_t, Record *) = {
#define RECORD_TYPE(type, item, decoder, encoder, kind) [PERF_RECORD_##type] = decode_##decoder,
#include "proto/record.def"
        };

        if (r->type < ARRAY_SIZE(bodies) && bodies[r->type])
                return bodies[r->type](l, body, left, r);
        return decode_unknown(l, body, left, r);
}
