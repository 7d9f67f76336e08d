/* What is refused, with the exact place and what is said; and the one spelling of what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "daemon/route/filter.h"
#include "daemon/route/match.h"
#include "tests/unit/filter-plan.h"

/* The linker's --wrap=calloc: the call after so many others fails. */
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

static unsigned calls_left = UINT32_MAX;

void *__wrap_calloc(size_t n, size_t size) {
        return calls_left-- == 0 ? NULL : __real_calloc(n, size);
}

typedef struct Diagnostic {
        const char *expression;
        unsigned position; /* 1 + byte offset */
        const char *text;  /* contained in the explanation */
} Diagnostic;

static const Diagnostic parse_mistakes[] = {
        { "", 1, "ends where a name" }, { " \t", 3, "ends where" }, { "u8 ==", 6, "ends where" }, { "u8 == 1 &&", 11, "ends where" },
        { "== 1", 1, "found '=='" }, { "u8 == == 1", 7, "found '=='" }, { "u8 1", 4, "found '1' where an operator" },
        { "u8 = 1", 4, "write ==" }, { "u8 + 1", 4, "no arithmetic: only" }, { "u8 == R+", 8, "in quotes, as in" }, { "u8 / 2 == 1", 4, "found '/'" }, { "u8 -1", 4, "no arithmetic" },
        { "u8 * 2", 4, "found '*'" }, { "-u8 == 1", 1, "directly before digits" }, { "u8 << 1", 5, "found '<'" },
        { "u8 @ 1", 4, "'@'" }, { "u8 == \xc3\xa9", 7, "'\\xc3'" }, { "u8 == 1 and s8", 9, "'&&', not 'and'" },
        { "u8 == 1 OR s8", 9, "'||', not 'or'" }, { "comm like \"x\"", 6, "~ with a pattern" }, { "u8 == 1; s8", 8, "';'" },
        { "exe glob \"*/sh\"", 5, "comm ~ \"nginx*\"" }, { "(comm GLOB \"x\")", 7, "comm ~ \"nginx*\"" },
        { "comm contains \"x\"", 6, "comm ~ \"*nginx*\"" }, { "comm matches \"x\"", 6, "~ with a pattern" },
        { "comm =~ \"x\"", 6, "no regular expression: write ~" }, { "comm !~ \"x\"", 6, "write != with a pattern" },
        { "(comm !~ \"x\")", 7, "write != with a pattern" }, { "comm is \"x\"", 6, "an operator (== != < <= > >= ~ & | && ||)" },

        { "(u8 == 1", 9, "')' of the '(' at 1" }, { "u8 == (1 | (2)", 15, "')' of the '(' at 7" }, { "u8 == 1)", 8, "no '(' is open" },
        { "()", 2, "found ')'" }, { "(u8 s8)", 5, "')' of the '(' at 1" }, { "args[", 6, "number of an element" },
        { "args[u8]", 6, "number of an element" }, { "args[-1]", 6, "numbered from 0" }, { "args[65536]", 6, "at most 65535" },
        { "args[1", 7, "']'" }, { "args[1)", 7, "']'" }, { "5[1]", 2, "found '['" }, { "args[0][1]", 8, "found '['" },

        { "u8 == 0x", 7, "hexadecimal digits" }, { "u8 == 0xg", 9, "'g' is not a digit of a hexadecimal" }, { "u8 == "
                "12a", 9, "'a' is not a digit" },
        { "u8 == 5ms", 8, "'ms': numbers have no units here, and are in that of the field: in nanoseconds write 5000000" },
        { "u8 > 3min", 7, "in nanoseconds write 180000000000" }, { "u8 == 16KiB", 9, "'KiB': numbers have no units here" },
        { "u8 & 4M", 7, "in bytes write 4194304" }, { "u8 == 5xs", 8, "'x' is not a digit" }, { "u8 == 0x5ms", 10, "'m' is not a digit" },
        { "u8 == 99999999999999999s", 24, "'s' is not a digit" },
        { "u8 == 08", 8, "octal" }, { "u8 == 1.5", 8, "'.' is not a digit" }, { "u64 == 18446744073709551616", 8, "64 bits" },
        { "u64 == 0x10000000000000000", 8, "64 bits" }, { "s64 == -9223372036854775809", 8, "64 bits" },

        { "comm == \"abc", 9, "unterminated text: expected another \"" }, { "comm == 'abc\"", 9, "another '" },
        { "comm == \"abc\\", 9, "unterminated" }, { "comm == \"abc\\\"", 9, "unterminated" }, { "comm == \"a\\qb\"", 11, "unknown escape \\q" },
        { "comm == \"\\x4\"", 10, "two hexadecimal digits" }, { "comm == \"\\x00\"", 10, "never matches" }, { "comm == \"\\0\"", 10, "escape \\0" },
        { "comm ~ \"a[bc\"", 10, "needs its ]" }, { "comm ~ \"a[]\"", 10, "needs its ]" }, { "comm ~ \"[z-a]\"", 10, "range" },
        { "comm ~ \"[!\\x01-\\xff]\"", 9, "no character" }, { "comm ~ \"[a", 8, "unterminated" }, { "comm ~ \"[a-\"", 9, "needs its ]" },

        { "!u8 == 1", 1, "!(... == ...)" }, { "!u8 & 1", 1, "!(... & ...)" }, { "u8 && !(s8) | 4", 7, "!(... | ...)" },
        { "1 < u8 < 5", 8, "do not chain" }, { "u8 & 1 == 1 & s8 == 2", 18, "do not chain" }, { "(u8 == 1) == 1", 2, "cannot be an operand of '=='" },
        { "u8 == (s8 == 1)", 8, "cannot be an operand of '=='" }, { "(u8 && s8) & 4", 2, "cannot be an operand of '&'" }, { "4 | !u8", 5, "found '!'" },
        { "u8 & (!s8)", 8, "cannot be an operand" }, { "\"abc\"", 1, "neither true nor false" }, { "u8 && \"abc\"", 7, "neither true" },
        { "!\"abc\"", 2, "neither true" }, { "\"a\" == \"a\"", 8, "and neither is a field" }, { "comm < \"a\"", 6, "not with <" },
        { "5 == \"abc\"", 6, "a text with a number" }, { "\"abc\" != 5", 1, "a text with a number" }, { "comm ~ abc", 8, "pattern in quotes" },
        { "comm ~ 5", 8, "pattern in quotes" }, { "5 ~ \"a\"", 1, "text field on its left" }, { "(u8 & 4) ~ \"a\"", 2, "text field on its left" },
};

