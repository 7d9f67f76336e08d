/* `count` as a process, whose daemon is played on a socket: what it asks for, what it adds up, how it shows that, how it ends. */
#include "client/perfctl/count/map.h"
#include "tests/unit/count-rig.h"

/* The largest first, then by the key as a number; what has a name is shown by it, and what is not known is a dash. */
static void test_count_table(void **state) {
        Ran r;

        count_start_in_time(&r, WORDS("count", "mine", "--by", "state,comm,uid"), WORDS("state"));
        play_samples(&r, 2, -1, 5, 11, 3);
        play_samples(&r, 3, 10, 5, 11, 2);
        play_samples(&r, 4, 9, 5, 11, 2);
        play_samples(&r, 5, 1, 5, 12, 7);
        play_samples(&r, 6, -1, 6, 11, 1);
        count_end(&r, 7, 15);
        assert_ran(&r, PERFCTL_OK, "HERE\t-\t-\t7\nGONE\ta b\t0\t4\n9\ta b\t0\t2\n10\ta b\t0\t2\n",
                   "\n15 samples, nothing lost; stopped\n");
}

/* Fields of all kinds, and all that a sample has. */
static void test_count_columns(void **state) {
        Ran r;

        count_start(&r, WORDS("count", "mine", "--by", "args,args[0],name,list,list[1],list[7],flags,blob"),
                    WORDS("args", "name", "list", "flags", "blob"));
        play_samples(&r, 2, -1, 5, 11, 1);
        count_end(&r, 3, 1);
        assert_string_equal(r.text, "{5,18446744073709551615}\t5\ta\\xff\"b\t{300,0,65535}\t0\t-\tWR|0x40\t000102fe\t1\n");

        count_start_in_time(&r, WORDS("count", "mine", "--by", "event,sample.comm,pid,tid,cpu,uid,exe,cgroup,container,unit"), NULL);
        play_samples(&r, 2, -1, 5, 11, 1);
        play_samples(&r, 3, -1, 5, 0, 2);
        count_end(&r, 4, 3);
        assert_string_equal(r.text, "mine\tswapper/1\t0\t0\t1\t-\t-\t-\t-\t-\t2\n"
                                    "mine\ta b\t10\t11\t1\t0\t/bin/a\t/pod/x.service\t0123456789ab\tx.service\t1\n");
}

/* Without --by: a row for each event. On a terminal under a heading, and only the first rows. */
static void test_count_terminal(void **state) {
        Ran r;

        run_on_terminal(&r, WORDS("count", "mine", "--for", "1ms"));
        count_begin(&r, NULL);
        await_stop(&r);
        play_samples(&r, 2, -1, 5, 11, 3);
        play_end(r.daemon, 3, 3, 0);
        run_end(&r);
        assert_string_equal(r.text, "EVENT  COUNT\nmine       3\n");

        run_on_terminal(&r, WORDS("count", "mine", "--by", "args[0]", "--top", "1", "--hist", "state"));
        count_begin(&r, WORDS("args", "state"));
        play_samples(&r, 2, -1, 5, 11, 1);
        play_samples(&r, 3, 5, 5, 11, 8);
        play_samples(&r, 4, 1500, 5, 11, 4);
        play_samples(&r, 5, 5, 6, 11, 2);
        play_samples(&r, 6, 5, 7, 11, 3);
        count_end(&r, 7, 18);
        assert_non_null(strstr(r.text, "ARGS[0]        COUNT\n5                 13\n"
                                       "  (..., 0)                 1 |@@@@@@                                          |\n"
                                       "  [0]                      0 |                                                |\n"));
        assert_non_null(strstr(r.text, "  [4, 8)                   8 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|\n"
                                       "  [8, 16)                  0 |                                                |\n"));
        assert_non_null(strstr(r.text, "  [1K, 2K)                 4 |@@@@@@@@@@@@@@@@@@@@@@@@                        |\n"
                                       "(2 more keys)      5\n"));
        assert_int_equal(r.code, PERFCTL_OK);
}

