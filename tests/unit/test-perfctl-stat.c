/*
 * `perfctl stat` between two connections: what it asks for, how it sums and scales what CPUs read, and how that looks. The
 * times of a line are those of this very moment, and cut off; everything else is compared to the byte.
 */
#include <signal.h>
#include <time.h>

#include "client/perfctl/stat/stat.h"
#include "tests/unit/perfctl-rig.h"

#define SECOND UINT64_C(1000000000)

typedef struct Played {
        Ran ran; /* .daemon: the connection with the events */
        int stream;
        uint64_t id, sequence;
        uint64_t base; /* a multiple of the interval, later than now */
} Played;

static Perfd__V1__Request *next(int fd, Perfd__V1__Request__BodyCase expected) {
        Perfd__V1__Request *request = play_request(fd);

        assert_non_null(request);
        assert_int_equal(request->body_case, expected);
        return request;
}

static void answer_status(Played *d) {
        Perfd__V1__Response yes = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__StatusReply status = PERFD__V1__STATUS_REPLY__INIT;
        Perfd__V1__Request *request = next(d->ran.daemon, PERFD__V1__REQUEST__BODY_STATUS);

        status.clock = (char *)"monotonic";
        yes.id = request->id;
        yes.body_case = PERFD__V1__RESPONSE__BODY_DAEMON;
        yes.daemon = &status;
        play_response(d->ran.daemon, &yes);
        play_request_free(request);
}

/* The event that is asked for, as id, or refused because this machine cannot. Gives the pid of its target. */
static uint32_t answer_add(Played *d, const char *event, uint32_t id, uint64_t interval) {
        Perfd__V1__Response r = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__AddReply reply = PERFD__V1__ADD_REPLY__INIT;
        Perfd__V1__EventRef ref = PERFD__V1__EVENT_REF__INIT, *refs[] = { &ref };
        Perfd__V1__Request *request = next(d->ran.daemon, PERFD__V1__REQUEST__BODY_ADD);
        Perfd__V1__EventSpec *spec = request->add->events[0];
        uint32_t pid = spec->target && spec->target->n_pids == 1 ? spec->target->pids[0] : 0;

        assert_true(request->add->while_connected);
        assert_true(spec->disabled);
        assert_string_equal(spec->event, event);
        assert_int_equal(spec->n_attr, pid > 1); /* a command is counted from its exec on */
        assert_int_equal(spec->interval, interval);
        r.id = request->id;
        if (id == 0) {
                r.status = PERFD__V1__STATUS__STATUS_UNSUPPORTED;
                r.reason = (char *)"no-counter";
                r.message = (char *)"this machine cannot count it";
        } else {
                ref.id = id;
                ref.name = spec->name;
                reply.events = refs;
                reply.n_events = 1;
                r.body_case = PERFD__V1__RESPONSE__BODY_ADDED;
                r.added = &reply;
        }
        play_response(d->ran.daemon, &r);
        play_request_free(request);
        return pid;
}

/* n events with the ids 1 to n, with so many fds each. */
static void answer_list(Played *d, size_t n, const uint32_t *n_fds, uint64_t n_targets) {
        Perfd__V1__Response yes = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__ListReply list = PERFD__V1__LIST_REPLY__INIT;
        Perfd__V1__EventState events[8], *pointers[8];
        Perfd__V1__Request *request = next(d->ran.daemon, PERFD__V1__REQUEST__BODY_LIST);

        for (size_t i = 0; i < n; i++) {
                perfd__v1__event_state__init(&events[i]);
                events[i].id = (uint32_t)i + 1;
                events[i].n_fds = n_fds[i];
                events[i].n_targets = n_targets;
                pointers[i] = &events[i];
        }
        list.events = pointers;
        list.n_events = n;
        yes.id = request->id;
        yes.body_case = PERFD__V1__RESPONSE__BODY_LIST;
        yes.list = &list;
        play_response(d->ran.daemon, &yes);
        play_request_free(request);
}

static void answer_subscribe(Played *d, size_t n_events) {
        Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;
        Perfd__V1__StreamStart start = PERFD__V1__STREAM_START__INIT;
        Perfd__V1__Request *request;

        d->stream = accept(listener, NULL, NULL);
        play_request_free(play_request(d->stream));
        play_hello(d->stream, 1);
        request = next(d->stream, PERFD__V1__REQUEST__BODY_SUBSCRIBE);
        assert_int_equal(request->subscribe->n_events, n_events);
        play_ok(d->stream, request->id);
        play_request_free(request);
        start.clock = (char *)"monotonic";
        p.sequence = d->sequence = 1;
        p.start = &start;
        play_packet(d->stream, &p);
}

