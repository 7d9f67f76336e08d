/* What may be seen of foreign text: in the daemon's messages and log, and in perfctl's output, which have to agree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/perfctl/base/text.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"
#include "daemon/base/log.h"
#include "daemon/base/printable.h"

static size_t encode(uint32_t c, char to[static 5]) {
        size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

        to[0] = (char)(n == 1 ? c : (uint32_t)(0xf00 >> n) | c >> 6 * (n - 1));
        for (size_t i = 1; i < n; i++)
                to[i] = (char)(0x80 | (c >> 6 * (n - 1 - i) & 0x3f));
        to[n] = '\0';
        return n;
}

/* Both tables, for each character that there is. */
static void test_characters(void **state) {
        static const uint32_t unseen[] = {
                0x01, 0x0a, 0x1b, 0x1f, 0x7f, 0x80, 0x85, 0x9b, 0x9f, 0xad, 0x034f, 0x061c, 0x115f, 0x1160, 0x17b4, 0x17b5,
                0x180b, 0x180e, 0x180f, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202e, 0x2060, 0x2064,
                0x2065, 0x2066, 0x2069, 0x206f, 0x3164, 0xfe00, 0xfe0f, 0xfeff, 0xffa0, 0xfff0, 0xfff8, 0xfff9, 0xfffb,
                0x1bca0, 0x1bca3, 0x1d173, 0x1d17a, 0xe0000, 0xe0001, 0xe007f, 0xe0100, 0xe01ef, 0xe0fff,
        };
        static const uint32_t seen[] = { /* many of them are neighbours of those */
                ' ', '~', 0xa0, 0xac, 0xae, 0xe9, 0x034e, 0x0350, 0x5d0, 0x061b, 0x061d, 0x115e, 0x1161, 0x17b3, 0x17b6, 0x180a,
                0x1810, 0x200a, 0x2010, 0x2027, 0x202f, 0x205f, 0x2070, 0x20ac, 0x3163, 0x3165, 0xfdff, 0xfe10, 0xfefe, 0xff00,
                0xff9f, 0xffa1, 0xffef, 0xfffc, 0xfffd, 0x1bc9f, 0x1bca4, 0x1d172, 0x1d17b, 0x1f600, 0xdffff, 0xe1000, 0x10fffd,
        };
        char text[5];

        for (uint32_t c = 1; c <= 0x10ffff; c++) {
                size_t n = encode(c, text);
                bool is_surrogate = c >= 0xd800 && c < 0xe000;
                uint32_t decoded;

                assert_int_equal(utf8_decode(text, &decoded), is_surrogate ? 0 : n);
                assert_int_equal(utf8_length(text, n), is_surrogate ? 0 : n);
                assert_int_equal(printable_length(text), text_printable_length(text, n));
                if (!is_surrogate) {
                        assert_int_equal(decoded, c);
                        assert_int_equal(utf8_character(text, n), c);
                }
        }
        for (size_t i = 0; i < ARRAY_SIZE(unseen); i++) {
                (void)encode(unseen[i], text);
                assert_int_equal(printable_length(text), 0);
        }
        for (size_t i = 0; i < ARRAY_SIZE(seen); i++) {
                size_t n = encode(seen[i], text);

                assert_int_equal(printable_length(text), n);
        }
}

/* Every pair and triple of bytes that is no character is none for both. */
static void test_no_characters(void **state) {
        for (unsigned bytes = 0; bytes < 1u << 24; bytes += bytes & 0xff ? 1 : 0x101) {
                char text[4] = { (char)(bytes >> 16), (char)(bytes >> 8), (char)bytes };
                size_t n = strlen(text);

                if ((unsigned char)text[0] >= 0x80 && n > 0)
                        assert_int_equal(printable_length(text), text_printable_length(text, n));
        }
}

static void test_make(void **state) {
        static const struct {
                const char *text;
                size_t size;
                const char *expected;
        } cases[] = {
                { "plain", 6, "plain" },
                { "caf\xc3\xa9", 16, "caf\xc3\xa9" },
                { "a\nb", 16, "a\\x0ab" },
                { "\x1b[2J\xc2\x9b", 32, "\\x1b[2J\\xc2\\x9b" },
                { "\xe2\x80\xae" "evil", 32, "\\xe2\\x80\\xae" "evil" },
                { "\xff\xfe", 16, "\\xff\\xfe" },
                { "ab\n", 7, "ab\\x0a" },
                { "ab\n", 6, "ab..." },
                { "abc\n", 6, "ab..." },
                { "\n\n\n", 8, "\\x0a..." },
                { "a\n", 4, "..." },
                { "\ncaf\xc3\xa9", 9, "\\x0ac..." },
                { "cut \xe2\x82", 16, "cut \\xe2\\x82" },
                { "", 1, "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char text[64];

                strcpy(text, cases[i].text);
                memset(text + cases[i].size, '#', sizeof(text) - cases[i].size);
                printable_make(text, cases[i].size);
                assert_int_equal(text[cases[i].size], '#');
                assert_string_equal(text, cases[i].expected);
        }
}

static void test_copy(void **state) {
        _cleanup_free_ char *copy = printable_copy("\xff\n\x01");

        assert_string_equal(copy, "\\xff\\x0a\\x01");
}

/* Whatever a refusal quotes. */
static void test_refuse(void **state) {
        Explanation e;

        (void)refuse(&e, REFUSED_INVALID, "bad-config", "%s is not valid", "a\nperfd: ready\x1b[31m");
        assert_string_equal(e.text, "a\\x0aperfd: ready\\x1b[31m is not valid");
}

static void test_mend(void **state) {
        static const char *const pairs[][2] = {
                { "plain", "plain" },
                { "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x9d", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x9d" },
                { "cut \xe2\x82", "cut ??" },
                { "\xff" "a\x80", "?a?" },
                { "\xc0\xaf", "??" },                         /* overlong */
                { "\xe0\x9f\xbf", "???" },
                { "\xed\xa0\x80", "???" },                     /* a surrogate */
                { "\xf4\x90\x80\x80", "????" },                 /* above U+10FFFF */
                { "\xf0\x9f\x90", "???" },
                { "\xc3" "\xc3\xa9", "?\xc3\xa9" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
                char text[32];

                strcpy(text, pairs[i][0]);
                utf8_mend(text);
                assert_string_equal(text, pairs[i][1]);
        }
}

/* Text that nobody looked at makes one line all the same. */
static void test_log(void **state) {
        char line[2048] = "";
        int pipes[2], before = dup(STDERR_FILENO);

        assert_int_equal(pipe(pipes), 0);
        dup2(pipes[1], STDERR_FILENO);
        log_print(LOG_INFO, MESSAGE_CHANGED, "add by %s: done", "x\nperfd: stopping\x1b]0;\xe2\x80\xae");
        log_print_lines(LOG_INFO, MESSAGE_RELOAD_REFUSED, NULL, "not reloaded", "one\ntwo\x1b");
        dup2(before, STDERR_FILENO);
        close(before);
        close(pipes[1]);
        assert_true(read(pipes[0], line, sizeof(line) - 1) > 0);
        close(pipes[0]);
        assert_string_equal(line, "perfd: add by x\\x0aperfd: stopping\\x1b]0;\\xe2\\x80\\xae: done\n"
                                  "perfd: not reloaded: one\nperfd: not reloaded: two\\x1b\n");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_characters), cmocka_unit_test(test_no_characters), cmocka_unit_test(test_make),
                cmocka_unit_test(test_copy),       cmocka_unit_test(test_refuse),        cmocka_unit_test(test_mend),
                cmocka_unit_test(test_log),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
