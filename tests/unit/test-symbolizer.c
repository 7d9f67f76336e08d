/*
 * Names of addresses, from maps and lists that are written here: what comes out of order, what forks, what is moved, and what is more than
 * there is room for. Files of compilers are read by an integration test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/perfd.h"
#include "client/symbols/jitdump.h"
#include "client/symbols/symbolizer.h"

/* ---- jitdump files ------------------------------------------------------------------------------------------------------------ */

typedef struct Dump {
        uint8_t bytes[1024];
        size_t n;
        bool swap;
} Dump;

static void put(Dump *d, uint64_t v, size_t size) {
        for (size_t i = 0; i < size; i++)
                d->bytes[d->n++] = (uint8_t)(v >> 8 * (d->swap ? size - 1 - i : i));
}

static void put_header(Dump *d, uint64_t flags) {
        const uint32_t header[] = { 0x4A695444, 1, 40, 62, 0, 7 };

        for (int i = 0; i < 6; i++)
                put(d, header[i], 4);
        put(d, 1, 8);
        put(d, flags, 8);
}

static void put_load(Dump *d, uint64_t time, uint64_t address, const char *name) {
        put(d, JIT_CODE_LOAD, 4);
        put(d, 16 + 40 + strlen(name) + 1 + 4, 4);
        put(d, time, 8);
        put(d, 7, 4);
        put(d, 7, 4);
        put(d, address, 8);
        put(d, address, 8);
        put(d, 0x20, 8);
        put(d, 1, 8);
        memcpy(d->bytes + d->n, name, strlen(name) + 1);
        d->n += strlen(name) + 1;
        put(d, 0xcccccccc, 4);
}

static void put_move(Dump *d, uint64_t time, uint64_t from, uint64_t to) {
        put(d, JIT_CODE_MOVE, 4);
        put(d, 16 + 48, 4);
        put(d, time, 8);
        put(d, 7, 4);
        put(d, 7, 4);
        put(d, to, 8);
        put(d, from, 8);
        put(d, to, 8);
        put(d, 0x20, 8);
        put(d, 1, 8);
}

static void put_other(Dump *d, uint32_t type, size_t n) {
        put(d, type, 4);
        put(d, 16 + n, 4);
        put(d, 2, 8);
        for (size_t i = 0; i < n; i++)
                put(d, 0xff, 1);
}

static Dump make_dump(bool swap) {
        Dump d = { .swap = swap };

        put_header(&d, 0);
        put_other(&d, JIT_CODE_DEBUG_INFO, 48);
        put_load(&d, 100, 0x1000, "jitted");
        put_other(&d, JIT_CODE_UNWINDING_INFO, 24);
        put_move(&d, 200, 0x1000, 0x5000);
        put_load(&d, 300, 0x1000, "second");
        put_other(&d, JIT_CODE_CLOSE, 0);
        put_load(&d, 400, 0x9000, "behind the end");
        return d;
}

static int count_records(const uint8_t *bytes, size_t n) {
        JitHeader header;
        JitRecord record;
        int found = 0;

        if (!jitdump_read_header(bytes, n, &header))
                return -1;
        for (size_t i = header.size; i < n && jitdump_read_record(&header, bytes + i, n - i, &record) == 1; i += record.size)
                found++;
        return found;
}

/* In either byte order, and cut off at each byte: what is whole is read. */
static void test_jitdump(void **state) {
        for (int swap = 0; swap < 2; swap++) {
                Dump d = make_dump(swap != 0);
                int before = -1;

                assert_int_equal(count_records(d.bytes, d.n), 7);
                for (size_t n = 0; n < d.n; n++) {
                        uint8_t *exact = malloc(n ? n : 1);
                        int found;

                        memcpy(exact, d.bytes, n);
                        found = count_records(exact, n);
                        assert_true(found >= before && found <= 7);
                        before = found;
                        free(exact);
                }
        }
}

