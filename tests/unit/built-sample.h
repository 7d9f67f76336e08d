/*
 * For tests of decode/ and encode/: a random attr with a random sample of it, laid out by the words of
 * perf_event_open(2) and perf_output_sample(), and what was put in, noted while it is built. The same seed builds the
 * same sample. What no machine of ours can make (branches, data sources, weights, transactions) is put in by the
 * structures of linux/perf_event.h, so that these are compared with the shifts of the code under test.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BUILT_MAX 8 /* counters, branches */
#define BUILT_BYTES 64
#define BUILT_BRANCH_COUNTERS ((uint64_t)1 << 19)

typedef struct BuiltRegisters {
        uint64_t abi, mask, values[64];
        unsigned n;
} BuiltRegisters;

typedef struct BuiltSample {
        uint64_t state; /* of the random numbers */
        struct perf_event_attr attr;
        uint64_t words[1024];
        size_t n_words;

        uint64_t identifier, ip, time, addr, id, stream_id, period;
        uint32_t pid, tid, cpu;
        uint64_t n_counters, enabled, running, value[BUILT_MAX], counter_id[BUILT_MAX], lost[BUILT_MAX];
        uint64_t chain[BUILT_MAX], n_chain;
        uint8_t raw[BUILT_BYTES], stack[BUILT_BYTES], aux[BUILT_BYTES];
        uint32_t raw_size;
        uint64_t n_branches, hw_index, branch_counters[BUILT_MAX];
        struct perf_branch_entry branches[BUILT_MAX];
        BuiltRegisters user, interrupt;
        uint64_t stack_size, stack_filled, aux_size;
        union perf_sample_weight weight;
        union perf_mem_data_src data_source;
        uint64_t transaction, physical_address, cgroup_id, data_page_size, code_page_size;
} BuiltSample;

static inline uint64_t built_random(BuiltSample *b) { /* xorshift64* */
        b->state ^= b->state >> 12;
        b->state ^= b->state << 25;
        b->state ^= b->state >> 27;
        return b->state * 0x2545F4914F6CDD1DULL;
}

static inline uint32_t built_below(BuiltSample *b, uint32_t n) {
        return (uint32_t)((built_random(b) >> 32) % n);
}

/* All widths are as likely, and zero happens. */
static inline uint64_t built_value(BuiltSample *b) {
        return built_below(b, 12) == 0 ? 0 : built_random(b) >> built_below(b, 64);
}

static inline uint64_t built_put(BuiltSample *b, uint64_t word) {
        b->words[b->n_words++] = word;
        return word;
}

static inline bool built_has(const BuiltSample *b, uint64_t bit) {
        return b->attr.sample_type & bit;
}

/* A random value, into the sample if it has this part; 0 otherwise. */
static inline uint64_t built_word(BuiltSample *b, uint64_t bit) {
        return built_has(b, bit) ? built_put(b, built_value(b)) : 0;
}

/* `n` bytes and zeros up to a whole word. */
static inline void built_bytes(BuiltSample *b, uint8_t *bytes, size_t n) {
        memset(&b->words[b->n_words], 0, (n + 7) / 8 * 8);
        for (size_t i = 0; i < n; i++)
                bytes[i] = (uint8_t)built_random(b);
        memcpy(&b->words[b->n_words], bytes, n);
        b->n_words += (n + 7) / 8;
}

static inline void built_head(BuiltSample *b) {
        b->identifier = built_word(b, PERF_SAMPLE_IDENTIFIER);
        b->ip = built_word(b, PERF_SAMPLE_IP);
        if (built_has(b, PERF_SAMPLE_TID)) {
                b->pid = (uint32_t)built_value(b);
                b->tid = (uint32_t)built_value(b);
                built_put(b, (uint64_t)b->tid << 32 | b->pid);
        }
        b->time = built_word(b, PERF_SAMPLE_TIME);
        b->addr = built_word(b, PERF_SAMPLE_ADDR);
        b->id = built_word(b, PERF_SAMPLE_ID);
        b->stream_id = built_word(b, PERF_SAMPLE_STREAM_ID);
        if (built_has(b, PERF_SAMPLE_CPU))
                built_put(b, b->cpu = built_below(b, 4));
        b->period = built_word(b, PERF_SAMPLE_PERIOD);
}