static void answer_selection(Played *d, Perfd__V1__Request__BodyCase kind, size_t n_events) {
        Perfd__V1__Response yes = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__SelectReply reply = PERFD__V1__SELECT_REPLY__INIT;
        Perfd__V1__Request *request = next(d->ran.daemon, kind);

        assert_int_equal(request->enable->n_names, n_events); /* as disable */
        yes.id = request->id;
        yes.body_case = PERFD__V1__RESPONSE__BODY_SELECTED;
        yes.selected = &reply;
        play_response(d->ran.daemon, &yes);
        play_request_free(request);
}

static void answer_enable(Played *d, size_t n_events) {
        struct timespec ts;

        answer_selection(d, PERFD__V1__REQUEST__BODY_ENABLE, n_events);
        clock_gettime(CLOCK_MONOTONIC, &ts);
        d->base = ((uint64_t)ts.tv_sec + 10) * SECOND;
}

typedef struct Counter {
        const char *event, *unit;
        double scale;
} Counter;

static void play_counters(Played *d, uint32_t id, const Counter *counters, size_t n) {
        Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;
        Perfd__V1__EventDescriptor event = PERFD__V1__EVENT_DESCRIPTOR__INIT, *events[] = { &event };
        Perfd__V1__CounterDescriptor list[4], *pointers[4];

        for (size_t i = 0; i < n; i++) {
                perfd__v1__counter_descriptor__init(&list[i]);
                list[i].event = (char *)counters[i].event;
                list[i].unit = (char *)counters[i].unit;
                list[i].scale = counters[i].scale;
                pointers[i] = &list[i];
        }
        event.id = id;
        event.name = (char *)"x";
        event.event = (char *)"x";
        event.counters = pointers;
        event.n_counters = n;
        event.interval = SECOND;
        p.sequence = ++d->sequence;
        p.events = events;
        p.n_events = 1;
        play_packet(d->stream, &p);
}

/* Triples of value, enabled, running: since the event was added. */
static void play_reads(Played *d, uint32_t id, uint32_t cpu, uint64_t time, const uint64_t (*values)[3], size_t n) {
        Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;
        Perfd__V1__Item item = PERFD__V1__ITEM__INIT, *items[] = { &item };
        Perfd__V1__ReadRecord read = PERFD__V1__READ_RECORD__INIT;
        Perfd__V1__ReadValues all = PERFD__V1__READ_VALUES__INIT;
        Perfd__V1__ReadValue list[4], *pointers[4];

        for (size_t i = 0; i < n; i++) {
                perfd__v1__read_value__init(&list[i]);
                list[i].value = values[i][0];
                list[i].enabled = values[i][1];
                list[i].running = values[i][2];
                pointers[i] = &list[i];
        }
        all.values = pointers;
        all.n_values = n;
        read.values = &all;
        item.time = time;
        item.event = id;
        item.cpu = cpu;
        item.record_case = PERFD__V1__ITEM__RECORD_READ;
        item.read = &read;
        p.sequence = ++d->sequence;
        p.items = items;
        p.n_items = 1;
        play_packet(d->stream, &p);
}

/* The first reads of all events: they are 0, and the first interval begins with them. */
static void play_begin(Played *d, const uint32_t *n_cpus, const size_t *n_counters, size_t n) {
        static const uint64_t zeros[4][3] = { { 0 } };

        for (uint32_t i = 0; i < n; i++)
                for (uint32_t cpu = 0; cpu < n_cpus[i]; cpu++)
                        play_reads(d, i + 1, cpu, d->base - SECOND, zeros, n_counters[i]);
}

static void answer_stop(Played *d) {
        Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;
        Perfd__V1__StreamEnd end = PERFD__V1__STREAM_END__INIT;
        Perfd__V1__Ledger ledger = PERFD__V1__LEDGER__INIT;

        play_request_free(next(d->stream, PERFD__V1__REQUEST__BODY_STOP));
        end.reason = (char *)"stopped";
        end.ledger = &ledger;
        p.sequence = ++d->sequence;
        p.end = &end;
        play_packet(d->stream, &p);
        close(d->stream);
}

static void begin(Played *d, const char *const *words) {
        *d = (Played){ .stream = -1 };
        run_start(&d->ran, words);
        run_greet(&d->ran);
        answer_status(d);
}

/* Each line without its first `n` characters. */
static void cut_lines(char *text, size_t n) {
        char *to = text;

        for (char *line = text; *line;) {
                size_t length = strcspn(line, "\n") + 1, cut = length > n ? n : 0;

                memmove(to, line + cut, length - cut);
                to += length - cut;
                line += length;
        }
        *to = '\0';
}

