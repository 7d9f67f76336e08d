/* Values with commas between them: what is put into quotes, and lines that get the columns that they lack. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/perfctl/print/csv.h"

static Output out, lines;

static void begin(Output *o) {
        output_init(o, memfd_create("csv", MFD_CLOEXEC));
        assert_true(o->fd >= 0);
}

static void end(Output *o, const char *expected, size_t n) {
        char *text = malloc(n + 2);

        output_flush(o);
        assert_int_equal(o->error, 0);
        assert_non_null(text);
        assert_int_equal(pread(o->fd, text, n + 1, 0), n);
        assert_memory_equal(text, expected, n);
        assert_int_equal(close(o->fd), 0);
        free(text);
}

static void check(const char *text, size_t n, bool is_terminal, const char *expected) {
        begin(&out);
        csv_put_text(&out, (perfd_text){ .bytes = text, .length = n }, is_terminal);
        end(&out, expected, strlen(expected));
}

#define CHECK(text, is_terminal, expected) check(text, sizeof(text) - 1, is_terminal, expected)

static void test_texts(void **state) {
        CHECK("", false, "\"\"");
        CHECK("plain text\\;'", false, "plain text\\;'");
        CHECK("a,b", false, "\"a,b\"");
        CHECK("say \"x\"", false, "\"say \"\"x\"\"\"");
        CHECK("two\r\nlines", false, "\"two\r\nlines\"");
        CHECK("\xc3\xa9", false, "\"\xc3\xa9\"");
        CHECK("a\xff", false, "\"a\xee\xbf\xbf\"");                            /* U+EFFF */
        CHECK("\x80", false, "\"\xee\xbe\x80\"");                               /* U+EF80 */
        CHECK("\xee\xbe\x80", false, "\"\xee\xbf\xae\xee\xbe\xbe\xee\xbe\x80\""); /* that itself: its three bytes */
        CHECK("\x1b[2J", false, "\"\x1b[2J\"");
        CHECK("\x1b[2J", true, "\"\\x1b[2J\"");
        CHECK("\xc2\x9b", true, "\"\\xc2\\x9b\""); /* CSI as one character */
}

static void test_columns(void **state) {
        static const char before[] = "1,2\n\"a,\"\"\n,\",\n\n1,2,3,4\n", after[] = "1,2,,\n\"a,\"\"\n,\",,,\n,,,\n1,2,3,4\n";

        begin(&lines);
        output_put(&lines, before, sizeof(before) - 1);
        output_flush(&lines);
        begin(&out);
        assert_int_equal(csv_copy(&out, lines.fd, 4), 0);
        end(&out, after, sizeof(after) - 1);
        assert_int_equal(close(lines.fd), 0);
}

/* Quotes and ends of lines may lie on both sides of where it is read next. */
static void test_pieces(void **state) {
        const size_t n = 30000;
        char *expected = malloc(11 * n), *at = expected;

        assert_non_null(expected);
        begin(&lines);
        begin(&out);
        for (size_t i = 0; i < n; i++) {
                output_put(&lines, "\"x\"\"\n,\"\n", 8);
                at = mempcpy(at, "\"x\"\"\n,\",,\n", 10);
        }
        output_flush(&lines);
        assert_int_equal(csv_copy(&out, lines.fd, 3), 0);
        end(&out, expected, (size_t)(at - expected));
        assert_int_equal(close(lines.fd), 0);
        free(expected);
}

static void test_wrong(void **state) {
        begin(&out);
        assert_int_equal(csv_copy(&out, -1, 3), -EBADF);
        end(&out, "", 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_texts),
                cmocka_unit_test(test_columns),
                cmocka_unit_test(test_pieces),
                cmocka_unit_test(test_wrong),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
