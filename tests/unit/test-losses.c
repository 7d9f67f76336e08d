/*
 * What the log says of losses, as the supervisor's parts say it on a kernel that is played: of each event once what is new, with its
 * reasons as fields, of the sixteen that lost most by name, and of an event that goes what was not said yet.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "daemon/base/log.h"
#include "daemon/supervisor/ledger/losses.h"
#include "tests/unit/supervisor-rig.h"

#define SAID_MAX 32

typedef struct Said {
        int priority;
        char text[160], fields[256];
} Said;

static Said said[SAID_MAX]; /* of losses, since they were last checked */
static size_t n_said;

void __wrap_log_put(const LogPlace *place, int priority, LogMessage message, const LogField *fields, const char *format, ...)
        __attribute__((format(printf, 5, 6)));
void __wrap_log_put(const LogPlace *place, int priority, LogMessage message, const LogField *fields, const char *format, ...) {
        Said *s = &said[n_said];
        va_list args;

        if (message != MESSAGE_LOST)
                return;
        assert_in_range(n_said, 0, SAID_MAX - 1);
        n_said++;
        *s = (Said){ .priority = priority };
        va_start(args, format);
        (void)vsnprintf(s->text, sizeof(s->text), format, args);
        va_end(args);
        for (; fields->name; fields++) {
                size_t used = strlen(s->fields);

                if (fields->value)
                        (void)snprintf(s->fields + used, sizeof(s->fields) - used, "%s=%s ", fields->name, fields->value);
        }
}

static void look(Rig *rig) {
        Ledger *l = &rig->supervisor.ledger;

        loss_bell_note(&l->losses.bell);
        assert_int_equal(ledger_on_losses(l), 0);
}

/* On a line each what was said since the last time. */
static void check_said(const char *const *texts, size_t n) {
        assert_int_equal(n_said, n);
        for (size_t i = 0; i < n; i++)
                assert_string_equal(said[i].text, texts[i]);
        n_said = 0;
}

static void begin(Rig *rig) {
        rig_start(rig);
        played_write_samples(true);
        n_said = 0;
}

static void test_each_once(void **state) {
        static const char *const both[] = { "a: 6 samples lost: kernel_ring 6", "b: 6 samples lost: kernel_ring 6" };
        static const char *const later[] = { "a: 4 samples lost: kernel_ring 4", "b: 4 samples lost: kernel_ring 4" };
        Rig rig;

        begin(&rig);
        assert_int_equal(rig_add(&rig, (const char *const[]){ "a=" RIG_TRACEPOINT, "b=" RIG_TRACEPOINT }, 2), 0);
        played_occur(5);
        look(&rig);
        check_said(NULL, 0);
        played_lose(3); /* on each of two CPUs */
        look(&rig);
        assert_int_equal(said[0].priority, LOG_WARNING);
        assert_string_equal(said[0].fields, "EVENT=a LOST_KERNEL_RING=6 LOST=6 REASON=kernel_ring ");
        check_said(both, 2);
        look(&rig);
        check_said(NULL, 0);
        played_lose(2);
        look(&rig);
        check_said(later, 2);
        rig_stop(&rig);
}

/* Nobody rang: what the kernel has counted is not asked for. */
static void test_not_noted(void **state) {
        Rig rig;

        begin(&rig);
        assert_int_equal(rig_add(&rig, (const char *const[]){ "a=" RIG_TRACEPOINT }, 1), 0);
        played_lose(1);
        assert_int_equal(ledger_on_losses(&rig.supervisor.ledger), 0);
        check_said(NULL, 0);
        assert_int_equal(rig_remove(&rig, "a"), 0);
        check_said(NULL, 0);
        rig_stop(&rig);
}

/* Those that lost least are said together. */
static void test_many(void **state) {
        char name[32];
        Rig rig;

        begin(&rig);
        for (int i = 0; i < 20; i++) {
                const char *text = name;

                (void)snprintf(name, sizeof(name), "%se%02d=" RIG_TRACEPOINT, i < 4 ? "!" : "", i);
                assert_int_equal(rig_add(&rig, &text, 1), 0);
        }
        played_lose(1); /* of those that come last, because the others are disabled */
        assert_int_equal(rig_enable_all(&rig), 0);
        n_said = 0;
        played_lose(1);
        look(&rig);
        assert_int_equal(n_said, 17);
        for (size_t i = 0; i < 16; i++)
                assert_string_equal(said[i].text + strlen("e00"), ": 4 samples lost: kernel_ring 4");
        assert_string_equal(said[16].fields, "LOST_KERNEL_RING=8 LOST=8 REASON=kernel_ring ");
        assert_string_equal(said[16].text, "4 more events: 8 samples lost: kernel_ring 8");
        n_said = 0;
        played_lose(1);
        look(&rig);
        assert_int_equal(n_said, 17);
        assert_string_equal(said[16].text + strlen("4 more events: "), "8 samples lost: kernel_ring 8");
        n_said = 0;
        rig_stop(&rig);
}

/* What was lost since the last look is said before the event is forgotten, and of no other; perfd's end says the rest. */
static void test_last(void **state) {
        Rig rig;

        begin(&rig);
        assert_int_equal(rig_add(&rig, (const char *const[]){ "a=" RIG_TRACEPOINT, "b=" RIG_TRACEPOINT }, 2), 0);
        played_lose(4);
        loss_bell_note(&rig.supervisor.ledger.losses.bell);
        assert_int_equal(rig_remove(&rig, "a"), 0);
        check_said((const char *const[]){ "a: 8 samples lost: kernel_ring 8" }, 1);
        assert_int_equal(rig.supervisor.ledger.losses.removed[LOSS_KERNEL_RING], 8);
        assert_int_equal(ledger_say_last_losses(&rig.supervisor.ledger, NULL, 0), 0);
        check_said((const char *const[]){ "b: 8 samples lost: kernel_ring 8" }, 1);
        rig_stop(&rig);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_once),
                cmocka_unit_test(test_not_noted),
                cmocka_unit_test(test_many),
                cmocka_unit_test(test_last),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