/* Right as expressions, but not for this event. */
static const struct {
        Refusal refusal;
        Diagnostic mistake;
} compile_mistakes[] = {
        { REFUSED_NOT_FOUND, { "u8 == 1 && prev_com == \"a\"", 12, "'prev_com' is not a field of test:event; did you mean 'prev_comm'?" } },
        { REFUSED_NOT_FOUND, { "nothing", 1, "'nothing' is not a field of test:event. It has: u8, s8" } },
        { REFUSED_NOT_FOUND, { "comm == bash", 9, "a text into quotes" } },
        { REFUSED_NOT_FOUND, { "flags & O_CRAET", 9, "no value of 'flags'; did you mean 'O_CREAT'?" } },
        { REFUSED_NOT_FOUND, { "flags & \"O_CRAET\"", 9, "did you mean 'O_CREAT'?" } },
        { REFUSED_NOT_FOUND, { "flags && O_CREAT", 10, "'O_CREAT' is not a field" } }, /* another comparison */
        { REFUSED_NOT_FOUND, { "u8 & O_CREAT", 6, "'O_CREAT' is not a field" } },
        { REFUSED_NOT_FOUND, { "flags & O_CREAT[0]", 9, "'O_CREAT' is not a field" } },
        { REFUSED_NOT_FOUND, { "ip == 1", 1, "'ip' is not a field" } },
        { REFUSED_NOT_FOUND, { "sample.u8", 1, "'sample.u8' is not a field" } },
        { REFUSED_NOT_FOUND, { "1 || x", 6, "'x' is not a field" } }, /* also where nothing depends on it */
        { REFUSED_INVALID, { "prev_comm == 5", 14, "'prev_comm' is a text, and this is a number" } },
        { REFUSED_INVALID, { "prev_comm == u8 & 3", 14, "is a text, and this is a number" } },
        { REFUSED_INVALID, { "u8 == prev_comm", 7, "'prev_comm' is a text, and cannot be compared with a number" } },
        { REFUSED_INVALID, { "u8 == \"abc\"", 7, "'u8' is a number, and cannot be compared with a text" } },
        { REFUSED_INVALID, { "u8 == \"a\"", 7, "'u8' is a number, and cannot" } }, /* not a character */
        { REFUSED_INVALID, { "state == \"R*\"", 10, "'state' is a number, and cannot" } },
        { REFUSED_INVALID, { "u8 ~ \"abc\"", 1, "'u8' is a number" } },
        { REFUSED_INVALID, { "prev_comm & 4", 1, "has no bits" } },
        { REFUSED_INVALID, { "4 | prev_comm", 5, "has no bits" } },
        { REFUSED_INVALID, { "flag && prev_comm", 9, "'prev_comm' is a text: compare it" } },
        { REFUSED_INVALID, { "comm", 1, "'comm' is a text: compare it" } },
        { REFUSED_INVALID, { "!comm", 2, "is a text: compare it" } },
        { REFUSED_INVALID, { "prev_comm < next_comm", 11, "not with <" } },
        { REFUSED_INVALID, { "prev_comm > 'a'", 11, "not with >" } },
        { REFUSED_INVALID, { "args == 1", 1, "'args' is an array" } },
        { REFUSED_INVALID, { "list", 1, "'list' is an array" } },
        { REFUSED_INVALID, { "args[3] == 1", 1, "'args' has the elements 0 to 2, and not 3" } },
        { REFUSED_INVALID, { "u8[0] == 1", 1, "'u8' is not an array" } },
        { REFUSED_INVALID, { "cpu[0] == 1", 1, "'cpu' is not an array" } },
        { REFUSED_INVALID, { "prev_comm[0] == 'p'", 1, "'prev_comm' is not an array" } },
        { REFUSED_INVALID, { "u8 == 1 && event == comm", 12, "'event' is the name of the event, and can only be compared with a text" } },
        { REFUSED_INVALID, { "prev_comm == sample.event", 14, "'sample.event' is the name of the event, and can only" } },
        { REFUSED_INVALID, { "event == 5", 10, "'event' is a text, and this is a number" } },
        { REFUSED_INVALID, { "event", 1, "'event' is a text: compare it" } },
        { REFUSED_INVALID, { "blob == 1", 1, "neither a number nor a text" } },
};