/* ---- processes --------------------------------------------------------------------------------------------------------------- */

static perfd_symbolizer *new_symbols(size_t memory_max) {
        perfd_symbolizer_options options = PERFD_SYMBOLIZER_OPTIONS_INIT;
        perfd_symbolizer *s;

        options.is_remote = true;
        options.is_monotonic = true;
        options.memory_max = memory_max;
        options.build_ids = "/nonexistent";
        s = perfd_symbolizer_new(&options);
        assert_non_null(s);
        return s;
}

static void map(perfd_symbolizer *s, uint32_t pid, uint64_t time, uint64_t start, uint64_t length, const char *path) {
        perfd_mapping m = PERFD_MAPPING_INIT;

        m.pid = pid;
        m.time = time;
        m.start = start;
        m.length = length;
        m.offset = 0x400;
        m.path = symbols_text(path);
        assert_int_equal(perfd_symbolizer_map(s, &m), 0);
}

static void assert_dso(perfd_symbolizer *s, uint32_t pid, uint64_t time, uint64_t ip, const char *path) {
        perfd_frame frame;

        for (int again = 0; again < 2; again++) { /* the second one is in the cache */
                assert_int_equal(perfd_symbolizer_find(s, pid, time, ip, false, &frame), 0);
                assert_int_equal(frame.dso.length, strlen(path));
                assert_memory_equal(frame.dso.bytes, path, strlen(path));
                assert_int_equal(frame.symbol.length, 0);
                assert_true(frame.note[0] && frame.ip == ip);
        }
}

/* Whatever the order in which they come, the one that was there at the time. */
static void test_times(void **state) {
        static const int orders[][3] = { { 0, 1, 2 }, { 2, 1, 0 }, { 1, 2, 0 }, { 2, 0, 1 } };
        static const char *const paths[] = { "/none/a", "/none/b", "/none/c" };

        for (int o = 0; o < 4; o++) {
                perfd_symbolizer *s = new_symbols(0);

                for (int i = 0; i < 3; i++)
                        map(s, 7, 100 * (uint64_t)(orders[o][i] + 1), 0x1000 + 0x100 * (uint64_t)orders[o][i], 0x1000, paths[orders[o][i]]);
                assert_dso(s, 7, 99, 0x1800, "");
                assert_dso(s, 7, 100, 0x1800, "/none/a");
                assert_dso(s, 7, 199, 0x1800, "/none/a");
                assert_dso(s, 7, 200, 0x1800, "/none/b");
                assert_dso(s, 7, 300, 0x1800, "/none/c");
                assert_dso(s, 7, 300, 0x1000, "/none/a");
                assert_dso(s, 7, 300, 0x11ff, "/none/b");
                assert_dso(s, 7, 300, 0x2200, "");
                assert_dso(s, 8, 300, 0x1800, "");
                perfd_symbolizer_free(s);
        }
}

static void test_exec_and_fork(void **state) {
        perfd_symbolizer *s = new_symbols(0);

        map(s, 1, 0, 0x1000, 0x1000, "/none/shell");
        assert_int_equal(perfd_symbolizer_fork(s, 2, 1, 100), 0);
        assert_int_equal(perfd_symbolizer_fork(s, 3, 2, 110), 0);
        map(s, 1, 105, 0x5000, 0x1000, "/none/later");
        assert_int_equal(perfd_symbolizer_exec(s, 2, 200), 0);
        map(s, 2, 201, 0x8000, 0x1000, "/none/program");
        assert_int_equal(perfd_symbolizer_exit(s, 2), 0);
        assert_int_equal(perfd_symbolizer_fork(s, 2, 1, 300), 0); /* another one of that pid */
        assert_int_equal(perfd_symbolizer_fork(s, 1, 1, 301), 0); /* a thread */
        assert_dso(s, 2, 99, 0x1000, "");
        assert_dso(s, 2, 150, 0x1fff, "/none/shell");
        assert_dso(s, 3, 400, 0x1fff, "/none/shell");
        assert_dso(s, 2, 150, 0x5000, "");
        assert_dso(s, 2, 250, 0x1fff, "");
        assert_dso(s, 2, 250, 0x8000, "/none/program");
        assert_dso(s, 2, 299, 0x8000, "/none/program");
        assert_dso(s, 2, 300, 0x8000, "");
        assert_dso(s, 2, 300, 0x5000, "/none/later");
        assert_dso(s, 1, 400, 0x1000, "/none/shell");
        perfd_symbolizer_free(s);
}

