/*
 * Who descends from whom: whatever the order in which births are told, and however many others are born; and that one
 * entry is never put together from two, however many write and read at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <assert.h>

#include "daemon/base/thread.h"
#include "daemon/model/process-tree.h"

static uint32_t root_of(const ProcessTree *t, uint32_t tid) {
        ProcessTreeEntry k;

        return process_tree_get(t, tid, &k) ? process_tree_root(t, &k) : 0;
}

static size_t count_living(const ProcessTree *t) {
        size_t at = 0, n = 0;
        ProcessTreeEntry k;

        while (process_tree_next(t, &at, &k))
                n += !k.has_ended && process_tree_root(t, &k) != 0;
        return n;
}

static void test_generations(void **state) {
        ProcessTree t;
        ProcessTreeEntry k;

        assert_int_equal(process_tree_init(&t, 4096), 0);
        assert_false(t.is_used);
        process_tree_add_root(&t, 10);
        assert_true(t.is_used);
        process_tree_add(&t, 11, 10, 100);
        process_tree_add(&t, 12, 11, 101);
        process_tree_end(&t, 11, 102);
        process_tree_add(&t, 13, 12, 103);
        process_tree_add(&t, 14, 9, 104); /* of somebody else */
        assert_int_equal(root_of(&t, 10), 0);
        assert_int_equal(root_of(&t, 12), 10);
        assert_int_equal(root_of(&t, 13), 10);
        assert_int_equal(root_of(&t, 14), 0);
        assert_int_equal(count_living(&t), 2);
        assert_true(process_tree_get(&t, 11, &k));
        assert_true(k.has_ended && k.parent == 10 && k.birth == 100);

        /* the nearest root is that of what is born later, and itself descends from the other one */
        process_tree_add_root(&t, 12);
        process_tree_add(&t, 15, 12, 105);
        assert_int_equal(root_of(&t, 15), 12);
        assert_int_equal(root_of(&t, 12), 10);
        assert_int_equal(root_of(&t, 13), 10);

        /* a tid that is born again is another task, and what was told too late of the one before changes nothing */
        process_tree_add(&t, 12, 9, 200);
        process_tree_add(&t, 12, 11, 101);
        process_tree_end(&t, 12, 150);
        process_tree_add(&t, 16, 12, 201);
        assert_int_equal(root_of(&t, 12), 0);
        assert_int_equal(root_of(&t, 16), 0);
        assert_int_equal(root_of(&t, 15), 12);
        assert_true(process_tree_get(&t, 12, &k));
        assert_true(!k.is_root && !k.has_ended && k.birth == 200);

        process_tree_forget(&t);
        assert_false(process_tree_get(&t, 15, &k));
        assert_true(process_tree_get(&t, 10, &k) && k.is_root);
        process_tree_deinit(&t);
}

/* As rings of different CPUs are read. */
static void test_any_order(void **state) {
        ProcessTree t;

        assert_int_equal(process_tree_init(&t, 4096), 0);
        process_tree_add_root(&t, 1);
        process_tree_add(&t, 4, 3, 30);
        process_tree_end(&t, 4, 40);
        process_tree_add(&t, 5, 3, 31);
        process_tree_add(&t, 3, 2, 20);
        assert_int_equal(root_of(&t, 5), 0);
        process_tree_add(&t, 2, 1, 10);
        assert_int_equal(root_of(&t, 5), 1);
        assert_int_equal(root_of(&t, 4), 1);
        process_tree_end(&t, 5, 50);
        assert_int_equal(count_living(&t), 2);

        process_tree_add(&t, 6, 1, 60); /* a child of a task that has the root's tid by then, which is told later */
        assert_int_equal(root_of(&t, 6), 1);
        process_tree_add(&t, 1, 99, 55);
        assert_int_equal(root_of(&t, 6), 0);
        assert_int_equal(root_of(&t, 2), 1);
        process_tree_deinit(&t);
}

/* A family of observed tasks stays known while a hundred times as many others are born and end as there is room for. */
static void test_others(void **state) {
        ProcessTree t;

        assert_int_equal(process_tree_init(&t, 1024), 0);
        process_tree_add_root(&t, 1);
        for (uint32_t i = 0; i < 100; i++) {
                process_tree_add(&t, 1000000 + 2 * i, 1, 10 + i);
                process_tree_add(&t, 1000001 + 2 * i, 1000000 + 2 * i, 11 + i);
                process_tree_end(&t, 1000000 + 2 * i, 12 + i);
        }
        for (uint32_t i = 0; i < 100000; i++) {
                process_tree_add(&t, 2000000 + i, 7, 1000 + i);
                process_tree_end(&t, 2000000 + i, 1001 + i);
        }
        assert_int_equal(count_living(&t), 100);
        for (uint32_t i = 0; i < 100; i++)
                assert_int_equal(root_of(&t, 1000001 + 2 * i), 1);
        process_tree_deinit(&t);
}

/* Of one bucket: its entries say of each other whether they are whole. */
#define ROUNDS 200000

static int write_many(void *userdata) {
        ProcessTree *t = userdata;

        for (uint32_t i = 1; i <= ROUNDS; i++)
                process_tree_add(t, i % 8 + 1, i * 3, i);
        return 0;
}

static void test_threads(void **state) {
        Thread threads[2] = { THREAD_NULL, THREAD_NULL };
        size_t n = 0;
        ProcessTree t;
        ProcessTreeEntry k;

        assert_int_equal(process_tree_init(&t, 1), 0);
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(thread_start(&threads[i], THREAD_READER, "tree", -1, write_many, &t), 0);
        for (uint32_t i = 0; i < ROUNDS; i++)
                if (process_tree_get(&t, i % 8 + 1, &k)) {
                        assert_true(k.parent == k.birth * 3 && k.birth % 8 + 1 == k.tid && k.tid == i % 8 + 1);
                        n++;
                }
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(thread_join(&threads[i]), 0);
        while (n == 0 && process_tree_get(&t, ROUNDS % 8 + 1, &k))
                n++;
        assert_true(n > 0);
        process_tree_deinit(&t);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_generations),
                cmocka_unit_test(test_any_order),
                cmocka_unit_test(test_others),
                cmocka_unit_test(test_threads),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