static void check(int k, Refusal refusal, const Diagnostic *m, const Explanation *e) {
        const char *reason = refusal == REFUSED_INVALID ? "bad-expression" : "unknown-field";

        if (k != (int)refusal || e->position != m->position || !e->reason || strcmp(e->reason, reason) != 0 ||
            !strstr(e->text, m->text))
                fail_msg("%s: expected %d at %u (%s), found %d at %u: %s", m->expression, refusal, m->position, m->text, k,
                         e->position, e->text);
}

static void test_parse_mistakes(void **state) {
        for (size_t i = 0; i < ARRAY_SIZE(parse_mistakes); i++) {
                Filter *f = (Filter *)&parse_mistakes;
                Explanation e = EXPLANATION_NULL;
                int k = filter_parse(parse_mistakes[i].expression, &f, &e);

                check(k, REFUSED_INVALID, &parse_mistakes[i], &e);
                assert_ptr_equal(f, &parse_mistakes); /* untouched */
                assert_int_equal(filter_parse(parse_mistakes[i].expression, &f, NULL), REFUSED_INVALID);
        }
}

static void test_compile_mistakes(void **state) {
        _cleanup_(plan_unrefp) Plan *plan = filter_plan_new();

        for (size_t i = 0; i < ARRAY_SIZE(compile_mistakes); i++) {
                _cleanup_(filter_freep) Filter *f = NULL;
                MatchProgram *p = (MatchProgram *)&compile_mistakes;
                Explanation e = EXPLANATION_NULL;
                int k;

                if (filter_parse(compile_mistakes[i].mistake.expression, &f, &e) != 0)
                        fail_msg("%s: %s", compile_mistakes[i].mistake.expression, e.text);
                k = filter_compile(f, plan, "a:b", &p, &e);
                check(k, compile_mistakes[i].refusal, &compile_mistakes[i].mistake, &e);
                assert_ptr_equal(p, &compile_mistakes);
                assert_int_equal(filter_compile(f, plan, "a:b", &p, NULL), compile_mistakes[i].refusal);
        }
}

