/* `watch` as a process, whose daemon is played on a socket: what it prints, what it says of losses, how it ends. */
#include <poll.h>
#include <signal.h>

#include "tests/unit/perfctl-rig.h"
#include "tests/unit/played-stream.h"

/*
 * Subscribed, with the start and `n` items on their way. It has asked before what runs: for names of callchains, and on a terminal once for what it may have to say and for the event that it has
 * named.
 */
static void watch_begin(Ran *r, size_t n, bool is_terminal) {
        const uint64_t last = is_terminal ? 4 : 3;
        uint64_t id = 2;
        Perfd__V1__EventState event = PERFD__V1__EVENT_STATE__INIT;
        Perfd__V1__EventSpec spec = PERFD__V1__EVENT_SPEC__INIT;

        spec.name = spec.event = (char *)"mine";
        event.id = 7;
        event.spec = &spec;
        event.enabled = true;
        run_greet(r);
        play_request_free(play_request(r->daemon));
        for (; id < last; id++) {
                Perfd__V1__Request *request;

                play_listed(r, id, &event);
                request = play_request(r->daemon);
                assert_int_equal(request->body_case, id + 1 < last ? PERFD__V1__REQUEST__BODY_LIST : PERFD__V1__REQUEST__BODY_SUBSCRIBE);
                play_request_free(request);
        }
        play_ok(r->daemon, id);
        play_start(r->daemon);
        play_items(r->daemon, 2, 5000000100, n);
}

static void watch_start(Ran *r, const char *const *words, size_t n) {
        run_start(r, words);
        watch_begin(r, n, false);
}

#define JSON_START                                                                                                     \
        "{\"kind\":\"start\",\"clock\":\"monotonic\",\"wall_offset\":-5,\"host\":\"h\",\"kernel\":\"\",\"cpus\":2,"      \
        "\"order\":\"time\",\"queue_bytes\":0}\n"
/* The event has no callchains that are known of. */
#define JSON_FRAME(ip) "{\"ip\":\"" ip "\",\"symbol\":null,\"offset\":null,\"dso\":null,\"build_id\":null}"
#define JSON_ITEM(time, wall)                                                                                              \
        "{\"kind\":\"sample\",\"time\":" time ",\"wall\":" wall ",\"event\":\"mine\",\"kernel_event\":\"group:event\",\"cpu\":1,\"pid\":10,\"tid\":11,\"comm\":\"a b\","   \
        "\"exe\":\"/bin/a\",\"uid\":0,\"cgroup\":\"/pod/x.service\",\"container\":\"0123456789ab\",\"runtime\":\"docker\","    \
        "\"unit\":\"x.service\","   \
        "\"fields\":{\"state\":-1,\"args\":[5,18446744073709551615],\"name\":\"a\\uefff\\\"b\",\"list\":[300,0,65535]," \
        "\"flags\":66,\"blob\":\"000102fe\"},\"names\":{\"state\":\"GONE\",\"flags\":\"WR|0x40\"},"                     \
        "\"kernel_callchain\":[" JSON_FRAME("0xffffffff81000000") "," JSON_FRAME("0xffffffff81000042") "]}\n"
#define JSON_LEDGER(occurred, sent, balanced)                                                                          \
        "{\"kind\":\"event\",\"event\":\"mine\",\"id\":7,\"cpu\":1,\"occurred\":" occurred ",\"delivered\":" sent       \
        ",\"filtered\":0,\"lost\":{\"kernel_ring\":1},\"balanced\":" balanced ",\"exact\":true,\"count\":4,"            \
        "\"doubled\":0,\"external\":false,\"removed\":false,\"stalled\":false,\"since\":{\"occurred\":" sent    \
        ",\"delivered\":" sent ",\"filtered\":0,\"lost\":{\"kernel_ring\":0}}}\n"                                                              \
        "{\"kind\":\"ring\",\"cpu\":1,\"records\":" sent ",\"samples\":" sent ",\"side_records\":0,\"lost\":{\"kernel_ring\":9}," \
        "\"balanced\":true,\"stalled\":false,\"lost_since\":{\"kernel_ring\":0}}\n"                                        \
        "{\"kind\":\"subscriber\",\"id\":3,\"peer\":\"me\",\"order\":\"time\",\"matched\":" sent ",\"sent\":" sent      \
        ",\"dropped\":{},\"queued\":0,\"balanced\":true}\n"

