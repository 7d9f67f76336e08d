/* `top` in batch mode as a process, whose daemon is played on a socket: what it asks for, what it adds up, how it shows that, how it ends. */
#include "tests/unit/count-rig.h"

/* No name is sent in a table for programs: behind the time a row for each key, the largest first, and what was lost is said. */
static void test_top_table(void **state) {
        Ran r;

        count_start_in_time(&r, WORDS("top", "mine", "--batch", "--by", "state,comm", "--interval", "1h"), WORDS("state"));
        play_samples(&r, 2, -1, 5, 11, 3);
        play_samples(&r, 3, 10, 5, 11, 2);
        play_samples(&r, 4, 9, 5, 11, 2);
        play_samples(&r, 5, 1, 5, 12, 9);
        count_end(&r, 6, 16);
        assert_non_null(strstr(r.text, "  16 samples\nHERE\t-\t56.25%\t9\t9\nGONE\ta b\t18.75%\t3\t3\n9\ta b\t12.50%\t2\t2\n10\ta b\t12.50%\t2\t2\n"));
        assert_string_equal(r.message, "\n16 samples, nothing lost; stopped\n");
        assert_int_equal(r.code, PERFCTL_OK);
}

/* Rows that are left out are one. On a terminal under a heading. */
static void test_top_rows(void **state) {
        Ran r;

        run_on_terminal(&r, WORDS("top", "mine", "--batch", "--by", "tid", "--rows", "2", "--interval", "1h"));
        count_begin_in(&r, NULL, PERFD__V1__ORDER__ORDER_TIME);
        play_samples(&r, 2, -1, 5, 11, 4);
        play_samples(&r, 3, -1, 5, 12, 3);
        play_samples(&r, 4, -1, 5, 13, 2);
        play_samples(&r, 5, -1, 5, 14, 1);
        count_end(&r, 6, 10);
        assert_non_null(strstr(r.text, "  10 samples\nTID        SHARE  SAMPLES  TOTAL\n11        40.00%        4      4\n"
                                       "12        30.00%        3      3\n(2 more)  30.00%        3      3\n"));
        assert_int_equal(r.code, PERFCTL_OK);
}

static void test_top_json(void **state) {
        Ran r;

        count_start_in_time(&r, WORDS("top", "--json", "mine", "--by", "state,comm", "--interval", "1h"), WORDS("state"));
        play_samples(&r, 2, -1, 5, 11, 3);
        play_samples(&r, 3, 3, 5, 12, 1);
        count_end(&r, 4, 4);
        assert_non_null(strstr(r.text, ",\"counted\":4,\"total\":4,\"missed\":0}\n"
                "{\"kind\":\"top\",\"key\":{\"state\":-1,\"comm\":\"a b\"},\"names\":{\"state\":\"GONE\"},\"count\":3,\"weight\":3,\"total\":3,"
                "\"total_weight\":3,\"share\":0.75}\n"
                "{\"kind\":\"top\",\"key\":{\"state\":3,\"comm\":null},\"names\":{\"state\":null},\"count\":1,\"weight\":1,\"total\":1,"
                "\"total_weight\":1,\"share\":0.25}\n"
                "{\"kind\":\"end\",\"reason\":\"stopped\",\"counted\":4,\"received\":4,"));
        assert_string_equal(r.message, "");
        assert_int_equal(r.code, PERFCTL_OK);
}

/* The first of its tables is the last one: the daemon is asked to stop without anybody's saying so. */
static void test_top_ends_by_itself(void **state) {
        Ran r;

        count_start(&r, WORDS("top", "mine", "--by", "cpu", "--interval", "50ms"), NULL); /* which no order changes */
        await_stop(&r);
        play_end(r.daemon, 2, 0, 0);
        run_end(&r);
        assert_non_null(strstr(r.text, "  0 samples\n"));
        assert_null(strchr(strchr(r.text, '\n') + 1, '\n'));
        assert_int_equal(r.code, PERFCTL_OK);
}

static void test_top_losses(void **state) {
        for (unsigned allowed = 0; allowed < 2; allowed++) {
                Ran r;

                count_start_in_time(&r, WORDS("top", "mine", "--by", "tid", "--interval", "1h", allowed ? "--allow-loss" : "--queue=1MiB"), NULL);
                play_samples(&r, 2, 5, 5, 11, 3);
                kill(r.pid, SIGTERM);
                await_stop(&r);
                play_end_lost(r.daemon, 3, 3, 0, 2, 0);
                run_end(&r);
                assert_non_null(strstr(r.message, "\n3 samples, 2 lost: kernel_ring 2; stopped\n"));
                assert_int_equal(r.code, allowed ? PERFCTL_OK : PERFCTL_LOST);
        }
}

/* A daemon that is gone: what was counted until then, and a failure. */
static void test_top_cut_off(void **state) {
        Ran r;

        count_start_in_time(&r, WORDS("top", "mine", "--by", "tid", "--interval", "1h"), NULL);
        play_samples(&r, 2, 5, 5, 11, 3);
        run_end(&r);
        assert_non_null(strstr(r.text, "  3 samples\n11\t100.00%\t3\t3\n"));
        assert_int_equal(r.code, PERFCTL_FAILED);
}

static void assert_usage(const char *const *words, const char *message) {
        Ran r;

        run_start(&r, words);
        run_end(&r);
        assert_int_equal(strncmp(r.message, "perfctl: top: ", 14), 0);
        assert_int_equal(strncmp(r.message + 14, message, strlen(message)), 0);
        assert_string_equal(r.text, "");
        assert_int_equal(r.code, PERFCTL_USAGE);
}

static void test_top_usage(void **state) {
        assert_usage(WORDS("top", "mine", "--by", "comm,pid,comm"), "--by: 'comm' was already given\n");
        assert_usage(WORDS("top", "mine", "--by", ""), "--by: '' is not a field, nor an element of one, as args[2], nor any of symbol, dso,");
        assert_usage(WORDS("top", "mine", "--interval", "0s"), "--interval: '0s' is not a time such as 500ms, 1s, 1m\n");
        assert_usage(WORDS("top", "mine", "--interval", "49ms"), "--interval: '49ms' is less than 50ms\n");
        assert_usage(WORDS("top", "mine", "--count", "0"), "--count: '0' is not a number above 0\n");
        assert_usage(WORDS("top", "mine", "--rows", "x"), "--rows: 'x' is not a number above 0\n");
        assert_usage(WORDS("top", "mine", "--json", "--rows", "3"), "--rows applies to tables only");
        assert_usage(WORDS("top", "--input", "x", "--where", "a"), "--where is for a live host: of a recording, with --input, one table");
        assert_usage(WORDS("top", "--input", "x", "-g"), "-g is for a live host");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_top_table),  cmocka_unit_test(test_top_rows),    cmocka_unit_test(test_top_json),
                cmocka_unit_test(test_top_ends_by_itself), cmocka_unit_test(test_top_losses), cmocka_unit_test(test_top_cut_off),
                cmocka_unit_test(test_top_usage),
        };

        return cmocka_run_group_tests(tests, open_listener, close_listener);
}
