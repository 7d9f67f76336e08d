/* External events: what a field can be, and what is said of a value that it cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/model/external-plan.h"

/* What is said of `number` in a field of this type; "" is that it fits. */
static void assert_said(const char *type, uint64_t number, bool is_signed, const char *expected) {
        _cleanup_(plan_unrefp) Plan *plan = NULL;
        static uint8_t raw[EXTERNAL_RAW_MAX];
        ExternalInput value = { .number = number, .is_number = true, .is_signed = is_signed };
        char field[32];
        char *items[] = { field };
        Strings fields = { .items = items, .n = 1 };
        Explanation e = EXPLANATION_NULL;
        size_t size;
        int r;

        (void)snprintf(field, sizeof(field), "code:%s", type);
        assert_int_equal(external_plan_new("x", &fields, &plan, &e), 0);
        r = external_raw_encode(plan, &value, 1, raw, &size, &e);
        assert_int_equal(r, *expected ? REFUSED_INVALID : 0);
        assert_string_equal(r ? e.text : "", expected);
        if (r != 0)
                assert_string_equal(e.reason, "bad-value");
}

static void test_ranges(void **state) {
        static const struct {
                const char *type;
                int64_t least;
                uint64_t most;
        } rows[] = {
                { "u8", 0, UINT8_MAX },          { "u16", 0, UINT16_MAX },         { "u32", 0, UINT32_MAX },
                { "s8", INT8_MIN, INT8_MAX },    { "s16", INT16_MIN, INT16_MAX },  { "s32", INT32_MIN, INT32_MAX },
                { "s64", INT64_MIN, INT64_MAX }, { "bool", 0, 1 },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                char expected[256];

                assert_said(rows[i].type, (uint64_t)rows[i].least, rows[i].least < 0, "");
                assert_said(rows[i].type, rows[i].most, false, "");
                (void)snprintf(expected, sizeof(expected), "field code is of the type %s, from %lld to %llu, and %llu was given",
                               rows[i].type, (long long)rows[i].least, (unsigned long long)rows[i].most,
                               (unsigned long long)rows[i].most + 1);
                assert_said(rows[i].type, rows[i].most + 1, false, expected);
        }
        assert_said("u64", UINT64_MAX, false, "");
        assert_said("u64", (uint64_t)-1, true, "field code is of the type u64, from 0 to 18446744073709551615, and -1 was given");
        assert_said("u32", (uint64_t)INT64_MIN, true,
                    "field code is of the type u32, from 0 to 4294967295, and -9223372036854775808 was given");
        assert_said("u8", 5, true, "field code is of the type u8, which takes `number`, and a `signed_number` was given");
        assert_said("bool", 1, true, "field code is of the type bool, which takes `number`, and a `signed_number` was given");
        assert_said("s8", (uint64_t)-129, true, "field code is of the type s8, from -128 to 127, and -129 was given");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_ranges),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
