/* Names of perf list: what each parses to, and for each refusal the text, the reason and the place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <linux/perf_event.h>

#include "config/event-name.h"
#include "config/name.h"
#include "config/words.h"
#include "daemon/base/cleanup.h"

#define KNOWN                                                                                                          \
        "this version of perfd knows tracepoints (group:name, such as sched:sched_switch) and software events (such "  \
        "as cpu-clock)"

static void test_tracepoints(void **state) {
        static const struct {
                const char *text, *group, *name;
                bool is_glob;
        } cases[] = {
                { "sched:sched_switch", "sched", "sched_switch", false },
                { "syscalls:sys_enter_*", "syscalls", "sys_enter_*", true },
                { "*:*", "*", "*", true },
                { "sched:sched_[a-c]?", "sched", "sched_[a-c]?", true },
                { "sched:sched_[!]x]", "sched", "sched_[!]x]", true },
                { "kprobes:mine", "kprobes", "mine", false }, /* the group that tracefs gives dynamic events */
                { "xhci-hcd:xhci.x", "xhci-hcd", "xhci.x", false },
                { "r:x", "r", "x", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                EventName n = EVENT_NAME_NULL;

                assert_int_equal(event_name_parse(cases[i].text, &n, NULL), 0);
                assert_int_equal(n.kind, EVENT_NAME_TRACEPOINT);
                assert_string_equal(n.group, cases[i].group);
                assert_string_equal(n.name, cases[i].name);
                assert_int_equal(event_name_is_glob(&n), cases[i].is_glob);
                assert_null(n.numbered);
                event_name_deinit(&n);
                assert_null(n.group);
        }
        assert_string_equal(event_name_kind(EVENT_NAME_TRACEPOINT), "tracepoint");
}

static void test_software(void **state) {
        static const struct {
                const char *text;
                uint64_t config;
                const char *unit;
        } cases[] = {
                { "cpu-clock", PERF_COUNT_SW_CPU_CLOCK, "ns" },
                { "task-clock", PERF_COUNT_SW_TASK_CLOCK, "ns" },
                { "page-faults", PERF_COUNT_SW_PAGE_FAULTS, "events" },
                { "faults", PERF_COUNT_SW_PAGE_FAULTS, "events" },
                { "context-switches", PERF_COUNT_SW_CONTEXT_SWITCHES, "events" },
                { "cs", PERF_COUNT_SW_CONTEXT_SWITCHES, "events" },
                { "cpu-migrations", PERF_COUNT_SW_CPU_MIGRATIONS, "events" },
                { "migrations", PERF_COUNT_SW_CPU_MIGRATIONS, "events" },
                { "minor-faults", PERF_COUNT_SW_PAGE_FAULTS_MIN, "events" },
                { "major-faults", PERF_COUNT_SW_PAGE_FAULTS_MAJ, "events" },
                { "alignment-faults", PERF_COUNT_SW_ALIGNMENT_FAULTS, "events" },
                { "emulation-faults", PERF_COUNT_SW_EMULATION_FAULTS, "events" },
                { "cgroup-switches", PERF_COUNT_SW_CGROUP_SWITCHES, "events" },
        };
        size_t n_events, n_names = 0;
        const NumberedEvent *events = software_events(&n_events);

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                EventName n = EVENT_NAME_NULL;

                assert_int_equal(event_name_parse(cases[i].text, &n, NULL), 0);
                assert_int_equal(n.kind, EVENT_NAME_SOFTWARE);
                assert_int_equal(n.numbered->config, cases[i].config);
                assert_string_equal(n.numbered->unit, cases[i].unit);
                assert_null(n.group);
                assert_false(event_name_is_glob(&n));
                event_name_deinit(&n);
        }
        for (size_t i = 0; i < n_events; i++)
                n_names += events[i].alias ? 2 : 1;
        assert_int_equal(n_names, ARRAY_SIZE(cases));
        assert_string_equal(event_name_kind(EVENT_NAME_SOFTWARE), "software");
}