/*
 * Two CPUs, three counters in a group and others alone: one that shares its hardware, one that never got it, one that the
 * machine lacks, one with a unit. The second report is what was counted between the two.
 */
static void test_intervals(void **state) {
        static const Counter group[] = { { "cycles", "events", 1 }, { "instructions", "events", 1 } };
        static const Counter clock = { "task-clock", "ns", 1 }, misses = { "cache-misses", "events", 1 };
        static const Counter energy = { "power/energy-pkg/", "Joules", 0.5 };
        static const uint64_t first[][3] = { { 1000, 100, 100 }, { 500, 100, 100 } };
        static const uint64_t second[][3] = { { 2001000, 200, 200 }, { 4000500, 200, 200 } };
        static const uint64_t shared[][3] = { { 1001000, 200, 150 }, { 1000500, 200, 150 } };
        static const uint64_t none[][3] = { { 0, 100, 0 } }, still_none[][3] = { { 0, 200, 0 } };
        static const uint64_t time[][3] = { { 0, 0, 0 } }, later[][3] = { { 1000000, SECOND, SECOND } };
        static const uint64_t joules[][3] = { { 3, 1, 1 } }, more_joules[][3] = { { 8, 2, 2 } };
        static const uint32_t n_fds[] = { 4, 2, 1, 1 }, n_cpus[] = { 2, 2, 1, 1 };
        static const size_t n_counters[] = { 2, 1, 1, 1 };
        Played d;

        begin(&d, WORDS("stat", "{cycles,instructions}", "cache-misses", "branches", "power/energy-pkg/", "task-clock",
                        "--count", "2"));
        answer_add(&d, "{cycles,instructions}", 1, SECOND / 10);
        answer_add(&d, "cache-misses", 2, SECOND / 10);
        answer_add(&d, "branches", 0, SECOND / 10);
        answer_add(&d, "power/energy-pkg/", 3, SECOND / 10);
        answer_add(&d, "task-clock", 4, SECOND / 10);
        answer_list(&d, 4, n_fds, 0);
        answer_subscribe(&d, 4);
        answer_enable(&d, 4);
        play_counters(&d, 4, &clock, 1); /* the lines keep the order of the command line */
        play_counters(&d, 2, &misses, 1);
        play_counters(&d, 1, group, 2);
        play_counters(&d, 3, &energy, 1);
        play_begin(&d, n_cpus, n_counters, 4);
        play_reads(&d, 1, 0, d.base + 5, first, 2);
        play_reads(&d, 1, 1, d.base + 6, first, 2);
        play_reads(&d, 2, 0, d.base, none, 1);
        play_reads(&d, 2, 1, d.base, none, 1);
        play_reads(&d, 3, 0, d.base, joules, 1);
        play_reads(&d, 4, 0, d.base, time, 1); /* the last that is expected: the report is printed */
        play_reads(&d, 1, 0, d.base + SECOND, second, 2);
        play_reads(&d, 1, 1, d.base + SECOND, shared, 2);
        play_reads(&d, 2, 0, d.base + SECOND, still_none, 1);
        play_reads(&d, 2, 1, d.base + SECOND, still_none, 1);
        play_reads(&d, 3, 0, d.base + SECOND, more_joules, 1);
        play_reads(&d, 4, 0, d.base + SECOND, later, 1);
        answer_stop(&d);
        run_end(&d.ran);
        cut_lines(d.ran.text, 16);
        assert_ran(
                &d.ran, PERFCTL_OK,
                "             counts unit   events\n"
                "              2000        cycles\n"
                "              1000        instructions                     #    0.500 insn per cycle\n"
                "     <not counted>        cache-misses\n"
                "   <not supported>        branches\n"
                "              1.50 Joules power/energy-pkg/\n"
                "              0.00 msec   task-clock                       #    0.000 CPUs utilized\n"
                "           4000000        cycles                           #    4.000 GHz                  (75.00%)\n"
                "           6000000        instructions                     #    1.500 insn per cycle       (75.00%)\n"
                "     <not counted>        cache-misses\n"
                "   <not supported>        branches\n"
                "              2.50 Joules power/energy-pkg/\n"
                "              1.00 msec   task-clock                       #    0.001 CPUs utilized\n",
                "");
}

