/*
 * perfctl as a user runs it: a process with a command line, whose daemon is played here on a socket in a temporary
 * directory. Output, messages and exit status are compared to the byte.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/perfctl/print/json.h"
#include "client/perfctl/base/near.h"
#include "client/perfctl/base/quantity.h"
#include "client/perfctl/print/table.h"
#include "client/perfctl/base/text.h"
#include "tests/unit/perfctl-rig.h"
#include "tests/unit/played-stream.h"

static void test_usage(void **state) {
        static const struct {
                const char *words[5];
                const char *message; /* its beginning */
        } cases[] = {
                { { "wtach" }, "perfctl: unknown verb 'wtach', did you mean 'watch'?\n" },
                { { "trace" }, "perfctl: unknown verb 'trace': the closest one is `perfctl watch`\n" },
                { { "watch", "--wehre", "x" },
                  "perfctl: watch: unknown option '--wehre', did you mean '--where'?\n`perfctl help watch` shows its options\n" },
                { { "--jsno", "list" }, "perfctl: unknown option '--jsno', did you mean '--json'?\n" },
                { { "--reconnect", "10m", "watch" }, "perfctl: option --reconnect stands behind its verb, which is one of watch, count, stat: "
                  "only options of all verbs stand before it\n`perfctl help` lists the verbs and options\n" },
                { { "--nats=x", "fleet" }, "perfctl: option --nats stands behind its verb, which is fleet: only" },
                { { "-x,", "stat" }, "perfctl: option -x stands behind its verb, which is stat: only" },
                { { "-jq", "list" }, "perfctl: unknown option '-q'\n" },
                { { "show" }, "perfctl: show: the argument EVENT is missing\nusage: perfctl [--host HOST] [--socket PATH] [--json] show EVENT\n" },
                { { "filter" }, "perfctl: filter: the argument NAME is missing\n" },
                { { "filter", "x" }, "perfctl: filter: the argument FILTER is missing\n" },
                { { "remove" }, "perfctl: remove: the argument NAME is missing\n" },
                { { "emit" }, "perfctl: emit: the argument EVENT is missing\n`perfctl help emit` shows its options\n" },
                { { "show", "a", "b" }, "perfctl: show: unexpected argument 'b'\n" },
                { { "add", "e", "--name" }, "perfctl: add: option --name requires NAME\n" },
                { { "add", "e", "-q" }, "perfctl: add: unknown option '-q'\n" },
                { { "emit", "e", "-q" }, "perfctl: emit: unknown option '-q': write -- before an argument that begins with '-'\n" },
                { { "period", "e", "1kHz" }, "perfctl: period: '1kHz' is no rate: write samples per second as 1000Hz, or with --frequency\n" },
                { { "stat", "-q" }, "perfctl: stat: unknown option '-q'\n" },
                { { "stat", "--timeout", "500" }, "perfctl: stat: unknown option '--timeout', of perf stat: here it is --for TIME, as --for 500ms\n" },
                { { "stat", "--per-thread" }, "perfctl: stat: unknown option '--per-thread', of perf stat: it is not here: `perfctl count "
                                              "task-clock -F 99 --by tid` samples threads\n" },
                { { "record", "-k", "mono" }, "perfctl: record: unknown option '-k', of perf record: times are of the daemon's clock, which "
                  "perfd.yaml(5) chooses\n" },
                { { "record", "--call-graph", "dwarf" }, "perfctl: record: unknown option '--call-graph', of perf record: here it is -g, or "
                  "--callchain kernel,user, and --callchain dwarf\n" },
                { { "stat", "-n" }, "perfctl: stat: unknown option '-n', of perf stat: here it is `perfctl stat dummy -- COMMAND`, which "
                                    "counts nothing\n" },
                { { "report", "-nD" }, "perfctl: report: unknown option '-D', of perf report: `perfctl info FILE` counts records, and `perfctl script -i FILE` prints samples\n" },
                { { "add", "e", "-p4194305x" }, "perfctl: add: -p: '4194305x' is not a list of numbers such as 12,13\n" },
                { { "add", "e", "-p1", "--pid=2" }, "perfctl: add: -p was already given\n" },
                { { "stat", "-D5" }, "perfctl: stat: unknown option '-D', of perf stat: it is not here: with --interval what happens at "
                                     "first is on lines of its own\n" },
                { { "stat", "-Ad" }, "perfctl: stat: unknown option '-d', of perf stat: name the events: -e "
                                     "L1-dcache-loads,L1-dcache-load-misses\n" },
                { { "stat", "-v" }, "perfctl: stat: unknown option '-v', of perf stat: it is not here: perfctl says all that it has to say\n" },
                { { "watch", "-n" }, "perfctl: watch: unknown option '-n'\n" },
                { { "watch", "--timeout=5" }, "perfctl: watch: unknown option '--timeout'\n`perfctl help watch` shows its options\n" },
                { { "stat", "-jx", "," }, "perfctl: stat: -x is not for --json\n" },
                { { "-j", "stat", "-x," }, "perfctl: stat: -x is not for --json\n" },
                { { "stat", "-o" }, "perfctl: stat: option -o requires FILE\n" },
                { { "stat", "-oa", "-o", "b" }, "perfctl: stat: -o was already given\n" },
                { { "stat", "-I", "1s" },
                  "perfctl: stat: -I: '1s' is not a number of milliseconds above 0, such as 1000\n" },
                { { "stat", "-I100", "--interval=1s" },
                  "perfctl: stat: --interval and -I exclude each other\n" },
                { { "stat", "-r3" }, "perfctl: stat: -r is for a command, without an --interval\n" },
                { { "stat", "-r0", "--", "true" }, "perfctl: stat: -r: '0' is not a number above 0\n" },
                { { "stat", "-r3", "-I9", "--", "true" }, "perfctl: stat: -r is for a command, without an --interval\n" },
                { { "stat", "--for", "0" }, "perfctl: stat: --for: '0' is not a time such as 500ms, 10s, 2m: the unit is missing\n" },
                { { "stat", "-ea,", "b" }, "perfctl: stat: -e: an event is empty\n" },
                { { "stat", "-x", "" }, "perfctl: stat: -x: the value is empty\n" },
                { { "stat", "-x,", "--json" }, "perfctl: stat: -x is not for --json\n" },
                { { "stat", "--per-cgroup" }, "perfctl: stat: --per-cgroup requires a --cgroup, --container or --unit\n" },
                { { "stat", "--fallback", "cpu-clock", "cpu-clock" },
                  "perfctl: stat: --fallback is for cycles, which is none of the events\n" },
                { { "record", "-z", "20" }, "perfctl: record: -z: '20' is none of 1 to 19\n" },
                { { "record", "-zx" }, "perfctl: record: -z: 'x' is not a number above 0\n" },
                { { "record", "--compress" }, "perfctl: record: --compress is for --host: -z compresses recordings\n" },
                { { "stat", "-Aq" }, "perfctl: stat: unknown option '-q'\n" },
                { { "stat", "--append" }, "perfctl: stat: --append requires an --output\n" },
                { { "add", "e", "--name=a", "--name=b" }, "perfctl: add: --name was already given\n" },
                { { "add", "e", "--disabled=1" }, "perfctl: add: option --disabled takes no value\n" },
                { { "add", "e", "--pid", "1,x" }, "perfctl: add: --pid: '1,x' is not a list of numbers such as 12,13\n" },
                { { "add", "e", "--pid", "1,0" },
                  "perfctl: add: --pid: 0 is no process and no thread: pids and tids are from 1 to 4194304\n" },
                { { "stat", "-t0" }, "perfctl: stat: -t: 0 is no process and no thread: pids and tids are from 1 to 4194304\n" },
                { { "add", "e", "--pid", "1,99999999999" },
                  "perfctl: add: --pid: '99999999999' is too large: pids and tids are from 1 to 4194304\n" },
                { { "add", "e", "--tid", "99999999999999999999" },
                  "perfctl: add: --tid: '99999999999999999999' is too large: pids and tids are from 1 to 4194304\n" },
                { { "add", "e", "--period", "99999999999999999999" },
                  "perfctl: add: --period: '99999999999999999999' is too large: the maximum is 18446744073709551615\n" },
                { { "add", "e", "--period", "0" }, "perfctl: add: --period: '0' is not a number above 0\n" },
                { { "period", "e", "0x10000000000000000" },
                  "perfctl: period: '0x10000000000000000' is too large: the maximum is 18446744073709551615\n" },
                { { "period", "e", "1", "--frequency=10" },
                  "perfctl: period: a period and --frequency exclude each other\n" },
                { { "period", "e" }, "perfctl: period: a period or --frequency is missing\n" },
                { { "watch", "--count", "99999999999999999999" },
                  "perfctl: watch: --count: '99999999999999999999' is too large: the maximum is 18446744073709551615\n" },
                { { "add", "e", "--period=1", "--frequency=2" },
                  "perfctl: add: --period and --frequency exclude each other\n" },
                { { "watch", "--for", "10" }, "perfctl: watch: --for: '10' is not a time such as 500ms, 10s, 2m: the unit is missing\n" },
                { { "watch", "--time", "utc" }, "perfctl: watch: --time: 'utc' is none of: wall clock delta\n" },
                { { "watch", "--json", "--time", "wall" }, "perfctl: watch: --time applies to text output only: with --json each item has "
                  "time, of the stream's clock, and wall, since 1970, both in nanoseconds\n" },
                { { "watch", "--columns", "uid,gid" },
                  "perfctl: watch: --columns: 'gid' is none of: uid exe cgroup container unit\n" },
                { { "watch", "--columns", "uid,exe,uid" }, "perfctl: watch: --columns: 'uid' was already given\n" },
                { { "watch", "--json", "--columns", "uid" },
                  "perfctl: watch: --columns applies to text output only: JSON has all of them\n" },
                { { "watch", "--order", "size" }, "perfctl: watch: --order: 'size' is none of: time cpu\n" },
        };
        Ran r;

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                run_start(&r, cases[i].words);
                run_end(&r);
                r.message[strlen(cases[i].message)] = '\0';
                assert_ran(&r, PERFCTL_USAGE, "", cases[i].message);
        }
}

