/* Refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/base/error.h"
#include "daemon/base/thread.h"

static void test_refuse(void **state) {
        Explanation e = { .position = 7 };

        assert_int_equal(refuse(&e, REFUSED_EXISTS, "exists", "%s is there", "x"), REFUSED_EXISTS);
        assert_string_equal(e.text, "x is there");
        assert_string_equal(e.reason, "exists");
        assert_int_equal(e.position, 0);
        assert_int_equal(refuse(NULL, REFUSED_DENIED, "no", "no"), REFUSED_DENIED);
}

/* ---- trails ------------------------------------------------------------------------------------------------------ */

static unsigned n_evaluated;

static unsigned evaluate(void) {
        return ++n_evaluated;
}

static int make(int error) {
        return error_origin_of(error, "CPU %u", evaluate());
}

static int carry(int error, const char *event) {
        return error_trace_of(make(error), "event %s", event);
}

static int carry_deep(int error, unsigned n) {
        return n == 0 ? carry(error, "x") : error_trace(carry_deep(error, n - 1));
}

static void test_trail(void **state) {
        const char *text;

        n_evaluated = 0;
        errno = ENOENT;
        assert_int_equal(error_trace(carry(-ENOSPC, "sched:sched_switch")), -ENOSPC);
        assert_int_equal(errno, ENOENT);
        text = error_text(-ENOSPC);
        assert_non_null(strstr(text, "No space left on device; from make() at test-error.c:"));
        assert_non_null(strstr(text, ", CPU 1, event sched:sched_switch, through carry() at test-error.c:"));
        assert_non_null(strstr(text, ", test_trail() at test-error.c:"));
        assert_string_equal(error_text(-ENOSPC), "No space left on device"); /* it ended there */
}

/* What does not fail leaves nothing, and nothing of its text is evaluated. */
static void test_no_failure(void **state) {
        n_evaluated = 0;
        assert_int_equal(carry(0, "a"), 0);
        assert_int_equal(carry(REFUSED_DENIED, "b"), REFUSED_DENIED);
        assert_int_equal(n_evaluated, 0);
        assert_string_equal(error_text(-EPERM), "Operation not permitted");
        assert_string_equal(error_text(-REFUSED_DENIED), strerror(REFUSED_DENIED));
}

/* What is undone after a failure fails too, or finds out that there is no such file: each has its own trail. */
static void test_failures_meanwhile(void **state) {
        assert_int_equal(carry(-EIO, "first"), -EIO);
        for (int i = 0; i < 100; i++)
                assert_int_equal(error_origin(-ENOENT), -ENOENT);
        for (int error = ENOENT; error <= EHWPOISON + 10; error++)
                if (error != EIO)
                        assert_int_equal(error_origin(-error), -error);
        assert_int_equal(carry(-EBADF, "second"), -EBADF);
        assert_non_null(strstr(error_text(-EIO), "event first"));
        assert_non_null(strstr(error_text(-EBADF), "event second"));
        assert_int_equal(carry(-EIO, "third"), -EIO); /* of the same errno the last one is said */
        assert_int_equal(carry(-EIO, "fourth"), -EIO);
        assert_non_null(strstr(error_text(-EIO), "event fourth"));
        assert_null(strstr(error_text(-EIO), "event"));
        for (int error = ENOENT; error <= EHWPOISON + 10; error++)
                (void)error_trail_take(-error);
}

/* Of a library that says nothing of its own. */
static void test_trace_begins(void **state) {
        assert_int_equal(error_trace_of(-EXDEV, "a %s", "disk\n"), -EXDEV);
        assert_non_null(strstr(error_text(-EXDEV), "; from test_trace_begins() at test-error.c:"));
        assert_int_equal(error_trace_of(-EXDEV, "a %s", "disk\n"), -EXDEV);
        assert_non_null(strstr(error_text(-EXDEV), ", a disk\\x0a"));
}

/* Longer than there is room for: cut, and the origin is there all the same. */
static void test_long_trail(void **state) {
        char name[1000];
        const char *text;

        memset(name, 'n', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        assert_int_equal(carry_deep(-EIO, 100), -EIO);
        for (int i = 0; i < 3; i++)
                assert_int_equal(error_trace_of(-EIO, "%s", name), -EIO);
        text = error_text(-EIO);
        assert_non_null(strstr(text, "from make() at "));
        assert_true(strlen(text) < 768);
}

static int fail_in_thread(void *userdata) {
        ErrorTrail *ret = userdata;

        *ret = error_trail_take(carry(-EIO, "of a thread"));
        return -EIO;
}

/* A thread has its own, and takes those of others that it is given. */
static void test_threads(void **state) {
        ErrorTrail trail = ERROR_TRAIL_NULL;
        Thread t;

        assert_int_equal(thread_start(&t, THREAD_ANY, "fails", -1, fail_in_thread, &trail), 0);
        assert_int_equal(thread_join(&t), -EIO);
        assert_string_equal(error_text(-EIO), "Input/output error");
        error_trail_give(&trail);
        assert_non_null(strstr(error_text(-EIO), "event of a thread"));
        error_trail_give(&ERROR_TRAIL_NULL);
        /* a CPU that cannot be there */
        assert_int_equal(thread_start(&t, THREAD_ANY, "no-cpu", 1 << 18, fail_in_thread, &trail), -EINVAL);
        assert_non_null(strstr(error_text(-EINVAL), "; from thread_place() at thread.c:"));
        assert_int_equal(thread_start(&t, THREAD_ANY, "no-cpu", 1 << 18, fail_in_thread, &trail), -EINVAL);
        assert_non_null(strstr(error_text(-EINVAL), ", thread no-cpu, through thread_main() at "));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_refuse),
                cmocka_unit_test(test_trail),
                cmocka_unit_test(test_no_failure),
                cmocka_unit_test(test_failures_meanwhile),
                cmocka_unit_test(test_trace_begins),
                cmocka_unit_test(test_long_trail),
                cmocka_unit_test(test_threads),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
