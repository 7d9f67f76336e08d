/*
 * Events that outlive the daemon, on a played kernel: the next one has them as they were when the last one ended, the state file
 * says of each change what is so, and of a refused one what was so. A file that cannot be read, or written, keeps nothing else from
 * its work.
 */
#include "tests/unit/supervisor-rig.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/supervisor/changes/changes.h"
#include "daemon/supervisor/configuration/load-persistent.h"
#include "daemon/supervisor/configuration/retry.h"

#define EXEC "sched:sched_process_exec"

static const char *const two[] = { "page-faults", "!minor=minor-faults" };
static const char *const tracepoint[] = { RIG_TRACEPOINT };
static const char *const not_kept[] = { "major-faults" };

static char folder[32]; /* of the state file, over restarts */

/* ---- what is done ------------------------------------------------------------------------------------------------ */

static const char *state_file(void) {
        static char path[64];

        (void)snprintf(path, sizeof(path), "%s/events", folder);
        return path;
}

/* "": there is none. */
static char *read_state(void) {
        char *bytes = NULL;
        size_t size = 0, n = 0;
        FILE *f = fopen(state_file(), "re"), *to = open_memstream(&bytes, &size);

        assert_non_null(to);
        for (int c; f && (c = fgetc(f)) != EOF; n++) /* its text alone: bytes that are none are as hex */
                assert_true((c >= ' ' && c < 127 ? fputc(c, to) : fprintf(to, "\\%02x", (unsigned)c)) > 0);
        if (f)
                fclose(f);
        assert_int_equal(fclose(to), 0);
        return bytes;
}

static int load(Rig *rig) {
        rig->supervisor.settings.runtime_directory = strdup(folder);
        assert_non_null(rig->supervisor.settings.runtime_directory);
        return configuration_load_persistent(&rig->supervisor.configuration);
}

static void begin(Rig *rig) {
        rig_start(rig);
        assert_int_equal(load(rig), 0);
}

static void restart(Rig *rig) {
        rig_stop(rig);
        begin(rig);
}

static int prepare(Rig *rig) {
        (void)unlink(state_file());
        assert_int_equal(load(rig), 0);
        assert_int_equal(rig_add_persistent(rig, two, 2), 0);
        return rig_add_persistent(rig, tracepoint, 1);
}

static int prepare_two(Rig *rig) {
        (void)unlink(state_file());
        assert_int_equal(load(rig), 0);
        return rig_add_persistent(rig, two, 2);
}

static int add_one(Rig *rig) {
        return rig_add_persistent(rig, tracepoint, 1);
}

static int remove_all(Rig *rig) {
        return rig_remove(rig, "*");
}

static int set_filter(Rig *rig) {
        return changes_set_filter(&rig->supervisor.changes, RIG_TRACEPOINT, "vec == 3", &rig->e);
}

/* ---- whole ------------------------------------------------------------------------------------------------------- */

static void test_restored(void **state) {
        Rig rig;

        rig_start(&rig);
        assert_int_equal(prepare(&rig), 0);
        assert_int_equal(rig_add(&rig, not_kept, 1), 0);
        assert_int_equal(set_filter(&rig), 0);
        assert_int_equal(changes_set_period(&rig.supervisor.changes, "page-faults", 7, 0, &rig.e), 0);
        restart(&rig);
        assert_int_equal(rig.supervisor.events.n_registrations, 3);
        rig_check_opened(&rig, "page-faults", true);
        rig_check_opened(&rig, "minor", false);
        rig_check_opened(&rig, RIG_TRACEPOINT, true);
        assert_int_equal(played_fd(rig_find(&rig, "page-faults")->opened.fds[0].fd)->attr.sample_period, 7);
        assert_string_equal(played_fd(rig_find(&rig, RIG_TRACEPOINT)->opened.fds[0].fd)->filter, "vec == 3");
        assert_true(rig_find(&rig, "minor")->is_persistent);
        assert_int_equal(rig_enable_all(&rig), 0);
        assert_int_equal(rig_remove(&rig, "page-faults"), 0);
        restart(&rig);
        assert_int_equal(rig.supervisor.events.n_registrations, 2);
        rig_check_opened(&rig, "minor", true);
        assert_int_equal(remove_all(&rig), 0);
        restart(&rig);
        assert_int_equal(rig.supervisor.events.n_registrations, 0);
        rig_stop(&rig);
}

