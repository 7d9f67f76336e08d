/* Probes, as far as the kernel need not be asked: names and their owners, definitions, complaints, symbols, counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "daemon/base/cleanup.h"
#include "daemon/kernel/symbol/kernel-symbols.h"
#include "daemon/kernel/probe/dynamic.h"
#include "daemon/kernel/probe/names.h"
#include "daemon/kernel/probe/place.h"

static void check_line(const char *line, char kind, unsigned maxactive, const char *group, const char *name) {
        ProbeLine l;

        assert_true(probe_line_parse(line, strlen(line), &l));
        assert_int_equal(l.kind, kind);
        assert_int_equal(l.maxactive, maxactive);
        assert_int_equal(l.n_group, strlen(group));
        assert_memory_equal(l.group, group, l.n_group);
        assert_int_equal(l.n_name, strlen(name));
        assert_memory_equal(l.name, name, l.n_name);
}

static void test_line(void **state) {
        static const char *const none[] = {
                "", "p", "p:", "p:/", "p:a", "p:a/", "p:/b", "p:a b/c", "p:a/b/c x", "p4:a/b x", "e1:a/b x", "x:a/b y",
                "# p:a/b", " p:a/b", "r4 a/b", "p:a-b/c", "p:a/b\xc3\xa4", "-:a/b", "rr:a/b", "r-1:a/b",
        };

        check_line("p:perfd_0123456789abcdef/p12_vfs_read vfs_read+0x10 file=%di:x64", 'p', 0, "perfd_0123456789abcdef",
                   "p12_vfs_read");
        check_line("r16:g/n do_sys_open ret=$retval", 'r', 16, "g", "n");
        check_line("r4294967297:g/n x", 'r', 429496, "g", "n"); /* more than the kernel takes stays more */
        check_line("r:g/n", 'r', 0, "g", "n");
        check_line("e:g/n syscalls.sys_enter_openat file=$filename:ustring", 'e', 0, "g", "n");
        check_line("f8:g/n vfs_read%return", 'f', 8, "g", "n");
        check_line("t:g/n sched_switch", 't', 0, "g", "n");
        check_line("s:synthetic/wakeup_latency u64 lat", 's', 0, "synthetic", "wakeup_latency");
        for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
                ProbeLine untouched = { .kind = '?' };

                if (probe_line_parse(none[i], strlen(none[i]), &untouched) || untouched.kind != '?')
                        fail_msg("'%s' was taken", none[i]);
        }
}

static void test_owner(void **state) {
        static const char *const none[] = {
                "perfd_", "perfd_0123456789abcde", "perfd_0123456789abcdef0", "perfd_0123456789ABCDEF",
                "perfd_0123456789abcdeg", "perfdx0123456789abcdef", "yperfd_0123456789abcdef",
                "perfd_0123456789000000", /* of pid 0 */
        };
        ProbeOwner o = { .pid = 4194303, .start = 67108863, .spaces = 65535 }, back;
        char group[PROBE_GROUP_SIZE];

        probe_owner_group(&o, group);
        assert_string_equal(group, "perfd_ffffffffffffffff");
        o = (ProbeOwner){ .pid = 1, .start = 2, .spaces = 3 };
        probe_owner_group(&o, group);
        assert_string_equal(group, "perfd_0003000000800001");
        assert_true(probe_owner_parse(group, strlen(group), &back));
        assert_int_equal(back.pid, 1);
        assert_int_equal(back.start, 2);
        assert_int_equal(back.spaces, 3);
        for (size_t i = 0; i < ARRAY_SIZE(none); i++)
                assert_false(probe_owner_parse(none[i], strlen(none[i]), &back));
}

static void test_stat(void **state) {
        /* a comm may look like the fields behind it */
        static const char living[] = "4711 (a) Z 1 (b)) S 1 4711 4711 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 67108865 9";
        static const char dead[] = "4711 (perfd) Z 1 4711 4711 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 5 9 10";
        static const char half_dead[] = "4711 (perfd) Z 1 4711 4711 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 2 0 5 9 10";
        static const char *const none[] = { "", "4711", "4711 (perfd", "4711 (perfd) S 1 2", "0 (a) S", "x (a) S 1",
                                            "99999999999999999999 (a) S 1 1 1 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 5 9" };
        uint32_t pid, start;

        assert_true(probe_owner_parse_stat(living, &pid, &start));
        assert_int_equal(pid, 4711);
        assert_int_equal(start, 1); /* its low 26 bits */
        assert_false(probe_owner_parse_stat(dead, &pid, &start));
        assert_true(probe_owner_parse_stat(half_dead, &pid, &start)); /* other threads of it still run */
        assert_int_equal(start, 5);
        for (size_t i = 0; i < ARRAY_SIZE(none); i++)
                assert_false(probe_owner_parse_stat(none[i], &pid, &start));
}

