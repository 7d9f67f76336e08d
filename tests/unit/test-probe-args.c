/* What a user's $argN becomes in the fetch args of a probe: of a static probe, and of a function. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/kernel/probe/function-args.h"
#include "daemon/kernel/probe/static-args.h"

static void check_static_args(const char *own, const char *text, const char *expected) {
        _cleanup_(probe_args_deinit) ProbeArgs a = PROBE_ARGS_NULL, to = PROBE_ARGS_NULL;

        assert_int_equal(probe_args_parse(text, &a, NULL), 0);
        assert_int_equal(probe_static_args(own, &a, &to, NULL), 0);
        assert_string_equal(to.text, expected);
}

/* Each $argN is where this site has it, and mistakes are where the user made them. */
static void test_static_args(void **state) {
        static const char own[] = "arg1=%di:s32 arg2=+8(%sp):u64 arg4=\\5:u8 arg12=%bx:u64";
        static const struct {
                const char *own, *text;
                unsigned position;
        } wrong[] = { { own, " a=$arg1  b=+0($arg3):string", 16 }, { own, "$arg0", 1 }, { own, "$arg123", 1 }, { NULL, "x=$arg1", 3 } };
        _cleanup_(probe_args_deinit) ProbeArgs a = PROBE_ARGS_NULL, to = PROBE_ARGS_NULL;

        check_static_args(own, "s=+0($arg2):ustring", "s=+0(+8(%sp)):ustring");
        check_static_args(own, "$arg1 n=$arg1 x=$arg1:x64 l=$arg12 i=$arg4", "%di:s32 n=%di:s32 x=%di:x64 l=%bx:u64 i=\\5:u8");
        check_static_args(own, "$args $arg* a=$stack1", "$args $arg* a=$stack1");
        check_static_args(NULL, "a=%di", "a=%di");
        check_static_args(own, "", "");
        assert_int_equal(probe_args_parse("a=$arg1 b", &a, NULL), 0);
        assert_int_equal(probe_static_args(own, &a, &to, NULL), 0);
        assert_int_equal(to.origins[strlen("a=%di")], 2);
        assert_int_equal(to.origins[strlen("a=%di:s32 ")], 8);
        assert_int_equal(to.origins[strlen("a=%di:s32 b")], 9);
        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                _cleanup_(probe_args_deinit) ProbeArgs b = PROBE_ARGS_NULL, none = PROBE_ARGS_NULL;
                Explanation e = EXPLANATION_NULL;

                assert_int_equal(probe_args_parse(wrong[i].text, &b, NULL), 0);
                assert_int_equal(probe_static_args(wrong[i].own, &b, &none, &e), REFUSED_INVALID);
                assert_string_equal(e.reason, "bad-args");
                assert_int_equal(e.position, wrong[i].position);
                assert_null(none.text);
        }
}

static int translate_args(const char *event, const char *machine, const char *text, ProbeArgs *ret, Explanation *e) {
        _cleanup_(event_name_deinit) EventName name = EVENT_NAME_NULL;

        assert_int_equal(event_name_parse(event, &name, NULL), 0);
        assert_int_equal(probe_args_parse(text, ret, NULL), 0);
        return probe_function_args(&name, machine, ret, e);
}

static void check_function_args(const char *event, const char *machine, const char *text, const char *expected) {
        _cleanup_(probe_args_deinit) ProbeArgs a = PROBE_ARGS_NULL;

        assert_int_equal(translate_args(event, machine, text, &a, NULL), 0);
        assert_string_equal(a.text, expected);
}

static void check_function_args_refused(const char *event, const char *machine, const char *text, unsigned position, const char *why) {
        _cleanup_(probe_args_deinit) ProbeArgs a = PROBE_ARGS_NULL;
        Explanation e = EXPLANATION_NULL;

        assert_true(translate_args(event, machine, text, &a, &e) > 0);
        assert_string_equal(e.reason, "bad-args");
        assert_int_equal(e.position, position);
        assert_non_null(strstr(e.text, why));
}

/* By the ABI of the machine, for whoever asks: perfctl, another client, or the configuration. */
static void test_function_args(void **state) {
        const char *x86 = "x86_64", *arm = "aarch64", *user = "uprobe:/bin/x:f", *kernel = "kprobe:f";
        _cleanup_(probe_args_deinit) ProbeArgs a = PROBE_ARGS_NULL;

        check_function_args(user, x86, "a=$arg1 b=+0($arg2):string c=$arg3:x64 $arg4 $arg5 $arg6",
                            "a=%di b=+0(%si):string c=%dx:x64 %cx %r8 %r9");
        check_function_args(kernel, x86, "$arg7 +8($arg10)", "$stack1 +8($stack4)");
        check_function_args(kernel, arm, "$arg1 $arg8 $arg9 $arg10", "%x0 %x7 $stack0 $stack1");
        check_function_args(user, x86, "$arg999 $arg999", "$stack993 $stack993");
        check_function_args(user, "riscv64", "a=%a0 b=$retval", "a=%a0 b=$retval");
        check_function_args(user, x86, "$argument $arg* $arg", "$argument $arg* $arg");
        check_function_args("kprobe:f+0", x86, "$arg1", "%di");
        check_function_args("uprobe:/a+4/x:f", x86, "$arg1", "%di");
        check_function_args("kprobe:f", "riscv64", "$arg1", "$arg1");             /* the kernel may know it */
        check_function_args("kretprobe:f", x86, "$arg1 $retval", "$arg1 $retval"); /* Linux 6.9 */
        check_function_args("uretprobe:/bin/x:f", x86, "r=$retval:s32", "r=$retval:s32");
        check_function_args("usdt:/bin/x:p:n", x86, "$arg1", "$arg1");
        check_function_args_refused(user, "riscv64", "a=$arg1", 3, "is not known for riscv64");
        check_function_args_refused(user, x86, "a=$arg1  b=$arg0", 12, "counted from 1");
        check_function_args_refused(user, x86, "$arg1000", 1, "up to $arg999");
        check_function_args_refused("uretprobe:/bin/x:f", x86, "a=$retval b=$arg1", 13, "what it returns is $retval");
        check_function_args_refused("kprobe:f+0x10", x86, "$arg1", 1, "leave out the offset");
        assert_int_equal(translate_args(user, x86, "a=$arg1  b", &a, NULL), 0); /* mistakes are where the user made them */
        assert_int_equal(a.origins[strlen("a=%d")], 2);
        assert_int_equal(a.origins[strlen("a=%di ")], 9);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_static_args),
                cmocka_unit_test(test_function_args),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