/* A circle of parents ends. */
static void test_fork_circle(void **state) {
        perfd_symbolizer *s = new_symbols(0);

        for (uint32_t pid = 1; pid <= 3; pid++)
                assert_int_equal(perfd_symbolizer_fork(s, pid, pid % 3 + 1, 50), 0);
        assert_dso(s, 1, 100, 0x1000, "");
        perfd_symbolizer_free(s);
}

static void test_invalid(void **state) {
        perfd_symbolizer *s = new_symbols(0);
        perfd_mapping m = PERFD_MAPPING_INIT;
        char id[33] = { 0 };

        m.start = UINT64_MAX - 10;
        m.length = 11;
        m.path = symbols_text("/none/a");
        assert_int_equal(perfd_symbolizer_map(s, &m), PERFD_E_INVALID);
        m.length = 10;
        assert_int_equal(perfd_symbolizer_map(s, &m), 0);
        m.build_id = (perfd_text){ .bytes = id, .length = 33 };
        assert_int_equal(perfd_symbolizer_map(s, &m), PERFD_E_INVALID);
        assert_int_equal(perfd_symbolizer_ksymbol(s, 0, UINT64_MAX, 1, symbols_text("x"), false), PERFD_E_INVALID);
        assert_int_equal(perfd_symbolizer_set_build_id(s, symbols_text("/a"), symbols_text("")), PERFD_E_INVALID);
        perfd_symbolizer_free(s);
}

/* Ten thousand processes in the memory of few: the last ones are there. */
static void test_memory(void **state) {
        perfd_symbolizer *s = new_symbols((size_t)2 << 20);
        perfd_symbolizer_counts counts;

        for (uint32_t pid = 1; pid <= 10000; pid++)
                for (uint64_t i = 0; i < 8; i++) {
                        char path[32];

                        snprintf(path, sizeof(path), "/none/%u", pid);
                        map(s, pid, 5, 0x1000 * (i + 1), 0x1000, path);
                }
        perfd_symbolizer_get_counts(s, &counts);
        assert_true(counts.bytes <= (size_t)2 << 20);
        assert_int_equal(counts.mappings + counts.forgotten, 80000);
        assert_true(counts.processes >= 500 && counts.processes < 10000);
        assert_dso(s, 10000, 5, 0x8fff, "/none/10000");
        assert_dso(s, 1, 5, 0x8fff, "");
        perfd_symbolizer_free(s);
}

/* One with too many has those that came first. */
static void test_process_limit(void **state) {
        perfd_symbolizer *s = new_symbols(0);
        perfd_symbolizer_counts counts;

        for (uint64_t i = 0; i < 66000; i++)
                map(s, 1, i, 0x1000 * (i + 1), 0x1000, "/none/a");
        perfd_symbolizer_get_counts(s, &counts);
        assert_int_equal(counts.mappings, 65536);
        assert_int_equal(counts.forgotten, 66000 - 65536);
        perfd_symbolizer_free(s);
}

/* ---- the kernel -------------------------------------------------------------------------------------------------------------- */

