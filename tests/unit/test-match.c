/* Filter expressions on one sample that has everything: a table of what is true and what is false. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "daemon/route/match-program.h"
#include "tests/unit/filter-plan.h"

typedef struct Case {
        const char *expression;
        bool expected;
} Case;

static bool run(const char *expression, const Plan *plan, const Record *r) {
        _cleanup_(match_program_unrefp) MatchProgram *program = NULL;
        _cleanup_(filter_freep) Filter *filter = NULL;
        Explanation e = EXPLANATION_NULL;

        if (filter_parse(expression, &filter, &e) != 0 || filter_compile(filter, plan, "group:made", &program, &e) != 0)
                fail_msg("%s: %u: %s", expression, e.position, e.text);
        assert_int_equal(match_ask(program, r), match_run(program, r));
        return match_run(program, r);
}

static void check(const Case *cases, size_t n, const Plan *plan, const Record *r) {
        for (size_t i = 0; i < n; i++)
                if (run(cases[i].expression, plan, r) != cases[i].expected)
                        fail_msg("%s is not %s", cases[i].expression, cases[i].expected ? "true" : "false");
}

#define CHECK(cases, plan, record) check((cases), ARRAY_SIZE(cases), (plan), (record))

static const Case numbers[] = {
        /* every width and sign, exactly */
        { "u8 == 200", true }, { "s8 == -3", true }, { "u16 == 60000", true }, { "s16 == -300", true },
        { "u32 == 4000000000", true }, { "s32 == -1", true }, { "u64 == 18446744073709551615", true },
        { "s64 == -9223372036854775808", true }, { "ptr == 0xffff888000000000", true }, { "flag == 1", true },
        { "flag", true }, { "!flag", false }, { "pid == 77", true },
        { "args[0] == 1", true }, { "args[1] == 0x8000000000000000", true }, { "args[2] == 03", true },
        { "small[0] == -1", true }, { "small[2] == -0x8000", true }, { "small[3] == 077777", true },
        { "u8 == 201", false }, { "s8 == 253", false }, { "s16 == 65236", false }, { "u8 == '\\xc8'", true },

        /* every relation, on both sides of equality */
        { "u8 != 200", false }, { "u8 != 199", true }, { "u8 < 200", false }, { "u8 < 201", true },
        { "u8 <= 199", false }, { "u8 <= 200", true }, { "u8 > 200", false }, { "u8 > 199", true },
        { "u8 >= 201", false }, { "u8 >= 200", true }, { "s8 < -3", false }, { "s8 < -2", true },
        { "s8 <= -4", false }, { "s8 <= -3", true }, { "s8 > -3", false }, { "s8 > -4", true },
        { "s8 >= -2", false }, { "s8 >= -3", true }, { "s8 != -3", false }, { "s8 != 3", true },
        { "199 < u8", true }, { "200 < u8", false }, { "200 >= u8", true }, { "-3 == s8", true },
        { "201 > u8", true }, { "200 <= u8", true },

        /* integers are what they are, whatever their widths and signs */
        { "s32 != 4294967295", true }, { "s32 == 4294967295", false }, { "s32 < 9223372036854775808", true },
        { "s32 == 18446744073709551615", false }, { "s32 < 0", true }, { "u64 > -1", true }, { "u64 == -1", false },
        { "u64 != -1", true }, { "u64 < 0", false }, { "u64 >= 0", true }, { "u64 <= 18446744073709551615", true },
        { "u64 > 18446744073709551615", false }, { "u64 > 18446744073709551614", true }, { "s64 < u64", true },
        { "s32 == u64", false }, { "s32 < u64", true }, { "u64 > s32", true }, { "s32 != u64", true }, { "s32 >= u64", false },
        { "s64 < s32", true }, { "s32 > s64", true }, { "s64 <= -9223372036854775808", true },
        { "s64 < -9223372036854775808", false }, { "s64 >= -9223372036854775808", true }, { "s64 > 9223372036854775807", false },
        { "s64 <= 9223372036854775807", true }, { "s64 < 18446744073709551615", true }, { "u8 < u16", true },
        { "u32 == u32", true }, { "s32 == small[0]", true }, { "args[0] < args[2]", true }, { "args[1] > s64", true },
        { "u8 < -1", false }, { "-1 < u8", true }, { "-1 < -2", false }, { "18446744073709551615 > -1", true },

        /* bits */
        { "u8 & 8", true }, { "u8 & 7", false }, { "(u8 & 0xc0) == 0xc0", true }, { "u8 & 0xc0 == 0xc0", true },
        { "u8 & 0x38 == 8", true }, { "u8 | 7 == 207", true }, { "4 | u8 & 0x40 == 68", true }, { "(4 | u8) & 4", true },
        { "s32 & 0x8000000000000000", true }, { "s8 & 0xff == 253", true }, { "s8 & -2 == -4", true }, { "u8 | -1 == -1", true },
        { "s8 | 1 < 0", true }, { "u8 & args[0] == 0", true }, { "u8 & args[2] | args[0] == 1", true },
        { "u8 & u16 == 64", true }, { "u32 & (u8 & (u16 & (args[1] | 64))) == 0", true }, { "u8 & u16", true },
        { "args[0] & args[1]", false }, { "6 & 3 == 2", true }, { "-1 & 5 == 5", true }, { "u8 == 8 | 192", true },
        { "s32 | u64 == 18446744073709551615", true }, { "(s32 | ptr) > 0", true },

        /* conditions */
        { "u8 == 200 && s8 == -3", true }, { "u8 == 200 && s8 == 3", false }, { "u8 == 1 || s8 == -3", true },
        { "u8 == 1 || s8 == 3", false }, { "u8 == 1 && s8 == 1 || flag", true }, { "flag || u8 == 1 && s8 == 1", true },
        { "(flag || u8 == 1) && s8 == 1", false }, { "!(u8 == 1)", true }, { "!(u8 == 200 && flag)", false },
        { "!(u8 == 1 || s8 == 3) && flag", true }, { "!!flag", true }, { "!flag || flag", true }, { "1", true }, { "0", false },
        { "!0 && 7", true }, { "0 || u8", true }, { "1 && (0 || flag)", true }, { "1 || u8 == 1", true }, { "0 && flag", false },
        { "(((u8))) == ((200))", true }, { "u8==200&&s8==-3&&u8&8", true }, { "\tu8\n==\r200 ", true },

        /* names of values */
        { "flags & O_CREAT", true }, { "flags & O_EXCL", false }, { "flags == O_CREAT | TOP", true }, { "flags & TOP", true },
        { "flags & (O_CREAT | O_EXCL) == O_CREAT", true }, { "O_CREAT & flags", true }, { "flags & \"O_CREAT\"", true },
        { "state == \"R+\"", true }, { "state == 'R'", false }, { "state != R", true }, { "state == 'S' || state > S", true },
        { "err == ENOENT", true }, { "err == EPERM", false }, { "err < EPERM", true }, { "u64 & flags & O_CREAT", true },
        { "flags & O_CREAT && state == \"R+\" && err == ENOENT", true },

        /* what every sample has; an event's own field comes first */
        { "sample.pid == 1000", true }, { "tid == 1001", true }, { "sample.tid == 1001", true }, { "cpu == 3", true },
        { "time >= 5000000000 && time < 5000000001", true }, { "comm == \"nginx\"", true }, { "sample.comm != \"nginx\"", false },
        { "pid < sample.pid", true }, { "tid & 1", true }, { "tid == 1000 | 1", true },
};