static void test_refusals(void **state) {
        static const struct {
                const char *text;
                int refusal;
                const char *reason;
                unsigned position;
                const char *explanation;
        } cases[] = {
                { "", REFUSED_INVALID, "bad-event", 1, "event '': the name is empty" },
                { ":x", REFUSED_INVALID, "bad-event", 1,
                  "event ':x': the tracepoint's group is missing before the colon" },
                { "sched:", REFUSED_INVALID, "bad-event", 7,
                  "event 'sched:': the tracepoint's name is missing after the colon" },
                { "sched:..", REFUSED_INVALID, "bad-event", 7,
                  "event 'sched:..': no part of a tracepoint's name begins with a dot" },
                { "../x:y", REFUSED_INVALID, "bad-event", 1,
                  "event '../x:y': no part of a tracepoint's name begins with a dot" },
                { "sched:a/b", REFUSED_INVALID, "bad-event", 8,
                  "event 'sched:a/b': this character is not part of a tracepoint's name" },
                { "sched:sched_switch:u", REFUSED_INVALID, "bad-event", 19,
                  "event 'sched:sched_switch:u': a tracepoint's name has one colon and no modifiers" },
                { "sched:a[bc", REFUSED_INVALID, "bad-event", 8,
                  "event 'sched:a[bc': this bracket of a glob is not closed" },
                { "sched:a b", REFUSED_INVALID, "bad-event", 8,
                  "event 'sched:a b': an event's name has no spaces and only ASCII characters" },
                { "sched:\xff\x1b", REFUSED_INVALID, "bad-event", 7,
                  "event 'sched:\\xff\\x1b': an event's name has no spaces and only ASCII characters" },
                { "cpu-clok", REFUSED_NOT_FOUND, "unknown-event", 1,
                  "event 'cpu-clok' is unknown; did you mean 'cpu-clock'? " KNOWN },
                { "nonsense", REFUSED_NOT_FOUND, "unknown-event", 1, "event 'nonsense' is unknown: " KNOWN },
                { "kprobe:vfs_read", REFUSED_UNSUPPORTED, "unsupported-event", 1,
                  "event 'kprobe:vfs_read' is a kernel probe: " KNOWN },
                { "uretprobe:/bin/sh:main", REFUSED_UNSUPPORTED, "unsupported-event", 1,
                  "event 'uretprobe:/bin/sh:main' is a user probe: " KNOWN },
                { "usdt:libc:setjmp", REFUSED_UNSUPPORTED, "unsupported-event", 1,
                  "event 'usdt:libc:setjmp' is a static user probe: " KNOWN },
                { "mem:0x7f00:rw", REFUSED_UNSUPPORTED, "unsupported-event", 1,
                  "event 'mem:0x7f00:rw' is a breakpoint: " KNOWN },
                { "cpu/event=0x3c/", REFUSED_UNSUPPORTED, "unsupported-event", 1,
                  "event 'cpu/event=0x3c/' is an event of a PMU: " KNOWN },
                { "r01c2", REFUSED_UNSUPPORTED, "unsupported-event", 1,
                  "event 'r01c2' is a raw hardware event: " KNOWN },
                { "cycles:u", REFUSED_UNSUPPORTED, "unsupported-event", 1,
                  "event 'cycles:u' is a hardware event: " KNOWN },
                { "L1-dcache-load-misses", REFUSED_UNSUPPORTED, "unsupported-event", 1,
                  "event 'L1-dcache-load-misses' is a hardware event: " KNOWN },
                { "dummy", REFUSED_UNSUPPORTED, "unsupported-event", 1,
                  "event 'dummy' is an event that never occurs by itself: " KNOWN },
                { "cs:u", REFUSED_UNSUPPORTED, "unsupported-event", 1,
                  "event 'cs:u' is a software event with a modifier: " KNOWN },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                EventName n = EVENT_NAME_NULL;
                Explanation e = EXPLANATION_NULL;

                assert_int_equal(event_name_parse(cases[i].text, &n, &e), cases[i].refusal);
                assert_string_equal(e.text, cases[i].explanation);
                assert_string_equal(e.reason, cases[i].reason);
                assert_int_equal(e.position, cases[i].position);
                assert_null(n.group);
                assert_int_equal(event_name_parse(cases[i].text, &n, NULL), cases[i].refusal);
        }
}

static void test_longest(void **state) {
        char text[EVENT_NAME_MAX + 2] = "g:";
        EventName n = EVENT_NAME_NULL;
        Explanation e = EXPLANATION_NULL;

        memset(text + 2, 'x', EVENT_NAME_MAX - 2);
        assert_int_equal(event_name_parse(text, &n, NULL), 0);
        assert_int_equal(strlen(n.name), EVENT_NAME_MAX - 2);
        event_name_deinit(&n);
        text[EVENT_NAME_MAX] = 'x';
        assert_int_equal(event_name_parse(text, &n, &e), REFUSED_INVALID);
        assert_int_equal(e.position, EVENT_NAME_MAX + 1);
}

/* A message shows what prints and never splits a character. */
static void test_quotes(void **state) {
        char text[200] = "";

        assert_string_equal(QUOTE("a\n\"\x7f"), "'a\\x0a\"\\x7f'");
        assert_string_equal(QUOTE("gr\xc3\xbc\xc3\x9f \xf0\x9f\x90\x9f"), "'gr\xc3\xbc\xc3\x9f \xf0\x9f\x90\x9f'");
        assert_string_equal(QUOTE("\xc0\xaf \xed\xa0\x80 \xe2\x80"), "'\\xc0\\xaf \\xed\\xa0\\x80 \\xe2\\x80'");
        assert_string_equal(QUOTE("\xc2\x9b \xe2\x80\xae"), "'\\xc2\\x9b \\xe2\\x80\\xae'");
        for (int i = 0; i < 50; i++)
                strcat(text, "\xe2\x82\xac");
        assert_string_equal(QUOTE(text) + 85, "\xe2\x82\xac...'");
}

static void test_names(void **state) {
        static const char *const good[] = { "a", "sched:sched_switch", "web.1/x@y=z+", "x#-" };
        static const struct {
                const char *name;
                unsigned position;
        } bad[] = { { "a b", 2 }, { "#1", 1 }, { "-x", 1 }, { "a,b", 2 }, { "x*", 2 }, { "\xc3\xbc", 1 } };
        Explanation e;

        for (size_t i = 0; i < ARRAY_SIZE(good); i++)
                assert_int_equal(name_check("name", good[i], NULL), 0);
        assert_int_equal(name_check("name", "", &e), REFUSED_INVALID);
        assert_string_equal(e.text, "name: found '', expected a name of 1 to 100 letters");
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                assert_int_equal(name_check("name", bad[i].name, &e), REFUSED_INVALID);
                assert_int_equal(e.position, bad[i].position);
                assert_string_equal(e.reason, "bad-name");
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_tracepoints), cmocka_unit_test(test_software), cmocka_unit_test(test_refusals),
                cmocka_unit_test(test_longest),     cmocka_unit_test(test_quotes),   cmocka_unit_test(test_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
