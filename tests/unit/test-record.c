/* Captured records decode to what the kernel meant, and no cut or lying length is believed or read beyond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/decode/record.h"
#include "tests/unit/kernel-records.h"
#include "tests/unit/side-records.h"

#define PLAIN (SAMPLE_TYPE_BASE | PERF_SAMPLE_RAW)
#define ALL                                                                                                            \
        (PLAIN | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |        \
         PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN)

static SampleLayout layout(uint64_t sample_type) {
        SampleLayout l;

        assert_int_equal(sample_layout_init_type(&l, sample_type), 0);
        return l;
}

/* From memory that is exactly as long, and not aligned, so that a sanitizer sees a read outside. */
static int decode(uint64_t sample_type, const void *bytes, size_t length, Record *ret, uint8_t **ret_memory) {
        SampleLayout l = layout(sample_type);
        uint8_t *memory = malloc(length + 1);

        assert_non_null(memory);
        memcpy(memory + 1, bytes, length);
        *ret_memory = memory;
        return record_decode(&l, memory + 1, length, ret);
}

#define DECODE(sample_type, words, r)                                                                                  \
        _cleanup_free_ uint8_t *memory = NULL;                                                                         \
        assert_int_equal(decode(sample_type, words, sizeof(words), &(r), &memory), 0)

static uint64_t address(const Record *r, uint64_t i) {
        uint64_t value;

        assert_true(i < r->n_callchain);
        memcpy(&value, r->callchain + i * sizeof(value), sizeof(value));
        return value;
}

static void test_plain_sample(void **state) {
        static const uint16_t common_type = 443;
        Record r;

        DECODE(PLAIN, RECORD_SYS_ENTER, r);
        assert_int_equal(r.type, PERF_RECORD_SAMPLE);
        assert_int_equal(r.misc, PERF_RECORD_MISC_KERNEL);
        assert_int_equal(r.stream_id, 0x1a2);
        assert_int_equal(r.pid, 0x5bd6);
        assert_int_equal(r.tid, 0x5bd6);
        assert_true(r.time == 0x270d5280998);
        assert_int_equal(r.raw_size, 68);
        assert_ptr_equal(r.raw, memory + 1 + 36);
        assert_memory_equal(r.raw, &common_type, sizeof(common_type));
        assert_true(r.cpu == 0 && r.ip == 0 && r.addr == 0 && r.period == 0 && r.n_callchain == 0);
        assert_string_equal(r.comm, "");
}

/* | header | id | ip | pid tid | time | value enabled running id lost | n callchain |: what was read is not the user's. */
static void test_hidden_read(void **state) {
        const uint64_t words[] = { PERF_RECORD_SAMPLE | 14ULL * 8 << 48, 11, 0x1000, 7 | 8ULL << 32, 99, 5, 60, 50, 12, 0, 2,
                                   (uint64_t)PERF_CONTEXT_USER, 0x1000, 0 };
        struct perf_event_attr attr = {
                .size = sizeof(attr), .sample_id_all = 1,
                .sample_type = SAMPLE_TYPE_BASE | PERF_SAMPLE_IP | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN,
                .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID | PERF_FORMAT_LOST,
        };
        SampleLayout shown, hidden, group;
        uint64_t id;
        Record r;

        assert_int_equal(sample_layout_init(&shown, &attr), 0);
        hidden = shown;
        sample_layout_hide_read(&hidden);
        assert_int_equal(record_peek_at((const uint8_t *)words, sizeof(words), hidden.own_id, &id), 0);
        assert_int_equal(id, 12);
        assert_int_equal(record_peek_at((const uint8_t *)words, hidden.own_id + 7, hidden.own_id, &id), DECODE_E_TRUNCATED);
        assert_int_equal(record_decode(&hidden, (const uint8_t *)words, sizeof(words), &r), 0);
        assert_int_equal(r.parts, 0);
        assert_true(r.n_callchain == 2 && address(&r, 1) == 0x1000 && r.time == 99 && r.tid == 8);
        assert_int_equal(record_decode(&shown, (const uint8_t *)words, sizeof(words), &r), 0);
        assert_int_equal(r.parts, PERF_SAMPLE_READ);
        assert_true(r.n_callchain == 2 && record_read_id(&r.extra.read, 0) == 12);

        attr.read_format |= PERF_FORMAT_GROUP;
        assert_int_equal(sample_layout_init(&group, &attr), 0);
        assert_int_equal(group.own_id, shown.own_id + 8); /* | n enabled running value id | */
        attr.read_format &= ~(uint64_t)PERF_FORMAT_ID;
        assert_int_equal(sample_layout_init(&group, &attr), 0);
        assert_int_equal(group.own_id, 0);
}

