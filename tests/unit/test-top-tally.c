/* What `top` has counted, by windows and since the start, which of it is looked at, and what keys do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/perfctl/top/keys.h"
#include "client/perfctl/top/screen.h"

#define MANY ((uint64_t)100000)

static void add(Tally *t, uint64_t key, uint64_t weight, size_t times) {
        for (size_t i = 0; i < times; i++)
                tally_add(t, (const uint8_t *)&key, sizeof(key), weight);
}

static const TallyEntry *find(const Tally *t, uint64_t key) {
        for (size_t i = 0; i < t->keys.n; i++)
                if (memcmp(t->keys.bytes + t->keys.entries[i].key, &key, sizeof(key)) == 0)
                        return &t->entries[i];
        return NULL;
}

static void assert_sum(const TallySum *s, uint64_t n, uint64_t weight) {
        assert_int_equal(s->n, n);
        assert_int_equal(s->weight, weight);
}

/* Each sample is in `all`, and in one other place. */
static void assert_whole(const Tally *t) {
        TallySum sum = t->gone;

        tally_sum_add(&sum, &t->others.total);
        for (size_t i = 0; i < t->keys.n; i++)
                tally_sum_add(&sum, &t->entries[i].total);
        assert_sum(&t->all.total, sum.n, sum.weight);
}

static void test_windows(void **state) {
        Tally t;

        tally_init(&t);
        add(&t, 1, 10, 3);
        add(&t, 2, 1, 5);
        assert_sum(&find(&t, 1)->window, 0, 0);
        tally_turn(&t);
        assert_sum(&find(&t, 1)->window, 3, 30);
        assert_sum(&t.all.window, 8, 35);
        add(&t, 1, 7, 1);
        tally_turn(&t);
        assert_sum(&find(&t, 1)->window, 1, 7);
        assert_sum(&find(&t, 1)->total, 4, 37);
        assert_sum(&find(&t, 2)->window, 0, 0);
        assert_sum(&find(&t, 2)->total, 5, 5);
        assert_sum(&t.all.window, 1, 7);
        assert_sum(&t.all.total, 9, 42);
        assert_whole(&t);
        tally_zero(&t);
        assert_null(find(&t, 1));
        assert_sum(&t.all.total, 0, 0);
        tally_deinit(&t);
}

/* What has no room is counted, and the next window has room again: of those that were quiet in this one. */
static void test_bounded(void **state) {
        Tally t;

        tally_init(&t);
        for (uint64_t i = 0; i < MANY; i++)
                add(&t, i, 2, 1);
        assert_int_equal(t.keys.n, COUNT_KEYS_MAX);
        assert_sum(&t.others.now, MANY - COUNT_KEYS_MAX, 2 * (MANY - COUNT_KEYS_MAX));
        assert_sum(&t.all.total, MANY, 2 * MANY);
        tally_turn(&t);
        assert_sum(&t.others.window, MANY - COUNT_KEYS_MAX, 2 * (MANY - COUNT_KEYS_MAX));
        assert_int_equal(t.keys.n, COUNT_KEYS_MAX); /* each was seen in that window */
        assert_whole(&t);

        add(&t, 7, 2, 4);
        add(&t, MANY + 1, 2, 1); /* no room yet */
        tally_turn(&t);
        assert_int_equal(t.keys.n, 1);
        assert_int_equal(t.n_gone, COUNT_KEYS_MAX - 1);
        assert_sum(&t.gone, COUNT_KEYS_MAX - 1, 2 * (COUNT_KEYS_MAX - 1));
        assert_sum(&find(&t, 7)->total, 5, 10);
        assert_sum(&find(&t, 7)->window, 4, 8);
        assert_whole(&t);

        add(&t, MANY + 1, 2, 3);
        tally_turn(&t);
        assert_sum(&find(&t, MANY + 1)->window, 3, 6);
        assert_sum(&t.others.window, 0, 0);
        assert_whole(&t);
        tally_deinit(&t);
}

/* Periods of hardware events are as large as they like to be. */
static void test_weights_end(void **state) {
        Tally t;

        tally_init(&t);
        add(&t, 1, UINT64_MAX - 5, 1);
        add(&t, 1, 10, 1);
        assert_sum(&t.all.total, 2, UINT64_MAX);
        tally_deinit(&t);
}

