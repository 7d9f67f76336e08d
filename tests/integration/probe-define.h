/* For the tests of probes: tracefs, the program that is probed, perf events on it. Two files, one program. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "daemon/kernel/elf/file.h"
#include "daemon/kernel/event/open.h"
#include "daemon/kernel/probe/names.h"
#include "daemon/kernel/probe/probe.h"
#include "daemon/kernel/host/whole-file.h"
#include "daemon/model/field.h"

#define N 100U

/* As uprobe_events names what the first arguments are in. */
#ifdef __aarch64__
#define ARG0 "%x0"
#define ARG1 "%x1"
#define GETPGID "nowhere|__arm64_sys_getpgid"
#else
#define ARG0 "%di"
#define ARG1 "%si"
#define GETPGID "nowhere|__x64_sys_getpgid"
#endif

extern Tracing tracing;
extern const char *place; /* path of probe-place */
extern bool has_kprobes;
extern char group[PROBE_GROUP_SIZE]; /* ours */

/* probe-define-life.c */
void test_same_id(void **state);
void test_profile(void **state);
void test_busy(void **state);
void test_other_root(void **state);
void test_leftovers(void **state);
void test_kernel(void **state);
void test_kernel_hidden(void **state);

/* The program, waiting for how often it is to call. */
typedef struct Program {
        pid_t pid;
        FILE *to, *from;
} Program;

/* root: that of its file system from then on, or NULL. */
static inline Program program_start(const char *path, const char *root) {
        int to[2], from[2];
        Program p;

        assert_int_equal(pipe2(to, O_CLOEXEC), 0);
        assert_int_equal(pipe2(from, O_CLOEXEC), 0);
        p.pid = fork();
        if (p.pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                dup2(to[0], STDIN_FILENO);
                dup2(from[1], STDOUT_FILENO);
                execl(path, path, root, NULL);
                _exit(127);
        }
        close(to[0]);
        close(from[1]);
        p.to = fdopen(to[1], "w");
        p.from = fdopen(from[0], "r");
        return p;
}

/* Lets it make n calls of each place and returns its semaphore. */
static inline unsigned program_call(Program *p, unsigned n) {
        unsigned done = 0, semaphore = 0;

        fprintf(p->to, "%u\n", n);
        fflush(p->to);
        assert_int_equal(fscanf(p->from, " done %u %u", &done, &semaphore), 2);
        assert_int_equal(done, n);
        return semaphore;
}

static inline void program_end(Program *p) {
        int status;

        fclose(p->to);
        assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
        assert_int_equal(status, 0);
        fclose(p->from);
}

static inline char *read_text(const char *path) {
        char *text;
        size_t length;

        assert_int_equal(whole_file_read(path, &text, &length), 0);
        return text;
}

/* Lines of kprobe_events (uprobe_events) with `part`. */
static inline unsigned count_lines(bool is_kernel, const char *part) {
        _cleanup_free_ char *path = NULL, *text = NULL;
        unsigned n = 0;

        assert_true(asprintf(&path, "%s/%s_events", tracing.root, is_kernel ? "kprobe" : "uprobe") > 0);
        text = read_text(path);
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
                n += strstr(line, part) != NULL;
        return n;
}

static inline void write_line(bool is_kernel, const char *line) {
        _cleanup_free_ char *path = NULL;
        int fd;

        assert_true(asprintf(&path, "%s/%s_events", tracing.root, is_kernel ? "kprobe" : "uprobe") > 0);
        fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, line, strlen(line)), strlen(line));
        close(fd);
}

static inline int define_named(const EventName *name, const char *args, unsigned maxactive, uint32_t id, Probe **ret,
                               Explanation *e) {
        ProbeRequest q = { .name = name, .args = args, .maxactive = maxactive, .id = id };

        return probe_define(&tracing, &q, ret, e);
}

