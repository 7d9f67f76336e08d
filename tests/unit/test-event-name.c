/* Names of perf list: what each parses to, and for each refusal the text, the reason and the place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>

#include "config/event-name/event-name.h"
#include "config/text/name.h"
#include "config/text/words.h"
#include "daemon/base/cleanup.h"

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
                { "sched:p", "sched", "p", false }, /* a name that could be a modifier is still a name */
                { "read_x:y", "read_x", "y", false },
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
                { "dummy", PERF_COUNT_SW_DUMMY, "events" },
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

static void test_hardware(void **state) {
        static const struct {
                const char *text;
                uint64_t config;
        } cases[] = {
                { "cpu-cycles", 0 },       { "cycles", 0 },
                { "instructions", 1 },     { "cache-references", 2 },
                { "cache-misses", 3 },     { "branch-instructions", 4 },
                { "branches", 4 },         { "branch-misses", 5 },
                { "bus-cycles", 6 },       { "stalled-cycles-frontend", 7 },
                { "idle-cycles-frontend", 7 }, { "stalled-cycles-backend", 8 },
                { "idle-cycles-backend", 8 },  { "ref-cycles", 9 },
        };
        size_t n_events, n_names = 0;
        const NumberedEvent *events = hardware_events(&n_events);

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                EventName n = EVENT_NAME_NULL;

                assert_int_equal(event_name_parse(cases[i].text, &n, NULL), 0);
                assert_int_equal(n.kind, EVENT_NAME_HARDWARE);
                assert_int_equal(n.config, cases[i].config);
                assert_ptr_equal(n.numbered, hardware_event_find(cases[i].text));
                assert_int_equal(n.numbered->config, cases[i].config);
                assert_false(event_name_has_fields(&n));
                event_name_deinit(&n);
        }
        for (size_t i = 0; i < n_events; i++)
                n_names += events[i].alias ? 2 : 1;
        assert_int_equal(n_names, ARRAY_SIZE(cases));
        assert_null(hardware_event_find("cpu-clock"));
        assert_null(software_event_find("cycles"));
}

/* As `perf stat -vv -e` prints them. */
static void test_caches(void **state) {
        static const struct {
                const char *text;
                uint64_t config;
        } cases[] = {
                { "L1-dcache-loads", 0 },
                { "L1-dcache-load-misses", 0x10000 },
                { "L1-dcache-stores", 0x100 },
                { "l1d", 0 },
                { "l1-d-misses", 0x10000 },
                { "L1-data-write-miss", 0x10100 },
                { "L1-icache-prefetches", 0x201 },
                { "L1-instruction-speculative-load-misses", 0x10201 },
                { "LLC-stores", 0x102 },
                { "L2-speculative-read-refs", 0x202 },
                { "dTLB-store-misses", 0x10103 },
                { "d-tlb-prefetch-access", 0x203 },
                { "ITLB-loads", 4 },
                { "Instruction-TLB-read-ops", 4 },
                { "branch-loads", 5 },
                { "branch-load-misses", 0x10005 },
                { "bpu", 5 },
                { "branches-miss", 0x10005 },
                { "node-misses-prefetch", 0x10206 },
        };
        static const char *const listed[] = {
                "L1-dcache-loads", "L1-dcache-load-misses", "L1-dcache-stores", "L1-dcache-store-misses",
                "L1-dcache-prefetches", "L1-dcache-prefetch-misses", "L1-icache-loads", "L1-icache-load-misses",
                "L1-icache-prefetches", "L1-icache-prefetch-misses", "LLC-loads", "LLC-load-misses", "LLC-stores",
                "LLC-store-misses", "LLC-prefetches", "LLC-prefetch-misses", "dTLB-loads", "dTLB-load-misses",
                "dTLB-stores", "dTLB-store-misses", "dTLB-prefetches", "dTLB-prefetch-misses", "iTLB-loads",
                "iTLB-load-misses", "branch-loads", "branch-load-misses", "node-loads", "node-load-misses",
                "node-stores", "node-store-misses", "node-prefetches", "node-prefetch-misses",
        };
        char buffer[64];
        uint64_t config;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                EventName n = EVENT_NAME_NULL;

                assert_int_equal(event_name_parse(cases[i].text, &n, NULL), 0);
                assert_int_equal(n.kind, EVENT_NAME_CACHE);
                assert_int_equal(n.config, cases[i].config);
                event_name_deinit(&n);
        }
        for (size_t i = 0; i < ARRAY_SIZE(listed); i++) {
                EventName n = EVENT_NAME_NULL;

                assert_true(cache_event(i, buffer, &config));
                assert_string_equal(buffer, listed[i]);
                assert_int_equal(event_name_parse(buffer, &n, NULL), 0);
                assert_int_equal(n.config, config);
                event_name_deinit(&n);
        }
        assert_false(cache_event(ARRAY_SIZE(listed), buffer, &config));
}