/* As many rows as a terminal has room for, but all of them for a program. */
static void test_count_top(void **state) {
        size_t n_lines;
        Ran r;

        for (unsigned human = 0; human < 2; human++) {
                if (human)
                        run_on_terminal(&r, WORDS("count", "mine", "--by", "state"));
                else
                        run_start(&r, WORDS("count", "mine", "--by", "state"));
                count_begin(&r, WORDS("state"));
                for (unsigned i = 0; i < 23; i++)
                        play_samples(&r, 2 + i, 100 + i, 5, 11, 1);
                count_end(&r, 25, 23);
                n_lines = 0;
                for (const char *at = r.text; (at = strchr(at, '\n')); at++)
                        n_lines++;
                assert_int_equal(n_lines, human ? 1 + 20 + 1 : 23);
                assert_int_equal(strstr(r.text, "(3 more keys)      3\n") != NULL, human);
                assert_non_null(strstr(r.text, human ? "\n119                1\n(3" : "\n119\t1\n"));
        }
}

static void test_count_json(void **state) {
        static const char rows[] =
                "\"order\":\"time\",\"queue_bytes\":0}\n"
                "{\"kind\":\"count\",\"key\":{\"state\":-1,\"comm\":\"a b\",\"list[9]\":null},\"names\":{\"state\":\"GONE\"},\"count\":4,"
                "\"hist\":[{\"from\":0,\"to\":1,\"count\":1},{\"from\":9223372036854775808,\"to\":null,\"count\":3}]}\n"
                "{\"kind\":\"count\",\"key\":{\"state\":3,\"comm\":null,\"list[9]\":null},\"names\":{\"state\":null},\"count\":1,"
                "\"hist\":[{\"from\":1,\"to\":2,\"count\":1}]}\n"
                "{\"kind\":\"end\",\"reason\":\"stopped\",\"counted\":5,\"received\":5,\"missed\":0,\"lost\":{},\"loss_exact\":true,"
                "\"balanced\":true}\n{\"kind\":\"event\",";
        Ran r;

        count_start_in_time(&r, WORDS("count", "--json", "mine", "--by", "state,comm,list[9]", "--hist", "args[0]"), WORDS("state", "list", "args"));
        play_samples(&r, 2, -1, UINT64_MAX, 11, 3);
        play_samples(&r, 3, -1, 0, 11, 1);
        play_samples(&r, 4, 3, 1, 12, 1);
        count_end(&r, 5, 5);
        assert_string_equal(r.message, "");
        assert_non_null(strstr(r.text, rows));
        assert_int_equal(r.code, PERFCTL_OK);
}

/* What a probe could not read is not "". */
static void test_count_faults(void **state) {
        static const char *const rows[] = {
                "{\"kind\":\"count\",\"key\":{\"name\":null},\"count\":3}\n",
                "{\"kind\":\"count\",\"key\":{\"name\":\"\"},\"count\":2}\n",
                "(fault)\t3\n", "\"\"\t2\n",
        };

        for (int is_table = 0; is_table < 2; is_table++) {
                Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;
                Perfd__V1__Item items[5], *list[5];
                ProtobufCBinaryData texts[2] = { play_text("", 0), play_text("\0\1\2\xfe", 4) };
                uint64_t fault = 0;
                Ran r;

                if (is_table)
                        count_start(&r, WORDS("count", "mine", "--by", "name"), WORDS("name"));
                else
                        count_start(&r, WORDS("count", "--json", "mine", "--by", "name"), WORDS("name"));
                for (size_t i = 0; i < 5; i++) {
                        play_item_init(&items[i], 5000000100);
                        items[i].texts = texts;
                        items[i].faults = &fault;
                        items[i].n_faults = i < 3;
                        list[i] = &items[i];
                }
                p.sequence = 2;
                p.items = list;
                p.n_items = 5;
                play_packet(r.daemon, &p);
                count_end(&r, 3, 5);
                for (size_t i = 0; i < 2; i++)
                        assert_non_null(strstr(r.text, rows[2 * is_table + i]));
                assert_int_equal(r.code, PERFCTL_OK);
        }
}

