/*
 * The rare parts of samples, one function for each message, in the order of the item's fields. Bit fields are taken
 * apart by the shifts of linux/perf_event.h and not by its structures, whose bit order is the compiler's.
 */
#include "daemon/encode/sample-parts.h"

#include <elf.h>
#include <linux/perf_event.h>

#include "proto/item-fields.h"
#include "daemon/encode/wire.h"

/* Most bytes of one message with its key and length: the words and numbers that it has. */
#define BRANCH_BOUND ((size_t)64)
#define FIXED_PARTS_BOUND ((size_t)320) /* all parts without what repeats or has a length */

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_NONE
#endif

size_t sample_parts_bound(const Record *r) {
        const RecordExtra *e = &r->extra;
        size_t bound = FIXED_PARTS_BOUND;

        if (r->parts & PERF_SAMPLE_READ)
                bound += e->read.n * READ_VALUE_BOUND;
        if (r->parts & PERF_SAMPLE_BRANCH_STACK)
                bound += e->n_branches * BRANCH_BOUND;
        if (r->parts & PERF_SAMPLE_REGS_USER)
                bound += record_n_registers(&e->user_registers) * sizeof(uint64_t);
        if (r->parts & PERF_SAMPLE_REGS_INTR)
                bound += record_n_registers(&e->interrupt_registers) * sizeof(uint64_t);
        if (r->parts & PERF_SAMPLE_STACK_USER)
                bound += e->user_stack_size;
        if (r->parts & PERF_SAMPLE_AUX)
                bound += e->aux_size;
        return bound;
}

uint8_t *read_value_put(uint8_t *to, const ReadCount *count) {
        uint8_t *content, *begin = wire_begin(to, 1, 0, &content);

        to = wire_put_number(content, 1, count->value);
        to = wire_put_number(to, 2, count->enabled);
        to = wire_put_number(to, 3, count->running);
        to = wire_put_number(to, 4, count->lost);
        return wire_end(begin, content, to);
}

uint8_t *read_values_put(uint8_t *to, const RecordRead *read) {
        for (uint64_t i = 0; i < read->n; i++) {
                ReadCount count = record_read_at(read, i);

                to = read_value_put(to, &count);
        }
        return to;
}

static uint8_t *put_read(uint8_t *to, const RecordRead *read) {
        uint8_t *content, *begin = wire_begin(to, ITEM_READ_VALUES, read->n * READ_VALUE_BOUND / 2, &content);

        return wire_end(begin, content, read_values_put(content, read));
}

static inline uint64_t bits(uint64_t word, unsigned shift, unsigned n) {
        return word >> shift & ((1ULL << n) - 1);
}

/*
 * flags of struct perf_branch_entry, from the lowest bit on:
 *     | mispred predicted in_tx abort | cycles (16) | type (4) | spec (2) | new_type (4) | priv (3) |
 */
static uint8_t *put_branch(uint8_t *to, const uint8_t *branch, uint64_t counters) {
        uint8_t *content, *begin = wire_begin(to, ITEM_BRANCHES, 0, &content);
        uint64_t flags = record_word(branch, 2);

        to = wire_put_fixed64(content, 1, record_word(branch, 0));
        to = wire_put_fixed64(to, 2, record_word(branch, 1));
        to = wire_put_number(to, 3, bits(flags, 0, 1));
        to = wire_put_number(to, 4, bits(flags, 1, 1));
        to = wire_put_number(to, 5, bits(flags, 2, 1));
        to = wire_put_number(to, 6, bits(flags, 3, 1));
        to = wire_put_number(to, 7, bits(flags, 4, 16));
        to = wire_put_number(to, 8, bits(flags, 20, 4));
        to = wire_put_number(to, 9, bits(flags, 24, 2));
        to = wire_put_number(to, 10, bits(flags, 26, 4));
        to = wire_put_number(to, 11, bits(flags, 30, 3));
        to = wire_put_number(to, 12, counters);
        return wire_end(begin, content, to);
}

static uint8_t *put_branches(uint8_t *to, const RecordExtra *e) {
        for (uint64_t i = 0; i < e->n_branches; i++)
                to = put_branch(to, e->branches + i * sizeof(struct perf_branch_entry),
                                e->branch_counters ? record_word(e->branch_counters, i) : 0);
        return wire_put_number(to, ITEM_BRANCH_HW_INDEX, e->branch_hw_index + 1);
}

static uint8_t *put_registers(uint8_t *to, unsigned field, const RecordRegisters *r) {
        size_t size = record_n_registers(r) * sizeof(uint64_t);
        uint8_t *content, *begin = wire_begin(to, field, size + 16, &content);

        to = wire_put_number(content, 1, r->abi);
        to = wire_put_fixed64(to, 2, r->mask);
        if (size > 0) {
                to = wire_put_varint(wire_put_key(to, WIRE_KEY(3, WIRE_BYTES)), size);
                for (size_t i = 0; i < size / sizeof(uint64_t); i++)
                        to = wire_put_word(to, record_word(r->values, i));
        }
        to = wire_put_number(to, 4, MACHINE);
        return wire_end(begin, content, to);
}