static void test_sample_with_callchain(void **state) {
        Record r;

        DECODE(PLAIN | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN, RECORD_SWITCH_CHAIN, r);
        assert_int_equal(r.stream_id, 0x199);
        assert_int_equal(r.period, 1);
        assert_int_equal(r.n_callchain, 9);
        assert_true(address(&r, 0) == (uint64_t)PERF_CONTEXT_KERNEL);
        assert_true(address(&r, 8) == 0xffffffff81000130);
        assert_int_equal(r.raw_size, 68);
        assert_string_equal((const char *)r.raw + 8, "true"); /* prev_comm */
}

static void test_sample_with_everything(void **state) {
        Record r;

        DECODE(ALL, RECORD_PAGE_ALLOC, r);
        assert_int_equal(r.stream_id, 0x19b);
        assert_true(r.ip == 0xffffffff8161f42b);
        assert_int_equal(r.pid, 0x5bd6);
        assert_int_equal(r.period, 1);
        assert_int_equal(r.n_callchain, 14);
        assert_true(address(&r, 12) == (uint64_t)PERF_CONTEXT_USER);
        assert_int_equal(r.raw + r.raw_size - (memory + 1), sizeof(RECORD_PAGE_ALLOC));
}

static void test_software_sample(void **state) {
        Record r;

        DECODE(SAMPLE_TYPE_BASE | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN,
               RECORD_PAGE_FAULT, r);
        assert_true(r.ip == 0x557f186cbfab);
        assert_true(r.addr == 0x7fb51ae00000);
        assert_int_equal(r.misc, PERF_RECORD_MISC_USER);
        assert_int_equal(r.n_callchain, 3);
        assert_true(address(&r, 0) == (uint64_t)PERF_CONTEXT_USER);
        assert_null(r.raw);
}

static void check_trailer(const Record *r, uint32_t tid, nsec_t time, uint64_t id) {
        assert_int_equal(r->tid, tid);
        assert_true(r->time == time);
        assert_int_equal(r->stream_id, id);
}

static void test_mmap(void **state) {
        Record r;
        DECODE(PLAIN, RECORD_MMAP, r);

        assert_int_equal(r.type, PERF_RECORD_MMAP);
        assert_int_equal(r.mmap2.pid, 0x5bec);
        assert_true(r.mmap2.addr == 0x7f9aca624000 && r.mmap2.len == 0x26000 && r.mmap2.pgoff == 0x1000);
        assert_string_equal(r.mmap2.filename, "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2");
        assert_null(r.mmap2.build_id);
        check_trailer(&r, 0x5bec, 0x270d4012d7c, 0x19f);
}

static void test_mmap2(void **state) {
        Record r;
        DECODE(PLAIN, RECORD_MMAP2, r);

        assert_int_equal(r.mmap2.maj, 0xfe);
        assert_int_equal(r.mmap2.ino, 0x5125f);
        assert_int_equal(r.mmap2.prot, 5);
        assert_int_equal(r.mmap2.flags, 2);
        assert_string_equal(r.mmap2.filename, "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2");
        assert_null(r.mmap2.build_id);
        check_trailer(&r, 0x5bf2, 0x270d44128d6, 0x1a1);
}

