/*
 * Events of a configuration that cannot be opened now, on a played kernel: the others run, and each is opened by the next look
 * after what it needs came. What a look is refused stays pending, and nothing else changes.
 */
#include "tests/unit/supervisor-rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/supervisor/configuration/configuration.h"
#include "daemon/supervisor/configuration/retry.h"

#define HEAD "version: 1\nrings:\n  size: 16KiB\ngroups:\n  all:\n    target: host\n    events:\n"
#define THERE "      - page-faults\n      - minor-faults\n"
#define LATER "      - " EXEC "\n"
#define NEVER "      - kmem:mm_page_alloc\n"
#define LATE "      - net:netif_rx\n"
#define EXEC "sched:sched_process_exec"

/* ---- what is done ------------------------------------------------------------------------------------------------ */

static int apply(Rig *rig, const char *yaml, bool may_wait) {
        const ConfigText text = { .path = "test.yaml", .bytes = yaml, .length = strlen(yaml) };
        Perfd__V1__ReloadReply reply = PERFD__V1__RELOAD_REPLY__INIT;

        return configuration_apply(&rig->supervisor.configuration, &text, 1, may_wait, &reply, &rig->e);
}

static int start_with(Rig *rig, const char *yaml) {
        return apply(rig, yaml, true);
}

static int retry(Rig *rig) {
        return configuration_retry_pending(&rig->supervisor.configuration);
}

static int prepare(Rig *rig) {
        int r = start_with(rig, HEAD THERE LATER NEVER LATE);

        rig_make_tracepoint(rig, EXEC);
        rig_make_tracepoint(rig, "net:netif_rx");
        return r;
}

static int prepare_one(Rig *rig) {
        int r = start_with(rig, HEAD THERE LATER);

        rig_make_tracepoint(rig, EXEC);
        return r;
}

