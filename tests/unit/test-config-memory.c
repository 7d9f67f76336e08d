/*
 * Each allocation of config/ fails once: the reader then says so with nothing left behind (a sanitizer build proves
 * that) and no configuration made of what it had until then. The linker puts the failing ones in (--wrap).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"
#include "config/parse/load.h"
#include "daemon/base/error.h"

static long n_until_failure = -1; /* -1: none fails */

static bool is_failing(void) {
        return n_until_failure >= 0 && n_until_failure-- == 0;
}

#define WRAP(Type, function, parameters, arguments)                                                                    \
        Type __real_##function parameters;                                                                             \
        Type __wrap_##function parameters;                                                                             \
        Type __wrap_##function parameters {                                                                            \
                return is_failing() ? NULL : __real_##function arguments;                                              \
        }

WRAP(void *, calloc, (size_t n, size_t size), (n, size))
WRAP(void *, reallocarray, (void *p, size_t n, size_t size), (p, n, size))
WRAP(char *, strdup, (const char *text), (text))
WRAP(char *, strndup, (const char *text, size_t n), (text, n))

int __real_vasprintf(char **ret, const char *format, va_list ap);
int __wrap_vasprintf(char **ret, const char *format, va_list ap);
int __wrap_vasprintf(char **ret, const char *format, va_list ap) {
        if (is_failing()) {
                *ret = (char *)1; /* undefined, says asprintf(3) */
                return -1;
        }
        return __real_vasprintf(ret, format, ap);
}

/* Reads `yaml` with the first, second, ... allocation failing, until it is read without. */
static void check(const char *yaml, int expected, long n_least) {
        long n_failures = 0;

        for (;; n_failures++) {
                ConfigDiagnostics m = CONFIG_DIAGNOSTICS_NULL;
                Config *c = NULL;
                int r;

                n_until_failure = n_failures;
                r = config_parse("f", yaml, strlen(yaml), &m, &c);
                if (n_until_failure >= 0) { /* none was left to fail */
                        n_until_failure = -1;
                        assert_int_equal(r, expected);
                        assert_int_equal(c == NULL, expected != 0);
                        config_unref(c);
                        config_diagnostics_deinit(&m);
                        break;
                }
                assert_int_equal(r, -ENOMEM);
                assert_null(c);
                config_diagnostics_deinit(&m);
        }
        assert_true(n_failures >= n_least);
}

static void test_valid(void **state) {
        check("version: 1\n"
              "clock: &clock monotonic-raw\n"
              "listen: {control: /a, stream: /b}\n"
              "targets: {t: &t {pids: [1, 2, 3], tids: [4], cpus: \"0-3\"}, u: *t}\n"
              "groups: {g: {target: t, events: [cs, {event: 's:a', name: b, filter: 'a == 1', callchain: [user]}]}}\n",
              0, 80);
        check("version: 1\n"
              "targets: {t: {cgroups: [a, 'b*'], containers: [c], units: [u.service]}}\n"
              "groups:\n"
              "  g: {target: t, counters: [cycles, 'cpu/event=1,umask=2/u'], interval: 1s}\n"
              "  h:\n"
              "    events:\n"
              "      - {event: 'kretprobe:a|b', args: 'a=%di', maxactive: 1, attr: {pinned: true, sample-type: read}}\n"
              "      - {event: 'uprobe:/x:a@@B', filter: a}\n"
              "      - {event: 'external:e', fields: [a: u8, 'b: text']}\n"
              "      - 'usdt:/x:a:b'\n"
              "      - '{cs, mem:0x10:w}:u'\n",
              0, 120);
}

static void test_mistakes(void **state) {
        check("version: 2\nclok: 1\nclok: 2\ntargets: {a b: {pids: [x, 1, 1]}}\n"
              "groups: {g: {target: t, events: [cs, cs, {event: cs, period: 1, frequency: 1}, *x]}}\n",
              REFUSED_INVALID, 80);
        check("version: [\n", REFUSED_INVALID, 10);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_valid), cmocka_unit_test(test_mistakes) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
