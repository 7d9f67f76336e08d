/*
 * A configuration is judged by what it says: each case is a text and the whole of what is reported about it, with
 * line and column, so that a mistake that is missed, said twice or said in the wrong place is noticed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "config/difference.h"
#include "config/document/node.h"
#include "config/keys.h"
#include "config/parse/load.h"
#include "tests/unit/config-checks.h"

static void test_settings(void **state) {
        static const Case cases[] = {
                { "listen: {control: run, stream: /a/}\n",
                  "f:2:19: listen.control: found 'run', expected an absolute path of at most 107 bytes\n"
                  "f:2:32: listen.stream: found '/a/', expected an absolute path of at most 107 bytes\n" },
                { "listen: {control: \"/a\\e\"}\n",
                  "f:2:19: listen.control: found '/a\\x1b', which contains a control character; expected an absolute "
                  "path of at most 107 bytes\n" },
                { "listen:\n  stream: /a\n  control: /a\n",
                  "f:4:12: listen: control and stream have the same path '/a', expected different paths\n" },
                { "clock: monotonik\n",
                  "f:2:8: clock: found 'monotonik', expected one of monotonic, monotonic-raw, boottime, realtime; did "
                  "you mean 'monotonic'?\n" },
                { "rings: {size: 3MiB}\n",
                  "f:2:15: rings.size: found '3MiB', expected a power of two from 4KiB to 1GiB; the nearest are 2MiB "
                  "and 4MiB\n" },
                { "rings: {size: 1}\n",
                  "f:2:15: rings.size: found '1', expected a power of two from 4KiB to 1GiB; the nearest is 4KiB\n" },
                { "rings: {size: 99999999999999GiB}\n",
                  "f:2:15: rings.size: found '99999999999999GiB', expected a power of two from 4KiB to 1GiB; the "
                  "nearest is 1GiB\n" },
                { "rings: {size: 99999999999999999999}\n",
                  "f:2:15: rings.size: found '99999999999999999999', expected a power of two from 4KiB to 1GiB\n" },
                { "batches: {pool: 1 MB}\n",
                  "f:2:19: batches.pool: found '1 MB', whose unit is not one of B, KiB, MiB, GiB; expected a size from "
                  "256KiB to 1GiB\n" },
                { "batches: {pool: -1}\n",
                  "f:2:17: batches.pool: found '-1', expected a size from 256KiB to 1GiB\n" },
                { "access: {control-mode: 600, stream-mode: 0999, stream-group: a b}\n",
                  "f:2:24: access.control-mode: found '600', expected an octal file mode from 0000 to 0777, with a leading zero\n"
                  "f:2:42: access.stream-mode: found '0999', expected an octal file mode from 0000 to 0777\n"
                  "f:2:62: access.stream-group: found 'a b', expected the name or number of a group\n" },
                { "access: {control-mode: 01777}\n",
                  "f:2:24: access.control-mode: found '01777', expected an octal file mode from 0000 to 0777\n" },
                { "subscribers: {max: 0x10}\n",
                  "f:2:20: subscribers.max: found '0x10', expected a whole number from 1 to 10000\n" },
                { "connections: {max: 10, per-uid: 11}\n",
                  "f:2:33: connections.per-uid: found '11', expected at most connections.max, 10\n" },
                { "subscribers: {latency: 200ms}\n", "" }, /* the default is as much then */
                { "subscribers: {latency: 2ms, default-latency: 1ms}\n",
                  "f:2:46: subscribers.default-latency: found '1ms', expected at least subscribers.latency, 2ms\n" },
                { "subscribers: {default-latency: 1.5ms}\n",
                  "f:2:33: subscribers.default-latency: found '1.5ms', which is not a whole number: write it in a smaller unit; expected a "
                  "duration from 20us to 1h, such as 100ms\n" },
                { "subscribers: {latency: 200}\n",
                  "f:2:27: subscribers.latency: found '200', which has no unit: ns, us, ms, s, m, min, h; expected a duration from 20us to "
                  "1h, such as 1ms\n" },
                { "connections: {max: 10}\n", "" },
        };

        check_cases(cases, ARRAY_SIZE(cases));
}