static const Case texts[] = {
        { "prev_comm == \"postgres\"", true }, { "prev_comm == 'postgres'", true }, { "\"postgres\" == prev_comm", true },
        { "prev_comm == \"postgre\"", false }, { "prev_comm == \"postgresq\"", false }, { "prev_comm == \"\"", false },
        { "prev_comm != \"postgres\"", false }, { "prev_comm != \"\"", true }, { "prev_comm == \"postgres\\x01\"", false },
        { "next_comm == \"abcdefghijklmnop\"", true }, { "next_comm == \"abcdefghijklmno\"", false },
        { "next_comm == \"abcdefghijklmnopq\"", false }, { "next_comm != \"abcdefghijklmnopq\"", true },
        { "next_comm == \"abcdefghijklmno*\"", true }, { "next_comm == \"abcdefghijklmnop*\"", true },
        { "next_comm == \"abcdefghijklmnopq*\"", false }, { "next_comm ~ \"*nop\"", true }, { "next_comm ~ \"*no\"", false },
        { "prev_comm ~ \"post*\"", true }, { "prev_comm ~ \"pest*\"", false }, { "prev_comm ~ \"*gres\"", true },
        { "prev_comm ~ \"*stg*\"", true }, { "prev_comm ~ \"*stx*\"", false }, { "prev_comm ~ \"p*s*s\"", true },
        { "prev_comm ~ \"p*g*t*\"", false }, { "prev_comm ~ \"postgres*\"", true }, { "prev_comm ~ \"*\"", true },
        { "prev_comm ~ \"**r**\"", true }, { "prev_comm ~ \"????????\"", true }, { "prev_comm ~ \"?????????\"", false },
        { "prev_comm ~ \"???????\"", false }, { "prev_comm ~ \"[n-p]ostgres\"", true }, { "prev_comm ~ \"[!p]*\"", false },
        { "prev_comm ~ \"[^a]*[^r]\"", true }, { "prev_comm ~ \"*[]g]res\"", true }, { "prev_comm ~ \"*[a-]*\"", false },
        { "prev_comm ~ \"*s?g[q-s]*\"", true }, { "prev_comm == \"post*\"", true }, { "prev_comm != \"post*\"", false },
        { "prev_comm == \"post\\*\"", false }, { "prev_comm != \"p?\"", true }, { "prev_comm ~ \"po*po*\"", false },
        { "prev_comm ~ \"*postgres*postgres*\"", false }, { "prev_comm ~ \"postg*gres\"", false },
        { "comm == \"nginx\"", true }, { "comm == \"ngin\"", false }, { "comm == \"nginxx\"", false }, { "comm ~ \"n*x\"", true },
        { "comm != prev_comm", true }, { "prev_comm == prev_comm", true }, { "prev_comm == next_comm", false },
        { "filename == \"/var/log/nginx/access.log\"", true }, { "filename ~ \"/var/*/access.*\"", true },
        { "filename ~ \"/var/log/nginx/access.log?\"", false }, { "filename != \"/var\"", true }, { "filename ~ \"*log/*log\"", true },
        { "filename == \"/var/log*\"", true }, { "filename == \"/var/lok*\"", false },
        { "path == \"rel\"", true }, { "path == \"re\"", false }, { "path == \"relx\"", false }, { "path ~ \"r?l\"", true },
        { "path ~ \"rel*\"", true }, { "path != filename", true }, { "path == path", true },
        { "list[0] == 10", true }, { "list[2] == 4294967295", true }, { "longs[0] == -5", true }, { "longs[0] < list[1]", true },
        /* an element that the record does not have */
        { "list[3] == 0", false }, { "list[3] != 0", false }, { "list[3] >= 0", false }, { "list[3] < 18446744073709551615", false },
        { "!(list[3] == 0)", true }, { "list[3]", false }, { "!list[3]", true }, { "list[3] == list[3]", false },
        { "u8 == list[3] || flag", true }, { "u8 & list[3] | args[0] != 3 || longs[0] != list[0]", true },
        { "longs[1] == 1 || longs[65535] == 1", false },
};

