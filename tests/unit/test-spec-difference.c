/* What differs between two specs, and which differences an event can live with. */
#include "daemon/model/spec-difference.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

/* "field: before -> after" for each, a line each; static. */
static const char *differences(const EventSpec *a, const EventSpec *b) {
        static char text[2048];
        SpecDifference *list = NULL;
        size_t n = 0, used = 0;

        assert_int_equal(event_spec_differences(a, b, &list, &n), 0);
        text[0] = '\0';
        for (size_t i = 0; i < n; i++)
                used += (size_t)snprintf(text + used, sizeof(text) - used, "%s: %s -> %s\n", list[i].field, list[i].before,
                                         list[i].after);
        spec_differences_free(list, n);
        return text;
}

static void test_all_fields(void **state) {
        uint32_t pids[] = { 5, 6 }, tids[] = { 7 };
        char *attr[] = { (char *)"exclude-hv=true", (char *)"pinned=true" }, *fields[] = { (char *)"a:u8" };
        char *cgroups[] = { (char *)"a/b", (char *)"c*" }, *containers[] = { (char *)"3dcb1a9f0e4c" }, *units[] = { (char *)"x.service" };
        const EventSpec empty = { .event = (char *)"a:b", .name = (char *)"n" };
        const EventSpec tasks = { .event = (char *)"a:c", .name = (char *)"n", .group = (char *)"g", .target = (char *)"t",
                                  .pids = pids, .n_pids = 2, .tids = tids, .n_tids = 1, .cpus = (char *)"0-3",
                                  .no_inherit = true, .filter = (char *)"x > 1", .args = (char *)"f=%di", .maxactive = 9,
                                  .interval = 1500 * NSEC_PER_MSEC, .fallback = (char *)"cpu-clock", .attr = { attr, 2 },
                                  .fields = { fields, 1 }, .period = UINT64_MAX, .frequency = 99,
                                  .callchain = CALLCHAIN_USER | CALLCHAIN_DWARF, .disabled = true, .include_self = true };
        const EventSpec groups = { .event = (char *)"a:b", .name = (char *)"n", .group = (char *)"default",
                                   .cgroups = { cgroups, 2 }, .containers = { containers, 1 }, .units = { units, 1 },
                                   .interval = 2 * NSEC_PER_SEC, .callchain = CALLCHAIN_USER, .configured = true };

        assert_string_equal(differences(&empty, &empty), "");
        assert_string_equal(differences(&empty, &tasks),
                            "group: default -> g\n"
                            "target: host -> t pids 5,6 tids 7 cpus 0-3 without children\n"
                            "event: a:b -> a:c\n"
                            "filter:  -> x > 1\n"
                            "args:  -> f=%di\n"
                            "maxactive:  -> 9\n"
                            "period:  -> 18446744073709551615\n"
                            "frequency:  -> 99\n"
                            "interval:  -> 1500ms\n"
                            "fallback:  -> cpu-clock\n"
                            "callchain:  -> user, dwarf\n"
                            "enabled: true -> false\n"
                            "include-self: false -> true\n"
                            "attr:  -> exclude-hv=true, pinned=true\n"
                            "fields:  -> a:u8\n");
        assert_string_equal(differences(&groups, &empty),
                            "target:  cgroups a/b,c* containers 3dcb1a9f0e4c units x.service -> host\n"
                            "interval: 2s -> \n"
                            "callchain: user -> \n");
}

static void test_what_can_change_while_it_runs(void **state) {
        const EventSpec a = { .event = (char *)"a:b", .name = (char *)"n" };
        const EventSpec live = { .event = (char *)"a:b", .name = (char *)"n", .group = (char *)"g", .filter = (char *)"x > 1",
                                 .period = 7, .frequency = 8, .interval = 9, .configured = true };
        const EventSpec others[] = {
                { .event = (char *)"a:c", .name = (char *)"n" },
                { .event = (char *)"a:b", .name = (char *)"m" },
                { .event = (char *)"a:b", .name = (char *)"n", .cpus = (char *)"0" },
                { .event = (char *)"a:b", .name = (char *)"n", .args = (char *)"x" },
                { .event = (char *)"a:b", .name = (char *)"n", .callchain = CALLCHAIN_USER },
                { .event = (char *)"a:b", .name = (char *)"n", .disabled = true },
                { .event = (char *)"a:b", .name = (char *)"n", .maxactive = 1 },
        };

        assert_true(event_spec_can_become(&a, &live) && event_spec_can_become(&live, &a));
        assert_false(event_spec_equal(&a, &live));
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                assert_false(event_spec_can_become(&a, &others[i]));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_all_fields),
                cmocka_unit_test(test_what_can_change_while_it_runs),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