/* Two of three items are printed; the third is counted all the same. */
static void test_watch_json(void **state) {
        Ran r;

        watch_start(&r, WORDS("watch", "--json", "--count", "2"), 3);
        await_stop(&r);
        play_end(r.daemon, 3, 3, 0);
        run_end(&r);
        assert_ran(&r, PERFCTL_OK,
                   JSON_START JSON_ITEM("5000000100", "5000000095") JSON_ITEM("5000000101", "5000000096")
                   "{\"kind\":\"end\",\"reason\":\"stopped\",\"printed\":2,\"received\":3,\"missed\":0,\"lost\":{},\"loss_exact\":true,"
                   "\"balanced\":true}\n" JSON_LEDGER("4", "3", "true"),
                   "");
}

#define HEADING "TIME\tCPU\tTASK\tEVENT\tFIELDS\n"

/* SIGINT: what still comes is printed, and the ledger on stderr: of the stream's time, if it was asked for. */
static void test_watch_text(void **state) {
        Ran r;

        watch_start(&r, WORDS("watch", "--ledger", "--time", "clock"), 1);
        await_output(&r);
        kill(r.pid, SIGINT);
        await_stop(&r);
        play_items(r.daemon, 3, 6000000000, 1);
        play_end(r.daemon, 4, 2, 0);
        run_end(&r);
#define LINE(time)                                                                                                     \
        time "\t1\ta b-10/11\tmine\tstate=GONE args={5,18446744073709551615} "                                           \
        "name=\"a\\xff\\\"b\" list={300,0,65535} flags=WR|0x40 blob=000102fe\n"                                         \
        "\tkernel\tffffffff81000000\n\t\tffffffff81000042\n"
        assert_string_equal(r.text, HEADING LINE("5.000000100") LINE("6.000000000"));
        assert_string_equal(r.message,
                            "\n2 items, nothing lost; stopped\n\n"
                            "EVENT  CPU  HITS  DELIVERED  FILTERED  LOST  EXACT  BALANCED\n"
                            "mine     1     2          2         0  -     yes    yes\n\n"
                            "RING  CPU  RECORDS  SAMPLES  SIDE RECORDS  LOST  BALANCED\n"
                            "ring    1        2        2             0  -     yes\n\n"
                            "SUBSCRIBER  ID  ORDER  MATCHED  SENT  DROPPED  QUEUED  BALANCED  LATENCY  PEER\n"
                            "subscriber   3  time         2     2  -             0  yes             -  me\n");
        assert_int_equal(r.code, PERFCTL_OK);
}

/* The items of watch_start(), and one a second later. */
static void watch_times(Ran *r, const char *const *words, uint64_t later) {
        watch_start(r, words, 2);
        await_output(r);
        kill(r->pid, SIGINT);
        await_stop(r);
        play_items(r->daemon, 3, later, 1);
        play_end(r->daemon, 4, 3, 0);
        run_end(r);
        assert_int_equal(r->code, PERFCTL_OK);
}

/* What begins a line of each item, in `text`. */
static void assert_times(const Ran *r, const char *const *times) {
        const char *line = r->text + strlen(HEADING);

        assert_int_equal(strncmp(r->text, HEADING, strlen(HEADING)), 0);
        for (; *times; times++) {
                assert_int_equal(strncmp(line, *times, strlen(*times)), 0);
                assert_int_equal(line[strlen(*times)], '\t');
                line = strstr(line, "\t\tffffffff81000042\n"); /* the last line of an item */
                assert_non_null(line);
                line = strchr(line, '\n') + 1;
        }
        assert_string_equal(line, "");
}

