/* What lines are made of: digits as printf(3) writes them, texts that need no escapes, and blocks of the size that is meant. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/perfctl/base/output.h"
#include "client/perfctl/base/plain.h"

static void check_number(uint64_t number) {
        char text[32], expected[32];

        *decimal_put(text, number) = '\0';
        (void)snprintf(expected, sizeof(expected), "%" PRIu64, number);
        assert_string_equal(text, expected);
        *signed_put(text, (int64_t)number) = '\0';
        (void)snprintf(expected, sizeof(expected), "%" PRId64, (int64_t)number);
        assert_string_equal(text, expected);
        *hex_put(text, number) = '\0';
        (void)snprintf(expected, sizeof(expected), "%" PRIx64, number);
        assert_string_equal(text, expected);
}

static void test_digits(void **state) {
        uint64_t random = 88172645463325252;

        for (uint64_t n = 0; n < 20000; n++)
                check_number(n);
        for (uint64_t power = 1; power <= UINT64_MAX / 10; power *= 10)
                for (uint64_t n = power * 10 - 3; n < power * 10 + 3; n++)
                        check_number(n);
        for (unsigned bit = 0; bit < 64; bit++)
                for (uint64_t n = (UINT64_C(1) << bit) - 2, i = 0; i < 4; i++)
                        check_number(n + i);
        for (int i = 0; i < 20000; i++) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                check_number(random >> i % 64);
        }
}

static bool is_plain(uint8_t c, PlainClass class) {
        return c >= ' ' && c < 0x7f && c != '\\' && !(class != PLAIN_TEXT && c == '"') &&
               !(class == PLAIN_VALUE && (c == ' ' || c == '='));
}

/* Each byte at each place of texts of all lengths around the size of a word. */
static void test_plain(void **state) {
        char text[41];

        for (size_t n = 0; n <= sizeof(text); n++)
                for (int class = PLAIN_TEXT; class <= PLAIN_JSON; class++) {
                        memset(text, 'x', sizeof(text));
                        assert_true(plain_is(text, n, (PlainClass)class));
                        for (size_t at = 0; at < n; at++) {
                                for (int c = 0; c < 256; c++) {
                                        text[at] = (char)c;
                                        if (plain_is(text, n, (PlainClass)class) != is_plain((uint8_t)c, (PlainClass)class))
                                                fail_msg("%d at %zu of %zu, class %d", c, at, n, class);
                                }
                                text[at] = 'x';
                        }
                }
}

/* Whatever is put, all of it is written, in blocks of at least 64 KiB. */
static void test_blocks(void **state) {
        static Output o;
        static char all[3 * OUTPUT_SIZE], read[3 * OUTPUT_SIZE];
        const int fd = memfd_create("output", MFD_CLOEXEC);
        size_t n = 0, written = 0, flushed = 0;

        assert_true(fd >= 0);
        output_init(&o, fd);
        for (size_t i = 0; n < sizeof(all) - OUTPUT_ROOM; i++) {
                const size_t length = i % 7 == 0 ? OUTPUT_ROOM - i % 1000 : i * 31 % 5000;

                for (size_t k = 0; k < length; k++)
                        all[n + k] = (char)(i + k);
                if (i % 2 == 0)
                        output_put(&o, all + n, length);
                else {
                        char *to = output_begin(&o, length);

                        memcpy(to, all + n, length);
                        output_end(&o, to + length);
                }
                n += length;
                if (o.n_flushed > flushed) {
                        assert_true((size_t)lseek(fd, 0, SEEK_END) - written >= 65536);
                        written = (size_t)lseek(fd, 0, SEEK_END);
                        flushed = o.n_flushed;
                }
        }
        assert_true(flushed >= 2);
        output_flush(&o);
        assert_int_equal(o.error, 0);
        assert_int_equal(pread(fd, read, sizeof(read), 0), n);
        assert_memory_equal(read, all, n);
        close(fd);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_digits),
                cmocka_unit_test(test_plain),
                cmocka_unit_test(test_blocks),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
