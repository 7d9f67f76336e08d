/* perfctl's verbs for what is added, listed and examined; emit and stat have files of their own. */
#include "tests/unit/perfctl-rig.h"

/* Options that repeat, and what an event can have beside its name. */
static void test_add(void **state) {
        Perfd__V1__Response yes = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__AddReply reply = PERFD__V1__ADD_REPLY__INIT;
        const Perfd__V1__EventSpec *spec;
        Perfd__V1__Request *request;
        Ran r;

        run_start(&r, WORDS("add", "kretprobe:vfs_read", "--args", "n=$retval:s64", "--maxactive", "64", "--cgroup",
                            "/a", "--cgroup=/b,c", "--unit", "nginx", "--container", "0123456789ab", "--attr",
                            "exclude-user=true", "--attr", "pinned=true", "--interval", "250ms", "--fallback",
                            "cpu-clock", "--field", "a:u32", "--field", "b:text"));
        run_greet(&r);
        request = play_request(r.daemon);
        spec = request->add->events[0];
        assert_false(request->add->while_connected);
        assert_string_equal(spec->args, "n=$retval:s64");
        assert_int_equal(spec->maxactive, 64);
        assert_int_equal(spec->interval, 250000000);
        assert_string_equal(spec->fallback, "cpu-clock");
        assert_int_equal(spec->target->n_cgroups, 2);
        assert_string_equal(spec->target->cgroups[1], "/b,c");
        assert_string_equal(spec->target->units[0], "nginx");
        assert_string_equal(spec->target->containers[0], "0123456789ab");
        assert_int_equal(spec->n_attr, 2);
        assert_string_equal(spec->attr[1]->name, "pinned");
        assert_int_equal(spec->n_fields, 2);
        assert_string_equal(spec->fields[1]->type, "text");
        play_request_free(request);
        yes.id = 2;
        yes.body_case = PERFD__V1__RESPONSE__BODY_ADDED;
        yes.added = &reply;
        play_response(r.daemon, &yes);
        run_end(&r);
        assert_ran(&r, PERFCTL_OK, "", "");
}

static void test_add_mistakes(void **state) {
        static const struct {
                const char *words[6];
                const char *message;
        } cases[] = {
                { { "add", "x", "--attr", "pinned" },
                  "perfctl: add: --attr: 'pinned' has no '=', as in exclude-user=true\n" },
                { { "add", "x", "--field", "code" }, "perfctl: add: --field: 'code' has no ':', as in code:u32\n" },
                { { "add", "x", "--interval", "1" }, "perfctl: add: --interval: '1' is not a time such as 100ms, 1s: the unit is missing\n" },
                { { "add", "x", "--maxactive", "5000000000" },
                  "perfctl: add: --maxactive: '5000000000' is too large\n" },
                { { "stat", "--count", "1", "--" }, "perfctl: stat: no command after --\n" },
                { { "watch", "--pid", "1", "x", "--" }, "perfctl: watch: no command after --\n" },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                Ran r;

                run_start(&r, cases[i].words);
                run_end(&r);
                assert_ran(&r, PERFCTL_USAGE, "", cases[i].message);
        }
}

/* A refusal's caret stands below the text that its reason is about. */
static void test_caret_of_args(void **state) {
        Perfd__V1__Response no = PERFD__V1__RESPONSE__INIT;
        Ran r;

        run_start(&r, WORDS("add", "kprobe:f", "--args", "a=%zz"));
        run_greet(&r);
        play_request_free(play_request(r.daemon));
        no.id = 2;
        no.status = PERFD__V1__STATUS__STATUS_INVALID;
        no.message = (char *)"no such register";
        no.reason = (char *)"bad-args";
        no.position = 3;
        play_response(r.daemon, &no);
        run_end(&r);
        assert_ran(&r, PERFCTL_FAILED, "", "perfctl: add: no such register\n  a=%zz\n    ^\n");
}