/* What a restart cannot open waits in the file, over other changes and restarts, until it can; or is removed from there. */
static void test_waits(void **state) {
        static const char *const exec[] = { EXEC };
        Rig rig;

        rig_start(&rig);
        rig_make_tracepoint(&rig, EXEC);
        assert_int_equal(prepare_two(&rig), 0);
        assert_int_equal(rig_add_persistent(&rig, exec, 1), 0);
        restart(&rig);
        assert_int_equal(events_count_pending(&rig.supervisor.events), 1);
        rig_check_opened(&rig, "page-faults", true);
        assert_int_equal(rig_remove(&rig, "page-faults"), 0);
        restart(&rig);
        assert_null(rig_find(&rig, "page-faults"));
        assert_non_null(events_find_pending(&rig.supervisor.events, EXEC));
        rig_make_tracepoint(&rig, EXEC);
        assert_int_equal(configuration_retry_pending(&rig.supervisor.configuration), 0);
        rig_check_opened(&rig, EXEC, true);
        assert_true(rig_find(&rig, EXEC)->is_persistent);
        restart(&rig);
        assert_int_equal(rig_remove(&rig, EXEC), 0);
        assert_int_equal(events_count_pending(&rig.supervisor.events), 0);
        restart(&rig);
        assert_int_equal(events_count_pending(&rig.supervisor.events), 0);
        rig_check_opened(&rig, "minor", false);
        rig_stop(&rig);
}

/* ---- damaged files ----------------------------------------------------------------------------------------------- */

static void write_state(const char *bytes, size_t n) {
        FILE *f = fopen(state_file(), "we");

        assert_non_null(f);
        assert_int_equal(fwrite(bytes, 1, n, f), n);
        assert_int_equal(fclose(f), 0);
}

/* It is renamed, and the next ones are kept. */
static void test_damaged(void **state) {
        static const struct {
                const char *bytes;
                size_t n;
        } damaged[] = { { "", 0 }, { "perfd events 1 3\n\377\377\377", 20 }, { "perfd events 1 100\nabc", 22 }, { "perfd ev", 8 } };

        for (size_t i = 0; i < ARRAY_SIZE(damaged); i++) {
                struct stat st;
                Rig rig;

                write_state(damaged[i].bytes, damaged[i].n);
                begin(&rig);
                assert_int_equal(rig.supervisor.events.n_registrations, 0);
                assert_int_equal(events_count_pending(&rig.supervisor.events), 0);
                assert_null(rig.supervisor.changes.state_unusable);
                assert_int_equal(stat(state_file(), &st), -1);
                assert_int_equal(rig_add_persistent(&rig, two, 2), 0);
                restart(&rig);
                rig_check_opened(&rig, "page-faults", true);
                rig_stop(&rig);
        }
}

/* Something else has its place, which is left alone: nothing can be kept, all else can be done. */
static void test_unusable(void **state) {
        Rig rig;

        (void)unlink(state_file());
        assert_int_equal(mkdir(state_file(), 0700), 0);
        begin(&rig);
        assert_non_null(rig.supervisor.changes.state_unusable);
        assert_int_equal(rig_add_persistent(&rig, two, 2), REFUSED_DENIED);
        assert_string_equal(rig.e.reason, "state-file");
        assert_int_equal(rig.supervisor.events.n_registrations, 0);
        assert_int_equal(played_count_open(), RIG_CPUS);
        assert_int_equal(rig_add(&rig, two, 2), 0);
        rig_check_opened(&rig, "page-faults", true);
        assert_int_equal(remove_all(&rig), 0);
        rig_stop(&rig);
        assert_int_equal(rmdir(state_file()), 0);
}

/* ---- refused ----------------------------------------------------------------------------------------------------- */

static char *as_prepared; /* the file */

