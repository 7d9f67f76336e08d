/* What people wrote, and what they may have meant: names that are near, and lists of CPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "config/text/words.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/cpu-list.h"

static void check_near(const char *wanted, const char *expected) {
        static const char *const names[] = { "sched_switch", "sched_waking", "sched_wakeup", "sys_enter_openat",
                                             "sys_enter_open", "x", "sched_switching" };
        Nearest near = NEAREST_NULL;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                nearest_add(&near, wanted, names[i]);
        assert_string_equal(HINT(&near), expected);
}

static void test_near(void **state) {
        Nearest near = NEAREST_NULL;
        char longest[98], hint[NEAREST_HINT_SIZE];

        check_near("sched_swich", "; did you mean 'sched_switch'?");
        check_near("shced_switch", "; did you mean 'sched_switch'?");
        check_near("sched_witching", "; did you mean 'sched_switching'?");
        check_near("sys_enter_opena", "; did you mean 'sys_enter_openat'?"); /* the first of two as near */
        check_near("entirely_else", "");
        check_near("", "");
        assert_string_equal(HINT(&near), "");

        /* what is too long to be compared is not near; the longest that is not fits */
        memset(longest, 'a', 97);
        longest[97] = '\0';
        check_near(longest, "");
        nearest_add(&near, longest, longest + 1);
        nearest_add(&near, longest + 1, longest);
        assert_null(near.word);
        nearest_add(&near, longest + 2, longest + 1);
        assert_ptr_equal(near.word, longest + 1);
        assert_int_equal(strlen(nearest_hint(&near, hint)), strlen("; did you mean ''?") + 96);
}

/* As many as a daemon may have, all as long as a hint may be, and all wrong only at their ends: what costs most. */
static void test_much_to_compare(void **state) {
        char wanted[97], candidate[97];
        Nearest near = NEAREST_NULL;

        for (unsigned i = 0; i < sizeof(wanted) - 1; i++) {
                wanted[i] = (char)('a' + i % 3);
                candidate[i] = i < 60 ? wanted[i] : 'x';
        }
        wanted[96] = candidate[96] = '\0';
        for (unsigned i = 0; i < 10000; i++)
                nearest_add(&near, wanted, candidate);
        assert_null(near.word);
        assert_true(near.n_compared <= NEAREST_COMPARES + sizeof(wanted) * sizeof(wanted));
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
                cmocka_unit_test(test_much_to_compare),
                cmocka_unit_test(test_cpu_list),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