static void test_list(void **state) {
        Perfd__V1__EventState event = PERFD__V1__EVENT_STATE__INIT;
        Perfd__V1__EventSpec spec = PERFD__V1__EVENT_SPEC__INIT;
        Perfd__V1__Target target = PERFD__V1__TARGET__INIT;
        char *units[] = { (char *)"nginx.service" };
        Ran r;

        target.units = units;
        target.n_units = 1;
        spec.event = (char *)"cycles";
        spec.name = (char *)"mine";
        spec.group = (char *)"cpu";
        spec.interval = 1000000000;
        spec.fallback = (char *)"cpu-clock";
        spec.target = &target;
        event.id = 4;
        event.spec = &spec;
        event.fallen_back = true;
        event.n_targets = 2;
        event.place = (char *)"vfs_read+0x0";
        run_start(&r, WORDS("list"));
        run_greet(&r);
        play_request_free(play_request(r.daemon));
        play_listed(&r, 2, &event);
        run_end(&r);
        assert_ran(
                &r, PERFCTL_OK,
                "mine\t4\tcycles -> cpu-clock\tcpu\tdisabled\tunit nginx.service (2)\tevery 1.0 s\t\tclient\t0\t0\t0\t\t\t"
                "vfs_read+0x0\n",
                "");
}

static void test_available(void **state) {
        Perfd__V1__Response yes = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__AvailableReply reply = PERFD__V1__AVAILABLE_REPLY__INIT;
        Perfd__V1__AvailableEvent event = PERFD__V1__AVAILABLE_EVENT__INIT, *events[] = { &event };
        Ran r;

        event.event = (char *)"power/energy-pkg/";
        event.kind = (char *)"pmu";
        event.unit = (char *)"Joules";
        event.help = (char *)"event=0x02";
        reply.events = events;
        reply.n_events = 1;
        yes.id = 2;
        yes.body_case = PERFD__V1__RESPONSE__BODY_AVAILABLE;
        yes.available = &reply;
        run_start(&r, WORDS("available", "power/*"));
        run_greet(&r);
        play_response(r.daemon, &yes);
        run_end(&r);
        assert_ran(&r, PERFCTL_OK, "power/energy-pkg/\tpmu\tJoules\tevent=0x02\n", "");
}

static void test_doctor(void **state) {
        Perfd__V1__Response yes = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__DoctorReply reply = PERFD__V1__DOCTOR_REPLY__INIT;
        Perfd__V1__DoctorRow row = PERFD__V1__DOCTOR_ROW__INIT, *rows[] = { &row };
        Ran r;

        row.topic = (char *)"probes";
        row.what = (char *)"kprobes";
        row.found = (char *)"no \"PMU\"";
        row.remedy = (char *)"another kernel";
        reply.rows = rows;
        reply.n_rows = 1;
        yes.id = 2;
        yes.body_case = PERFD__V1__RESPONSE__BODY_DOCTOR;
        yes.doctor = &reply;
        run_start(&r, WORDS("doctor"));
        run_greet(&r);
        play_response(r.daemon, &yes);
        run_end(&r);
        assert_ran(&r, PERFCTL_OK, "probes\tkprobes\tno\tno \"PMU\"\tanother kernel\n", "");
        run_start(&r, WORDS("doctor", "--json"));
        run_greet(&r);
        play_response(r.daemon, &yes);
        run_end(&r);
        assert_ran(&r, PERFCTL_OK,
                   "{\"topic\":\"probes\",\"what\":\"kprobes\",\"works\":false,\"found\":\"no \\\"PMU\\\"\","
                   "\"remedy\":\"another kernel\"}\n",
                   "");
}