static void test_unreachable(void **state) {
        Ran r;

        run_start(&r, WORDS("--socket", "/nonexistent/s", "list"));
        run_end(&r);
        assert_ran(&r, PERFCTL_UNREACHABLE, "",
                   "perfctl: list: /nonexistent/s does not exist: is perfd running, and is this its socket?\n");
        run_start(&r, WORDS("list"));
        close(accept(listener, NULL, NULL)); /* no greeting */
        run_end(&r);
        assert_int_equal(r.code, PERFCTL_UNREACHABLE);
}

/* The mistake of a filter is shown in the filter. */
static void test_caret(void **state) {
        Perfd__V1__Response no = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__Request *request;
        Ran r;

        run_start(&r, WORDS("add", "a:b", "--filter", "\xc3\xa9 = x", "--pid=3,4", "--callchain", "user,kernel"));
        run_greet(&r);
        request = play_request(r.daemon);
        assert_string_equal(request->add->events[0]->filter, "\xc3\xa9 = x");
        assert_int_equal(request->add->events[0]->target->pids[1], 4);
        assert_int_equal(request->add->events[0]->callchain, PERFD__V1__CALLCHAIN__CALLCHAIN_BOTH);
        play_request_free(request);
        no.id = 2;
        no.status = PERFD__V1__STATUS__STATUS_INVALID;
        no.message = (char *)"the kernel refuses \033[1m";
        no.reason = (char *)"bad-filter";
        no.position = 4;
        play_response(r.daemon, &no);
        run_end(&r);
        assert_ran(&r, PERFCTL_FAILED, "", "perfctl: add: the kernel refuses \\x1b[1m\n  \xc3\xa9 = x\n    ^\n");
}

