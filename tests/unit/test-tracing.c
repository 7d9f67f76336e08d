/*
 * tracefs, laid out in a folder: which tracepoints match, and what is said when the kernel does not let perfd read of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/kernel/tracefs/tracing.h"

static char root[] = "/tmp/perfd-test-tracing-XXXXXX";
static Tracing tracing;
static int open_error;   /* of the next file that is opened; 0: it is opened */
static bool has_tracefs;  /* what statfs(2) finds */

FILE *__real_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode) {
        if (open_error == 0)
                return __real_fopen64(path, mode);
        errno = open_error;
        open_error = 0;
        return NULL;
}

int __real_whole_file_read(const char *path, char **ret_text, size_t *ret_length);
int __wrap_whole_file_read(const char *path, char **ret_text, size_t *ret_length);
int __wrap_whole_file_read(const char *path, char **ret_text, size_t *ret_length) {
        int error = open_error;

        open_error = 0;
        return error ? -error : __real_whole_file_read(path, ret_text, ret_length);
}

int __wrap_statfs64(const char *path, struct statfs *s);
int __wrap_statfs64(const char *path, struct statfs *s) {
        s->f_type = has_tracefs ? TRACEFS_MAGIC : 0;
        return 0;
}

static void write_file(const char *name, const char *text) {
        char path[256];
        FILE *f;

        snprintf(path, sizeof(path), "%s/%s", root, name);
        f = __real_fopen64(path, "we");
        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
}

static void make_folder(const char *name) {
        char path[256];

        snprintf(path, sizeof(path), "%s/%s", root, name);
        assert_int_equal(mkdir(path, 0700), 0);
}

static int set_up(void **state) {
        Explanation e = EXPLANATION_NULL;

        if (!mkdtemp(root))
                return -1;
        make_folder("events");
        make_folder("events/irq");
        make_folder("events/irq/softirq_entry");
        write_file("events/irq/enable", "0\n");
        write_file("events/irq/filter", "none\n");
        return tracing_open(&tracing, root, &e);
}

static int tear_down(void **state) {
        static const char *const files[] = { "available_events", "events/irq/enable", "events/irq/filter" };
        static const char *const folders[] = { "events/irq/softirq_entry", "events/irq", "events", "" };
        char path[256];

        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                snprintf(path, sizeof(path), "%s/%s", root, files[i]);
                unlink(path);
        }
        for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
                snprintf(path, sizeof(path), "%s/%s", root, folders[i]);
                if (rmdir(path) < 0)
                        return -1;
        }
        tracing_close(&tracing);
        return 0;
}

static void check_match(const char *group, const char *name, const char *expected) {
        Explanation e = EXPLANATION_NULL;
        char text[256] = "", **names = NULL;
        size_t n = 0;

        assert_int_equal(tracing_match(&tracing, group, name, &names, &n, &e), 0);
        for (size_t i = 0; i < n; i++) {
                strcat(text, i > 0 ? " " : "");
                strcat(text, names[i]);
        }
        assert_null(names[n]);
        tracing_names_free(names);
        assert_string_equal(text, expected);
}

static void check_no_match(const char *name, const char *hint) {
        Explanation e = EXPLANATION_NULL;
        char **names = NULL;
        size_t n = 7;

        assert_int_equal(tracing_match(&tracing, "sched", name, &names, &n, &e), REFUSED_NOT_FOUND);
        assert_string_equal(e.reason, "unknown-event");
        assert_non_null(strstr(e.text, hint));
        assert_null(names);
        assert_int_equal(n, 7);
}

/* Where the kernel does not list them in a file. */
static void test_folders(void **state) {
        check_match("*", "*", "irq:softirq_entry");
        check_match("irq", "soft*", "irq:softirq_entry");
        check_no_match("sched_switch", "no tracepoint sched:sched_switch");
}

/* A line comes twice if a probe is made while the file is read. */
static void test_lines(void **state) {
        write_file("available_events", "sched:sched_wakeup\nno event\nirq:softirq_entry\nsched:sched_switch\nsched:sched_wakeup\n"
                                       "sched:sched_wakeup\nsched:sched_switch");
        check_match("sched", "*", "sched:sched_switch sched:sched_wakeup");
        check_match("*", "s*_*", "irq:softirq_entry sched:sched_switch sched:sched_wakeup");
        check_match("irq", "softirq_entry", "irq:softirq_entry");
        check_no_match("sched_swich", "sched:sched_switch");
        write_file("available_events", "");
        check_no_match("sched_switch", "no tracepoint sched:sched_switch");
}

