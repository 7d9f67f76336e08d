/* Files and drop-ins in a folder of their own, the defaults, and the configuration that is shipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "config/config.h"
#include "config/parse/load.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/error.h"

static char folder[] = "/tmp/test-config-load-XXXXXX";

static int folder_make(void **state) {
        strcpy(folder + sizeof(folder) - 7, "XXXXXX");
        return mkdtemp(folder) && chdir(folder) == 0 && mkdir("perfd.d", 0700) == 0 ? 0 : -1;
}

static int folder_remove(void **state) {
        char command[64];

        snprintf(command, sizeof(command), "rm -rf %s", folder);
        return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static void write_file(const char *path, const char *text) {
        FILE *f = fopen(path, "w");

        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
}

static Config *check(const char *path, const char *expected) {
        ConfigDiagnostics m = CONFIG_DIAGNOSTICS_NULL;
        _cleanup_free_ char *text = NULL;
        size_t size;
        Config *c = NULL;
        FILE *f = open_memstream(&text, &size);
        int r = config_load(path, &m, &c);

        for (size_t i = 0; i < m.n_items; i++)
                config_diagnostic_print(&m.items[i], f);
        fclose(f);
        assert_string_equal(text, expected);
        assert_int_equal(r, m.n_errors > 0 ? REFUSED_INVALID : 0);
        assert_int_equal(c == NULL, m.n_errors > 0);
        config_diagnostics_deinit(&m);
        return c;
}

/* In a list of which the first match decides, rules of two files would have no order: the last file that has any has all. */
static void test_rules(void **state) {
        _cleanup_(config_unrefp) Config *c = NULL;

        write_file("perfd.yaml", "version: 1\naccess: {rules: [{users: [1, 2], status: true}, {groups: [3]}]}\n");
        write_file("perfd.d/20-b.yaml", "clock: realtime\n");
        c = check("perfd.yaml", "");
        assert_int_equal(c->n_rules, 2);
        assert_int_equal(c->rules[0].n_uids, 2);
        assert_int_equal(c->rules[0].uids[1], 2);
        assert_true(c->rules[0].status);
        assert_int_equal(c->rules[1].n_gids, 1);
        assert_int_equal(c->rules[1].gids[0], 3);
        assert_false(c->rules[1].status);
        config_unref(c);
        write_file("perfd.d/10-a.yaml", "access: {rules: [{subscribe: ['a*', b], where: 'x == 1', emit: [c]}]}\n");
        c = check("perfd.yaml", "");
        assert_int_equal(c->n_rules, 1);
        assert_int_equal(c->rules[0].users.n + c->rules[0].groups.n, 0);
        assert_int_equal(c->rules[0].subscribe.n, 2);
        assert_string_equal(c->rules[0].where, "x == 1");
        assert_string_equal(c->rules[0].emit.items[0], "c");
        assert_string_equal(c->rules[0].at.path, "perfd.d/10-a.yaml");
        config_unref(c);
        write_file("perfd.d/10-a.yaml", "access: {rules: [{users: [x, y, x], groups: []}, {users: z, where: a, user: true}]}\n");
        c = check("perfd.yaml",
                  "perfd.d/10-a.yaml:1:33: warning: users: 'x' occurs twice\n"
                  "perfd.d/10-a.yaml:1:45: groups: found nothing, expected names or numbers of groups in a list, such as [developers]\n"
                  "perfd.d/10-a.yaml:1:58: users: found 'z', expected names or numbers of users in a list, such as [ann, 1001]\n"
                  "perfd.d/10-a.yaml:1:68: where: it has no effect without 'subscribe'\n"
                  "perfd.d/10-a.yaml:1:71: unknown key 'user'; did you mean 'users'?\n");
}