/* A socket of systemd's is there before perfd is: after a second it is said what is waited for, and once. */
static void test_waiting(void **state) {
        char expected[512];
        struct pollfd p = { .events = POLLIN };
        Ran r;

        (void)snprintf(expected, sizeof(expected), "perfctl: list: waiting for perfd on %s, which is being started, cannot start, or is busy: "
                       "`systemctl status perfd` and `journalctl -u perfd` say what it does\nperfctl: list: no\n", address.sun_path);
        run_start(&r, WORDS("list"));
        p.fd = r.err;
        assert_int_equal(poll(&p, 1, 10000), 1);
        run_greet(&r);
        play_request_free(play_request(r.daemon));
        play_no(&r, 2, PERFD__V1__STATUS__STATUS_DENIED, "no", "no");
        run_end(&r);
        assert_ran(&r, PERFCTL_FAILED, "", expected);
}

static void test_list(void **state) {
        Perfd__V1__Response yes = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__ListReply list = PERFD__V1__LIST_REPLY__INIT;
        Perfd__V1__EventState event = PERFD__V1__EVENT_STATE__INIT, *events[] = { &event };
        Perfd__V1__EventSpec spec = PERFD__V1__EVENT_SPEC__INIT;
        Perfd__V1__Target target = PERFD__V1__TARGET__INIT;
        Perfd__V1__Count ring = PERFD__V1__COUNT__INIT, unwritten = PERFD__V1__COUNT__INIT, *losses[] = { &ring, &unwritten };
        uint32_t pids[] = { 5, 6 };
        Ran r;

        ring.reason = (char *)"kernel_ring";
        ring.count = 5;
        unwritten.reason = (char *)"kernel_unwritten";
        unwritten.count = 2;
        target.pids = pids;
        target.n_pids = 2;
        spec.event = spec.name = (char *)"a:b";
        spec.filter = (char *)"x > 1";
        spec.group = (char *)"io";
        spec.target = &target;
        event.id = 4;
        event.enabled = true;
        event.spec = &spec;
        event.delivered = UINT64_MAX;
        event.lost = 7;
        event.losses = losses;
        event.n_losses = 2;
        list.events = events;
        list.n_events = 1;
        yes.id = 2;
        yes.body_case = PERFD__V1__RESPONSE__BODY_LIST;
        yes.list = &list;
        run_start(&r, WORDS("list"));
        run_greet(&r);
        play_response(r.daemon, &yes);
        run_end(&r);
        assert_ran(&r, PERFCTL_OK,
                   "a:b\t4\ta:b\tio\tenabled\tpid 5,6\t\t\tclient\t0\t18446744073709551615\t7\tkernel_ring 5, kernel_unwritten 2\tx > 1\t\n",
                   "perfctl: list: kernel_unwritten is the kernel's, and no setting of perfd avoids it: `perfctl ledger` says why\n");
        run_start(&r, WORDS("list", "--json"));
        run_greet(&r);
        play_response(r.daemon, &yes);
        run_end(&r);
        assert_ran(&r, PERFCTL_OK,
                   "{\"name\":\"a:b\",\"id\":4,\"event\":\"a:b\",\"group\":\"io\",\"enabled\":true,\"configured\":false,\"kept\":false,\"uid\":null,\"waiting\":\"\",\"absent\":\"\",\"target\":\"\","
                   "\"pids\":[5,6],\"tids\":[],\"cgroups\":[],\"containers\":[],\"units\":[],\"cpus\":\"\","
                   "\"no_inherit\":false,\"filter\":\"x > 1\",\"period\":0,\"frequency\":0,\"callchain\":\"\","
                   "\"include_self\":false,\"args\":\"\",\"maxactive\":0,\"interval\":0,\"fallback\":\"\",\"attr\":[],"
                   "\"fields\":[],\"fallen_back\":false,\"place\":\"\",\"targets\":0,\"ended\":0,\"fds\":0,"
                   "\"limited\":false,\"delivered\":18446744073709551615,\"lost\":7,\"losses\":{\"kernel_ring\":5,\"kernel_unwritten\":2},\"postponed\":0}\n",
                   "");
}

