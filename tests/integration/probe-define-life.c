/* How long definitions live, whose they are, and those of the kernel. */
#include "tests/integration/probe-define.h"

#include <inttypes.h>
#include <sched.h>
#include <sys/mount.h>

#include "daemon/kernel/symbol/kernel-symbols.h"

/* Two probes of one id are two events, not two places of one. */
void test_same_id(void **state) {
        Probe *a = define("uprobe:PLACE:place_work", "a=%sp", 0, 5);
        Probe *b = define("uprobe:PLACE:place_work", "a=%sp", 0, 5);

        assert_string_equal(probe_attr(a, 0).name, "p5_place_work");
        assert_string_equal(probe_attr(b, 0).name, "p5v1_place_work");
        assert_string_equal(probe_attr(a, 0).group, group);
        probe_free(a);
        assert_int_equal(count_lines(false, group), 1);
        probe_free(b);
        assert_nothing_left();
}

void test_profile(void **state) {
        Probe *p = define("usdt:PLACE:perfd_place:ready", NULL, 0, 6);
        Program program = program_start(place, NULL);
        int fds[2] = { open_probe_on(p, 0, program.pid), open_probe_on(p, 1, program.pid) };
        uint64_t hits = 1, missed = 1;

        (void)program_call(&program, N);
        assert_true(probe_read_profile(&tracing, p, &hits, &missed));
        assert_int_equal(hits, 2 * N);
        assert_int_equal(missed, 0);
        close(fds[0]);
        close(fds[1]);
        program_end(&program);
        probe_free(p);
        assert_nothing_left();
}

/* What is in use stays, and that is said: here by the log, which is stderr. */
void test_busy(void **state) {
        Probe *p = define("uprobe:PLACE:place_work", "a=%sp", 0, 11);
        int fd = open_probe_on(p, 0, 0), log[2], old = dup(STDERR_FILENO);
        char said[512] = "", line[128];

        assert_int_equal(pipe(log), 0);
        dup2(log[1], STDERR_FILENO);
        probe_free(p);
        dup2(old, STDERR_FILENO);
        close(log[1]);
        close(old);
        assert_true(read(log[0], said, sizeof(said) - 1) > 0);
        close(log[0]);
        assert_non_null(strstr(said, "p11_place_work"));
        assert_non_null(strstr(said, "busy"));
        assert_int_equal(count_lines(false, group), 1);
        close(fd);
        (void)snprintf(line, sizeof(line), "-:%s/p11_place_work", group);
        write_line(false, line);
        assert_nothing_left();
}

/* A link that begins with a slash is one of the root of the process, and what was resolved stays what is meant. */
static void check_other_root(const char *args) {
        char root[] = "/tmp/perfd#root-XXXXXX", path[64], link[64], text[128];
        EventName name = { .kind = EVENT_NAME_UPROBE, .path = text };
        char *symbols[] = { (char *)"place_work" };
        Explanation e = EXPLANATION_NULL;
        Program program;
        Probe *p = NULL;
        int fd;

        name.place = (ProbePlace){ .symbols = symbols, .n_symbols = 1 };
        assert_non_null(mkdtemp(root));
        (void)snprintf(path, sizeof(path), "%s/place", root);
        (void)snprintf(link, sizeof(link), "%s/link", root);
        copy_file(place, path);
        assert_int_equal(symlink("/place", link), 0);
        program = program_start(path, root);
        (void)program_call(&program, 1); /* it is in its root now */
        (void)snprintf(text, sizeof(text), "/proc/%d/root/link", program.pid);
        if (define_named(&name, args, 0, 3, &p, &e) != 0)
                fail_msg("%s", e.text);
        assert_int_equal(unlink(link), 0);
        assert_int_equal(symlink("/nowhere", link), 0); /* an upgrade: the path leads elsewhere */
        fd = open_probe_on(p, 0, program.pid);
        (void)program_call(&program, N);
        assert_int_equal(read_count(fd), N);
        close(fd);
        probe_free(p);
        assert_nothing_left();

        /* a path with a comment in it, which the kernel would cut off */
        name.path = path;
        p = NULL;
        if (define_named(&name, args, 0, 4, &p, &e) != 0)
                fail_msg("%s", e.text);
        fd = open_probe_on(p, 0, program.pid);
        (void)program_call(&program, N);
        assert_int_equal(read_count(fd), N);
        close(fd);
        probe_free(p);
        assert_nothing_left();
        program_end(&program);
        unlink(link);
        unlink(path);
        assert_int_equal(rmdir(root), 0);
}