/* A probe that a perfd has defined for itself is meant by no glob that does not say so; a group that only looks alike is one. */
static void test_probes_of_perfds(void **state) {
        write_file("available_events", "perfd_00012f5c3a7d91e0:p12_vfs_read\nsched:sched_switch\nperfd_mine:hit\n"
                                       "perfd_00012f5c3a7d91e00:hit\nperfd_00012F5C3A7D91E0:hit\n");
        check_match("*", "*", "perfd_00012F5C3A7D91E0:hit perfd_00012f5c3a7d91e00:hit perfd_mine:hit sched:sched_switch");
        check_match("perfd_0*", "p*", "perfd_00012f5c3a7d91e0:p12_vfs_read");
        write_file("available_events", "");
}

static const struct {
        int error;
        Refusal refusal;
        const char *reason;
} unreadable[] = {
        { EACCES, REFUSED_DENIED, "no-permission" },
        { EPERM, REFUSED_DENIED, "no-permission" },
        { EMFILE, REFUSED_EXHAUSTED, "too-many-fds" },
        { ENFILE, REFUSED_EXHAUSTED, "too-many-fds" },
        { ENOMEM, REFUSED_EXHAUSTED, "no-memory" },
        { EINTR, REFUSED_UNSUPPORTED, "kernel" },
};

static void test_unreadable_list(void **state) {
        for (size_t i = 0; i < ARRAY_SIZE(unreadable); i++) {
                Explanation e = EXPLANATION_NULL;
                char **names = NULL;
                size_t n = 7;

                open_error = unreadable[i].error;
                assert_int_equal(tracing_match(&tracing, "*", "*", &names, &n, &e), unreadable[i].refusal);
                assert_string_equal(e.reason, unreadable[i].reason);
                assert_non_null(strstr(e.text, "available_events"));
                assert_null(names);
                assert_int_equal(n, 7);
        }
}

static void test_unreadable_format(void **state) {
        for (size_t i = 0; i < ARRAY_SIZE(unreadable); i++) {
                Explanation e = EXPLANATION_NULL;
                Plan *plan = NULL;

                open_error = unreadable[i].error;
                assert_int_equal(tracing_load(&tracing, "irq", "softirq_entry", &plan, &e), unreadable[i].refusal);
                assert_string_equal(e.reason, unreadable[i].reason);
                assert_non_null(strstr(e.text, "events/irq/softirq_entry/format"));
                assert_null(plan);
        }
}

/* The event goes between two calls: what it says of its end is that there is none. */
static void test_gone_format(void **state) {
        static const int errors[] = { ENOENT, ENODEV, EIO };

        for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
                Explanation e = EXPLANATION_NULL;
                Plan *plan = NULL;

                open_error = errors[i];
                assert_int_equal(tracing_load(&tracing, "irq", "softirq_exit", &plan, &e), REFUSED_NOT_FOUND);
                assert_string_equal(e.reason, "unknown-event");
                assert_null(plan);
        }
}

static void test_names_of_other_files(void **state) {
        static const char *const names[][2] = { { "..", "x" }, { "irq", ".." }, { "irq/softirq_entry", "x" }, { "irq", "x/y" } };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                Explanation e = EXPLANATION_NULL;
                Plan *plan = NULL;

                assert_int_equal(tracing_load(&tracing, names[i][0], names[i][1], &plan, &e), REFUSED_INVALID);
                assert_string_equal(e.reason, "bad-event");
                assert_null(plan);
        }
}

/* Until somebody mounts it. */
static void test_missing(void **state) {
        Tracing t = TRACING_NULL;
        Explanation e = EXPLANATION_NULL;
        char **names = NULL;
        Plan *plan = NULL;
        size_t n;

        assert_int_equal(tracing_open_missing(&t, "there is none"), 0);
        assert_int_equal(tracing_match(&t, "*", "*", &names, &n, &e), REFUSED_UNSUPPORTED);
        assert_string_equal(e.reason, "no-tracefs");
        assert_string_equal(e.text, "there is none");
        assert_int_equal(tracing_load(&t, "irq", "softirq_entry", &plan, &e), REFUSED_UNSUPPORTED);
        assert_string_equal(e.reason, "no-tracefs");
        has_tracefs = true;
        assert_false(tracing_is_missing(&t));
        assert_int_equal(tracing_check(&t, &e), 0);
        has_tracefs = false;
        tracing_close(&t);
        assert_null(t.root);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_folders),
                cmocka_unit_test(test_lines),
                cmocka_unit_test(test_probes_of_perfds),
                cmocka_unit_test(test_unreadable_list),
                cmocka_unit_test(test_unreadable_format),
                cmocka_unit_test(test_gone_format),
                cmocka_unit_test(test_names_of_other_files),
                cmocka_unit_test(test_missing),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
