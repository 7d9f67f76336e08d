/* Globs match what fnmatch(3) says, whatever they are made of, and what would take long is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/glob.h"

#define ROUNDS 300000

static bool matches(const char *glob, const char *text) {
        _cleanup_(pattern_freep) Pattern *pattern = NULL;
        Explanation e = EXPLANATION_NULL;

        assert_int_equal(glob_compile(glob, &pattern, &e), 0);
        return glob_match(pattern, text);
}

static void test_words(void **state) {
        static const struct {
                const char *glob, *text;
                bool matches;
        } cases[] = {
                { "sched:*", "sched:sched_switch", true },
                { "*", "", true },
                { "", "", true },
                { "", "a", false },
                { "sys_enter_??ad", "sys_enter_read", true },
                { "*[!a-f]", "sched:g", true },
                { "*[^a-f]", "sched:e", false },
                { "[[:digit:]x]*", "7up", true },
                { "[[:alpha:]]", "\xe4", false },
                { "[]a]", "]", true },
                { "[a", "[a", true },
                { "a\\*", "a*", true },
                { "a\\*", "ab", false },
                { "/x/*", "/x/.y/z", true },
                { "[\xe4]", "\xe4", true },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
                if (matches(cases[i].glob, cases[i].text) != cases[i].matches)
                        fail_msg("'%s' and '%s'", cases[i].glob, cases[i].text);
}

/* Texts and globs of few characters, so that most of them meet. */
static void test_as_fnmatch(void **state) {
        static const char letters[] = "aabbc-*?[]!^*", plain[] = "aabbc-]!^";
        unsigned n_matched = 0;

        srandom(1);
        for (unsigned i = 0; i < ROUNDS; i++) {
                char glob[12] = "", text[10] = "";
                bool expected;

                for (long n = random() % 11; n > 0; n--)
                        glob[n - 1] = letters[random() % (long)(sizeof(letters) - 1)];
                for (long n = random() % 9; n > 0; n--)
                        text[n - 1] = plain[random() % (long)(sizeof(plain) - 1)];
                expected = fnmatch(glob, text, 0) == 0;
                n_matched += expected;
                if (matches(glob, text) != expected)
                        fail_msg("'%s' and '%s': fnmatch(3) says %d", glob, text, expected);
        }
        assert_true(n_matched > ROUNDS / 100);
}

static void test_limits(void **state) {
        Explanation e = EXPLANATION_NULL;
        Pattern *pattern = NULL;
        char glob[GLOB_MAX + 2], *sets;

        memset(glob, 'a', sizeof(glob) - 1);
        glob[sizeof(glob) - 1] = '\0';
        assert_int_equal(glob_compile(glob, &pattern, &e), REFUSED_INVALID);
        glob[GLOB_MAX] = '\0';
        glob[0] = '*';
        glob[GLOB_MAX - 1] = '*';
        assert_true(matches(glob, "b") == false); /* plain: found in linear time */
        glob[7] = '?';
        assert_int_equal(glob_compile(glob, &pattern, &e), REFUSED_INVALID);
        assert_string_equal(e.reason, "bad-name");
        for (size_t i = 0; i < 65; i++)
                memcpy(glob + 3 * i, "[a]", 4);
        assert_int_equal(glob_compile(glob, &pattern, &e), REFUSED_INVALID);
        glob[64 * 3] = '\0';
        sets = glob;
        assert_false(matches(sets, "a"));
        /* one set of a thousand characters is one place */
        memset(glob, 'x', GLOB_MAX);
        memcpy(glob, "*[", 2);
        glob[GLOB_MAX - 1] = ']';
        glob[GLOB_MAX] = '\0';
        assert_true(matches(glob, "zx"));
}

/* What a person would not mean, with its place; all else is what it is. */
static void test_broken(void **state) {
        static const struct {
                const char *glob;
                unsigned position; /* 0: it is whole */
        } cases[] = { { "", 0 }, { "web*", 0 }, { "[", 1 }, { "web-[0-9", 5 }, { "[]", 1 }, { "[]]", 0 }, { "[!]", 1 }, { "[a][b", 4 },
                      { "\\[", 0 }, { "[\\]", 1 }, { "[\\]]", 0 }, { "a\\", 2 }, { "a\\\\", 0 }, { "[[:alpha:]", 1 }, { "[[:alpha:]]", 0 }, { "]", 0 } };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                Explanation e = EXPLANATION_NULL;
                int r = glob_check(cases[i].glob, &e);

                if (r != (cases[i].position > 0 ? REFUSED_INVALID : 0) || e.position != cases[i].position)
                        fail_msg("'%s': %d at %u: %s", cases[i].glob, r, e.position, e.text);
        }
}

static void test_sizes(void **state) {
        assert_true(glob_size("sched:*") < 200);
        assert_true(glob_size("[a][b]") > glob_size("ab"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_words),
                cmocka_unit_test(test_as_fnmatch),
                cmocka_unit_test(test_limits),
                cmocka_unit_test(test_broken),
                cmocka_unit_test(test_sizes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
