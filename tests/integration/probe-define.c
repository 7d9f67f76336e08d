/*
 * Probes on the real kernel: each is defined, opened, hit exactly N times, and gone afterwards. Needs root, and tracefs
 * to be mounted. Kernel probes are tested where the kernel has them, and their refusal where it has not.
 */
#include "tests/integration/probe-define.h"

#include <inttypes.h>

#include "daemon/kernel/probe/dynamic.h"

#define RECORDS_SIZE (1 + 8) /* pages of a ring */

Tracing tracing;
const char *place;
bool has_kprobes;
char group[PROBE_GROUP_SIZE];

/* Every site counts exactly N calls, and the definition lives as long as the Probe. */
static void check_counts(const char *event, const char *args, size_t n_sites, const char *text) {
        Probe *p = define(event, args, 0, 7);
        Program program = program_start(place, NULL);
        int fds[4];
        unsigned semaphore;

        assert_int_equal(probe_n_attrs(p), n_sites);
        assert_int_equal(count_lines(false, group), n_sites);
        assert_true(probe_is_exact(p));
        if (!strstr(probe_text(p), text))
                fail_msg("%s: '%s'", event, probe_text(p));
        for (size_t i = 0; i < n_sites; i++) {
                assert_true(probe_attr(p, i).is_dynamic);
                fds[i] = open_probe_on(p, i, program.pid);
        }
        semaphore = program_call(&program, N);
        assert_int_equal(semaphore, strncmp(event, "usdt:", 5) == 0 ? n_sites : 0);
        for (size_t i = 0; i < n_sites; i++) {
                assert_int_equal(read_count(fds[i]), N);
                close(fds[i]);
        }
        assert_int_equal(program_call(&program, 0), 0); /* the kernel has taken the semaphore back */
        program_end(&program);
        assert_null(probe_free(p));
        assert_nothing_left();
}

static void test_user(void **state) {
        ElfPlace work = find_place("place_work"), inside = find_place("place_inside");
        char event[256];

        assert_true(inside.address > work.address);
        check_counts("uprobe:PLACE:place_work", NULL, 1, ":place_work (build id ");
        check_counts("uprobe:PLACE:place_work", "", 1, ":place_work");
        check_counts("uprobe:PLACE:place_work", "n=" ARG0 ":s64", 1, ":place_work");
        check_counts("uretprobe:PLACE:place_work", NULL, 1, ":place_work");
        check_counts("uretprobe:PLACE:place_work", "sum=$retval:s64", 1, ":place_work");
        check_counts("uprobe:PLACE:nowhere|place_other|place_work", NULL, 1, ":place_other");
        (void)snprintf(event, sizeof(event), "uprobe:PLACE:place_work+0x%" PRIx64, inside.address - work.address);
        check_counts(event, NULL, 1, strrchr(event, ':'));
        check_counts(event, "sp=%sp", 1, strrchr(event, ':'));
        (void)snprintf(event, sizeof(event), "uprobe:PLACE:0x%" PRIx64, inside.address);
        check_counts(event, NULL, 1, strrchr(event, ':'));
        check_counts("usdt:PLACE:perfd_place:ready", "", 2, ":perfd_place:ready (2 sites, build id ");
        check_counts("usdt:PLACE:perfd_place:ready", NULL, 2, ":perfd_place:ready (2 sites, build id ");
        check_counts("usdt:PLACE:perfd_place:ready", "sp=%sp", 2, ":perfd_place:ready (2 sites");
}

/* Where nothing can be defined, it is the PMU's, whose hits the kernel does not count for sure. */
static void test_pmu(void **state) {
        Tracing empty = { .root = strdup("/tmp/perfd-empty-XXXXXX") };
        EventName name = EVENT_NAME_NULL;
        Explanation e = EXPLANATION_NULL;
        Probe *p = NULL;
        uint64_t hits, missed;
        Program program;
        char text[256];
        int fd;

        assert_non_null(mkdtemp(empty.root));
        (void)snprintf(text, sizeof(text), "uprobe:%s:place_work", place);
        assert_int_equal(event_name_parse(text, &name, &e), 0);
        if (probe_define(&empty, &(ProbeRequest){ .name = &name, .id = 7 }, &p, &e) != 0)
                fail_msg("%s", e.text);
        assert_false(probe_attr(p, 0).is_dynamic);
        assert_false(probe_is_exact(p));
        assert_false(probe_read_profile(&tracing, p, &hits, &missed));
        assert_non_null(strstr(probe_text(p), "), by the PMU: a hit may count twice or not at all"));
        program = program_start(place, NULL);
        fd = open_probe_on(p, 0, program.pid);
        (void)program_call(&program, N);
        assert_int_equal(read_count(fd), N); /* one fd for all CPUs is exact */
        close(fd);
        program_end(&program);
        assert_null(probe_free(p));

        assert_int_equal(probe_define(&empty, &(ProbeRequest){ .name = &name, .id = 7, .args = "a=%sp" }, &p, &e),
                         REFUSED_UNSUPPORTED);
        assert_string_equal(e.reason, "no-uprobes");
        event_name_deinit(&name);
        assert_int_equal(rmdir(empty.root), 0);
        free(empty.root);
}