static void write_file(const char *path, const char *text) {
        FILE *f = fopen(path, "w");

        assert_non_null(f);
        fputs(text, f);
        assert_int_equal(fclose(f), 0);
}

static void test_validate(void **state) {
        Perfd__V1__Response yes = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__ValidateReply reply = PERFD__V1__VALIDATE_REPLY__INIT;
        Perfd__V1__ConfigDiagnostic error = PERFD__V1__CONFIG_DIAGNOSTIC__INIT, *errors[] = { &error };
        Perfd__V1__ConfigDiagnostic warning = PERFD__V1__CONFIG_DIAGNOSTIC__INIT, note = PERFD__V1__CONFIG_DIAGNOSTIC__INIT;
        Perfd__V1__ConfigDiagnostic *warnings[] = { &warning, &note };
        char path[80], drop_in[100], other[100], expected[600], folder[80];
        const struct {
                const char *option;
                size_t n_errors;
                uint32_t n_files; /* that the daemon says */
                int status;
                const char *lines; /* of what the daemon says, in order */
        } rows[] = {
                { NULL, 1, 2, PERFCTL_FAILED, "mwn" },
                { NULL, 0, 2, PERFCTL_OK, "wn" },
                { "--strict", 0, 2, PERFCTL_FAILED, "wN" },
                { "--no-drop-ins", 0, 1, PERFCTL_OK, "wn" },
                { "--no-drop-ins", 0, 0, PERFCTL_OK, "wn" }, /* an older daemon */
                { NULL, 0, 0, PERFCTL_FAILED, "" },
        };

        (void)snprintf(path, sizeof(path), "%s/c.yaml", directory);
        (void)snprintf(folder, sizeof(folder), "%s/c.d", directory);
        (void)snprintf(drop_in, sizeof(drop_in), "%s/a.yaml", folder);
        (void)snprintf(other, sizeof(other), "%s/b.yml", folder);
        assert_int_equal(mkdir(folder, 0755), 0);
        write_file(path, "version: 2\n");
        write_file(drop_in, "groups: {}\n");
        write_file(other, "");
        error = (Perfd__V1__ConfigDiagnostic){ .base = error.base, .path = path, .line = 1, .column = 10,
                                              .text = (char *)"expected 1", .reason = (char *)"" };
        warning = (Perfd__V1__ConfigDiagnostic){
                .base = error.base, .path = path, .text = (char *)"it is odd", .reason = (char *)""
        };
        note = (Perfd__V1__ConfigDiagnostic){ .base = error.base,
                                              .path = drop_in,
                                              .line = 2,
                                              .column = 3,
                                              .text = (char *)"not here",
                                              .reason = (char *)"unknown-event" };
        reply.errors = errors;
        reply.warnings = warnings;
        reply.n_warnings = 2;
        yes.id = 2;
        yes.body_case = PERFD__V1__RESPONSE__BODY_VALIDATED;
        yes.validated = &reply;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                bool has_drop_ins = !rows[i].option || strcmp(rows[i].option, "--no-drop-ins") != 0;
                Perfd__V1__Request *request;
                int n = 0;
                Ran r;

                reply.n_errors = rows[i].n_errors;
                reply.n_files = rows[i].n_files;
                run_start(&r, rows[i].option ? WORDS("validate", rows[i].option, path) : WORDS("validate", path));
                run_greet(&r);
                request = play_request(r.daemon);
                assert_string_equal(request->validate->yaml, "version: 2\n");
                assert_string_equal(request->validate->path, path);
                assert_int_equal(request->validate->n_drop_ins, has_drop_ins);
                if (has_drop_ins) {
                        assert_string_equal(request->validate->drop_ins[0]->path, drop_in);
                        assert_string_equal(request->validate->drop_ins[0]->yaml, "groups: {}\n");
                        n += snprintf(expected + n, sizeof(expected) - n, "%s: warning: it is ignored: only files whose names "
                                "end with .yaml are read\n",
                                      other);
                }
                play_request_free(request);
                play_response(r.daemon, &yes);
                run_end(&r);
                for (const char *line = rows[i].lines; *line; line++)
                        if (*line == 'm')
                                n += snprintf(expected + n, sizeof(expected) - n, "%s:1:10: expected 1\n", path);
                        else if (*line == 'w')
                                n += snprintf(expected + n, sizeof(expected) - n, "%s: warning: it is odd\n", path);
                        else
                                n += snprintf(expected + n, sizeof(expected) - n, "%s:2:3: %snot here\n", drop_in,
                                              *line == 'n' ? "note: " : "");
                assert_ran(&r, rows[i].status, n > 0 ? expected : "",
                           strchr(rows[i].lines, 'n') ?
                           "perfctl: validate: a start and a reload open what a note is about when it can be; `plan` and `apply` refuse it "
                           "without --allow-pending\n" :
                           *rows[i].lines ? "" : "perfctl: validate: the daemon is older, and has looked at the main file only\n");
        }
        unlink(path);
        unlink(drop_in);
        unlink(other);
        rmdir(folder);
}