static void test_mmap2_build_id(void **state) {
        static const uint8_t begin[] = { 0x7e, 0xbc, 0x65, 0xe5 };
        Record r;
        DECODE(PLAIN | PERF_SAMPLE_CPU, RECORD_MMAP2_BUILD_ID, r);

        assert_int_equal(r.mmap2.build_id_size, 20);
        assert_memory_equal(r.mmap2.build_id, begin, sizeof(begin));
        assert_true(r.mmap2.maj == 0 && r.mmap2.min == 0 && r.mmap2.ino == 0 && r.mmap2.ino_generation == 0);
        assert_int_equal(r.mmap2.prot, 5);
        check_trailer(&r, 0x5bef, 0x270d421ce9d, 0x1a0);
}

static void test_comm(void **state) {
        Record r;
        DECODE(PLAIN, RECORD_COMM_EXEC, r);

        assert_int_equal(r.type, PERF_RECORD_COMM);
        assert_int_equal(r.misc, PERF_RECORD_MISC_COMM_EXEC);
        assert_int_equal(r.comm_record.pid, 0x5bec);
        assert_string_equal(r.comm_record.comm, "true");
        check_trailer(&r, 0x5bec, 0x270d4009c11, 0x19f);
}

static void test_fork_and_exit(void **state) {
        Record r;

        {
                DECODE(PLAIN, RECORD_FORK, r);
                assert_int_equal(r.type, PERF_RECORD_FORK);
                assert_true(r.task.pid == 0x5bec && r.task.ppid == 0x5bd6);
                assert_true(r.task.tid == 0x5bec && r.task.ptid == 0x5bd6);
                check_trailer(&r, 0x5bd6, 0x270d3fe37f6, 0x19f);
        }
        {
                DECODE(PLAIN, RECORD_EXIT, r);
                assert_int_equal(r.type, PERF_RECORD_EXIT);
                assert_true(r.task.tid == 0x5bec && r.task.ptid == 0x5bd6 && r.task.time == 0x270d406c961);
                check_trailer(&r, 0x5bec, 0x270d406c7f3, 0x19f);
        }
}

static void test_losses_and_throttles(void **state) {
        /* header, then LOST_SAMPLES: lost; THROTTLE: time id stream_id; then TID TIME IDENTIFIER */
        static const uint64_t lost_samples[] = { 0x002800000000000d, 17, 0x0000000800000007, 99, 0x21 };
        static const uint64_t unthrottle[] = { 0x0038000000000000 | PERF_RECORD_UNTHROTTLE, 98, 0x22, 0x23, 0x0000000800000007, 99, 0x21 };
        Record r;

        {
                DECODE(PLAIN, RECORD_LOST, r);
                assert_true(r.lost.id == 0x1a2 && r.lost.lost == 461);
                check_trailer(&r, 0x5bd6, 0x270d528048b, 0x1a2);
        }
        {
                DECODE(PLAIN, lost_samples, r);
                assert_true(r.lost.id == 0 && r.lost.lost == 17);
                check_trailer(&r, 8, 99, 0x21);
        }
        {
                DECODE(PLAIN, unthrottle, r);
                assert_true(r.throttle.time == 98 && r.throttle.id == 0x22 && r.throttle.stream_id == 0x23);
                check_trailer(&r, 8, 99, 0x21);
        }
}

static void test_unknown_type(void **state) {
        Record r;
        DECODE(PLAIN, RECORD_NEWER, r);

        assert_int_equal(r.type, 77);
        assert_int_equal(r.misc, 3);
        assert_int_equal(r.unknown.size, 16);
        assert_memory_equal(r.unknown.bytes, RECORD_NEWER + 1, 16);
        check_trailer(&r, 8, 99, 0x21);
}

static void test_switches(void **state) {
        Record r;

        {
                DECODE(PLAIN, RECORD_SWITCH_IN, r);
                assert_int_equal(r.type, PERF_RECORD_SWITCH);
                check_trailer(&r, 8, 99, 0x21);
        }
        {
                DECODE(PLAIN, RECORD_SWITCH_OUT, r);
                assert_true(r.switch_record.next_prev_pid == 5 && r.switch_record.next_prev_tid == 6);
                assert_int_equal(r.misc, PERF_RECORD_MISC_SWITCH_OUT);
                check_trailer(&r, 8, 99, 0x21);
        }
}