/* Wrong types, wrong and missing keys. */
static void test_shape(void **state) {
        static const Case cases[] = {
                { "rings: 5\n", "f:2:8: rings: found '5', expected a mapping of keys to values\n" },
                { "rings: [5]\n", "f:2:8: rings: found a list, expected a mapping of keys to values\n" },
                { "rings: {size: {a: b}}\n",
                  "f:2:15: rings.size: found a mapping, expected a power of two from 4KiB to 1GiB\n" },
                { "rings: {size: }\n",
                  "f:2:15: rings.size: found nothing, expected a power of two from 4KiB to 1GiB\n" },
                { "rings:\ntargets: ~\ngroups: null\n", "" },
                { "ring: {size: 4KiB}\n", "f:2:1: unknown key 'ring'; did you mean 'rings'?\n" },
                { "rings: {siz: 4KiB}\n", "f:2:9: unknown key 'siz'; did you mean 'size'?\n" },
                { "groups: {g: {events: [{event: cs, freq: 9}]}}\n", "f:2:35: unknown key 'freq'; did you mean 'frequency'?\n" },
                { "zebra: {}\n", "f:2:1: unknown key 'zebra'\n" },
                { "rings.size: 4KiB\n", "f:2:1: unknown key 'rings.size'\n" },
                { "rings: {size: 4KiB, size: 8KiB, size: 8KiB}\n",
                  "f:2:21: key 'size' occurs twice, first in line 2\n"
                  "f:2:33: key 'size' occurs twice, first in line 2\n" },
                { "? [a]\n: b\n", "f:2:3: a key must be text, not a list or a mapping\n" },
                { "targets: [a]\n", "f:2:10: targets: found a list, expected a mapping of names\n" },
                { "targets: {a: b}\n", "f:2:14: targets.NAME: found 'b', expected a mapping of keys to values\n" },
                { "groups: {g: }\n", "f:2:13: key 'events' is missing, expected a list of events, or "
                                       "'counters'\n" },
                { "groups: {g: {events: cs}}\n", "f:2:22: events: found 'cs', expected a list of events\n" },
                { "groups: {g: {events: [[cs], , {name: x}]}}\n",
                  "f:2:29: not YAML: did not find expected node content, while parsing a flow node (from line 2)\n" },
                { "groups: {g: {events: [[cs], ~, {name: x}]}}\n",
                  "f:2:23: events: found a list, expected the name of an event, or a mapping with the key 'event'\n"
                  "f:2:29: events: found nothing, expected the name of an event, or a mapping with the key 'event'\n"
                  "f:2:32: key 'event' is missing, expected the name of an event as in perf list\n" },
        };

        check_cases(cases, ARRAY_SIZE(cases));
}

#define PRIORITIES "normal, nice:N from nice:-20 to nice:19 or fifo:N from fifo:1 to fifo:99"

static void test_threads(void **state) {
        static const struct {
                const char *text;
                ThreadPriority expected;
        } good[] = { { "normal", { THREAD_NORMAL, 0 } }, { "nice:-20", { THREAD_NICE, -20 } }, { "nice:0", { THREAD_NICE, 0 } },
                     { "nice:19", { THREAD_NICE, 19 } }, { "fifo:1", { THREAD_FIFO, 1 } },     { "fifo:99", { THREAD_FIFO, 99 } } };
        static const char *const bad[] = { "nice:-21", "nice:20", "nice:", "nice:-", "nice:1x", "nice:--1", "fifo:0", "fifo:100",
                                           "fifo:-1", "fifo", "fifo: 1", "rr:1", "18446744073709551617" };
        static const Case cases[] = {
                { "readers: {cpus: 1-, guard: 1us}\ndispatcher: {cpu: 1, cpus: \"7,0-7\"}\n",
                  "f:2:17: readers.cpus: found '1-', which is not a number or range here; expected a list of CPUs such as "
                  "\"0-3,8\", none above 8191\n"
                  "f:2:28: readers.guard: found '1us', expected a duration from 100us to 100ms\n"
                  "f:3:14: unknown key 'cpu'; did you mean 'cpus'?\n"
                  "f:3:28: warning: dispatcher.cpus: CPU 7 occurs twice\n" },
        };
        char yaml[128], expected[256], text[CONFIG_PRIORITY_SIZE];

        check_cases(cases, ARRAY_SIZE(cases));
        for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
                _cleanup_(config_unrefp) Config *c = NULL;

                (void)snprintf(yaml, sizeof(yaml), "version: 1\nreaders: {priority: \"%s\", guard: 100us, cpus: \"2,0\"}\n", good[i].text);
                c = check(yaml, strlen(yaml), "");
                assert_int_equal(c->reader_priority.policy, good[i].expected.policy);
                assert_int_equal(c->reader_priority.value, good[i].expected.value);
                assert_string_equal(config_priority_text(c->reader_priority, text), good[i].text);
                assert_int_equal(c->reader_guard, 100000);
                assert_string_equal(c->reader_cpus, "2,0");
        }
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                (void)snprintf(yaml, sizeof(yaml), "version: 1\ndispatcher: {priority: '%s'}\n", bad[i]);
                (void)snprintf(expected, sizeof(expected),
                               "f:2:24: dispatcher.priority: found '%s', expected " PRIORITIES "\n", bad[i]);
                assert_null(check(yaml, strlen(yaml), expected));
        }
}

