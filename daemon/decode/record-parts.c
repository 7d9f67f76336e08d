/*
 * The parts of a sample that few events ask for, in the order of perf_output_sample(). That is not the order of
 * linux/perf_event.h: the AUX part is the last one.
 *
 *     READ      | value enabled running id lost |  or of a group  | n enabled running | value id lost | * n
 *     BRANCH    | n | hw_idx | from to flags | * n | counters | * n
 *     REGS      | abi | a word for each bit of the mask, if abi is not 0 |
 *     STACK     | size | size bytes, dyn_size |, and nothing behind a size of 0
 *     AUX       | size | size bytes |
 *     the others are one word
 *
 * hw_idx is not always there when it was asked for: if the hardware gave no branches at all, the kernel writes n = 0
 * and nothing else. Nothing but the length of the sample says which of the two it is.
 */
#include "daemon/decode/record-bytes.h"

const uint64_t sample_parts = PERF_SAMPLE_READ | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_BRANCH_STACK |
                              PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT |
                              PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION |
                              PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP |
                              PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE | PERF_SAMPLE_AUX;

const uint64_t read_formats = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID |
                              PERF_FORMAT_GROUP | PERF_FORMAT_LOST;

int record_decode_read(const SampleLayout *l, Cursor *c, RecordRead *ret) {
        bool group = l->read_format & PERF_FORMAT_GROUP;
        RecordRead r = { .n = 1, .size = sizeof(uint64_t) };
        Cursor at = *c;

        if (group && !cursor_take64(&at, &r.n))
                return DECODE_E_TRUNCATED;
        r.values = at.at; /* of an event alone: before its times */
        if (!group && !cursor_take(&at, 1, sizeof(uint64_t), &r.values))
                return DECODE_E_TRUNCATED;
        if ((l->read_format & PERF_FORMAT_TOTAL_TIME_ENABLED && !cursor_take64(&at, &r.enabled)) ||
            (l->read_format & PERF_FORMAT_TOTAL_TIME_RUNNING && !cursor_take64(&at, &r.running)))
                return DECODE_E_TRUNCATED;
        if (group)
                r.values = at.at;
        else
                r.size = (uint8_t)(at.at - r.values);
        if (l->read_format & PERF_FORMAT_ID) {
                r.id_offset = r.size;
                r.size += sizeof(uint64_t);
        }
        if (l->read_format & PERF_FORMAT_LOST) {
                r.lost_offset = r.size;
                r.size += sizeof(uint64_t);
        }
        at.at = r.values;
        if (!cursor_take(&at, r.n, r.size, &r.values))
                return DECODE_E_TRUNCATED;
        *c = at;
        *ret = r;
        return 0;
}

static int decode_branches(const SampleLayout *l, Cursor *c, bool has_index, RecordExtra *e) {
        e->branch_hw_index = UINT64_MAX;
        e->branch_counters = NULL;
        if (!cursor_take64(c, &e->n_branches) || (has_index && !cursor_take64(c, &e->branch_hw_index)) ||
            !cursor_take(c, e->n_branches, sizeof(struct perf_branch_entry), &e->branches))
                return DECODE_E_TRUNCATED;
        if (l->branch_counters && !cursor_take(c, e->n_branches, sizeof(uint64_t), &e->branch_counters))
                return DECODE_E_TRUNCATED;
        return 0;
}

static int decode_registers(Cursor *c, uint64_t mask, RecordRegisters *r) {
        *r = (RecordRegisters){ .mask = mask };
        if (!cursor_take64(c, &r->abi))
                return DECODE_E_TRUNCATED;
        if (r->abi > PERF_SAMPLE_REGS_ABI_64) /* another one would be another layout, and was not asked for */
                return DECODE_E_MALFORMED;
        return cursor_take(c, record_n_registers(r), sizeof(uint64_t), &r->values) ? 0 : DECODE_E_TRUNCATED;
}

static int decode_stack(Cursor *c, RecordExtra *e) {
        uint64_t size;

        e->user_stack = c->at;
        e->user_stack_size = 0;
        if (!cursor_take64(c, &size))
                return DECODE_E_TRUNCATED;
        if (size == 0)
                return 0;
        if (!cursor_take(c, size, 1, &e->user_stack) || !cursor_take64(c, &e->user_stack_size))
                return DECODE_E_TRUNCATED;
        return e->user_stack_size > size ? DECODE_E_MALFORMED : 0;
}

static int decode_aux(Cursor *c, RecordExtra *e) {
        if (!cursor_take64(c, &e->aux_size) || !cursor_take(c, e->aux_size, 1, &e->aux))
                return DECODE_E_TRUNCATED;
        return 0;
}

#define HAS(bit) ((l->parts & (bit)) != 0)

static int decode_words(const SampleLayout *l, Cursor *c, RecordExtra *e) {
        return (HAS(PERF_SAMPLE_PHYS_ADDR) && !cursor_take64(c, &e->physical_address)) ||
                               (HAS(PERF_SAMPLE_CGROUP) && !cursor_take64(c, &e->cgroup_id)) ||
                               (HAS(PERF_SAMPLE_DATA_PAGE_SIZE) && !cursor_take64(c, &e->data_page_size)) ||
                               (HAS(PERF_SAMPLE_CODE_PAGE_SIZE) && !cursor_take64(c, &e->code_page_size))
                       ? DECODE_E_TRUNCATED
                       : 0;
}

static int decode_parts(const SampleLayout *l, Cursor *c, bool has_index, RecordExtra *e) {
        int code = 0;

        if (HAS(PERF_SAMPLE_BRANCH_STACK))
                code = decode_branches(l, c, has_index, e);
        if (code == 0 && HAS(PERF_SAMPLE_REGS_USER))
                code = decode_registers(c, l->user_registers, &e->user_registers);
        if (code == 0 && HAS(PERF_SAMPLE_STACK_USER))
                code = decode_stack(c, e);
        if (code == 0 && ((HAS(PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT) && !cursor_take64(c, &e->weight)) ||
                          (HAS(PERF_SAMPLE_DATA_SRC) && !cursor_take64(c, &e->data_source)) ||
                          (HAS(PERF_SAMPLE_TRANSACTION) && !cursor_take64(c, &e->transaction))))
                code = DECODE_E_TRUNCATED;
        if (code == 0 && HAS(PERF_SAMPLE_REGS_INTR))
                code = decode_registers(c, l->interrupt_registers, &e->interrupt_registers);
        if (code == 0)
                code = decode_words(l, c, e);
        if (code == 0 && HAS(PERF_SAMPLE_AUX))
                code = decode_aux(c, e);
        return code;
}

int record_decode_parts(const SampleLayout *l, Cursor *c, RecordExtra *e) {
        bool may_lack_index = HAS(PERF_SAMPLE_BRANCH_STACK) && l->branch_hw_index;
        RecordExtra other = *e;
        Cursor at = *c, other_at = *c;
        int code = decode_parts(l, &at, l->branch_hw_index, e);

        if (may_lack_index && cursor_left(c) >= sizeof(uint64_t) && load64(c->at) == 0 &&
            (code != 0 || cursor_left(&at) > 0) && decode_parts(l, &other_at, false, &other) == 0 &&
            cursor_left(&other_at) == 0) {
                *e = other;
                at = other_at;
                code = 0;
        }
        *c = at;
        return code;
}