/* A CPU that comes too late for one report is in the next one: nothing is lost, and nothing waits for ever. */
static void test_late_cpu(void **state) {
        static const Counter faults = { "page-faults", "events", 1 };
        static const uint64_t ten[][3] = { { 10, SECOND, SECOND } }, thirty[][3] = { { 30, 2 * SECOND, 2 * SECOND } },
                              forty[][3] = { { 40, 2 * SECOND, 2 * SECOND } };
        static const uint32_t n_fds[] = { 2 };
        static const size_t n_counters[] = { 1 };
        Played d;

        begin(&d, WORDS("stat", "page-faults", "--interval=1s", "--json", "--count=2"));
        answer_add(&d, "page-faults", 1, SECOND / 10);
        answer_list(&d, 1, n_fds, 0);
        answer_subscribe(&d, 1);
        answer_enable(&d, 1);
        play_counters(&d, 1, &faults, 1);
        play_begin(&d, n_fds, n_counters, 1);
        play_reads(&d, 1, 0, d.base, ten, 1);
        play_reads(&d, 1, 0, d.base + SECOND / 2, thirty, 1); /* a read between reports */
        play_reads(&d, 1, 0, d.base + SECOND, thirty, 1); /* ends the wait for CPU 1 */
        play_reads(&d, 1, 1, d.base + SECOND, forty, 1);
        answer_stop(&d);
        run_end(&d.ran);
        assert_int_equal(d.ran.code, PERFCTL_OK);
        assert_non_null(strstr(d.ran.text,
                               "{\"time\":1000000000,\"duration\":1000000000,\"event\":\"page-faults\",\"state\":\"counted\","
                               "\"value\":10,\"unit\":\"events\",\"enabled\":1000000000,\"running\":1000000000,"
                               "\"confidence\":1}\n"));
        assert_non_null(strstr(d.ran.text,
                               "{\"time\":2000000000,\"duration\":1500000000,\"event\":\"page-faults\",\"state\":\"counted\","
                               "\"value\":60,\"unit\":\"events\",\"enabled\":3000000000,\"running\":3000000000,"
                               "\"confidence\":1}\n"));
}

/*
 * One CPU was read a tenth of a second after the other: while it was, a task's counter there was enabled, and the one where it
 * ran had been read already. That is no sharing; half of the time in the next second is.
 */
static void test_cpus_apart(void **state) {
        static const Counter faults = { "page-faults", "events", 1 };
        static const uint64_t here[][3] = { { 1000, 1000000000, 1000000000 } }, there[][3] = { { 0, 1100000000, 0 } },
                              later[][3] = { { 1500, 2000000000, 1500000000 } }, still[][3] = { { 0, 2000000000, 0 } };
        static const uint32_t n_fds[] = { 2 };
        static const size_t n_counters[] = { 1 };
        Played d;

        begin(&d, WORDS("stat", "page-faults", "--interval=1s", "--json", "--count=2", "--pid=1"));
        answer_add(&d, "page-faults", 1, SECOND / 10);
        answer_list(&d, 1, n_fds, 1);
        answer_subscribe(&d, 1);
        answer_enable(&d, 1);
        play_counters(&d, 1, &faults, 1);
        play_begin(&d, n_fds, n_counters, 1);
        play_reads(&d, 1, 0, d.base, here, 1);
        play_reads(&d, 1, 1, d.base + SECOND / 10, there, 1);
        play_reads(&d, 1, 0, d.base + SECOND, later, 1);
        play_reads(&d, 1, 1, d.base + SECOND, still, 1);
        answer_stop(&d);
        run_end(&d.ran);
        assert_int_equal(d.ran.code, PERFCTL_OK);
        assert_non_null(strstr(d.ran.text, "\"value\":1000,\"unit\":\"events\",\"enabled\":1000000000,\"running\":1000000000,"
                                           "\"confidence\":1}\n"));
        assert_non_null(strstr(d.ran.text, "\"value\":950,\"unit\":\"events\",\"enabled\":950000000,\"running\":500000000,"));
}

/*
 * A task's fds on two CPUs: each is enabled while the task runs anywhere, so the one where it does not run is no sign of
 * sharing. The command runs only after the counters were enabled, and its status is ours.
 */
