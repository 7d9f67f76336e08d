/* Arguments of report that are what perf-report(1) has behind -g, and those that are events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/perfctl/report/graph-words.h"

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Behind -g of perf-report(1): what it means here, and what stays an event. */
static void test_graph_words(void **state) {
        static const struct {
                const char *words[3];
                size_t n_left;
                bool has_graph, has_callees;
                double limit; /* below 0: none */
        } cases[] = {
                { { NULL }, 0, true, false, -1 },
                { { "caller" }, 0, true, true, -1 },
                { { "graph,0.5,10,callee,function,percent" }, 0, true, false, 0.5 },
                { { "cycles", "caller,.25" }, 1, true, true, 0.25 }, { { "5" }, 0, true, false, 5 },
                { { "none" }, 0, false, false, -1 },
                { { "callers", "graph,1.2.3", "," }, 3, true, false, -1 },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                char *arguments[3];
                size_t places[3] = { 0, 1, 2 };
                Perfctl p = { .arguments = arguments, .argument_places = places };
                GraphWords w;

                for (; p.n_arguments < 3 && cases[i].words[p.n_arguments]; p.n_arguments++)
                        arguments[p.n_arguments] = (char *)cases[i].words[p.n_arguments];
                p.n_events = p.n_arguments;
                assert_int_equal(graph_words_take(&p, &w), 0);
                assert_int_equal(p.n_arguments, cases[i].n_left);
                assert_int_equal(p.n_events, cases[i].n_left);
                assert_int_equal(w.has_graph, cases[i].has_graph);
                assert_int_equal(w.has_callees, cases[i].has_callees);
                assert_int_equal(w.has_limit, cases[i].limit >= 0);
                assert_true(!w.has_limit || w.limit == cases[i].limit);
        }
        for (const char *const *bad = WORDS("fractal", "graph,0.5,callee,address", "folded", "count,graph"); *bad; bad++) {
                char *argument = (char *)*bad;
                size_t place = 0;
                Perfctl p = { .arguments = &argument, .argument_places = &place, .n_arguments = 1, .n_events = 1 };
                GraphWords w;

                assert_int_equal(graph_words_take(&p, &w), PERFCTL_USAGE);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_graph_words) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