static int prepare_and_read(Rig *rig) {
        int r = prepare(rig);

        free(as_prepared);
        as_prepared = read_state();
        return r;
}

static int prepare_two_and_read(Rig *rig) {
        int r = prepare_two(rig);

        free(as_prepared);
        as_prepared = read_state();
        return r;
}

static void check_file(Rig *rig, PlayedCall call, int r, const char *before) {
        _cleanup_free_ char *after = NULL, *now = NULL;

        assert_int_not_equal(r, 0);
        if (r < 0)
                return; /* the process ends: as it would be, or was */
        after = rig_picture(rig);
        assert_string_equal(after, before);
        now = read_state();
        assert_string_equal(now, as_prepared);
}

static void test_kernel_refuses(void **state) {
        assert_int_equal(rig_fail_each_as(PLAYED_OPEN, EMFILE, prepare_two_and_read, add_one, check_file), RIG_CPUS);
        assert_int_equal(rig_fail_each_as(PLAYED_IOCTL, ENOMEM, prepare_two_and_read, add_one, check_file), 4 * RIG_CPUS);
        assert_int_equal(rig_fail_each_as(PLAYED_OPEN, EMFILE, prepare_and_read, set_filter, check_file), RIG_CPUS);
        assert_int_equal(rig_fail_each_as(PLAYED_IOCTL, ENOMEM, prepare_and_read, set_filter, check_file), 7 * RIG_CPUS);
        assert_int_equal(rig_fail_each_as(PLAYED_IOCTL, ENOMEM, prepare_and_read, rig_enable_all, check_file), 2 * RIG_CPUS);
}

static const struct rlimit no_byte = { 0, RLIM_INFINITY }, any_byte = { RLIM_INFINITY, RLIM_INFINITY };

/* No byte can be written: what would have to be is refused before anything is changed. */
static void test_file_is_refused(void **state) {
        _cleanup_free_ char *before = NULL;
        int r;
        Rig rig;

        signal(SIGXFSZ, SIG_IGN);
        rig_start(&rig);
        assert_int_equal(prepare_and_read(&rig), 0);
        before = rig_picture(&rig);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &no_byte), 0);
        r = rig_enable_all(&rig);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &any_byte), 0);
        assert_int_equal(r, REFUSED_DENIED);
        assert_string_equal(rig.e.reason, "state-file");
        check_file(&rig, PLAYED_OPEN, r, before);
        assert_int_equal(rig_enable_all(&rig), 0);
        rig_stop(&rig);
}

/* But for what lets go of something: it is done, and stored later. */
static void test_let_go_without_file(void **state) {
        static const RigChange changes[] = { rig_disable_all, remove_all };

        signal(SIGXFSZ, SIG_IGN);
        for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
                int r;
                Rig rig;

                rig_start(&rig);
                assert_int_equal(prepare_and_read(&rig), 0);
                assert_int_equal(setrlimit(RLIMIT_FSIZE, &no_byte), 0);
                r = changes[i](&rig);
                assert_int_equal(setrlimit(RLIMIT_FSIZE, &any_byte), 0);
                assert_int_equal(r, 0);
                assert_non_null(rig.supervisor.changes.state_unstored);
                assert_int_equal(changes_store_state(&rig.supervisor.changes), 0);
                assert_null(rig.supervisor.changes.state_unstored);
                rig_stop(&rig);
        }
}

static int make_folder(void **state) {
        (void)snprintf(folder, sizeof(folder), "/tmp/test-restart.XXXXXX");
        return mkdtemp(folder) ? 0 : -1;
}

/* With what was put aside. */
static int remove_folder(void **state) {
        char command[64];

        free(as_prepared);
        (void)snprintf(command, sizeof(command), "rm -r %s", folder);
        return system(command);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_restored),
                cmocka_unit_test(test_waits),
                cmocka_unit_test(test_damaged),
                cmocka_unit_test(test_unusable),
                cmocka_unit_test(test_kernel_refuses),
                cmocka_unit_test(test_file_is_refused),
                cmocka_unit_test(test_let_go_without_file),
        };

        thread_become(THREAD_MAIN);
        return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