static void test_records_of_tasks(void **state) {
        Record r;

        {
                DECODE(PLAIN, RECORD_NAMESPACES, r);
                assert_true(r.namespaces.pid == 7 && r.namespaces.tid == 8 && r.namespaces.n == 2);
                assert_true(record_word(r.namespaces.list, 0) == 4 && record_word(r.namespaces.list, 3) == 0xf0000076);
                check_trailer(&r, 8, 99, 0x21);
        }
        {
                DECODE(PLAIN, RECORD_CGROUP, r);
                assert_int_equal(r.cgroup.id, 0x1234);
                assert_string_equal(r.cgroup.path, "/b/see");
        }
        {
                DECODE(PLAIN, RECORD_ITRACE_START, r);
                assert_true(r.itrace_start.pid == 10 && r.itrace_start.tid == 11);
        }
}

static void test_records_of_code(void **state) {
        static const uint8_t poked[] = { 0xbb, 0xee, 0xcc, 0xdd, 0x11 };
        Record r;

        {
                DECODE(PLAIN, RECORD_KSYMBOL, r);
                assert_true(r.ksymbol.addr == 0xffffffffc0000000 && r.ksymbol.len == 0x40);
                assert_true(r.ksymbol.type == PERF_RECORD_KSYMBOL_TYPE_BPF);
                assert_int_equal(r.ksymbol.flags, PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER);
                assert_string_equal(r.ksymbol.name, "bf_prog");
                check_trailer(&r, 8, 99, 0x21);
        }
        {
                DECODE(PLAIN, RECORD_BPF_EVENT, r);
                assert_true(r.bpf_event.type == PERF_BPF_EVENT_PROG_LOAD && r.bpf_event.id == 42);
                assert_int_equal(r.bpf_event.flags, 0);
                assert_memory_equal(r.bpf_event.tag, RECORD_BPF_EVENT + 2, 8);
        }
        {
                DECODE(PLAIN, RECORD_TEXT_POKE, r);
                assert_true(r.text_poke.addr == 0xffffffff81000000);
                assert_true(r.text_poke.old_len == 2 && r.text_poke.new_len == 3);
                assert_memory_equal(r.text_poke.bytes, poked, sizeof(poked));
        }
}

static void test_records_of_aux(void **state) {
        Record r;

        {
                DECODE(PLAIN, RECORD_AUX, r);
                assert_true(r.aux.offset == 4096 && r.aux.size == 512 && r.aux.flags == PERF_AUX_FLAG_TRUNCATED);
        }
        {
                DECODE(PLAIN, RECORD_HW_ID, r);
                assert_int_equal(r.aux_output_hw_id.hw_id, 0x77);
                check_trailer(&r, 8, 99, 0x21);
        }
}

static void test_peek_id(void **state) {
        uint64_t id = 0;

        assert_int_equal(record_peek_id((const uint8_t *)RECORD_SYS_ENTER, sizeof(RECORD_SYS_ENTER), &id), 0);
        assert_int_equal(id, 0x1a2);
        assert_int_equal(record_peek_id((const uint8_t *)RECORD_EXIT, sizeof(RECORD_EXIT), &id), 0);
        assert_int_equal(id, 0x19f);
        assert_int_equal(record_peek_id((const uint8_t *)RECORD_EXIT, 15, &id), DECODE_E_TRUNCATED);
        assert_int_equal(id, 0x19f);
}

/* The record's own header made to say the cut length, so that only the parts inside can contradict it. */
static void check_cuts(uint64_t sample_type, const void *record, size_t length, size_t whole_from) {
        for (size_t n = 0; n < length; n++) {
                _cleanup_free_ uint8_t *memory = NULL, *copy = malloc(length);
                Record r, before;
                uint16_t size = (uint16_t)n;
                int code;

                memcpy(copy, record, length);
                memcpy(copy + 6, &size, sizeof(size));
                memset(&r, 0x5a, sizeof(r));
                before = r;
                code = decode(sample_type, copy, n, &r, &memory);
                if (n >= whole_from)
                        continue;
                assert_true(code == DECODE_E_TRUNCATED || code == DECODE_E_MALFORMED);
                assert_memory_equal(&r, &before, sizeof(r));
        }
}

