/* Samples of recordings become the same items with and without the bytes of an item between: all that can be asked of them is compared. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/perfd.h"
#include "client/recording/reading.h"
#include "tests/unit/built-recording.h"
#include "tests/unit/built-tracing.h"

#define ID UINT64_C(316)
#define TRACEPOINT 2
#define SOFTWARE 1
#define SAMPLE 9
#define BASE (2 | 4 | 128 | 1024)                     /* PERF_SAMPLE_TID, TIME, CPU, RAW */
#define MORE (1 | 8 | 32 | 64 | 256 | 512)            /* IP, ADDR, CALLCHAIN, ID, PERIOD, STREAM_ID */
#define IDENTIFIER (1U << 16)
#define PHYS_ADDR (1U << 19)
#define IN_KERNEL UINT64_C(0xffffffffffffff80)       /* PERF_CONTEXT_KERNEL */
#define IN_USER UINT64_C(0xfffffffffffffe00)
#define IN_GUEST UINT64_C(0xfffffffffffff800)

#define HEAD                                                                                                                             \
        "name: made\nID: 316\nformat:\n"                                                                                                \
        "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                                                          \
        "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"                                                                    \
        "\tfield:int number;\toffset:8;\tsize:4;\tsigned:1;\n"                                                                          \
        "\tfield:u16 pair[2];\toffset:12;\tsize:4;\tsigned:0;\n"                                                                        \
        "\tfield:char comm[16];\toffset:16;\tsize:16;\tsigned:0;\n"                                                                     \
        "\tfield:s8 small;\toffset:32;\tsize:1;\tsigned:1;\n"                                                                           \
        "\tfield:u8 bytes[3];\toffset:33;\tsize:3;\tsigned:0;\n"                                                                        \
        "\tfield:s16 half;\toffset:36;\tsize:2;\tsigned:1;\n"                                                                           \
        "\tfield:char word[2];\toffset:38;\tsize:2;\tsigned:0;\n"                                                                       \
        "\tfield:u64 long[2];\toffset:40;\tsize:16;\tsigned:0;\n"                                                                       \
        "\tfield:__data_loc char[] text;\toffset:56;\tsize:4;\tsigned:0;\n"                                                             \
        "\tfield:__rel_loc char[] near;\toffset:60;\tsize:4;\tsigned:0;\n"
#define TAIL "\nprint fmt: \"number=%d\", REC->number\n"

static const char fixed[] = HEAD TAIL;
static const char dynamic[] = HEAD "\tfield:__data_loc u32[] list;\toffset:64;\tsize:4;\tsigned:0;\n" TAIL;

typedef struct Case {
        uint32_t event, text_place, raw_size;
        uint64_t sample_type;
        const char *format; /* NULL: none */
        bool is_damaged;
} Case;

static Built built;

static void build_raw(Built *b, const Case *c) {
        const size_t from = b->n + 4;

        built_u32(b, c->raw_size);
        built_u32(b, (uint32_t)ID);
        built_u32(b, 11);
        built_u32(b, (uint32_t)-5);
        built_bytes(b, "\x02\x01\x03\x80", 4);
        built_bytes(b, "sixteen letters!", 16);
        built_bytes(b, "\xfe\x01\xff\x80\x00\x80no", 8);
        built_u64(b, UINT64_MAX);
        built_u64(b, 0);
        built_u32(b, c->text_place);
        built_u32(b, 6 << 16 | 10);
        built_u32(b, 8 << 16 | 68);
        built_bytes(b, "hello\0there\0", 12);
        built_zeros(b, 4 + 84 - (b->n - from + 4)); /* 84 and the size are a multiple of 8 */
        b->n = from + c->raw_size;
}