static int check_constants(const char *expression, const FilterSubject *subjects, size_t n, Explanation *e) {
        _cleanup_(filter_freep) Filter *f = NULL;

        if (filter_parse(expression, &f, e) != 0)
                fail_msg("%s: %s", expression, e->text);
        return filter_check_constants(f, subjects, n, e);
}

static const Diagnostic never[] = {
        { "u8 == 256", 7, "'u8' is a number from 0 to 255" },
        { "pid == 1 && 300 == u8", 13, "'u8' is a number from 0 to 255" },
        { "u8 > 255 || u8 == 3", 6, "never match" },
        { "u8 >= 0x100", 7, "never match" },
        { "s8 == 200", 7, "'s8' is a number from -128 to 127" },
        { "s8 < -128", 6, "'s8' is a number from -128 to 127" },
        { "s32 == 4294967295", 8, "from -2147483648 to 2147483647" },
        { "u64 == -1", 8, "from 0 to 18446744073709551615" },
        { "u32 < 0", 7, "from 0 to 4294967295" },
        { "small[1] == 40000", 13, "'small' is a number from -32768 to 32767" },
        { "u32 & 6 == 8", 12, "the bits of 'u32' that are left" },
        { "u32 | 1 == 2", 12, "the bits of 'u32' that are left" },
        { "cpu == 4", 8, "the CPUs of this host are 0 to 3" },
        { "sample.cpu >= 4", 15, "the CPUs of this host are 0 to 3" },
        { "uid == 4294967296", 8, "from 0 to 4294967295" },
        { "comm == \"a-name-of-16-bys\"", 9, "'comm' has 15 bytes at most, and this needs 16" },
        { "comm ~ \"a-name-of-16-bys*\"", 8, "as in comm ~" },
        { "!(next_comm == \"a-name-of-16-bys\")", 16, "'next_comm' has 15 bytes at most" },
};

static const char *const at_times[] = {
        "u8 == 255 && u8 >= 0", "u8 != 256", "u8 < 300", "s8 >= -128 && s8 == 127", "s32 == -2147483648", "u64 == 18446744073709551615",
        "u32 & 6 == 4", "u32 | 1 == 3", "cpu == 3 && cpu < 4", "comm == \"a-name-of-15-by\" || comm != \"a-name-of-16-bys\"",
        "comm ~ \"*a-name-of-15-b*\"", "filename == \"/a/name/that/is/longer/than/15\"", "flags == TOP", "err == EPERM", "state == \"R+\"",
        "u8 == u32", "1 == 2", "exe == \"/usr/bin/a-name-that-is-longer\"", "event == \"a-name-that-is-longer\"", "s8 & 1 == 4",
};