/* Nothing of it is read, or no more than can be sent; no daemon is asked. */
static void test_no_file(void **state) {
        static const char *const readers[] = { "validate", "plan", "apply" };
        char path[80], expected[240];
        FILE *f;

        (void)snprintf(path, sizeof(path), "%s/c.yaml", directory);
        f = fopen(path, "w");
        for (int i = 0; i < (1 << 20) + 1; i++)
                fputc('#', f);
        fclose(f);
        for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
                const struct {
                        const char *path, *text;
                } cases[] = {
                        { "/dev/zero", "neither a regular file nor a pipe" },
                        { directory, "neither a regular file nor a pipe" },
                        { path, "it is longer than the 1048576 bytes that a request can have" },
                };

                for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
                        Ran r;

                        run_start(&r, WORDS(readers[i], cases[k].path));
                        run_end(&r);
                        (void)snprintf(expected, sizeof(expected), "perfctl: %s: %s: %s\n", readers[i], cases[k].path, cases[k].text);
                        assert_ran(&r, PERFCTL_FAILED, "", expected);
                }
        }
        unlink(path);
}

static void test_complete(void **state) {
        Ran r;

        run_start(&r, WORDS("complete", "--json", "re"));
        run_end(&r);
        assert_ran(&r, PERFCTL_OK, "remove\nrecord\nreport\nreload\n", "");
        run_start(&r, WORDS("complete", "watch", "x", "--o"));
        run_end(&r);
        assert_ran(&r, PERFCTL_OK, "--order\n--output\n--overflow\n", "");
        run_start(&r, WORDS("complete", "watch", "--overflow", "d"));
        run_end(&r);
        assert_ran(&r, PERFCTL_OK, "drop-oldest\ndrop-newest\ndisconnect\n", "");
        run_start(&r, WORDS("complete", "--socket", "/nonexistent/s", "remove", ""));
        run_end(&r);
        assert_ran(&r, PERFCTL_OK, "", "");
        run_start(&r, WORDS("complete", "validate", "x"));
        run_end(&r);
        assert_ran(&r, PERFCTL_OK, "<file>\n", "");
}

