/*
 * What is long to read lets others have their turn, and stops when it is told to: at each checkpoint there is. How long lists
 * may be. The checkpoints are this test's own, not those of base/checkpoint.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"
#include "config/document/node.h"
#include "config/parse/load.h"
#include "daemon/base/checkpoint.h"
#include "daemon/base/cleanup.h"

static size_t n_passed, n_allowed = SIZE_MAX;

int checkpoint(Explanation *e) {
        return n_passed++ < n_allowed ? 0 : REFUSED_CANCELLED;
}

static int parse(const char *yaml, Config **ret, ConfigDiagnostics *m) {
        n_passed = 0;
        return config_parse("f", yaml, strlen(yaml), m, ret);
}

/* One of each kind of list. */
static void test_cancelled_anywhere(void **state) {
        static const char yaml[] = "version: 1\n"
                                   "targets: {a: {pids: [1, 2], tids: [3]}, b: {cgroups: [x, y]}, c: {units: [u], containers: [v]}}\n"
                                   "groups:\n"
                                   "  g: {target: a, events: [cs, {event: cycles, attr: {exclude-hv: true}, callchain: [user, kernel]}]}\n"
                                   "  h: {events: [{event: external:x, fields: {a: u8, b: u16}}, {event: external:y, fields: [c: u8, d: u8]}]}\n"
                                   "  i: {counters: [cycles, instructions]}\n";
        ConfigDiagnostics m = CONFIG_DIAGNOSTICS_NULL;
        Config *c = NULL;
        size_t n;

        assert_int_equal(parse(yaml, &c, &m), 0);
        n = n_passed;
        assert_true(n > 80); /* each value is one, while it is read and while it is looked at */
        c = config_unref(c);
        for (n_allowed = 0; n_allowed < n; n_allowed++) {
                assert_int_equal(parse(yaml, &c, &m), REFUSED_CANCELLED);
                assert_int_equal(n_passed, n_allowed + 1);
                assert_null(c);
                assert_int_equal(m.n_items, 0);
        }
        n_allowed = SIZE_MAX;
        config_diagnostics_deinit(&m);
}

/* BEFORE; then ITEM, which has a number in the place of its %, n times from 1 on; then AFTER. */
static char *repeat(const char *before, const char *item, size_t n, const char *after) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        fputs(before, f);
        for (size_t i = 1; i <= n; i++)
                for (const char *s = item; *s; s++)
                        if (*s == '%')
                                fprintf(f, "%zu", i);
                        else
                                fputc(*s, f);
        fputs(after, f);
        fclose(f);
        return text;
}

static void check_mistake(const char *yaml, const char *expected, size_t n_errors) {
        ConfigDiagnostics m = CONFIG_DIAGNOSTICS_NULL;
        _cleanup_(config_unrefp) Config *c = NULL;

        assert_int_equal(parse(yaml, &c, &m), n_errors ? REFUSED_INVALID : 0);
        assert_int_equal(m.n_errors, n_errors);
        for (size_t i = 0, at = 0; i < m.n_items; i++)
                if (!m.items[i].warning && at++ == 0)
                        assert_string_equal(m.items[i].text, expected);
        config_diagnostics_deinit(&m);
}

static void test_bounds(void **state) {
        static const struct {
                const char *before, *item;
                size_t most;
                const char *after, *expected;
        } cases[] = {
                { "version: 1\ntargets: {a: {pids: [", "%,", CONFIG_IDS_MAX, "]}}\n",
                  "pids: more than 65536 in one list; split it into several targets, or name a cgroup" },
                { "version: 1\ntargets: {a: {tids: [", "%,", CONFIG_IDS_MAX, "]}}\n",
                  "tids: more than 65536 in one list; split it into several targets, or name a cgroup" },
                { "version: 1\ntargets: {a: {units: [", "u%,", CONFIG_NAMES_MAX, "]}}\n",
                  "units: more than 1024 in one list; split it, or use a glob" },
                { "version: 1\ntargets: {a: {cgroups: [", "u%*,", CONFIG_NAMES_MAX, "]}}\n",
                  "cgroups: more than 1024 in one list; split it, or use a glob" },
                { "version: 1\ntargets: {a: {containers: [", "u%,", CONFIG_NAMES_MAX, "]}}\n",
                  "containers: more than 1024 in one list; split it, or use a glob" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_free_ char *most = repeat(cases[i].before, cases[i].item, cases[i].most, cases[i].after);
                _cleanup_free_ char *more = repeat(cases[i].before, cases[i].item, cases[i].most + 3, cases[i].after);

                check_mistake(most, NULL, 0);
                check_mistake(more, cases[i].expected, 1); /* once, however many follow */
        }
}

/* What stands there twice is not counted, and costs no walk over what stands there already. */
static void test_repeated(void **state) {
        _cleanup_free_ char *yaml = repeat("version: 1\ntargets: {a: {pids: [1, ", "2,", CONFIG_IDS_MAX + 10, "3]}}\n");
        _cleanup_free_ char *wrong = repeat("version: 1\ntargets: {a: {pids: [1, ", "2,", 2000, "0]}}\n");
        _cleanup_(config_unrefp) Config *c = NULL;
        ConfigDiagnostics m = CONFIG_DIAGNOSTICS_NULL;

        assert_int_equal(parse(yaml, &c, &m), 0);
        assert_int_equal(c->targets[1].pids.n_ids, 3);
        assert_int_equal(m.n_items, CONFIG_WARNINGS_MAX);
        config_diagnostics_deinit(&m);
        check_mistake(wrong, "pids: found '0', expected process ids from 1 to 4194304 in a list, such as [1, 2] (and 1499 more "
                             "errors that are not shown)", 1);
}

static void test_keys(void **state) {
        _cleanup_free_ char *yaml = repeat("version: 1\n", "k%: 1\n", CONFIG_KEYS_MAX, "");

        check_mistake(yaml, "too many keys: at most 16384 in one mapping", 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_cancelled_anywhere),
                cmocka_unit_test(test_bounds),
                cmocka_unit_test(test_repeated),
                cmocka_unit_test(test_keys),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