static void assert_kernel(perfd_symbolizer *s, uint64_t time, uint64_t ip, const char *symbol, uint64_t offset, const char *dso) {
        perfd_frame frame;

        assert_int_equal(perfd_symbolizer_find(s, 0, time, ip, true, &frame), 0);
        assert_int_equal(frame.symbol.length, strlen(symbol));
        assert_memory_equal(frame.symbol.bytes, symbol, strlen(symbol));
        assert_int_equal(frame.offset, offset);
        assert_int_equal(frame.dso.length, strlen(dso));
        assert_memory_equal(frame.dso.bytes, dso, strlen(dso));
        assert_int_equal(frame.note[0] != '\0', symbol[0] == '\0');
}

static void test_ksymbol(void **state) {
        perfd_symbolizer *s = new_symbols(0);

        assert_int_equal(perfd_symbolizer_ksymbol(s, 200, 0x1000, 0x100, symbols_text("bpf_prog_a"), true), 0);
        assert_int_equal(perfd_symbolizer_ksymbol(s, 100, 0x1000, 0x100, symbols_text("bpf_prog_a"), false), 0);
        assert_int_equal(perfd_symbolizer_ksymbol(s, 300, 0x1080, 0x100, symbols_text("bpf_prog_b"), false), 0);
        assert_kernel(s, 99, 0x1010, "", 0, "[kernel.kallsyms]");
        assert_kernel(s, 100, 0x1090, "bpf_prog_a", 0x90, "bpf_prog_a");
        assert_kernel(s, 250, 0x1090, "", 0, "[kernel.kallsyms]");
        assert_kernel(s, 300, 0x1090, "bpf_prog_b", 0x10, "bpf_prog_b");
        perfd_symbolizer_free(s);
}

static const char kallsyms[] = "ffff000000001000 T _text\n"
                               "ffff000000001000 T _stext\n"
                               "ffff000000001100 t first\n"
                               "ffff000000001200 D no_text\n"
                               "ffff000000001300 W second\n"
                               "ffff000000100000 t of_module\t[ext4]\n"
                               "ffff000000100100 T other_of_module\t[ext4]\n"
                               "nonsense\n";

static perfd_symbolizer *new_kernel(const char *path, uint64_t text) {
        perfd_symbolizer_options options = PERFD_SYMBOLIZER_OPTIONS_INIT;
        perfd_mapping m = PERFD_MAPPING_INIT;
        FILE *f = fopen(path, "w");
        perfd_symbolizer *s;

        assert_true(f && fputs(kallsyms, f) >= 0 && fclose(f) == 0);
        options.kallsyms = path;
        options.is_remote = true;
        s = perfd_symbolizer_new(&options);
        assert_non_null(s);
        if (text != 0) {
                m.is_kernel = true;
                m.start = m.offset = text;
                m.length = 0x10000;
                m.path = symbols_text("[kernel.kallsyms]_text");
                assert_int_equal(perfd_symbolizer_map(s, &m), 0);
        }
        return s;
}

static void test_kernel(void **state) {
        char path[] = "/tmp/perfd-test-symbols.XXXXXX";
        int fd = mkstemp(path);
        perfd_symbolizer *s = new_kernel(path, 0);

        assert_true(fd >= 0 && close(fd) == 0);
        assert_kernel(s, 0, 0xffff000000001000, "_stext", 0, "[kernel.kallsyms]");
        assert_kernel(s, 0, 0xffff0000000012ff, "first", 0x1ff, "[kernel.kallsyms]");
        assert_kernel(s, 0, 0xffff000000001300, "second", 0, "[kernel.kallsyms]");
        assert_kernel(s, 0, 0xffff000000100104, "other_of_module", 4, "[ext4]");
        assert_kernel(s, 0, 0xffff000000000fff, "", 0, "[kernel.kallsyms]");
        perfd_symbolizer_free(s);
        /* elsewhere at that boot, where modules were who knows where */
        s = new_kernel(path, 0xffff000008001000);
        assert_kernel(s, 0, 0xffff000008001104, "first", 4, "[kernel.kallsyms]");
        assert_kernel(s, 0, 0xffff000008100104, "", 0, "[kernel.kallsyms]");
        perfd_symbolizer_free(s);
        unlink(path);
}

