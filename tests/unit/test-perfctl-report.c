/* What samples come to as rows: exact sums, each row once a sample, and two recordings side by side. */
#include "tests/unit/report-rig.h"

/* One function at several addresses is one frame; what has no symbol is told by its address. */
static void test_frames(void **state) {
        Rig r;
        FrameName name;
        uint32_t a, unknown;

        rig_init(&r, KEYS("symbol"));
        a = frame(&r, "/bin/x", "f", 0x1000);
        assert_int_equal(frame(&r, "/bin/x", "f", 0x1008), a);
        assert_int_not_equal(frame(&r, "/bin/y", "f", 0x1000), a);
        assert_int_equal(frame(&r, "/bin/x", "f", 0x1000), a);
        unknown = frame(&r, "/bin/x", "", 0x1000);
        assert_int_not_equal(unknown, a);
        for (uint64_t i = 1; i < 20000; i++)
                assert_int_equal(frame(&r, "/bin/x", "", 0x1000 + i), unknown + i);
        assert_int_equal(frame(&r, "/bin/x", "", 0x1000), unknown);
        assert_memory_equal(text_ids_get(&r.texts, r.frames.list[unknown].symbol).bytes, "0x1000", 6);
        assert_int_equal(r.frames.list[frame(&r, "", "", 0)].dso, ID_NONE);
        frame_ids_forget_names(&r.frames); /* names of another recording: the functions are the same */
        name = r.names[0];
        r.names[0] = r.names[1];
        r.names[1] = name;
        assert_int_equal(frame(&r, "/bin/x", "f", 0x1000), a);
        rig_begin(&r);
        rig_deinit(&r);
}

static void test_self(void **state) {
        Rig r;

        rig_init(&r, KEYS("comm", "symbol"));
        rig_begin(&r);
        add(&r, &r.sums, "one", 10, "c b a");
        add(&r, &r.sums, "two", 5, "c b a");
        add(&r, &r.sums, "one", 20, "c a");
        add(&r, &r.sums, "one", 5, "b a");
        add(&r, &r.sums, "one", 60, "");
        assert_string_equal(print(&r, false, &all, false),
                            "cpu-clock\t60.00%\t1\t60\tone\t[unknown]\n"
                            "cpu-clock\t30.00%\t2\t30\tone\t[.] c\n"
                            "cpu-clock\t5.00%\t1\t5\tone\t[.] b\n"
                            "cpu-clock\t5.00%\t1\t5\ttwo\t[.] c\n");
        rig_deinit(&r);
}

/* Files by name, functions with what they are of, and lines that say what all of it is; paths, and whole tables, where they are asked for. */
static void test_text(void **state) {
        const FrameName in_kernel = { .symbol = TEXT("same"), .dso = TEXT("[kernel.kallsyms]") };
        const NamedFrame of_kernel = { .name = &in_kernel, .is_kernel = true };
        Rig r;
        uint32_t f;

        rig_init(&r, KEYS("symbol", "dso"));
        rig_begin(&r);
        add(&r, &r.sums, "", 40, "same");
        add(&r, &r.sums, "", 10, "");
        f = frame_ids_add(&r.frames, &of_kernel, NULL);
        assert_true(sums_add(&r.sums, sums_group(&r.sums, TEXT("cpu-clock"), 0), true, 50, &f, 1));
        assert_string_equal(print_all(&r, false, &all, false),
                            "# cpu-clock: 3 samples, periods of 100\n"
                            "# EVENT\tOVERHEAD\tSAMPLES\tPERIOD\tSYMBOL\tDSO\n"
                            "cpu-clock\t50.00%\t1\t50\t[k] same\t[kernel.kallsyms]\n"
                            "cpu-clock\t40.00%\t1\t40\t[.] same\tx\n"
                            "cpu-clock\t10.00%\t1\t10\t[unknown]\t[unknown]\n");
        r.form = (ReportForm){ .is_human = true, .has_paths = true };
        assert_string_equal(print_all(&r, false, &all, false),
                            "cpu-clock: 3 samples, periods of 100\n"
                            "OVERHEAD  SAMPLES  PERIOD  SYMBOL     DSO\n"
                            "  50.00%        1      50  [k] same   [kernel.kallsyms]\n"
                            "  40.00%        1      40  [.] same   /bin/x\n"
                            "  10.00%        1      10  [unknown]  [unknown]\n");
        rig_deinit(&r);
}