static void test_lives(void **state) {
        ProbeOwner self, other, child;
        int to_child[2], from_child[2], status;
        pid_t pid;

        assert_int_equal(probe_owner_self(&self, NULL), 0);
        assert_int_equal(self.pid, getpid());
        assert_true(probe_owner_lives(&self, &self));
        other = self;
        other.start ^= 1; /* the pid was used before by another process */
        assert_false(probe_owner_lives(&other, &self));

        assert_int_equal(pipe(to_child), 0);
        assert_int_equal(pipe(from_child), 0);
        pid = fork();
        if (pid == 0) {
                int r = probe_owner_self(&child, NULL);

                if (r != 0 || write(from_child[1], &child, sizeof(child)) != sizeof(child))
                        _exit(1);
                close(to_child[1]);
                (void)!read(to_child[0], &r, 1);
                _exit(0);
        }
        assert_int_equal(read(from_child[0], &child, sizeof(child)), sizeof(child));
        assert_int_equal(child.pid, pid);
        assert_true(probe_owner_lives(&child, &self));
        close(to_child[1]);
        assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
        assert_false(probe_owner_lives(&child, &self)); /* dead, though nobody has waited for it yet */
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_false(probe_owner_lives(&child, &self));
        close(to_child[0]);
        close(from_child[0]);
        close(from_child[1]);
}

static void check_name(char kind, uint32_t id, unsigned attempt, size_t site, const char *place, const char *expected) {
        char name[PROBE_NAME_SIZE];

        probe_name(kind, id, attempt, site, place, name);
        assert_string_equal(name, expected);
}

static void test_name(void **state) {
        check_name('p', 12, 0, 0, "vfs_read", "p12_vfs_read");
        check_name('r', 12, 0, 0, "foo.isra.0", "r12_foo_isra_0");
        check_name('p', 12, 0, 3, "libc_setjmp", "p12_3_libc_setjmp");
        check_name('p', 12, 1, 0, "std::\xc3\xa4<int>+0x10", "p12v1_std_____int__0x10");
        check_name('p', 0, 0, 0, "", "p0_");
        check_name('p', UINT32_MAX, UINT32_MAX, SIZE_MAX, "abcdefghijklmnopqrstuvwxyz",
                   "p4294967295v4294967295_18446744073709551615_abcdefghijklmnopqrs"); /* 63 bytes */
}

static void check_args(const char *text, const char *expected) {
        _cleanup_(probe_args_deinit) ProbeArgs a = PROBE_ARGS_NULL;

        assert_int_equal(probe_args_parse(text, &a, NULL), 0);
        assert_string_equal(a.text, expected);
        for (size_t i = 0; a.text[i]; i++)
                if (a.text[i] != ' ')
                        assert_int_equal(a.text[i], text[a.origins[i]]);
}

static void test_args(void **state) {
        static const struct {
                const char *text;
                unsigned position;
        } wrong[] = { { "a=%di # b", 7 }, { "\x01", 1 }, { "a=\"\xc3\xa4\"", 4 }, { "  #", 3 }, { "a=%di\x7f", 6 } };
        _cleanup_(probe_args_deinit) ProbeArgs a = PROBE_ARGS_NULL;

        check_args(NULL, "");
        check_args("", "");
        check_args(" \t\n", "");
        check_args("a=%di:x64", "a=%di:x64");
        check_args("\n  a=%di:x64\t \r\n s=+0(%si):string \n", "a=%di:x64 s=+0(%si):string");
        assert_int_equal(probe_args_parse("  a=1   b", &a, NULL), 0);
        assert_int_equal(a.origins[0], 2);
        assert_int_equal(a.origins[4], 8);
        assert_int_equal(a.origins[5], 9); /* its end */
        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                Explanation e = EXPLANATION_NULL;

                assert_int_equal(probe_args_parse(wrong[i].text, &a, &e), REFUSED_INVALID);
                assert_string_equal(e.reason, "bad-args");
                assert_int_equal(e.position, wrong[i].position);
        }
        assert_string_equal(a.text, "a=1 b");

        assert_true(probe_path_is_plain("/usr/bin/x"));
        assert_false(probe_path_is_plain("bin/x"));
        assert_false(probe_path_is_plain("/tmp/a b"));
        assert_false(probe_path_is_plain("/tmp/a#b"));
        assert_false(probe_path_is_plain("/tmp/\xc3\xa0")); /* its second byte is a blank to the kernel */
        assert_true(probe_path_is_plain("/tmp/\xc3\xa4"));
}

