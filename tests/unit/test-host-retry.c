/* When a host that was lost is tried again, and what ends that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/perfctl/hosts/retry.h"

/* Of any chance: no earlier than half of the time, and no later than it. */
static void expect(HostRetry *r, uint64_t whole) {
        HostRetry longest = *r, shortest = *r, any = *r;

        assert_int_equal(host_retry_next(&shortest, 0), whole / 2);
        assert_int_equal(host_retry_next(&longest, whole - whole / 2), whole);
        assert_in_range(host_retry_next(&any, UINT64_MAX), whole / 2, whole);
        (void)host_retry_next(r, 0);
}

static void test_times(void **state) {
        HostRetry r = { .wait = 0 };

        for (uint64_t whole = HOST_RETRY_FIRST; whole < HOST_RETRY_MAX; whole *= 2)
                expect(&r, whole);
        for (int i = 0; i < 100; i++)
                expect(&r, HOST_RETRY_MAX);
}

/* One whose streams last for a moment is tried as seldom as one that is not there. */
static void test_stream_that_lasts(void **state) {
        HostRetry r = { .wait = 0 };

        expect(&r, HOST_RETRY_FIRST);
        host_retry_lasted(&r, HOST_RETRY_MAX);
        expect(&r, 2 * HOST_RETRY_FIRST);
        host_retry_lasted(&r, HOST_RETRY_MAX + 1);
        expect(&r, HOST_RETRY_FIRST);
}

static bool may_pass(int code, perfd_refusal refusal, const char *reason, const char *message) {
        return host_error_may_pass(&(perfd_error){ .code = code, .refusal = refusal, .reason = reason, .message = message });
}

static void test_errors(void **state) {
        assert_true(may_pass(PERFD_E_CLOSED, PERFD_REFUSED_NOT, "closed", ""));
        assert_true(may_pass(PERFD_E_UNREACHABLE, PERFD_REFUSED_NOT, "unreachable", ""));
        assert_true(may_pass(PERFD_E_UNREACHABLE, PERFD_REFUSED_NOT, "no-permission", ""));
        assert_true(may_pass(PERFD_E_TIMEOUT, PERFD_REFUSED_NOT, "timeout", ""));
        assert_true(may_pass(-5, PERFD_REFUSED_NOT, "socket", ""));
        assert_true(may_pass(PERFD_E_UNREACHABLE, PERFD_REFUSED_NOT, "ssh", "web1 cannot be reached by ssh: Connection refused"));
        assert_false(may_pass(PERFD_E_UNREACHABLE, PERFD_REFUSED_NOT, "ssh", "web1 cannot be reached by ssh: Permission denied"));
        assert_false(may_pass(PERFD_E_UNREACHABLE, PERFD_REFUSED_NOT, "ssh", "Host key verification failed."));
        assert_false(may_pass(PERFD_E_UNREACHABLE, PERFD_REFUSED_NOT, "no-perfctl", ""));
        assert_false(may_pass(PERFD_E_CLOSED, PERFD_REFUSED_NOT, "certificate-refused", ""));
        assert_false(may_pass(PERFD_E_PROTOCOL, PERFD_REFUSED_NOT, "protocol", ""));
        assert_false(may_pass(PERFD_E_INVALID, PERFD_REFUSED_NOT, "bad-uri", ""));
        assert_false(may_pass(PERFD_E_ENDED, PERFD_REFUSED_NOT, "ended", ""));
        assert_false(may_pass(0, PERFD_REFUSED_NOT, "", ""));
}

static void test_refusals(void **state) {
        assert_true(may_pass(PERFD_E_REFUSED, PERFD_REFUSED_EXHAUSTED, "subscribers", ""));
        assert_true(may_pass(PERFD_E_REFUSED, PERFD_REFUSED_INTERNAL, "shutdown", "the relay stops"));
        assert_true(may_pass(PERFD_E_REFUSED, PERFD_REFUSED_DENIED, "rights-changed", "connect again for what is permitted now"));
        assert_false(may_pass(PERFD_E_REFUSED, PERFD_REFUSED_NOT_FOUND, "unknown-event", ""));
        assert_false(may_pass(PERFD_E_REFUSED, PERFD_REFUSED_DENIED, "not-permitted", ""));
        assert_false(may_pass(PERFD_E_REFUSED, PERFD_REFUSED_INVALID, "bad-expression", ""));
        assert_false(may_pass(PERFD_E_REFUSED, PERFD_REFUSED_VERSION, "version", ""));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_times),
                cmocka_unit_test(test_stream_that_lasts),
                cmocka_unit_test(test_errors),
                cmocka_unit_test(test_refusals),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
