/*
 * Which births may have met a change: those, and no others, whose fork can have begun before it and was not through with it
 * when children were looked for the last time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/model/births.h"

#define UNTIL 10000

static ProcessTree table;

static uint32_t *tids_new(const uint32_t *from, size_t n) {
        uint32_t *tids = malloc((n + 1) * sizeof(*tids));

        assert_non_null(tids);
        if (n > 0)
                memcpy(tids, from, n * sizeof(*tids));
        return tids;
}

/* Task 10, its children 20 and 21; 10 was opened long ago, and switched at 100 and at 200. */
static BirthWatch family(const uint32_t *busy, size_t n_busy) {
        assert_int_equal(process_tree_init(&table, 4096), 0);
        process_tree_add_root(&table, 10);
        process_tree_add(&table, 20, 10, 50);
        process_tree_add(&table, 21, 20, 60);
        return (BirthWatch){ .roots = tids_new((uint32_t[]){ 10 }, 1), .n_roots = 1, .first = 100, .second = 200,
                             .busy = tids_new(busy, n_busy), .n_busy = n_busy };
}

static void end(BirthWatch *w, bool is_doubtful) {
        assert_int_equal(births_doubtful(&table, w, UNTIL), is_doubtful);
        birth_watch_deinit(w);
        process_tree_deinit(&table);
}

static void test_concern(void **state) {
        BirthWatch w = family(NULL, 0);

        process_tree_add(&table, 30, 9, 70);
        process_tree_add_root(&table, 21); /* of another event: it still descends from ours */
        process_tree_add(&table, 22, 21, 80);
        assert_true(births_concern(&table, &w, 10));
        assert_true(births_concern(&table, &w, 21));
        assert_true(births_concern(&table, &w, 22));
        assert_false(births_concern(&table, &w, 30));
        assert_false(births_concern(&table, &w, 31));
        end(&w, false);
}

/* Who was asleep has no fork on its way. */
static void test_asleep(void **state) {
        BirthWatch w = family((uint32_t[]){ 21 }, 1);

        process_tree_add(&table, 40, 20, 201);
        process_tree_add(&table, 41, 20, 9000);
        end(&w, false);
}

static void test_busy(void **state) {
        BirthWatch w = family((uint32_t[]){ 20 }, 1);

        process_tree_add(&table, 40, 21, 201);
        process_tree_add(&table, 41, 20, 9000);
        end(&w, true);
}

/* What ended between the two was found by the second one, and the next fork began behind the first. */
static void test_busy_with_births_in_between(void **state) {
        BirthWatch w = family((uint32_t[]){ 20 }, 1);

        process_tree_add(&table, 40, 20, 150);
        process_tree_add(&table, 41, 20, 250);
        end(&w, false);
}

static void test_before_and_too_late(void **state) {
        BirthWatch w = family((uint32_t[]){ 20, 21 }, 2);

        process_tree_add(&table, 40, 20, 99);
        process_tree_add(&table, 41, 21, UNTIL + 1);
        end(&w, false);
}

/* Its children are found under a lock that its forks take; others nobody has looked at. */
static void test_nobody_looked(void **state) {
        BirthWatch w = family(NULL, 0);

        w.all_busy = true;
        process_tree_add(&table, 40, 10, 250);
        process_tree_add(&table, 42, 9, 250);
        assert_false(births_doubtful(&table, &w, UNTIL));
        process_tree_add(&table, 41, 21, 250);
        end(&w, true);
}

/* Opened at 80, looked for at 90: who was born behind that, and had no brother or sister since, may not have been seen. */
static void test_opened(void **state) {
        BirthWatch w = family(NULL, 0);

        w.opened = 80;
        w.listed = 90;
        process_tree_add(&table, 40, 10, 85);
        process_tree_add(&table, 41, 10, 120);
        process_tree_add(&table, 42, 20, 250);
        assert_false(births_doubtful(&table, &w, UNTIL));
        process_tree_add(&table, 43, 21, 120);
        end(&w, true);
}

static void test_opened_on_busy(void **state) {
        BirthWatch w = family((uint32_t[]){ 10 }, 1);

        w.opened = 80;
        w.listed = 90;
        process_tree_add(&table, 41, 10, 220);
        end(&w, true);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_concern), cmocka_unit_test(test_asleep), cmocka_unit_test(test_busy),
                cmocka_unit_test(test_busy_with_births_in_between), cmocka_unit_test(test_before_and_too_late),
                cmocka_unit_test(test_nobody_looked), cmocka_unit_test(test_opened), cmocka_unit_test(test_opened_on_busy),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
