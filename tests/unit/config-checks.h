/* For test-config*.c: a text, and the whole of what is reported about it. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"
#include "config/parse/load.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"

static inline char *reported(const ConfigDiagnostics *m) {
        size_t size;
        char *text = NULL;
        FILE *f = open_memstream(&text, &size);

        assert_non_null(f);
        for (size_t i = 0; i < m->n_items; i++)
                config_diagnostic_print(&m->items[i], f);
        fclose(f);
        return text;
}

/* Each line of `expected` begins with the place in "f". NULL is returned for a refusal. */
static inline Config *check(const char *yaml, size_t length, const char *expected) {
        ConfigDiagnostics m = CONFIG_DIAGNOSTICS_NULL;
        _cleanup_free_ char *text = NULL;
        Config *c = NULL;
        int r = config_parse("f", yaml, length, &m, &c);

        text = reported(&m);
        assert_string_equal(text, expected);
        assert_int_equal(r, m.n_errors > 0 ? REFUSED_INVALID : 0);
        assert_int_equal(c == NULL, m.n_errors > 0);
        config_diagnostics_deinit(&m);
        return c;
}

typedef struct Case {
        const char *yaml, *expected;
} Case;

/* After a first line with the version. */
static inline void check_cases(const Case *cases, size_t n) {
        for (size_t i = 0; i < n; i++) {
                _cleanup_free_ char *yaml = NULL;

                assert_true(asprintf(&yaml, "version: 1\n%s", cases[i].yaml) > 0);
                config_unref(check(yaml, strlen(yaml), cases[i].expected));
        }
}
