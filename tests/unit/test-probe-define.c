/*
 * Probes from the name of a function to what tracefs is told of them, in a folder that is laid out like tracefs: what is written
 * there, in which order, what is taken back, and what is said if the kernel refuses it. The kernel's answers to write(2) are played.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/thread.h"
#include "daemon/kernel/event/open.h"
#include "daemon/kernel/host/whole-file.h"
#include "daemon/kernel/pmu/pmu.h"
#include "daemon/kernel/probe/names.h"
#include "daemon/kernel/probe/probe.h"

static char root[] = "/tmp/perfd-test-probe-XXXXXX";
static Tracing tracing;
static char program[256], group[PROBE_GROUP_SIZE];
static int write_error;           /* of definitions; 0: they are taken */
static bool writes_half;          /* of them */
static const char *complaint;     /* of error_log, behind "error: "; NULL: it says nothing */
static const char *complained_at; /* the word of the definition that it points at */
static int open_error;            /* of perf_event_open(2) */

/* What is probed: an offset in this program is looked up by its name. */
__attribute__((noinline, used)) int probed_here(int x);
__attribute__((noinline, used)) int probed_here(int x) {
        return x + 1;
}

static void add_to_file(const char *name, const char *mode, const char *text) {
        char path[256];
        FILE *f;

        snprintf(path, sizeof(path), "%s/%s", root, name);
        f = fopen(path, mode);
        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
}

/* As trace_probe_log_err() of the kernel. */
static void complain(const char *line, size_t n) {
        char entry[2048];
        size_t at = complained_at ? (size_t)((const char *)memmem(line, n, complained_at, strlen(complained_at)) - line) : 0;

        snprintf(entry, sizeof(entry), "[    1.000000] trace_uprobe: error: %s\n  Command: %.*s\n%*s^\n", complaint, (int)n, line,
                 (int)(strlen("  Command: ") + at), "");
        add_to_file("error_log", "ae", entry);
}

ssize_t __real_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size) {
        char link[64], path[256] = "";
        ssize_t n;

        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, path, sizeof(path) - 1);
        if (n < 0 || strncmp(path, root, strlen(root)) != 0 || !strstr(path, "probe_events"))
                return __real_write(fd, data, size);
        if (write_error != 0) {
                if (complaint)
                        complain(data, size);
                errno = write_error;
                return -1;
        }
        if (writes_half)
                return (ssize_t)size / 2;
        if (__real_write(fd, data, size) != (ssize_t)size || __real_write(fd, "\n", 1) != 1)
                return -1;
        return (ssize_t)size;
}

static int play_open(struct perf_event_attr *attr, pid_t pid, int cpu, int leader, unsigned long flags) {
        errno = open_error;
        return open_error ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void check_file(const char *name, const char *expected) {
        _cleanup_free_ char *text = NULL;
        char path[256];
        size_t n;

        snprintf(path, sizeof(path), "%s/%s", root, name);
        assert_int_equal(whole_file_read(path, &text, &n), 0);
        assert_string_equal(text, expected);
}

static int clean_files(void **state) {
        write_error = 0;
        writes_half = false;
        complaint = complained_at = NULL;
        open_error = EACCES;
        add_to_file("uprobe_events", "we", "");
        add_to_file("kprobe_events", "we", "");
        add_to_file("error_log", "we", "");
        return 0;
}

static int set_up(void **state) {
        Explanation e = EXPLANATION_NULL;
        ProbeOwner self;
        char path[64];
        ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

        thread_become(THREAD_MAIN);
        open_perf_event = play_open;
        if (n < 0 || !mkdtemp(root) || probe_owner_self(&self, &e) != 0)
                return -1;
        probe_owner_group(&self, group);
        snprintf(path, sizeof(path), "%s/events", root);
        if (mkdir(path, 0700) < 0)
                return -1;
        return tracing_open(&tracing, root, &e);
}

static int tear_down(void **state) {
        static const char *const files[] = { "uprobe_events", "kprobe_events", "error_log", "uprobe_profile", "kprobe_profile" };
        char path[64];

        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                snprintf(path, sizeof(path), "%s/%s", root, files[i]);
                (void)unlink(path);
        }
        snprintf(path, sizeof(path), "%s/events", root);
        tracing_close(&tracing);
        return rmdir(path) < 0 || rmdir(root) < 0;
}