/* Local, and cut to the microsecond as journalctl does it: the wall is 5 ns behind the clock. */
static void test_watch_times(void **state) {
        Ran r;

        setenv("TZ", "IST-05:30", 1);
        watch_times(&r, WORDS("watch"), 6000000000);
        assert_times(&r, WORDS("Jan 01 05:30:05.000000", "Jan 01 05:30:05.000000", "Jan 01 05:30:05.999999"));
        watch_times(&r, WORDS("watch", "--time", "wall"), 6000000005);
        assert_times(&r, WORDS("Jan 01 05:30:05.000000", "Jan 01 05:30:05.000000", "Jan 01 05:30:06.000000"));
        watch_times(&r, WORDS("watch", "--time=clock"), 12345678000000001);
        assert_times(&r, WORDS("5.000000100", "5.000000101", "12345678.000000001"));
        watch_times(&r, WORDS("watch", "--time=delta"), 6000000000);
        assert_times(&r, WORDS("+0.000000000", "+0.000000001", "+0.999999899"));
        watch_times(&r, WORDS("watch", "--time=delta", "--order=cpu"), 3900000001);
        assert_times(&r, WORDS("+0.000000000", "+0.000000001", "-1.100000100"));
        unsetenv("TZ");
}

/* What the daemon dropped, in a packet of its own that says so. */
static void watch_gap_of(Ran *r, uint64_t first, uint64_t items, const char *reason) {
        Perfd__V1__Gap gap = PERFD__V1__GAP__INIT, *gaps[] = { &gap };
        Perfd__V1__Packet p = PERFD__V1__PACKET__INIT;

        gap.reason = (char *)reason;
        gap.first_sequence = gap.last_sequence = first;
        gap.items = items;
        gap.from = gap.to = 5000000200;
        p.sequence = first + 1;
        p.gap = gaps;
        p.n_gap = 1;
        play_packet(r->daemon, &p);
}

static void watch_gap(Ran *r, uint64_t first, uint64_t items) {
        watch_gap_of(r, first, items, "outbox");
}

/* A daemon is believed, but it does not write to the terminal. */
static void test_watch_hostile_daemon(void **state) {
        Ran r;

        run_start(&r, WORDS("watch", "--time", "clock"));
        watch_begin(&r, 1, false);
        watch_gap_of(&r, 3, 7, "\033]0;title\a\xe2\x80\xae");
        kill(r.pid, SIGINT);
        await_stop(&r);
        play_end(r.daemon, 5, 1, 0);
        run_end(&r);
        assert_non_null(strstr(r.text, "--- 7 items are missing (\\x1b]0;title\\x07\\xe2\\x80\\xae), until 5.000000200\n"));
        assert_null(strpbrk(r.text, "\033\a"));
}

/* What the stream says of the process, in the order that was asked for. */
static void test_watch_columns(void **state) {
        static const char columns[] = "TIME\tCPU\tTASK\tUNIT\tUID\tEXE\tCONTAINER\tCGROUP\tEVENT\tFIELDS\n"
                                      "5.000000100\t1\ta b-10/11\tx.service\t0\t/bin/a\t0123456789ab\t/pod/x.service\tmine\tstate=";
        Ran r;

        watch_start(&r, WORDS("watch", "--time", "clock", "--columns", "unit,uid,exe,container,cgroup", "--count", "1"), 1);
        await_stop(&r);
        play_end(r.daemon, 3, 1, 0);
        run_end(&r);
        assert_int_equal(r.code, PERFCTL_OK);
        assert_int_equal(strncmp(r.text, columns, strlen(columns)), 0);
}

static void watch_on_terminal(Ran *r, const char *const *words, uint64_t gap, unsigned short columns) {
        run_on_terminal_of(r, words, columns);
        watch_begin(r, 1, true);
        if (gap > 0)
                watch_gap(r, 3, gap);
        kill(r->pid, SIGINT);
        await_stop(r);
        play_end(r->daemon, gap > 0 ? 5 : 3, 1, 0);
        run_end(r);
}