static void build_sample(Built *b, const Case *c, uint32_t tid, bool is_bare) {
        static const uint64_t chain[] = { IN_KERNEL, 0xffffffff81000001, 0xffffffff81000002, IN_GUEST, 5, IN_USER, 0x401000, 7 };
        const uint64_t type = c->sample_type, some = !is_bare;
        const size_t at = built_record(b, SAMPLE, 2);

        if ((type & IDENTIFIER) != 0)
                built_u64(b, 77);
        if ((type & 1) != 0)
                built_u64(b, some * 0x401000);
        built_u32(b, some * 10);
        built_u32(b, tid);
        built_u64(b, some * 1000000001);
        if ((type & 8) != 0)
                built_u64(b, some * 0x7000);
        if ((type & 64) != 0)
                built_u64(b, 77);
        if ((type & 512) != 0)
                built_u64(b, some * 78);
        built_u64(b, some * 3); /* cpu */
        if ((type & 256) != 0)
                built_u64(b, some * 9);
        if ((type & 32) != 0)
                built_u64(b, some * 8);
        if ((type & 32) != 0 && !is_bare)
                for (size_t i = 0; i < 8; i++)
                        built_u64(b, chain[i]);
        build_raw(b, c);
        if ((type & PHYS_ADDR) != 0)
                built_u64(b, some * 0x123000);
        built_record_end(b, at);
}

static void build(Built *b, const Case *c) {
        size_t at;

        b->n = 0;
        built_u64(b, PERF_DATA_MAGIC);
        built_u64(b, PERF_DATA_PIPE_SIZE);
        at = built_record(b, PERF_DATA_HEADER_ATTR, 0);
        built_attr(b, 128, c->event, ID, c->sample_type, 1);
        built_u64(b, 77);
        built_record_end(b, at);
        if (c->format)
                built_tracing(b, c->format);
        build_sample(b, c, 11, false);
        build_sample(b, c, 0, true); /* what it had before is gone */
        build_sample(b, c, 12, false);
}

static void write_text(FILE *f, const char *name, perfd_text text) {
        (void)fprintf(f, " %s=%zu:", name, text.length);
        if (text.length > 0)
                (void)fwrite(text.bytes, 1, text.length, f);
}

static void write_chain(FILE *f, const perfd_item *item, perfd_callchain part) {
        const uint64_t *addresses = NULL;
        const size_t n = perfd_item_callchain(item, part, &addresses);

        (void)fprintf(f, " chain");
        for (size_t i = 0; i < n; i++)
                (void)fprintf(f, " %" PRIx64, addresses[i]);
}

/* What a plain sample is at once is what the functions say one by one. False: it is none. */
static bool check_plain(const perfd_item *item) {
        const uint64_t *number, *chain;
        const perfd_text *text;
        perfd_plain_sample s;
        perfd_value v;

        if (!perfd_item_plain(item, &s))
                return false;
        assert_ptr_equal(s.event, perfd_item_event(item));
        assert_true(s.time == perfd_item_time(item) && s.cpu == perfd_item_cpu(item) && s.pid == perfd_item_pid(item) &&
                    s.tid == perfd_item_tid(item) && s.ip == perfd_item_ip(item) && s.address == perfd_item_address(item) &&
                    s.period == perfd_item_period(item) && s.sample_id == perfd_item_sample_id(item) &&
                    s.stream_id == perfd_item_stream_id(item));
        assert_int_equal(s.comm.length, perfd_item_comm(item).length);
        assert_memory_equal(s.comm.bytes, perfd_item_comm(item).bytes, s.comm.length);
        assert_int_equal(s.has_callchain, perfd_item_callchain(item, PERFD_CALLCHAIN_KERNEL, &chain) +
                                              perfd_item_callchain(item, PERFD_CALLCHAIN_USER, &chain) > 0);
        number = s.numbers;
        text = s.texts;
        for (size_t i = 0; perfd_item_get(item, i, &v); i++) {
                for (size_t k = 0; k < v.count; k++)
                        assert_true(*number++ == v.numbers[k]);
                if (v.count == 0) {
                        assert_ptr_equal(text->bytes, v.text.bytes);
                        assert_int_equal(text++->length, v.text.length);
                }
        }
        return true;
}