static void test_targets(void **state) {
        static const Case cases[] = {
                { "targets: {web: {pids: [1, 1, x, 0, [2]], tids: 5}}\n",
                  "f:2:27: warning: pids: 1 occurs twice\n"
                  "f:2:30: pids: found 'x', expected process ids from 1 to 4194304 in a list, such as [1, 2]\n"
                  "f:2:33: pids: found '0', expected process ids from 1 to 4194304 in a list, such as [1, 2]\n"
                  "f:2:36: pids: found a list, expected process ids from 1 to 4194304 in a list, such as [1, 2]\n"
                  "f:2:48: tids: found '5', expected thread ids from 1 to 4194304 in a list, such as [1, 2]\n" },
                { "targets: {a: {cpus: \"0-3,9-2\"}, b: {cpus: '1,,2'}, c: {cpus: 8192}, d: {cpus: \"0-2,1\"}}\n",
                  "f:2:26: cpus: found '0-3,9-2', which is not a number or range here; expected a list of CPUs such as "
                  "\"0-3,8\", none above 8191\n"
                  "f:2:46: cpus: found '1,,2', which is not a number or range here; expected a list of CPUs such as "
                  "\"0-3,8\", none above 8191\n"
                  "f:2:62: cpus: found '8192', which is not a number or range here; expected a list of CPUs such as "
                  "\"0-3,8\", none above 8191\n"
                  "f:2:79: warning: cpus: CPU 1 occurs twice\n" },
                { "targets: {a: {pids: [1], inherit: yes}, b: {inherit: false}}\n",
                  "f:2:35: inherit: found 'yes', expected true or false\n"
                  "f:2:54: warning: inherit: it has no effect without pids and tids: every process of the host is traced\n" },
                { "targets: {host: {pids: [1]}}\n",
                  "f:2:17: target 'host' is the whole host and cannot have keys: rename this target\n" },
                { "targets: {host: {}, 'a b': {}}\n",
                  "f:2:23: name of a target: found 'a b', expected a name of ASCII letters, digits and signs such as "
                  ". : _ - / without spaces and any of ,*?[]\"'\\, not beginning with #, - or @\n" },
                { "groups: {g: {events: []}}\n", "f:2:22: events: found nothing, expected a list of events\n" },
                { "listen: {control: /a/b, stream: /a//./b}\n",
                  "f:2:33: listen: control and stream have the same path '/a/b', expected different paths\n" },
                { "listen: {control: /a/..}\n", "f:2:19: listen.control: '/a/..' is a directory, expected the path of a socket\n" },
                { "targets: {t: {}}\ngroups: {g: {target: t, events: ['external:x']}}\n",
                  "f:3:34: 'external:x' is emitted by clients and cannot have a target, but its group has 't'; move it to a "
                  "group without a target\n" },
                { "targets: {web: {}}\ngroups:\n  g: {target: wbe, events: [cs]}\n",
                  "f:4:15: target: found 'wbe', which is not the name of a target in 'targets'; did you mean 'web'?\n" },
        };

        check_cases(cases, ARRAY_SIZE(cases));
}

