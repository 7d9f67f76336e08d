/*
 * The rare parts of samples, and READ records: whatever an attr asks for is decoded to what was put in, and no cut or
 * lying count is believed or read beyond.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/decode/record.h"
#include "tests/unit/built-sample.h"

#define HEADER(type, misc, n_words) ((uint64_t)(n_words) << 51 | (uint64_t)(misc) << 32 | (uint64_t)(type))

/* From memory that is exactly as long, and not aligned, so that a sanitizer sees a read outside. */
static int decode_by(const SampleLayout *l, const void *bytes, size_t length, Record *ret, uint8_t **ret_memory) {
        uint8_t *memory = malloc(length + 1);

        assert_non_null(memory);
        memcpy(memory + 1, bytes, length);
        *ret_memory = memory;
        return record_decode(l, memory + 1, length, ret);
}

static void check_read(const RecordRead *r, const BuiltSample *b) {
        assert_int_equal(r->n, b->n_counters);
        for (uint64_t i = 0; i < r->n; i++) {
                ReadCount c = record_read_at(r, i);

                assert_true(c.value == b->value[i] && c.enabled == b->enabled && c.running == b->running);
                assert_true(c.lost == b->lost[i] && record_read_id(r, i) == b->counter_id[i]);
        }
}

/* PERF_RECORD_READ, by all read formats: the bytes of its values are those that a sample has. */
static void test_read_records(void **state) {
        for (uint64_t format = 0; format < 32; format++) {
                _cleanup_free_ uint8_t *memory = NULL;
                BuiltSample b = { .state = format + 1, .attr = { .sample_type = SAMPLE_TYPE_BASE, .sample_id_all = 1,
                                                                 .read_format = format } };
                SampleLayout l;
                Record r;

                assert_int_equal(sample_layout_init(&l, &b.attr), 0);
                b.n_words = 1;
                built_put(&b, 0x0000000600000005);
                built_read(&b);
                built_put(&b, 0x0000000800000007);
                built_put(&b, 99);
                built_put(&b, 0x21);
                b.words[0] = HEADER(PERF_RECORD_READ, 0, b.n_words);
                assert_int_equal(decode_by(&l, b.words, built_size(&b), &r, &memory), 0);
                assert_true(r.read.pid == 5 && r.read.tid == 6);
                check_read(&r.read.values, &b);
                assert_true(r.tid == 8 && r.time == 99 && r.stream_id == 0x21);
        }
}

static void check_registers(const RecordRegisters *r, const BuiltRegisters *b) {
        assert_true(r->abi == b->abi && r->mask == b->mask);
        assert_int_equal(record_n_registers(r), b->n);
        assert_memory_equal(r->values, b->values, b->n * sizeof(uint64_t));
}

static void check_branches(const RecordExtra *e, const BuiltSample *b) {
        assert_int_equal(e->n_branches, b->n_branches);
        assert_true(e->branch_hw_index == b->hw_index);
        assert_memory_equal(e->branches, b->branches, b->n_branches * sizeof(b->branches[0]));
        assert_int_equal(e->branch_counters != NULL, (b->attr.branch_sample_type & BUILT_BRANCH_COUNTERS) != 0);
        if (e->branch_counters)
                assert_memory_equal(e->branch_counters, b->branch_counters, b->n_branches * sizeof(uint64_t));
}

static void check_parts(const RecordExtra *e, const BuiltSample *b) {
        if (built_has(b, PERF_SAMPLE_READ))
                check_read(&e->read, b);
        if (built_has(b, PERF_SAMPLE_BRANCH_STACK))
                check_branches(e, b);
        if (built_has(b, PERF_SAMPLE_REGS_USER))
                check_registers(&e->user_registers, &b->user);
        if (built_has(b, PERF_SAMPLE_REGS_INTR))
                check_registers(&e->interrupt_registers, &b->interrupt);
        assert_int_equal(e->user_stack_size, b->stack_filled);
        if (b->stack_filled > 0)
                assert_memory_equal(e->user_stack, b->stack, b->stack_filled);
        assert_int_equal(e->aux_size, b->aux_size);
        if (b->aux_size > 0)
                assert_memory_equal(e->aux, b->aux, b->aux_size);
        assert_true(e->weight == b->weight.full && e->data_source == b->data_source.val);
        assert_true(e->transaction == b->transaction && e->physical_address == b->physical_address);
        assert_true(e->cgroup_id == b->cgroup_id && e->id == b->id && e->stream_id == b->stream_id);
        assert_true(e->data_page_size == b->data_page_size && e->code_page_size == b->code_page_size);
}

static void check_built(const Record *r, const BuiltSample *b) {
        bool named = built_has(b, PERF_SAMPLE_IDENTIFIER);

        assert_true(r->type == PERF_RECORD_SAMPLE && r->ip == b->ip && r->addr == b->addr && r->time == b->time);
        assert_true(r->pid == b->pid && r->tid == b->tid && r->cpu == b->cpu && r->period == b->period);
        assert_true(r->stream_id == (named ? b->identifier : b->id));
        assert_int_equal(r->n_callchain, b->n_chain);
        if (r->n_callchain > 0)
                assert_memory_equal(r->callchain, b->chain, b->n_chain * sizeof(uint64_t));
        assert_int_equal(r->raw_size, b->raw_size);
        if (r->raw_size > 0)
                assert_memory_equal(r->raw, b->raw, b->raw_size);
        if (r->parts != 0)
                check_parts(&r->extra, b);
}

