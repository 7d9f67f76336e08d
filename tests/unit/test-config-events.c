/*
 * Targets, groups and events of every kind: what each key becomes, and each contradiction with its whole text and
 * place.
 */
#include "tests/unit/config-checks.h"

#define NAMES_EXPECTED "expected cgroups in a list, by path or glob, such as [system.slice/nginx.service, " \
                       "\"user.slice/**\"]"

static void test_targets(void **state) {
        static const Case cases[] = {
                { "targets: {a: {cgroups: [a/../b]}}\n",
                  "f:2:27: cgroups: found 'a/../b', which contains '..'; " NAMES_EXPECTED "\n" },
                { "targets: {a: {cgroup: '..'}}\n",
                  "f:2:24: cgroup: found '..', which contains '..'; expected the path of a cgroup or a "
                  "glob, such as system.slice/nginx.service\n" },
                { "targets: {a: {cgroups: [a..b, /c.., /, c, c]}}\n",
                  "f:2:43: warning: cgroups: 'c' occurs twice\n" },
                { "targets: {a: {cgroups: /a}}\n", "f:2:24: cgroups: found '/a', " NAMES_EXPECTED "\n" },
                { "targets: {a: {cgroup: [/a]}}\n",
                  "f:2:23: cgroup: found a list, expected the path of a cgroup or a glob, such as "
                  "system.slice/nginx.service\n" },
                { "targets: {a: {containers: ['a b'], units: [x, ~]}}\n",
                  "f:2:30: containers: found 'a b', which contains a space; expected containers "
                  "in a list, by id, name or glob, such as [3dcb1a9f0e4c, \"web-*\"]\n"
                  "f:2:47: units: found nothing, expected units of systemd in a list, such as [nginx.service]\n" },
                { "targets: {a: {pids: [1], cgroup: /a}, b: {units: [x], tids: [2]}}\n",
                  "f:2:34: pids and tids exclude cgroups, containers and units: perf_event_open(2) takes one of them; split it "
                  "into two targets\n"
                  "f:2:61: pids and tids exclude cgroups, containers and units: perf_event_open(2) takes one of them; split it "
                  "into two targets\n" },
                { "targets: {a: {cgroup: /a, inherit: false}}\n",
                  "f:2:36: warning: inherit: it has no effect without pids and tids: every process of these cgroups is traced\n" },
                { "targets: {a: {cgroups: []}, b: {pids: }, c: {pids: [], units: [x]}}\n",
                  "f:2:24: warning: cgroups: empty, so the target is every process of the host\n"
                  "f:2:39: warning: pids: empty, so the target is every process of the host\n" },
        };

        check_cases(cases, ARRAY_SIZE(cases));
}

static void test_groups(void **state) {
        static const Case cases[] = {
                { "groups: {g: {counters: [cs], events: [cs]}}\n",
                  "f:2:38: a group has events or counters, not both; split it into two groups\n" },
                { "groups: {g: {counters: []}}\n",
                  "f:2:24: counters: found nothing, expected names of events in a list, such as [cycles, "
                  "instructions]\n" },
                { "groups: {g: {events: [cs], interval: 1s}}\n",
                  "f:2:38: interval: it belongs to counters, and the group has none; set the interval of each event\n" },
                { "groups: {g: {counters: [cs, cycels, 's:*', 'kprobe:f', 'a,b', cs]}}\n",
                  "f:2:29: event 'cycels' is unknown; did you mean 'cycles'?\n"
                  "f:2:38: event '{s:*}': 's:*' can match several tracepoints, and a member of a group is a single one\n"
                  "f:2:45: event '{kprobe:f}': kprobe events cannot be members of a group of counters\n"
                  "f:2:57: event 'a' is unknown: expected a name of perf list, such as cycles, cpu-clock, "
                  "sched:sched_switch or cpu/event=0x3c/, or a probe, such as kprobe:vfs_read\n"
                  "f:2:63: warning: counters: 'cs' occurs twice\n" },
                { "groups: {g: {counters: ['cs,faults']}}\n",
                  "f:2:25: counters: found 'cs,faults', expected names of events in a list, such as [cycles, "
                  "instructions]: one event each\n" },
                { "groups: {g: {counters: [r1, r2, r3, r4, r5, r6, r7, r8, r9, ra, rb, rc, rd, re, rf, r10, r11, r12, "
                  "r13, r14, r15, r16, r17, r18, r19, r1a, r1b, r1c, r1d, r1e, r1f, r20, r21]}}\n",
                  "f:2:24: counters: event '{r1,r2,r3,r4,r5,r6,r7,r8,r9,ra,rb,rc,rd,re,rf,r10,r11,r12,r13,r14,r15,r16,"
                  "r17,r18,r19,...': a group has at most 32 members\n" },
                { "groups: {g: {counters: [cs], interval: 1d}}\n",
                  "f:2:41: interval: found '1d', whose unit is not one of ns, us, ms, s, m, min, h; expected a duration from "
                  "1ms to 1h, such as 100ms\n" },
                { "groups: {g: {counters: [cs], interval: 61m}}\n",
                  "f:2:40: interval: found '61m', expected a duration from 1ms to 1h, such as 100ms\n" },
                { "groups: {g: {counters: [cs], interval: 61 min}}\n",
                  "f:2:40: interval: found '61 min', expected a duration from 1ms to 1h, such as 100ms\n" },
                { "groups: {g: {counters: [cs]}, h: {events: [{event: cs, name: g}]}}\n",
                  "f:2:62: event name 'g' is already in line 2; give one of them another 'name'\n" },
                { "groups: {g: {events: [{event: cs, name: 'a b'}, cs, {event: cs, name: 'c d'}]}}\n",
                  "f:2:43: name: found 'a b', expected a name of ASCII letters, digits and signs such as . : _ - / without "
                  "spaces and any of ,*?[]\"'\\, not beginning with #, - or @\n"
                  "f:2:73: name: found 'c d', expected a name of ASCII letters, digits and signs such as . : _ - / without "
                  "spaces and any of ,*?[]\"'\\, not beginning with #, - or @\n" },
                { "targets: {t: {cpus: 0}}\ngroups: {g: {target: t, events: ['external:x']}}\n",
                  "f:3:34: 'external:x' is emitted by clients and cannot have a target, but its group has 't'; move it to a "
                  "group without a target\n" },
        };

        check_cases(cases, ARRAY_SIZE(cases));
}