/* A table for each interval, under its time, of what came in it; the last one when it ends. */
static void test_count_intervals(void **state) {
        char line[64];
        size_t n = 0;
        Ran r;

        setenv("TZ", "IST-05:30", 1);
        count_start(&r, WORDS("count", "mine", "--by", "state", "--interval", "100ms"), WORDS("state"));
        while (n < sizeof(line) - 1 && read(r.out, line + n, 1) == 1 && line[n] != '\n') /* an empty one */
                n++;
        assert_int_equal(n, strlen("Jan 01 05:30:05.000000"));
        play_samples(&r, 2, 5, 5, 11, 3);
        count_end(&r, 3, 3);
        assert_non_null(strstr(r.text, "\n5\t3\n"));
        assert_string_equal(r.message, "\n3 samples, nothing lost; stopped\n");
        unsetenv("TZ");
}

/* A subscription that asks for this latency is refused, or the last thing that is asked. */
static void play_latency(Ran *r, uint64_t id, uint64_t latency, const char *reason) {
        Perfd__V1__Request *request = play_request(r->daemon);

        assert_int_equal(request->body_case, PERFD__V1__REQUEST__BODY_SUBSCRIBE);
        assert_int_equal(request->subscribe->latency, latency);
        play_request_free(request);
        play_no(r, id, PERFD__V1__STATUS__STATUS_INVALID, reason, "NO");
}

/* Samples have to come within a quarter of an interval: that is asked for, and refused if it cannot be. */
static void test_count_latency(void **state) {
        static const struct {
                const char *option, *time;
                uint64_t first, second; /* ns; 0: nothing else is asked for */
                const char *reason, *message;
        } rows[] = {
                { "--interval", "20ms", 5000000, 0, "bad-latency",
                  "perfctl: count: tables every 20.0 ms are not possible here: samples have to come within a quarter of this time, and NO; give "
                  "--interval at least four times the latency that is possible\n" },
                { "--interval", "20ms", 5000000, 0, "too-many-wakeups", "perfctl: count: tables every 20.0 ms are not possible here: " },
                { "--interval", "1s", 100000000, 250000000, "bad-latency", "perfctl: count: tables every 1.0 s are not possible here: " },
                { "--interval", "1m", 100000000, 0, "denied", "perfctl: count: NO" },
                { "--for", "20ms", 0, 0, "denied", "perfctl: count: NO" },
        };
        Ran r;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                run_start(&r, WORDS("count", "mine", rows[i].option, rows[i].time));
                run_greet(&r);
                play_fields(&r, 2);
                play_latency(&r, 4, rows[i].first, rows[i].reason);
                if (rows[i].second > 0)
                        play_latency(&r, 5, rows[i].second, rows[i].reason);
                run_end(&r);
                assert_int_equal(r.code, PERFCTL_FAILED);
                assert_string_equal(r.text, "");
                assert_int_equal(strncmp(r.message, rows[i].message, strlen(rows[i].message)), 0);
        }
}

/* What is counted keeps its name when the event calls it otherwise from then on, and when it is gone. */
static void test_count_changed_event(void **state) {
        Perfd__V1__Packet p = PERFD__V1__PACKET__INIT, q = PERFD__V1__PACKET__INIT;
        Perfd__V1__EventDescriptor *events[1];
        Perfd__V1__EventRef ref = PERFD__V1__EVENT_REF__INIT, *refs[] = { &ref };
        PlayedDescriptor d;
        Ran r;

        count_start(&r, WORDS("count", "mine", "--by", "state"), WORDS("state"));
        play_samples(&r, 2, 1, 5, 11, 3);
        play_descriptor_init(&d, true);
        d.values[1].name = (char *)"THERE";
        events[0] = &d.message;
        p.sequence = 3;
        p.events = events;
        p.n_events = 1;
        play_packet(r.daemon, &p);
        play_samples(&r, 4, 1, 5, 11, 2);
        play_samples(&r, 5, -1, 5, 11, 1);
        play_descriptor_init(&d, true);
        p.sequence = 6;
        play_packet(r.daemon, &p);
        play_samples(&r, 7, 1, 5, 11, 1);
        play_samples(&r, 8, -1, 5, 11, 1);
        ref.id = PLAYED_EVENT;
        ref.name = (char *)"mine";
        q.sequence = 9;
        q.removed = refs;
        q.n_removed = 1;
        kill(r.pid, SIGINT); /* before it is removed: else the daemon would be asked what is left */
        await_stop(&r);
        play_packet(r.daemon, &q);
        play_end(r.daemon, 10, 8, 0);
        run_end(&r);
        assert_string_equal(r.text, "HERE\t4\nGONE\t2\nTHERE\t2\n");
}