static void test_command(void **state) {
        static const Counter faults = { "page-faults", "events", 1 };
        static const uint64_t here[][3] = { { 30, SECOND, SECOND / 4 } },
                              there[][3] = { { 10, SECOND, SECOND / 4 * 3 } };
        static const uint32_t n_fds[] = { 2 };
        uint32_t pid;
        Played d;

        begin(&d, WORDS("stat", "page-faults", "--", "sh", "-c", "exit 7"));
        pid = answer_add(&d, "page-faults", 1, SECOND / 10);
        assert_int_equal(kill((pid_t)pid, 0), 0);
        answer_list(&d, 1, n_fds, 1);
        answer_subscribe(&d, 1);
        answer_enable(&d, 1);
        play_counters(&d, 1, &faults, 1);
        play_reads(&d, 1, 0, d.base, here, 1);
        play_reads(&d, 1, 1, d.base, there, 1);
        answer_selection(&d, PERFD__V1__REQUEST__BODY_DISABLE, 1); /* it has ended */
        answer_stop(&d);
        run_end(&d.ran);
        assert_int_equal(d.ran.code, 7);
        assert_string_equal(d.ran.text, "");
        assert_non_null(
                strstr(d.ran.message, "\n Performance counter stats for 'sh -c exit 7':\n\n                40        page-faults\n\n"));
        assert_non_null(strstr(d.ran.message, " seconds time elapsed\n\n"));
        assert_non_null(strstr(d.ran.message, " seconds user\n"));
}

static void test_nothing_counts(void **state) {
        Played d;

        begin(&d, WORDS("stat", "cycles"));
        answer_add(&d, "cycles", 0, SECOND / 10);
        run_end(&d.ran);
        assert_ran(&d.ran, PERFCTL_FAILED, "", "perfctl: stat: this machine cannot count it\n");

        begin(&d, WORDS("stat", "cycles", "--", "/nonexistent/program"));
        answer_add(&d, "cycles", 1, SECOND / 10);
        answer_list(&d, 1, (const uint32_t[]){ 1 }, 1);
        answer_subscribe(&d, 1);
        answer_enable(&d, 1);
        assert_null(play_request(d.stream)); /* no stop: the connection ends */
        close(d.stream);
        run_end(&d.ran);
        assert_ran(&d.ran, 127, "",
                   "perfctl: stat: starting /nonexistent/program: No such file or directory\n");
}

static void test_lists_of_events(void **state) {
        static const struct {
                const char *list;
                const char *events[4];
        } cases[] = {
                { "a", { "a" } },
                { "a,b:u", { "a", "b:u" } },
                { "{a,b}:u,cpu/x=1,y=2/,c", { "{a,b}:u", "cpu/x=1,y=2/", "c" } },
                { "{a,cpu/x=1,y=2/}:S", { "{a,cpu/x=1,y=2/}:S" } },
                { "", { "" } },
                { "a,", { "a", "" } },
                { "}a,{b", { "}a", "{b" } },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                size_t n;
                char **events = stat_events_split(cases[i].list, &n);

                for (size_t k = 0; k < n; k++)
                        assert_string_equal(events[k], cases[i].events[k]);
                assert_true(n == 4 || !cases[i].events[n]);
                stat_events_free(events, n);
        }
        {
                size_t n;
                char **members = stat_events_members("{a,cpu/x=1,y=2/}:S", &n);

                assert_int_equal(n, 2);
                assert_string_equal(members[0], "a");
                assert_string_equal(members[1], "cpu/x=1,y=2/");
                stat_events_free(members, n);
                members = stat_events_members("a{1}", &n);
                assert_int_equal(n, 1);
                assert_string_equal(members[0], "a{1}");
                stat_events_free(members, n);
        }
        assert_true(stat_event_is_cycles("cycles:u") && stat_event_is_cycles("cpu-cycles"));
        assert_false(stat_event_is_cycles("cycle") || stat_event_is_cycles("ref-cycles"));
}

/* 2, 4, 4, 4, 5, 5, 7, 9: the sum of squares is 32, so the mean's deviation is the root of 32 / 7 / 8. */
static void test_spread(void **state) {
        static const double values[] = { 2, 4, 4, 4, 5, 5, 7, 9 };
        StatSpread s = { .n = 0 };

        assert_true(stat_spread_deviation(&s) == 0 && stat_spread_percentage(&s) == 0);
        for (size_t i = 0; i < 8; i++)
                stat_spread_add(&s, values[i]);
        assert_float_equal(s.mean, 5, 1e-9);
        assert_float_equal(stat_spread_deviation(&s), 0.755928946, 1e-9);
        assert_float_equal(stat_spread_percentage(&s), 15.11857892, 1e-6);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_intervals),
                cmocka_unit_test(test_late_cpu),
                cmocka_unit_test(test_cpus_apart),
                cmocka_unit_test(test_command),
                cmocka_unit_test(test_nothing_counts),
                cmocka_unit_test(test_lists_of_events),
                cmocka_unit_test(test_spread),
        };

        return cmocka_run_group_tests(tests, open_listener, close_listener);
}