static inline void built_read(BuiltSample *b) {
        uint64_t f = b->attr.read_format;
        bool group = f & PERF_FORMAT_GROUP;

        b->n_counters = group ? 1 + built_below(b, BUILT_MAX) : 1;
        if (group)
                built_put(b, b->n_counters);
        else
                b->value[0] = built_put(b, built_value(b));
        b->enabled = f & PERF_FORMAT_TOTAL_TIME_ENABLED ? built_put(b, built_value(b)) : 0;
        b->running = f & PERF_FORMAT_TOTAL_TIME_RUNNING ? built_put(b, built_value(b)) : 0;
        for (uint64_t i = 0; i < b->n_counters; i++) {
                if (group)
                        b->value[i] = built_put(b, built_value(b));
                b->counter_id[i] = f & PERF_FORMAT_ID ? built_put(b, built_value(b)) : 0;
                b->lost[i] = f & PERF_FORMAT_LOST ? built_put(b, built_value(b)) : 0;
        }
}

static inline void built_raw(BuiltSample *b) {
        uint8_t *to = (uint8_t *)&b->words[b->n_words];

        b->raw_size = 4 + 8 * built_below(b, 7); /* as the kernel pads it: with its own size it fills words */
        memcpy(to, &b->raw_size, sizeof(b->raw_size));
        for (uint32_t i = 0; i < b->raw_size; i++)
                to[4 + i] = b->raw[i] = (uint8_t)built_random(b);
        b->n_words += (4 + b->raw_size) / 8;
}

static inline void built_branches(BuiltSample *b) {
        uint64_t flags;

        b->hw_index = UINT64_MAX;
        b->n_branches = built_put(b, built_below(b, BUILT_MAX));
        if (b->attr.branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX && (b->n_branches > 0 || built_below(b, 2)))
                b->hw_index = built_put(b, built_below(b, 5) ? built_below(b, 32) : UINT64_MAX);
        for (uint64_t i = 0; i < b->n_branches; i++) {
                struct perf_branch_entry *e = &b->branches[i];
                uint32_t word = (uint32_t)built_random(b);

                *e = (struct perf_branch_entry){ .from = built_value(b), .to = built_value(b) };
                e->mispred = word & 1;
                e->predicted = word >> 1 & 1;
                e->in_tx = word >> 2 & 1;
                e->abort = word >> 3 & 1;
                e->cycles = (uint16_t)(built_value(b));
                e->type = word >> 4 & 15;
                e->spec = word >> 8 & 3;
                e->new_type = word >> 10 & 15;
                e->priv = word >> 14 & 7;
                built_put(b, e->from);
                built_put(b, e->to);
                memcpy(&flags, (uint8_t *)e + 16, sizeof(flags));
                built_put(b, flags);
        }
        for (uint64_t i = 0; i < b->n_branches && b->attr.branch_sample_type & BUILT_BRANCH_COUNTERS; i++)
                b->branch_counters[i] = built_put(b, built_value(b));
}

static inline void built_registers(BuiltSample *b, BuiltRegisters *r, uint64_t mask) {
        r->mask = mask;
        r->abi = built_put(b, built_below(b, 3));
        r->n = r->abi == PERF_SAMPLE_REGS_ABI_NONE ? 0 : (unsigned)__builtin_popcountll(mask);
        for (unsigned i = 0; i < r->n; i++)
                r->values[i] = built_put(b, built_value(b));
}

static inline void built_stack(BuiltSample *b) {
        b->stack_size = built_put(b, 8 * (uint64_t)built_below(b, BUILT_BYTES / 8 + 1));
        if (b->stack_size == 0)
                return;
        built_bytes(b, b->stack, b->stack_size);
        b->stack_filled = built_put(b, built_below(b, (uint32_t)b->stack_size + 1));
}