static void play_dropped(Ran *r, uint64_t first, uint64_t items) {
        Perfd__V1__Gap gap = PERFD__V1__GAP__INIT, *gaps[] = { &gap };
        Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;

        gap.reason = (char *)"outbox";
        gap.first_sequence = gap.last_sequence = first;
        gap.items = items;
        gap.from = gap.to = 5000000200;
        p.sequence = first + 1;
        p.gap = gaps;
        p.n_gap = 1;
        play_packet(r->daemon, &p);
}

static void test_count_losses(void **state) {
        Ran r;

        for (unsigned allowed = 0; allowed < 2; allowed++) {
                count_start(&r, WORDS("count", "mine", "--by", "state", allowed ? "--allow-loss" : "--queue=1MiB"), WORDS("state"));
                play_samples(&r, 2, 5, 5, 11, 3);
                play_dropped(&r, 3, 7);
                kill(r.pid, SIGTERM);
                await_stop(&r);
                play_end_lost(r.daemon, 5, 3, 0, 2, 7);
                run_end(&r);
                assert_string_equal(r.text, "5\t3\n");
                assert_non_null(strstr(r.message, "perfctl: count: 7 items were dropped, because they are not read as fast as they come: "
                                                  "--queue SIZE lets more of them wait, --where EXPR makes them fewer\n"));
                assert_non_null(strstr(r.message, "\n3 samples, 9 lost: kernel_ring 2, outbox 7; stopped\n"));
                assert_int_equal(r.code, allowed ? PERFCTL_OK : PERFCTL_LOST);
        }
}

/* A daemon that is gone: what was counted until then, and a failure. */
static void test_count_cut_off(void **state) {
        Ran r;

        count_start(&r, WORDS("count", "mine", "--by", "state"), WORDS("state"));
        play_samples(&r, 2, 5, 5, 11, 3);
        run_end(&r);
        assert_string_equal(r.text, "5\t3\n");
        assert_int_equal(r.code, PERFCTL_FAILED);
}

static void assert_usage(const char *const *words, const char *message) {
        Ran r;

        run_start(&r, words);
        run_end(&r);
        assert_int_equal(strncmp(r.message, "perfctl: count: ", 16), 0);
        assert_int_equal(strncmp(r.message + 16, message, strlen(message)), 0);
        assert_string_equal(r.text, "");
        assert_int_equal(r.code, PERFCTL_USAGE);
}

static void test_count_usage(void **state) {
        assert_usage(WORDS("count"), "which events? as in");
        assert_usage(WORDS("count", "mine", "--top", "0"), "--top: '0' is not a number above 0\n");
        assert_usage(WORDS("count", "mine", "--json", "--top", "5"), "--top applies to tables only");
        assert_usage(WORDS("count", "mine", "--by", ""), "--by: '' is not a field, nor an element of one, as args[2], nor any of comm,");
        assert_usage(WORDS("count", "mine", "--by", "a,b,a"), "--by: 'a' was already given\n");
        assert_usage(WORDS("count", "mine", "--by", "args[x]"), "--by: 'args[x]' is not a field");
        assert_usage(WORDS("count", "mine", "--by", "sample.state"), "--by: 'sample.state' is not a field");
        assert_usage(WORDS("count", "mine", "--hist", "sample.pid"), "--hist: 'sample.pid' is not a field");
        assert_usage(WORDS("count", "mine", "--interval", "0s"), "--interval: '0s' is not a time such as 500ms, 1s, 1m\n");
        assert_usage(WORDS("count", "mine", "--interval", "100"), "--interval: '100' is not a time such as 500ms, 1s, 1m: the unit is missing\n");
        assert_usage(WORDS("count", "mine", "--for", "1.5s"), "--for: '1.5s' is not a time such as 500ms, 10s, 2m: write a whole number, in a "
                                                              "smaller unit\n");
        assert_usage(WORDS("count", "mine", "--for", "x"), "--for: 'x' is not a time");
        assert_usage(WORDS("count", "mine", "--queue", "x"), "--queue: 'x' is not a size");
}

