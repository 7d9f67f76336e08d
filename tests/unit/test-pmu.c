/* PMUs of a laid-out sysfs: a hybrid Intel machine with memory controllers, and an arm64 one; exact words of attrs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "daemon/base/cleanup.h"
#include "daemon/kernel/pmu/terms.h"
#include "daemon/kernel/pmu/pmu.h"

static char root[64];

/* "PMU/FILE" with its text; folders come into being. */
static void put(const char *path, const char *text) {
        char full[256];
        FILE *f;

        (void)snprintf(full, sizeof(full), "%s/%s", root, path);
        for (char *slash = full + strlen(root); slash; slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                (void)mkdir(full, 0700);
                *slash = '/';
        }
        f = fopen(full, "w");
        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
}

static void put_all(const char *const (*files)[2], size_t n) {
        for (size_t i = 0; i < n; i++)
                put(files[i][0], files[i][1]);
}

static int make_root(void **state) {
        strcpy(root, "/tmp/perfd-pmu-XXXXXX");
        return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state) {
        char command[96];

        (void)snprintf(command, sizeof(command), "rm -r '%s'", root);
        return system(command);
}

/* As captured from an i9-12900K, Linux 6.1, cut down. */
static const char *const hybrid[][2] = {
        { "cpu_core/type", "4\n" },
        { "cpu_core/cpus", "0-15\n" },
        { "cpu_core/format/event", "config:0-7\n" },
        { "cpu_core/format/umask", "config:8-15\n" },
        { "cpu_core/format/edge", "config:18\n" },
        { "cpu_core/format/inv", "config:23\n" },
        { "cpu_core/format/cmask", "config:24-31\n" },
        { "cpu_core/format/offcore_rsp", "config1:0-63\n" },
        { "cpu_core/format/ldlat", "config1:0-15\n" },
        { "cpu_core/format/frontend", "config1:0-23\n" },
        { "cpu_core/events/cpu-cycles", "event=0x3c\n" },
        { "cpu_core/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n" },
        { "cpu_core/events/topdown-bad", "event=0x00,umask=0x81,inv\n" },
        { "cpu_core/events/sampled", "event=0x2e,period=1000\n" },
        { "cpu_core/events/asks", "event=0x2,umask=?\n" },
        { "cpu_core/events/broken", "event=0x2,nonsense=1\n" },
        { "cpu_atom/type", "8\n" },
        { "cpu_atom/cpus", "16-23\n" },
        { "cpu_atom/format/event", "config:0-7\n" },
        { "cpu_atom/format/umask", "config:8-15\n" },
        { "cpu_atom/events/cpu-cycles", "event=0x3c\n" },
        { "uncore_imc_0/type", "23\n" },
        { "uncore_imc_0/cpumask", "0\n" },
        { "uncore_imc_0/format/event", "config:0-7\n" },
        { "uncore_imc_0/format/umask", "config:8-15\n" },
        { "uncore_imc_0/events/cas_count_read", "event=0x05,umask=0x3\n" },
        { "uncore_imc_0/events/cas_count_read.scale", "6.103515625e-5\n" },
        { "uncore_imc_0/events/cas_count_read.unit", "MiB\n" },
        { "uncore_imc_1/type", "24\n" },
        { "uncore_imc_1/cpumask", "0\n" },
        { "uncore_imc_1/format/event", "config:0-7\n" },
        { "uncore_imc_1/format/umask", "config:8-15\n" },
        { "uncore_imc_1/events/cas_count_read", "event=0x06,umask=0x3\n" },
        { "uncore_imc_free_running/type", "25\n" },
        { "uncore_imc_free_running/cpumask", "0\n" },
        { "uncore_imc_free_running/format/event", "config:0-7\n" },
        { "uncore_gone_0/type", "26\n" },
        { "uncore_gone_0/cpumask", "\n" },
        { "uncore_gone_0/format/event", "config:0-7\n" },
        { "msr/type", "9\n" },
        { "msr/format/event", "config:0-63\n" },
        { "msr/events/tsc", "event=0x00\n" },
        { "msr/events/aperf", "event=0x01\n" },
        { "power/type", "21\n" },
        { "power/cpumask", "0\n" },
        { "power/format/event", "config:0-7\n" },
        { "power/events/energy-pkg", "event=0x02\n" },
        { "power/events/energy-pkg.scale", "2.3283064365386962890625e-10\n" },
        { "power/events/energy-pkg.unit", "Joules\n" },
        { "uprobe/type", "7\n" },
        { "uprobe/format/retprobe", "config:0\n" },
        { "uprobe/format/ref_ctr_offset", "config:32-63\n" },
        { "strange/type", "30\n" },
        { "strange/format/wide", "config:0-7,32-35\n" },
        { "strange/format/far", "config3:60-63,0\n" },
        { "strange/format/second", "config2:4-5\n" },
        { "strange/format/later", "config9:0-7 or so\n" },
        { "no-pmu/folder/file", "1\n" },
};

