/*
 * Recordings written by hand: both byte orders, attrs of every size, files and pipes, each feature, and each truncation. What perf itself
 * writes is read by an integration test.
 */
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

#include "client/perfd.h"
#include "tests/unit/built-recordings.h"

static const size_t attr_sizes[] = { 64, 72, 80, 96, 104, 112, 120, 128, 136, 144, 1024 };

/* ---- what is read ------------------------------------------------------------------------------------------------------------ */

typedef struct Told {
        char text[8192];
        size_t n;
} Told;

static void tell(Told *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void tell(Told *t, const char *format, ...) {
        va_list args;
        int n;

        va_start(args, format);
        n = vsnprintf(t->text + t->n, sizeof(t->text) - t->n, format, args);
        va_end(args);
        assert_true(n >= 0 && (size_t)n < sizeof(t->text) - t->n);
        t->n += (size_t)n;
}

static void on_begin(void *t, const char *key) {
        tell(t, "%s(", key ? key : "");
}

static void on_end(void *t) {
        tell(t, ")");
}

static void on_text(void *t, const char *key, perfd_text text) {
        tell(t, "%s=%.*s ", key ? key : "", (int)text.length, text.bytes);
}

static void on_number(void *t, const char *key, uint64_t number) {
        tell(t, "%s=%llu ", key ? key : "", (unsigned long long)number);
}

static void on_bytes(void *t, const char *key, perfd_text bytes) {
        tell(t, "%s=[%zu] ", key ? key : "", bytes.length);
}

static void on_flag(void *t, const char *key, bool is) {
        tell(t, "%s=%d ", key, is);
}

static const perfd_feature_visitor visitor = { on_begin, on_end, on_begin, on_end, on_text, on_number, on_bytes, on_flag };

static const char told_tracing[] = "TRACING_DATA(size=13 )";
static const char told_features[] =
        "BUILD_ID((build_id=[16] path=/bin/program misc=32770 ))HOSTNAME=host NRCPUS(available=4 online=2 )TOTAL_MEM=1048576 "
        "CMDLINE(=perf =record )EVENT_DESC((name=page-faults type=1 config=2 ids(=100 =101 )))STAT=1 SAMPLE_TIME(first=5 last=6 )";

typedef struct Read {
        uint64_t counts[256];
        uint64_t in_compressed;
        Told told;
        uint64_t n_damages;
        uint64_t first_damage;
} Read;

/* Whatever it is, it ends, and what is said of it lies within it. */
static int read_bytes(const uint8_t *bytes, size_t n, Read *ret) {
        perfd_recording *r = perfd_recording_new();
        const perfd_recorded *record;
        int code;

        *ret = (Read){ .first_damage = UINT64_MAX };
        assert_non_null(r);
        code = perfd_recording_open_bytes(r, bytes, n);
        if (code != 0) {
                assert_true(strlen(perfd_recording_error(r)) > 0);
                perfd_recording_free(r);
                return code;
        }
        while ((code = perfd_recording_next(r, &record)) == 0) {
                ret->counts[record->type & 255]++;
                ret->in_compressed += record->is_compressed;
                assert_true(record->offset < n);
                for (size_t i = 0; i < record->size; i++) /* all of it is there */
                        ret->counts[255] += ((const uint8_t *)record->bytes)[i] & 0;
        }
        assert_int_equal(code, PERFD_E_ENDED);
        assert_int_equal(perfd_recording_next(r, &record), PERFD_E_ENDED);
        for (unsigned bit = 0; bit < 256; bit++)
                if (perfd_recording_has_feature(r, bit))
                        assert_int_equal(perfd_recording_visit_feature(r, bit, &visitor, &ret->told), 0);
                else
                        assert_int_equal(perfd_recording_visit_feature(r, bit, &visitor, &ret->told), PERFD_E_INVALID);
        ret->n_damages = perfd_recording_damage_count(r);
        for (size_t i = 0; i < perfd_recording_n_damages(r); i++) {
                assert_true(strlen(perfd_recording_damage(r, i)->text) > 0);
                if (perfd_recording_damage(r, i)->offset < ret->first_damage)
                        ret->first_damage = perfd_recording_damage(r, i)->offset;
        }
        perfd_recording_free(r);
        return 0;
}

/* A copy of just that size, so that a sanitizer sees who reads behind it. */
static int read_copy(const Built *b, size_t n, Read *ret) {
        uint8_t *copy = malloc(n > 0 ? n : 1);
        int code;

        assert_non_null(copy);
        memcpy(copy, b->bytes, n);
        code = read_bytes(copy, n, ret);
        free(copy);
        return code;
}

static void check_event(const Built *b, size_t attr_size, bool is_pipe) {
        perfd_recording *r = perfd_recording_new();
        const perfd_recorded_event *e;
        const perfd_recorded *record;

        assert_int_equal(perfd_recording_open_bytes(r, b->bytes, b->n), 0);
        assert_int_equal(perfd_recording_is_pipe(r), is_pipe);
        assert_int_equal(perfd_recording_byte_order(r), b->swap ? PERFD_BIG_ENDIAN : PERFD_LITTLE_ENDIAN);
        while (perfd_recording_next(r, &record) == 0)
                ;
        assert_int_equal(perfd_recording_n_events(r), 1);
        assert_null(perfd_recording_event(r, 1));
        e = perfd_recording_event(r, 0);
        assert_string_equal(e->name, "page-faults");
        assert_int_equal(e->type, 1);
        assert_int_equal(e->config, 2);
        assert_int_equal(e->sample_period, 4000);
        assert_int_equal(e->sample_type, 3);
        assert_int_equal(e->flags, FLAGS);
        assert_int_equal(e->wakeup_events, 7);
        assert_int_equal(e->bp_type, 3);
        assert_int_equal(e->config1, 0x1234);
        assert_int_equal(e->attr_size, attr_size);
        assert_int_equal(e->branch_sample_type, attr_size >= 80 ? 0x0102030405060708 : 0);
        assert_int_equal(e->sample_regs_intr, attr_size >= 104 ? 0x0102030405060708 : 0);
        assert_int_equal(e->config3, attr_size >= 136 ? 0x0102030405060708 : 0);
        assert_int_equal(e->n_ids, 2);
        assert_int_equal(e->ids[0], 100);
        assert_int_equal(e->ids[1], 101);
        perfd_recording_free(r);
}

static void check_whole(const Read *got, bool is_pipe) {
        assert_int_equal(got->n_damages, 0);
        assert_int_equal(got->counts[9], 5);
        assert_int_equal(got->counts[3], 1);
        assert_int_equal(got->counts[PERF_DATA_AUXTRACE], 1);
        assert_int_equal(got->counts[PERF_DATA_FINISHED_ROUND], 1);
        assert_int_equal(got->counts[PERF_DATA_HEADER_ATTR], is_pipe);
        assert_string_equal(got->told.text + (is_pipe ? strlen(told_tracing) : 0), told_features);
        assert_memory_equal(got->told.text, is_pipe ? told_tracing : "", is_pipe ? strlen(told_tracing) : 0);
}

/* ---- tests ------------------------------------------------------------------------------------------------------------------- */

static Built built, other;
static Read got;

static void test_files(void **state) {
        for (size_t i = 0; i < sizeof(attr_sizes) / sizeof(attr_sizes[0]); i++)
                for (int how = 0; how < 4; how++) {
                        build_file(&built, how & 1, attr_sizes[i], (how & 2) != 0);
                        assert_int_equal(read_copy(&built, built.n, &got), 0);
                        check_whole(&got, false);
                        check_event(&built, attr_sizes[i], false);
                }
}

static void test_pipes(void **state) {
        for (size_t i = 0; i < sizeof(attr_sizes) / sizeof(attr_sizes[0]); i++)
                for (int swap = 0; swap < 2; swap++) {
                        build_pipe(&built, swap, attr_sizes[i]);
                        assert_int_equal(read_copy(&built, built.n, &got), 0);
                        check_whole(&got, true);
                        check_event(&built, attr_sizes[i], true);
                }
}

/* Perf of Linux before 3.1: the same magic in either byte order. */
static void test_old_magic(void **state) {
        for (int swap = 0; swap < 2; swap++) {
                const uint64_t magic = PERF_DATA_MAGIC_OLD;

                build_file(&built, swap, 72, false);
                memcpy(built.bytes, &magic, sizeof(magic));
                assert_int_equal(read_copy(&built, built.n, &got), 0);
                check_whole(&got, false);
                check_event(&built, 72, false);
        }
}

static void test_none(void **state) {
        static const struct {
                size_t at;
                uint64_t value;
        } changes[] = { { 0, 0 }, { 8, 17 }, { 8, UINT64_MAX }, { 16, 0 }, { 16, 79 }, { 16, UINT64_MAX } };

        assert_int_equal(read_bytes((const uint8_t *)"", 0, &got), PERFD_E_INVALID);
        for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
                build_file(&built, false, 112, false);
                built_u64_at(&built, changes[i].at, changes[i].value);
                assert_int_equal(read_copy(&built, built.n, &got), PERFD_E_INVALID);
        }
}