static int define(const char *text, ProbeRequest q, Probe **ret, Explanation *e) {
        _cleanup_(event_name_deinit) EventName name = EVENT_NAME_NULL;

        *ret = NULL;
        assert_int_equal(event_name_parse(text, &name, e), 0);
        q.name = &name;
        q.id = 12;
        return probe_define(&tracing, &q, ret, e);
}

static int define_here(const char *kind, ProbeRequest q, Probe **ret, Explanation *e) {
        char text[512];

        snprintf(text, sizeof(text), "%s:%s:probed_here", kind, program);
        return define(text, q, ret, e);
}

/* The offset of probed_here() in this file, as probe_define() found it. */
static uint64_t written_offset(void) {
        _cleanup_free_ char *text = NULL;
        char path[256], *at;
        size_t n;

        snprintf(path, sizeof(path), "%s/uprobe_events", root);
        assert_int_equal(whole_file_read(path, &text, &n), 0);
        at = strstr(text, ":0x");
        assert_non_null(at);
        return strtoull(at + 1, NULL, 16);
}

/* events/GROUP/NAME: what is defined has one. */
static void make_event_folder(const char *of, const char *name, bool is_there) {
        char path[256];

        snprintf(path, sizeof(path), "%s/events/%s", root, of);
        if (is_there)
                assert_int_equal(mkdir(path, 0700), 0);
        snprintf(path, sizeof(path), "%s/events/%s/%s", root, of, name);
        assert_int_equal(is_there ? mkdir(path, 0700) : rmdir(path), 0);
        snprintf(path, sizeof(path), "%s/events/%s", root, of);
        if (!is_there)
                assert_int_equal(rmdir(path), 0);
}

/* The code of the function, as the file has it, is what is defined; and it is taken back by its name. */
static void test_user(void **state) {
        Explanation e = EXPLANATION_NULL;
        Probe *p;
        char expected[1024];
        ProbeAttr a;
        int n;

        assert_int_equal(define_here("uprobe", (ProbeRequest){ .args = " x=%di:s32 \t y=%si " }, &p, &e), 0);
        n = snprintf(expected, sizeof(expected), "p:%s/p12_probed_here %s:0x%llx x=%%di:s32 y=%%si\n", group, program,
                     (unsigned long long)written_offset());
        check_file("uprobe_events", expected);
        assert_int_equal(probe_n_attrs(p), 1);
        a = probe_attr(p, 0);
        assert_true(a.is_dynamic && a.type == PERF_TYPE_TRACEPOINT);
        assert_string_equal(a.group, group);
        assert_string_equal(a.name, "p12_probed_here");
        assert_true(probe_is_user(p) && probe_is_exact(p) && !probe_is_unchecked(p));
        assert_memory_equal(probe_text(p), program, strlen(program));
        assert_memory_equal(probe_text(p) + strlen(program), ":probed_here", strlen(":probed_here"));
        assert_null(probe_free(p));
        snprintf(expected + n, sizeof(expected) - (size_t)n, "-:%s/p12_probed_here\n", group);
        check_file("uprobe_events", expected);
        check_file("kprobe_events", "");
}

/* A second definition of a name would be one more place of the first one. */
static void test_name_in_use(void **state) {
        Explanation e = EXPLANATION_NULL;
        Probe *p;

        make_event_folder(group, "r12_probed_here", true);
        assert_int_equal(define_here("uretprobe", (ProbeRequest){ .args = "$retval" }, &p, &e), 0);
        assert_string_equal(probe_attr(p, 0).name, "r12v1_probed_here");
        probe_free(p);
        make_event_folder(group, "r12_probed_here", false);
}

