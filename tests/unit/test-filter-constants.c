/* Constants in the kernel's filters that do not fit: what is refused, where, and what is the kernel's to judge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/kernel/tracefs/filter-constants.h"
#include "tests/unit/filter-plan.h"

#define LONG_NAME "a-name-of-16-bys"

static void test_refused(void **state) {
        static const struct {
                const char *filter;
                unsigned position;
                const char *text;
        } cases[] = {
                { "u8 == 300", 7, "'u8', which has 8 bits, with a number that has more: the kernel would compare it with 44" },
                { "s8 < -129", 6, "compare it with 127" },
                { "(pid == 1) && (u16&0x10000||u8==1)", 20, "'u16', which has 16 bits" },
                { "s32 == 4294967296 || u8 == 1", 8, "'s32', which has 32 bits" },
                { "filename ~ \"u8 == 300\" && u8 != 256", 33, "compare it with 0" },
                { "cpu == 4", 8, "the CPUs of this host are 0 to 3" },
                { "CPU > 3", 7, "the CPUs of this host are 0 to 3" },
                { "comm == \"" LONG_NAME "\"", 10, "this one of 'comm' needs 16" },
                { "COMM ~ '*" LONG_NAME "*'", 9, "as in COMM ~ \"name*\"" },
                { "prev_comm == \"" LONG_NAME "\"", 15, "this one of 'prev_comm' needs 16" },
        };
        _cleanup_(plan_unrefp) Plan *plan = filter_plan_new();

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Explanation e = EXPLANATION_NULL;

                if (filter_constants_check(plan, cases[i].filter, 4, &e) != REFUSED_INVALID || strcmp(e.reason, "bad-filter") != 0 ||
                    e.position != cases[i].position || !strstr(e.text, cases[i].text))
                        fail_msg("%s: %u: %s", cases[i].filter, e.position, e.text);
                assert_int_equal(filter_constants_check(plan, cases[i].filter, 4, NULL), REFUSED_INVALID);
        }
}

static void test_taken(void **state) {
        static const char *const filters[] = {
                "", " ", "u8 == 255 && s8 == -128", "s8 == 0xff", "s32 == 0xffffffff && s32 == -2147483648", "u64 == 0xffffffffffffffff",
                "u64 == 18446744073709551616", "nosuch == 99999999999", "cpu == 3 && CPU < 100", "cpu != 100", "cpu & CPUS{0-100}", "comm == \"a-name-of-15-by\"",
                "comm != \"" LONG_NAME "\"", "comm ~ \"[a-z][a-z][a-z][a-z][a-z]\"", "filename == \"" LONG_NAME "\"", "filename.ustring ~ \"" LONG_NAME "*\"",
                "u8 ==", "u8", "== 300", "\"u8 == 300", "u8 == 300x", "args == 300", "u8 && 300", "common_pid == 99999999999",
        };
        _cleanup_(plan_unrefp) Plan *plan = filter_plan_new();

        for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
                Explanation e = EXPLANATION_NULL;

                if (filter_constants_check(plan, filters[i], 4, &e) != 0)
                        fail_msg("%s: %u: %s", filters[i], e.position, e.text);
        }
        assert_int_equal(filter_constants_check(NULL, "u8 == 300", 4, NULL), 0);
        assert_int_equal(filter_constants_check(plan, "cpu == 100", 0, NULL), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_refused), cmocka_unit_test(test_taken) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