/* As Linux 6.18 wrote it. */
#define OLD                                                                                                            \
        "[12379.422062] trace_uprobe: error: Unknown type is specified\n"                                              \
        "  Command: p:yprobe_test/b /tmp/t:0x1129 a=%di:x64 s=+0(%si):bogus\n"                                         \
        "                                                             ^\n"
#define FOREIGN                                                                                                        \
        "[12379.423245] trace_uprobe: error: Invalid register name\n"                                                  \
        "  Command: p:yprobe_test/b /tmp/t:0x1129 a=%zz:x64\n"                                                         \
        "                                           ^\n"
#define AGAIN                                                                                                          \
        "[12400.000001] trace_uprobe: error: Unknown type is specified\n"                                              \
        "  Command: p:yprobe_test/b /tmp/t:0x1129 a=%di:x64 s=+0(%si):bogus\n"                                         \
        "                                                             ^\n"
#define OURS "p:yprobe_test/b /tmp/t:0x1129 a=%di:x64 s=+0(%si):bogus"

static void test_complaint(void **state) {
        ProbeComplaint c;

        assert_true(probe_complaint_find("", OLD FOREIGN, OURS, &c));
        assert_int_equal(c.n_text, strlen("Unknown type is specified"));
        assert_memory_equal(c.text, "Unknown type is specified", c.n_text);
        assert_int_equal(c.position, strstr(OURS, "bogus") - OURS);
        assert_false(probe_complaint_find(OLD, OLD FOREIGN, OURS, &c)); /* of an earlier write */
        assert_true(probe_complaint_find(OLD FOREIGN, FOREIGN AGAIN, OURS, &c));
        assert_false(probe_complaint_find("", FOREIGN, OURS, &c));
        assert_false(probe_complaint_find("", OLD, "p:yprobe_test/b /tmp/t:0x1129 a=%di:x64", &c)); /* a part of it */
        assert_false(probe_complaint_find("", "", OURS, &c));
        assert_false(probe_complaint_find("", "# error log\n\n[1.0] x: error: y\n", OURS, &c));

        /* without a caret the text is all there is */
        assert_true(probe_complaint_find("", "[1.0] trace_kprobe: error: No\n  Command: p x\n", "p x", &c));
        assert_int_equal(c.position, 0);
        assert_int_equal(c.n_text, 2);
        assert_true(probe_complaint_find("", "[1.0] trace_kprobe: error: No\n  Command: p x", "p x", &c));
}

static const char symbols[] =
        "ffffffff81000000 T _stext\n"
        "ffffffff81000100 t vfs_read\n"
        "ffffffff81000200 t twice\n"
        "ffffffff81000300 t twice\n"
        "ffffffff81000400 t lone.isra.0\n"
        "ffffffff81000500 t split.part.0\n"
        "ffffffff81000540 t split.part.0.cold\n"
        "ffffffff81000600 t split.constprop.0.isra.3\n"
        "ffffffff81000700 t many.constprop.0\n"
        "ffffffff81000800 t many.constprop.1\n"
        "ffffffff81000900 t rest.part.0\n"
        "ffffffff81000a00 t rest.cold\n"
        "ffffffff81000b00 t rest.isra.\n"
        "ffffffff82000000 D vfs_data\n"
        "ffffffffc0000000 t mod_open\t[mod]\n"
        "ffffffffc0001000 t bpf_prog_1\t[bpf]\n"
        "ffffffffc0002000 t ftrace_trampoline\t[__builtin__ftrace]\n"
        "nonsense\n"
        "ffffffffffffffffff t too_long\n"
        "ffffffffc0003000 tt no_type\n"
        "ffffffffc0004000 t last";

static void check_symbol(const char *first, const char *second, const char *expected) {
        char *names[] = { (char *)first, (char *)second }, found[KERNEL_SYMBOL_SIZE];
        Explanation e = EXPLANATION_NULL;
        size_t hints = 2;

        if (kernel_symbols_find(symbols, strlen(symbols), names, second ? 2 : 1, &hints, found, &e) != 0)
                fail_msg("%s: %s", first, e.text);
        assert_string_equal(found, expected);
}

