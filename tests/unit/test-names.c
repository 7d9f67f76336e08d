/*
 * What `perfd --check --names` says of a configuration without opening anything: which events this kernel does not have now, each at
 * its place. tracefs is a directory that has one tracepoint.
 */
#include "tests/unit/config-checks.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/thread.h"
#include "daemon/kernel/tracefs/tracing.h"
#include "daemon/supervisor/resolve/names.h"

__attribute__((noinline, used)) int named_here(int x);
__attribute__((noinline, used)) int named_here(int x) {
        return x + 1;
}

static char folder[] = "/tmp/perfd-test-names-XXXXXX";

int __real_tracing_open(Tracing *t, const char *root, Explanation *e);
int __wrap_tracing_open(Tracing *t, const char *root, Explanation *e);
int __wrap_tracing_open(Tracing *t, const char *root, Explanation *e) {
        return __real_tracing_open(t, folder, e);
}

/* Where tracefs is not mounted. */
int __wrap_tracing_open_missing(Tracing *t, const char *why);
int __wrap_tracing_open_missing(Tracing *t, const char *why) {
        return __real_tracing_open(t, folder, NULL);
}

static const char *const folders[] = { "", "/events", "/events/made", "/events/made/here" };

static const struct {
        const char *path, *text;
} files[] = {
        { "/available_events", "made:here\n" },
        { "/events/made/here/format",
          "name: here\nID: 7\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
          "\tfield:int a;\toffset:4;\tsize:4;\tsigned:1;\n\nprint fmt: \"%d\", REC->a\n" },
};

static char *path_of(const char *name) {
        static char path[128];

        (void)snprintf(path, sizeof(path), "%s%s", folder, name);
        return path;
}

static int set_up(void **state) {
        thread_become(THREAD_MAIN);
        if (!mkdtemp(folder))
                return -1;
        for (size_t i = 1; i < ARRAY_SIZE(folders); i++)
                if (mkdir(path_of(folders[i]), 0700) < 0)
                        return -1;
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                FILE *f = fopen(path_of(files[i].path), "we");

                if (!f || fputs(files[i].text, f) < 0 || fclose(f) != 0)
                        return -1;
        }
        return 0;
}

static int tear_down(void **state) {
        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                if (unlink(path_of(files[i].path)) < 0)
                        return -1;
        for (size_t i = ARRAY_SIZE(folders); i-- > 0;)
                if (rmdir(path_of(folders[i])) < 0)
                        return -1;
        return 0;
}

/* What is said of one event; malloc'ed. */
static char *said_of(const char *event, const char *key, int *ret) {
        ConfigDiagnostics m = CONFIG_DIAGNOSTICS_NULL;
        char yaml[512], *text;
        Config *c = NULL;
        int n = snprintf(yaml, sizeof(yaml), "version: 1\ngroups: {g: {events: [{event: '%s'%s}]}}\n", event, key);

        assert_int_equal(config_parse("f", yaml, (size_t)n, &m, &c), 0);
        config_diagnostics_deinit(&m);
        m = CONFIG_DIAGNOSTICS_NULL;
        *ret = resolver_check_names(c, &m);
        text = reported(&m);
        config_diagnostics_deinit(&m);
        config_unref(c);
        return text;
}

static void check_said(const char *event, const char *key, const char *words) {
        int r;
        _cleanup_free_ char *text = said_of(event, key, &r);

        assert_int_equal(r, 0);
        if (words ? !strstr(text, words) || strncmp(text, "f:2:", 4) != 0 : *text != '\0')
                fail_msg("%s: %s", event, text);
}

/* Every kernel has them, or nobody can say so before they are opened. */
static void test_nothing_to_say(void **state) {
        check_said("page-faults", "", NULL);
        check_said("made:here", "", NULL);
        check_said("made:h*", "", NULL);
        check_said("mem:0x1000:w", "", NULL);
        check_said("external:mine", ", fields: [a:u32]", NULL);
        check_said("cycles", ", fallback: cpu-clock", NULL);
        check_said("uprobe:/proc/self/exe:named_here", "", NULL);
        check_said("{page-faults,cs}", "", NULL);
}

static void test_missing(void **state) {
        check_said("made:hers", "", "here");
        check_said("sched:sched_*", "", "sched:sched_*");
        check_said("uprobe:/proc/self/exe:named_there", "", "named_there");
        check_said("uprobe:/nonexistent/program:main", "", "/nonexistent/program");
        check_said("usdt:/proc/self/exe:nobody:nothing", "", "has no static probes");
        check_said("no_such_pmu/event=1/", "", "no_such_pmu");
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_nothing_to_say), cmocka_unit_test(test_missing) };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