/* Columns under their headings, and colours if the terminal has some and its user wants them. */
static void test_watch_terminal(void **state) {
#define ON_TERMINAL(bold, name, missing, none)                                                                           \
        bold "TIME               CPU  TASK                      EVENT  FIELDS" none "\n"                                  \
        "      5.000000100    1  a b-10/11                 " bold "mine" none "   " name "state" none "=GONE " name "args" none \
        "={5,18446744073709551615} " name "name" none "=\"a\\xff\\\"b\" " name "list" none "={300,0,65535} " name "flags" \
        none "=WR|0x40 " name "blob" none "=000102fe\n"                                                                   \
        "          kernel ffffffff81000000\n                 ffffffff81000042\n"                                        \
        "      5.000000200  " missing "--- 7 items are missing (outbox), until 5.000000200" none "\n"
        static const struct {
                const char *terminal, *no_colour;
                bool has_colours;
        } cases[] = {
                { "xterm", NULL, true }, { "xterm", "", true }, { "xterm", "1", false }, { "dumb", NULL, false }, { NULL, NULL, false },
        };
        Ran r;

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                (void)(cases[i].terminal ? setenv("TERM", cases[i].terminal, 1) : unsetenv("TERM"));
                (void)(cases[i].no_colour ? setenv("NO_COLOR", cases[i].no_colour, 1) : unsetenv("NO_COLOR"));
                watch_on_terminal(&r, WORDS("watch", "mine", "--time", "clock"), 7, 300);
                assert_string_equal(r.text, cases[i].has_colours
                                                    ? ON_TERMINAL("\033[1m", "\033[36m", "\033[31m", "\033[0m")
                                                    : ON_TERMINAL("", "", "", ""));
        }
        unsetenv("NO_COLOR");
}

/* A line that is longer than the terminal goes on below itself, parted between its fields, in colours or not. */
static void test_watch_narrow_terminal(void **state) {
#define NARROW(bold, name, none)                                                                                          \
        "      5.000000100    1  a b-10/11                 " bold "mine" none "   " name "state" none "=GONE\n"           \
        "        " name "args" none "={5,18446744073709551615} " name "name" none "=\"a\\xff\\\"b\" " name "list" none      \
        "={300,0,65535}\n        " name "flags" none "=WR|0x40 " name "blob" none "=000102fe\n          kernel"
        Ran r;

        setenv("TERM", "xterm", 1);
        for (int coloured = 0; coloured < 2; coloured++) {
                (void)(coloured ? unsetenv("NO_COLOR") : setenv("NO_COLOR", "1", 1));
                watch_on_terminal(&r, WORDS("watch", "mine", "--time", "clock"), 0, 72);
                assert_non_null(strstr(r.text, coloured ? NARROW("\033[1m", "\033[36m", "\033[0m") : NARROW("", "", "")));
        }
        setenv("NO_COLOR", "1", 1);
        watch_on_terminal(&r, WORDS("watch", "mine", "--time", "clock"), 0, 48); /* not even the event has room */
        assert_non_null(strstr(r.text, "TIME               CPU  TASK\n        EVENT  FIELDS\n"
                                       "      5.000000100    1  a b-10/11\n        mine   state=GONE\n"
                                       "        args={5,18446744073709551615}\n        name="));
        unsetenv("NO_COLOR");
}

/* Who has not named an event and sees none is told what to do. */
static void test_watch_nothing_runs(void **state) {
        Perfd__V1__Response yes = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__ListReply list = PERFD__V1__LIST_REPLY__INIT;
        Perfd__V1__Request *request;
        Ran r;

        run_on_terminal(&r, WORDS("watch"));
        run_greet(&r);
        request = play_request(r.daemon);
        assert_int_equal(request->body_case, PERFD__V1__REQUEST__BODY_LIST);
        play_request_free(request);
        yes.id = 2;
        yes.body_case = PERFD__V1__RESPONSE__BODY_LIST;
        yes.list = &list;
        play_response(r.daemon, &yes);
        play_request_free(play_request(r.daemon)); /* for names of callchains */
        yes.id = 3;
        play_response(r.daemon, &yes);
        play_request_free(play_request(r.daemon));
        play_no(&r, 4, PERFD__V1__STATUS__STATUS_INVALID, "bad-request", "there are too many");
        run_end(&r);
        assert_int_equal(r.code, PERFCTL_FAILED);
        assert_non_null(strstr(r.message, "perfctl: watch: no running events: waiting for events that other clients add. `perfctl watch EVENT` "
                                          "adds one"));
        assert_non_null(strstr(r.message, "there are too many"));
}

/* One line if nothing was lost, and what was printed is what it counts. */
static void test_watch_one_line(void **state) {
        Ran r;

        watch_start(&r, WORDS("watch", "--count", "2"), 3);
        await_stop(&r);
        play_end(r.daemon, 3, 3, 0);
        run_end(&r);
        assert_string_equal(r.message, "\n2 items, nothing lost; stopped\n");
        assert_int_equal(r.code, PERFCTL_OK);
}