static size_t count_pending(Rig *rig) {
        int enabled;

        assert_true(sd_event_source_get_enabled(rig->supervisor.events.pending.timer, &enabled) >= 0);
        assert_int_equal(enabled, rig->supervisor.events.pending.first ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
        return events_count_pending(&rig->supervisor.events);
}

static void check_others(Rig *rig) {
        rig_check_opened(rig, "page-faults", true);
        rig_check_opened(rig, "minor-faults", true);
        rig_check_carriers(rig, true);
}

/* ---- whole ------------------------------------------------------------------------------------------------------- */

static void test_comes_later(void **state) {
        Rig rig;

        rig_start(&rig);
        assert_int_equal(start_with(&rig, HEAD THERE LATER NEVER LATE), 0);
        check_others(&rig);
        assert_int_equal(count_pending(&rig), 3);
        assert_string_equal(events_find_pending(&rig.supervisor.events, EXEC)->place, "test.yaml:10:9: ");
        assert_non_null(strstr(events_find_pending(&rig.supervisor.events, EXEC)->why, EXEC));
        assert_int_equal(retry(&rig), 0);
        assert_int_equal(count_pending(&rig), 3);
        rig_make_tracepoint(&rig, EXEC);
        rig_make_tracepoint(&rig, "net:netif_rx");
        assert_int_equal(retry(&rig), 0);
        rig_check_opened(&rig, EXEC, true);
        rig_check_opened(&rig, "net:netif_rx", true);
        check_others(&rig);
        assert_int_equal(count_pending(&rig), 1);
        assert_true(rig_find(&rig, EXEC)->event->spec.configured);
        assert_int_equal(start_with(&rig, HEAD THERE LATER), 0);
        assert_int_equal(count_pending(&rig), 0);
        assert_null(rig_find(&rig, "net:netif_rx"));
        rig_stop(&rig);
}

/* Its tracepoint has gone since it was opened, as with a module: it runs as it is. With another filter it cannot. */
static void test_runs_without(void **state) {
        static const char filtered[] = HEAD THERE "      - event: " RIG_TRACEPOINT "\n        filter: vec == 3\n";
        char path[128];
        Rig rig;

        rig_start(&rig);
        assert_int_equal(start_with(&rig, HEAD THERE "      - " RIG_TRACEPOINT "\n"), 0);
        played_occur(2);
        (void)snprintf(path, sizeof(path), "%s/events/irq/softirq_entry/format", rig.folder);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(start_with(&rig, HEAD "      - page-faults\n      - " RIG_TRACEPOINT "\n"), 0);
        assert_int_equal(count_pending(&rig), 0);
        rig_check_opened(&rig, RIG_TRACEPOINT, true);
        assert_int_equal(rig_occurred(&rig, RIG_TRACEPOINT), 2 * RIG_CPUS);
        assert_null(rig_find(&rig, "minor-faults"));
        assert_int_equal(start_with(&rig, filtered), 0);
        assert_int_equal(count_pending(&rig), 1);
        assert_null(rig_find(&rig, RIG_TRACEPOINT));
        check_others(&rig);
        rig_stop(&rig);
}

/* Where the configuration is strict nothing of it runs. */
static void test_strict(void **state) {
        _cleanup_free_ char *before = NULL, *after = NULL;
        Rig rig;

        rig_start(&rig);
        before = rig_picture(&rig);
        assert_int_equal(apply(&rig, HEAD THERE LATER, false), REFUSED_NOT_FOUND);
        assert_int_equal(strncmp(rig.e.text, "test.yaml:10:9: ", 16), 0);
        after = rig_picture(&rig);
        assert_string_equal(after, before);
        rig_stop(&rig);
}

/* ---- at the start ------------------------------------------------------------------------------------------------ */

static int prepare_start(Rig *rig) {
        Config *c = NULL;
        int r = config_parse("test.yaml", HEAD THERE LATER, strlen(HEAD THERE LATER), &(ConfigDiagnostics){ .n_items = 0 }, &c);

        config_unref(rig->supervisor.settings.config);
        rig->supervisor.settings.config = c;
        rig_make_tracepoint(rig, EXEC);
        return r;
}

static int start(Rig *rig) {
        return configuration_apply_initial(&rig->supervisor.configuration, &rig->e);
}

static void check_started(Rig *rig, PlayedCall call, int r, const char *before) {
        assert_int_equal(r, 0);
        assert_int_equal(retry(rig), 0);
        assert_int_equal(count_pending(rig), 0);
        check_others(rig);
        rig_check_opened(rig, EXEC, true);
        assert_int_equal(played_count_open(), (3 + 1) * RIG_CPUS);
}

/* What cannot be opened alone is pending; where they cannot be enabled as one, each is tried on its own. */
static void test_start_fails(void **state) {
        assert_int_equal(rig_fail_each_as(PLAYED_OPEN, EACCES, prepare_start, start, check_started), 3 * RIG_CPUS);
        assert_int_equal(rig_fail_each_as(PLAYED_IOCTL, ENOMEM, prepare_start, start, check_started), (3 * 4 + 2) * RIG_CPUS);
}

/* ---- a look fails ------------------------------------------------------------------------------------------------ */

/* It is pending as before, but for its reason, and opened by the next look. */
static void check_next_look(Rig *rig, PlayedCall call, int r, const char *before) {
        _cleanup_free_ char *after = NULL;

        assert_int_equal(r, 0);
        assert_int_equal(count_pending(rig), 1);
        assert_null(rig_find(rig, EXEC));
        assert_null(strstr(events_find_pending(&rig->supervisor.events, EXEC)->why, "there is no"));
        after = rig_picture(rig);
        assert_int_equal(strcspn(after, "\n"), strcspn(before, "\n"));
        assert_string_equal(strstr(after, "reader of"), strstr(before, "reader of"));
        assert_int_equal(retry(rig), 0);
        check_started(rig, call, r, before);
        assert_int_equal(rig_occurred(rig, "page-faults"), 3 * RIG_CPUS);
}

static void test_look_fails(void **state) {
        assert_int_equal(rig_fail_each_as(PLAYED_OPEN, EMFILE, prepare_one, retry, check_next_look), RIG_CPUS);
        assert_int_equal(rig_fail_each_as(PLAYED_IOCTL, ENOMEM, prepare_one, retry, check_next_look), 4 * RIG_CPUS);
}

/* Of several, one of which cannot be opened at all, each half is tried: the others are open all the same, whichever call fails. */
static void check_halves(Rig *rig, PlayedCall call, int r, const char *before) {
        assert_int_equal(r, 0);
        assert_int_equal(retry(rig), 0);
        assert_int_equal(count_pending(rig), 1);
        rig_check_opened(rig, EXEC, true);
        rig_check_opened(rig, "net:netif_rx", true);
        check_others(rig);
        assert_int_equal(played_count_open(), (4 + 1) * RIG_CPUS);
}

static void test_halves_fail(void **state) {
        assert_int_equal(rig_fail_each_as(PLAYED_OPEN, EMFILE, prepare, retry, check_halves), 2 * RIG_CPUS);
        assert_int_equal(rig_fail_each_as(PLAYED_IOCTL, ENOMEM, prepare, retry, check_halves), 2 * 4 * RIG_CPUS);
        assert_true(rig_fail_each(PLAYED_ALLOCATION, ENOMEM, prepare_one, retry) > 50);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_comes_later),
                cmocka_unit_test(test_runs_without),
                cmocka_unit_test(test_strict),
                cmocka_unit_test(test_start_fails),
                cmocka_unit_test(test_look_fails),
                cmocka_unit_test(test_halves_fail),
        };

        thread_become(THREAD_MAIN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