/* A function of the kernel that is known needs no list; what only tracefs can do is defined there. */
static void test_kernel(void **state) {
        static const char list[] = "ffffffff81000000 T probed_function\n";
        _cleanup_(kernel_symbol_index_deinit) KernelSymbolIndex index = KERNEL_SYMBOL_INDEX_NULL;
        Explanation e = EXPLANATION_NULL;
        char expected[512];
        Probe *p;
        const uint64_t modules = kernel_symbol_index_modules("");

        while (!kernel_symbol_index_has(&index, modules, "probed_function"))
                assert_int_equal(kernel_symbol_index_add(&index, modules, list, strlen(list), &e), 0);
        assert_int_equal(define("kretprobe:probed_function", (ProbeRequest){ .maxactive = 16, .index = &index }, &p, &e), 0);
        assert_false(probe_is_user(p));
        assert_true(probe_is_exact(p));
        assert_string_equal(probe_text(p), "probed_function");
        probe_free(p);
        snprintf(expected, sizeof(expected), "r16:%s/r12_probed_function probed_function\n-:%s/r12_probed_function\n", group, group);
        check_file("kprobe_events", expected);
        check_file("uprobe_events", "");
        assert_int_equal(define("kprobe:probed_function", (ProbeRequest){ .maxactive = 16, .index = &index }, &p, &e),
                         REFUSED_INVALID);
        assert_string_equal(e.reason, "bad-maxactive");
        assert_null(p);
}

