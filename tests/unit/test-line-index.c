/* Source lines and inlined functions, from rows and ranges that are written here: what lies within others, overlaps, and has no room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/symbols/line-index.h"

#define ROOM ((size_t)1 << 20)

static uint32_t text(LineIndex *x, const char *s) {
        uint32_t number;

        assert_int_equal(line_index_add_text(x, s, &number), 0);
        return number;
}

static uint32_t scope(LineIndex *x, uint32_t parent, const char *name, uint64_t start, uint64_t end) {
        uint32_t number;

        assert_int_equal(line_index_add_scope(x, &(InlineScope){ .parent = parent, .name = text(x, name) }, &number), 0);
        assert_int_equal(line_index_add_range(x, start, end, number), 0);
        return number;
}

static unsigned line_at(const LineIndex *x, uint64_t address) {
        const LineRow *row = line_index_find_row(x, address);

        return row ? row->line : 0;
}

static const char *name_at(LineIndex *x, uint64_t address) {
        const uint32_t at = line_index_find_scope(x, address);

        return at ? line_index_name(x, x->scopes[at].name).bytes : "";
}

static void test_rows(void **state) {
        LineIndex x;
        uint32_t file;

        (void)state;
        line_index_init(&x, ROOM, false);
        assert_int_equal(line_index_find_row(&x, 0) == NULL, 1);
        file = text(&x, "a.c");
        assert_int_equal(text(&x, "a.c"), file);
        assert_int_equal(line_index_add_row(&x, 0x20, file, 3), 0); /* not in order */
        assert_int_equal(line_index_add_row(&x, 0x10, file, 1), 0);
        assert_int_equal(line_index_add_row(&x, 0x10, file, 2), 0); /* the last at an address */
        assert_int_equal(line_index_add_row(&x, 0x40, file, 9), 0); /* where another sequence ends */
        assert_int_equal(line_index_add_row(&x, 0x40, 0, 0), 0);
        assert_int_equal(line_index_add_row(&x, 0x50, 0, 0), 0);
        assert_int_equal(line_index_finish(&x), 0);
        assert_int_equal(line_at(&x, 0xf), 0);
        assert_int_equal(line_at(&x, 0x10), 2);
        assert_int_equal(line_at(&x, 0x1f), 2);
        assert_int_equal(line_at(&x, 0x3f), 3);
        assert_int_equal(line_at(&x, 0x4f), 9);
        assert_int_equal(line_at(&x, 0x50), 0);
        assert_string_equal(line_index_text(&x, line_index_find_row(&x, 0x10)->file).bytes, "a.c");
        line_index_deinit(&x);
}

static void test_scopes(void **state) {
        LineIndex x;
        uint32_t function, middle;

        (void)state;
        line_index_init(&x, ROOM, true);
        function = scope(&x, 0, "function", 0x100, 0x200);
        middle = scope(&x, function, "middle", 0x100, 0x180);
        scope(&x, middle, "_ZN1a1bEi", 0x110, 0x120);
        scope(&x, middle, "last", 0x170, 0x180);
        scope(&x, 0, "next", 0x200, 0x240);
        assert_int_equal(line_index_add_range(&x, 0x1f0, 0x300, middle), 0); /* cut off where its function ends */
        assert_int_equal(line_index_add_range(&x, 0x130, 0x130, middle), 0);
        assert_int_equal(line_index_finish(&x), 0);
        assert_string_equal(name_at(&x, 0xff), "");
        assert_string_equal(name_at(&x, 0x100), "middle");
        assert_string_equal(name_at(&x, 0x110), "a::b(int)");
        assert_string_equal(name_at(&x, 0x11f), "a::b(int)");
        assert_string_equal(name_at(&x, 0x120), "middle");
        assert_string_equal(name_at(&x, 0x17f), "last");
        assert_string_equal(name_at(&x, 0x180), "function");
        assert_string_equal(name_at(&x, 0x1ff), "middle");
        assert_string_equal(name_at(&x, 0x200), "next");
        assert_string_equal(name_at(&x, 0x240), "");
        assert_int_equal(x.scopes[x.scopes[line_index_find_scope(&x, 0x115)].parent].parent, function);
        line_index_deinit(&x);
}

#define PLACES 10000

/* A scope, and others within it at random; what is found at each address is the one that was added there last. */
static void nest(LineIndex *x, uint32_t parent, uint64_t start, uint64_t end, int depth, uint32_t *expected) {
        const uint32_t mine = scope(x, parent, "x", start, end);

        for (uint64_t i = start; i < end; i++)
                expected[i] = mine;
        for (uint64_t at = start + (uint64_t)random() % 8; depth < 6 && at < end;) {
                const uint64_t length = 1 + (uint64_t)random() % (end - at);

                nest(x, mine, at, at + length, depth + 1, expected);
                at += length + (uint64_t)random() % 16;
        }
}

static void test_nested(void **state) {
        uint32_t *expected = calloc(PLACES, sizeof(uint32_t));
        LineIndex x;

        (void)state;
        assert_non_null(expected);
        srandom(7);
        line_index_init(&x, 64 * ROOM, false);
        for (uint64_t start = 0; start < PLACES; start += 500)
                nest(&x, 0, start, start + 450, 0, expected);
        assert_int_equal(x.n_scopes > 1000, 1);
        assert_int_equal(line_index_finish(&x), 0);
        for (uint64_t address = 0; address < PLACES; address++)
                assert_int_equal(line_index_find_scope(&x, address), expected[address]);
        line_index_deinit(&x);
        free(expected);
}

static void test_full(void **state) {
        LineIndex x;
        char name[32];

        (void)state;
        line_index_init(&x, ROOM, false);
        for (uint64_t i = 0; i < 200000 && !x.is_full; i++) {
                snprintf(name, sizeof(name), "%llu.c", (unsigned long long)i);
                assert_int_equal(line_index_add_row(&x, i, text(&x, name), 1), 0);
        }
        assert_int_equal(x.is_full, 1);
        assert_int_equal(x.bytes + x.kept.bytes <= ROOM + 65536 + 64, 1);
        assert_int_equal(line_index_finish(&x), 0);
        assert_string_equal(line_index_text(&x, line_index_find_row(&x, 1234)->file).bytes, "1234.c");
        line_index_deinit(&x);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rows),
                cmocka_unit_test(test_scopes),
                cmocka_unit_test(test_nested),
                cmocka_unit_test(test_full),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
