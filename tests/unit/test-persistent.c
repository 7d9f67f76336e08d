/*
 * Persistent events, of registrations and pending events that are made here: the state file before a change, behind one that was
 * refused, and where it cannot be written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/thread.h"
#include "daemon/kernel/host/state-file.h"
#include "daemon/supervisor/changes/persistent.h"
#include "proto/perfd.pb-c.h"

#define N_EVENTS 3

typedef struct Rig {
        char folder[32], path[48];
        Event events_of[N_EVENTS];
        Registration registrations[N_EVENTS]; /* "first", "second", "third": the first two are persistent */
        Events events;
        Operations operations;
        Changes changes;
        Explanation e;
} Rig;

static char name_1[] = "first", name_2[] = "second", name_3[] = "third", waits[] = "waits", new[] = "new";
static char *const names[N_EVENTS] = { name_1, name_2, name_3 };
static char sched_switch[] = "sched:sched_switch", sched_wakeup[] = "sched:sched_wakeup";

static void add_pending(Rig *rig, const char *name, bool is_configured) {
        Perfd__V1__EventSpec *spec = malloc(sizeof(*spec));
        const ConfigPlace place = { .path = "perfd.yaml", .line = 1, .column = 1 };
        PendingEvent **end = &rig->events.pending.first;

        assert_non_null(spec);
        perfd__v1__event_spec__init(spec);
        spec->name = strdup(name);
        spec->event = strdup("sched:sched_switch");
        while (*end)
                end = &(*end)->next;
        assert_int_equal(pending_new(spec, is_configured ? &place : NULL, NULL, end), 0);
}

static int setup(void **state) {
        Rig *rig = calloc(1, sizeof(*rig));

        assert_non_null(rig);
        strcpy(rig->folder, "/tmp/test-persistent.XXXXXX");
        assert_non_null(mkdtemp(rig->folder));
        (void)snprintf(rig->path, sizeof(rig->path), "%s/events", rig->folder);
        for (size_t i = 0; i < N_EVENTS; i++) {
                rig->events_of[i].spec = (EventSpec){ .name = names[i], .event = sched_switch };
                rig->registrations[i] = (Registration){ .event = &rig->events_of[i], .enabled = true, .is_persistent = i < 2,
                                                        .next = i + 1 < N_EVENTS ? &rig->registrations[i + 1] : NULL };
        }
        rig->events = (Events){ .registrations = rig->registrations, .n_registrations = N_EVENTS };
        assert_true(sd_event_new(&rig->operations.event) >= 0);
        rig->changes = (Changes){ .events = &rig->events, .operations = &rig->operations, .state_path = rig->path };
        assert_int_equal(persistent_start(&rig->changes), 0);
        *state = rig;
        return 0;
}

static int teardown(void **state) {
        Rig *rig = *state;

        persistent_free(&rig->changes);
        sd_event_unref(rig->operations.event);
        pending_free_list(rig->events.pending.first);
        (void)chmod(rig->folder, 0700);
        (void)unlink(rig->path);
        (void)rmdir(rig->folder);
        free(rig);
        return 0;
}

/* Names of the file's events in their order, "!" in front of those that are disabled; "-": there is no file. */
static void assert_file(const Rig *rig, const char *expected) {
        _cleanup_free_ uint8_t *bytes = NULL;
        Perfd__V1__AddRequest *q;
        Explanation e = EXPLANATION_NULL;
        char found[128] = "";
        size_t n = 0;
        int r = state_file_read(rig->path, &bytes, &n, &e);

        if (r == STATE_FILE_E_MISSING) {
                assert_string_equal("-", expected);
                return;
        }
        assert_int_equal(r, 0);
        q = perfd__v1__add_request__unpack(NULL, n, bytes);
        assert_non_null(q);
        for (size_t i = 0; i < q->n_events; i++) {
                size_t used = strlen(found);

                (void)snprintf(found + used, sizeof(found) - used, "%s%s%s", i > 0 ? " " : "", q->events[i]->disabled ? "!" : "",
                               q->events[i]->name);
        }
        perfd__v1__add_request__free_unpacked(q, NULL);
        assert_string_equal(found, expected);
}

static int write_change(Rig *rig, PersistentChange change) {
        return persistent_write(&rig->changes, &change, &rig->e);
}

