/* Samples of recordings as items: fields of a tracepoint's format of every place and size, threads' names, in both byte orders. */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/perfd.h"
#include "tests/unit/built-recording.h"
#include "tests/unit/built-tracing.h"

#define ID UINT64_C(316)
#define TYPE (2 | 4 | 128 | 256 | 1024) /* PERF_SAMPLE_TID, TIME, CPU, PERIOD, RAW */

static const char format[] =
        "name: made\nID: 316\nformat:\n"
        "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
        "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
        "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
        "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
        "\n"
        "\tfield:int number;\toffset:8;\tsize:4;\tsigned:1;\n"
        "\tfield:u16 pair[2];\toffset:12;\tsize:4;\tsigned:0;\n"
        "\tfield:char comm[8];\toffset:16;\tsize:8;\tsigned:0;\n"
        "\tfield:__data_loc char[] text;\toffset:24;\tsize:4;\tsigned:0;\n"
        "\tfield:__rel_loc char[] near;\toffset:28;\tsize:4;\tsigned:0;\n"
        "\tfield:__data_loc u64[] list;\toffset:32;\tsize:4;\tsigned:0;\n"
        "\n"
        "print fmt: \"number=%d\", REC->number\n";

static Built built;

static void build_comm(Built *b) {
        const size_t at = built_record(b, 3, 0);

        built_u32(b, 10);
        built_u32(b, 11);
        built_bytes(b, "program\0", 8);
        built_record_end(b, at);
}

/* 13 is a new thread of 11. */
static void build_fork(Built *b) {
        const size_t at = built_record(b, 7, 0);

        built_u32(b, 10);
        built_u32(b, 10);
        built_u32(b, 13);
        built_u32(b, 11);
        built_u64(b, 5);
        built_record_end(b, at);
}

static void build_sample(Built *b, uint32_t tid, uint32_t list_at) {
        const size_t at = built_record(b, 9, 2);
        size_t raw;

        built_u32(b, 10);
        built_u32(b, tid);
        built_u64(b, 1000000001);
        built_u32(b, 3);
        built_u32(b, 0);
        built_u64(b, 7); /* period */
        built_u32(b, 68);
        raw = b->n;
        built_u16(b, (uint16_t)ID);
        built_u16(b, 0);
        built_u32(b, 11);
        built_u32(b, (uint32_t)-5);
        built_u16(b, 258);
        built_u16(b, 3);
        built_bytes(b, "sleep\0\0\0", 8);
        built_u32(b, 6 << 16 | 36);
        built_u32(b, 6 << 16 | (42 - 32)); /* from behind itself */
        built_u32(b, 16 << 16 | list_at);
        built_bytes(b, "hello\0", 6);
        built_bytes(b, "there\0", 6);
        built_u64(b, 1);
        built_u64(b, UINT64_C(0x0102030405060708));
        built_zeros(b, 68 - (b->n - raw));
        built_record_end(b, at);
}

static void begin(Built *b, bool swap) {
        size_t at;

        b->swap = swap;
        b->n = 0;
        built_u64(b, PERF_DATA_MAGIC);
        built_u64(b, PERF_DATA_PIPE_SIZE);
        at = built_record(b, PERF_DATA_HEADER_ATTR, 0);
        built_attr(b, 128, 2, ID, TYPE, 1);
        built_u64(b, 100);
        built_record_end(b, at);
}

static void build(Built *b, bool swap) {
        begin(b, swap);
        built_tracing(b, format);
        build_comm(b);
        build_fork(b);
        build_sample(b, 11, 48);
        build_sample(b, 13, 48);
        build_sample(b, 14, 60); /* a list that ends behind the record */
}

static void check_field(const perfd_item *item, const char *name, const char *expected) {
        char text[64];
        perfd_value v;

        assert_true(perfd_item_find(item, name, &v));
        assert_true(perfd_value_render(&v, text, sizeof(text)) < sizeof(text));
        assert_string_equal(text, expected);
}

static void check_item(const perfd_item *item, uint32_t tid) {
        const perfd_event *event = perfd_item_event(item);
        perfd_value v;

        assert_int_equal(perfd_item_record(item), PERFD_SAMPLE);
        assert_string_equal(event->name, "group:made");
        assert_string_equal(event->event, "group:made");
        assert_int_equal(event->id, 1);
        assert_int_equal(event->n_fields, 6);
        assert_int_equal(perfd_item_time(item), 1000000001);
        assert_int_equal(perfd_item_cpu(item), 3);
        assert_int_equal(perfd_item_pid(item), 10);
        assert_int_equal(perfd_item_tid(item), tid);
        assert_int_equal(perfd_item_period(item), 7);
        assert_int_equal(perfd_item_comm(item).length, 7);
        assert_memory_equal(perfd_item_comm(item).bytes, "program", 7);
        check_field(item, "number", "-5");
        check_field(item, "comm", "sleep");
        check_field(item, "text", "hello");
        check_field(item, "near", "there");
        assert_true(perfd_item_find(item, "pair", &v));
        assert_int_equal(v.count, 2);
        assert_int_equal(v.numbers[0], 258);
        assert_int_equal(v.numbers[1], 3);
        assert_true(perfd_item_find(item, "list", &v));
        assert_int_equal(v.count, 2);
        assert_int_equal(v.numbers[0], 1);
        assert_true(v.numbers[1] == UINT64_C(0x0102030405060708));
}

