/*
 * Samples of recordings, and whose records are: with everything that an attr can ask for, in both byte orders, cut off at each byte, and
 * with numbers that lie.
 */
#include <linux/perf_event.h>
#include <stdlib.h>

#include "client/perfd.h"
#include "tests/unit/built-recording.h"

#define FORMAT_LOST (1U << 4)
#define ALL_BITS                                                                                                                        \
        (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |             \
         PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW |    \
         PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC |        \
         PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP | PERF_SAMPLE_DATA_PAGE_SIZE |    \
         PERF_SAMPLE_CODE_PAGE_SIZE | PERF_SAMPLE_AUX)
#define READ_FORMAT                                                                                                                     \
        (PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID | FORMAT_LOST)
#define HW_INDEX (1U << 17)
#define COUNTERS (1U << 19)
/* Mispredicted, 0x1234 cycles, of type 3, spec 1, new type 5 and privilege 2: bitfields from the lowest bit on, or from the highest. */
#define BRANCH_FLAGS (UINT64_C(1) | UINT64_C(0x1234) << 4 | UINT64_C(3) << 20 | UINT64_C(1) << 24 | UINT64_C(5) << 26 | UINT64_C(2) << 30)
#define BRANCH_FLAGS_TURNED \
        (UINT64_C(1) << 63 | UINT64_C(0x1234) << 44 | UINT64_C(3) << 40 | UINT64_C(1) << 38 | UINT64_C(5) << 34 | UINT64_C(2) << 31)

static Built built;

/* Of 120 bytes: what is read of it is all that is set. */
static void build_attr(Built *b, uint64_t sample_type, uint64_t read_format, bool has_id_all) {
        const uint8_t bit_18 = b->swap ? 0x20 : 0x04; /* sample_id_all: of byte 2 the bit 2, or the sixth from the other end */
        const uint8_t flags[8] = { 0, 0, has_id_all ? bit_18 : 0 };
        const size_t at = b->n;

        built_u32(b, PERF_TYPE_SOFTWARE);
        built_u32(b, 120);
        built_u64(b, PERF_COUNT_SW_PAGE_FAULTS);
        built_u64(b, 1);
        built_u64(b, sample_type);
        built_u64(b, read_format);
        built_bytes(b, flags, sizeof(flags));
        built_zeros(b, 8 + 16);
        built_u64(b, HW_INDEX | COUNTERS); /* branch_sample_type */
        built_u64(b, 0x15);     /* sample_regs_user: three */
        built_u32(b, 64);       /* sample_stack_user */
        built_u32(b, 0);
        built_u64(b, 0x3); /* sample_regs_intr: two */
        built_zeros(b, 120 - (b->n - at));
}

/* Two events of the same bits, with two ids each: 100 and 101, 200 and 201. */
static void build_pipe(Built *b, bool swap, uint64_t sample_type, uint64_t read_format, bool has_id_all) {
        b->swap = swap;
        b->n = 0;
        built_u64(b, PERF_DATA_MAGIC);
        built_u64(b, PERF_DATA_PIPE_SIZE);
        for (uint64_t i = 1; i <= 2; i++) {
                const size_t at = built_record(b, PERF_DATA_HEADER_ATTR, 0);

                build_attr(b, sample_type, read_format, has_id_all);
                built_u64(b, 100 * i);
                built_u64(b, 100 * i + 1);
                built_record_end(b, at);
        }
}

static void build_first(Built *b, uint64_t id) {
        built_u64(b, id); /* IDENTIFIER */
        built_u64(b, 0xffffffff81000001);
        built_u32(b, 10); /* pid, tid */
        built_u32(b, 11);
        built_u64(b, 123456789);
        built_u64(b, 0x7fff0000);
        built_u64(b, id);
        built_u64(b, 7); /* stream id */
        built_u32(b, 3); /* cpu */
        built_u32(b, 0);
        built_u64(b, 99); /* period */
}