/* Later files add and override, in the order of their names; what does not end with .yaml is not read. */
static void test_drop_ins(void **state) {
        _cleanup_(config_unrefp) Config *c = NULL;

        write_file("perfd.yaml", "version: 1\nclock: boottime\nrings: {size: 4MiB}\ngroups: {main: {events: [cs]}}\n");
        write_file("perfd.d/20-b.yaml", "clock: realtime\ntargets: {web: {pids: [1]}}\n");
        write_file("perfd.d/10-a.yaml", "clock: monotonic\ngroups: {more: {target: web, events: [faults]}}\n");
        write_file("perfd.d/30-empty.yaml", "");
        write_file("perfd.d/README", "clock: [\n");
        write_file("perfd.d/.hidden.yaml", "clock: [\n");
        write_file("perfd.d/40.yml", "clock: [\n");

        c = check("perfd.yaml", "perfd.d: warning: '40.yml' is ignored: only files whose names end with .yaml are read\n");
        assert_int_equal(c->clock, CLOCK_REALTIME);
        assert_int_equal(c->ring_size, 4 << 20);
        assert_int_equal(c->n_paths, 4);
        assert_string_equal(c->paths[0], "perfd.yaml");
        assert_string_equal(c->paths[1], "perfd.d/10-a.yaml");
        assert_string_equal(c->paths[3], "perfd.d/30-empty.yaml");
        assert_int_equal(c->n_events, 2);
        assert_string_equal(c->events[1].group, "more");
        assert_string_equal(c->events[1].at.path, "perfd.d/10-a.yaml");
        assert_string_equal(c->targets[c->events[1].target].name, "web");
}

static void test_mistakes_of_all_files(void **state) {
        write_file("perfd.yaml", "version: 1\nlisten: {stream: /a}\nclok: 1\n"
                                 "targets: {t: {}}\ngroups: {g: {target: u, events: [cs]}}\n");
        write_file("perfd.d/1.yaml", "version: 3\nlisten: {control: /a}\n");
        write_file("perfd.d/2.yaml", "targets: {t: {}}\ngroups:\n  g: {events: [{event: faults, name: cs}]}\n");

        check("perfd.yaml",
              "perfd.yaml:3:1: unknown key 'clok'; did you mean 'clock'?\n"
              "perfd.yaml:5:22: target: found 'u', which is not the name of a target in 'targets'\n"
              "perfd.d/1.yaml:1:10: version: found '3', expected 1, the only version of this format\n"
              "perfd.d/1.yaml:2:19: listen: control and stream have the same path '/a', expected different paths\n"
              "perfd.d/2.yaml:1:11: target 't' is already in 'perfd.yaml', line 4; give one of them another name\n"
              "perfd.d/2.yaml:3:3: group 'g' is already in 'perfd.yaml', line 5; give one of them another name\n"
              "perfd.d/2.yaml:3:38: event name 'cs' is already in 'perfd.yaml', line 5; give one of them another "
              "'name'\n");
}

/* Of a file that is no YAML nothing is known, so nothing is said to be missing because of it. */
static void test_unreadable_files(void **state) {
        check("perfd.yaml", "perfd.yaml: the file cannot be opened: No such file or directory\n");
        check("perfd.d", "perfd.d: this is not a regular file\n");

        write_file("perfd.yaml", "version: 1\nclok: 1\ngroups: {g: {target: t, events: [cs]}}\n");
        write_file("perfd.d/1.yaml", "targets: {t: {}}\nclock: [\n");
        assert_int_equal(mkdir("perfd.d/2.yaml", 0700), 0);
        assert_int_equal(mkfifo("perfd.d/3.yaml", 0600), 0);
        assert_int_equal(symlink("nowhere", "perfd.d/4.yaml"), 0);
        write_file("perfd.d/5.yaml", "clock: x\n");
        check("perfd.yaml",
              "perfd.yaml:2:1: unknown key 'clok'; did you mean 'clock'?\n"
              "perfd.d/1.yaml:3:1: not YAML: did not find expected node content, while parsing a flow node (from line "
              "3)\n"
              "perfd.d/2.yaml: this is not a regular file\n"
              "perfd.d/3.yaml: this is not a regular file\n"
              "perfd.d/4.yaml: the file cannot be opened: No such file or directory\n"
              "perfd.d/5.yaml:1:8: clock: found 'x', expected one of monotonic, monotonic-raw, boottime, realtime\n");

        write_file("other", "version: 1\n");
        write_file("other.d", "");
        check("other", "other.d: the drop-in directory cannot be opened: Not a directory\n");
}

