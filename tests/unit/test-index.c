/* Indexes against a plain list, with numbers and names that come and go; values under equal keys; ten thousand of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/index.h"

#define N 10000

static uint32_t values[N];

static size_t count_under(const Index *i, uint64_t key, const void *wanted, bool *ret_found) {
        size_t at = 0, n = 0;
        const void *value;

        *ret_found = false;
        while ((value = index_next(i, key, &at))) {
                *ret_found |= value == wanted;
                n++;
        }
        return n;
}

static void test_empty(void **state) {
        Index i = INDEX_NULL;
        size_t at = 0;

        assert_null(index_next(&i, 1, &at));
        assert_int_equal(index_reserve(&i, 0), 0);
        assert_null(index_next(&i, 1, &at));
        index_deinit(&i);
        index_deinit(&i);
}

/* Random steps; after each, what is under the key is what the list says. Few keys: many values under one, many in a row. */
static void test_model(void **state) {
        for (unsigned n_keys = 1; n_keys <= 256; n_keys *= 4) {
                Index i = INDEX_NULL;
                bool is_in[512] = { false };
                size_t n = 0;

                srandom(n_keys);
                for (int step = 0; step < 20000; step++) {
                        const size_t v = (size_t)random() % 512;
                        const uint64_t key = v % n_keys;
                        size_t expected = 0;
                        bool found;

                        if (!is_in[v]) {
                                assert_int_equal(index_reserve(&i, 1), 0);
                                index_add(&i, index_key_of_number(key), &values[v]);
                        } else
                                index_remove(&i, index_key_of_number(key), &values[v]);
                        is_in[v] = !is_in[v];
                        n = is_in[v] ? n + 1 : n - 1;
                        for (size_t k = key; k < 512; k += n_keys)
                                expected += is_in[k];
                        assert_int_equal(count_under(&i, key, &values[v], &found), expected);
                        assert_true(found == is_in[v]);
                        assert_int_equal(i.n, n);
                }
                index_deinit(&i);
        }
}

static void test_names(void **state) {
        Index i = INDEX_NULL;
        char name[32];
        size_t longest = 0;

        assert_int_equal(index_reserve(&i, N), 0);
        for (int k = 0; k < N; k++) {
                (void)snprintf(name, sizeof(name), "external:event-%d", k);
                index_add(&i, index_key_of_name(name), &values[k]);
        }
        for (int k = 0; k < N; k++) {
                size_t at = 0;

                (void)snprintf(name, sizeof(name), "external:event-%d", k);
                assert_ptr_equal(index_next(&i, index_key_of_name(name), &at), &values[k]);
                longest = at > longest ? at : longest;
                assert_null(index_next(&i, index_key_of_name(name), &at));
        }
        assert_true(longest < 100); /* slots that are looked at: with half of them free, a few dozen at most */
        assert_true(index_key_of_name("") != index_key_of_name("a"));
        assert_true(index_key_of_name("aaaaaaa") != index_key_of_name("aaaaaaaa"));
        for (int k = 0; k < N; k++) {
                (void)snprintf(name, sizeof(name), "external:event-%d", k);
                index_remove(&i, index_key_of_name(name), &values[k]);
        }
        assert_int_equal(i.n, 0);
        index_deinit(&i);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_empty),
                cmocka_unit_test(test_model),
                cmocka_unit_test(test_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