static void build_read(Built *b) {
        built_u64(b, 2);
        built_u64(b, 1000);
        built_u64(b, 900);
        for (uint64_t i = 1; i <= 2; i++) {
                built_u64(b, 5000 * i);
                built_u64(b, 100 * i);
                built_u64(b, i);
        }
}

static void build_last(Built *b) {
        built_u64(b, 3); /* callchain */
        built_u64(b, (uint64_t)PERF_CONTEXT_USER);
        built_u64(b, 0x401000);
        built_u64(b, 0x402000);
        built_u32(b, 12); /* raw */
        built_bytes(b, "raw of event", 12);
        built_u64(b, 2);  /* branches */
        built_u64(b, 77); /* hardware index */
        for (uint64_t i = 1; i <= 2; i++) {
                built_u64(b, 0x1000 * i);
                built_u64(b, 0x2000 * i);
                built_u64(b, b->swap ? BRANCH_FLAGS_TURNED : BRANCH_FLAGS);
        }
        built_u64(b, 31); /* counters */
        built_u64(b, 32);
        built_u64(b, PERF_SAMPLE_REGS_ABI_64);
        for (uint64_t i = 1; i <= 3; i++)
                built_u64(b, i);
        built_u64(b, 16); /* stack */
        built_bytes(b, "0123456789abcdef", 16);
        built_u64(b, 10);
        built_u64(b, 1234); /* weight */
        built_u64(b, 0x5080021);
        built_u64(b, 6); /* transaction */
        built_u64(b, PERF_SAMPLE_REGS_ABI_NONE);
        built_u64(b, 0x9000);
        built_u64(b, 42);
        built_u64(b, 4096);
        built_u64(b, 2 << 20);
        built_u64(b, 8); /* aux */
        built_bytes(b, "aux data", 8);
}

static void build_sample(Built *b, uint64_t id) {
        const size_t at = built_record(b, PERF_RECORD_SAMPLE, 2);

        build_first(b, id);
        build_read(b);
        build_last(b);
        built_record_end(b, at);
}

static void check_sample(const perfd_recorded_sample *s, uint64_t id, const perfd_recorded_event *event) {
        assert_ptr_equal(s->id.event, event);
        assert_int_equal(s->id.has, ALL_BITS);
        assert_int_equal(s->id.id, id);
        assert_int_equal(s->ip, 0xffffffff81000001);
        assert_int_equal(s->id.pid, 10);
        assert_int_equal(s->id.tid, 11);
        assert_int_equal(s->id.time, 123456789);
        assert_int_equal(s->addr, 0x7fff0000);
        assert_int_equal(s->id.stream_id, 7);
        assert_int_equal(s->id.cpu, 3);
        assert_int_equal(s->period, 99);
        assert_int_equal(s->time_enabled, 1000);
        assert_int_equal(s->time_running, 900);
        assert_int_equal(s->n_values, 2);
        assert_int_equal(s->values[1].value, 10000);
        assert_int_equal(s->values[1].id, 200);
        assert_int_equal(s->values[1].lost, 2);
        assert_int_equal(s->n_callchain, 3);
        assert_int_equal(s->callchain[0], (uint64_t)PERF_CONTEXT_USER);
        assert_int_equal(s->callchain[2], 0x402000);
        assert_int_equal(s->raw.length, 12);
        assert_memory_equal(s->raw.bytes, "raw of event", 12);
        assert_int_equal(s->branch_hw_index, 77);
        assert_int_equal(s->n_branches, 2);
        assert_int_equal(s->branches[1].from, 0x2000);
        assert_int_equal(s->branches[1].to, 0x4000);
        assert_int_equal(s->branches[1].flags, BRANCH_FLAGS);
        assert_int_equal(s->branch_counters[1], 32);
        assert_int_equal(s->registers_user.n, 3);
        assert_int_equal(s->registers_user.values[2], 3);
        assert_int_equal(s->registers_intr.n, 0);
        assert_int_equal(s->stack_user.length, 10);
        assert_memory_equal(s->stack_user.bytes, "0123456789", 10);
        assert_int_equal(s->weight, 1234);
        assert_int_equal(s->data_src, 0x5080021);
        assert_int_equal(s->transaction, 6);
        assert_int_equal(s->phys_addr, 0x9000);
        assert_int_equal(s->cgroup, 42);
        assert_int_equal(s->data_page_size, 4096);
        assert_int_equal(s->code_page_size, 2 << 20);
        assert_int_equal(s->aux.length, 8);
        assert_memory_equal(s->aux.bytes, "aux data", 8);
}