static void assert_module(perfd_symbolizer *s, uint64_t time, uint64_t ip, const char *symbol, const char *dso, const char *id, uint64_t address) {
        perfd_frame frame;

        assert_kernel(s, time, ip, symbol, symbol[0] ? ip & 0xff : 0, dso);
        assert_int_equal(perfd_symbolizer_find(s, 0, time, ip, true, &frame), 0);
        assert_int_equal(frame.build_id.length, strlen(id));
        assert_memory_equal(frame.build_id.bytes, id, strlen(id));
        assert_int_equal(frame.address, address);
}

static void map_module(perfd_symbolizer *s, uint64_t time, uint64_t start, const char *path, const char *id) {
        perfd_mapping m = PERFD_MAPPING_INIT;

        m.is_kernel = true;
        m.time = time;
        m.start = start;
        m.length = 0x1000;
        m.path = symbols_text(path);
        m.build_id = symbols_text(id);
        assert_int_equal(perfd_symbolizer_map(s, &m), 0);
}

static void put_notes(const char *folder, const char *id) {
        const uint32_t head[] = { 4, (uint32_t)strlen(id), 3 };
        char path[128];
        FILE *f;

        snprintf(path, sizeof(path), "mkdir -p %s/ext4/notes", folder);
        assert_int_equal(system(path), 0);
        snprintf(path, sizeof(path), "%s/ext4/notes/.note.gnu.build-id", folder);
        f = fopen(path, "w");
        assert_true(f && fwrite(head, sizeof(head), 1, f) == 1 && fwrite("GNU", 4, 1, f) == 1 && fputs(id, f) >= 0 && fclose(f) == 0);
}

static void remove_notes(const char *folder) {
        char command[128];

        snprintf(command, sizeof(command), "rm -r %s", folder);
        assert_int_equal(system(command), 0);
}

/* Frames of modules: of a recording, by what it says of that time, and of the kernel that runs, which may have loaded something else since. */
static void test_modules(void **state) {
        char path[] = "/tmp/perfd-test-symbols.XXXXXX", folder[] = "/tmp/perfd-test-modules.XXXXXX";
        const uint64_t at = 0xffff000000100000;
        int fd = mkstemp(path);
        perfd_symbolizer *s = new_kernel(path, 0);

        assert_true(fd >= 0 && close(fd) == 0);
        assert_non_null(mkdtemp(folder));
        put_notes(folder, "this one");
        /* live: what runs says its id, and that is not the kernel's */
        assert_int_equal(perfd_symbolizer_set_build_id(s, symbols_text("[kernel.kallsyms]"), symbols_text("the kernel")), 0);
        s->kernel.modules_folder = folder;
        assert_module(s, 0, at + 4, "of_module", "[ext4]", "this one", at + 4);
        assert_module(s, 0, 0xffff000000001104, "first", "[kernel.kallsyms]", "the kernel", 0xffff000000001104);
        perfd_symbolizer_free(s);
        /* recorded by perf: the file, and its id in the list of the recording; another one was there before */
        s = new_kernel(path, 0);
        s->kernel.modules_folder = folder;
        assert_int_equal(perfd_symbolizer_set_build_id(s, symbols_text("/lib/modules/6/ext4.ko.xz"), symbols_text("this one")), 0);
        map_module(s, 0, at, "/lib/modules/6/old-er.ko", "old id");
        map_module(s, 100, at, "/lib/modules/6/ext4.ko.xz", "");
        map_module(s, 200, at, "[ext4]", "other id");
        map_module(s, 300, at, "[ext4]", "");
        map_module(s, 0, 0xffff000000200000, "/lib/modules/6/far.ko.zst", "far id");
        map_module(s, 0, 0xffff000000001000, "[was]", "was id"); /* where the kernel's own text is now */
        assert_module(s, 99, at + 0x104, "", "[old_er]", "old id", 0x104);
        assert_module(s, 100, at + 0x104, "other_of_module", "[ext4]", "this one", 0x104);
        assert_module(s, 200, at + 0x104, "", "[ext4]", "other id", 0x104);
        assert_module(s, 300, at + 0x104, "other_of_module", "[ext4]", "this one", 0x104);
        assert_module(s, 300, 0xffff000000200010, "", "[far]", "far id", 0x10);
        assert_module(s, 300, 0xffff000000001104, "", "[was]", "was id", 0x104);
        perfd_symbolizer_free(s);
        remove_notes(folder);
        unlink(path);
}