static void test_raw(void **state) {
        static const struct {
                const char *text;
                uint64_t config;
        } cases[] = { { "r01c2", 0x1c2 }, { "r0x1a8", 0x1a8 }, { "rFF:k", 0xff }, { "r0", 0 },
                      { "rffffffffffffffff", UINT64_MAX }, { "read", 0xead } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                EventName n = EVENT_NAME_NULL;

                assert_int_equal(event_name_parse(cases[i].text, &n, NULL), 0);
                assert_int_equal(n.kind, EVENT_NAME_RAW);
                assert_int_equal(n.config, cases[i].config);
                event_name_deinit(&n);
        }
}

static void test_pmu(void **state) {
        static const struct {
                const char *name, *text;
                bool is_number;
                uint64_t value;
                size_t position;
        } terms[] = {
                { "event", "0x3C", true, 0x3c, 4 }, { "umask", "17", true, 17, 15 }, { "any", NULL, false, 0, 24 },
                { "config", "1a8", true, 0x1a8, 28 }, { "read", NULL, false, 0, 33 },
                { "name", "a,b=c", false, 0, 38 }, { "type", "1abc", false, 0, 51 },
        };
        EventName n = EVENT_NAME_NULL;

        assert_int_equal(event_name_parse("cpu/event=0x3C,umask=17,any,r1a8,read,name='a,b=c',type=1abc/pp", &n, NULL), 0);
        assert_int_equal(n.kind, EVENT_NAME_PMU);
        assert_string_equal(n.group, "cpu");
        assert_int_equal(n.n_terms, ARRAY_SIZE(terms));
        for (size_t i = 0; i < n.n_terms; i++) {
                assert_string_equal(n.terms[i].name, terms[i].name);
                assert_int_equal(n.terms[i].is_number, terms[i].is_number);
                assert_int_equal(n.terms[i].value, terms[i].value);
                assert_int_equal(n.terms[i].position, terms[i].position);
                assert_int_equal(!n.terms[i].text, !terms[i].text);
                if (terms[i].text)
                        assert_string_equal(n.terms[i].text, terms[i].text);
        }
        assert_int_equal(n.modifiers.precise, 2);
        event_name_deinit(&n);

        assert_int_equal(event_name_parse("uncore_imc*//", &n, NULL), 0);
        assert_string_equal(n.group, "uncore_imc*");
        assert_int_equal(n.n_terms, 0);
        assert_false(event_name_is_glob(&n)); /* one event, on several PMUs */
        event_name_deinit(&n);
}

static void test_breakpoints(void **state) {
        static const struct {
                const char *text;
                uint64_t address;
                uint32_t length, access;
        } cases[] = {
                { "mem:0x7f001234", 0x7f001234, 4, HW_BREAKPOINT_RW },
                { "mem:4096/8", 4096, 8, HW_BREAKPOINT_RW },
                { "mem:0x10/1:w", 0x10, 1, HW_BREAKPOINT_W },
                { "mem:0x10:wr", 0x10, 4, HW_BREAKPOINT_RW },
                { "mem:0x10:r", 0x10, 4, HW_BREAKPOINT_R },
                { "mem:0x10:x", 0x10, sizeof(long), HW_BREAKPOINT_X },
                { "mem:0xffffffffffffffff:x:k", UINT64_MAX, sizeof(long), HW_BREAKPOINT_X },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                EventName n = EVENT_NAME_NULL;

                assert_int_equal(event_name_parse(cases[i].text, &n, NULL), 0);
                assert_int_equal(n.kind, EVENT_NAME_BREAKPOINT);
                assert_int_equal(n.address, cases[i].address);
                assert_int_equal(n.length, cases[i].length);
                assert_int_equal(n.access, cases[i].access);
                event_name_deinit(&n);
        }
}