static void test_numbers(void **state) {
        _cleanup_(plan_unrefp) Plan *plan = filter_plan_new();
        SampleBytes b;
        Record r = sample_record(&b);

        sample_init(&b);
        CHECK(numbers, plan, &r);
}

/* The name of the event is known: it is "group:made" here. */
static const Case of_event[] = {
        { "event == \"group:made\"", true }, { "\"group:made\" == event", true }, { "event != \"group:made\"", false },
        { "event ~ \"group:*\"", true }, { "event ~ \"*:m?de\"", true }, { "event ~ \"made\"", false }, { "sample.event == \"\"", false },
        { "event == \"a:b\" || u8 == 200", true }, { "event ~ \"g*\" && u8 == 201", false }, { "!(event ~ \"g*\")", false },
};

static void test_texts(void **state) {
        _cleanup_(plan_unrefp) Plan *plan = filter_plan_new();
        SampleBytes b;
        Record r = sample_record(&b);

        sample_init(&b);
        CHECK(texts, plan, &r);
        CHECK(of_event, plan, &r);
}

/* The raw bytes at every alignment, in memory that ends where they end: a sanitizer sees one byte more. */
static void test_alignment(void **state) {
        _cleanup_(plan_unrefp) Plan *plan = filter_plan_new();
        SampleBytes b;
        Record r = sample_record(&b);

        sample_init(&b);
        for (size_t shift = 0; shift < 8; shift++) {
                _cleanup_free_ uint8_t *bytes = malloc(shift + sizeof(b));

                assert_non_null(bytes);
                memcpy(bytes + shift, &b, sizeof(b));
                r.raw = bytes + shift;
                CHECK(numbers, plan, &r);
                CHECK(texts, plan, &r);
        CHECK(of_event, plan, &r);
        }
}