static void test_nothing_persistent(void **state) {
        Rig *rig = *state;
        Registration *third = &rig->registrations[2];

        assert_int_equal(write_change(rig, (PersistentChange){ .subjects = &third, .n_subjects = 1, .removed = true }), 0);
        assert_file(rig, "-");
}

static void test_added(void **state) {
        Rig *rig = *state;
        Event event = { .spec = { .name = new, .event = sched_wakeup, .disabled = true } };
        Registration added = { .event = &event };

        add_pending(rig, "waits", false);
        add_pending(rig, "configured", true);
        assert_int_equal(persistent_write(&rig->changes, &(PersistentChange){ .added = &added }, &rig->e), 0);
        assert_file(rig, "first second !new waits");
        assert_int_equal(persistent_restore(&rig->changes, &(PersistentChange){ .added = &added }), 0);
        assert_file(rig, "first second waits");
}

/* What is pending under the name of what is added now goes. */
static void test_added_in_place_of_pending(void **state) {
        Rig *rig = *state;
        Event event = { .spec = { .name = waits, .event = sched_wakeup } };
        Registration added = { .event = &event };
        const PersistentChange change = { .added = &added };

        add_pending(rig, "waits", false);
        assert_int_equal(persistent_write(&rig->changes, &change, &rig->e), 0);
        assert_file(rig, "first second waits");
        persistent_forget_pending(&rig->changes, &change);
        assert_null(rig->events.pending.first);
}

static void test_removed_and_disabled(void **state) {
        Rig *rig = *state;
        Registration *first = &rig->registrations[0], *second = &rig->registrations[1];
        const bool on = false;

        assert_int_equal(write_change(rig, (PersistentChange){ .subjects = &second, .n_subjects = 1, .enabled = &on }), 0);
        assert_file(rig, "first !second");
        assert_int_equal(write_change(rig, (PersistentChange){ .subjects = &first, .n_subjects = 1, .removed = true }), 0);
        assert_file(rig, "second");
        assert_false(first->is_selected);
}

/* A change is not begun that could not be stored, but for one that lets go of something. */
static void test_refused(void **state) {
        Rig *rig = *state;
        Registration *first = &rig->registrations[0];
        const PersistentChange change = { .subjects = &first, .n_subjects = 1, .removed = true };
        const bool on = true, off = false;
        char missing[] = "/proc/none/events", unusable[] = "it was written by somebody else";

        rig->changes.state_path = missing;
        assert_int_not_equal(write_change(rig, (PersistentChange){ .subjects = &first, .n_subjects = 1, .enabled = &on }), 0);
        assert_string_equal(rig->e.reason, "state-file");
        assert_null(rig->changes.state_unstored);
        assert_int_equal(write_change(rig, (PersistentChange){ .subjects = &first, .n_subjects = 1, .enabled = &off }), 0);
        assert_non_null(strstr(rig->e.text, "enables them again"));
        assert_non_null(rig->changes.state_unstored);
        assert_int_equal(persistent_write(&rig->changes, &change, &rig->e), 0);
        assert_non_null(strstr(rig->e.text, "adds them again"));
        assert_file(rig, "-");
        rig->changes.state_path = rig->path; /* the timer has run */
        assert_int_equal(sd_event_source_set_time_relative(rig->changes.state_timer, 0), 0);
        assert_int_equal(sd_event_run(rig->operations.event, UINT64_MAX), 1);
        assert_true(rig->operations.is_due[CHANGE_STATE]);
        assert_int_equal(changes_store_state(&rig->changes), 0);
        assert_null(rig->changes.state_unstored);
        assert_file(rig, "first second"); /* nobody has taken the first one out here */
        (void)unlink(rig->path);
        rig->changes.state_path = rig->path;
        rig->changes.state_unusable = unusable;
        assert_int_equal(persistent_write(&rig->changes, &change, &rig->e), REFUSED_DENIED);
        assert_string_equal(rig->e.reason, "state-file");
        assert_non_null(strstr(rig->e.text, "it was written by somebody else"));
        assert_file(rig, "-");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_nothing_persistent, setup, teardown),
                cmocka_unit_test_setup_teardown(test_added, setup, teardown),
                cmocka_unit_test_setup_teardown(test_added_in_place_of_pending, setup, teardown),
                cmocka_unit_test_setup_teardown(test_removed_and_disabled, setup, teardown),
                cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
        };

        thread_become(THREAD_MAIN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
