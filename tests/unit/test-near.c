/* What people wrote, and what they may have meant: names that are near, and lists of CPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/cpu-list.h"
#include "daemon/kernel/near.h"

static char *const names[] = {
        (char *)"sched_switch", (char *)"sched_waking", (char *)"sched_wakeup", (char *)"sys_enter_openat",
        (char *)"sys_enter_open", (char *)"x", (char *)"sched_switching",
};

static void check_near(const char *wanted, const char *expected) {
        char text[NEAR_TEXT_SIZE];

        memset(text, '#', sizeof(text));
        near_text(wanted, names, ARRAY_SIZE(names), text);
        assert_string_equal(text, expected);
}

static void test_near(void **state) {
        char *long_names[3], longest[301], text[NEAR_TEXT_SIZE];

        check_near("sched_swich", ": did you mean sched_switch or sched_switching?");
        check_near("sched_witching", ": did you mean sched_switching, sched_switch or sched_waking?");
        check_near("sys_enter_opena", ": did you mean sys_enter_openat or sys_enter_open?"); /* the first of two as near */
        check_near("entirely_else", "");
        check_near("", ": did you mean x?");
        near_text("x", names, 0, text);
        assert_string_equal(text, "");

        /* what is too long to be compared is not near, and what does not fit is cut */
        memset(longest, 'a', 300);
        longest[300] = '\0';
        check_near(longest, "");
        for (size_t i = 0; i < 3; i++) {
                long_names[i] = strndup(longest, 94 + i);
                assert_non_null(long_names[i]);
        }
        near_text(long_names[0], long_names, 3, text);
        assert_int_equal(strlen(text), NEAR_TEXT_SIZE - 1);
        assert_int_equal(strncmp(text, ": did you mean aaaa", 19), 0);
        for (size_t i = 0; i < 3; i++)
                free(long_names[i]);
}

static void check_cpus(const char *text, size_t n, const uint32_t *expected) {
        _cleanup_free_ uint32_t *cpus = NULL;
        size_t n_cpus = 0;

        assert_int_equal(cpu_list_parse(text, &cpus, &n_cpus, NULL), 0);
        assert_int_equal(n_cpus, n);
        assert_memory_equal(cpus, expected, n * sizeof(*cpus));
}

#define CHECK_CPUS(text, ...)                                                                                          \
        do {                                                                                                           \
                const uint32_t expected_[] = { __VA_ARGS__ };                                                          \
                check_cpus((text), ARRAY_SIZE(expected_), expected_);                                                  \
        } while (0)

static void test_cpu_list(void **state) {
        static const struct {
                const char *text;
                unsigned position;
        } wrong[] = {
                { "", 1 }, { "\n", 1 }, { ",", 1 }, { "0,", 3 }, { "a", 1 }, { "1-", 3 }, { "-1", 1 }, { "3-1", 3 },
                { "+1", 1 }, { " 1", 1 }, { "1 ", 2 }, { "0-3,,4", 5 }, { "8192", 1 }, { "0-8192", 3 }, { "1\n2", 3 },
                { "99999999999999999999", 1 }, { "4294967296", 1 }, { "1-2-3", 4 }, { "1-3:2", 4 },
        };
        _cleanup_free_ uint32_t *all = NULL;
        size_t n;

        CHECK_CPUS("0", 0);
        CHECK_CPUS("0-3,8", 0, 1, 2, 3, 8);
        CHECK_CPUS("0-1\n", 0, 1);
        CHECK_CPUS("8,3-5,4,0,3-3,8", 0, 3, 4, 5, 8);
        CHECK_CPUS("8191", 8191);
        CHECK_CPUS("007", 7);
        assert_int_equal(cpu_list_parse("0-8191", &all, &n, NULL), 0);
        assert_int_equal(n, 8192);
        for (size_t i = 0; i < n; i++)
                assert_int_equal(all[i], i);
        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                Explanation e = EXPLANATION_NULL;
                uint32_t *untouched = (uint32_t *)&e;

                n = 77;
                assert_int_equal(cpu_list_parse(wrong[i].text, &untouched, &n, &e), REFUSED_INVALID);
                if (e.position != wrong[i].position)
                        fail_msg("'%s': position %u", wrong[i].text, e.position);
                assert_string_equal(e.reason, "bad-target");
                assert_ptr_equal(untouched, &e);
                assert_int_equal(n, 77);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_near),
                cmocka_unit_test(test_cpu_list),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