static void test_probes(void **state) {
        static const struct {
                const char *text;
                EventNameKind kind;
                bool is_return;
                const char *path, *symbols; /* joined by a space */
                uint64_t address, offset;
        } cases[] = {
                { "kprobe:vfs_read", EVENT_NAME_KPROBE, false, NULL, "vfs_read", 0, 0 },
                { "kprobe:vfs_read+0x10", EVENT_NAME_KPROBE, false, NULL, "vfs_read", 0, 16 },
                { "kprobe:f.isra.0|f|g+8", EVENT_NAME_KPROBE, false, NULL, "f.isra.0 f g", 0, 8 },
                { "kprobe:0xffffffff81000000", EVENT_NAME_KPROBE, false, NULL, "", 0xffffffff81000000, 0 },
                { "kretprobe:vfs_read", EVENT_NAME_KPROBE, true, NULL, "vfs_read", 0, 0 },
                { "uprobe:/bin/sh:main", EVENT_NAME_UPROBE, false, "/bin/sh", "main", 0, 0 },
                { "uprobe:/proc/1/root/a:b:main+4", EVENT_NAME_UPROBE, false, "/proc/1/root/a:b", "main", 0, 4 },
                { "uprobe:/lib/c.so:memcpy@@GLIBC_2.14|memcpy@GLIBC_2.2.5", EVENT_NAME_UPROBE, false, "/lib/c.so",
                  "memcpy@GLIBC_2.14 memcpy@GLIBC_2.2.5", 0, 0 },
                { "uprobe:/go:main.(*T).Run", EVENT_NAME_UPROBE, false, "/go", "main.(*T).Run", 0, 0 },
                { "uprobe:/bin/sh:0x1139", EVENT_NAME_UPROBE, false, "/bin/sh", "", 0x1139, 0 },
                { "uretprobe:/bin/sh:main", EVENT_NAME_UPROBE, true, "/bin/sh", "main", 0, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char joined[100] = "";
                EventName n = EVENT_NAME_NULL;

                assert_int_equal(event_name_parse(cases[i].text, &n, NULL), 0);
                assert_int_equal(n.kind, cases[i].kind);
                assert_int_equal(n.is_return, cases[i].is_return);
                for (size_t k = 0; k < n.place.n_symbols; k++)
                        (void)snprintf(joined + strlen(joined), sizeof(joined) - strlen(joined), "%s%s", k ? " " : "",
                                       n.place.symbols[k]);
                assert_string_equal(joined, cases[i].symbols);
                assert_int_equal(n.place.address, cases[i].address);
                assert_int_equal(n.place.offset, cases[i].offset);
                assert_int_equal(!n.path, !cases[i].path);
                if (n.path)
                        assert_string_equal(n.path, cases[i].path);
                assert_true(event_name_has_fields(&n));
                event_name_deinit(&n);
        }
}

static void test_usdt_and_external(void **state) {
        EventName n = EVENT_NAME_NULL;

        assert_int_equal(event_name_parse("usdt:/lib/a:b.so:libc:setjmp-x", &n, NULL), 0);
        assert_int_equal(n.kind, EVENT_NAME_USDT);
        assert_string_equal(n.path, "/lib/a:b.so");
        assert_string_equal(n.group, "libc");
        assert_string_equal(n.name, "setjmp-x");
        assert_true(event_name_has_fields(&n));
        event_name_deinit(&n);
        assert_int_equal(event_name_parse("external:deploy.done", &n, NULL), 0);
        assert_int_equal(n.kind, EVENT_NAME_EXTERNAL);
        assert_string_equal(n.name, "deploy.done");
        assert_true(event_name_has_fields(&n));
        event_name_deinit(&n);
}

static void test_kinds(void **state) {
        static const char *const words[] = { "tracepoint", "software", "hardware", "cache", "raw", "pmu", "breakpoint",
                                             "kprobe", "uprobe", "usdt", "external" };

        assert_int_equal(ARRAY_SIZE(words), _EVENT_NAME_KIND_MAX);
        for (unsigned i = 0; i < _EVENT_NAME_KIND_MAX; i++)
                assert_string_equal(event_name_kind(i), words[i]);
}

static void test_refusals(void **state) {
        static const struct {
                const char *text;
                int refusal;
                const char *reason;
                unsigned position;
                const char *why; /* behind "event 'TEXT'" */
        } cases[] = {
#define BAD REFUSED_INVALID, "bad-event"
                { "", BAD, 1, ": the name is empty" },
                { ":x", BAD, 1, ": the tracepoint's group is missing before the colon" },
                { "sched:", BAD, 7, ": the tracepoint's name is missing after the colon" },
                { "sched:..", BAD, 7, ": the parts of a tracepoint's name cannot begin with a dot" },
                { "../x:y", BAD, 1, ": this character is not part of a PMU's name" },
                { "sched:a/b", BAD, 8, ": this character is not part of a tracepoint's name" },
                { "sched:sched_switch:", BAD, 20, ": the modifiers are missing after the colon" },
                { "sched:sched_switch:q", BAD, 20, ": unknown modifier, expected some of u k h H G I D e S p P" },
                { "sched:a[bc", BAD, 8, ": this bracket of a glob is not closed" },
                { "sched:a b", BAD, 8, ": the name of an event consists of ASCII characters without spaces" },
                { "cpu-clok", REFUSED_NOT_FOUND, "unknown-event", 1, " is unknown; did you mean 'cpu-clock'?" },
                { "cycels:u", REFUSED_NOT_FOUND, "unknown-event", 1, " is unknown; did you mean 'cycles'?" },
                { "L1-dcach-load-misses", REFUSED_NOT_FOUND, "unknown-event", 1,
                  " is unknown; did you mean 'L1-dcache-load-misses'?" },
                { "kprobes", REFUSED_NOT_FOUND, "unknown-event", 1, " is unknown; did you mean 'kprobe:'?" },
                { "sched_switch", REFUSED_NOT_FOUND, "unknown-event", 1,
                  " is unknown: a tracepoint has its group before its name, as in sched:sched_switch; `perfctl available NAME` "
                  "shows it" },
                { "tracepoint:sched:sched_switch", BAD, 1,
                  ": only perfctl takes 'tracepoint:' before a name: it is 'sched:sched_switch'" },
                { "nonsense", REFUSED_NOT_FOUND, "unknown-event", 1,
                  " is unknown: expected a name of perf list, such as cycles, cpu-clock, sched:sched_switch or "
                  "cpu/event=0x3c/, or a probe, such as kprobe:vfs_read" },
                { "bpf-output", REFUSED_UNSUPPORTED, "unsupported-event", 1,
                  " carries the output of BPF programs, which this version of perfd does not run" },
                { "cycles:", BAD, 8, ": the modifiers are missing after the colon" },
                { "cycles:uu", BAD, 9, ": modifier u occurs twice" },
                { "cycles:pppp", BAD, 11, ": at most 3 p are allowed" },
                { "cycles:uS", BAD, 9, ": modifier S must be after the brace of a group, such as {a,b}:S" },
                { "cycles:b", REFUSED_UNSUPPORTED, "unsupported-event", 8, ": perfd does not support modifier b of perf" },
                { "L1-dcache-lods", BAD, 11, ": expected at most one of loads, stores, prefetches, and one of refs, "
                  "misses, such as L1-dcache-load-misses; did you mean 'loads'?" },
                { "LLC-loads-stores", BAD, 11, ": expected at most one of loads, stores, prefetches, and one of refs, "
                  "misses, such as L1-dcache-load-misses; did you mean 'stores'?" },
                { "iTLB-stores", BAD, 6, ": iTLB has no store events" },
                { "L1-icache-store-misses", BAD, 11, ": L1-icache has no store events" },
                { "r00000000000000001", BAD, 2, ": a raw event has at most 16 hexadecimal digits" },
                { "cpu/event=1", BAD, 12, ": the slash after the PMU's terms is missing" },
                { "software/config=2,name=x*/", BAD, 25, ": a name with * ? or [ would be a glob in requests" },
                { "/event/", BAD, 1, ": the PMU's name is missing before the slash" },
                { "cpu/event=1,/", BAD, 13, ": a term's name is missing" },
                { "cpu/=1/", BAD, 5, ": a term's name is missing" },
                { "cpu/event=/", BAD, 11, ": the term's value is missing after the '='" },
                { "cpu/event=18446744073709551616/", BAD, 11, ": this number does not fit in 64 bits" },
                { "cpu/event=0x10000000000000000/", BAD, 11, ": this is not a 64-bit hexadecimal number" },
                { "cpu/name='a/", BAD, 10, ": the quotes are empty or not closed" },
                { "cpu/event=1/x", BAD, 13, ": unknown modifier, expected some of u k h H G I D e S p P" },
                { "mem", BAD, 4, ": expected mem:ADDRESS[/LENGTH][:ACCESS]" },
                { "mem:main", BAD, 5, ": the address of a breakpoint is a 64-bit number, such as 0x7f00" },
                { "mem:0x10/3", BAD, 10, ": a breakpoint is 1, 2, 4 or 8 bytes long" },
                { "mem:0x10:rr", BAD, 11, ": access r occurs twice" },
                { "mem:0x10:rwu", BAD, 12, ": unknown access, expected some of r w, or x" },
                { "mem:0x10:rx", BAD, 10,
                  ": access x excludes r and w: a breakpoint is on execution, or on reading and writing" },
                { "kprobe", BAD, 7, ": expected kprobe:SYMBOL" },
                { "kprobe:", BAD, 8, ": a symbol is missing here" },
                { "kprobe:a||b", BAD, 10, ": a symbol is missing here" },
                { "kprobe:a:b", BAD, 9, ": this character is not part of a symbol of the kernel" },
                { "kprobe:f+x", BAD, 10,
                  ": the offset after a symbol is a 64-bit number of bytes, at the end of the name" },
                { "kprobe:0x10000000000000000", BAD, 8,
                  ": this is neither a symbol nor a 64-bit address such as 0x1139" },
                { "kretprobe:f+4", BAD, 13, ": a probe on the return of a function cannot have an offset" },
                { "uprobe:/bin/sh", BAD, 15, ": expected uprobe:PATH:SYMBOL" },
                { "uprobe:sh:main", BAD, 8, ": expected the absolute path of an executable or shared object" },
                { "uprobe:/bin/:main", BAD, 12, ": this path is that of a directory" },
                { "uprobe:/bin/sh:", BAD, 16, ": a symbol is missing here" },
                { "uprobe:/bin/sh:f@", BAD, 18,
                  ": the version of a symbol follows a single @, such as memcpy@GLIBC_2.14" },
                { "usdt:/lib/x:libc", BAD, 17, ": expected usdt:PATH:PROVIDER:NAME" },
                { "usdt:/lib/x::setjmp", BAD, 13, ": the provider is missing here" },
                { "usdt:/lib/x:libc:set*", BAD, 21, ": patterns are for tracepoints and uprobes only: name one probe of those that "
                  "perfctl available lists for this" },
                { "usdt:/lib/x:l?bc:set", BAD, 14, ": patterns are for tracepoints and uprobes only: name one probe of those that "
                  "perfctl available lists for this" },
                { "usdt:/lib/x:libc:set%", BAD, 21, ": this character is not part of the probe's name" },
                { "kprobe:vfs_*", BAD, 12, ": patterns are for tracepoints and uprobes only: name one function" },
                { "external", BAD, 9, ": the external event's name is missing here" },
                { "external:a:b", BAD, 11, ": this character is not part of the external event's name" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char whole[300];
                EventName n = EVENT_NAME_NULL;
                Explanation e = EXPLANATION_NULL;

                (void)snprintf(whole, sizeof(whole), "event '%s'%s", cases[i].text, cases[i].why);
                assert_int_equal(event_name_parse(cases[i].text, &n, &e), cases[i].refusal);
                assert_string_equal(e.text, whole);
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
                cmocka_unit_test(test_tracepoints), cmocka_unit_test(test_software),
                cmocka_unit_test(test_hardware),    cmocka_unit_test(test_caches),
                cmocka_unit_test(test_raw),         cmocka_unit_test(test_pmu),
                cmocka_unit_test(test_breakpoints), cmocka_unit_test(test_probes),
                cmocka_unit_test(test_usdt_and_external), cmocka_unit_test(test_kinds),
                cmocka_unit_test(test_refusals),    cmocka_unit_test(test_longest),
                cmocka_unit_test(test_quotes),      cmocka_unit_test(test_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