/* A pipe without names: those of the numbers. */
static void test_names(void **state) {
        static const struct {
                uint32_t type;
                uint64_t config;
                const char *name;
        } rows[] = {
                { 0, 0, "cycles" }, { 0, 4, "branches" }, { 0, 9, "ref-cycles" }, { 0, 10, "type=0,config=0xa" }, { 0, UINT64_C(1) << 32, "type=0,config=0x100000000" },
                { 1, 0, "cpu-clock" }, { 1, 2, "page-faults" }, { 1, 9, "dummy" }, { 1, 11, "cgroup-switches" }, { 1, 10, "bpf-output" },
                { 1, 99, "type=1,config=0x63" }, { 3, 0, "L1-dcache-loads" }, { 3, 0x10000, "L1-dcache-load-misses" },
                { 3, 0x10102, "LLC-store-misses" }, { 3, 0x0206, "node-prefetches" }, { 3, 7, "type=3,config=0x7" },
                { 3, 0x300, "type=3,config=0x300" }, { 3, 0x20000, "type=3,config=0x20000" }, { 4, 0x1c2, "r1c2" },
                { 5, 0, "mem:0x1234/72623859790382856:rw" }, { 2, 316, "type=2,config=0x13c" }, { 77, 5, "type=77,config=0x5" },
        };

        for (int swap = 0; swap < 2; swap++)
                for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                        perfd_recording *r = perfd_recording_new();
                        const perfd_recorded *record;
                        size_t at;

                        built.swap = swap;
                        built.n = 0;
                        built_u64(&built, PERF_DATA_MAGIC);
                        built_u64(&built, PERF_DATA_PIPE_SIZE);
                        at = built_record(&built, PERF_DATA_HEADER_ATTR, 0);
                        built_attr(&built, 128, rows[i].type, rows[i].config, 3, FLAGS);
                        built_record_end(&built, at);
                        assert_int_equal(perfd_recording_open_bytes(r, built.bytes, built.n), 0);
                        assert_int_equal(perfd_recording_next(r, &record), 0);
                        assert_string_equal(perfd_recording_event(r, 0)->name, rows[i].name);
                        perfd_recording_free(r);
                }
}