static void test_quantities(void **state) {
        char text[QUANTITY_SIZE];
        uint64_t n = 7;

        assert_true(quantity_parse_time("500ms", &n));
        assert_int_equal(n, 500000000);
        assert_true(quantity_parse_time("2m", &n));
        assert_int_equal(n, 120000000000);
        assert_true(quantity_parse_size("64KiB", &n));
        assert_int_equal(n, 65536);
        assert_true(quantity_parse_number("18446744073709551615", &n));
        assert_true(n == UINT64_MAX);
        assert_false(quantity_parse_number("18446744073709551616", &n));
        assert_false(quantity_parse_size("18014398509481984K", &n));
        assert_false(quantity_parse_time("s", &n));
        assert_false(quantity_parse_number("-1", &n));
        assert_true(quantity_parse_number("0xFfffffffffffffff", &n) && n == UINT64_MAX);
        assert_true(quantity_parse_number("0X00000000000000000001aB", &n) && n == 0x1ab);
        assert_false(quantity_parse_number("0x10000000000000000", &n));
        assert_false(quantity_parse_number("0x", &n));
        assert_false(quantity_parse_number("0x1g", &n));
        assert_false(quantity_parse_number("0x-1", &n));
        assert_false(quantity_parse_number("1f", &n));
        assert_false(quantity_parse_time("0x1s", &n));
        assert_string_equal(quantity_show_size(1536, text), "1.5 KiB");
        assert_string_equal(quantity_show_size(UINT64_MAX, text), "16.0 EiB");
        assert_string_equal(quantity_show_time(90000000000, text), "1 min 30 s");
}

