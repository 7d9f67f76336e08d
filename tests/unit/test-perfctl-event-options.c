/* Options of events on perfctl's command line: which of several events each of them is for. */
#include "tests/unit/perfctl-rig.h"

typedef struct Wanted {
        const char *event, *filter, *args;
        uint64_t period, frequency;
        Perfd__V1__Callchain callchain;
        const char *stack; /* the value of its last attr, sample-stack-user; NULL: it has none */
} Wanted;

/* `perfctl add` with these words asks for these events. */
static void check_added(const char *const *words, const Wanted *wanted, size_t n) {
        Perfd__V1__Response yes = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__AddReply reply = PERFD__V1__ADD_REPLY__INIT;
        Perfd__V1__Request *request;
        Ran r;

        run_start(&r, words);
        run_greet(&r);
        request = play_request(r.daemon);
        assert_int_equal(request->body_case, PERFD__V1__REQUEST__BODY_ADD);
        assert_int_equal(request->add->n_events, n);
        for (size_t i = 0; i < n; i++) {
                const Perfd__V1__EventSpec *s = request->add->events[i];

                assert_string_equal(s->event, wanted[i].event);
                assert_string_equal(s->filter, wanted[i].filter ?: "");
                assert_string_equal(s->args, wanted[i].args ?: "");
                assert_int_equal(s->period, wanted[i].period);
                assert_int_equal(s->frequency, wanted[i].frequency);
                assert_int_equal(s->callchain, wanted[i].callchain);
                assert_int_equal(s->n_attr, wanted[i].stack ? 1 : 0);
                if (wanted[i].stack)
                        assert_string_equal(s->attr[0]->name, "sample-stack-user");
                if (wanted[i].stack)
                        assert_string_equal(s->attr[0]->value, wanted[i].stack);
        }
        play_request_free(request);
        yes.id = 2;
        yes.body_case = PERFD__V1__RESPONSE__BODY_ADDED;
        yes.added = &reply;
        play_response(r.daemon, &yes);
        run_end(&r);
        assert_ran(&r, PERFCTL_OK, "", "");
}

#define CHECK_ADDED(words, ...) \
        check_added((words), (const Wanted[]){ __VA_ARGS__ }, sizeof((const Wanted[]){ __VA_ARGS__ }) / sizeof(Wanted))

static void test_one_for_all(void **state) {
        CHECK_ADDED(WORDS("add", "--filter", "x", "-e", "a:b", "-e", "c:d"), { "a:b", "x" }, { "c:d", "x" });
        CHECK_ADDED(WORDS("add", "a:b", "-e", "c:d,e:f", "--filter", "x"), { "a:b", "x" }, { "c:d", "x" }, { "e:f", "x" });
        CHECK_ADDED(WORDS("add", "-c7", "-g", "a:b", "c:d"), { "a:b", .period = 7, .callchain = 3 }, { "c:d", .period = 7, .callchain = 3 });
}

#define NO_WORD(text)                                                                                              \
        "perfctl: add: --callchain: '" text "' is neither kernel, user, kernel,user, dwarf nor user,dwarf, the latter with a " \
        "number of bytes behind it or not, as in dwarf,16384\n"
#define NO_SIZE(text) "perfctl: add: --callchain: dwarf," text ": of a stack 1 to 65528 bytes can be copied\n"

/* A stack of a size of its own is of one event. */
static void test_callchains(void **state) {
        static const struct {
                const char *word, *message;
        } wrong[] = {
                { "x", NO_WORD("x") },
                { "kernel,", NO_WORD("kernel,") },
                { "4096", NO_WORD("4096") },
                { "dwarf,8,user", NO_WORD("dwarf,8,user") },
                { "dwarf,-1", NO_WORD("dwarf,-1") },
                { "dwarf,0", NO_SIZE("0") },
                { "dwarf,65529", NO_SIZE("65529") },
                { "dwarf,1x", NO_SIZE("1x") },
        };

        CHECK_ADDED(WORDS("add", "-e", "a:b", "--callchain", "dwarf", "-e", "c:d", "--callchain", "user,dwarf,20", "-e", "e:f,g:h", "--callchain",
                          "kernel,dwarf,16K", "-e", "i:j"),
                    { "a:b", .callchain = 4 }, { "c:d", .callchain = 6, .stack = "24" }, { "e:f", .callchain = 5, .stack = "16384" },
                    { "g:h", .callchain = 5, .stack = "16384" }, { "i:j" });
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                Ran r;

                run_start(&r, WORDS("add", "a:b", "--callchain", wrong[i].word));
                run_end(&r);
                assert_ran(&r, PERFCTL_USAGE, "", wrong[i].message);
        }
}

static void test_each(void **state) {
        CHECK_ADDED(WORDS("add", "-e", "a:b", "--filter", "x", "-e", "c:d", "--filter", "y"), { "a:b", "x" }, { "c:d", "y" });
        CHECK_ADDED(WORDS("add", "-e", "a:b", "-e", "c:d", "--filter", "x", "-e", "e:f,g:h", "--filter", "y", "-e", "i:j"),
                    { "a:b", "x" }, { "c:d", "x" }, { "e:f", "y" }, { "g:h", "y" }, { "i:j" });
        CHECK_ADDED(WORDS("add", "-e", "a:b", "--filter", "x", "-e", "c:d"), { "a:b", "x" }, { "c:d" });
        CHECK_ADDED(WORDS("add", "a:b", "--filter", "x", "-e", "c:d", "--filter", "y", "e:f", "--filter=z"), { "a:b", "x" },
                    { "e:f", "z" }, { "c:d", "y" }); /* arguments are added before what -e names */
        CHECK_ADDED(WORDS("add", "kprobe:a,b", "--args", "$arg1", "uprobe:/c:d", "--args", "x=%di", "--filter", "y"),
                    { "kprobe:a", "y", "$arg1" }, { "kprobe:b", "y", "$arg1" }, { "uprobe:/c:d", "y", "x=%di" });
        /* what excludes each other is of one kind */
        CHECK_ADDED(WORDS("add", "a:b", "-c7", "c:d", "-F99", "e:f"), { "a:b", .period = 7 }, { "c:d", .frequency = 99 }, { "e:f" });
        CHECK_ADDED(WORDS("add", "a:b", "-g", "c:d", "--callchain", "user"), { "a:b", .callchain = 3 }, { "c:d", .callchain = 2 });
}

static void test_mistakes(void **state) {
        static const struct {
                const char *words[9];
                const char *message; /* its beginning */
        } cases[] = {
                { { "add", "a:b", "--filter", "x", "--filter", "y" }, "perfctl: add: --filter was already given\n" },
                { { "watch", "--filter", "x", "a:b", "--filter", "y" },
                  "perfctl: watch: --filter was already given, before all events: of several, each stands behind its events\n" },
                { { "add", "a:b", "-c1", "c:d", "-c2", "-F3" }, "perfctl: add: -c and -F exclude each other\n" },
                { { "add", "a:b", "-c1", "c:d", "-cx" }, "perfctl: add: -c: 'x' is not a number above 0\n" },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                Ran r;

                run_start(&r, cases[i].words);
                run_end(&r);
                r.message[strlen(cases[i].message)] = '\0';
                assert_ran(&r, PERFCTL_USAGE, "", cases[i].message);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_one_for_all),
                cmocka_unit_test(test_callchains),
                cmocka_unit_test(test_each),
                cmocka_unit_test(test_mistakes),
        };

        return cmocka_run_group_tests(tests, open_listener, close_listener);
}