static void check_no_symbol(const char *first, const char *second, int refusal, const char *reason, const char *text) {
        char *names[] = { (char *)first, (char *)second }, found[KERNEL_SYMBOL_SIZE] = "untouched";
        Explanation e = EXPLANATION_NULL;
        size_t hints = 2;

        assert_int_equal(kernel_symbols_find(symbols, strlen(symbols), names, second ? 2 : 1, &hints, found, &e), refusal);
        assert_string_equal(e.reason, reason);
        if (!strstr(e.text, text))
                fail_msg("no '%s' in '%s'", text, e.text);
        assert_string_equal(found, "untouched");
}

static void test_symbols(void **state) {
        static const char *const hidden[] = { "vfs_data", "bpf_prog_1", "ftrace_trampoline", "too_long", "no_type",
                                              "split.cold", "vfs_rea" };

        check_symbol("vfs_read", NULL, "vfs_read");
        check_symbol("mod_open", NULL, "mod_open");
        check_symbol("last", NULL, "last");
        check_symbol("lone", NULL, "lone.isra.0");
        check_symbol("lone.isra.0", NULL, "lone.isra.0");
        check_symbol("split", NULL, "split.constprop.0.isra.3"); /* rather the function than its part */
        check_symbol("rest", NULL, "rest.part.0");
        check_symbol("gone", "vfs_read", "vfs_read");
        check_symbol("lone", "vfs_read", "lone.isra.0"); /* the first alternate that resolves, in whatever form */
        check_symbol("twice", "vfs_read", "vfs_read");
        check_no_symbol("twice", NULL, REFUSED_INVALID, "ambiguous-symbol",
                        "2 functions of this kernel are called 'twice': twice at 0xffffffff81000200, twice at "
                        "0xffffffff81000300.");
        check_no_symbol("many", "gone", REFUSED_INVALID, "ambiguous-symbol",
                        "many.constprop.0 at 0xffffffff81000700, many");
        check_no_symbol("vfs_raed", NULL, REFUSED_NOT_FOUND, "unknown-symbol", "did you mean 'vfs_read'?");
        check_no_symbol("zzz", "mod_opne", REFUSED_NOT_FOUND, "unknown-symbol", "nor one of its alternates");
        check_no_symbol("zzz", "mod_opne", REFUSED_NOT_FOUND, "unknown-symbol", "did you mean 'mod_open'?");
        for (size_t i = 0; i < ARRAY_SIZE(hidden); i++)
                check_no_symbol(hidden[i], NULL, REFUSED_NOT_FOUND, "unknown-symbol", "no function");
}

/* kernel.kptr_restrict, or no privileges: names without addresses. */
static void test_symbols_restricted(void **state) {
        static const char zeros[] = "0000000000000000 T vfs_read\n0000000000000000 t twice\n0000000000000000 t twice\n";
        char *names[] = { (char *)"vfs_read" }, *twice[] = { (char *)"twice" }, found[KERNEL_SYMBOL_TEXT_SIZE];
        _cleanup_free_ char *text = NULL;
        Explanation e = EXPLANATION_NULL;
        size_t length, hints = 2;

        assert_int_equal(kernel_symbols_find(zeros, strlen(zeros), names, 1, &hints, found, NULL), 0);
        assert_string_equal(found, "vfs_read");
        assert_int_equal(kernel_symbols_find(zeros, strlen(zeros), twice, 1, &hints, found, &e), REFUSED_INVALID);
        assert_non_null(strstr(e.text, "'twice': twice, twice."));
        assert_int_equal(kernel_symbols_check(zeros, strlen(zeros), NULL, 0x10, found, NULL), KERNEL_SYMBOLS_E_HIDDEN);
        assert_int_equal(kernel_symbols_check(zeros, strlen(zeros), "vfs_read", 0x10, found, NULL),
                         KERNEL_SYMBOLS_E_HIDDEN);

        assert_int_equal(kernel_symbols_read("/nowhere/kallsyms", &text, &length, NULL), KERNEL_SYMBOLS_E_HIDDEN);
        assert_int_equal(kernel_symbols_read("/dev/null", &text, &length, NULL), KERNEL_SYMBOLS_E_HIDDEN);
        assert_null(text);
}

static void check_place(const char *symbol, uint64_t offset, const char *expected) {
        char found[KERNEL_SYMBOL_TEXT_SIZE];

        assert_int_equal(kernel_symbols_check(symbols, strlen(symbols), symbol, offset, found, NULL), 0);
        assert_string_equal(found, expected);
}

static void check_no_place(const char *symbol, uint64_t offset, const char *text) {
        char found[KERNEL_SYMBOL_TEXT_SIZE];
        Explanation e = EXPLANATION_NULL;

        assert_int_equal(kernel_symbols_check(symbols, strlen(symbols), symbol, offset, found, &e), REFUSED_INVALID);
        assert_string_equal(e.reason, "bad-address");
        assert_non_null(strstr(e.text, text));
}