/* A place that does not lie in the record makes each comparison with it false, and nothing is read there. */
static void test_broken_places(void **state) {
        static const Case outside[] = {
                { "filename == \"\"", false }, { "filename != \"\"", false }, { "filename ~ \"*\"", false },
                { "filename == filename", false }, { "filename != path", false }, { "!(filename == \"\")", true },
                { "list[0] == 10", false }, { "list[0] != 10", false }, { "longs[0] < 0", false }, { "u8 == 200", true },
        };
        static const Case at_end[] = { { "filename == \"\"", true }, { "filename ~ \"*\"", true }, { "filename ~ \"?\"", false },
                                       { "filename ~ \"*x\"", false }, { "filename == path", false }, { "list[0] >= 0", false } };
        _cleanup_(plan_unrefp) Plan *plan = filter_plan_new();
        const uint32_t size = offsetof(SampleBytes, rest);
        _cleanup_free_ uint8_t *bytes = malloc(size);
        SampleBytes b;
        Record r = sample_record(&b);

        assert_non_null(bytes);
        sample_init(&b);
        memcpy(bytes, &b, size); /* only the fixed part: every place points behind the end */
        r.raw = bytes;
        r.raw_size = size;
        CHECK(outside, plan, &r);

        b.filename = sample_data_loc(0, 1);
        b.list = 0xffffffff;
        b.longs = 0xffff0000 | (uint32_t)(size - offsetof(SampleBytes, longs) - 4);
        memcpy(bytes, &b, size);
        CHECK(outside, plan, &r);

        b.filename = sample_data_loc(0, 0);
        b.list = sample_data_loc(0, 0);
        memcpy(bytes, &b, size);
        CHECK(at_end, plan, &r);
}

/* Of a probe, a dynamic text without bytes could not be read: it is not "", which has its zero byte. */
static void test_faults(void **state) {
        static const Case fault[] = {
                { "filename == \"\"", false }, { "filename != \"\"", false }, { "filename ~ \"*\"", false }, { "filename != \"x\"", false },
                { "filename == filename", false }, { "filename != path", false }, { "path != filename", false },
                { "!(filename ~ \"*\")", true }, { "path == \"rel\"", true }, { "prev_comm != \"\"", true },
        };
        static const Case empty[] = { { "filename == \"\"", true }, { "filename != \"\"", false }, { "filename ~ \"*\"", true } };
        _cleanup_(plan_unrefp) Plan *plan = filter_plan_new();
        SampleBytes b;
        Record r = sample_record(&b);

        sample_init(&b);
        plan->has_faults = true;
        b.filename = sample_data_loc(0, 0);
        CHECK(fault, plan, &r);
        b.filename = sample_data_loc(sizeof(b.rest) - 1, 1);
        b.rest[sizeof(b.rest) - 1] = 0;
        CHECK(empty, plan, &r);
        plan->has_faults = false;
        b.filename = sample_data_loc(0, 0);
        CHECK(empty, plan, &r);
}