/* A function of the kernel is another row than one of a program that is called alike, the same for JSON. */
static void test_levels(void **state) {
        const FrameName name = { .symbol = TEXT("same") };
        uint32_t f;
        Rig r;

        rig_init(&r, KEYS("symbol"));
        rig_begin(&r);
        for (size_t i = 0; i < 2; i++) {
                f = frame_ids_add(&r.frames, &(NamedFrame){ .name = &name, .is_kernel = i == 0 }, NULL);
                assert_true(sums_add(&r.sums, sums_group(&r.sums, TEXT("cpu-clock"), 0), true, 5, &f, 1));
        }
        assert_string_equal(print(&r, false, &all, false), "cpu-clock\t50.00%\t1\t5\t[.] same\ncpu-clock\t50.00%\t1\t5\t[k] same\n");
        assert_non_null(strstr(print(&r, false, &all, true), "\"key\":{\"symbol\":\"same\"},\"kernel\":true}]"));
        rig_deinit(&r);
}

/* Of a function that calls itself a sample counts once, as of one that stands between two calls of it. */
static void test_children(void **state) {
        Rig r;

        rig_init(&r, KEYS("symbol"));
        r.options.has_children = true;
        rig_begin(&r);
        add(&r, &r.sums, "", 10, "f f g f main");
        add(&r, &r.sums, "", 10, "f f g f main");
        add(&r, &r.sums, "", 30, "g main");
        add(&r, &r.sums, "", 50, "main");
        assert_string_equal(print(&r, false, &all, false),
                            "cpu-clock\t100.00%\t50.00%\t4\t100\t[.] main\n"
                            "cpu-clock\t50.00%\t30.00%\t3\t50\t[.] g\n"
                            "cpu-clock\t20.00%\t20.00%\t2\t20\t[.] f\n");
        rig_deinit(&r);
}

/* Shares are of all samples, whatever filters leave out. */
static void test_filters(void **state) {
        Rig r;
        Dimension pid;

        rig_init(&r, KEYS("symbol"));
        assert_int_equal(filters_add(&r.p, &r.options.filters, "symbol", "symbol", "f*,nothing"), 0);
        assert_int_equal(filters_add(&r.p, &r.options.filters, "dso", "dso", "x"), 0);
        rig_begin(&r);
        add(&r, &r.sums, "", 10, "f1 main");
        add(&r, &r.sums, "", 20, "f2 main");
        add(&r, &r.sums, "", 70, "main");
        assert_string_equal(print(&r, false, &all, false), "cpu-clock\t20.00%\t1\t20\t[.] f2\ncpu-clock\t10.00%\t1\t10\t[.] f1\n");
        rig_deinit(&r);
        assert_true(dimension_init(&pid, "pid"));
        assert_true(dimension_is_number(&pid));
}

static void test_bad_filters(void **state) {
        Rig r;

        rig_init(&r, KEYS("symbol"));
        assert_int_equal(filters_add(&r.p, &r.options.filters, "cpu", "cpu", "0-3,x"), PERFCTL_USAGE);
        assert_int_equal(filters_add(&r.p, &r.options.filters, "cpu", "cpu", "3-0"), PERFCTL_USAGE);
        assert_int_equal(filters_add(&r.p, &r.options.filters, "comm", "comm", "a,,b"), PERFCTL_USAGE);
        assert_int_equal(filters_add_pair(&r.p, &r.options.filters, "only", "comm"), PERFCTL_USAGE);
        assert_int_equal(filters_add_pair(&r.p, &r.options.filters, "only", "=a"), PERFCTL_USAGE);
        assert_int_equal(filters_add_pair(&r.p, &r.options.filters, "only", "a b=a"), PERFCTL_USAGE);
        assert_int_equal(filters_add_pair(&r.p, &r.options.filters, "only", "args[2]=a=b"), 0);
        rig_begin(&r);
        rig_deinit(&r);
}