/* event: as in perf list, with PLACE for the path of the program. */
static inline int define_event(const char *event, const char *args, unsigned maxactive, uint32_t id, Probe **ret,
                               Explanation *e) {
        const char *at = strstr(event, "PLACE");
        _cleanup_(event_name_deinit) EventName name = EVENT_NAME_NULL;
        char text[1024];

        (void)snprintf(text, sizeof(text), "%.*s%s%s", at ? (int)(at - event) : (int)strlen(event), event,
                       at ? place : "", at ? at + strlen("PLACE") : "");
        if (event_name_parse(text, &name, e) != 0)
                fail_msg("%s: %s", text, e->text);
        return define_named(&name, args, maxactive, id, ret, e);
}

static inline Probe *define(const char *event, const char *args, unsigned maxactive, uint32_t id) {
        Explanation e = EXPLANATION_NULL;
        Probe *p = NULL;
        int r = define_event(event, args, maxactive, id, &p, &e);

        if (r != 0)
                fail_msg("%s: %d %s", event, r, e.text);
        return p;
}

static inline Plan *load_plan(const Probe *p, size_t site) {
        ProbeAttr a = probe_attr(p, site);
        Explanation e = EXPLANATION_NULL;
        Plan *plan = NULL;

        if (tracing_load(&tracing, a.group, a.name, &plan, &e) != 0)
                fail_msg("%s", e.text);
        return plan;
}

static inline int open_probe_on(const Probe *p, size_t site, pid_t pid) {
        ProbeAttr a = probe_attr(p, site);
        struct perf_event_attr attr = { .type = a.type, .size = sizeof(attr), .config = a.config, .config1 = a.config1,
                                        .config2 = a.config2, .sample_period = 1, .sample_type = PERF_SAMPLE_RAW };
        int fd;

        if (a.is_dynamic) {
                Plan *plan = load_plan(p, site);

                attr.config = plan->type;
                plan_unref(plan);
        }
        fd = open_perf_event(&attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
        if (fd < 0)
                fail_msg("%s: %s", probe_text(p), strerror(errno));
        return fd;
}

static inline uint64_t read_count(int fd) {
        uint64_t n;

        assert_int_equal(read(fd, &n, sizeof(n)), sizeof(n));
        return n;
}

static inline ElfPlace find_place(const char *symbol) {
        Explanation e = EXPLANATION_NULL;
        ElfFile *f = NULL;
        ElfPlace found;

        assert_int_equal(elf_file_open(place, &f, &e), 0);
        if (elf_file_find(f, symbol, 0, &found, &e) != 0)
                fail_msg("%s", e.text);
        elf_file_close(f);
        return found;
}

static inline void assert_nothing_left(void) {
        assert_int_equal(count_lines(false, group), 0);
        if (has_kprobes)
                assert_int_equal(count_lines(true, group), 0);
}

static inline void check_refused(const char *event, const char *args, unsigned maxactive, int refusal,
                          const char *reason, unsigned position, const char *text) {
        Explanation e = EXPLANATION_NULL;
        Probe *p = NULL;
        int r = define_event(event, args, maxactive, 9, &p, &e);

        if (r != refusal || strcmp(e.reason, reason) != 0 || e.position != position || !strstr(e.text, text))
                fail_msg("%s %s: %d %s, position %u: %s", event, args, r, e.reason, e.position, e.text);
        probe_free(p); /* what was defined before the site that is refused */
        assert_nothing_left();
}

static inline void copy_file(const char *from, const char *to) {
        FILE *in = fopen(from, "re"), *out = fopen(to, "we");
        char buffer[4096];
        size_t n;

        assert_non_null(in);
        assert_non_null(out);
        while ((n = fread(buffer, 1, sizeof(buffer), in)) > 0)
                assert_int_equal(fwrite(buffer, 1, n, out), n);
        fclose(in);
        assert_int_equal(fclose(out), 0);
        assert_int_equal(chmod(to, 0755), 0);
}