static void test_utf8(void **state) {
        static const struct {
                const char *bytes;
                size_t length;
        } cases[] = {
                { "a", 1 },           { "\xc3\xa9", 2 },     { "\xe2\x82\xac", 3 },     { "\xf0\x9f\x98\x80", 4 },
                { "\x80", 0 },        { "\xc0\x80", 0 },     { "\xe0\x9f\xbf", 0 },     { "\xed\xa0\x80", 0 },
                { "\xf0\x8f\xbf\xbf", 0 }, { "\xf4\x90\x80\x80", 0 }, { "\xe2\x82", 0 }, { "\xff", 0 },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
                assert_int_equal(utf8_length(cases[i].bytes, strlen(cases[i].bytes)), cases[i].length);
}

/* Of any bytes one valid text, from which they can be had back; and nothing that a terminal would obey. */
static void test_json_text(void **state) {
        static const char *const pairs[][2] = {
                { "a\"\\\n\t", "\"a\\\"\\\\\\n\\t\"\n" },
                { "\xc3\xa9\xf0\x9f\x98\x80", "\"\xc3\xa9\xf0\x9f\x98\x80\"\n" },
                { "\xc3\xbf", "\"\xc3\xbf\"\n" },          /* U+00FF */
                { "\xff", "\"\\uefff\"\n" },              /* and the byte */
                { "\x80" "a\xc3", "\"\\uef80a\\uefc3\"\n" },
                { "\xee\xbf\xbf", "\"\\uefee\\uefbf\\uefbf\"\n" }, /* U+EFFF itself */
                { "\xee\xbe\x80", "\"\\uefee\\uefbe\\uef80\"\n" },
                { "\xee\xbd\xbf", "\"\xee\xbd\xbf\"\n" },  /* and its neighbour */
                { "\x1b[\x7f\xc2\x9b", "\"\\u001b[\\u007f\\u009b\"\n" },
                { "\xe2\x80\xae\xe2\x81\xa6\xd8\x9c\xe2\x80\xa8", "\"\\u202e\\u2066\\u061c\\u2028\"\n" },
                { "\xf3\xa0\x80\x81", "\"\\udb40\\udc01\"\n" },  /* a tag: U+E0001 */
                { "a\xe2\x80\x8b" "b\xc2\xad", "\"a\\u200bb\\u00ad\"\n" }, /* of no width, and a soft hyphen */
        };

        for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
                static Output o;
                Json j = { .out = &o };

                output_init(&o, STDOUT_FILENO);
                json_put_string(&j, pairs[i][0]);
                json_end_line(&j);
                o.bytes[o.n] = '\0';
                assert_string_equal(o.bytes, pairs[i][1]);
        }
}

/* Tables and messages: what a traced program calls itself cannot turn the rest of the line around. */
static void test_text(void **state) {
        static Output o;

        output_init(&o, STDOUT_FILENO);
        text_put(&o, "a\xe2\x80\xae" "b\xe2\x80\x8f\xff\xc3\xa9\n", 12);
        assert_int_equal(o.n, strlen("a\\xe2\\x80\\xaeb\\xe2\\x80\\x8f\\xff\xc3\xa9\\x0a"));
        assert_memory_equal(o.bytes, "a\\xe2\\x80\\xaeb\\xe2\\x80\\x8f\\xff\xc3\xa9\\x0a", o.n);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_usage),         cmocka_unit_test(test_unreachable),
                cmocka_unit_test(test_caret),         cmocka_unit_test(test_list),          cmocka_unit_test(test_waiting),
                cmocka_unit_test(test_validate),      cmocka_unit_test(test_no_file),      cmocka_unit_test(test_complete),
                cmocka_unit_test(test_quantities),    cmocka_unit_test(test_utf8),
                cmocka_unit_test(test_json_text),     cmocka_unit_test(test_text),
        };

        return cmocka_run_group_tests(tests, open_listener, close_listener);
}