static void test_defaults(void **state) {
        _cleanup_(config_unrefp) Config *c = config_default();

        assert_string_equal(c->control_path, "/run/perfd/control.sock");
        assert_string_equal(c->stream_path, "/run/perfd/stream.sock");
        assert_int_equal(c->control_mode, 0600);
        assert_int_equal(c->stream_mode, 0660);
        assert_string_equal(c->stream_group, "perfd");
        assert_int_equal(c->clock, CLOCK_MONOTONIC);
        assert_int_equal(c->ring_size, 4 << 20);
        assert_int_equal(c->batch_pool, 2 << 20);
        assert_int_equal(c->reader_priority.policy, THREAD_FIFO);
        assert_int_equal(c->reader_priority.value, 1);
        assert_int_equal(c->dispatcher_priority.policy, THREAD_FIFO);
        assert_int_equal(c->dispatcher_priority.value, 1);
        assert_null(c->reader_cpus);
        assert_null(c->dispatcher_cpus);
        assert_int_equal(c->reader_guard, 5000000);
        assert_int_equal(c->subscribers_max, 4096);
        assert_int_equal(c->subscriber_memory, 1 << 30);
        assert_int_equal(c->subscriber_memory_per_uid, 512 << 20);
        assert_int_equal(c->subscriber_queue, 8 << 20);
        assert_int_equal(c->connections_max, 256);
        assert_int_equal(c->connections_per_uid, 128);
        assert_int_equal(c->connections_control, 32);
        assert_int_equal(c->events_per_uid, 1000);
        assert_int_equal(c->fds_per_uid, 16384);
        assert_int_equal(c->n_targets, 1);
        assert_string_equal(c->targets[0].name, "host");
        assert_true(c->targets[0].inherit);
        assert_int_equal(c->n_events + c->n_groups + c->n_paths, 0);
        assert_ptr_equal(config_ref(c), c);
        assert_null(config_unref(c));
}

/* What the shipped file sets is what holds without it; it is written there to be found and changed. */
static void test_shipped(void **state) {
        _cleanup_(config_unrefp) Config *shipped = check(SHIPPED_CONFIG, ""), *c = config_default();

        assert_string_equal(shipped->control_path, c->control_path);
        assert_string_equal(shipped->stream_path, c->stream_path);
        assert_int_equal(shipped->control_mode, c->control_mode);
        assert_int_equal(shipped->stream_mode, c->stream_mode);
        assert_string_equal(shipped->stream_group, c->stream_group);
        assert_int_equal(shipped->ring_size, c->ring_size);
        assert_int_equal(shipped->subscribers_max, c->subscribers_max);
        assert_int_equal(shipped->subscriber_queue, c->subscriber_queue);
        assert_int_equal(shipped->subscriber_memory, c->subscriber_memory);
        assert_int_equal(shipped->subscriber_memory_per_uid, c->subscriber_memory_per_uid);
        assert_int_equal(shipped->n_targets, 1);
        assert_int_equal(shipped->n_events, 4);
        assert_string_equal(shipped->events[2].name, "file-create");
        assert_string_equal(shipped->events[2].filter, "flags & 0x40");
        assert_int_equal(shipped->events[3].frequency, 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_rules, folder_make, folder_remove),
                cmocka_unit_test_setup_teardown(test_drop_ins, folder_make, folder_remove),
                cmocka_unit_test_setup_teardown(test_mistakes_of_all_files, folder_make, folder_remove),
                cmocka_unit_test_setup_teardown(test_unreadable_files, folder_make, folder_remove),
                cmocka_unit_test(test_defaults),
                cmocka_unit_test(test_shipped),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
