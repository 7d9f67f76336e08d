/* How many lines of the log a client can cause, whoever else writes there. Time is the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/log.h"

static nsec_t now = NSEC_PER_SEC;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret) {
        *ret = nsec_timespec(now);
        return 0;
}

static char text[1 << 20];

/* What has come to stderr since the last time; how many lines have `word` in them. */
static size_t count(int fd, const char *word) {
        ssize_t length = pread(fd, text, sizeof(text) - 1, 0);
        size_t n = 0;

        assert_true(length >= 0);
        text[length] = '\0';
        for (const char *p = text; (p = strstr(p, word)); p++)
                n++;
        return n;
}

static void clear(int fd) {
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
}

static void say(uint64_t uid, size_t n) {
        LogCause before = log_charge((LogCause){ .uid = uid, .pid = 7, .connection = 12 });

        for (size_t i = 0; i < n; i++)
                log_print(LOG_NOTICE, MESSAGE_NOTE, "by %llu", (unsigned long long)uid);
        assert_int_equal(log_charge(before).uid, uid);
}

static void test_lines(void **state) {
        int fd = memfd_create("log", 0), stderr_before = dup(STDERR_FILENO);

        unsetenv("JOURNAL_STREAM");
        assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
        say(1000, LOG_LINES_MAX);
        assert_int_equal(count(fd, "\n"), LOG_LINES_MAX);
        say(1000, 1000000);
        assert_int_equal(count(fd, "\n"), LOG_LINES_MAX + 1);
        assert_int_equal(count(fd, "too many lines"), 1);
        say(1001, 1);
        say(0, 2 * LOG_LINES_MAX);
        say(LOG_OF_NOBODY, 2 * LOG_LINES_MAX);
        assert_int_equal(count(fd, "by 1001"), 1);
        assert_int_equal(count(fd, "by 0"), 2 * LOG_LINES_MAX);
        assert_int_equal(count(fd, "\n"), 5 * LOG_LINES_MAX + 2);

        clear(fd);
        now += LOG_WINDOW;
        say(LOG_OF_NOBODY, 1); /* anybody's line says what was left out before it */
        assert_non_null(strstr((count(fd, "\n"), text), "uid 1000 has caused 1000000 more lines, which are omitted\n"));
        assert_int_equal(count(fd, "\n"), 2);
        say(1000, 1);
        assert_int_equal(count(fd, "by 1000"), 1);

        clear(fd);
        for (uint64_t uid = 2000; uid < 2100; uid++) /* more than there is room for */
                say(uid, LOG_LINES_MAX + 1);
        assert_int_equal(count(fd, "by "), 100 * LOG_LINES_MAX);
        assert_int_equal(dup2(stderr_before, STDERR_FILENO), STDERR_FILENO);
        close(stderr_before);
        close(fd);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_lines) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