/* What no sample can fulfil is told with the place of the constant; what some can, or what is not written as a constant, is not. */
static void test_constants(void **state) {
        _cleanup_(plan_unrefp) Plan *plan = filter_plan_new(), *other = plan_new(2, "test", "wider");
        PlanField *wide = plan_add_field(other, "u8", "u64");
        const FilterSubject both[] = { { plan, "a:b", 4 }, { other, "a:c", 0 } };
        Explanation e = EXPLANATION_NULL;

        wide->element_size = 8;
        wide->count = 1;
        for (size_t i = 0; i < ARRAY_SIZE(never); i++)
                check(check_constants(never[i].expression, both, 1, &e), REFUSED_INVALID, &never[i], &e);
        for (size_t i = 0; i < ARRAY_SIZE(at_times); i++)
                if (check_constants(at_times[i], both, 1, &e) != 0)
                        fail_msg("%s: %s", at_times[i], e.text);
        assert_int_equal(check_constants("u8 == 256", both, 2, &e), 0); /* of the other event */
        assert_int_equal(check_constants("cpu == 4", both, 2, &e), 0);
        assert_int_equal(check_constants("u32 == 4294967296", both, 2, &e), REFUSED_INVALID); /* which the other does not have */
        assert_int_equal(check_constants("u32 == 4294967296", both + 1, 1, &e), 0);
        assert_int_equal(check_constants("u8 == 256", both, 0, &e), 0);
}

/* A name is listed once, also if both the event and every sample have it. */
static void test_names_once(void **state) {
        _cleanup_(plan_unrefp) Plan *plan = plan_new(1, "test", "few");
        _cleanup_(filter_freep) Filter *f = NULL;
        Explanation e = EXPLANATION_NULL;
        MatchProgram *p = NULL;

        for (size_t i = 0; i < 2; i++) {
                PlanField *field = plan_add_field(plan, i == 0 ? "pid" : "uid", "int");

                field->element_size = field->count = 1;
        }
        assert_int_equal(filter_parse("nosuch == 1", &f, &e), 0);
        assert_int_equal(filter_compile(f, plan, "a:b", &p, &e), REFUSED_NOT_FOUND);
        assert_string_equal(e.text, "'nosuch' is not a field of test:few. "
                                    "It has: pid, uid, tid, cpu, time, comm, event, exe, cgroup, container, unit");
}

static void test_no_plan(void **state) {
        _cleanup_(filter_freep) Filter *f = NULL;
        MatchProgram *p = NULL;
        Explanation e = EXPLANATION_NULL;

        assert_int_equal(filter_parse("perod == 1", &f, &e), 0);
        assert_int_equal(filter_compile(f, NULL, NULL, &p, &e), REFUSED_NOT_FOUND);
        assert_string_equal(e.text, "'perod' is not a field of this event; did you mean 'period'? "
                                    "It has: pid, tid, cpu, time, ip, addr, period, comm, uid, exe, cgroup, container, unit");
        assert_int_equal(e.position, 1);
}

/* n times `each`, between `before` and `after` */
static char *repeat(const char *before, const char *each, size_t n, const char *after) {
        char *text = calloc(1, strlen(before) + n * strlen(each) + strlen(after) + 1), *end = text;

        assert_non_null(text);
        end = stpcpy(end, before);
        for (size_t i = 0; i < n; i++)
                end = stpcpy(end, each);
        stpcpy(end, after);
        return text;
}

static void check_limit(const char *before, const char *each, size_t n, const char *after, unsigned position, const char *what) {
        _cleanup_free_ char *text = repeat(before, each, n, after);
        Filter *f = NULL;
        Explanation e = EXPLANATION_NULL;
        int k = filter_parse(text, &f, &e);

        if (position == 0) {
                if (k != 0)
                        fail_msg("%s: %s", text, e.text);
        } else
                check(k, REFUSED_INVALID, &(Diagnostic){ text, position, what }, &e);
        filter_free(f);
}

