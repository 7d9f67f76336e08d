/* What a line of the log is in the journal: its kind, where it was said, who has caused it, and what nobody can forge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "daemon/base/log.h"

static char entry[1 << 16]; /* the fields of the last one, each with a line break behind it */
static int n_entries;

int __wrap_sd_journal_sendv(const struct iovec *parts, int n);

int __wrap_sd_journal_sendv(const struct iovec *parts, int n) {
        size_t used = 0;

        for (int i = 0; i < n; i++) {
                memcpy(entry + used, parts[i].iov_base, parts[i].iov_len);
                used += parts[i].iov_len;
                entry[used++] = '\n';
        }
        entry[used] = '\0';
        n_entries++;
        return 0;
}

static void assert_field(const char *field) {
        char line[2048], *at;

        (void)snprintf(line, sizeof(line), "%s\n", field);
        at = strstr(entry, line);
        if (!at || (at != entry && at[-1] != '\n'))
                fail_msg("no %s in:\n%s", field, entry);
}

/* As a service whose stderr is the journal's, by systemd.exec(5). */
static void be_service(void) {
        struct stat s;
        char stream[64];

        assert_int_equal(fstat(STDERR_FILENO, &s), 0);
        (void)snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)s.st_dev, (unsigned long long)s.st_ino);
        setenv("JOURNAL_STREAM", stream, 1);
}

static size_t count_lines(void) {
        size_t n = 0;

        for (const char *p = entry; (p = strchr(p, '\n')); p++)
                n++;
        return n;
}

static void test_entries(void **state) {
        const LogCause client = { .uid = 1000, .pid = 4321, .connection = 17 };
        LogField many[LOG_FIELDS_MAX + 1];
        char line[64], big[3000];

        assert_true(log_is_journal());
        (void)snprintf(line, sizeof(line), "CODE_LINE=%d", __LINE__ + 1);
        log_print(LOG_INFO, MESSAGE_READY, "ready: %d CPUs", 2);
        assert_field("MESSAGE=ready: 2 CPUs");
        assert_field("MESSAGE_ID=4503565c1141427caf31a7b9c31e2de5");
        assert_field("PRIORITY=6");
        assert_field("CODE_FILE=tests/unit/test-log-entries.c");
        assert_field("CODE_FUNC=test_entries");
        assert_field(line);
        assert_int_equal(count_lines(), 6); /* nobody has caused it */

        (void)log_charge(client);
        log_print_with(LOG_ERR, MESSAGE_CHANGE_REFUSED, LOG_FIELDS({ "EVENT", "a\nPRIORITY=0\nPERFD_UID=0" }, { "REASON", NULL },
                                                                   { "CPU", LOG_NUMBER(3) }),
                       "no %s", "b\nMESSAGE_ID=1");
        assert_field("MESSAGE=no b\\x0aMESSAGE_ID=1");
        assert_field("PERFD_EVENT=a\\x0aPRIORITY=0\\x0aPERFD_UID=0");
        assert_field("PERFD_UID=1000");
        assert_field("PERFD_PID=4321");
        assert_field("PERFD_CONNECTION=17");
        assert_field("PERFD_CPU=3");
        assert_int_equal(count_lines(), 6 + 3 + 2);

        memset(big, 'x', sizeof(big) - 1);
        big[sizeof(big) - 1] = '\0';
        for (size_t i = 0; i < LOG_FIELDS_MAX; i++)
                many[i] = (LogField){ "EVENT", big };
        many[LOG_FIELDS_MAX] = (LogField){ .name = NULL };
        log_print_with(LOG_INFO, MESSAGE_NOTE, many, "%s", big); /* what there is no room for is cut, or left out, and is whole */
        assert_null(strstr(entry, big));
        assert_non_null(strstr(entry, "PERFD_EVENT=xxx"));
        assert_in_range(count_lines(), 9 + 8, 9 + LOG_FIELDS_MAX);
        assert_int_equal(log_charge(LOG_CAUSE_NOBODY).connection, client.connection);
        log_print_lines(LOG_ERR, MESSAGE_RELOAD_REFUSED, LOG_FIELDS({ "REASON", "bad-config" }), "not reloaded", "one\ntwo");
        assert_field("MESSAGE=not reloaded: two");
        assert_field("PERFD_REASON=bad-config");
        assert_int_equal(n_entries, 5);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_entries) };

        be_service();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
