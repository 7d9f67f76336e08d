/* Where a daemon is: what ssh is run with, and what becomes of a program in its place that does not lead to a daemon. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/perfd.h"

static char folder[] = "/tmp/perfd-test.XXXXXX", program[64], said[64];

static int set_up(void **state) {
        if (!mkdtemp(folder))
                return -1;
        (void)snprintf(program, sizeof(program), "%s/ssh", folder);
        (void)snprintf(said, sizeof(said), "%s/said", folder);
        return setenv("PERFD_SSH", program, 1);
}

static int tear_down(void **state) {
        (void)unlink(program);
        (void)unlink(said);
        return rmdir(folder);
}

/* A shell's script in ssh's place. */
static void become(const char *script) {
        FILE *f = fopen(program, "w");

        assert_non_null(f);
        fprintf(f, "#!/bin/sh\n%s\n", script);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(chmod(program, 0755), 0);
}

/* What connecting there fails with. */
static void check_failure(const char *uri, int code, const char *reason, const char *message) {
        perfd_client *c = perfd_client_new("test 1");
        const perfd_error *e;

        assert_int_equal(perfd_client_connect_uri(c, uri), code);
        e = perfd_client_error(c);
        assert_string_equal(e->reason, reason);
        if (!strstr(e->message, message))
                fail_msg("'%s' has no '%s'", e->message, message);
        assert_int_equal(perfd_client_fd(c), -1); /* and it may be tried elsewhere */
        perfd_client_free(c);
}

static void test_wrong_uris(void **state) {
        static const char *const wrong[] = { "", "web1", "tls://web1", "ssh://", "ssh:///run/x", "ssh://-oX", "ssh://@", "ssh://a b",
                                             "ssh://a\nb", "unixx:/a", "ssh://a;b", "ssh://$(b)", "ssh://a|b", "ssh://`b`", "ssh://a\\b",
                                             "ssh://b@-oX", "ssh://a'@b", "ssh://a\"", "ssh://a,b", "ssh://a*",
                                             "ssh://a:", "ssh://a@" };

        become("exit 9");
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
                check_failure(wrong[i], PERFD_E_INVALID, "bad-uri", "expected unix:PATH, ssh://");
        check_failure("unix:", PERFD_E_INVALID, "bad-path", "1 to 107 bytes");
        check_failure("unix:/nowhere/a", PERFD_E_UNREACHABLE, "unreachable", "does not exist");
}

/* The words that ssh is given, one a line. */
static void check_words(const char *uri, const char *words) {
        char script[256], text[512];
        FILE *f;
        size_t n;

        (void)snprintf(script, sizeof(script), "printf '%%s\\n' \"$@\" >%s", said);
        become(script);
        check_failure(uri, PERFD_E_UNREACHABLE, "ssh", "status 0");
        f = fopen(said, "r");
        assert_non_null(f);
        n = fread(text, 1, sizeof(text) - 1, f);
        text[n] = '\0';
        assert_int_equal(fclose(f), 0);
        assert_string_equal(text, words);
}

static void test_words(void **state) {
        check_words("ssh://web1", "-T\n--\nssh://web1\nperfctl stdio\n");
        check_words("ssh://ann@web1:22/", "-T\n--\nssh://ann@web1:22\nperfctl stdio\n");
        check_words("ssh://there\\ann@web-1_a.example:22", "-T\n--\nssh://there\\ann@web-1_a.example:22\nperfctl stdio\n");
        check_words("ssh://[::1]/run/it's/a.sock", "-T\n--\nssh://[::1]\nperfctl --socket '/run/it'\\''s/a.sock' stdio\n");
}

static void test_failures(void **state) {
        become("echo no route >&2; exit 255");
        check_failure("ssh://web1", PERFD_E_UNREACHABLE, "ssh", "ssh://web1 cannot be reached by ssh: no route");
        become("echo 'sh: perfctl: not found' >&2; exit 127");
        check_failure("ssh://web1", PERFD_E_UNREACHABLE, "no-perfctl", "there is no perfctl");
        become("exit 3");
        check_failure("ssh://web1", PERFD_E_UNREACHABLE, "unreachable", "reaches no perfd");
        become("kill -KILL $$");
        check_failure("ssh://web1", PERFD_E_UNREACHABLE, "ssh", "status 137");
        become("echo Welcome to web1, all of you; cat >/dev/null");
        check_failure("ssh://web1", PERFD_E_PROTOCOL, "protocol", "print something");
        assert_int_equal(unlink(program), 0);
        check_failure("ssh://web1", PERFD_E_UNREACHABLE, "ssh", "cannot be run");
}

/* Of what it says the end is kept, without what a terminal would obey; and much of it does not stop it. */
static void test_much_is_said(void **state) {
        become("i=0; while [ $i -lt 3000 ]; do printf 'line\\033[1m \\t%d of what is said, which is longer than a pipe\\n' $i >&2 || :; i=$((i + 1));"
               " done; exit 255");
        check_failure("ssh://web1", PERFD_E_UNREACHABLE, "ssh", "line?[1m 1");
}

/* One that says nothing is ended with the client, or when its time is over. */
static void test_silence(void **state) {
        perfd_client *c = perfd_client_new("test 1");

        become("exec cat >/dev/null");
        perfd_client_set_timeout(c, 20);
        assert_int_equal(perfd_client_connect_uri(c, "ssh://web1"), PERFD_E_TIMEOUT);
        assert_non_null(strstr(perfd_client_error(c)->message, "no answer in time"));
        perfd_client_free(c);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_wrong_uris), cmocka_unit_test(test_words),   cmocka_unit_test(test_failures),
                cmocka_unit_test(test_much_is_said), cmocka_unit_test(test_silence),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
