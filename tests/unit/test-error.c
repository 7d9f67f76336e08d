/* Refusals, and texts of peers that have to become valid UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/error.h"

static void test_refuse(void **state) {
        Explanation e = { .position = 7 };

        assert_int_equal(refuse(&e, REFUSED_EXISTS, "exists", "%s is there", "x"), REFUSED_EXISTS);
        assert_string_equal(e.text, "x is there");
        assert_string_equal(e.reason, "exists");
        assert_int_equal(e.position, 0);
        assert_int_equal(refuse(NULL, REFUSED_DENIED, "no", "no"), REFUSED_DENIED);
}

static void test_utf8(void **state) {
        static const char *const pairs[][2] = {
                { "plain", "plain" },
                { "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x9d", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x9d" },
                { "cut \xe2\x82", "cut ??" },
                { "\xff" "a\x80", "?a?" },
                { "\xc0\xaf", "??" },                         /* overlong */
                { "\xe0\x9f\xbf", "???" },
                { "\xed\xa0\x80", "???" },                     /* a surrogate */
                { "\xf4\x90\x80\x80", "????" },                 /* above U+10FFFF */
                { "\xf0\x9f\x90", "???" },
                { "\xc3" "\xc3\xa9", "?\xc3\xa9" },
        };

        for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
                char text[32];

                strcpy(text, pairs[i][0]);
                utf8_mend(text);
                assert_string_equal(text, pairs[i][1]);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_refuse), cmocka_unit_test(test_utf8) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
