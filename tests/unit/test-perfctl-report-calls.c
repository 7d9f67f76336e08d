/* Calls below the rows of a report. */
#include "tests/unit/report-rig.h"

static void test_callers(void **state) {
        Rig r;

        rig_init(&r, KEYS("symbol"));
        r.options.has_graph = true;
        rig_begin(&r);
        add(&r, &r.sums, "", 60, "f g main");
        add(&r, &r.sums, "", 20, "f h main");
        add(&r, &r.sums, "", 10, "f main");
        add(&r, &r.sums, "", 10, "g");
        assert_string_equal(print(&r, false, &all, false),
                            "cpu-clock\t90.00%\t3\t90\t[.] f\n"
                            "\t60.00%\tg\n"
                            "\t\tmain\n"
                            "\t20.00%\th\n"
                            "\t\tmain\n"
                            "\t10.00%\tmain\n"
                            "cpu-clock\t10.00%\t1\t10\t[.] g\n");
        rig_deinit(&r);
}

/* From the first call of a function on, and without those that are small. */
static void test_callees(void **state) {
        Rig r;

        rig_init(&r, KEYS("symbol"));
        r.options.has_children = r.options.has_graph = true;
        rig_begin(&r);
        add(&r, &r.sums, "", 60, "f f main");
        add(&r, &r.sums, "", 36, "g f main");
        add(&r, &r.sums, "", 4, "main");
        assert_string_equal(print(&r, false, &(ShownLimits){ .call_percent = 36.5 }, false),
                            "cpu-clock\t100.00%\t4.00%\t3\t100\t[.] main\n"
                            "\t96.00%\tf\n"
                            "\t60.00%\t  f\n"
                            "cpu-clock\t96.00%\t60.00%\t2\t96\t[.] f\n"
                            "\t60.00%\tf\n"
                            "cpu-clock\t36.00%\t36.00%\t1\t36\t[.] g\n");
        rig_deinit(&r);
}

/* Of those that are as large the first that came comes first; of what is too small, or below a row that is not shown, there is no node. */
static void test_only_what_is_shown_is_made(void **state) {
        Rig r;

        rig_init(&r, KEYS("symbol"));
        r.options.has_graph = true;
        rig_begin(&r);
        add(&r, &r.sums, "", 20, "f g x main");
        add(&r, &r.sums, "", 20, "f h y main");
        add(&r, &r.sums, "", 10, "f g z main");
        add(&r, &r.sums, "", 10, "f h z main");
        add(&r, &r.sums, "", 1, "f z main");
        add(&r, &r.sums, "", 39, "k g main");
        assert_string_equal(print(&r, false, &(ShownLimits){ .percent = 50, .call_percent = 20 }, false),
                            "cpu-clock\t61.00%\t5\t61\t[.] f\n"
                            "\t30.00%\tg\n"
                            "\t20.00%\t  x\n"
                            "\t\t  main\n"
                            "\t30.00%\th\n"
                            "\t20.00%\t  y\n"
                            "\t\t  main\n");
        assert_int_equal(r.sums.groups[0].calls.n, 6);
        rig_deinit(&r);
}

/* A table of all events is one of samples: so are calls below its rows, in their order and where they end. */
static void test_calls_of_all_events(void **state) {
        Rig r;

        rig_init(&r, KEYS("symbol"));
        r.options.has_graph = r.options.is_of_all = true;
        rig_begin(&r);
        add(&r, &r.sums, "", 1, "f g");
        add(&r, &r.sums, "", 1, "f g");
        add(&r, &r.sums, "", 1, "f g");
        add(&r, &r.sums, "", 90, "f h");
        assert_string_equal(print(&r, false, &all, false), "all\t100.00%\t4\t93\t[.] f\n\t75.00%\tg\n\t25.00%\th\n");
        rig_deinit(&r);
}

/* A row that is no function has its innermost ones, too. */
static void test_calls_of_threads(void **state) {
        Rig r;

        rig_init(&r, KEYS("comm"));
        r.options.has_graph = true;
        rig_begin(&r);
        add(&r, &r.sums, "one", 3, "f main");
        add(&r, &r.sums, "one", 1, "main");
        assert_string_equal(print(&r, false, &all, false),
                            "cpu-clock\t100.00%\t2\t4\tone\n"
                            "\t75.00%\tf\n"
                            "\t\tmain\n"
                            "\t25.00%\tmain\n");
        rig_deinit(&r);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_callers), cmocka_unit_test(test_callees),
                cmocka_unit_test(test_only_what_is_shown_is_made), cmocka_unit_test(test_calls_of_all_events),
                cmocka_unit_test(test_calls_of_threads),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