void test_other_root(void **state) {
        check_other_root(NULL);
        check_other_root("a=%sp");
}

/* A perfd of its own: defines two probes, says its group, and waits for its end. */
static pid_t start_owner(char ret_group[static PROBE_GROUP_SIZE], int *ret_fd) {
        int from[2], hold[2];
        pid_t pid;

        assert_int_equal(pipe2(from, O_CLOEXEC), 0);
        assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
        pid = fork();
        if (pid == 0) {
                Explanation e = EXPLANATION_NULL;
                Probe *a = NULL, *b = NULL;
                char byte;

                close(hold[1]);
                if (define_event("uprobe:PLACE:place_work", "a=%sp", 0, 1, &a, &e) != 0 ||
                    define_event("uretprobe:PLACE:place_other", "a=$retval", 0, 2, &b, &e) != 0 ||
                    write(from[1], probe_attr(a, 0).group, PROBE_GROUP_SIZE) != PROBE_GROUP_SIZE)
                        _exit(1);
                _exit(read(hold[0], &byte, 1) == 0 && !probe_free(a) && !probe_free(b) ? 0 : 1);
        }
        close(hold[0]);
        close(from[1]);
        assert_int_equal(read(from[0], ret_group, PROBE_GROUP_SIZE), PROBE_GROUP_SIZE);
        close(from[0]);
        *ret_fd = hold[1];
        return pid;
}