#define DROPPED(n)                                                                                                     \
        "perfctl: watch: " n " items were dropped, because they are not read as fast as they come: --queue SIZE lets more " \
        "of them wait, --where EXPR and --fields make them fewer or shorter\n"

/* In whatever way it is printed: at once, then once a second at most, at the end, and as the exit status. */
static void test_watch_tells_losses(void **state) {
        char message[128];
        Ran r;

        watch_start(&r, WORDS("watch", "--json"), 1);
        watch_gap(&r, 3, 7);
        assert_int_equal(read(r.err, message, sizeof(message)) > 0, true); /* it does not wait for the end */
        watch_gap(&r, 5, 100);
        kill(r.pid, SIGINT);
        await_stop(&r);
        play_end_lost(r.daemon, 7, 1, 0, 3, 107);
        run_end(&r);
        assert_non_null(strstr(r.message, "1 item, 110 lost: kernel_ring 3, outbox 107; stopped\n"));
        assert_null(strstr(r.message, "DROPPED")); /* JSON has it */
        assert_non_null(strstr(r.text, "\"printed\":1,\"received\":1,\"missed\":107,\"lost\":{\"kernel_ring\":3,\"outbox\":107}"));
        assert_int_equal(r.code, PERFCTL_LOST);

        watch_start(&r, WORDS("watch", "--count", "1", "--allow-loss"), 1);
        await_stop(&r);
        watch_gap(&r, 3, 7); /* behind what was asked for, but not for the ledger */
        play_end_lost(r.daemon, 5, 1, 0, 0, 7);
        run_end(&r);
        assert_non_null(strstr(r.message, "\n1 item, 7 lost: outbox 7; stopped\n\nEVENT"));
        assert_null(strstr(r.message, DROPPED("7")));
        assert_int_equal(r.code, PERFCTL_OK);
}

/* Into a file: what else goes to stdout, and all that is said stays on stderr. */
static void test_watch_output(void **state) {
        char path[96], option[128], text[4096];
        Ran r;

        (void)snprintf(path, sizeof(path), "%s/out", directory);
        (void)snprintf(option, sizeof(option), "-o%s", path);
        for (int i = 0; i < 2; i++) { /* what was in it goes */
                watch_start(&r, WORDS("watch", "--json", "--count", "1", option), 1);
                await_stop(&r);
                play_end(r.daemon, 3, 1, 0);
                run_end(&r);
                assert_ran(&r, PERFCTL_OK, "", "");
        }
        read_all(open(path, O_RDONLY), text, sizeof(text));
        assert_int_equal(strncmp(text, JSON_START JSON_ITEM("5000000100", "5000000095"), strlen(JSON_START JSON_ITEM("5000000100", "5000000095"))), 0);
        assert_null(strstr(text + 2, "\"kind\":\"start\""));
        assert_int_equal(unlink(path), 0);
        (void)snprintf(option, sizeof(option), "--output=%s/none/out", directory);
        run_start(&r, WORDS("watch", option));
        run_greet(&r);
        run_end(&r);
        assert_int_equal(r.code, PERFCTL_FAILED);
        assert_non_null(strstr(r.message, "perfctl: watch: --output: "));
        assert_non_null(strstr(r.message, "/none/out: No such file or directory\n"));
}

/* What no option avoids: the one that there is, is named unless it was given. */
static void test_watch_unwritten(void **state) {
        static const char explained[] = "1 item, 3 lost: kernel_unwritten 3; stopped\nkernel_unwritten: the kernel counted these and wrote no "
                                        "record of them, interrupted by a change of perf events, because it shows nobody what that "
                                        "process does, or because a tracepoint such as sched:sched_wakeup names a process of the "
                                        "target while another one runs; no setting of perfd avoids it";
        Ran r;

        for (int allowed = 0; allowed < 2; allowed++) {
                watch_start(&r, allowed ? WORDS("watch", "--count=1", "--allow-loss") : WORDS("watch", "--count=1"), 1);
                await_stop(&r);
                play_end_lost_for(r.daemon, "kernel_unwritten", 3, 1, 0, 3, 0);
                run_end(&r);
                assert_non_null(strstr(r.message, explained));
                assert_non_null(strstr(r.message, allowed ? "avoids it\n\nEVENT" : "avoids it: --allow-loss ends with 0 all the same\n\nEVENT"));
                assert_int_equal(r.code, allowed ? PERFCTL_OK : PERFCTL_LOST);
        }
}