static inline void built_memory(BuiltSample *b) {
        uint64_t word = built_random(b);

        if (built_has(b, PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT))
                b->weight.full = built_put(b, built_value(b));
        if (built_has(b, PERF_SAMPLE_DATA_SRC)) {
                b->data_source.mem_op = word;
                b->data_source.mem_lvl = word >> 5;
                b->data_source.mem_snoop = word >> 19;
                b->data_source.mem_lock = word >> 24;
                b->data_source.mem_dtlb = word >> 26;
                b->data_source.mem_lvl_num = word >> 33;
                b->data_source.mem_remote = word >> 37;
                b->data_source.mem_snoopx = word >> 38;
                b->data_source.mem_blk = word >> 40;
                b->data_source.mem_hops = word >> 43;
                built_put(b, b->data_source.val);
        }
        b->transaction = built_word(b, PERF_SAMPLE_TRANSACTION);
}

static inline void built_tail(BuiltSample *b) {
        b->physical_address = built_word(b, PERF_SAMPLE_PHYS_ADDR);
        b->cgroup_id = built_word(b, PERF_SAMPLE_CGROUP);
        b->data_page_size = built_word(b, PERF_SAMPLE_DATA_PAGE_SIZE);
        b->code_page_size = built_word(b, PERF_SAMPLE_CODE_PAGE_SIZE);
        if (built_has(b, PERF_SAMPLE_AUX)) {
                b->aux_size = built_put(b, 8 * (uint64_t)built_below(b, BUILT_BYTES / 8 + 1));
                built_bytes(b, b->aux, b->aux_size);
        }
}

/* The sample of an attr that the caller chose. */
static inline void built_sample_fill(BuiltSample *b) {
        struct perf_event_header header = { .type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_USER };

        b->n_words = 1;
        built_head(b);
        if (built_has(b, PERF_SAMPLE_READ))
                built_read(b);
        if (built_has(b, PERF_SAMPLE_CALLCHAIN)) {
                b->n_chain = built_put(b, built_below(b, BUILT_MAX));
                for (uint64_t i = 0; i < b->n_chain; i++)
                        b->chain[i] = built_put(b, i == 0 ? (uint64_t)PERF_CONTEXT_USER : built_value(b) >> 1);
        }
        if (built_has(b, PERF_SAMPLE_RAW))
                built_raw(b);
        if (built_has(b, PERF_SAMPLE_BRANCH_STACK))
                built_branches(b);
        if (built_has(b, PERF_SAMPLE_REGS_USER))
                built_registers(b, &b->user, b->attr.sample_regs_user);
        if (built_has(b, PERF_SAMPLE_STACK_USER))
                built_stack(b);
        built_memory(b);
        if (built_has(b, PERF_SAMPLE_REGS_INTR))
                built_registers(b, &b->interrupt, b->attr.sample_regs_intr);
        built_tail(b);
        header.size = (uint16_t)(b->n_words * sizeof(uint64_t));
        memcpy(b->words, &header, sizeof(header));
}

/* Any combination of bits, but for the two weights, which exclude each other. */
static inline void built_attr(BuiltSample *b) {
        b->attr = (struct perf_event_attr){ .size = sizeof(b->attr), .sample_id_all = 1 };
        b->attr.sample_type = built_random(b) & ((1 << 25) - 1);
        if (built_below(b, 3) == 0) /* fewer bits, so that single parts meet */
                b->attr.sample_type &= built_random(b);
        if (built_has(b, PERF_SAMPLE_WEIGHT))
                b->attr.sample_type &= ~(uint64_t)PERF_SAMPLE_WEIGHT_STRUCT;
        b->attr.read_format = built_below(b, 32);
        b->attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
        b->attr.branch_sample_type |= built_below(b, 2) ? (uint64_t)PERF_SAMPLE_BRANCH_HW_INDEX : 0;
        b->attr.branch_sample_type |= built_below(b, 2) ? BUILT_BRANCH_COUNTERS : 0;
        b->attr.sample_regs_user = built_random(b) & built_random(b);
        b->attr.sample_regs_intr = built_random(b) & built_random(b) & built_random(b);
}

static inline void built_sample_init(BuiltSample *b, uint64_t seed) {
        memset(b, 0, sizeof(*b));
        b->state = seed * 0x9E3779B97F4A7C15ULL + 1;
        built_attr(b);
        built_sample_fill(b);
}

static inline size_t built_size(const BuiltSample *b) {
        return b->n_words * sizeof(uint64_t);
}