static void assert_refused(const char *const *words, const char *message) {
        Ran r;

        run_start(&r, words);
        run_greet(&r);
        play_fields(&r, 2);
        run_end(&r);
        assert_ran(&r, PERFCTL_USAGE, "", message);
}

/* What the event has is known before anything is asked for. */
static void test_count_names(void **state) {
        assert_refused(WORDS("count", "mine", "--by", "stat"),
                       "perfctl: count: --by: none of the events has a field 'stat', did you mean 'state'? mine has the fields state, args, "
                       "name, list, flags, blob, and each sample has comm, pid, tid, cpu, event, exe, uid, cgroup, container, unit, ip, addr, period\n");
        assert_refused(WORDS("count", "mine", "--hist", "comm"),
                       "perfctl: count: --hist: none of the events has a field 'comm': mine has the fields state, args, name, list, flags, "
                       "blob, and each sample has period\n");
        assert_refused(WORDS("count", "mine", "--hist", "name"),
                       "perfctl: count: --hist: 'name' of mine is a text, and a histogram is of numbers\n");
        assert_refused(WORDS("count", "mine", "--hist", "args"),
                       "perfctl: count: --hist: 'args' of mine is an array: name one of its elements, from args[0] on\n");
        assert_refused(WORDS("count", "mine", "--by", "args[2]"),
                       "perfctl: count: --by: 'args' of mine has the elements 0 to 1, and not 2\n");
        assert_refused(WORDS("count", "mine", "--by", "state[0]"),
                       "perfctl: count: --by: 'state' of mine is not an array of numbers: [ ] cannot follow\n");
}

/* ---- the table of keys ------------------------------------------------------------------------------------------- */

static void test_map_is_bounded(void **state) {
        CountMap m;
        uint64_t key[2] = { 0 };

        count_map_init(&m, false, 0);
        for (unsigned round = 0; round < 2; round++) {
                for (unsigned times = 0; times < 3; times++)
                        for (key[1] = 0; key[1] < COUNT_KEYS_MAX + 10; key[1]++)
                                assert_null(count_map_histogram(&m, count_map_add(&m, (const uint8_t *)key, sizeof(key))));
                assert_int_equal(m.n, COUNT_KEYS_MAX);
                assert_int_equal(m.n_others, 30);
                assert_int_equal(m.total, 3 * (COUNT_KEYS_MAX + 10));
                for (size_t i = 0; i < m.n; i++)
                        assert_int_equal(m.entries[i].n, 3);
                count_map_reset(&m);
                assert_int_equal(m.n + m.n_others + m.total, 0);
        }
        count_map_deinit(&m);
}

/* Long texts are fewer keys; and the histogram of what has no room is one. */
static void test_map_is_bounded_in_bytes(void **state) {
        static uint64_t key[COUNT_BYTES_MAX / 8 / sizeof(uint64_t)];
        uint64_t *histogram;
        CountMap m;

        count_map_init(&m, true, 0);
        for (key[0] = 0; key[0] < 10; key[0]++) {
                histogram = count_map_histogram(&m, count_map_add(&m, (const uint8_t *)key, sizeof(key)));
                assert_non_null(histogram);
                assert_int_equal(histogram[3], key[0] > 8);
                histogram[3]++;
        }
        assert_int_equal(m.n, 8);
        assert_int_equal(m.n_others, 2);
        assert_int_equal(m.others_histogram[3], 2);
        count_map_deinit(&m);
}