static int64_t number_of(const Plan *plan, const char *name, const uint8_t *raw, size_t size) {
        const PlanField *f = plan_find(plan, name);
        const uint8_t *bytes = NULL;
        uint32_t n;

        assert_non_null(f);
        assert_int_equal(field_locate(f, raw, size, &bytes, &n), 0);
        return (int64_t)field_load(bytes, f->element_size, f->kind == FIELD_SIGNED);
}

static void assert_text_of(const Plan *plan, const char *name, const uint8_t *raw, size_t size, const char *text) {
        const PlanField *f = plan_find(plan, name);
        const uint8_t *bytes = NULL;
        uint32_t n;

        assert_non_null(f);
        assert_int_equal(f->kind, FIELD_TEXT);
        assert_int_equal(field_locate(f, raw, size, &bytes, &n), 0);
        assert_true(n > strlen(text));
        assert_string_equal((const char *)bytes, text);
}

/* The n-th sample holds the n-th call's number and text, under the user's own names. */
static void check_fields(const char *event, const char *args, const char *number, long first, const char *text) {
        size_t size = RECORDS_SIZE * (size_t)sysconf(_SC_PAGESIZE);
        Probe *p = define(event, args, 0, 8);
        Program program = program_start(place, NULL);
        Plan *plan = load_plan(p, 0);
        int fd = open_probe_on(p, 0, program.pid);
        struct perf_event_mmap_page *ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        const uint8_t *data = (uint8_t *)ring + sysconf(_SC_PAGESIZE);
        uint64_t at = 0;

        assert_ptr_not_equal(ring, MAP_FAILED);
        (void)program_call(&program, 10);
        for (long i = 0; i < 10; i++) {
                struct perf_event_header header;
                char expected[32];
                uint32_t n_raw;

                assert_true(at < ring->data_head);
                memcpy(&header, data + at, sizeof(header));
                memcpy(&n_raw, data + at + sizeof(header), sizeof(n_raw));
                assert_int_equal(header.type, PERF_RECORD_SAMPLE);
                assert_int_equal(number_of(plan, number, data + at + 12, n_raw), first + i);
                (void)snprintf(expected, sizeof(expected), "text %ld", i);
                if (text)
                        assert_text_of(plan, text, data + at + 12, n_raw, expected);
                at += header.size;
        }
        assert_int_equal(at, ring->data_head);
        munmap(ring, size);
        close(fd);
        program_end(&program);
        plan_unref(plan);
        probe_free(p);
        assert_nothing_left();
}

static void test_fields(void **state) {
        check_fields("uprobe:PLACE:place_work", "\n  number=" ARG0 ":s64\t name=+0(" ARG1 "):string ", "number", 0,
                     "name");
        check_fields("uretprobe:PLACE:place_work", "sum=$retval:s64", "sum", 1000, NULL);
        check_fields("usdt:PLACE:perfd_place:ready", NULL, "arg1", 0, NULL);
}

static void test_refused(void **state) {
        static const char work[] = "uprobe:PLACE:place_work";
        char path[] = "/tmp/perfd-no-elf-XXXXXX", event[64];
        int fd = mkstemp(path);

        assert_int_equal(write(fd, "#!/bin/sh\n", 10), 10);
        close(fd);
        (void)snprintf(event, sizeof(event), "uprobe:%s:main", path);
        check_refused(event, NULL, 0, REFUSED_INVALID, "bad-elf", 0, path);
        unlink(path);
        check_refused(event, NULL, 0, REFUSED_NOT_FOUND, "no-file", 0, path);
        check_refused("uprobe:PLACE:place_wokr", NULL, 0, REFUSED_NOT_FOUND, "unknown-symbol", 0, "place_work");
        check_refused("usdt:PLACE:perfd_place:raedy", NULL, 0, REFUSED_NOT_FOUND, "unknown-probe", 0, "ready");
        check_refused(work, "a=%sp:bogus", 0, REFUSED_INVALID, "bad-args", 7, "Unknown type is specified");
        /* the kernel sees one blank and says where; the user had more */
        check_refused(work, "\n\n a=%sp  \t b=%zz:x64", 0, REFUSED_INVALID, "bad-args", 15, "Invalid register name");
        check_refused(work, "a=%sp a=%sp", 0, REFUSED_INVALID, "bad-args", 7, "kernel refuses the fetch args");
        /* said a second time, though the log has it already */
        check_refused(work, "a=%sp:bogus", 0, REFUSED_INVALID, "bad-args", 7, "Unknown type is specified");
        check_refused(work, "a=%sp # all", 0, REFUSED_INVALID, "bad-args", 7, "comment");
        check_refused(work, "a=%sp\n-:x/y", 0, REFUSED_INVALID, "bad-args", 9, "Unknown type is specified");
        check_refused("uretprobe:PLACE:place_work", NULL, 8, REFUSED_INVALID, "bad-maxactive", 0, "kretprobe");
}