static void test_limits(void **state) {
        check_limit("u8 == 1", " ", 4089, "", 0, NULL);
        check_limit("u8 == 1", " ", 4090, "", 4097, "4096 bytes");
        check_limit("u8", "||u8", 255, "", 0, NULL);
        check_limit("u8", "||u8", 256, "", 3 + 4 * 255 + 2, "256 names");
        check_limit("", "!", 64, "u8", 0, NULL);
        check_limit("", "!", 65, "u8", 65, "64 nested ( and !");
        check_limit("", "(", 64, "", 65, "ends where");
        check_limit("", "(", 65, "", 65, "64 nested ( and !");
        check_limit("", "!(", 33, "u8", 65, "64 nested ( and !");
        check_limit("u8 || (s8) || !s8 || ", "(s8) || ", 100, "s8", 0, NULL); /* beside each other is not deep */
        check_limit("comm ~ \"*", "?", 64, "*\"", 0, NULL);
        check_limit("comm ~ \"*", "?", 65, "*\"", 8, "at most 64");
        check_limit("comm ~ \"*", "a", 1000, "*\"", 0, NULL);
        check_limit("comm ~ \"", "?", 1000, "*\"", 0, NULL);
}

static void test_canonical(void **state) {
        static const char *const same[][2] = {
                { "a==1", "a == 1" }, { " a == 0x1 ", "a == 1" }, { "((a))==(01)", "a == 1" }, { "a == '\\x01'", "a == '\\x01'" },
                { "a&&b||c", "a && b || c" }, { "a&&(b||c)", "a && (b || c)" }, { "(a&&(b&&c))", "a && b && c" },
                { "a||(b||(c&&d))", "a || b || c && d" }, { "a&6==2", "a & 6 == 2" }, { "(a&6)==2", "a & 6 == 2" },
                { "a&(b|c)&d", "a & (b | c) & d" }, { "a|(b|c&d)", "a | b | c & d" }, { "!(a)", "!a" }, { "!(!(a==-0x10))", "!!(a == -16)" },
                { "!(a && b)", "!(a && b)" }, { "!(a & 4)", "!(a & 4)" }, { "a == -0", "a == 0" }, { "a[007]<=b[1]", "a[7] <= b[1]" },
                { "a == 0xffffffffffffffff", "a == 18446744073709551615" }, { "a ~ 'x**\\*?'", "a ~ \"x*\\*?\"" },
                { "a ~ '[^!a-cb\\]]\\['", "a ~ \"[\\x01- \\\"-\\\\\\^-`d-\\xff]\\[\"" }, { "a == 'it\\'s \"'", "a == \"it\\'s \\\"\"" },
                { "a != \"\xc3\xa9\\n\"", "a != \"\\xc3\\xa9\\x0a\"" }, { "a == 'x'", "a == 'x'" }, { "a == \"x\"", "a == \"x\"" },
                { "sample.pid==1", "sample.pid == 1" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(same); i++)
                for (int k = 0; k < 2; k++) {
                        _cleanup_(filter_freep) Filter *f = NULL;
                        _cleanup_free_ char *text = NULL;
                        Explanation e = EXPLANATION_NULL;

                        if (filter_parse(same[i][k], &f, &e) != 0)
                                fail_msg("%s: %s", same[i][k], e.text);
                        text = filter_canonical(f);
                        assert_string_equal(text, same[i][1]);
                }
}

/* In comparisons of a number; of a pattern, with its longest part between two stars at each place. */
static void test_cost(void **state) {
        static const struct {
                const char *expression;
                size_t cost;
        } costs[] = {
                { "u8 == 1", 1 }, { "u8", 1 }, { "!u8", 1 }, { "u8 || s8 && args[1]", 3 }, { "u8 & 3 == 1 && s8 >= 0", 2 },
                { "u8 & s8 == 1", 4 }, { "u8 == s8", 2 }, { "u8 == 'a'", 1 }, { "comm == \"x\"", 2 }, { "\"x\" != comm", 2 },
                { "comm ~ \"x*\"", 3 }, { "comm ~ \"*x\"", 3 }, { "comm ~ \"*abcdefgh*\"", 3 + 9 },
                { "comm ~ \"*3e8?[!z]?*0\"", 3 + 11 * 6 / 8 }, { "sample.comm ~ \"*[ab][ab][ab]*c*\"", 3 + 16 },
                { "comm ~ \"*aaaaaaaaaaaaaaaa[ab]*\"", 1 }, { "path ~ \"*/lib*.so*\"", 3 + 254 },
                { "path ~ \"/lib*\" || path ~ \"*??*\"", 3 + 3 + 255 * 2 / 8 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(costs); i++) {
                _cleanup_(filter_freep) Filter *f = NULL;

                assert_int_equal(filter_parse(costs[i].expression, &f, NULL), 0);
                if (filter_cost(f) != costs[i].cost)
                        fail_msg("%s costs %zu instead of %zu", costs[i].expression, filter_cost(f), costs[i].cost);
        }
}

/* What the dispatcher has of it: as above, but paths are remembered; 3 for each, and a half for what joins its parts. */
static void test_decision_cost(void **state) {
        static const struct {
                const char *expression;
                size_t cost;
        } costs[] = {
                { "u8 == 1", 0 }, { "uid == 1", 4 }, { "!(uid == 1)", 5 }, { "comm == \"x\"", 5 }, { "comm ~ \"*abcdefgh*\"", 3 + 12 },
                { "comm == \"x\" && u8 == 1", 3 + 2 + 1 + 1 }, { "uid == 1 && u8 && !u16", 3 + 1 + 2 + 2 },
                { "exe ~ \"*/lib*.so*\"", 3 + 2 + 257 / 16 }, { "u8 & s8 == 1 || cgroup == \"/a\"", 3 + 1 + 2 + 1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(costs); i++) {
                _cleanup_(filter_freep) Filter *f = NULL;

                assert_int_equal(filter_parse(costs[i].expression, &f, NULL), 0);
                filter_ask_for_comm(f);
                if (filter_decision_cost(f) != costs[i].cost)
                        fail_msg("%s costs the dispatcher %zu instead of %zu", costs[i].expression, filter_decision_cost(f),
                                 costs[i].cost);
        }
}

static int make(const char *text, const Plan *plan, Filter **ret_filter, MatchProgram **ret_program) {
        int k = filter_parse(text, ret_filter, NULL);

        return k ?: filter_compile(*ret_filter, plan, NULL, ret_program, NULL);
}

/* Each allocation fails once: -ENOMEM, and nothing is left behind, as a sanitizer sees. */
static void test_no_memory(void **state) {
        _cleanup_(plan_unrefp) Plan *plan = filter_plan_new();
        unsigned n = 0;
        int k;

        do {
                _cleanup_(match_program_unrefp) MatchProgram *program = NULL;
                _cleanup_(filter_freep) Filter *filter = NULL;

                calls_left = n++;
                k = make("comm ~ \"*[ab]*\" && u8 == 200 || path != \"x\" && next_comm == \"y\"", plan, &filter, &program);
                calls_left = UINT32_MAX;
                assert_true(k == 0 ? program != NULL : k == -ENOMEM && !program);
        } while (k != 0);
        assert_int_equal(n, 1 + 5 + 2 + 4 + 3); /* the filter, operands and scopes, the program, three patterns */
}

static void test_null(void **state) {
        assert_null(filter_free(NULL));
        assert_null(match_program_unref(NULL));
        assert_null(match_program_ref(NULL));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parse_mistakes), cmocka_unit_test(test_compile_mistakes), cmocka_unit_test(test_constants), cmocka_unit_test(test_names_once), cmocka_unit_test(test_no_plan),
                cmocka_unit_test(test_limits),         cmocka_unit_test(test_canonical),        cmocka_unit_test(test_null),
                cmocka_unit_test(test_no_memory),      cmocka_unit_test(test_cost), cmocka_unit_test(test_decision_cost),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