/* A daemon that is gone: what was lost until then, and a failure. */
static void test_watch_lost_and_cut_off(void **state) {
        Ran r;

        watch_start(&r, WORDS("watch"), 1);
        watch_gap(&r, 3, 7);
        run_end(&r);
        assert_int_equal(strncmp(r.message, DROPPED("7"), strlen(DROPPED("7"))), 0);
        assert_int_equal(r.code, PERFCTL_FAILED);
}

/* Numbers that do not fit are told and fail: a wrong sum, an item that did not come, an end that nobody asked for. */
static void test_watch_judges(void **state) {
        Ran r;

        watch_start(&r, WORDS("watch", "--count=1", "--json"), 1);
        await_stop(&r);
        play_end(r.daemon, 3, 1, 1);
        run_end(&r);
        assert_int_equal(r.code, PERFCTL_FAILED);
        assert_string_equal(r.message, "perfctl: watch: the ledger does not balance in 1 rows: samples are unaccounted "
                                       "for, which is a bug in perfd\n");

        watch_start(&r, WORDS("watch", "--for", "1ms", "--json"), 1);
        await_stop(&r);
        play_end(r.daemon, 3, 2, 0);
        run_end(&r);
        assert_int_equal(r.code, PERFCTL_FAILED);
        assert_string_equal(r.message,
                            "perfctl: watch: 1 items were received, but the daemon reports that it sent 2: this is a bug in perfd\n");

        watch_start(&r, WORDS("watch", "--json"), 1);
        play_end(r.daemon, 3, 1, 0);
        run_end(&r);
        assert_int_equal(r.code, PERFCTL_FAILED);
        assert_string_equal(r.message, "perfctl: watch: the daemon ended the stream: stopped\n");

        watch_start(&r, WORDS("watch", "--json"), 1);
        run_end(&r);
        assert_int_equal(r.code, PERFCTL_FAILED);
        assert_string_equal(r.text, JSON_START JSON_ITEM("5000000100", "5000000095"));
}

/*
 * Whoever reads us went away: no message, no failure, although nothing more comes that could be printed. But what was lost
 * until then is said.
 */
static void test_watch_reader_gone(void **state) {
        Ran r;

        for (unsigned lost = 0; lost < 2; lost++) {
                watch_start(&r, WORDS("watch"), 1);
                await_output(&r);
                close(r.out);
                r.out = open("/dev/null", O_RDONLY);
                await_stop(&r);
                play_items(r.daemon, 3, 6000000000, 1);
                play_end_lost(r.daemon, 4, 2, 0, lost, 0);
                run_end(&r);
                assert_ran(&r, lost ? PERFCTL_LOST : PERFCTL_OK, "",
                           lost ? "1 item, 1 lost: kernel_ring 1; stopped\n" : "");
        }
}

/* The daemon does not answer to the first signal: the second ends us without it. */
static void test_watch_second_signal(void **state) {
        Ran r;

        watch_start(&r, WORDS("watch"), 1);
        await_output(&r);
        kill(r.pid, SIGTERM);
        await_stop(&r);
        kill(r.pid, SIGINT);
        assert_null(play_request(r.daemon)); /* closed, although we did not */
        run_end(&r);
        assert_int_equal(r.code, PERFCTL_FAILED);
        assert_string_equal(r.message, "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_watch_json),
                cmocka_unit_test(test_watch_text),
                cmocka_unit_test(test_watch_times),
                cmocka_unit_test(test_watch_columns), cmocka_unit_test(test_watch_hostile_daemon),
                cmocka_unit_test(test_watch_terminal), cmocka_unit_test(test_watch_narrow_terminal),
                cmocka_unit_test(test_watch_nothing_runs),
                cmocka_unit_test(test_watch_one_line),
                cmocka_unit_test(test_watch_tells_losses),
                cmocka_unit_test(test_watch_output),
                cmocka_unit_test(test_watch_unwritten),
                cmocka_unit_test(test_watch_lost_and_cut_off),
                cmocka_unit_test(test_watch_judges),
                cmocka_unit_test(test_watch_reader_gone),
                cmocka_unit_test(test_watch_second_signal),
        };

        return cmocka_run_group_tests(tests, open_listener, close_listener);
}
