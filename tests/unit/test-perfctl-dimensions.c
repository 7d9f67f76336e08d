/* What samples are sorted by: texts and frames as numbers, and words as dimensions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/perfctl/samples/dimension.h"

#define TEXT(s) ((perfd_text){ .bytes = (s), .length = sizeof(s) - 1 })
#define KEYS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void test_texts_are_numbers(void **state) {
        TextIds t;
        uint32_t a, number;

        text_ids_init(&t);
        a = text_ids_add(&t, TEXT("12"), false);
        number = text_ids_add(&t, TEXT("12"), true);
        assert_int_not_equal(a, number);
        for (uint32_t i = 0; i < 10000; i++) {
                char text[16];

                assert_int_equal(text_ids_add(&t, (perfd_text){ .bytes = text, .length = (size_t)sprintf(text, "n%u", i % 5000) }, false), 2 + i % 5000);
        }
        assert_int_equal(text_ids_add(&t, TEXT(""), false), 5002);
        assert_int_equal(text_ids_add(&t, TEXT("12"), false), a);
        assert_int_equal(text_ids_add(&t, TEXT("12"), true), number);
        assert_int_equal(text_ids_get(&t, 4999 + 2).length, strlen("n4999"));
        assert_memory_equal(text_ids_get(&t, 4999 + 2).bytes, "n4999", 5);
        assert_int_equal(t.n, 5003);
        text_ids_deinit(&t);
}

/* A function at two lines is two frames with lines, and one without; what is inlined is none of them. */
static void test_lines(void **state) {
        const FrameName at_5 = { .symbol = TEXT("f"), .dso = TEXT("/bin/x"), .file = TEXT("/src/a.c"), .line = 5 };
        const FrameName at_6 = { .symbol = TEXT("f"), .dso = TEXT("/bin/x"), .file = TEXT("/src/a.c"), .line = 6 };
        const NamedFrame frame_5 = { .name = &at_5 }, frame_6 = { .name = &at_6 }, inlined = { .name = &at_5, .is_inlined = true };
        TextIds texts;
        FrameIds f;
        uint32_t with_5, with_6, without;
        Dimension file;

        text_ids_init(&texts);
        frame_ids_init(&f, &texts);
        with_5 = frame_ids_add(&f, &frame_5, &at_5);
        with_6 = frame_ids_add(&f, &frame_6, &at_6);
        without = frame_ids_add(&f, &frame_5, NULL);
        assert_int_not_equal(with_5, with_6);
        assert_true(text_ids_is(&texts, f.list[with_5].line, TEXT("/src/a.c:5")));
        assert_true(text_ids_is(&texts, f.list[with_6].line, TEXT("/src/a.c:6")));
        assert_true(dimension_init(&file, "srcfile"));
        assert_int_equal(dimension_of_frame(&file, &f.list[with_5]), dimension_of_frame(&file, &f.list[with_6]));
        assert_true(text_ids_is(&texts, (uint32_t)dimension_of_frame(&file, &f.list[with_5]), TEXT("/src/a.c")));
        assert_int_equal(f.list[without].line, ID_NONE);
        assert_int_equal(frame_ids_add(&f, &frame_6, NULL), without);
        assert_int_equal(frame_ids_add(&f, &frame_5, &at_5), with_5);
        assert_int_equal(frame_ids_function(&f, with_5), without);
        assert_int_equal(frame_ids_function(&f, with_6), without);
        assert_int_equal(frame_ids_function(&f, without), without);
        assert_int_not_equal(frame_ids_add(&f, &inlined, NULL), without);
        assert_int_not_equal(frame_ids_function(&f, frame_ids_add(&f, &inlined, &at_5)), without);
        frame_ids_deinit(&f);
        text_ids_deinit(&texts);
}

static void test_dimensions(void **state) {
        Dimension d;

        assert_true(dimension_init(&d, "sym"));
        assert_int_equal(d.kind, DIMENSION_SYMBOL);
        assert_true(dimension_init(&d, "srcline"));
        assert_int_equal(d.kind, DIMENSION_LINE);
        assert_true(dimension_is_of_frame(&d));
        assert_true(dimension_init(&d, "srcfile"));
        assert_true(dimension_is_of_frame(&d) && dimension_is_of_line(&d));
        assert_true(dimension_init(&d, "field.comm"));
        assert_int_equal(d.kind, DIMENSION_FIELD);
        assert_string_equal(d.name.field, "comm");
        dimension_deinit(&d);
        assert_true(dimension_init(&d, "args[2]"));
        assert_int_equal(d.name.element, 2);
        dimension_deinit(&d);
        for (const char *const *bad = KEYS("a b", "field.", "args[x]", "a=b", ""); *bad; bad++) {
                assert_false(dimension_init(&d, *bad));
                dimension_deinit(&d);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_texts_are_numbers),
                cmocka_unit_test(test_lines),
                cmocka_unit_test(test_dimensions),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