static void test_fields(void **state) {
        for (int swap = 0; swap < 2; swap++) {
                static const uint32_t tids[] = { 11, 13 };
                perfd_recording *r = perfd_recording_new();
                const perfd_recorded *record;
                const perfd_item *item;
                int n = 0, n_wrong = 0, code;

                build(&built, swap);
                assert_int_equal(perfd_recording_open_bytes(r, built.bytes, built.n), 0);
                while ((code = perfd_recording_next(r, &record)) == 0) {
                        const bool is_sample = record->type == 9;

                        code = perfd_recording_item(r, record, &item);
                        if (code == 0 && is_sample)
                                check_item(item, tids[n++]);
                        else if (code == 0)
                                assert_null(item);
                        else {
                                assert_int_equal(code, PERFD_E_INVALID);
                                n_wrong++;
                        }
                }
                assert_int_equal(code, PERFD_E_ENDED);
                assert_int_equal(n, 2);
                assert_int_equal(n_wrong, 1);
                assert_int_equal(perfd_recording_damage_count(r), 1);
                assert_string_equal(perfd_recording_damage(r, 0)->text, "a sample of group:made: its raw bytes are not what its format says");
                perfd_recording_free(r);
        }
}

/* Every truncation, in both byte orders: it ends, and no item is of a record that is not whole. A copy of just that size, for sanitizers. */
static void test_truncated(void **state) {
        for (int swap = 0; swap < 2; swap++) {
                build(&built, swap);
                for (size_t n = 16; n < built.n; n++) {
                        perfd_recording *r = perfd_recording_new();
                        const perfd_recorded *record;
                        const perfd_item *item;
                        uint8_t *copy = malloc(n);
                        int n_items = 0, code;

                        memcpy(copy, built.bytes, n);
                        assert_int_equal(perfd_recording_open_bytes(r, copy, n), 0);
                        while ((code = perfd_recording_next(r, &record)) == 0)
                                if (perfd_recording_item(r, record, &item) == 0 && item)
                                        check_item(item, n_items++ == 0 ? 11 : 13);
                        assert_int_equal(code, PERFD_E_ENDED);
                        assert_true(n_items <= 2);
                        perfd_recording_free(r);
                        free(copy);
                }
        }
}

/* A format that is none is said, and its samples keep their raw bytes. */
static void test_bad_format(void **state) {
        perfd_recording *r = perfd_recording_new();
        const perfd_recorded *record;
        const perfd_item *item = NULL;

        begin(&built, false);
        built_tracing(&built, "name: made\nID: 316\nformat:\n\tfield:int;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n");
        build_sample(&built, 11, 48);
        assert_int_equal(perfd_recording_open_bytes(r, built.bytes, built.n), 0);
        while (perfd_recording_next(r, &record) == 0)
                assert_int_equal(perfd_recording_item(r, record, &item), 0);
        assert_non_null(item);
        assert_int_equal(perfd_item_event(item)->n_fields, 0);
        assert_int_equal(perfd_item_raw(item).length, 68);
        assert_int_equal(perfd_recording_damage_count(r), 1);
        perfd_recording_free(r);
}

static void build_registers(Built *b, bool swap, const char *machine) {
        const size_t attr = PERF_DATA_PIPE_SIZE + PERF_DATA_RECORD_HEADER;
        size_t at;

        begin(b, swap);
        built_u64_at(b, attr + 24, 1 << 12 | 1 << 18); /* PERF_SAMPLE_REGS_USER, PERF_SAMPLE_REGS_INTR */
        built_u64_at(b, attr + 80, 0x101);
        built_u64_at(b, attr + 96, 0x4);
        at = built_record(b, PERF_DATA_HEADER_FEATURE, 0);
        built_u64(b, PERF_DATA_FEATURE_ARCH);
        built_string(b, machine);
        built_record_end(b, at);
        at = built_record(b, 9, 2);
        built_u64(b, 2); /* PERF_SAMPLE_REGS_ABI_64 */
        built_u64(b, 0x11);
        built_u64(b, 0x22);
        built_u64(b, 2);
        built_u64(b, 0x33);
        built_record_end(b, at);
}