#define CLOCK(clock, event)                                                                                                             \
        "f:2:8: clock: with " clock " the kernel opens software events, but no tracepoints, probes and breakpoints, such as '" event    \
        "' of group 'g': expected monotonic or monotonic-raw\n"

/* Said once, where the clock is set. */
static void test_clocks(void **state) {
        static const Case cases[] = {
                { "clock: realtime\ngroups: {g: {events: [cs, 'external:x', cycles, 'sched:*', 'sched:sched_switch']}}\n",
                  CLOCK("realtime", "sched:*") },
                { "clock: boottime\ngroups: {g: {counters: [cs, 'sched:sched_switch']}}\n",
                  CLOCK("boottime", "{cs,sched:sched_switch}") },
                { "clock: boottime\ngroups: {g: {events: ['kprobe:f']}}\n", CLOCK("boottime", "kprobe:f") },
                { "clock: boottime\ngroups: {g: {events: ['uprobe:/f:f']}}\n", CLOCK("boottime", "uprobe:/f:f") },
                { "clock: boottime\ngroups: {g: {events: ['mem:0x1000:w']}}\n", CLOCK("boottime", "mem:0x1000:w") },
                { "clock: boottime\ngroups: {g: {events: [cs, cpu-clock, cycles, 'external:x']}}\n", "" },
                { "clock: monotonic-raw\ngroups: {g: {events: ['sched:sched_switch', 'mem:0x1000:w']}}\n", "" },
        };

        check_cases(cases, ARRAY_SIZE(cases));
}