/* Without root: what is missing is said. */
static void test_denied(void **state) {
        char path[] = "/tmp/perfd-denied-XXXXXX", *symbols[] = { (char *)"place_work" };
        EventName name = { .kind = EVENT_NAME_UPROBE, .path = path };
        int status;
        pid_t pid;

        name.place = (ProbePlace){ .symbols = symbols, .n_symbols = 1 };
        close(mkstemp(path));
        copy_file(place, path);
        pid = fork();
        if (pid == 0) {
                Explanation e = EXPLANATION_NULL;
                Probe *p = NULL;

                if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
                        _exit(2);
                if (define_named(&name, "a=%sp", 0, 1, &p, &e) != REFUSED_DENIED ||
                    strcmp(e.reason, "no-permission") != 0)
                        _exit(3);
                if (!strstr(e.text, "uprobe_events cannot be written: Permission denied"))
                        _exit(4);
                if (define_named(&name, NULL, 0, 1, &p, &e) != REFUSED_DENIED || strcmp(e.reason, "no-permission") != 0)
                        _exit(5);
                _exit(strstr(e.text, "uprobe_events cannot be written, and the uprobe PMU requires CAP_SYS_ADMIN") ? 0 : 6);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        unlink(path);
        assert_nothing_left();
}

/* The second site cannot be defined, so the first one is not either. */
static void test_undone(void **state) {
        Probe *p = define("usdt:PLACE:perfd_place:ready", "", 0, 1);
        uint64_t second = 0;
        char line[512];
        FILE *f = fopen("/sys/kernel/tracing/uprobe_events", "re");

        assert_non_null(f);
        while (second == 0 && fgets(line, sizeof(line), f))
                if (strstr(line, group) && strstr(line, probe_attr(p, 1).name))
                        (void)sscanf(line + strlen("p:"), "%*[^:]:0x%" SCNx64, &second);
        (void)fclose(f);
        assert_int_not_equal(second, 0);
        probe_free(p);
        /* one uprobe without the semaphore that ours has: the kernel refuses another one there */
        (void)snprintf(line, sizeof(line), "p:yprobe_foreign/second %s:0x%" PRIx64, place, second);
        write_line(false, line);
        check_refused("usdt:PLACE:perfd_place:ready", NULL, 0, REFUSED_INVALID, "bad-probe", 0, "another semaphore");
        assert_int_equal(count_lines(false, "yprobe_foreign/second"), 1);
        write_line(false, "-:yprobe_foreign/second");
}

/* A test that fails leaves what it defined, which the next ones would find. */
static int remove_own(void **state) {
        const char *const own[] = { group, "yprobe_foreign", "perfd_0123" };
        _cleanup_free_ char *text = read_text("/sys/kernel/tracing/uprobe_events");

        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
                char line_group[64], name[PROBE_NAME_SIZE];

                if (sscanf(line, "%*c:%63[^/]/%63s", line_group, name) != 2)
                        continue;
                for (size_t i = 0; i < ARRAY_SIZE(own); i++)
                        if (strcmp(line_group, own[i]) == 0)
                                (void)probe_definition_remove(tracing.root, false, line_group, name);
        }
        return 0;
}

int main(int argc, char **argv) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_teardown(test_user, remove_own),
                cmocka_unit_test_teardown(test_pmu, remove_own),
                cmocka_unit_test_teardown(test_fields, remove_own),
                cmocka_unit_test_teardown(test_refused, remove_own),
                cmocka_unit_test_teardown(test_denied, remove_own),
                cmocka_unit_test_teardown(test_undone, remove_own),
                cmocka_unit_test_teardown(test_same_id, remove_own),
                cmocka_unit_test_teardown(test_profile, remove_own),
                cmocka_unit_test_teardown(test_busy, remove_own),
                cmocka_unit_test_teardown(test_other_root, remove_own),
                cmocka_unit_test_teardown(test_leftovers, remove_own),
                cmocka_unit_test_teardown(test_kernel, remove_own),
                cmocka_unit_test_teardown(test_kernel_hidden, remove_own), /* the last: it stays so */
        };
        Explanation e = EXPLANATION_NULL;
        ProbeOwner self;

        if (argc != 2) {
                fprintf(stderr, "usage: probe-define PROBE-PLACE\n");
                return 2;
        }
        if (geteuid() != 0) {
                printf("probes need root\n");
                return 77;
        }
        if (tracing_open(&tracing, NULL, &e) != 0 || access("/sys/kernel/tracing/uprobe_events", W_OK) < 0) {
                printf("probes need tracefs on /sys/kernel/tracing and a kernel with uprobes: %s\n", e.text);
                return 77;
        }
        place = realpath(argv[1], NULL);
        if (!place || probe_owner_self(&self, &e) != 0) {
                fprintf(stderr, "%s: %s\n", argv[1], place ? e.text : strerror(errno));
                return 1;
        }
        probe_owner_group(&self, group);
        has_kprobes = access("/sys/kernel/tracing/kprobe_events", F_OK) == 0;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