static uint8_t *put_weight(uint8_t *to, const Record *r) {
        union perf_sample_weight weight = { .full = r->extra.weight };
        uint8_t *content, *begin = wire_begin(to, ITEM_WEIGHT, 0, &content);

        to = content;
        if (r->parts & PERF_SAMPLE_WEIGHT)
                to = wire_put_number(to, 1, weight.full);
        else {
                to = wire_put_number(to, 2, weight.var1_dw);
                to = wire_put_number(to, 3, weight.var2_w);
                to = wire_put_number(to, 4, weight.var3_w);
        }
        return wire_end(begin, content, to);
}

static uint8_t *put_data_source(uint8_t *to, uint64_t source) {
        uint8_t *content, *begin = wire_begin(to, ITEM_DATA_SOURCE, 0, &content);

        to = wire_put_fixed64(content, 1, source);
        to = wire_put_number(to, 2, bits(source, PERF_MEM_OP_SHIFT, 5));
        to = wire_put_number(to, 3, bits(source, PERF_MEM_LVL_SHIFT, 14));
        to = wire_put_number(to, 4, bits(source, PERF_MEM_SNOOP_SHIFT, 5));
        to = wire_put_number(to, 5, bits(source, PERF_MEM_LOCK_SHIFT, 2));
        to = wire_put_number(to, 6, bits(source, PERF_MEM_TLB_SHIFT, 7));
        to = wire_put_number(to, 7, bits(source, PERF_MEM_LVLNUM_SHIFT, 4));
        to = wire_put_number(to, 8, bits(source, PERF_MEM_REMOTE_SHIFT, 1));
        to = wire_put_number(to, 9, bits(source, PERF_MEM_SNOOPX_SHIFT, 2));
        to = wire_put_number(to, 10, bits(source, PERF_MEM_BLK_SHIFT, 3));
        to = wire_put_number(to, 11, bits(source, PERF_MEM_HOPS_SHIFT, 3));
        return wire_end(begin, content, to);
}

static uint8_t *put_transaction(uint8_t *to, uint64_t transaction) {
        uint8_t *content, *begin = wire_begin(to, ITEM_TRANSACTION, 0, &content);

        to = wire_put_number(content, 1, transaction & ~PERF_TXN_ABORT_MASK);
        to = wire_put_number(to, 2, transaction >> PERF_TXN_ABORT_SHIFT);
        return wire_end(begin, content, to);
}

uint8_t *sample_parts_put(uint8_t *to, const Record *r) {
        const RecordExtra *e = &r->extra;

        if (r->parts & PERF_SAMPLE_READ)
                to = put_read(to, &e->read);
        if (r->parts & PERF_SAMPLE_BRANCH_STACK)
                to = put_branches(to, e);
        if (r->parts & PERF_SAMPLE_REGS_USER)
                to = put_registers(to, ITEM_USER_REGISTERS, &e->user_registers);
        if (r->parts & PERF_SAMPLE_REGS_INTR)
                to = put_registers(to, ITEM_INTERRUPT_REGISTERS, &e->interrupt_registers);
        if (r->parts & PERF_SAMPLE_STACK_USER)
                to = wire_put_bytes(to, ITEM_USER_STACK, e->user_stack, e->user_stack_size);
        if (r->parts & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT))
                to = put_weight(to, r);
        if (r->parts & PERF_SAMPLE_DATA_SRC)
                to = put_data_source(to, e->data_source);
        if (r->parts & PERF_SAMPLE_TRANSACTION)
                to = put_transaction(to, e->transaction);
        if (r->parts & PERF_SAMPLE_PHYS_ADDR)
                to = wire_put_fixed64(to, ITEM_PHYSICAL_ADDRESS, e->physical_address);
        if (r->parts & PERF_SAMPLE_CGROUP)
                to = wire_put_number(to, ITEM_CGROUP_ID, e->cgroup_id);
        if (r->parts & PERF_SAMPLE_DATA_PAGE_SIZE)
                to = wire_put_number(to, ITEM_DATA_PAGE_SIZE, e->data_page_size);
        if (r->parts & PERF_SAMPLE_CODE_PAGE_SIZE)
                to = wire_put_number(to, ITEM_CODE_PAGE_SIZE, e->code_page_size);
        if (r->parts & PERF_SAMPLE_AUX)
                to = wire_put_bytes(to, ITEM_AUX_BYTES, e->aux, e->aux_size);
        if (r->parts & PERF_SAMPLE_ID)
                to = wire_put_number(to, ITEM_SAMPLE_ID, e->id);
        if (r->parts & PERF_SAMPLE_STREAM_ID)
                to = wire_put_number(to, ITEM_STREAM_ID, e->stream_id);
        return to;
}