static void test_events(void **state) {
        static const Case cases[] = {
                { "sched:sched switch", "f:2:40: event 'sched:sched switch': the name of an event consists of ASCII characters "
                        "without spaces\n" },
                { "'cpu-clok'", "f:2:30: event 'cpu-clok' is unknown; did you mean 'cpu-clock'?\n" },
                { "{event: cs, period: 5, frequency: 9}",
                  "f:2:63: period and frequency exclude each other: a sample for a number of events, or a number of samples a "
                  "second; remove one of them\n" },
                { "{event: cs, filter: a == 1}", "f:2:49: filter: only tracepoints and probes have fields that the "
                                                 "kernel can filter on, and 'cs' is a software event\n" },
                { "{event: 's:a', filter: ' '}", "f:2:52: filter: found ' ', expected a filter of at most 4000 "
                                                 "bytes\n" },
                { "{event: 's:*', name: z}", "f:2:50: name: 's:*' can select several events, which cannot all be 'z'; "
                                             "remove the name\n" },
                { "{event: cs, name: '#1'}", "f:2:48: name: found '#1', expected a name of ASCII letters, digits and "
                                             "signs such as . : _ - / without spaces and any of ,*?[]\"'\\, not "
                                             "beginning with #, - or @\n" },
                { "{event: cs, period: 0}", "f:2:49: period: found '0', expected a whole number from 1 to "
                                            "9223372036854775807\n" },
                { "{event: cs, frequency: 1000001}", "f:2:52: frequency: found '1000001', expected a whole number "
                                                     "from 1 to 1000000\n" },
                { "{event: cs, callchain: [kernel, usr, kernel]}",
                  "f:2:61: callchain: found 'usr', expected kernel, user or dwarf in a list, such as [kernel, user]; "
                  "did you mean 'user'?\n"
                  "f:2:66: warning: callchain: 'kernel' occurs twice\n" },
                { "{event: cs, enabled: 1}", "f:2:50: enabled: found '1', expected true or false\n" },
                { "{event: cs, perod: 1}", "f:2:41: unknown key 'perod'; did you mean 'period'?\n" },
                { "cs, {event: faults, name: cs}, cs",
                  "f:2:55: event name 'cs' is already in line 2; give one of them another 'name'\n"
                  "f:2:60: event name 'cs' is already in line 2; give one of them another 'name'\n" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *yaml = NULL;

                assert_true(asprintf(&yaml, "version: 1\ngroups: { group: { events: [%s] }}\n", cases[i].yaml) > 0);
                config_unref(check(yaml, strlen(yaml), cases[i].expected));
        }
}

/* What is wrong before any key is looked at. */
static void test_yaml(void **state) {
        static const char zero[] = "version: 1\nclock: \"a\\0b\"\n";
        static const Case cases[] = {
                { "", "f:1:1: key 'version' is missing, expected 1, the only version of this format\n" },
                { "# nothing\n", "f:1:1: key 'version' is missing, expected 1, the only version of this format\n" },
                { "clock: boottime\n",
                  "f:1:1: key 'version' is missing, expected 1, the only version of this format\n" },
                { "version: 2\n", "f:1:10: version: found '2', expected 1, the only version of this format\n" },
                { "- version: 1\n", "f:1:1: the file: found a list, expected a mapping of keys to values\n" },
                { "version: 1\nclock: [a\n",
                  "f:3:1: not YAML: did not find expected ',' or ']', while parsing a flow sequence (from line 2)\n" },
                { "version: 1\ngroups:\n\tg: {}\n", "f:3:1: not YAML: a tab, and YAML is indented by spaces alone\n" },
                { "version: 1\ngroups:\n # \xc3\xbc\n \tg: {}\n", "f:4:2: not YAML: a tab, and YAML is indented by spaces alone\n" },
                { "version: 1\nclock: @a\n", "f:2:8: not YAML: found character that cannot start any token, while scanning for the next token "
                                            "(from line 2)\n" },
                { "version: 1\nclock: a: b\n", "f:2:9: not YAML: mapping values are not allowed in this context\n" },
                { "version: 1\n# \xc3\xbc\xff\n", "f:2:4: not YAML: invalid leading UTF-8 octet\n" },
                { "version: 1\n---\nversion: 1\n", "f:2:1: a second document begins here: a file can contain only one\n" },
                { "version: 1\nclock: !!str boottime\n",
                  "f:2:8: tag 'tag:yaml.org,2002:str': tags are not supported; remove it\n" },
                { "%TAG !a! b\n---\nversion: 1\n",
                  "f:1:1: %TAG at the beginning of a line: tags are not supported; remove it\n" },
                { "#\r%TAG !a! b\n---\nversion: 1\n", "f:1:3: %TAG at the beginning of a line: tags are not supported; remove "
                        "it\n" },
                { "#\xc2\x85%TAG !a! b\n---\nversion: 1\n",
                  "f:1:3: %TAG at the beginning of a line: tags are not supported; remove it\n" },
                { "#\xe2\x80\xa8%TAG !a! b\n---\nversion: 1\n",
                  "f:1:3: %TAG at the beginning of a line: tags are not supported; remove it\n" },
                { "version: 1\nclock: *c\n", "f:2:8: alias '*c': no anchor '&c' is before it in this file\n" },
                { "version: 1\ntargets: {a: &a {pids: *a}}\n",
                  "f:2:24: alias '*a': no anchor '&a' is before it in this file\n" },
                { "version: 1\ntargets: {a: &a {pids: [1]}, b: {<<: *a}}\n",
                  "f:2:34: key '<<': merge keys are not supported; remove it\n" },
                { "version: 1\nclock: [[[[[[[[[[[[[[[[[[[[\n",
                  "f:2:23: too deep: at most 16 nested lists and mappings\n" },
                { zero, "f:2:8: this text contains a zero byte\n" },
                { "\xef\xbb\xbfversion: 1\r\nclock: realtime\r\n", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                config_unref(check(cases[i].yaml, strlen(cases[i].yaml), cases[i].expected));
}

/* A small file cannot become a large one. */
static void test_bounds(void **state) {
        static const char laughs[] = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
                                     "b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
                                     "c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\n"
                                     "d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n"
                                     "e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\n"
                                     "f: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e]\n";
        static const char many[] = "version: 1\ngroups: {g: {events: [", item[] = "s:a, ";
        _cleanup_free_ char *bytes = calloc(1, CONFIG_FILE_MAX + 2);
        ConfigDiagnostics m = CONFIG_DIAGNOSTICS_NULL;
        Config *c = NULL;
        size_t n;

        assert_null(check(laughs, strlen(laughs), "f:6:8: the file is too large: more than 200000 values, where aliases count as "
                "often as they repeat values, and long texts count several times\n"));
        n = (size_t)sprintf(bytes, "a: &a \"%03200d\"\nb: [*a", 0); /* weighs 101, as often as it is named */
        for (size_t i = 0; i < 2000; i++)
                n += (size_t)sprintf(bytes + n, ", *a");
        assert_null(check(bytes, n, "f:2:7921: the file is too large: more than 200000 values, where aliases count as often as "
                "they repeat values, and long texts count several times\n"));
        memset(bytes, '#', CONFIG_FILE_MAX + 1);
        assert_null(check(bytes, CONFIG_FILE_MAX + 1, "f: too long: 1048577 bytes, expected at most 1048576\n"));

        n = (size_t)sprintf(bytes, "%s", many);
        for (size_t i = 0; i < CONFIG_EVENTS_MAX + 1; i++)
                n += (size_t)sprintf(bytes + n, "%s", item);
        n += (size_t)sprintf(bytes + n, "]}}\n");
        assert_int_equal(config_parse("f", bytes, n, &m, &c), REFUSED_INVALID);
        assert_int_equal(m.n_items, CONFIG_DIAGNOSTICS_MAX);
        assert_int_equal(m.n_left_out, CONFIG_EVENTS_MAX - CONFIG_DIAGNOSTICS_MAX);
        assert_int_equal(m.n_errors, CONFIG_EVENTS_MAX);
        config_diagnostics_deinit(&m);
}

static void test_values(void **state) {
        static const char yaml[] = "version: 1\n"
                                   "listen: {control: /run/a, stream: /run/b}\n"
                                   "access: {control-mode: 0o640, stream-mode: 0666, stream-group: '100'}\n"
                                   "clock: monotonic-raw\n"
                                   "rings: {size: 4096}\n"
                                   "batches: {pool: 256 KiB}\n"
                                   "subscribers: {max: 1, queue: 1GiB}\n"
                                   "connections: {max: 2, per-uid: 1, control: 3}\n"
                                   "events: {per-uid: 10000}\n"
                                   "fds: {per-uid: 10000000}\n"
                                   "groups:\n"
                                   "  g:\n"
                                   "    target: t\n"
                                   "    events: &events\n"
                                   "      - cs\n"
                                   "      - event: sched:sched_switch\n"
                                   "        name: sw\n"
                                   "        filter: >-\n"
                                   "          prev_pid != 0\n"
                                   "\n"
                                   "          &&  next_pid != 0\n"
                                   "        period: 9223372036854775807\n"
                                   "        callchain: [user]\n"
                                   "        enabled: false\n"
                                   "        include-self: true\n"
                                   "  h: {events: [{event: cpu-clock, frequency: 99, callchain: []}]}\n"
                                   "targets:\n"
                                   "  t: {pids: [7, 3], tids: [9], cpus: \"0-3,8\", inherit: false}\n";
        _cleanup_(config_unrefp) Config *c = check(yaml, strlen(yaml), "");
        const ConfigTarget *t;
        const ConfigEvent *e;

        assert_string_equal(c->control_path, "/run/a");
        assert_string_equal(c->stream_path, "/run/b");
        assert_int_equal(c->control_mode, 0640);
        assert_int_equal(c->stream_mode, 0666);
        assert_string_equal(c->stream_group, "100");
        assert_int_equal(c->clock, CLOCK_MONOTONIC_RAW);
        assert_string_equal(config_clock_name(c), "monotonic-raw");
        assert_int_equal(c->ring_size, 4096);
        assert_int_equal(c->batch_pool, 256 << 10);
        assert_int_equal(c->subscribers_max, 1);
        assert_int_equal(c->subscriber_queue, 1 << 30);
        assert_int_equal(c->connections_max, 2);
        assert_int_equal(c->connections_per_uid, 1);
        assert_int_equal(c->connections_control, 3);
        assert_int_equal(c->events_per_uid, 10000);
        assert_int_equal(c->fds_per_uid, 10000000);

        assert_int_equal(c->n_targets, 2);
        t = &c->targets[1];
        assert_string_equal(t->name, "t");
        assert_int_equal(t->pids.n_ids, 2);
        assert_int_equal(t->pids.ids[0], 7);
        assert_int_equal(t->pids.ids[1], 3);
        assert_int_equal(t->tids.n_ids, 1);
        assert_string_equal(t->cpus, "0-3,8");
        assert_false(t->inherit);

        assert_int_equal(c->n_events, 3);
        e = &c->events[0];
        assert_string_equal(e->event, "cs");
        assert_string_equal(e->name, "cs");
        assert_true(e->enabled && !e->include_self && e->period == 0 && e->frequency == 0 && e->callchain == 0);
        assert_int_equal(e->at.line, 15);
        assert_int_equal(e->at.column, 9);
        e = &c->events[1];
        assert_string_equal(e->name, "sw");
        assert_string_equal(e->group, "g");
        assert_int_equal(e->target, 1);
        assert_string_equal(e->filter, "prev_pid != 0 &&  next_pid != 0");
        assert_int_equal(e->period, INT64_MAX);
        assert_int_equal(e->callchain, CONFIG_CALLCHAIN_USER);
        assert_true(!e->enabled && e->include_self);
        assert_int_equal(e->at.line, 16);
        assert_int_equal(e->at.column, 16);
        assert_int_equal(e->name_at.line, 17);
        assert_int_equal(e->filter_at.line, 18);
        e = &c->events[2];
        assert_string_equal(e->group, "h");
        assert_int_equal(e->target, 0);
        assert_int_equal(e->frequency, 99);
        assert_string_equal(e->at.path, "f");
}

static Config *parse(const char *yaml) {
        return check(yaml, strlen(yaml), "");
}

/* What differs in settings: each once, in the order of the table, with its place if it is written; and nothing else. */
static void test_differences(void **state) {
        static const struct {
                const char *key, *before, *after, *unit;
                unsigned line, column; /* 0: it is not written any more */
                bool restart;
        } expected[] = {
                { "access.stream-mode", "0660", "0600", "", 2, 23, true },
                { "clock", "boottime", "monotonic", "", 0, 0, true },
                { "rings.size", "4194304", "1048576", " bytes", 3, 15, false },
                { "readers.priority", "fifo:1", "nice:3", "", 4, 21, true },
                { "readers.cpus", "0", "all", "", 0, 0, true },
                { "readers.guard", "5ms", "7ms", "", 4, 36, true },
                { "connections.control", "32", "33", "", 5, 24, true },
                { "fds.per-uid", "16384", "99", "", 6, 16, false },
        };
        _cleanup_(config_unrefp) Config *before = parse("version: 1\nclock: boottime\nreaders: {cpus: 0}\n");
        _cleanup_(config_unrefp) Config *after =
                parse("version: 1\naccess: {stream-mode: 0600}\nrings: {size: 1MiB}\nreaders: {priority: nice:3, guard: 7ms}\n"
                      "connections: {control: 33}\nfds: {per-uid: 99}\ngroups: {g: {events: [cs]}}\n");
        ConfigDifference d;
        size_t row = 0;

        for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
                assert_true(config_difference_next(before, after, &row, &d));
                assert_string_equal(d.key->pattern, expected[i].key);
                assert_string_equal(d.before, expected[i].before);
                assert_string_equal(d.after, expected[i].after);
                assert_string_equal(config_unit(d.key), expected[i].unit);
                assert_int_equal(d.key->restart, expected[i].restart);
                assert_int_equal(d.at.line, expected[i].line);
                assert_int_equal(d.at.column, expected[i].column);
        }
        assert_false(config_difference_next(before, after, &row, &d));
        row = 0;
        assert_false(config_difference_next(after, after, &row, &d));
}

/* The number of rules, and that they are others where it is the same. */
static void test_rules_differences(void **state) {
        static const char two[] = "version: 1\naccess: {rules: [{users: [1], status: true}, {users: [2], subscribe: [a]}]}\n";
        static const struct {
                const char *yaml, *before, *after;
        } cases[] = {
                { "version: 1\n", "2 rules", "0 rules" },
                { "version: 1\naccess: {rules: [{users: [1], status: true}]}\n", "2 rules", "1 rule" },
                { "version: 1\naccess: {rules: [{users: [1], status: true}, {users: [3], subscribe: [a]}]}\n", "2 rules", "2 rules, changed" },
                { "version: 1\naccess: {rules: [{users: [1]}, {users: [2], subscribe: [a]}]}\n", "2 rules", "2 rules, changed" },
                { "version: 1\naccess: {rules: [{users: [1], status: true}, {users: [2], subscribe: [a], where: 'cpu == 1'}]}\n", "2 rules",
                  "2 rules, changed" },
        };
        _cleanup_(config_unrefp) Config *before = parse(two), *same = parse(two);
        ConfigDifference d;

        assert_false(config_rules_difference(before, same, &d));
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(config_unrefp) Config *after = parse(cases[i].yaml);

                assert_true(config_rules_difference(before, after, &d));
                assert_string_equal(d.key->pattern, "access.rules");
                assert_string_equal(d.before, cases[i].before);
                assert_string_equal(d.after, cases[i].after);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_settings), cmocka_unit_test(test_shape), cmocka_unit_test(test_targets),
                cmocka_unit_test(test_threads),
                cmocka_unit_test(test_events),   cmocka_unit_test(test_yaml),  cmocka_unit_test(test_bounds),
                cmocka_unit_test(test_values),   cmocka_unit_test(test_differences),
                cmocka_unit_test(test_rules_differences),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