void test_leftovers(void **state) {
        char dead[PROBE_GROUP_SIZE], living[PROBE_GROUP_SIZE], line[512];
        Probe *own = define("uprobe:PLACE:place_work", "a=%sp", 0, 1);
        int dead_fd, living_fd, status;
        pid_t dead_pid = start_owner(dead, &dead_fd), living_pid = start_owner(living, &living_fd);
        Explanation e = EXPLANATION_NULL;
        ElfPlace work = find_place("place_work");
        size_t n = 0;

        /* foreign ones: another tool's, and what only looks like a perfd's */
        (void)snprintf(line, sizeof(line), "p:yprobe_foreign/x %s:0x%" PRIx64, place, work.file_offset);
        write_line(false, line);
        (void)snprintf(line, sizeof(line), "p:perfd_0123/x %s:0x%" PRIx64, place, work.file_offset);
        write_line(false, line);

        kill(dead_pid, SIGKILL);
        assert_int_equal(waitpid(dead_pid, &status, 0), dead_pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(count_lines(false, dead), 2);
        assert_int_equal(probe_remove_leftovers(&tracing, &n, &e), 0);
        assert_string_equal(e.text, "");
        assert_true(n >= 2); /* there may be others' */
        assert_int_equal(count_lines(false, dead), 0);
        assert_int_equal(count_lines(false, living), 2);
        assert_int_equal(count_lines(false, group), 1);
        assert_int_equal(count_lines(false, "yprobe_foreign/x"), 1);
        assert_int_equal(count_lines(false, "perfd_0123/x"), 1);
        assert_int_equal(probe_remove_leftovers(&tracing, &n, &e), 0);
        assert_int_equal(n, 0);

        write_line(false, "-:yprobe_foreign/x");
        write_line(false, "-:perfd_0123/x");
        close(living_fd);
        close(dead_fd);
        assert_int_equal(waitpid(living_pid, &status, 0), living_pid);
        assert_int_equal(status, 0);
        assert_int_equal(count_lines(false, living), 0);
        probe_free(own);
        assert_nothing_left();
}

static void check_kernel(const char *event, const char *args, unsigned maxactive, bool is_dynamic, const char *text) {
        Probe *p = define(event, args, maxactive, 7);
        uint64_t hits = 0, missed = 1;
        int fd = open_probe_on(p, 0, 0);

        assert_int_equal(probe_attr(p, 0).is_dynamic, is_dynamic);
        assert_int_equal(count_lines(true, group), is_dynamic);
        if (!strstr(probe_text(p), text))
                fail_msg("%s: '%s'", event, probe_text(p));
        for (unsigned i = 0; i < N; i++)
                (void)getpgid(0);
        assert_int_equal(read_count(fd), N);
        assert_int_equal(probe_read_profile(&tracing, p, &hits, &missed), is_dynamic);
        if (is_dynamic) {
                assert_true(hits >= N); /* it counts the whole host */
                assert_int_equal(missed, 0);
        }
        close(fd);
        probe_free(p);
        assert_nothing_left();
}

void test_kernel(void **state) {
        char event[64], line_end[64];
        _cleanup_free_ char *list = NULL;
        const char *line;
        size_t length;

        check_refused("kprobe:__no_such_functoin", NULL, 0, REFUSED_NOT_FOUND, "unknown-symbol", 0, "no function");
        if (!has_kprobes) {
                check_refused("kprobe:" GETPGID, NULL, 0, REFUSED_UNSUPPORTED, "no-kprobes", 0, "CONFIG_KPROBE_EVENTS");
                check_refused("kretprobe:" GETPGID, NULL, 8, REFUSED_UNSUPPORTED, "no-kprobes", 0, "kprobe_events");
                return;
        }
        check_kernel("kprobe:" GETPGID, NULL, 0, false, "_sys_getpgid");
        check_kernel("kprobe:" GETPGID, "sp=%sp", 0, true, "_sys_getpgid");
        check_kernel("kretprobe:" GETPGID, NULL, 0, false, "_sys_getpgid");
        check_kernel("kretprobe:" GETPGID, "group=$retval:s64", 0, true, "_sys_getpgid");
        check_kernel("kretprobe:" GETPGID, NULL, 16, true, "_sys_getpgid");
        assert_int_equal(kernel_symbols_read(KERNEL_SYMBOLS_PATH, &list, &length, NULL), 0);
        (void)snprintf(line_end, sizeof(line_end), " %s\n", strchr(GETPGID, '|') + 1);
        line = strstr(list, line_end);
        assert_non_null(line);
        while (line > list && line[-1] != '\n')
                line--;
        (void)snprintf(event, sizeof(event), "kprobe:0x%.16s", line);
        check_kernel(event, NULL, 0, false, "_sys_getpgid+0x0)");
        check_kernel(event, "sp=%sp", 0, true, "_sys_getpgid+0x0)");
        check_refused("kprobe:" GETPGID, "  a=%sp:bogus", 0, REFUSED_INVALID, "bad-args", 9, "Unknown type");
        check_refused("kretprobe:" GETPGID, "a=$retval", 100000, REFUSED_INVALID, "bad-probe", 0, "axactive");
        check_refused("kprobe:0x10", "a=%sp", 0, REFUSED_INVALID, "bad-address", 0, "not an address of a function");
        check_refused("kprobe:" GETPGID "+0x100000", NULL, 0, REFUSED_INVALID, "bad-address", 0, "use that name");
}

/* Without a list to look into, the kernel is tried. */
void test_kernel_hidden(void **state) {
        assert_int_equal(unshare(CLONE_NEWNS), 0);
        assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
        assert_int_equal(mount("/dev/null", KERNEL_SYMBOLS_PATH, NULL, MS_BIND, NULL), 0);
        if (!has_kprobes) {
                check_refused("kprobe:" GETPGID, NULL, 0, REFUSED_UNSUPPORTED, "no-kprobes", 0, "CONFIG_KPROBE_EVENTS");
                return;
        }
        check_kernel("kprobe:" GETPGID, NULL, 0, false, "_sys_getpgid");
        check_kernel("kprobe:" GETPGID, "sp=%sp", 0, true, "_sys_getpgid");
        check_kernel("kretprobe:" GETPGID, NULL, 16, true, "_sys_getpgid");
        check_refused("kprobe:nowhere|neither", NULL, 0, REFUSED_NOT_FOUND, "unknown-symbol", 0, "'neither'");
        check_refused("kprobe:nowhere|neither", "sp=%sp", 0, REFUSED_NOT_FOUND, "unknown-symbol", 0, "neither");
}