/* ---- JIT code of a process --------------------------------------------------------------------------------------------------- */

static void assert_code(perfd_symbolizer *s, uint64_t time, uint64_t ip, const char *symbol, uint64_t offset) {
        perfd_frame frame;

        assert_int_equal(perfd_symbolizer_find(s, 7, time, ip, false, &frame), 0);
        assert_int_equal(frame.symbol.length, strlen(symbol));
        assert_memory_equal(frame.symbol.bytes, symbol, strlen(symbol));
        assert_int_equal(frame.offset, offset);
}

static void test_jitted(void **state) {
        for (int swap = 0; swap < 2; swap++) {
                char folder[] = "/tmp/perfd-test-symbols.XXXXXX", path[64];
                Dump d = make_dump(swap != 0);
                perfd_symbolizer *s = new_symbols(0);
                FILE *f;

                assert_non_null(mkdtemp(folder));
                snprintf(path, sizeof(path), "%s/jit-7.dump", folder);
                f = fopen(path, "w");
                assert_true(f && fwrite(d.bytes, d.n, 1, f) == 1 && fclose(f) == 0);
                map(s, 7, 50, 0x100000, 0x1000, path);
                map(s, 7, 60, 0x1000, 0x10000, "//anon");
                assert_code(s, 99, 0x1010, "", 0);
                assert_code(s, 100, 0x1010, "jitted", 0x10);
                assert_code(s, 199, 0x1010, "jitted", 0x10);
                assert_code(s, 200, 0x1010, "", 0);
                assert_code(s, 200, 0x5001, "jitted", 1);
                assert_code(s, 300, 0x1010, "second", 0x10);
                assert_code(s, 500, 0x9000, "", 0);
                perfd_symbolizer_free(s);
                unlink(path);
                rmdir(folder);
        }
}

/* A FIFO is not opened, which would wait for its writer, and no file is believed that is none. */
static void test_no_regular_file(void **state) {
        char folder[] = "/tmp/perfd-test-symbols.XXXXXX", path[64];
        perfd_symbolizer *s = new_symbols(0);

        assert_non_null(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/fifo", folder);
        assert_int_equal(mkfifo(path, 0600), 0);
        map(s, 7, 0, 0x1000, 0x1000, path);
        assert_dso(s, 7, 0, 0x1000, path);
        map(s, 7, 0, 0x3000, 0x1000, folder);
        assert_dso(s, 7, 0, 0x3000, folder);
        map(s, 7, 0, 0x5000, 0x1000, "/dev/full");
        assert_dso(s, 7, 0, 0x5000, "/dev/full");
        perfd_symbolizer_free(s);
        unlink(path);
        rmdir(folder);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_jitdump),
                cmocka_unit_test(test_times),
                cmocka_unit_test(test_exec_and_fork),
                cmocka_unit_test(test_fork_circle),
                cmocka_unit_test(test_invalid),
                cmocka_unit_test(test_memory),
                cmocka_unit_test(test_process_limit),
                cmocka_unit_test(test_ksymbol),
                cmocka_unit_test(test_kernel),
                cmocka_unit_test(test_modules),
                cmocka_unit_test(test_jitted),
                cmocka_unit_test(test_no_regular_file),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