static EventTerm term(const char *name, const char *text, size_t position) {
        EventTerm t = { .name = (char *)name, .text = (char *)text, .position = position };
        char *end;

        if (text) {
                t.value = strtoull(text, &end, 0);
                t.is_number = *text && !*end;
        }
        return t;
}

/* Up to four terms; the last one's name is NULL. */
typedef struct Row {
        const char *pmu;
        const char *terms[8]; /* name, value, name, value, ... NULL */
        size_t n;
        uint32_t type;
        uint64_t words[4];
        const char *cpus;
        const char *text; /* of the first: unit or name */
} Row;

static int resolve(const char *pmu, const char *const *terms, PmuEvent **ret, size_t *ret_n, Explanation *e) {
        EventTerm list[4];
        EventName name = { .kind = EVENT_NAME_PMU, .group = (char *)pmu, .terms = list };

        for (size_t i = 0; i + 1 < 8 && terms[i]; i += 2, name.n_terms++)
                list[name.n_terms] = term(terms[i], *terms[i + 1] ? terms[i + 1] : NULL, 10 + 10 * name.n_terms);
        return pmu_resolve(root, &name, ret, ret_n, e);
}

static void test_resolve(void **state) {
        static const Row rows[] = {
                { "cpu_core", { "event", "0x3c", "umask", "1" }, 1, 4, { 0x13c }, "0-15" },
                { "cpu_core", { "cpu-cycles", "" }, 1, 4, { 0x3c }, "0-15" },
                { "cpu_core", { "event", "0xc0", "inv", "", "cmask", "16" }, 1, 4, { 0x108000c0 }, "0-15" },
                { "cpu_core", { "mem-loads", "" }, 1, 4, { 0x1cd, 3 }, "0-15" },
                { "cpu_core", { "ldlat", "0x20", "mem-loads", "" }, 1, 4, { 0x1cd, 0x20 }, "0-15" }, /* before it too */
                { "cpu_core", { "mem-loads", "", "umask", "2" }, 1, 4, { 0x2cd, 3 }, "0-15" },
                { "cpu_core", { "mem-loads", "", "config", "0x7" }, 1, 4, { 7, 3 }, "0-15" },
                { "cpu_core", { "edge", "", "config", "0x3c" }, 1, 4, { 0x4003c }, "0-15" }, /* word, then bits */
                { "cpu_core", { "topdown-bad", "" }, 1, 4, { 0x808100 }, "0-15" },
                { "cpu_core", { "topdown-bad", "", "inv", "0" }, 1, 4, { 0x8100 }, "0-15" },
                { "cpu_core", { "offcore_rsp", "0xffffffffffffffff" }, 1, 4, { 0, UINT64_MAX }, "0-15" },
                { "cpu_core", { "asks", "", "umask", "0xf" }, 1, 4, { 0xf02 }, "0-15" },
                { "cpu_core", { "cpu-cycles", "", "name", "spent" }, 1, 4, { 0x3c }, "0-15", "spent" },
                { "cpu", { "cpu-cycles", "" }, 2, 8, { 0x3c }, "16-23" },
                { "cpu_*", { "cpu-cycles", "" }, 2, 8, { 0x3c }, "16-23" },
                { "cpu_*", { "mem-loads", "" }, 1, 4, { 0x1cd, 3 }, "0-15" }, /* only one of them has it */
                { "imc", { "cas_count_read", "" }, 2, 23, { 0x305 }, "0", "MiB" },
                { "uncore_imc", { "event", "9" }, 2, 23, { 9 }, "0" },
                { "uncore_imc_1", { "cas_count_read", "" }, 1, 24, { 0x306 }, "0" },
                { "imc*", { "event", "9" }, 3, 23, { 9 }, "0" },
                { "imc_free_running", { "event", "1" }, 1, 25, { 1 }, "0" },
                { "msr", { "aperf", "" }, 1, 9, { 1 }, NULL },
                { "msr", { NULL }, 1, 9, { 0 }, NULL },
                { "power", { "energy-pkg", "" }, 1, 21, { 2 }, "0", "Joules" },
                { "strange", { "wide", "0xabc" }, 1, 30, { 0xa000000bc }, NULL },
                { "strange", { "wide", "0xfff", "second", "3", "far", "0x11" }, 1, 30,
                  { 0xf000000ff, 0, 0x30, 0x8000000000000001 }, NULL },
                { "strange", { "config1", "1", "config2", "2", "config3", "3", "second", "1" }, 1, 30,
                  { 0, 1, 0x12, 3 }, NULL },
        };

        put_all(hybrid, ARRAY_SIZE(hybrid));
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                Explanation e = EXPLANATION_NULL;
                PmuEvent *events = NULL;
                size_t n = 0;

                assert_int_equal(resolve(rows[i].pmu, rows[i].terms, &events, &n, &e), 0);
                assert_string_equal(e.text, "");
                assert_int_equal(n, rows[i].n);
                assert_int_equal(events[0].type, rows[i].type);
                assert_int_equal(events[0].config, rows[i].words[0]);
                assert_int_equal(events[0].config1, rows[i].words[1]);
                assert_int_equal(events[0].config2, rows[i].words[2]);
                assert_int_equal(events[0].config3, rows[i].words[3]);
                if (rows[i].cpus)
                        assert_string_equal(events[0].cpus, rows[i].cpus);
                else
                        assert_null(events[0].cpus);
                if (rows[i].text)
                        assert_string_equal(events[0].unit ?: events[0].name, rows[i].text);
                else
                        assert_null(events[0].unit ?: events[0].name);
                assert_int_equal(events[0].is_uncore, strcmp(rows[i].cpus ?: "", "0") == 0);
                pmu_events_free(events, n);
        }
}