static void test_cut_records(void **state) {
        check_cuts(PLAIN, RECORD_SYS_ENTER, sizeof(RECORD_SYS_ENTER), sizeof(RECORD_SYS_ENTER));
        check_cuts(ALL, RECORD_PAGE_ALLOC, sizeof(RECORD_PAGE_ALLOC), sizeof(RECORD_PAGE_ALLOC));
        check_cuts(PLAIN, RECORD_FORK, sizeof(RECORD_FORK), sizeof(RECORD_FORK));
        check_cuts(PLAIN, RECORD_LOST, sizeof(RECORD_LOST), sizeof(RECORD_LOST));
        /* a trailer may begin earlier while the string still ends before it: the last 24 bytes are some trailer */
        check_cuts(PLAIN, RECORD_COMM_EXEC, sizeof(RECORD_COMM_EXEC), 16 + sizeof("true") + 24);
        check_cuts(PLAIN, RECORD_MMAP2, sizeof(RECORD_MMAP2), 72 + 47 + 24);
        check_cuts(PLAIN, RECORD_NAMESPACES, sizeof(RECORD_NAMESPACES), sizeof(RECORD_NAMESPACES));
        check_cuts(PLAIN, RECORD_KSYMBOL, sizeof(RECORD_KSYMBOL), sizeof(RECORD_KSYMBOL));
        check_cuts(PLAIN, RECORD_BPF_EVENT, sizeof(RECORD_BPF_EVENT), sizeof(RECORD_BPF_EVENT));
        check_cuts(PLAIN, RECORD_CGROUP, sizeof(RECORD_CGROUP), 16 + sizeof("/b/see") + 24);
        check_cuts(PLAIN, RECORD_TEXT_POKE, sizeof(RECORD_TEXT_POKE), sizeof(RECORD_TEXT_POKE));
        check_cuts(PLAIN, RECORD_AUX, sizeof(RECORD_AUX), sizeof(RECORD_AUX));
        check_cuts(PLAIN, RECORD_ITRACE_START, sizeof(RECORD_ITRACE_START), sizeof(RECORD_ITRACE_START));
        check_cuts(PLAIN, RECORD_HW_ID, sizeof(RECORD_HW_ID), sizeof(RECORD_HW_ID));
}

static void test_lying_lengths(void **state) {
        uint64_t words[ARRAY_SIZE(RECORD_PAGE_ALLOC)];
        uint8_t *bytes = (uint8_t *)words, *memory;
        const struct {
                size_t offset;
                uint64_t value;
                size_t size;
                int code;
        } lies[] = {
                { 6, 8, 2, DECODE_E_MALFORMED },                       /* header: shorter than the record */
                { 6, sizeof(words) + 8, 2, DECODE_E_TRUNCATED },       /* longer */
                { 80, UINT64_MAX, 8, DECODE_E_TRUNCATED },             /* callchain */
                { 80, UINT64_MAX / 8 + 1, 8, DECODE_E_TRUNCATED },     /* whose bytes wrap to few */
                { 80, 20, 8, DECODE_E_TRUNCATED },                     /* up to the end: no room for raw */
        };

        for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
                Record r;

                memcpy(words, RECORD_PAGE_ALLOC, sizeof(words));
                memcpy(bytes + lies[i].offset, &lies[i].value, lies[i].size);
                assert_int_equal(decode(ALL, words, sizeof(words), &r, &memory), lies[i].code);
                free(memory);
        }
        memcpy(words, RECORD_SYS_ENTER, sizeof(RECORD_SYS_ENTER));
        for (uint32_t size = 69; size != 0; size = size == 69 ? UINT32_MAX : 0) {
                Record r;

                memcpy(bytes + 32, &size, sizeof(size));
                assert_int_equal(decode(PLAIN, words, sizeof(RECORD_SYS_ENTER), &r, &memory), DECODE_E_TRUNCATED);
                free(memory);
        }
        memcpy(words, RECORD_MMAP2_BUILD_ID, sizeof(RECORD_MMAP2_BUILD_ID));
        bytes[40] = 21; /* longer than its place */
        {
                Record r;

                assert_int_equal(decode(PLAIN | PERF_SAMPLE_CPU, words, sizeof(RECORD_MMAP2_BUILD_ID), &r, &memory),
                                 DECODE_E_MALFORMED);
                free(memory);
        }
}