/* The next record of that type. */
static const perfd_recorded *next_of(perfd_recording *r, uint32_t type) {
        const perfd_recorded *record;

        do
                assert_int_equal(perfd_recording_next(r, &record), 0);
        while (record->type != type);
        return record;
}

static perfd_recording *open_built(const Built *b) {
        perfd_recording *r = perfd_recording_new();

        assert_non_null(r);
        assert_int_equal(perfd_recording_open_bytes(r, b->bytes, b->n), 0);
        return r;
}

static void test_all(void **state) {
        for (int swap = 0; swap < 2; swap++) {
                static const uint64_t ids[] = { 100, 201, 101, 0 }; /* 0: what perf makes up is of the first event */
                perfd_recorded_sample s;
                perfd_recorded_id id;
                perfd_recording *r;

                build_pipe(&built, swap, ALL_BITS, READ_FORMAT, true);
                for (size_t i = 0; i < 4; i++)
                        build_sample(&built, ids[i]);
                r = open_built(&built);
                for (size_t i = 0; i < 4; i++) {
                        const perfd_recorded *record = next_of(r, PERF_RECORD_SAMPLE);

                        assert_int_equal(perfd_recording_sample(r, record, &s), 0);
                        check_sample(&s, ids[i], perfd_recording_event(r, ids[i] / 200));
                        assert_int_equal(perfd_recording_id(r, record, &id), 0);
                        assert_int_equal(id.id, ids[i]);
                        assert_int_equal(id.time, 123456789);
                        assert_int_equal(id.cpu, 3);
                }
                assert_int_equal(perfd_recording_damage_count(r), 0);
                perfd_recording_free(r);
        }
}