/* What is in one of them alone, too; what has changed most comes first. */
static void test_difference(void **state) {
        Rig r;

        rig_init(&r, KEYS("symbol"));
        rig_begin(&r);
        add(&r, &r.old, "", 50, "same");
        add(&r, &r.old, "", 30, "gone");
        add(&r, &r.old, "", 20, "less");
        add(&r, &r.sums, "", 1, "less");
        add(&r, &r.sums, "", 5, "same");
        add(&r, &r.sums, "", 4, "more");
        assert_string_equal(print(&r, true, &all, false),
                            "cpu-clock\t0.00%\t+40.00%\t1\t4\t[.] more\n"
                            "cpu-clock\t30.00%\t-30.00%\t0\t0\t[.] gone\n"
                            "cpu-clock\t20.00%\t-10.00%\t1\t1\t[.] less\n"
                            "cpu-clock\t50.00%\t+0.00%\t1\t5\t[.] same\n");
        rig_deinit(&r);
}

/* Names are those of whoever was traced. */
static void test_json(void **state) {
        Rig r;

        rig_init(&r, KEYS("symbol"));
        r.options.has_children = r.options.has_graph = true;
        rig_begin(&r);
        add(&r, &r.sums, "", 3, "f\" main");
        add(&r, &r.sums, "", 1, "main");
        assert_string_equal(print(&r, false, &all, true),
                            "{\"sort\":[\"symbol\"],\"children\":true,\"events\":[{\"event\":\"cpu-clock\",\"samples\":2,\"period\":4,\"rows\":["
                            "{\"overhead\":25,\"samples\":1,\"period\":1,\"total_overhead\":100,\"total_samples\":2,\"total_period\":4,"
                            "\"key\":{\"symbol\":\"main\"},\"kernel\":false,\"calls\":[{\"overhead\":75,\"samples\":1,\"period\":3,\"symbol\":\"f\\\"\",\"dso\":\"/bin/x\","
                            "\"calls\":[]}]},"
                            "{\"overhead\":75,\"samples\":1,\"period\":3,\"total_overhead\":75,\"total_samples\":1,\"total_period\":3,"
                            "\"key\":{\"symbol\":\"f\\\"\"},\"kernel\":false,\"calls\":[]}]}]}\n");
        rig_deinit(&r);
}

static void test_limits(void **state) {
        Rig r;

        rig_init(&r, KEYS("symbol"));
        rig_begin(&r);
        add(&r, &r.sums, "", 50, "a");
        add(&r, &r.sums, "", 30, "b");
        add(&r, &r.sums, "", 20, "c");
        assert_string_equal(print(&r, false, &(ShownLimits){ .percent = 30 }, false), "cpu-clock\t50.00%\t1\t50\t[.] a\ncpu-clock\t30.00%\t1\t30\t[.] b\n");
        assert_string_equal(print(&r, false, &(ShownLimits){ .top = 1 }, false), "cpu-clock\t50.00%\t1\t50\t[.] a\n");
        rig_deinit(&r);
}

/* A million samples take the room of what is distinct in them. */
static void test_memory_is_of_what_is_distinct(void **state) {
        Rig r;
        uint32_t frames[3];
        SumsGroup *g;

        rig_init(&r, KEYS("symbol"));
        r.options.has_children = r.options.has_graph = true;
        rig_begin(&r);
        for (size_t i = 0; i < 3; i++)
                frames[i] = frame(&r, "/bin/x", (const char *[]){ "a", "b", "c" }[i], i);
        g = sums_group(&r.sums, TEXT("cpu-clock"), 0);
        for (size_t i = 0; i < 1000000; i++)
                assert_true(sums_add(&r.sums, g, true, 2, frames + i % 3, 3 - i % 3));
        assert_int_equal(r.sums.stacks.n, 3);
        assert_int_equal(g->stacks.n, 3);
        sums_finish(&r.sums);
        assert_int_equal(g->rows.n, 3);
        sums_make_calls(&r.sums, g, 0, (bool[]){ true, true, true });
        assert_int_equal(g->calls.n, 3); /* below c: b, and a below it; below b: a */
        assert_int_equal(g->all.samples, 1000000);
        assert_int_equal(g->all.period, 2000000);
        rig_deinit(&r);
}