/* Perf before Linux 2.6.35: build ids without a pid. */
static void test_old_build_ids(void **state) {
        static const char id[] = "\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20\21\22\23\24\0\0\0";

        for (int swap = 0; swap < 2; swap++) {
                size_t feature, at;

                built.swap = swap;
                built.n = 0;
                built_u64(&built, PERF_DATA_MAGIC);
                built_u64(&built, PERF_DATA_PIPE_SIZE);
                feature = built_record(&built, PERF_DATA_HEADER_FEATURE, 0);
                built_u64(&built, PERF_DATA_FEATURE_BUILD_ID);
                for (int i = 1; i <= 2; i++) {
                        at = built_record(&built, 0, (uint16_t)i);
                        built_bytes(&built, id, sizeof(id));
                        built_bytes(&built, i == 1 ? "[kernel.kallsyms]\0\0\0\0\0\0" : "/bin/program\0\0\0", i == 1 ? 24 : 16);
                        built_record_end(&built, at);
                }
                built_record_end(&built, feature);
                assert_int_equal(read_copy(&built, built.n, &got), 0);
                assert_int_equal(got.n_damages, 0);
                assert_string_equal(got.told.text, "BUILD_ID((build_id=[20] path=[kernel.kallsyms] misc=1 )"
                                                   "(build_id=[20] path=/bin/program misc=2 ))");
        }
}

static void build_event_type(Built *b) {
        built_u64(b, 316);
        built_bytes(b, "sched:sched_switch", 18);
        built_zeros(b, 64 - 18);
}

static void build_attr_record(Built *b) {
        const size_t at = built_record(b, PERF_DATA_HEADER_ATTR, 0);

        built_attr(b, 64, 2, 316, 3, FLAGS);
        built_record_end(b, at);
}

/* What names it: 0: a row of the old table; 1: the section EVENT_DESC, which has its ids, too. */
static void build_name_record(Built *b, int how) {
        const size_t at = built_record(b, how == 0 ? PERF_DATA_HEADER_EVENT_TYPE : PERF_DATA_HEADER_FEATURE, 0);

        if (how == 0)
                build_event_type(b);
        else {
                built_u64(b, PERF_DATA_FEATURE_EVENT_DESC);
                built_u32(b, 1);
                built_u32(b, 64);
                built_attr(b, 64, 2, 316, 3, FLAGS);
                built_u32(b, 2);
                built_string(b, "sched:sched_switch");
                built_u64(b, 100);
                built_u64(b, 101);
        }
        built_record_end(b, at);
}