/* Of a predicate of access.rules, before there is an event. */
static void test_check_names(void **state) {
        static const struct {
                const char *expression, *says;
                unsigned position;
        } cases[] = {
                { "sample.uid == 0 && sample.event == \"a\" && sample.address == 1 && sample.addr == 1 && sample.unit == \"\"", "", 0 },
                { "uidd == 0", "", 0 }, /* some event may have it */
                { "sample.uidd == 0", "no sample has 'sample.uidd'; did you mean 'uid'? It has", 1 },
                { "cpu == 1 || sample.contaner == \"x\"", "did you mean 'container'?", 13 },
                { "sample.nothing_like_it", "no sample has 'sample.nothing_like_it'. It has", 1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(filter_freep) Filter *filter = NULL;
                Explanation e = EXPLANATION_NULL;

                assert_int_equal(filter_parse(cases[i].expression, &filter, &e), 0);
                assert_int_equal(filter_check_names(filter, &e), *cases[i].says ? REFUSED_NOT_FOUND : 0);
                assert_int_equal(e.position, cases[i].position);
                assert_non_null(strstr(e.text, cases[i].says));
        }
}

/* A plan that promises less than its fields need is not trusted. */
static void test_short_plan(void **state) {
        static const Case cases[] = { { "u8 == 200", true }, { "u32 == 4000000000", false }, { "u32 != 1", false },
                                      { "prev_comm == \"postgres\"", false }, { "args[0] < 5", false } };
        _cleanup_(plan_unrefp) Plan *plan = filter_plan_new();
        _cleanup_free_ uint8_t *bytes = malloc(offsetof(SampleBytes, u32));
        SampleBytes b;
        Record r = sample_record(&b);

        sample_init(&b);
        assert_non_null(bytes);
        plan->min_size = r.raw_size = offsetof(SampleBytes, u32);
        r.raw = memcpy(bytes, &b, r.raw_size);
        CHECK(cases, plan, &r);
}

static void test_without_plan(void **state) {
        static const Case cases[] = {
                { "pid == 1000 && tid == 1001 && cpu == 3", true }, { "ip == 0x400000", true }, { "addr > ip", true }, { "address == addr", true },
                { "sample.period == 99", true }, { "period & 1 && addr & 0x8000000000000000", true }, { "comm ~ \"n*\"", true },
                { "comm == \"\"", false },
        };
        static const Case sixteen[] = { { "comm == \"0123456789abcdef\"", true }, { "comm ~ \"*f\"", true },
                                        { "comm == \"0123456789abcdefg\"", false }, { "comm == \"0123456789abcde\"", false },
                                        { "comm == \"0123456789abcde*\"", true }, { "comm != \"1*\"", true } };
        Record r = sample_record(NULL);

        r.raw_size = 0;
        CHECK(cases, NULL, &r);
        r.comm = (const char[16]){ '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f' };
        CHECK(sixteen, NULL, &r);
        r.comm = "";
        assert_true(run("comm == \"\" && comm != \"nginx\" && !(comm ~ \"?*\")", NULL, &r));
}

/* A text in a fixed place, compared with every length around that of the place and of the tests that it becomes. */
static void test_fixed_texts(void **state) {
        char text[41], expression[80];

        for (uint32_t place = 1; place <= 40; place++)
                for (uint32_t length = 0; length <= place; length++) {
                        _cleanup_(plan_unrefp) Plan *plan = plan_new(1, "test", "text");
                        _cleanup_free_ uint8_t *bytes = calloc(1, place);
                        Record r = { .comm = "", .raw = bytes, .raw_size = place };
                        PlanField *f = plan_add_field(plan, "text", "");

                        f->kind = FIELD_TEXT;
                        f->count = plan->min_size = place;
                        for (uint32_t i = 0; i < length; i++)
                                text[i] = (char)('a' + i % 26);
                        memcpy(bytes, text, length);
                        if (length + 1 < place)
                                bytes[length + 1] = 'x'; /* behind the end */
                        for (int change = -1; change <= 1; change++) {
                                uint32_t n = length + (uint32_t)change;

                                if (n > 40)
                                        continue;
                                text[length] = '!';
                                snprintf(expression, sizeof(expression), "text == \"%.*s\"", (int)n, text);
                                assert_int_equal(run(expression, plan, &r), change == 0);
                                snprintf(expression, sizeof(expression), "text != \"%.*s*\"", (int)n, text);
                                assert_int_equal(run(expression, plan, &r), change > 0);
                        }
                        if (length > 0) {
                                text[length - 1]++;
                                snprintf(expression, sizeof(expression), "text == \"%.*s\"", (int)length, text);
                                assert_false(run(expression, plan, &r));
                        }
                }
}

/* A condition that nobody waits for any more is not worked through, whatever its answer was. */
static void test_ended(void **state) {
        _cleanup_(plan_unrefp) Plan *plan = filter_plan_new();
        static const char *const expressions[] = { "comm ~ \"*gi*\"", "u8 == 200 && !(comm == \"x\")", "u8 == 1 || u16 == 60000" };
        SampleBytes bytes;
        Record r;

        sample_init(&bytes);
        r = sample_record(&bytes);
        for (size_t i = 0; i < ARRAY_SIZE(expressions); i++) {
                _cleanup_(match_program_unrefp) MatchProgram *program = NULL;
                _cleanup_(filter_freep) Filter *filter = NULL;

                assert_int_equal(filter_parse(expressions[i], &filter, NULL), 0);
                assert_int_equal(filter_compile(filter, plan, NULL, &program, NULL), 0);
                assert_true(match_ask(program, &r));
                match_program_end(program);
                assert_false(match_ask(program, &r));
                assert_false(match_run(program, &r));
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_numbers),       cmocka_unit_test(test_texts),        cmocka_unit_test(test_alignment),
                cmocka_unit_test(test_broken_places), cmocka_unit_test(test_short_plan),   cmocka_unit_test(test_without_plan),
                cmocka_unit_test(test_fixed_texts),   cmocka_unit_test(test_ended),
                cmocka_unit_test(test_faults),         cmocka_unit_test(test_check_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