static void test_ledger(void **state) {
        Perfd__V1__Response yes = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__Ledger ledger = PERFD__V1__LEDGER__INIT;
        Perfd__V1__EventLedger e = PERFD__V1__EVENT_LEDGER__INIT, *events[] = { &e };
        Perfd__V1__ProbeLedger a = PERFD__V1__PROBE_LEDGER__INIT, b = PERFD__V1__PROBE_LEDGER__INIT,
                               *probes[] = { &a, &b };
        Perfd__V1__Count lost = PERFD__V1__COUNT__INIT, *counts = &lost;
        Perfd__V1__Request *request;
        Ran r;

        a.id = 4;
        a.name = (char *)"kprobe:vfs_read";
        a.hits = 100;
        a.missed = 2;
        a.known = true;
        b.id = 5;
        b.name = (char *)"uprobe:/a:b";
        ledger.probes = probes;
        ledger.n_probes = 2;
        e.id = 3;
        e.name = (char *)"external:a";
        e.occurred = e.delivered = e.count = 7;
        e.external = e.removed = e.balanced = e.exact = true;
        ledger.events = events;
        ledger.n_events = 1;
        ledger.truncated = true;
        yes.id = 2;
        yes.body_case = PERFD__V1__RESPONSE__BODY_LEDGER;
        yes.ledger = &ledger;
        run_start(&r, WORDS("ledger"));
        run_greet(&r);
        play_response(r.daemon, &yes);
        run_end(&r);
        assert_ran(&r, PERFCTL_OK, "external:a\t-\t7\t7\t0\t-\tyes\tyes\n"
                   "probe\t4\t100\t2\tkprobe:vfs_read\nprobe\t5\tunknown\tunknown\tuprobe:/a:b\ntruncated\n", "");
        run_start(&r, WORDS("ledger", "--json"));
        run_greet(&r);
        play_response(r.daemon, &yes);
        run_end(&r);
        assert_ran(
                &r, PERFCTL_OK,
                "{\"kind\":\"event\",\"event\":\"external:a\",\"id\":3,\"cpu\":0,\"occurred\":7,\"delivered\":7,\"filtered\":0,"
                "\"lost\":{},\"balanced\":true,\"exact\":true,\"count\":7,\"doubled\":0,\"external\":true,\"removed\":true,"
                "\"stalled\":false}\n"
                "{\"kind\":\"probe\",\"event\":\"kprobe:vfs_read\",\"id\":4,\"known\":true,\"hits\":100,\"missed\":2}\n"
                "{\"kind\":\"probe\",\"event\":\"uprobe:/a:b\",\"id\":5,\"known\":false}\n"
                "{\"kind\":\"truncated\"}\n",
                "");
        run_start(&r, WORDS("ledger", "a*", "@io"));
        run_greet(&r);
        request = play_request(r.daemon);
        assert_int_equal(request->body_case, PERFD__V1__REQUEST__BODY_LEDGER);
        assert_int_equal(request->ledger->n_events, 2);
        assert_string_equal(request->ledger->events[0], "a*");
        assert_string_equal(request->ledger->events[1], "@io");
        play_request_free(request);
        play_response(r.daemon, &yes);
        run_end(&r);
        assert_int_equal(r.code, PERFCTL_OK);
        assert_string_equal(r.message, "");
        lost.reason = (char *)"kernel_unwritten";
        lost.count = 2;
        e.delivered = 5;
        e.lost = &counts;
        e.n_lost = 1;
        run_start(&r, WORDS("ledger"));
        run_greet(&r);
        play_response(r.daemon, &yes);
        run_end(&r);
        assert_non_null(strstr(r.text, "external:a\t-\t7\t5\t0\tkernel_unwritten 2\t"));
        assert_non_null(strstr(r.message, "perfctl: ledger: kernel_unwritten: the kernel counted these and wrote no record of them"));
}

/* One event on two CPUs, the second of which has a reader that does not answer; `balanced` is the first one. */
static void ledger_of_stalled(Ran *r, const char *const *words, bool balanced) {
        Perfd__V1__Response yes = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__Ledger ledger = PERFD__V1__LEDGER__INIT;
        Perfd__V1__EventLedger a = PERFD__V1__EVENT_LEDGER__INIT, b = PERFD__V1__EVENT_LEDGER__INIT, *events[] = { &a, &b };
        Perfd__V1__RingLedger ring = PERFD__V1__RING_LEDGER__INIT, *rings[] = { &ring };

        a.name = b.name = (char *)"calls";
        a.occurred = a.delivered = b.occurred = b.delivered = 7;
        a.balanced = balanced;
        a.exact = true;
        b.cpu = ring.cpu = 1;
        b.stalled = ring.stalled = true;
        ring.records = ring.samples = 7;
        ledger.events = events;
        ledger.n_events = 2;
        ledger.rings = rings;
        ledger.n_rings = 1;
        yes.id = 2;
        yes.body_case = PERFD__V1__RESPONSE__BODY_LEDGER;
        yes.ledger = &ledger;
        run_start(r, words);
        run_greet(r);
        play_response(r->daemon, &yes);
        run_end(r);
}