static void check_named(int how) {
        const perfd_recorded_event *e;
        perfd_recording *r = perfd_recording_new();
        const perfd_recorded *record;

        assert_int_equal(perfd_recording_open_bytes(r, built.bytes, built.n), 0);
        while (perfd_recording_next(r, &record) == 0)
                ;
        e = perfd_recording_event(r, 0);
        assert_string_equal(e->name, "sched:sched_switch");
        assert_int_equal(e->n_ids, how == 1 ? 2 : 0);
        if (how == 1)
                assert_int_equal(e->ids[1], 101);
        assert_int_equal(perfd_recording_damage_count(r), 0);
        perfd_recording_free(r);
}

/* Names of old recordings, before the attrs and behind them. */
static void test_old_names(void **state) {
        for (int how = 0; how < 8; how++) {
                built.swap = how & 1;
                built.n = 0;
                built_u64(&built, PERF_DATA_MAGIC);
                built_u64(&built, PERF_DATA_PIPE_SIZE);
                if (how & 2)
                        build_attr_record(&built);
                build_name_record(&built, how / 4);
                if ((how & 2) == 0)
                        build_attr_record(&built);
                check_named(how / 4);
        }
}

/* A file whose table has the name, or one that a record names, which has no ids otherwise. */
static void test_names_of_files(void **state) {
        for (int how = 0; how < 4; how++) {
                size_t at;

                built.swap = how & 1;
                built.n = 0;
                built_u64(&built, PERF_DATA_MAGIC);
                built_u64(&built, PERF_DATA_HEADER_OLD_SIZE);
                built_u64(&built, 64 + PERF_DATA_SECTION);
                built_u64(&built, PERF_DATA_HEADER_OLD_SIZE + 16); /* attrs */
                built_u64(&built, 64 + PERF_DATA_SECTION);
                built_u64(&built, PERF_DATA_HEADER_OLD_SIZE + 16 + 64 + PERF_DATA_SECTION + PERF_DATA_EVENT_TYPE); /* data */
                built_u64(&built, 48);
                built_u64(&built, PERF_DATA_HEADER_OLD_SIZE + 16 + 64 + PERF_DATA_SECTION); /* names */
                built_u64(&built, how & 2 ? 0 : PERF_DATA_EVENT_TYPE);
                built_u64(&built, 100); /* ids */
                built_u64(&built, 101);
                built_attr(&built, 64, 2, 316, 3, FLAGS);
                built_u64(&built, PERF_DATA_HEADER_OLD_SIZE);
                built_u64(&built, 16);
                build_event_type(&built);
                at = built_record(&built, PERF_DATA_EVENT_UPDATE, 0);
                built_u64(&built, how & 2 ? 2 : 0); /* a name, or a unit */
                built_u64(&built, 101);
                built_bytes(&built, how & 2 ? "sched:sched_switch\0\0\0\0\0" : "Joules\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
                built_record_end(&built, at);
                assert_int_equal(built.n - at, 48);
                check_named(1);
        }
}

/* At each byte: it is no recording, or all whole samples before the cut are read, and the damage is said. */
static void test_truncated(void **state) {
        for (int how = 0; how < 4; how++) {
                uint64_t last = 0;

                if (how & 1)
                        build_pipe(&built, how & 2, 128);
                else
                        build_file(&built, how & 2, 128, false);
                for (size_t n = 0; n < built.n; n++) {
                        if (read_copy(&built, n, &got) != 0) {
                                assert_true(n < PERF_DATA_HEADER_OLD_SIZE);
                                continue;
                        }
                        assert_true(got.counts[9] >= last && got.counts[9] <= 5);
                        last = got.counts[9];
                        if (!(how & 1))
                                assert_true(got.n_damages > 0);
                        if (got.n_damages > 0)
                                assert_true(got.first_damage <= built.n);
                }
                assert_int_equal(last, 5);
        }
}

/* Each word in turn becomes what it is not: nothing is read beyond the end, and nothing goes on without end. */
static void test_lies(void **state) {
        static const uint64_t lies[] = { 0, 1, 7, 0xffff, 0x7fffffff, UINT32_MAX, UINT64_MAX, UINT64_MAX - 7 };

        for (int how = 0; how < 4; how++)
                for (size_t k = 0; k < sizeof(lies) / sizeof(lies[0]); k++) {
                        if (how & 1)
                                build_pipe(&built, how & 2, 128);
                        else
                                build_file(&built, how & 2, 128, false);
                        for (size_t at = 8; at + 8 <= built.n; at += 4) {
                                memcpy(other.bytes, built.bytes, built.n);
                                other.n = built.n;
                                other.swap = built.swap;
                                built_u64_at(&other, at, lies[k]);
                                if (read_copy(&other, other.n, &got) == 0 && at == 32 && lies[k] == 0 && (how & 1) == 0)
                                        assert_int_equal(got.first_damage, 24); /* a file without attrs */
                        }
                }
}

/* perf writes one stream of zstd, flushed for each record; records go across. */
static void test_compressed(void **state) {
        static Built plain;
        static uint8_t packed[BUILT_MAX];

        for (int how = 0; how < 4; how++) {
                ZSTD_CStream *stream = ZSTD_createCStream();
                const size_t piece = 37; /* bytes, which no record has */

                plain.swap = how & 1;
                plain.n = 0;
                for (uint64_t i = 0; i < 3000; i++)
                        build_sample(&plain, i);
                build_pipe(&built, plain.swap, 112);
                assert_false(ZSTD_isError(ZSTD_initCStream(stream, 1)));
                for (size_t at = 0; at < plain.n; at += piece) {
                        ZSTD_inBuffer in = { .src = plain.bytes + at, .size = plain.n - at < piece ? plain.n - at : piece };
                        ZSTD_outBuffer out = { .dst = packed, .size = sizeof(packed) };
                        size_t record = built_record(&built, how & 2 ? PERF_DATA_COMPRESSED2 : PERF_DATA_COMPRESSED, 0);

                        assert_false(ZSTD_isError(ZSTD_compressStream2(stream, &out, &in, ZSTD_e_flush)));
                        if (how & 2)
                                built_u64(&built, out.pos);
                        built_bytes(&built, packed, out.pos);
                        if (how & 2)
                                built_zeros(&built, (8 - out.pos % 8) % 8);
                        built_record_end(&built, record);
                }
                ZSTD_freeCStream(stream);
                assert_int_equal(read_copy(&built, built.n, &got), 0);
                assert_int_equal(got.n_damages, 0);
                assert_int_equal(got.in_compressed, 3000);
                assert_int_equal(got.counts[9], 3005);
                assert_int_equal(got.counts[how & 2 ? PERF_DATA_COMPRESSED2 : PERF_DATA_COMPRESSED], (plain.n + piece - 1) / piece);
                built.bytes[built.n - 20] ^= 0x55; /* the last one: what is whole is read */
                assert_int_equal(read_copy(&built, built.n, &got), 0);
                assert_true(got.in_compressed >= 2990);
        }
}

/* A record of 64 KiB that becomes as much as zstd can: of memory no more is taken than for one record. */
static void test_bomb(void **state) {
        static uint8_t zeros[1 << 20], packed[60000];
        ZSTD_CStream *stream = ZSTD_createCStream();
        ZSTD_outBuffer out = { .dst = packed, .size = sizeof(packed) };
        uint64_t n = 0;
        size_t record;

        for (size_t at = 0; at + 8 <= sizeof(zeros); at += 8)
                memcpy(zeros + at, (const uint8_t[]){ PERF_DATA_FINISHED_ROUND, 0, 0, 0, 0, 0, 8, 0 }, 8);
        assert_false(ZSTD_isError(ZSTD_initCStream(stream, 19)));
        while (n < 64) {
                ZSTD_inBuffer in = { .src = zeros, .size = sizeof(zeros) };

                assert_false(ZSTD_isError(ZSTD_compressStream2(stream, &out, &in, ZSTD_e_flush)));
                assert_true(out.pos < out.size);
                n++;
        }
        ZSTD_freeCStream(stream);
        build_pipe(&built, false, 112);
        record = built_record(&built, PERF_DATA_COMPRESSED, 0);
        built_bytes(&built, packed, out.pos);
        built_record_end(&built, record);
        assert_int_equal(read_copy(&built, built.n, &got), 0);
        assert_int_equal(got.n_damages, 0);
        assert_int_equal(got.in_compressed, 64 * sizeof(zeros) / 8);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_files),      cmocka_unit_test(test_pipes),     cmocka_unit_test(test_old_magic),
                cmocka_unit_test(test_none),       cmocka_unit_test(test_names),     cmocka_unit_test(test_old_names),
                cmocka_unit_test(test_names_of_files), cmocka_unit_test(test_old_build_ids),
                cmocka_unit_test(test_truncated),  cmocka_unit_test(test_lies),      cmocka_unit_test(test_compressed),
                cmocka_unit_test(test_bomb),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
