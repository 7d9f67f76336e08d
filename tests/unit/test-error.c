/* Refusals. */
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

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_refuse) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