static void test_events(void **state) {
        static const Case cases[] = {
                { "{event: cs, args: a, maxactive: 1, fallback: cpu-clock, fields: {a: u8}}",
                  "f:2:47: args: only probes have fetch args, and 'cs' is a software event\n"
                  "f:2:61: maxactive: only kretprobes have it, and 'cs' is a software event\n"
                  "f:2:74: fallback: only cycles can be replaced by a clock, and 'cs' is a software event\n"
                  "f:2:93: fields: only external events declare their fields, and 'cs' is a software event\n" },
                { "{event: 'kprobe:f', maxactive: 1, filter: a == 1}",
                  "f:2:60: maxactive: only kretprobes have it, and 'kprobe:f' is a kprobe event\n" },
                { "{event: instructions, fallback: cpu-clok}",
                  "f:2:61: fallback: found 'cpu-clok', expected cpu-clock; did you mean 'cpu-clock'?\n"
                  "f:2:61: fallback: only cycles can be replaced by a clock, and 'instructions' is a hardware event\n" },
                { "{event: 'external:x', period: 1, filter: a}",
                  "f:2:59: period: clients emit external events, and the kernel does not know them, and "
                  "'external:x' is an external event\n"
                  "f:2:70: filter: only tracepoints and probes have fields that the kernel can filter on, and "
                  "'external:x' is an external event\n" },
                { "{event: '{cs, faults}', filter: a, period: 7, interval: 1ms}",
                  "f:2:61: filter: only tracepoints and probes have fields that the kernel can filter on, and "
                  "'{cs,faults}' is a group of counters\n" },
                { "{event: '{cs, cycels}'}", "f:2:43: event 'cycels' is unknown; did you mean 'cycles'?\n" },
                { "{event: cs, interval: 0s}",
                  "f:2:51: interval: found '0s', expected a duration from 1ms to 1h, such as 1s or 100ms\n" },
                { "{event: 'kretprobe:f', maxactive: 4097, args: ' '}",
                  "f:2:63: maxactive: found '4097', expected a whole number from 1 to 4096\n"
                  "f:2:75: args: found ' ', expected fetch args of at most 4000 bytes, such as 'file=%di:x64'\n" },
                { "{event: cs, attr: {exclude-usr: true, precise-ip: 4, pinned: , bp-type: 'r|q'}}",
                  "f:2:48: attr: 'exclude-usr' is not a field of struct perf_event_attr; did you mean "
                  "'exclude-user'?\n"
                  "f:2:79: attr precise-ip: found '4', expected a number from 0 to 3\n"
                  "f:2:90: attr: found nothing, expected the value of a field of perf_event_attr\n"
                  "f:2:104: attr bp-type: found 'r|q', expected a number, or words joined by | or ',' of r, w, x\n" },
                { "{event: cs, attr: {pinned: true, freq: true}}",
                  "f:2:62: attr freq cannot be set here: the key 'frequency' sets it\n" },
                { "{event: cs, attr: {exclude-user: true, exclude_user: false}}",
                  "f:2:68: attr exclude-user is set twice\n" },
                { "{event: cs, attr: [pinned]}",
                  "f:2:47: attr: found a list, expected a mapping of fields of perf_event_attr, such as {exclude-hv: "
                  "true}\n" },
                { "{event: cs, attr: {wakeup-events: 1, wakeup-watermark: 1}}",
                  "f:2:47: cs: attr wakeup-events and wakeup-watermark exclude each other: the reader is woken after a number of "
                  "samples or of bytes\n" },
                { "{event: cycles, attr: {sample-regs-user: sp}}",
                  "f:2:51: cycles: attr sample-regs-user is set, but sample-type has no regs-user\n" },
                { "{event: cycles, callchain: [user], attr: {sample-max-stack: 9}}", "" },
                { "{event: cycles, callchain: [dwarf]}", "" },
                { "{event: cycles, callchain: [user, dwarf], attr: {sample-stack-user: 16384}}", "" },
                { "{event: 'kprobe:f', attr: {config1: 1}}",
                  "f:2:55: attr config1: a kprobe event gets it from its name\n" },
                { "{event: cycles, attr: {bp-addr: 1}}",
                  "f:2:51: attr bp-addr: only breakpoints (mem:ADDRESS) have it\n" },
                { "{event: 'external:x', fields: {a: u8, 1b: u8, c: u9, d: [u8]}}",
                  "f:2:67: fields: found '1b', expected a name of up to 64 letters, digits and _, not beginning with a "
                  "digit\n"
                  "f:2:78: fields: found type 'u9', expected one of u8 u16 u32 u64 s8 s16 s32 s64 bool text bytes\n"
                  "f:2:85: fields: found a list, expected one of u8 u16 u32 u64 s8 s16 s32 s64 bool text bytes\n" },
                { "{event: 'external:x', fields: [a: u8, 'b:  text', 'a:u8', c, 'd: u9']}",
                  "f:2:79: fields: a occurs twice\n"
                  "f:2:87: fields: found 'c', expected name: type, such as user: text\n"
                  "f:2:94: fields: found type 'u9', expected one of u8 u16 u32 u64 s8 s16 s32 s64 bool text bytes\n" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *yaml = NULL;

                assert_true(asprintf(&yaml, "version: 1\ngroups: { group: { events: [%s] }}\n", cases[i].yaml) > 0);
                config_unref(check(yaml, strlen(yaml), cases[i].expected));
        }
}

static void check_strings(const Strings *s, const char *joined) {
        char text[200] = "";

        for (size_t i = 0; i < s->n; i++)
                (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "", s->items[i]);
        assert_string_equal(text, joined);
}

static void test_target_values(void **state) {
        static const char yaml[] = "version: 1\n"
                                   "targets:\n"
                                   "  a: {cgroups: [/x/y, 'user.slice/**'], cgroup: z, containers: [3dcb1a9f0e4c], "
                                   "units: [nginx.service, 'a@*.service'], cpus: 1}\n"
                                   "  b: {tids: [7]}\n";
        _cleanup_(config_unrefp) Config *c = check(yaml, strlen(yaml), "");

        assert_int_equal(c->n_targets, 3);
        check_strings(&c->targets[1].cgroups, "/x/y user.slice/** z");
        check_strings(&c->targets[1].containers, "3dcb1a9f0e4c");
        check_strings(&c->targets[1].units, "nginx.service a@*.service");
        assert_string_equal(c->targets[1].cpus, "1");
        assert_int_equal(c->targets[2].cgroups.n + c->targets[2].containers.n + c->targets[2].units.n, 0);
}

static void test_event_values(void **state) {
        static const char yaml[] =
                "version: 1\n"
                "groups:\n"
                "  ipc:\n"
                "    counters: [cycles, ' cpu/event=1,umask=2/u ', \"sched:sched_switch\"]\n"
                "    interval: 100 ms\n"
                "  beat: {counters: [cs]}\n"
                "  more:\n"
                "    events:\n"
                "      - event: kretprobe:vfs_read\n"
                "        maxactive: 4096\n"
                "        args: >\n"
                "          ret=$retval:s64\n"
                "\n"
                "             x=%di:x64  \n"
                "        filter: ret < 0\n"
                "      - event: cycles\n"
                "        fallback: cpu-clock\n"
                "        interval: 1h\n"
                "        attr: {exclude_hv: true, sample-type: 'weight | data-src', precise-ip: 2}\n"
                "      - event: external:deploy\n"
                "        fields: {user: text, code: u32}\n"
                "      - event: external:other\n"
                "        fields: [user: text, 'code: u32']\n"
                "      - \" { cs:u ,\\n faults } :k\"\n"
                "      - ' cs'\n";
        static const char refused[] = "f:24:9: event ' { cs:u ,\\x0a faults } :k': expected nothing, or a colon and modifiers, "
                "after the group\n";
        _cleanup_free_ char *fine = strdup(yaml);
        _cleanup_(config_unrefp) Config *c = NULL;
        const ConfigEvent *e;

        assert_null(check(yaml, strlen(yaml), refused));
        memmove(strstr(fine, "} :k") + 1, strstr(fine, ":k"), strlen(strstr(fine, ":k")) + 1);
        c = check(fine, strlen(fine), "");
        assert_int_equal(c->n_events, 8);

        e = &c->events[0];
        assert_string_equal(e->event, "{cycles,cpu/event=1,umask=2/u,sched:sched_switch}");
        assert_string_equal(e->name, "ipc");
        assert_string_equal(e->group, "ipc");
        assert_int_equal(e->interval, 100 * 1000 * 1000);
        assert_true(e->enabled && e->period == 0 && e->frequency == 0 && e->fallback == CONFIG_FALLBACK_NONE);
        assert_int_equal(e->at.line, 4);
        assert_int_equal(e->at.column, 15);
        assert_int_equal(e->name_at.line, 3);
        assert_int_equal(e->name_at.column, 3);

        e = &c->events[1];
        assert_string_equal(e->event, "{cs}");
        assert_string_equal(e->name, "beat");
        assert_int_equal(e->interval, 1000 * 1000 * 1000);

        e = &c->events[2];
        assert_int_equal(e->maxactive, 4096);
        assert_string_equal(e->args, "ret=$retval:s64 x=%di:x64");
        assert_string_equal(e->filter, "ret < 0");
        assert_int_equal(e->interval, 0);

        e = &c->events[3];
        assert_int_equal(e->fallback, CONFIG_FALLBACK_CPU_CLOCK);
        assert_int_equal(e->interval, UINT64_C(3600) * 1000 * 1000 * 1000);
        assert_int_equal(e->attr.n, 3);
        assert_string_equal(e->attr.items[0], "exclude-hv=true");
        assert_string_equal(e->attr.items[1], "sample-type=weight | data-src");
        assert_string_equal(e->attr.items[2], "precise-ip=2");

        check_strings(&c->events[4].fields, "user:text code:u32");
        check_strings(&c->events[5].fields, "user:text code:u32");
        assert_string_equal(c->events[6].event, "{cs:u,faults}:k");
        assert_string_equal(c->events[6].name, "{cs:u,faults}:k");
        assert_string_equal(c->events[7].event, "cs");
        assert_string_equal(c->events[7].name, "cs");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_targets), cmocka_unit_test(test_groups),
                cmocka_unit_test(test_events),  cmocka_unit_test(test_target_values),
                cmocka_unit_test(test_event_values), cmocka_unit_test(test_clocks),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