static void test_overflow(void **state) {
        Rig r;
        SumsGroup *g;

        rig_init(&r, KEYS("symbol"));
        rig_begin(&r);
        g = sums_group(&r.sums, TEXT("cycles"), 0);
        assert_true(sums_add(&r.sums, g, true, UINT64_MAX, NULL, 0));
        assert_false(sums_add(&r.sums, g, true, 1, NULL, 0));
        assert_int_equal(g->all.samples, 1);
        assert_int_equal(g->rows.list[0].self.period, UINT64_MAX);
        rig_deinit(&r);
}

/* One table of all events counts samples: what periods are of differs. */
static void test_all_events(void **state) {
        Rig r;

        rig_init(&r, KEYS("event"));
        r.options.is_of_all = true;
        rig_begin(&r);
        for (size_t i = 0; i < 4; i++) {
                const char *event = i < 3 ? "page-faults" : "cycles";

                r.sums.key[0] = text_ids_add(&r.texts, (perfd_text){ .bytes = event, .length = strlen(event) }, false);
                assert_true(sums_add(&r.sums, sums_group(&r.sums, TEXT("any"), 0), true, i < 3 ? 1 : 1000000, NULL, 0));
        }
        assert_string_equal(print(&r, false, &all, false), "all\t75.00%\t3\t3\tpage-faults\nall\t25.00%\t1\t1000000\tcycles\n");
        rig_deinit(&r);
}

/* Each of several events of one name has its own table, and is compared with the one at its place, whichever has samples first. */
static void test_events_of_one_name(void **state) {
        Rig r;
        uint32_t f;

        rig_init(&r, KEYS("symbol"));
        rig_begin(&r);
        f = frame(&r, "/bin/x", "f", 1);
        for (uint32_t i = 0; i < 3; i++) {
                assert_true(sums_add(&r.sums, sums_group(&r.sums, TEXT("cycles"), 7 - i), true, 10 + i, &f, 1));
                assert_true(sums_add(&r.old, sums_group(&r.old, TEXT("cycles"), 1 + i), true, 20 + i, &f, 1));
        }
        assert_true(sums_add(&r.sums, sums_group(&r.sums, TEXT("instructions"), 4), true, 1, &f, 1));
        assert_string_equal(print_all(&r, true, &all, false),
                            "# cycles#3: 1 samples, periods of 10; before: 1 samples, periods of 22\n"
                            "# cycles#2: 1 samples, periods of 11; before: 1 samples, periods of 21\n"
                            "# cycles#1: 1 samples, periods of 12; before: 1 samples, periods of 20\n"
                            "# instructions: 1 samples, periods of 1; before: 0 samples, periods of 0\n"
                            "# EVENT\tBASELINE\tDELTA\tSAMPLES\tPERIOD\tSYMBOL\n"
                            "cycles#3\t100.00%\t+0.00%\t1\t10\t[.] f\n"
                            "cycles#2\t100.00%\t+0.00%\t1\t11\t[.] f\n"
                            "cycles#1\t100.00%\t+0.00%\t1\t12\t[.] f\n"
                            "instructions\t0.00%\t+100.00%\t1\t1\t[.] f\n");
        assert_non_null(strstr(print(&r, false, &all, true), "{\"event\":\"cycles\",\"nth\":2,\"samples\":1,\"period\":11,"));
        rig_deinit(&r);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_frames), cmocka_unit_test(test_self), cmocka_unit_test(test_text),
                cmocka_unit_test(test_levels), cmocka_unit_test(test_children),
                cmocka_unit_test(test_filters), cmocka_unit_test(test_bad_filters),
                cmocka_unit_test(test_difference), cmocka_unit_test(test_json), cmocka_unit_test(test_limits),
                cmocka_unit_test(test_memory_is_of_what_is_distinct), cmocka_unit_test(test_overflow),
                cmocka_unit_test(test_all_events), cmocka_unit_test(test_events_of_one_name),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