static void test_units_and_periods(void **state) {
        Explanation e = EXPLANATION_NULL;
        PmuEvent *p = NULL;
        size_t n;

        assert_int_equal(resolve("power", (const char *[8]){ "energy-pkg", "" }, &p, &n, &e), 0);
        assert_true(p->scale == 2.3283064365386962890625e-10);
        assert_string_equal(p->pmu, "power");
        pmu_events_free(p, n);
        assert_int_equal(resolve("imc", (const char *[8]){ "cas_count_read", "" }, &p, &n, &e), 0);
        assert_true(p[0].scale == 6.103515625e-5 && p[1].scale == 1);
        assert_int_equal(p[1].config, 0x306);
        assert_null(p[1].unit);
        pmu_events_free(p, n);
        assert_int_equal(resolve("cpu_core", (const char *[8]){ "sampled", "" }, &p, &n, &e), 0);
        assert_true(p->period == 1000 && p->frequency == 0);
        pmu_events_free(p, n);
        assert_int_equal(resolve("cpu_core", (const char *[8]){ "sampled", "", "freq", "99" }, &p, &n, &e), 0);
        assert_true(p->period == 0 && p->frequency == 99);
        pmu_events_free(p, n);
}

static void test_refused(void **state) {
        static const struct {
                const char *pmu, *terms[8];
                int refusal;
                const char *reason;
                unsigned position;
                const char *words;
        } rows[] = {
                { "cpu_coer", { "event", "1" }, REFUSED_NOT_FOUND, "unknown-pmu", 0, "did you mean 'cpu_core'" },
                { "..", { "event", "1" }, REFUSED_NOT_FOUND, "unknown-pmu", 0, "no PMU" },
                { "no-pmu", { "event", "1" }, REFUSED_NOT_FOUND, "unknown-pmu", 0, "no PMU" },
                { "gone", { "event", "1" }, REFUSED_UNSUPPORTED, "no-cpus", 0, "online" },
                { "cpu_core", { "umask", "1", "evnet", "1" }, REFUSED_NOT_FOUND, "unknown-term", 21,
                  "did you mean 'event'" },
                { "cpu_core", { "mem-load", "" }, REFUSED_NOT_FOUND, "unknown-term", 11, "did you mean 'mem-loads'" },
                { "cpu_core", { "../type", "" }, REFUSED_NOT_FOUND, "unknown-term", 11, "no term" },
                { "cpu_core", { "event", "0x100" }, REFUSED_INVALID, "bad-term", 11,
                  "'event' of 'cpu_core' has 8 bits (config:0-7), so its range is 0 to 0xff, and 0x100 does not fit" },
                { "cpu_core", { "event", "1", "inv", "2" }, REFUSED_INVALID, "bad-term", 21,
                  "has 1 bit (config:23), so its range is 0 to 0x1, and 0x2" },
                { "strange", { "wide", "0x1000" }, REFUSED_INVALID, "bad-term", 11,
                  "has 12 bits (config:0-7,32-35), so its range is 0 to 0xfff" },
                { "strange", { "far", "0x20" }, REFUSED_INVALID, "bad-term", 11, "has 5 bits (config3:0,60-63)" },
                { "strange", { "later", "1" }, REFUSED_UNSUPPORTED, "bad-pmu", 0, "form" },
                { "cpu_core", { "event", "many" }, REFUSED_INVALID, "bad-term", 11, "is a number, not 'many'" },
                { "cpu_core", { "period", "" }, REFUSED_INVALID, "bad-term", 11, "period=..." },
                { "cpu_core", { "period", "0" }, REFUSED_INVALID, "bad-term", 11, "at least 1" },
                { "cpu_core", { "period", "5", "freq", "5" }, REFUSED_INVALID, "bad-term", 0, "contradict" },
                { "cpu_core", { "event", "1", "event", "1" }, REFUSED_INVALID, "bad-term", 21, "given twice" },
                { "cpu_core", { "cpu-cycles", "", "mem-loads", "" }, REFUSED_INVALID, "bad-term", 21, "two events" },
                { "cpu_core", { "cpu-cycles", "1" }, REFUSED_INVALID, "bad-term", 11, "takes no value" },
                { "cpu_core", { "asks", "" }, REFUSED_INVALID, "bad-term", 0, "give one" },
                { "cpu_core", { "broken", "" }, REFUSED_NOT_FOUND, "unknown-term", 0, "nonsense" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                Explanation e = EXPLANATION_NULL;
                PmuEvent *events = (PmuEvent *)1;
                size_t n = 7;

                assert_int_equal(resolve(rows[i].pmu, rows[i].terms, &events, &n, &e), rows[i].refusal);
                assert_string_equal(e.reason, rows[i].reason);
                if (!strstr(e.text, rows[i].words))
                        fail_msg("no \"%s\" in \"%s\"", rows[i].words, e.text);
                assert_int_equal(e.position, rows[i].position);
                assert_true(events == (PmuEvent *)1 && n == 7);
        }
}

static void check_core(EventNameKind kind, uint64_t config, size_t n_expected, const uint32_t *types,
                       const uint64_t *configs, const char *const *cpus) {
        EventName name = { .kind = kind, .config = config };
        Explanation e = EXPLANATION_NULL;
        PmuEvent *events = NULL;
        size_t n = 99;

        assert_int_equal(pmu_core(root, &name, &events, &n, &e), 0);
        assert_int_equal(n, n_expected);
        for (size_t i = 0; i < n; i++) {
                assert_int_equal(events[i].type, types[i]);
                assert_int_equal(events[i].config, configs[i]);
                if (cpus)
                        assert_string_equal(events[i].cpus, cpus[i]);
                else
                        assert_null(events[i].cpus);
                assert_false(events[i].is_uncore);
        }
        pmu_events_free(events, n);
}

static void test_core(void **state) {
        static const char *const cpus[] = { "16-23", "0-15" };

        put_all(hybrid, ARRAY_SIZE(hybrid));
        check_core(EVENT_NAME_HARDWARE, 1, 2, (uint32_t[]){ 0, 0 }, (uint64_t[]){ 0x800000001, 0x400000001 }, cpus);
        check_core(EVENT_NAME_CACHE, 0x10002, 2, (uint32_t[]){ 3, 3 }, (uint64_t[]){ 0x800010002, 0x400010002 }, cpus);
        check_core(EVENT_NAME_RAW, 0x1a8, 2, (uint32_t[]){ 8, 4 }, (uint64_t[]){ 0x1a8, 0x1a8 }, cpus);
        put("cpu_atom/cpus", "\n"); /* all of them offline */
        check_core(EVENT_NAME_HARDWARE, 0, 1, (uint32_t[]){ 0 }, (uint64_t[]){ 0x400000000 }, cpus + 1);
}

static void test_other_machines(void **state) {
        static const char *const arm[][2] = {
                { "armv8_pmuv3_0/type", "8\n" },
                { "armv8_pmuv3_0/cpus", "0-1\n" },
                { "armv8_pmuv3_0/format/event", "config:0-15\n" },
                { "armv8_pmuv3_0/format/long", "config1:0\n" },
                { "armv8_pmuv3_0/events/inst_retired", "event=0x0008\n" },
                { "software/type", "1\n" },
        };
        PmuEvent *p;
        size_t n;

        check_core(EVENT_NAME_HARDWARE, 1, 0, NULL, NULL, NULL); /* nothing at all */
        put_all(arm, ARRAY_SIZE(arm));
        check_core(EVENT_NAME_HARDWARE, 1, 1, (uint32_t[]){ 0 }, (uint64_t[]){ 1 }, NULL);
        check_core(EVENT_NAME_RAW, 0x1d, 1, (uint32_t[]){ 4 }, (uint64_t[]){ 0x1d }, NULL);
        assert_int_equal(resolve("armv8_pmuv3", (const char *[8]){ "inst_retired", "", "long", "" }, &p, &n, NULL), 0);
        assert_true(n == 1 && p->type == 8 && p->config == 8 && p->config1 == 1 && !p->is_uncore);
        assert_string_equal(p->cpus, "0-1");
        pmu_events_free(p, n);
        assert_int_equal(resolve("cpu", (const char *[8]){ "event", "0x11" }, &p, &n, NULL), 0);
        assert_true(n == 1 && p->config == 0x11);
        pmu_events_free(p, n);

        put("cpu/type", "4\n"); /* as on most x86 machines: one, without a file cpus */
        check_core(EVENT_NAME_CACHE, 2, 1, (uint32_t[]){ 3 }, (uint64_t[]){ 2 }, NULL);
}

static void test_lists(void **state) {
        static const char *const expected[][3] = {
                { "cpu_atom/cpu-cycles/", "", "event=0x3c" },
                { "cpu_core/asks/", "", "event=0x2,umask=?" },
                { "cpu_core/broken/", "", "event=0x2,nonsense=1" },
                { "cpu_core/cpu-cycles/", "", "event=0x3c" },
                { "cpu_core/mem-loads/", "", "event=0xcd,umask=0x1,ldlat=3" },
                { "cpu_core/sampled/", "", "event=0x2e,period=1000" },
                { "cpu_core/topdown-bad/", "", "event=0x00,umask=0x81,inv" },
                { "msr/aperf/", "", "event=0x01" },
                { "msr/tsc/", "", "event=0x00" },
                { "power/energy-pkg/", "Joules", "event=0x02" },
                { "uncore_imc_0/cas_count_read/", "MiB", "event=0x05,umask=0x3" },
                { "uncore_imc_1/cas_count_read/", "", "event=0x06,umask=0x3" },
        };
        Explanation e = EXPLANATION_NULL;
        PmuListed *list;
        uint32_t type;
        unsigned bit;
        size_t n;

        put_all(hybrid, ARRAY_SIZE(hybrid));
        assert_int_equal(pmu_list(root, &list, &n), 0);
        assert_int_equal(n, ARRAY_SIZE(expected));
        for (size_t i = 0; i < n; i++) {
                assert_string_equal(list[i].event, expected[i][0]);
                assert_string_equal(list[i].unit, expected[i][1]);
                assert_string_equal(list[i].help, expected[i][2]);
        }
        pmu_listed_free(list, n);
        assert_int_equal(pmu_type(root, "uprobe", &type, &e), 0);
        assert_int_equal(type, 7);
        assert_int_equal(pmu_type(root, "kprobe", &type, &e), REFUSED_UNSUPPORTED);
        assert_string_equal(e.reason, "no-pmu");
        assert_int_equal(pmu_format_bit(root, "uprobe", "retprobe", &bit, &e), 0);
        assert_int_equal(bit, 0);
        assert_int_equal(pmu_format_bit(root, "cpu_core", "inv", &bit, &e), 0);
        assert_int_equal(bit, 23);
        assert_int_equal(pmu_format_bit(root, "uprobe", "ref_ctr_offset", &bit, &e), REFUSED_UNSUPPORTED);
        assert_int_equal(pmu_format_bit(root, "uprobe", "gone", &bit, &e), REFUSED_UNSUPPORTED);
        assert_string_equal(e.reason, "no-pmu");
}

static void test_formats(void **state) {
        static const struct {
                const char *text;
                unsigned word;
                uint64_t mask; /* 0: refused */
        } rows[] = {
                { "config:0-7,32-35\n", 0, 0xf000000ff }, { "config1:0-63", 1, UINT64_MAX },
                { "config2:63", 2, 1ull << 63 },
                { "config3:0,2,4", 3, 0x15 },             { "config:5-5", 0, 0x20 },         { "config:", 0, 0 },
                { "config:64", 0, 0 },                    { "config:7-0", 0, 0 },            { "config:0-", 0, 0 },
                { "config:0,", 0, 0 },                    { "config4:0", 0, 0 },
                { "config:0-99999999999", 0, 0 },
                { "config:0 ", 0, 0 },                    { "conf:0", 0, 0 },                { "", 0, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                PmuFormat f = { .word = 7, .mask = 7 };

                assert_int_equal(pmu_format_parse(rows[i].text, &f), rows[i].mask != 0);
                assert_int_equal(f.mask, rows[i].mask ?: 7);
                assert_int_equal(f.word, rows[i].mask ? rows[i].word : 7);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_formats),
                cmocka_unit_test_setup_teardown(test_core, make_root, remove_root),
                cmocka_unit_test_setup_teardown(test_other_machines, make_root, remove_root),
                cmocka_unit_test_setup_teardown(test_lists, make_root, remove_root),
        };
        const struct CMUnitTest of_hybrid[] = {
                cmocka_unit_test(test_resolve),
                cmocka_unit_test(test_units_and_periods),
                cmocka_unit_test(test_refused),
        };
        int failed = cmocka_run_group_tests(tests, NULL, NULL);

        return failed + cmocka_run_group_tests_name("hybrid", of_hybrid, make_root, remove_root);
}