static void test_symbols_place(void **state) {
        check_place(NULL, 0xffffffff81000110, "vfs_read+0x10");
        check_place(NULL, 0xffffffff81000100, "vfs_read+0x0");
        check_place("vfs_read", 0, "vfs_read+0x0");
        check_place("vfs_read", 0xff, "vfs_read+0xff");
        check_no_place("vfs_read", 0x110, "it is twice+0x10;");
        check_no_place("vfs_read", UINT64_MAX, "after vfs_read");
        check_no_place("rest.isra.", 0x1000000, "not an address of a function"); /* in data */
        check_no_place(NULL, 0xffffffff82000010, "not an address of a function");
        check_no_place(NULL, 0x1000, "not an address of a function");
}

static void test_profile(void **state) {
        static const char events[] = "p:perfd_0000000000000001/p1_f f\n"
                                     "p:other/else else\n"
                                     "r4:perfd_0000000000000002/p1_f f\n";
        static const char kernel[] = "  p1_f                                                    5               0\n"
                                     "  else                                                    7               1\n"
                                     "  p1_f                                                   11               3\n";
        static const char user[] = "  /tmp/a file p1_f                                         5\n"
                                   "  /tmp/x else                                          7\n"
                                   "  /tmp/x p1_f                                         18446744073709551615\n";
        uint64_t hits = 1, missed = 1;

        assert_true(probe_profile_find(events, kernel, true, "perfd_0000000000000001", "p1_f", &hits, &missed));
        assert_int_equal(hits, 5);
        assert_int_equal(missed, 0);
        assert_true(probe_profile_find(events, kernel, true, "perfd_0000000000000002", "p1_f", &hits, &missed));
        assert_int_equal(hits, 11);
        assert_int_equal(missed, 3);
        assert_true(probe_profile_find(events, user, false, "perfd_0000000000000002", "p1_f", &hits, &missed));
        assert_true(hits == UINT64_MAX);
        assert_int_equal(missed, 0);
        assert_true(probe_profile_find(events, user, false, "perfd_0000000000000001", "p1_f", &hits, &missed));
        assert_int_equal(hits, 5);
        /* gone, never there, and a profile of another moment */
        assert_false(probe_profile_find(events, kernel, true, "perfd_0000000000000003", "p1_f", &hits, &missed));
        assert_false(probe_profile_find(events, kernel, true, "perfd_0000000000000001", "p2_f", &hits, &missed));
        assert_false(probe_profile_find(events, "", true, "perfd_0000000000000001", "p1_f", &hits, &missed));
        assert_false(probe_profile_find(events + strlen("p:perfd_0000000000000001/p1_f f\n"), kernel, true,
                                        "perfd_0000000000000002", "p1_f", &hits, &missed));
        assert_int_equal(hits, 5);
}

/* With and without addresses in /proc/kallsyms: where the kernel lies is in no answer, and no answer differs with it. */
static void test_client_sees_no_addresses(void **state) {
        static const char *const names[] = {
                "kprobe:0xffffffff81000000", "kprobe:0x10", "kretprobe:0xffffffffffffffff", "kprobe:vfs_read+999999",
                "kprobe:vfs_read+0x7fffffff",
        };
        const Credentials client = { .uid = 65534, .gid = 65534 };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                _cleanup_(probe_places_deinit) ProbePlaces p = PROBE_PLACES_NULL;
                _cleanup_(event_name_deinit) EventName name = EVENT_NAME_NULL;
                Explanation e = EXPLANATION_NULL;

                assert_int_equal(event_name_parse(names[i], &name, &e), 0);
                assert_int_equal(probe_places_find(&name, NULL, &client, &p, &e), REFUSED_DENIED);
                assert_string_equal(e.reason, "no-permission");
                assert_string_equal(e.text, "only clients of the control socket may probe an address of the kernel, or an offset "
                        "that is not known to be inside its function: name a function, such as kprobe:vfs_read");
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_line),
                cmocka_unit_test(test_owner),
                cmocka_unit_test(test_stat),
                cmocka_unit_test(test_lives),
                cmocka_unit_test(test_name),
                cmocka_unit_test(test_args),
                cmocka_unit_test(test_complaint),
                cmocka_unit_test(test_symbols),
                cmocka_unit_test(test_client_sees_no_addresses),
                cmocka_unit_test(test_symbols_restricted),
                cmocka_unit_test(test_symbols_place),
                cmocka_unit_test(test_profile),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