/* That its rows do not balance is no mistake of perfd; what does not beside them is. */
static void test_ledger_stalled(void **state) {
        static const char stalled[] = "perfctl: ledger: 2 rows cannot balance now: perfd's reader of CPU 1 does not answer, as while a "
                                      "debugger stops it; \"perfctl status\" says since when. Ask again when it does\n";
        Ran r;

        ledger_of_stalled(&r, WORDS("ledger"), true);
        assert_ran(&r, PERFCTL_FAILED, "calls\t0\t7\t7\t0\t-\tyes\tyes\ncalls\t1\t7\t7\t0\t-\tno\tstalled\n"
                   "ring\t1\t7\t7\t0\t-\tstalled\n", stalled);
        ledger_of_stalled(&r, WORDS("ledger", "--json"), true);
        assert_int_equal(r.code, PERFCTL_FAILED);
        assert_non_null(strstr(r.text, "\"cpu\":0,\"occurred\":7,\"delivered\":7,\"filtered\":0,\"lost\":{},\"balanced\":true,"
                                       "\"exact\":true,\"count\":0,\"doubled\":0,\"external\":false,\"removed\":false,"
                                       "\"stalled\":false}\n"));
        assert_non_null(strstr(r.text, "\"lost\":{},\"balanced\":false,\"stalled\":true}\n"));
        assert_string_equal(r.message, stalled);
        ledger_of_stalled(&r, WORDS("ledger"), false);
        assert_int_equal(r.code, PERFCTL_FAILED);
        assert_string_equal(r.message, "perfctl: ledger: the ledger does not balance in 1 rows: samples are unaccounted for, which "
                                       "is a bug in perfd\n");
}

/* Of two CPUs, whose second one has a reader that has not answered for 9 s. */
static void status_of_stalled(Ran *r, const char *const *words) {
        Perfd__V1__Response yes = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__StatusReply status = PERFD__V1__STATUS_REPLY__INIT;
        Perfd__V1__CpuStatus a = PERFD__V1__CPU_STATUS__INIT, b = PERFD__V1__CPU_STATUS__INIT, *cpus[] = { &a, &b };

        b.cpu = 1;
        b.stalled = 9000000000;
        status.cpus = cpus;
        status.n_cpus = 2;
        yes.id = 2;
        yes.body_case = PERFD__V1__RESPONSE__BODY_DAEMON;
        yes.daemon = &status;
        run_start(r, words);
        run_greet(r);
        play_response(r->daemon, &yes);
        run_end(r);
}

static void test_status_stalled(void **state) {
        Ran r;

        status_of_stalled(&r, WORDS("status"));
        assert_int_equal(r.code, PERFCTL_OK);
        assert_non_null(strstr(r.text, "cpu0\t0\t0\t0\t0\t0\t0\t0\ncpu1\t0\t0\t0\t0\t0\t0\t9000000000\n"));
        status_of_stalled(&r, WORDS("status", "--json"));
        assert_int_equal(r.code, PERFCTL_OK);
        assert_non_null(strstr(r.text, "\"failovers\":0,\"stalled\":0},{\"cpu\":1,"));
        assert_non_null(strstr(r.text, "\"failovers\":0,\"stalled\":9000000000}]"));
}

/* An answer to words[]. */
static void change_clock(Ran *r, const char *const *words) {
        Perfd__V1__Response yes = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__ReloadReply reply = PERFD__V1__RELOAD_REPLY__INIT;
        Perfd__V1__Difference clock = PERFD__V1__DIFFERENCE__INIT, *settings[] = { &clock };

        clock.field = (char *)"clock";
        clock.before = (char *)"monotonic";
        clock.after = (char *)"boottime";
        clock.restart = true;
        reply.kept = 3;
        reply.settings = settings;
        reply.n_settings = 1;
        yes.id = 2;
        yes.body_case = PERFD__V1__RESPONSE__BODY_RELOADED;
        yes.reloaded = &reply;
        run_start(r, words);
        run_greet(r);
        play_request_free(play_request(r->daemon));
        play_response(r->daemon, &yes);
        run_end(r);
}