static void write_item(FILE *f, const perfd_item *item) {
        char text[256];
        perfd_value v;

        (void)fprintf(f, "\n%d %s %" PRIu64 " %u %u %u more=%d ip=%" PRIx64 " address=%" PRIx64 " period=%" PRIu64 " id=%" PRIu64 " stream=%" PRIu64
                      " physical=%" PRIx64, perfd_item_record(item), perfd_item_event(item)->name, perfd_item_time(item), perfd_item_cpu(item),
                      perfd_item_pid(item), perfd_item_tid(item), perfd_item_has_more(item), perfd_item_ip(item), perfd_item_address(item),
                      perfd_item_period(item), perfd_item_sample_id(item), perfd_item_stream_id(item), perfd_item_physical_address(item));
        write_text(f, "comm", perfd_item_comm(item));
        write_text(f, "raw", perfd_item_raw(item));
        write_chain(f, item, PERFD_CALLCHAIN_KERNEL);
        write_chain(f, item, PERFD_CALLCHAIN_USER);
        (void)fprintf(f, " plain=%d", check_plain(item));
        for (size_t i = 0; perfd_item_get(item, i, &v); i++) {
                (void)fprintf(f, " %s count=%zu fault=%d", v.field->name, v.count, v.fault);
                for (size_t k = 0; k < v.count; k++)
                        (void)fprintf(f, " %" PRIx64, v.numbers[k]);
                if (v.count == 0)
                        write_text(f, "text", v.text);
                assert_true(perfd_item_render(item, i, NULL, text, sizeof(text)) < sizeof(text));
                (void)fprintf(f, " shown=%s", text);
        }
}

/* All items, and what is damaged. */
static char *read_all(bool encodes, int *n_items) {
        perfd_recording *r = perfd_recording_new();
        const perfd_recorded *record;
        const perfd_item *item;
        char *all = NULL;
        size_t size;
        FILE *f = open_memstream(&all, &size);
        int code;

        assert_non_null(f);
        r->encodes_items = encodes;
        assert_int_equal(perfd_recording_open_bytes(r, built.bytes, built.n), 0);
        *n_items = 0;
        while ((code = perfd_recording_next(r, &record)) == 0)
                if (perfd_recording_item(r, record, &item) == 0 && item) {
                        write_item(f, item);
                        ++*n_items;
                }
        assert_int_equal(code, PERFD_E_ENDED);
        for (size_t i = 0; i < perfd_recording_n_damages(r); i++)
                (void)fprintf(f, "\n%s", perfd_recording_damage(r, i)->text);
        assert_int_equal(fclose(f), 0);
        perfd_recording_free(r);
        return all;
}

static const Case cases[] = {
        { TRACEPOINT, 6 << 16 | 68, 84, BASE, fixed, false },
        { TRACEPOINT, 6 << 16 | 68, 84, BASE | MORE, fixed, false },
        { TRACEPOINT, 6 << 16 | 68, 84, BASE | IDENTIFIER | 1 | 256, fixed, false },
        { TRACEPOINT, 0, 84, BASE, fixed, false },
        { TRACEPOINT, 6 << 16 | 79, 84, BASE | MORE, fixed, true }, /* a text that ends behind the raw bytes */
        { TRACEPOINT, 6 << 16 | 68, 60, BASE, fixed, true },        /* too short */
        { TRACEPOINT, 6 << 16 | 68, 84, BASE | MORE, dynamic, false },
        { TRACEPOINT, 6 << 16 | 68, 84, BASE | MORE | PHYS_ADDR, fixed, false },
        { TRACEPOINT, 6 << 16 | 68, 84, BASE | MORE, NULL, false },
        { SOFTWARE, 6 << 16 | 68, 84, BASE | MORE, NULL, false },
        { SOFTWARE, 6 << 16 | 68, 4, BASE, NULL, false },
};

static void test_same(void **state) {
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                int n_encoded, n_direct;
                char *encoded, *direct;

                build(&built, &cases[i]);
                encoded = read_all(true, &n_encoded);
                direct = read_all(false, &n_direct);
                assert_string_equal(direct, encoded);
                assert_int_equal(n_direct, n_encoded);
                assert_int_equal(n_encoded, cases[i].is_damaged ? 0 : 3);
                free(encoded);
                free(direct);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_same) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