static int init_attr(struct perf_event_attr attr, SampleLayout *l) {
        return sample_layout_init(l, &attr);
}

static void test_layouts(void **state) {
        SampleLayout l = { .sample_type = 1 };

        assert_int_equal(sample_layout_init_type(&l, 1 << 25), REFUSED_UNSUPPORTED);
        assert_int_equal(sample_layout_init_type(&l, PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT),
                         REFUSED_UNSUPPORTED);
        assert_int_equal(init_attr((struct perf_event_attr){ .read_format = 32 }, &l), REFUSED_UNSUPPORTED);
        assert_int_equal(init_attr((struct perf_event_attr){ .branch_sample_type = 1 << 20 }, &l), REFUSED_UNSUPPORTED);
        assert_int_equal(l.sample_type, 1);
        l = layout(ALL);
        assert_int_equal(l.layout, RECORD_LAYOUT_ANY);
        assert_int_equal(l.head_size, 80);
        assert_int_equal(l.trailer_size, 48);
        assert_int_equal(layout(PLAIN).layout, RECORD_LAYOUT_BASE);
        assert_int_equal(init_attr((struct perf_event_attr){ .sample_type = ALL }, &l), 0); /* no sample_id_all */
        assert_int_equal(l.trailer_size, 0);
}

static void test_kinds(void **state) {
        assert_int_equal(record_kind_of(PERF_RECORD_MMAP), RECORD_KIND_MMAP2);
        assert_int_equal(record_kind_of(PERF_RECORD_SWITCH_CPU_WIDE), RECORD_KIND_SWITCH);
        assert_int_equal(record_kind_of(PERF_RECORD_AUX_OUTPUT_HW_ID), RECORD_KIND_AUX_OUTPUT_HW_ID);
        assert_int_equal(record_kind_of(PERF_RECORD_LOST_SAMPLES), _RECORD_KIND_MAX);
        assert_int_equal(record_kind_of(PERF_RECORD_SAMPLE), _RECORD_KIND_MAX);
        assert_int_equal(record_kind_of(0), RECORD_KIND_UNKNOWN);
        assert_int_equal(record_kind_of(22), RECORD_KIND_UNKNOWN);
        assert_int_equal(record_kind_of(UINT32_MAX), RECORD_KIND_UNKNOWN);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_plain_sample),
                cmocka_unit_test(test_sample_with_callchain),
                cmocka_unit_test(test_hidden_read),
                cmocka_unit_test(test_sample_with_everything),
                cmocka_unit_test(test_software_sample),
                cmocka_unit_test(test_mmap),
                cmocka_unit_test(test_mmap2),
                cmocka_unit_test(test_mmap2_build_id),
                cmocka_unit_test(test_comm),
                cmocka_unit_test(test_fork_and_exit),
                cmocka_unit_test(test_losses_and_throttles),
                cmocka_unit_test(test_unknown_type),
                cmocka_unit_test(test_switches),
                cmocka_unit_test(test_records_of_tasks),
                cmocka_unit_test(test_records_of_code),
                cmocka_unit_test(test_records_of_aux),
                cmocka_unit_test(test_peek_id),
                cmocka_unit_test(test_cut_records),
                cmocka_unit_test(test_lying_lengths),
                cmocka_unit_test(test_layouts),
                cmocka_unit_test(test_kinds),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