/* What write(2) says, without a complaint in error_log. */
static void test_refused(void **state) {
        static const struct {
                int error;
                const char *args;
                int refusal;
                const char *reason, *words;
        } cases[] = {
                { ENOMEM, "%di", REFUSED_EXHAUSTED, "no-memory", "no memory for another probe" },
                { EACCES, "%di", REFUSED_DENIED, "no-permission", "run perfd as root, or give it that one file" },
                { EPERM, "%di", REFUSED_DENIED, "no-permission", "Operation not permitted" },
                { EROFS, "%di", REFUSED_DENIED, "no-permission", "ProtectKernelTunables=no" },
                { EINVAL, "%di", REFUSED_INVALID, "bad-args", "the kernel refuses the fetch args '%di' of " },
                { E2BIG, "%di", REFUSED_INVALID, "bad-args", "Argument list too long" },
                { EINVAL, NULL, REFUSED_INVALID, "bad-probe", "the kernel refuses a probe on " },
                { ENOENT, "%di", REFUSED_NOT_FOUND, "no-file", "the file does not exist" },
                { EEXIST, "%di", REFUSED_EXISTS, "exists", "File exists" },
                { EILSEQ, "%di", REFUSED_INVALID, "bad-probe", "no instruction of a function begins there" },
                { EADDRNOTAVAIL, "%di", REFUSED_INVALID, "ambiguous-symbol", "name one by its address" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Explanation e = EXPLANATION_NULL;
                Probe *p;

                write_error = cases[i].error;
                if (define_here("uprobe", (ProbeRequest){ .args = cases[i].args }, &p, &e) != cases[i].refusal ||
                    strcmp(e.reason, cases[i].reason) != 0 || !strstr(e.text, cases[i].words))
                        fail_msg("%s: %s: %s", strerror(cases[i].error), e.reason, e.text);
                assert_null(p);
        }
        check_file("uprobe_events", "");
        write_error = 0;
        writes_half = true;
        {
                Explanation e = EXPLANATION_NULL;
                Probe *p;

                assert_int_equal(define_here("uprobe", (ProbeRequest){ .args = "%di" }, &p, &e), REFUSED_INVALID);
                assert_non_null(strstr(e.text, "Input/output error"));
        }
}

/* Its place in what the user wrote, with the blanks that the kernel does not see; and what may stand there instead. */
static void test_complaint(void **state) {
        Explanation e = EXPLANATION_NULL;
        Probe *p;

        write_error = EINVAL;
        complaint = "Unknown type is specified";
        complained_at = "bogus";
        assert_int_equal(define_here("uprobe", (ProbeRequest){ .args = "  a=%di   b=%si:bogus" }, &p, &e), REFUSED_INVALID);
        assert_string_equal(e.reason, "bad-args");
        assert_int_equal(e.position, 1 + strlen("  a=%di   b=%si:"));
        assert_non_null(strstr(e.text, "Unknown type is specified; types are u8, s8, x8"));
        complaint = "Something that no kernel says yet";
        e = EXPLANATION_NULL;
        assert_int_equal(define_here("uprobe", (ProbeRequest){ .args = "a=%di:bogus" }, &p, &e), REFUSED_INVALID);
        assert_non_null(strstr(e.text, "Something that no kernel says yet"));
        complaint = "There is no such offset";
        complained_at = program; /* not of the args */
        e = EXPLANATION_NULL;
        assert_int_equal(define_here("uprobe", (ProbeRequest){ .args = "a=%di" }, &p, &e), REFUSED_INVALID);
        assert_string_equal(e.reason, "bad-probe");
        assert_int_equal(e.position, 0);
}

/* What is written in words of its own, and what the kernel would cut, never reaches it. */
static void test_refused_before(void **state) {
        _cleanup_free_ char *many = malloc(5001);
        Explanation e = EXPLANATION_NULL;
        Probe *p;

        assert_int_equal(define_here("uprobe", (ProbeRequest){ .args = "a=%di # b" }, &p, &e), REFUSED_INVALID);
        assert_string_equal(e.reason, "bad-args");
        assert_int_equal(e.position, 7);
        assert_non_null(many);
        memset(many, 'a', 5000);
        many[5000] = '\0';
        assert_int_equal(define_here("uprobe", (ProbeRequest){ .args = many }, &p, &e), REFUSED_INVALID);
        assert_string_equal(e.reason, "bad-args");
        assert_non_null(strstr(e.text, "the kernel reads 4094"));
        check_file("uprobe_events", "");
}

/* A kernel without the file; and what is then refused in both ways, or left to the PMU. */
static void test_without_tracefs(void **state) {
        char path[256];
        Explanation e = EXPLANATION_NULL;
        Probe *p;

        snprintf(path, sizeof(path), "%s/uprobe_events", root);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(define_here("uprobe", (ProbeRequest){ .args = "%di" }, &p, &e), REFUSED_UNSUPPORTED);
        assert_string_equal(e.reason, "no-uprobes");
        assert_non_null(strstr(e.text, "built without CONFIG_UPROBE_EVENTS"));
        if (access(PMU_ROOT "/uprobe/type", R_OK) < 0) {
                print_message("this kernel has no PMU of uprobes\n");
                skip();
        }
        e = EXPLANATION_NULL;
        assert_int_equal(define_here("uprobe", (ProbeRequest){ .args = NULL }, &p, &e), REFUSED_DENIED);
        assert_string_equal(e.reason, "no-permission");
        assert_non_null(strstr(e.text, "is refused in both ways"));
        open_error = EINVAL; /* of the path, of which there is none: the privileges were enough */
        e = EXPLANATION_NULL;
        assert_int_equal(define_here("uprobe", (ProbeRequest){ .args = NULL }, &p, &e), 0);
        assert_false(probe_is_exact(p));
        assert_false(probe_attr(p, 0).is_dynamic);
        assert_true(probe_attr(p, 0).config2 > 0);
        assert_memory_equal((const char *)(uintptr_t)probe_attr(p, 0).config1, "/proc/self/fd/", strlen("/proc/self/fd/"));
        assert_non_null(strstr(probe_text(p), ", by the PMU: a hit may count twice or not at all"));
        probe_free(p);
}

static void test_no_file(void **state) {
        Explanation e = EXPLANATION_NULL;
        Probe *p;

        assert_int_equal(define("uprobe:/nonexistent/program:main", (ProbeRequest){ .args = NULL }, &p, &e), REFUSED_NOT_FOUND);
        assert_string_equal(e.reason, "no-file");
        assert_int_equal(define("uprobe:/proc/self/exe:probed_there", (ProbeRequest){ .args = NULL }, &p, &e), REFUSED_NOT_FOUND);
        assert_string_equal(e.reason, "unknown-symbol");
        check_file("uprobe_events", "");
}

/* What the client may not read is not said; what it may is by the fd that was looked at, not by its path. */
static void test_client(void **state) {
        Credentials client = { .uid = 65533, .gid = 65533 };
        Explanation e = EXPLANATION_NULL;
        char text[256];
        Probe *p;

        snprintf(text, sizeof(text), "uprobe:%s/error_log:probed_here", root); /* in a folder of mode 0700 */
        assert_int_equal(define(text, (ProbeRequest){ .client = &client }, &p, &e), REFUSED_DENIED);
        assert_string_equal(e.reason, "no-permission");
        snprintf(text, sizeof(text), "uprobe:%s/nonexistent:probed_here", root);
        assert_int_equal(define(text, (ProbeRequest){ .client = &client }, &p, &e), REFUSED_DENIED);
        client.uid = getuid();
        assert_int_equal(define(text, (ProbeRequest){ .client = &client }, &p, &e), REFUSED_NOT_FOUND);
        assert_string_equal(e.reason, "no-file");
        assert_int_equal(define("uprobe:/proc/self/exe:probed_here", (ProbeRequest){ .client = &client }, &p, &e), REFUSED_DENIED);
}

/* Those of a perfd that is gone go, the lines of others stay. */
static void test_leftovers(void **state) {
        ProbeOwner self, gone;
        Explanation e = EXPLANATION_NULL;
        char old[PROBE_GROUP_SIZE], lines[512], expected[1024];
        size_t n = 99;

        assert_int_equal(probe_owner_self(&self, &e), 0);
        gone = self;
        gone.start ^= 1;
        probe_owner_group(&gone, old);
        snprintf(lines, sizeof(lines), "p:%s/p1_a /bin/true:0x10\np:uprobes/p_true /bin/true:0x10\np:%s/p1_b /bin/true:0x20\n", old, group);
        add_to_file("uprobe_events", "we", lines);
        make_event_folder(old, "p1_a", true);
        assert_int_equal(probe_remove_leftovers(&tracing, &n, &e), 0);
        assert_int_equal(n, 1);
        snprintf(expected, sizeof(expected), "%s-:%s/p1_a\n", lines, old);
        check_file("uprobe_events", expected);
        assert_string_equal(e.text, "");
        write_error = EBUSY;
        assert_int_equal(probe_remove_leftovers(&tracing, &n, &e), 0);
        assert_int_equal(n, 0);
        snprintf(expected, sizeof(expected), "run `echo '-:%s/p1_a' >> %s/uprobe_events`", old, root);
        assert_non_null(strstr(e.text, expected));
        make_event_folder(old, "p1_a", false);
}

/* Hits of all sites; nothing is guessed where a line is missing. */
static void test_profile(void **state) {
        Explanation e = EXPLANATION_NULL;
        uint64_t hits = 7, missed = 7;
        char line[512];
        Probe *p;

        assert_int_equal(define_here("uprobe", (ProbeRequest){ .args = "%di" }, &p, &e), 0);
        assert_false(probe_read_profile(&tracing, p, &hits, &missed));
        add_to_file("uprobe_profile", "we", "");
        assert_false(probe_read_profile(&tracing, p, &hits, &missed));
        assert_true(hits == 7 && missed == 7);
        snprintf(line, sizeof(line), "  %s p12_probed_here                       41\n", program);
        add_to_file("uprobe_profile", "we", line);
        assert_true(probe_read_profile(&tracing, p, &hits, &missed));
        assert_true(hits == 41 && missed == 0);
        probe_free(p);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_user, clean_files),
                cmocka_unit_test_setup(test_name_in_use, clean_files),
                cmocka_unit_test_setup(test_kernel, clean_files),
                cmocka_unit_test_setup(test_refused, clean_files),
                cmocka_unit_test_setup(test_complaint, clean_files),
                cmocka_unit_test_setup(test_refused_before, clean_files),
                cmocka_unit_test_setup(test_without_tracefs, clean_files),
                cmocka_unit_test_setup(test_no_file, clean_files),
                cmocka_unit_test_setup(test_client, clean_files),
                cmocka_unit_test_setup(test_leftovers, clean_files),
                cmocka_unit_test_setup(test_profile, clean_files),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