/* Any attr. Each cut is refused: no sample is the beginning of another one of the same attr, but for hw_idx. */
static void test_built_samples(void **state) {
        static BuiltSample b;

        for (uint64_t seed = 0; seed < 4000; seed++) {
                SampleLayout l;
                Record r;

                built_sample_init(&b, seed);
                assert_int_equal(sample_layout_init(&l, &b.attr), 0);
                {
                        _cleanup_free_ uint8_t *memory = NULL;

                        assert_int_equal(decode_by(&l, b.words, built_size(&b), &r, &memory), 0);
                        check_built(&r, &b);
                }
                for (size_t n = 8; n < built_size(&b) && seed < 300; n++) {
                        _cleanup_free_ uint8_t *memory = NULL;
                        uint16_t size = (uint16_t)n;
                        Record before;

                        memcpy((uint8_t *)b.words + 6, &size, sizeof(size));
                        memset(&r, 0x5a, sizeof(r));
                        before = r;
                        if (decode_by(&l, b.words, n, &r, &memory) == 0) {
                                assert_true(l.branch_hw_index && built_has(&b, PERF_SAMPLE_BRANCH_STACK));
                                assert_int_equal(b.n_branches, 0);
                                continue;
                        }
                        assert_memory_equal(&r, &before, sizeof(r));
                }
        }
}

/* No branches at all: the kernel leaves hw_idx out, and only the length tells. */
static void test_branches_without_index(void **state) {
        static const struct perf_event_attr attr = { .sample_type = PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_CGROUP,
                                                     .branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX };
        static const uint64_t without[] = { HEADER(PERF_RECORD_SAMPLE, 0, 3), 0, 5 };
        static const uint64_t with[] = { HEADER(PERF_RECORD_SAMPLE, 0, 4), 0, 9, 5 };
        static const uint64_t longer[] = { HEADER(PERF_RECORD_SAMPLE, 0, 5), 0, 9, 5, 1 }; /* by a newer kernel */
        _cleanup_free_ uint8_t *memory[3] = { NULL };
        SampleLayout l;
        Record r;

        assert_int_equal(sample_layout_init(&l, &attr), 0);
        assert_int_equal(decode_by(&l, without, sizeof(without), &r, &memory[0]), 0);
        assert_true(r.extra.branch_hw_index == UINT64_MAX && r.extra.cgroup_id == 5);
        free(TAKE_PTR(memory[0]));
        assert_int_equal(decode_by(&l, with, sizeof(with), &r, &memory[0]), 0);
        assert_true(r.extra.branch_hw_index == 9 && r.extra.cgroup_id == 5);
        free(TAKE_PTR(memory[0]));
        assert_int_equal(decode_by(&l, longer, sizeof(longer), &r, &memory[0]), 0);
        assert_true(r.extra.branch_hw_index == 9 && r.extra.cgroup_id == 5);
}

static int decode_words(uint64_t sample_type, uint64_t *words, size_t n) {
        struct perf_event_attr attr = { .sample_type = sample_type, .sample_regs_user = 7,
                                        .read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID };
        _cleanup_free_ uint8_t *memory = NULL;
        SampleLayout l;
        Record r;

        assert_int_equal(sample_layout_init(&l, &attr), 0);
        words[0] = HEADER(PERF_RECORD_SAMPLE, 0, n);
        return decode_by(&l, words, n * sizeof(*words), &r, &memory);
}

/* Counts whose bytes wrap, and what is said to be filled beyond what is there. */
static void test_lying_parts(void **state) {
        static const uint64_t wrapping[] = { UINT64_MAX, UINT64_MAX / 8 + 1, UINT64_MAX / 16 + 1, UINT64_MAX / 24 + 1,
                                             1ULL << 60, 1ULL << 61, 3 };
        static const uint64_t types[] = { PERF_SAMPLE_READ, PERF_SAMPLE_BRANCH_STACK, PERF_SAMPLE_STACK_USER,
                                          PERF_SAMPLE_AUX, PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_READ };

        for (size_t t = 0; t < ARRAY_SIZE(types); t++)
                for (size_t i = 0; i < ARRAY_SIZE(wrapping); i++) {
                        uint64_t words[] = { 0, wrapping[i] };

                        assert_int_equal(decode_words(types[t], words, 2), DECODE_E_TRUNCATED);
                }
        assert_int_equal(decode_words(PERF_SAMPLE_REGS_USER, (uint64_t[]){ 0, 2, 1, 1 }, 4), DECODE_E_TRUNCATED);
        assert_int_equal(decode_words(PERF_SAMPLE_REGS_USER, (uint64_t[]){ 0, 2, 1, 1, 1 }, 5), 0);
        assert_int_equal(decode_words(PERF_SAMPLE_REGS_USER, (uint64_t[]){ 0, 3, 1, 1, 1 }, 5), DECODE_E_MALFORMED);
        assert_int_equal(decode_words(PERF_SAMPLE_STACK_USER, (uint64_t[]){ 0, 8, 1, 9 }, 4), DECODE_E_MALFORMED);
        assert_int_equal(decode_words(PERF_SAMPLE_STACK_USER, (uint64_t[]){ 0, 8, 1, 8 }, 4), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_read_records),
                cmocka_unit_test(test_built_samples),
                cmocka_unit_test(test_branches_without_index),
                cmocka_unit_test(test_lying_parts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
