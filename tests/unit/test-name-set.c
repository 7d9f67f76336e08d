/* Sets of names: each once, in the order of the first time, up to a bound that counts different ones only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "daemon/base/name-set.h"

#define N 1000

static void test_each_once(void **state) {
        static char a[] = "a", b[] = "b", c[] = "c";
        char *const names[] = { b, a, b, c, a, b };
        NameSet s = NAME_SET_NULL;
        size_t at = 77;
        bool more;

        assert_false(name_set_find(&s, "a", &at));
        assert_int_equal(name_set_fill(&s, names, 6, 3, &more, NULL), 0);
        assert_false(more); /* what is named again needs no room */
        assert_int_equal(s.list.n, 3);
        assert_string_equal(s.list.items[0], "b");
        assert_string_equal(s.list.items[1], "a");
        assert_string_equal(s.list.items[2], "c");
        assert_false(name_set_find(&s, "d", &at));
        assert_int_equal(at, 77);
        assert_true(name_set_find(&s, "c", &at));
        assert_int_equal(at, 2);
        name_set_deinit(&s);
        name_set_deinit(&s);
}

static void test_bound(void **state) {
        static char a[] = "a", b[] = "b", c[] = "c";
        char *const names[] = { a, a, b, a, c };
        NameSet s = NAME_SET_NULL;
        bool more;

        assert_int_equal(name_set_fill(&s, names, 4, 2, &more, NULL), 0);
        assert_false(more);
        name_set_deinit(&s);
        assert_int_equal(name_set_fill(&s, names, 5, 2, &more, NULL), 0);
        assert_true(more);
        assert_int_equal(s.list.n, 2);
        name_set_deinit(&s);
}

static void test_many(void **state) {
        static char texts[N][8];
        char *names[2 * N];
        NameSet s = NAME_SET_NULL;
        size_t at;
        bool more;

        for (size_t i = 0; i < N; i++) {
                (void)snprintf(texts[i], sizeof(texts[i]), "n%zu", i);
                names[i] = names[2 * N - 1 - i] = texts[i];
        }
        assert_int_equal(name_set_fill(&s, names, 2 * N, N, &more, NULL), 0);
        assert_false(more);
        assert_int_equal(s.list.n, N);
        for (size_t i = 0; i < N; i++) {
                assert_true(name_set_find(&s, texts[i], &at));
                assert_int_equal(at, i);
        }
        name_set_deinit(&s);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_once),
                cmocka_unit_test(test_bound),
                cmocka_unit_test(test_many),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