static void test_buckets(void **state) {
        static const struct {
                uint64_t number;
                bool is_signed;
                size_t bucket;
        } cases[] = {
                { 0, false, 1 }, { 0, true, 1 }, { 1, true, 2 }, { 2, false, 3 }, { 3, false, 3 }, { 4, false, 4 }, { 7, true, 4 },
                { UINT64_MAX, true, HISTOGRAM_NEGATIVE }, { UINT64_MAX, false, 65 }, { UINT64_C(1) << 63, false, 65 },
                { INT64_MAX, true, 64 }, { UINT64_C(1) << 63, true, HISTOGRAM_NEGATIVE },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
                assert_int_equal(histogram_bucket(cases[i].number, cases[i].is_signed), cases[i].bucket);
        for (size_t i = 1; i < HISTOGRAM_BUCKETS; i++) {
                assert_int_equal(histogram_bucket(histogram_from(i), false), i);
                assert_int_equal(histogram_bucket(histogram_to(i) - 1, false), i);
        }
}

/* Signed and unsigned numbers of one key, and more than 64 bits; what two keys have, that are shown as one, comes together. */
static void test_functions(void **state) {
        static const struct {
                CountFunction function;
                const char *first, *both;
        } cases[] = {
                { COUNT_SUM, "18446744073709551614", "55340232221128654844" },
                { COUNT_AVG, "9223372036854775807.00", "13835058055282163711.00" },
                { COUNT_MIN, "-1", "-1" },
                { COUNT_MAX, "18446744073709551615", "18446744073709551615" },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                CountNumber a = { .n = 0 }, b = { .n = 0 };
                CountFunction f = cases[i].function;
                char *text = count_number_text(&a, f);

                assert_string_equal(text, "-");
                free(text);
                count_number_add(&a, f, UINT64_MAX, false);
                count_number_add(&a, f, UINT64_MAX, true);
                text = count_number_text(&a, f);
                assert_string_equal(text, cases[i].first);
                free(text);
                assert_true(count_number_compare(&a, &b, f) < 0 && count_number_compare(&b, &a, f) > 0);
                assert_true(count_number_compare(&a, &a, f) == 0 && count_number_compare(&b, &b, f) == 0);
                count_number_merge(&a, f, &b);
                count_number_add(&b, f, UINT64_MAX, false);
                count_number_add(&b, f, UINT64_MAX, false);
                assert_true(f == COUNT_MAX || count_number_compare(&b, &a, f) < 0);
                count_number_merge(&a, f, &b);
                text = count_number_text(&a, f);
                assert_string_equal(text, cases[i].both);
                free(text);
        }
        {
                CountNumber a = { .n = 0 };
                char *text;

                count_number_add(&a, COUNT_SUM, (uint64_t)INT64_MIN, true);
                count_number_add(&a, COUNT_SUM, (uint64_t)INT64_MIN, true);
                text = count_number_text(&a, COUNT_SUM);
                assert_string_equal(text, "-18446744073709551616");
                free(text);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_functions),
                cmocka_unit_test(test_count_table),
                cmocka_unit_test(test_count_columns),
                cmocka_unit_test(test_count_terminal),
                cmocka_unit_test(test_count_top),
                cmocka_unit_test(test_count_json),
                cmocka_unit_test(test_count_faults),
                cmocka_unit_test(test_count_intervals),
                cmocka_unit_test(test_count_latency),
                cmocka_unit_test(test_count_changed_event),
                cmocka_unit_test(test_count_losses),
                cmocka_unit_test(test_count_cut_off),
                cmocka_unit_test(test_count_usage),
                cmocka_unit_test(test_count_names),
                cmocka_unit_test(test_map_is_bounded),
                cmocka_unit_test(test_map_is_bounded_in_bytes),
                cmocka_unit_test(test_buckets),
        };

        return cmocka_run_group_tests(tests, open_listener, close_listener);
}