/* Registers are those of the machine that was recorded, in either byte order. */
static void test_registers(void **state) {
        static const struct {
                const char *arch, *name;
        } machines[] = { { "s390x", "R8" }, { "x86_64", "IP" }, { "ppc64le", "r8" }, { "armv7l", "r8" }, { "riscv64", "s0" }, { "parisc", NULL } };

        for (size_t i = 0; i < 2 * sizeof(machines) / sizeof(machines[0]); i++) {
                perfd_recording *r = perfd_recording_new();
                const perfd_registers *user, *interrupted;
                const perfd_recorded *record;
                const perfd_item *item = NULL;
                const char *name;

                build_registers(&built, i % 2, machines[i / 2].arch);
                assert_int_equal(perfd_recording_open_bytes(r, built.bytes, built.n), 0);
                while (perfd_recording_next(r, &record) == 0)
                        if (record->type == 9)
                                assert_int_equal(perfd_recording_item(r, record, &item), 0);
                assert_non_null(item);
                user = perfd_item_user_registers(item);
                interrupted = perfd_item_interrupt_registers(item);
                assert_int_equal(user->abi, 2);
                assert_int_equal(user->n_values, 2);
                assert_int_equal(user->values[1], 0x22);
                assert_int_equal(interrupted->values[0], 0x33);
                assert_int_equal(interrupted->machine, user->machine);
                name = perfd_register_name(user->machine, 8);
                if (machines[i / 2].name)
                        assert_string_equal(name, machines[i / 2].name);
                else
                        assert_null(name);
                assert_int_equal(perfd_recording_damage_count(r), 0);
                perfd_recording_free(r);
        }
}

/* The counts of a group have the names of their events, by their ids. */
static void test_counters(void **state) {
        for (int swap = 0; swap < 2; swap++) {
                const size_t attr = PERF_DATA_PIPE_SIZE + PERF_DATA_RECORD_HEADER;
                perfd_recording *r = perfd_recording_new();
                const perfd_recorded *record;
                const perfd_read_value *values;
                const perfd_item *item = NULL;
                size_t at;

                begin(&built, swap);
                built_u64_at(&built, attr + 24, 1 << 4 | 1 << 16); /* PERF_SAMPLE_READ, PERF_SAMPLE_IDENTIFIER */
                built_u64_at(&built, attr + 32, 4 | 8);            /* PERF_FORMAT_ID, PERF_FORMAT_GROUP */
                at = built_record(&built, PERF_DATA_HEADER_ATTR, 0);
                built_attr(&built, 128, 1, 2, 1 << 4 | 1 << 16, 1);
                built_u64(&built, 200);
                built_record_end(&built, at);
                built_tracing(&built, format);
                at = built_record(&built, 9, 2);
                built_u64(&built, 100);
                built_u64(&built, 2);
                for (uint64_t i = 1; i <= 2; i++) {
                        built_u64(&built, 11 * i);
                        built_u64(&built, 100 * i);
                }
                built_record_end(&built, at);
                assert_int_equal(perfd_recording_open_bytes(r, built.bytes, built.n), 0);
                while (perfd_recording_next(r, &record) == 0)
                        if (record->type == 9)
                                assert_int_equal(perfd_recording_item(r, record, &item), 0);
                assert_non_null(item);
                assert_int_equal(perfd_item_read(item, &values), 2);
                assert_int_equal(values[1].value, 22);
                assert_int_equal(perfd_item_event(item)->n_counters, 2);
                assert_string_equal(perfd_item_event(item)->counters[0].event, "group:made");
                assert_string_equal(perfd_item_event(item)->counters[1].event, "page-faults");
                perfd_recording_free(r);
        }
}

