/* Tables on terminals that are too narrow for them: by the columns that wcwidth(3) says, of each line. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <cmocka.h>

#include "client/perfctl/print/table.h"
#include "client/perfctl/base/text.h"

#define NAME_60 "a-name-of-sixty-characters-that-no-half-of-a-line-has-room-4"
#define COUNT UINT64_C(123456789012)

static char printed[OUTPUT_SIZE + 1];

static const char *print(Table *t, size_t width, bool continues) {
        static Output o;

        output_init(&o, -1);
        t->width = width;
        t->continues = continues;
        table_print(t, &o);
        assert_true(o.n < OUTPUT_SIZE);
        memcpy(printed, o.bytes, o.n);
        printed[o.n] = '\0';
        table_deinit(t);
        return printed;
}

static size_t find_widest(const char *text) {
        size_t widest = 0, used = 0;

        for (wchar_t c; *text;) {
                int n = mbtowc(&c, text, strlen(text));

                assert_true(n > 0);
                used = c == '\n' ? 0 : used + (size_t)wcwidth(c);
                widest = used > widest ? used : widest;
                text += n;
        }
        return widest;
}

static size_t count(const char *text, const char *word) {
        size_t n = 0;

        while ((text = strstr(text, word))) {
                n++;
                text += strlen(word);
        }
        return n;
}

/* As `list` has them: a long name, many numbers, a long path and a sentence. */
static void put_list(Table *t, const char *path) {
        static const char *const columns[] = { "NAME",     ">ID",      ">A COUNT", ">B COUNT",
                                               ">C COUNT", ">D COUNT", "TARGET",   "WHY" };

        table_init(t, true, columns, sizeof(columns) / sizeof(columns[0]));
        for (uint64_t i = 0; i < 3; i++) {
                table_put(t, NAME_60);
                for (uint64_t k = 0; k < 5; k++)
                        table_put_number(t, COUNT + i);
                table_put(t, path);
                table_put(t,
                          "a sentence that is longer than what is left of the line and has to be read to its very end");
        }
}

static void test_blocks(void **state) {
        char path[201] = "/";
        Table t;

        (void)state;
        memset(path + 1, 'x', sizeof(path) - 2);
        for (size_t width = 60; width <= 400; width += 20) {
                const char *text;

                put_list(&t, path);
                text = print(&t, width, true);
                assert_true(find_widest(text) <= width);
                assert_int_equal(count(text, "123456789012"), 5);
                assert_int_equal(count(text, "123456789014"), 5);
                assert_int_equal(count(text, " COUNT"), 4);
                assert_int_equal(count(text, "NAME"), count(text, "\n\n") + 1);
                assert_int_equal(count(text, "very"), 3); /* a sentence continues, it is not cut */
        }
}

/* A terminal with room for all shows all, and so does what is no terminal. */
static void test_wide_enough(void **state) {
        Table t;

        (void)state;
        put_list(&t, "/short");
        assert_int_equal(count(print(&t, 400, true), NAME_60), 3);
        assert_int_equal(count(printed, "\u2026"), 0);
        put_list(&t, "/short");
        assert_int_equal(count(print(&t, 0, true), "\n"), 4);
        put_list(&t, "/short");
        t.human = false;
        assert_int_equal(count(print(&t, 60, true), NAME_60 "\t123456789012\t"), 1);
}

/* A name of a function gives way, at its end, before the file beside it does, whichever of them is the last column. */
static void test_cut_first(void **state) {
        static const char *const columns[] = { "FILE", "SYMBOL", "FILE" };
        static const char file[] = "libstdc++.so.6.0.30", symbol[] = "[.] std::vector<std::string>::push_back(std::string&&)";

        (void)state;
        for (size_t first = 0; first < 2; first++) {
                Table t;

                table_init(&t, true, columns + first, 2);
                table_put(&t, first == 0 ? file : symbol);
                table_put(&t, first == 0 ? symbol : file);
                t.cut_first = first == 0 ? 1 : 0;
                assert_int_equal(count(print(&t, 50, false), file), 1);
                assert_int_equal(count(printed, "[.] std::vector<std::string>\u2026"), 1);
                assert_int_equal(find_widest(printed), 50);
        }
}

static void test_wide_characters(void **state) {
        Table t;

        (void)state;
        TABLE_INIT(&t, true, "WHO", ">COUNT");
        table_put(&t, "\u4e8b\u4ef6\u4e8b\u4ef6\u4e8b\u4ef6\u4e8b\u4ef6");
        table_put_number(&t, COUNT);
        table_put(&t, "ab");
        table_put_number(&t, 1);
        assert_string_equal(print(&t, 24, false), "WHO                COUNT\n"
                                                  "\u2026\u4e8b\u4ef6\u4e8b\u4ef6   123456789012\n"
                                                  "ab                     1\n");
        assert_int_equal(find_widest(printed), 24);
}

static void test_wrap(void **state) {
        (void)state;
        assert_int_equal(text_wrap("one two three", 13, 7), 7);
        assert_int_equal(text_wrap("one two three", 13, 8), 7);
        assert_int_equal(text_wrap("one two three", 13, 6), 3);
        assert_int_equal(text_wrap("one two three", 13, 13), 13);
        assert_int_equal(text_wrap("longer", 6, 4), 4);
        assert_int_equal(text_wrap("\u4e8b\u4ef6", 6, 1), 3);
        assert_int_equal(text_wrap("\u4e8b\u4ef6", 6, 3), 3);
        assert_int_equal(text_wrap("\x1b\x1b", 2, 5), 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_blocks),
                cmocka_unit_test(test_wide_enough),
                cmocka_unit_test(test_cut_first), cmocka_unit_test(test_wide_characters),
                cmocka_unit_test(test_wrap),
        };

        (void)setlocale(LC_CTYPE, "C.UTF-8");
        return cmocka_run_group_tests(tests, NULL, NULL);
}