/* Without PERF_SAMPLE_IDENTIFIER the id is where all have it; behind another record, from its end. */
static void test_layouts(void **state) {
        static const uint64_t types[] = { PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_CPU,
                                          PERF_SAMPLE_TID | PERF_SAMPLE_ID | PERF_SAMPLE_PERIOD,
                                          PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TIME, PERF_SAMPLE_TID | PERF_SAMPLE_TIME };

        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
                for (int how = 0; how < 4; how++) {
                        const uint64_t t = types[i];
                        const bool has_ids = (t & (PERF_SAMPLE_ID | PERF_SAMPLE_IDENTIFIER)) != 0, has_id_all = how & 2;
                        perfd_recorded_sample s;
                        const perfd_recorded *record;
                        perfd_recorded_id id;
                        perfd_recording *r;
                        size_t at;

                        build_pipe(&built, how & 1, t, 0, has_id_all);
                        at = built_record(&built, PERF_RECORD_SAMPLE, 0);
                        if (t & PERF_SAMPLE_IDENTIFIER)
                                built_u64(&built, 201);
                        if (t & PERF_SAMPLE_IP)
                                built_u64(&built, 5);
                        if (t & PERF_SAMPLE_TID)
                                built_u64(&built, built.swap ? UINT64_C(0xa0000000b) : UINT64_C(0xb0000000a));
                        if (t & PERF_SAMPLE_TIME)
                                built_u64(&built, 6);
                        if (t & PERF_SAMPLE_ID)
                                built_u64(&built, 201);
                        if (t & PERF_SAMPLE_CPU)
                                built_u64(&built, built.swap ? UINT64_C(3) << 32 : 3);
                        if (t & PERF_SAMPLE_PERIOD)
                                built_u64(&built, 8);
                        built_record_end(&built, at);
                        at = built_record(&built, PERF_RECORD_COMM, 0);
                        built_u32(&built, 10);
                        built_u32(&built, 11);
                        built_bytes(&built, "program", 8);
                        if (t & PERF_SAMPLE_TID && has_id_all)
                                built_u64(&built, built.swap ? UINT64_C(0xa0000000b) : UINT64_C(0xb0000000a));
                        if (t & PERF_SAMPLE_TIME && has_id_all)
                                built_u64(&built, 6);
                        if (t & PERF_SAMPLE_ID && has_id_all)
                                built_u64(&built, 201);
                        if (t & PERF_SAMPLE_CPU && has_id_all)
                                built_u64(&built, built.swap ? UINT64_C(3) << 32 : 3);
                        if (t & PERF_SAMPLE_IDENTIFIER && has_id_all)
                                built_u64(&built, 201);
                        built_record_end(&built, at);
                        r = open_built(&built);
                        record = next_of(r, PERF_RECORD_SAMPLE);
                        assert_int_equal(perfd_recording_sample(r, record, &s), has_ids ? 0 : PERFD_E_INVALID);
                        assert_int_equal(perfd_recording_id(r, record, &id), has_ids ? 0 : PERFD_E_INVALID);
                        if (!has_ids)
                                assert_non_null(strstr(perfd_recording_damage(r, 0)->text, "samples of these events have no id"));
                        else {
                                assert_ptr_equal(s.id.event, perfd_recording_event(r, 1));
                                assert_int_equal(s.id.pid, t & PERF_SAMPLE_TID ? 10 : 0);
                                assert_int_equal(s.id.time, t & PERF_SAMPLE_TIME ? 6 : 0);
                        }
                        if (!has_id_all) {
                                assert_int_equal(perfd_recording_id(r, next_of(r, PERF_RECORD_COMM), &id), 0);
                                assert_int_equal(id.has, 0);
                        } else if (has_ids) {
                                assert_int_equal(perfd_recording_id(r, next_of(r, PERF_RECORD_COMM), &id), 0);
                                assert_ptr_equal(id.event, perfd_recording_event(r, 1));
                                assert_int_equal(id.tid, t & PERF_SAMPLE_TID ? 11 : 0);
                                assert_int_equal(id.cpu, t & PERF_SAMPLE_CPU ? 3 : 0);
                        }
                        assert_int_equal(perfd_recording_damage_count(r), has_ids ? 0 : 2);
                        perfd_recording_free(r);
                }
}

static void build_id_end(Built *b, uint64_t sample_type, uint64_t id) {
        built_u32(b, 10);
        built_u32(b, 11);
        built_u64(b, 6);
        built_u64(b, id);
        built_u64(b, b->swap ? UINT64_C(3) << 32 : 3);
        if (sample_type & PERF_SAMPLE_IDENTIFIER)
                built_u64(b, id);
}

/* KSYMBOL, BPF_EVENT and TEXT_POKE of several events: the kernel leaves what was in the ring behind the id, once more for each of them. */
static void test_surplus(void **state) {
        static const uint32_t types[] = { PERF_RECORD_KSYMBOL, PERF_RECORD_BPF_EVENT, PERF_RECORD_TEXT_POKE };

        for (unsigned i = 0; i < 2 * 2 * 3 * 4; i++) {
                const uint64_t sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_CPU | (i / 2 % 2 ? PERF_SAMPLE_IDENTIFIER : 0);
                const uint32_t type = types[i / 4 % 3];
                const perfd_recorded *record;
                perfd_recorded_id id;
                perfd_recording *r;
                size_t at, end;

                build_pipe(&built, i % 2, sample_type, 0, true);
                at = built_record(&built, type, 0);
                built_u64(&built, 0xffffffffc0002064); /* the address; of BPF_EVENT its type, flags and id */
                if (type == PERF_RECORD_TEXT_POKE) {
                        built_u16(&built, 5);
                        built_u16(&built, 5);
                        built_zeros(&built, 12); /* ten bytes, padded */
                } else {
                        built_u64(&built, 209); /* length, type and flags; the tag */
                        if (type == PERF_RECORD_KSYMBOL)
                                built_bytes(&built, "bpf_prog_0123\0\0", 16);
                }
                build_id_end(&built, sample_type, 201);
                end = built.n;
                for (unsigned k = 0; k < i / 12 % 4; k++)
                        build_id_end(&built, sample_type, 0x7777);
                built_record_end(&built, at);
                r = open_built(&built);
                record = next_of(r, type);
                assert_int_equal(record->size, end - at - 8);
                assert_int_equal(perfd_recording_id(r, record, &id), 0);
                assert_ptr_equal(id.event, perfd_recording_event(r, 1));
                assert_int_equal(id.tid, 11);
                assert_int_equal(id.time, 6);
                assert_int_equal(perfd_recording_damage_count(r), 0);
                perfd_recording_free(r);
        }
}