/* ---- rows ----------------------------------------------------------------------------------------------------------------------------- */

#define CELLS(first, second) ((char *[]){ (char *)(first), (char *)(second) })
#define SUM(count, worth) { .n = (count), .weight = (worth) }

static void assert_rows(const TopRows *r, const char *const *names, size_t n) {
        assert_int_equal(r->n, n);
        for (size_t i = 0; i < n; i++)
                assert_string_equal(r->list[i]->cells[0], names[i]);
}

#define ASSERT_ROWS(r, ...)                                                                                            \
        assert_rows((r), (const char *[]){ __VA_ARGS__ }, sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *))

static void test_looks(void **state) {
        TopRow all[] = {
                { .window = SUM(1, 50), .total = SUM(9, 90), .cells = CELLS("pid10", "x") },
                { .window = SUM(5, 5), .total = SUM(500, 500), .cells = CELLS("pid9", "y") },
                { .window = SUM(0, 0), .total = SUM(1000, 1000), .cells = CELLS("quiet", "x") },
                { .window = SUM(5, 5), .total = SUM(5, 5), .cells = CELLS("pid100", "yy") },
                { .window = SUM(6, 5), .total = SUM(6, 5), .cells = CELLS("a\\b", "x") },
        };
        const TopRow *list[5];
        TopRows r = { .all = all, .n_all = 5, .list = list };
        const Subject subject = { .n = 2 };
        TopLook look = { .is_total = false };

        top_rows_look(&r, &subject, &look); /* by what samples stand for, then by how many there are, then by names */
        ASSERT_ROWS(&r, "pid10", "a\\b", "pid9", "pid100");
        look.is_total = true;
        top_rows_look(&r, &subject, &look);
        ASSERT_ROWS(&r, "quiet", "pid9", "pid10", "a\\b", "pid100");
        look.order = TOP_ORDER_NAME; /* numbers in names by what they are */
        top_rows_look(&r, &subject, &look);
        ASSERT_ROWS(&r, "a\\b", "pid9", "pid10", "pid100", "quiet");
        strcpy(look.filter, "y"); /* in any cell */
        top_rows_look(&r, &subject, &look);
        ASSERT_ROWS(&r, "pid9", "pid100");
        assert_int_equal(r.n_left_out, 3);
        look.is_total = false;
        top_rows_look(&r, &subject, &look);
        assert_int_equal(r.n_left_out, 2);
        strcpy(look.filter, "nobody");
        top_rows_look(&r, &subject, &look);
        assert_int_equal(r.n, 0);
}

static void test_shares(void **state) {
        const TallySum part = SUM(1, 1), all = SUM(2, 4), none = SUM(0, 0);

        assert_true(top_share(&part, &all) == 0.25);
        assert_true(top_share(&none, &none) == 0);
}

/* ---- keys ----------------------------------------------------------------------------------------------------------------------------- */

#define ROWS 100
#define PAGE 10

static TopAction press(TopKeys *k, int key) {
        return top_keys_take(k, key, ROWS, PAGE);
}

static void test_commands(void **state) {
        TopKeys k = { .n_subjects = 3 };

        assert_int_equal(press(&k, 'x'), TOP_NOTHING);
        assert_int_equal(press(&k, SCREEN_OTHER), TOP_NOTHING);
        assert_int_equal(press(&k, SCREEN_ENTER), TOP_NOTHING);
        assert_int_equal(press(&k, 't'), TOP_LOOK);
        assert_true(k.look.is_total);
        assert_int_equal(press(&k, 's'), TOP_LOOK);
        assert_int_equal(k.look.order, TOP_ORDER_NAME);
        assert_int_equal(press(&k, 's'), TOP_LOOK);
        assert_int_equal(k.look.order, TOP_ORDER_SAMPLES);
        assert_int_equal(press(&k, 'p'), TOP_DRAW);
        assert_true(k.is_paused);
        assert_int_equal(press(&k, 'b'), TOP_SUBJECT); /* there is nothing yet to pause */
        assert_false(k.is_paused);
        assert_int_equal(k.subject, 1);
        assert_int_equal(press(&k, 'B'), TOP_SUBJECT);
        assert_int_equal(press(&k, 'B'), TOP_SUBJECT);
        assert_int_equal(k.subject, 2);
        assert_int_equal(press(&k, 'z'), TOP_ZERO);
        assert_int_equal(press(&k, '?'), TOP_DRAW);
        assert_int_equal(press(&k, 't'), TOP_DRAW); /* the help goes, and nothing else */
        assert_true(k.look.is_total);
        assert_int_equal(press(&k, 'h'), TOP_DRAW);
        assert_int_equal(press(&k, 'q'), TOP_QUIT);
}