/* A callchain that begins without a marker is of the mode of its sample. */
static void test_unmarked_chain(void **state) {
        for (int how = 0; how < 4; how++) {
                const size_t attr = PERF_DATA_PIPE_SIZE + PERF_DATA_RECORD_HEADER;
                const bool is_kernel = how & 2;
                perfd_recording *r = perfd_recording_new();
                const perfd_recorded *record;
                const perfd_item *item = NULL;
                const uint64_t *kernel, *user;
                size_t at, n_kernel, n_user;

                begin(&built, how & 1);
                built_u64_at(&built, attr + 24, 1 << 5); /* PERF_SAMPLE_CALLCHAIN */
                at = built_record(&built, 9, is_kernel ? 1 : 2);
                built_u64(&built, 4);
                built_u64(&built, 0x1000);
                built_u64(&built, 0x2000);
                built_u64(&built, (uint64_t)-512); /* PERF_CONTEXT_USER */
                built_u64(&built, 0x3000);
                built_record_end(&built, at);
                assert_int_equal(perfd_recording_open_bytes(r, built.bytes, built.n), 0);
                while (perfd_recording_next(r, &record) == 0)
                        if (record->type == 9)
                                assert_int_equal(perfd_recording_item(r, record, &item), 0);
                assert_non_null(item);
                n_kernel = perfd_item_callchain(item, PERFD_CALLCHAIN_KERNEL, &kernel);
                n_user = perfd_item_callchain(item, PERFD_CALLCHAIN_USER, &user);
                assert_int_equal(n_kernel, is_kernel ? 2 : 0);
                assert_int_equal(n_user, is_kernel ? 1 : 3);
                assert_int_equal(user[n_user - 1], 0x3000);
                assert_int_equal(is_kernel ? kernel[0] : user[0], 0x1000);
                perfd_recording_free(r);
        }
}

static void build_type(Built *b, uint32_t type) {
        const size_t at = built_record(b, type, 0);

        built_zeros(b, 24);
        built_record_end(b, at);
}

/* Reads all of it. What is found of each type. */
static void count_types(perfd_recording *r, uint64_t counts[static 512], uint64_t *lost) {
        const bool swap = (perfd_recording_byte_order(r) == PERFD_BIG_ENDIAN) == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
        const perfd_recorded *record;
        const perfd_item *item;
        int code;

        while ((code = perfd_recording_next(r, &record)) == 0) {
                assert_true(record->type < 512);
                counts[record->type]++;
                if (record->type == PERF_RECORD_LOST_SAMPLES) {
                        assert_int_equal(record->size, sizeof(*lost)); /* no sample_id_all */
                        memcpy(lost, record->bytes, sizeof(*lost));
                        *lost = swap ? bswap_64(*lost) : *lost;
                }
                code = perfd_recording_item(r, record, &item);
                assert_true(code == 0 || code == PERFD_E_INVALID);
        }
        assert_int_equal(code, PERFD_E_ENDED);
}

/*
 * Samples that are damaged, and records that perf does not know, are left out of what is mended, and the samples said as lost. Linux 6.18 has
 * records 22, 83 and 84: they stay.
 */
static void test_left_out(void **state) {
        for (int swap = 0; swap < 2; swap++) {
                uint64_t counts[512] = { 0 }, left[512] = { 0 }, lost = 0;
                perfd_recording *r = perfd_recording_new(), *mended = perfd_recording_new();
                FILE *to = tmpfile();

                build(&built, swap);
                build_sample(&built, 14, 60); /* right behind one that is left out */
                build_type(&built, 22);
                build_type(&built, 30);
                build_sample(&built, 13, 48);
                build_type(&built, 84);
                build_sample(&built, 14, 60);
                build_type(&built, 300);
                build_type(&built, 0);
                built_record_end(&built, built_record(&built, PERF_DATA_COMPRESSED2, 0));
                assert_int_equal(perfd_recording_open_bytes(r, built.bytes, built.n), 0);
                count_types(r, counts, &lost);
                assert_int_equal(perfd_recording_damage_count(r), 6);
                assert_int_equal(perfd_recording_damage(r, 3)->offset, built.n - 64 - 8);
                assert_string_equal(perfd_recording_damage(r, 3)->text, "a record of type 300, which neither the kernel nor perf has");
                assert_string_equal(perfd_recording_damage(r, 5)->text, "a record COMPRESSED2: it has no room for its size");
                assert_non_null(to);
                assert_int_equal(perfd_recording_repair(r, fileno(to)), 0);
                assert_int_equal(perfd_recording_open_fd(mended, fileno(to)), 0);
                count_types(mended, left, &lost);
                assert_int_equal(perfd_recording_damage_count(mended), 0);
                assert_int_equal(lost, 3);
                assert_int_equal(counts[PERF_RECORD_SAMPLE], 6);
                counts[PERF_RECORD_SAMPLE] -= 3;
                counts[PERF_RECORD_LOST_SAMPLES] = 1;
                counts[0] = counts[30] = counts[300] = counts[PERF_DATA_COMPRESSED2] = 0;
                assert_memory_equal(left, counts, sizeof(left));
                perfd_recording_free(r);
                perfd_recording_free(mended);
                (void)fclose(to);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_fields), cmocka_unit_test(test_truncated), cmocka_unit_test(test_bad_format),
                                            cmocka_unit_test(test_registers), cmocka_unit_test(test_counters),
                                            cmocka_unit_test(test_unmarked_chain), cmocka_unit_test(test_left_out) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