/* A restart loses what was applied, so what has to be done is not the same. */
static void test_needs_restart(void **state) {
        Ran r;

        change_clock(&r, WORDS("apply", "/proc/version"));
        assert_ran(&r, PERFCTL_OK, "added 0, removed 0, changed 0, kept 3\n",
                   "perfctl: apply: clock stays monotonic until perfd is started with boottime\n"
                   "perfctl: apply: for that, write it into the configuration that perfd is started with (config in `perfctl status`), "
                   "and restart it, as by `systemctl restart perfd`: what is applied ends with it\n");
        change_clock(&r, WORDS("reload"));
        assert_ran(&r, PERFCTL_OK, "added 0, removed 0, changed 0, kept 3\n",
                   "perfctl: reload: clock stays monotonic until perfd is started with boottime\n"
                   "perfctl: reload: for that, restart it, as by `systemctl restart perfd`\n");
        change_clock(&r, WORDS("--json", "reload"));
        assert_ran(&r, PERFCTL_OK,
                   "{\"added\":0,\"removed\":0,\"changed\":0,\"kept\":3,\"pending\":0,"
                   "\"needs_restart\":[{\"field\":\"clock\",\"before\":\"monotonic\",\"after\":\"boottime\"}]}\n", "");
}

/* That of an event which is not there: all three verbs lead to one option. */
static void test_allow_pending(void **state) {
        static const struct {
                const char *words[4], *message;
        } cases[] = {
                { { "plan", "/proc/version" }, "perfctl: plan: no such event\nperfctl: plan: `apply` would change nothing; with "
                  "--allow-pending, in both, all else is changed, and this event is opened when it can be\n" },
                { { "apply", "/proc/version" }, "perfctl: apply: no such event\nperfctl: apply: nothing is changed; with --allow-pending "
                  "all else is, and this event is opened when it can be\n" },
                { { "plan", "/proc/version", "--allow-pending" }, "perfctl: plan: no such event\n" },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                Ran r;

                run_start(&r, cases[i].words);
                run_greet(&r);
                play_request_free(play_request(r.daemon));
                play_no(&r, 2, PERFD__V1__STATUS__STATUS_NOT_FOUND, "unknown-event", "no such event");
                run_end(&r);
                assert_ran(&r, PERFCTL_FAILED, "", cases[i].message);
        }
}

static void assert_narrow(const char *text) {
        for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
                if (end - line > 80)
                        fail_msg("%.*s", (int)(end - line), line);
}

/* Also that of the verb with the most options, and of a mistake in its command line. */
static void test_help_fits(void **state) {
        Ran r;

        run_start(&r, WORDS("help"));
        run_end(&r);
        assert_int_equal(r.code, PERFCTL_OK);
        assert_narrow(r.text);
        assert_non_null(strstr(r.text, "\n  watch        print samples of running events, of events that it adds, or of a\n"
                                       "               command\n"));
        for (size_t i = 0; verbs[i]; i++) {
                run_start(&r, WORDS("help", verbs[i]->name));
                run_end(&r);
                assert_int_equal(r.code, PERFCTL_OK);
                assert_narrow(r.text);
                assert_non_null(strstr(r.text, verbs[i]->help));
                for (const Option *o = verbs[i]->options; o->name; o++)
                        assert_non_null(strstr(r.text, o->name));
        }
        run_start(&r, WORDS("watch", "--wehre"));
        run_end(&r);
        assert_int_equal(r.code, PERFCTL_USAGE);
        assert_narrow(r.message);
        assert_string_equal(r.message, "perfctl: watch: unknown option '--wehre', did you mean '--where'?\n"
                                       "`perfctl help watch` shows its options\n");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_add),           cmocka_unit_test(test_add_mistakes),
                cmocka_unit_test(test_caret_of_args), cmocka_unit_test(test_list),
                cmocka_unit_test(test_available),     cmocka_unit_test(test_doctor),
                cmocka_unit_test(test_ledger_stalled), cmocka_unit_test(test_status_stalled),
                cmocka_unit_test(test_ledger),        cmocka_unit_test(test_help_fits),
                cmocka_unit_test(test_needs_restart), cmocka_unit_test(test_allow_pending),
        };

        return cmocka_run_group_tests(tests, open_listener, close_listener);
}
