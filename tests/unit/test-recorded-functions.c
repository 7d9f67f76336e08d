/* KSYMBOL records of recordings: functions of a kernel that record --host was told are of the kernel or of a module, code of BPF of itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/perfd/error.h"
#include "client/perfd/recording-writer.h"
#include "client/perfd/symbolizer.h"

#define BASE UINT64_C(0xffff000000000000)

typedef struct Function {
        uint64_t at;
        uint16_t type;
        const char *name;         /* as it is recorded */
        const char *symbol, *dso; /* as it is shown */
} Function;

static const Function functions[] = {
        { 0x1000, PERF_RECORD_KSYMBOL_TYPE_UNKNOWN, "vfs_read", "vfs_read", "[kernel.kallsyms]" },
        { 0x2000, PERF_RECORD_KSYMBOL_TYPE_UNKNOWN, "ext4_readdir [ext4]", "ext4_readdir", "[ext4]" },
        { 0x3000, PERF_RECORD_KSYMBOL_TYPE_UNKNOWN, "a []", "a []", "[kernel.kallsyms]" },
        { 0x4000, PERF_RECORD_KSYMBOL_TYPE_UNKNOWN, " [ext4]", " [ext4]", "[kernel.kallsyms]" },
        { 0x5000, PERF_RECORD_KSYMBOL_TYPE_UNKNOWN, "b [", "b [", "[kernel.kallsyms]" },
        { 0x6000, PERF_RECORD_KSYMBOL_TYPE_UNKNOWN, "c [ext4", "c [ext4", "[kernel.kallsyms]" },
        { 0x7000, PERF_RECORD_KSYMBOL_TYPE_UNKNOWN, "d ext4]", "d ext4]", "[kernel.kallsyms]" },
        { 0x8000, PERF_RECORD_KSYMBOL_TYPE_BPF, "bpf_prog_1 [x]", "bpf_prog_1 [x]", "bpf_prog_1 [x]" },
};

#define N (sizeof(functions) / sizeof(functions[0]))

static void put(perfd_recording_writer *w, const Function *f) {
        struct {
                uint64_t addr;
                uint32_t len;
                uint16_t type, flags;
                char name[24];
                uint64_t id;
        } r = { .addr = BASE + f->at, .len = 0x100, .type = f->type, .id = 1 };

        (void)snprintf(r.name, sizeof(r.name), "%s", f->name);
        assert_int_equal(perfd_recording_writer_put(w, PERF_RECORD_KSYMBOL, 0, &r, sizeof(r)), 0);
}

static void write_all(const char *path) {
        static const uint64_t ids[] = { 1 };
        const perfd_recorded_event e = { .name = "cpu-clock", .type = PERF_TYPE_SOFTWARE, .sample_type = PERF_SAMPLE_IDENTIFIER,
                                         .flags = PERFD_ATTR_SAMPLE_ID_ALL, .ids = ids, .n_ids = 1 };
        perfd_recording_writer *w = perfd_recording_writer_new();

        assert_int_equal(perfd_recording_writer_open(w, path, 0), 0);
        assert_int_equal(perfd_recording_writer_add_event(w, &e), 0);
        for (size_t i = 0; i < N; i++)
                put(w, &functions[i]);
        assert_int_equal(perfd_recording_writer_close(w), 0);
        perfd_recording_writer_free(w);
}

static void test_functions(void **state) {
        perfd_symbolizer_options options = PERFD_SYMBOLIZER_OPTIONS_INIT;
        char directory[] = "/tmp/perfd-test.XXXXXX", path[64];
        perfd_recording *r = perfd_recording_new();
        const perfd_recorded *record;
        perfd_symbolizer *s;

        (void)state;
        assert_non_null(mkdtemp(directory));
        (void)snprintf(path, sizeof(path), "%s/perf.data", directory);
        write_all(path);
        options.is_remote = true;
        s = perfd_symbolizer_new(&options);
        assert_int_equal(perfd_recording_open(r, path), 0);
        while (perfd_recording_next(r, &record) == 0)
                assert_int_equal(perfd_symbolizer_feed(s, r, record), 0);
        assert_int_equal(perfd_recording_damage_count(r), 0);
        for (size_t i = 0; i < N; i++) {
                perfd_frame f;

                assert_int_equal(perfd_symbolizer_find(s, 1, 1000, BASE + functions[i].at + 0xff, true, &f), 0);
                assert_int_equal(f.symbol.length, strlen(functions[i].symbol));
                assert_memory_equal(f.symbol.bytes, functions[i].symbol, f.symbol.length);
                assert_int_equal(f.offset, 0xff);
                assert_int_equal(f.dso.length, strlen(functions[i].dso));
                assert_memory_equal(f.dso.bytes, functions[i].dso, f.dso.length);
                assert_int_equal(perfd_symbolizer_find(s, 1, 1000, BASE + functions[i].at + 0x100, true, &f), 0);
                assert_int_equal(f.symbol.length, 0);
        }
        perfd_symbolizer_free(s);
        perfd_recording_free(r);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(rmdir(directory), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_functions) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