static void test_scrolling(void **state) {
        TopKeys k = { .n_subjects = 1 };

        assert_int_equal(press(&k, SCREEN_UP), TOP_NOTHING);
        assert_int_equal(press(&k, SCREEN_DOWN), TOP_DRAW);
        assert_int_equal(press(&k, SCREEN_PAGE_DOWN), TOP_DRAW);
        assert_int_equal(k.first, 1 + PAGE);
        assert_int_equal(press(&k, SCREEN_END), TOP_DRAW);
        assert_int_equal(k.first, ROWS - PAGE);
        assert_int_equal(press(&k, SCREEN_DOWN), TOP_NOTHING);
        assert_int_equal(press(&k, SCREEN_PAGE_UP), TOP_DRAW);
        assert_int_equal(k.first, ROWS - 2 * PAGE);
        top_keys_fit(&k, PAGE + 3, PAGE); /* rows have gone */
        assert_int_equal(k.first, 3);
        assert_int_equal(press(&k, SCREEN_PAGE_UP), TOP_DRAW);
        assert_int_equal(k.first, 0);
        (void)press(&k, SCREEN_DOWN);
        assert_int_equal(press(&k, SCREEN_HOME), TOP_DRAW);
        assert_int_equal(k.first, 0);
        top_keys_fit(&k, 0, PAGE);
        assert_int_equal(k.first, 0);
}

/* Letters are text meanwhile, and a character of several bytes goes at once. */
static void test_typing(void **state) {
        TopKeys k = { .n_subjects = 1 };

        assert_int_equal(press(&k, '/'), TOP_LOOK);
        for (const char *c = "qb\xc3\xa4\xe2\x82\xac"; *c; c++)
                assert_int_equal(press(&k, (unsigned char)*c), TOP_LOOK);
        assert_string_equal(k.look.filter, "qb\xc3\xa4\xe2\x82\xac");
        assert_int_equal(press(&k, SCREEN_BACKSPACE), TOP_LOOK);
        assert_string_equal(k.look.filter, "qb\xc3\xa4");
        (void)press(&k, SCREEN_BACKSPACE);
        (void)press(&k, SCREEN_BACKSPACE);
        assert_string_equal(k.look.filter, "q");
        assert_int_equal(press(&k, SCREEN_UP), TOP_NOTHING);
        assert_int_equal(press(&k, '\t'), TOP_NOTHING);
        assert_int_equal(press(&k, SCREEN_ENTER), TOP_LOOK);
        assert_false(k.is_typing);
        assert_string_equal(k.look.filter, "q");
        assert_int_equal(press(&k, '/'), TOP_LOOK); /* a new one */
        assert_int_equal(press(&k, SCREEN_BACKSPACE), TOP_NOTHING);
        for (size_t i = 0; i < TOP_FILTER_MAX; i++)
                assert_int_equal(press(&k, 'x'), TOP_LOOK);
        assert_int_equal(press(&k, 'x'), TOP_NOTHING); /* it is full */
        assert_int_equal(strlen(k.look.filter), TOP_FILTER_MAX);
        assert_int_equal(press(&k, SCREEN_ESCAPE), TOP_LOOK);
        assert_string_equal(k.look.filter, "");
        assert_false(k.is_typing);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_windows), cmocka_unit_test(test_bounded),   cmocka_unit_test(test_weights_end),
                cmocka_unit_test(test_looks),   cmocka_unit_test(test_shares),    cmocka_unit_test(test_commands),
                cmocka_unit_test(test_scrolling), cmocka_unit_test(test_typing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