/* A sample of each size below its own is refused and said, and of its own is whole. */
static void test_cut(void **state) {
        for (int swap = 0; swap < 2; swap++) {
                perfd_recorded_sample s;
                size_t begin;

                build_pipe(&built, swap, ALL_BITS, READ_FORMAT, true);
                begin = built.n;
                build_sample(&built, 200);
                for (size_t n = 8; n <= built.n - begin; n++) {
                        uint8_t *copy = malloc(begin + n);
                        perfd_recording *r = perfd_recording_new();
                        Built shorter = { .swap = swap, .n = begin + n };

                        memcpy(shorter.bytes, built.bytes, begin + n);
                        built_u16_at(&shorter, begin + 6, (uint16_t)n);
                        memcpy(copy, shorter.bytes, begin + n);
                        assert_int_equal(perfd_recording_open_bytes(r, copy, begin + n), 0);
                        assert_int_equal(perfd_recording_sample(r, next_of(r, PERF_RECORD_SAMPLE), &s),
                                         begin + n == built.n ? 0 : PERFD_E_INVALID);
                        assert_int_equal(perfd_recording_damage_count(r), begin + n < built.n);
                        perfd_recording_free(r);
                        free(copy);
                }
        }
}

/* Each word becomes what it is not: what is given lies within the sample. */
static void test_lies(void **state) {
        static const uint64_t lies[] = { 0, 1, 0xffff, UINT32_MAX, UINT64_MAX, UINT64_MAX / 24, UINT64_C(1) << 61 };
        size_t begin;

        build_pipe(&built, false, ALL_BITS, READ_FORMAT, true);
        begin = built.n + 8;
        build_sample(&built, 200);
        for (size_t at = begin; at + 8 <= built.n; at += 4)
                for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
                        static Built other;
                        perfd_recorded_sample s;
                        perfd_recording *r;
                        uint64_t sum = 0;

                        other.n = built.n;
                        memcpy(other.bytes, built.bytes, built.n);
                        built_u64_at(&other, at, lies[i]);
                        r = open_built(&other);
                        if (perfd_recording_sample(r, next_of(r, PERF_RECORD_SAMPLE), &s) == 0) {
                                assert_true(s.n_callchain <= built.n / 8 && s.n_branches <= built.n / 24 && s.n_values <= built.n / 8);
                                assert_true(s.raw.length <= built.n && s.stack_user.length <= built.n && s.aux.length <= built.n);
                                for (size_t k = 0; k < s.n_callchain; k++)
                                        sum += s.callchain[k];
                                for (size_t k = 0; k < s.registers_user.n; k++)
                                        sum += s.registers_user.values[k];
                                for (size_t k = 0; k < s.aux.length; k++)
                                        sum += (uint8_t)s.aux.bytes[k];
                                assert_int_not_equal(sum, 1);
                        }
                        perfd_recording_free(r);
                }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_all),
                cmocka_unit_test(test_layouts),
                cmocka_unit_test(test_cut),
                cmocka_unit_test(test_surplus),
                cmocka_unit_test(test_lies),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
