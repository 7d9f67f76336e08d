/*
 * What the ledger says of an event on a CPU: that occurred is what was delivered, filtered and lost, to the last sample, and that
 * it says so only where all of it is of one cut. Its numbers are written here as readers and main would have left them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/supervisor/ledger/base.h"
#include "daemon/supervisor/ledger/events.h"
#include "daemon/supervisor/ledger/ledger.h"
#include "daemon/supervisor/ledger/removed.h"
#include "tests/unit/failing-allocations.h"

#define N_CPUS 2

/* ---- a ledger of two CPUs ---------------------------------------------------------------------------------------- */

typedef struct Rig {
        Ledger ledger;
        Readers readers;
        Events events;
        Host host;
        Operations operations; /* none runs */
        uint32_t cpus[N_CPUS];
        Reader *by_slot;
        Answering answering[N_CPUS];
        Registration registrations[2];
} Rig;

static void add_event(Rig *rig, size_t i, uint32_t id, const char *name) {
        EventSpec spec = EVENT_SPEC_NULL;
        Registration *g = &rig->registrations[i];

        spec.name = __real_strdup(name);
        spec.event = __real_strdup(name);
        assert_non_null(spec.name);
        assert_non_null(spec.event);
        g->event = event_new(id, &spec, NULL, N_CPUS + 1);
        assert_non_null(g->event);
        g->event->exact = true;
        g->is_registered = true;
        if (i > 0)
                rig->registrations[i - 1].next = g;
        rig->events.n_registrations++;
}

static int setup(void **state) {
        Rig *rig = __real_calloc(1, sizeof(*rig));

        assert_non_null(rig);
        until_failure = 0;
        rig->by_slot = aligned_alloc(64, N_CPUS * sizeof(*rig->by_slot));
        assert_non_null(rig->by_slot);
        memset(rig->by_slot, 0, N_CPUS * sizeof(*rig->by_slot));
        for (uint32_t slot = 0; slot < N_CPUS; slot++)
                rig->cpus[slot] = 4 + slot;
        rig->readers.n_cpus = N_CPUS;
        rig->readers.cpus = rig->cpus;
        rig->readers.by_slot = rig->by_slot;
        rig->readers.answering.readers = rig->answering;
        rig->readers.attr.has_lost = true;
        rig->events.readers = &rig->readers;
        rig->events.registrations = &rig->registrations[0];
        rig->ledger.readers = &rig->readers;
        rig->ledger.events = &rig->events;
        rig->ledger.host = &rig->host;
        rig->ledger.operations = &rig->operations;
        add_event(rig, 0, 11, "first");
        add_event(rig, 1, 12, "second");
        *state = rig;
        return 0;
}

static int teardown(void **state) {
        Rig *rig = *state;

        ledger_free_removed(&rig->ledger);
        for (size_t i = 0; i < 2; i++)
                event_unref(rig->registrations[i].event);
        free(rig->by_slot);
        free(rig);
        return 0;
}

static EventCounters *counters(Rig *rig, size_t i, uint32_t slot) {
        return &rig->registrations[i].event->counters[slot];
}

/* 70 delivered, 20 filtered, 3 lost for want of batches, 7 that found the ring full. */
static void count_hundred(EventCounters *c) {
        counter_add(&c->delivered, 70);
        counter_add(&c->filtered, 20);
        counter_add(&c->lost[LOSS_BATCH_POOL], 3);
        c->cut = (EventCut){ .count = 100, .expected = 100, .ring_lost = 7, .delivered = 70, .filtered = 20, .is_consistent = true };
        c->cut.lost[LOSS_BATCH_POOL] = 3;
}

static bool numbers(Rig *rig, const DispatcherReport *report, uint32_t slot, LedgerNumbers *ret) {
        return ledger_numbers(&rig->ledger, report, rig->registrations[0].event, slot, ret);
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

static void test_adds_up(void **state) {
        LateRow late[] = { { .event = 11, .slot = 0, .count = 5 }, { .event = 11, .slot = 1, .count = 9 }, { .event = 12, .slot = 0, .count = 2 } };
        DispatcherReport report = { .late = late, .n_late = 3 };
        LedgerNumbers n;
        Rig *rig = *state;

        count_hundred(counters(rig, 0, 0));
        assert_true(numbers(rig, &report, 0, &n));
        assert_int_equal(n.occurred, 100);
        assert_int_equal(n.delivered, 65); /* less those that came too late for the merge */
        assert_int_equal(n.filtered, 20);
        assert_int_equal(n.lost[LOSS_LATE], 5);
        assert_int_equal(n.lost[LOSS_BATCH_POOL], 3);
        assert_int_equal(n.lost[LOSS_KERNEL_RING], 7);
        assert_int_equal(n.lost[LOSS_KERNEL_UNWRITTEN], 0);
        /* nothing was delivered there: what is late is of a later cut */
        counters(rig, 0, 1)->cut.is_consistent = true;
        assert_true(numbers(rig, &report, 1, &n));
        assert_int_equal(n.occurred, 0);
        assert_int_equal(n.lost[LOSS_LATE], 0);
}

static void test_unwritten(void **state) {
        DispatcherReport report = { .n_late = 0 };
        EventCounters *c = counters(*state, 0, 0);
        LedgerNumbers n;

        count_hundred(c);
        c->cut.expected = 104;
        assert_true(numbers(*state, &report, 0, &n));
        assert_int_equal(n.occurred, 104);
        assert_int_equal(n.lost[LOSS_KERNEL_UNWRITTEN], 4);
        c->cut.expected = 99; /* more was read than the kernel has counted: nobody knows why */
        assert_false(numbers(*state, &report, 0, &n));
        c->cut.expected = 104;
        c->cut.is_consistent = false; /* it is not known where the 4 lie */
        assert_false(numbers(*state, &report, 0, &n));
        assert_int_equal(n.lost[LOSS_KERNEL_UNWRITTEN], 0);
}

/* Without PERF_FORMAT_LOST, or of a cut by another CPU, what occurred is what is known of it. */
static void test_without_counts(void **state) {
        DispatcherReport report = { .n_late = 0 };
        Rig *rig = *state;
        EventCounters *c = counters(rig, 0, 0);
        LedgerNumbers n;

        count_hundred(c);
        c->cut.expected = 120;
        rig->readers.attr.has_lost = false;
        assert_true(numbers(rig, &report, 0, &n));
        assert_int_equal(n.occurred, 100);
        rig->readers.attr.has_lost = true;
        c->cut.is_approximate = true;
        assert_true(numbers(rig, &report, 0, &n));
        assert_int_equal(n.occurred, 100);
        assert_int_equal(n.lost[LOSS_KERNEL_UNWRITTEN], 0);
}

static void test_closed_and_standby(void **state) {
        DispatcherReport report = { .n_late = 0 };
        EventCounters *c = counters(*state, 0, 0);
        LedgerNumbers n;

        count_hundred(c);
        c->cut.expected = 60; /* the others were counted by fds that are closed, and some by fds on standby too */
        counter_add(&c->closed_expected, 90);
        c->closed_standby_expected = 30;
        c->cut.standby_expected = 20;
        assert_true(numbers(*state, &report, 0, &n));
        assert_int_equal(n.occurred, 100);
        counter_add(&c->closed_lost, 6); /* 4 of them while others were active */
        c->closed_standby_lost = 4;
        c->cut.ring_lost = 5;
        assert_true(numbers(*state, &report, 0, &n));
        assert_int_equal(n.occurred, 100);
        assert_int_equal(n.lost[LOSS_KERNEL_RING], 7);
}

/* What clients emit has no kernel that counts it, but main does. */
static void test_external(void **state) {
        DispatcherReport report = { .n_late = 0 };
        Rig *rig = *state;
        EventCounters *c = counters(rig, 0, N_CPUS);
        LedgerNumbers n;

        rig->readers.attr.has_lost = false;
        counter_add(&c->delivered, 8);
        counter_add(&c->filtered, 1);
        counter_add(&c->closed_expected, 9);
        counters_settle(c);
        assert_true(numbers(rig, &report, N_CPUS, &n));
        assert_int_equal(n.occurred, 9);
        counter_add(&c->closed_expected, 1);
        assert_false(numbers(rig, &report, N_CPUS, &n));
}

/* A reader that does not answer may be in the middle of its cut: what it has counted by now is said, and that it is no sum. */
static void test_stalled(void **state) {
        DispatcherReport report = { .n_late = 0 };
        Rig *rig = *state;
        EventCounters *c = counters(rig, 0, 1);
        LedgerNumbers n;

        count_hundred(c);
        counter_add(&c->delivered, 11);
        rig->answering[1].stalled_since = 1;
        assert_false(numbers(rig, &report, 1, &n));
        assert_int_equal(n.delivered, 81);
        rig->answering[1].stalled_since = 0;
        rig->answering[1].sequence = 2; /* asked, and has not answered yet */
        assert_false(numbers(rig, &report, 1, &n));
        assert_int_equal(n.delivered, 81);
        atomic_store(&rig->by_slot[1].acknowledged, 2);
        assert_true(numbers(rig, &report, 1, &n));
        assert_int_equal(n.delivered, 70);
}

static void test_totals(void **state) {
        Rig *rig = *state;
        EventCut sum;

        count_hundred(counters(rig, 0, 0));
        count_hundred(counters(rig, 0, 1));
        counters(rig, 0, 1)->cut.expected = 102;
        counters_note_kernel(counters(rig, 0, 0));
        counters_note_kernel(counters(rig, 0, 1));
        counter_add(&counters(rig, 0, 1)->closed_lost, 7); /* of an fd that is in the cut, and is about to be closed */
        counter_add(&counters(rig, 0, 1)->closed_expected, 102);
        sum = ledger_event_totals(&rig->ledger, &rig->registrations[0]);
        assert_int_equal(sum.delivered, 140);
        assert_int_equal(sum.filtered, 40);
        assert_int_equal(sum.lost[LOSS_BATCH_POOL], 6);
        assert_int_equal(sum.lost[LOSS_KERNEL_RING], 14);
        assert_int_equal(sum.lost[LOSS_KERNEL_UNWRITTEN], 2);
}

/* ---- since a stream began ---------------------------------------------------------------------------------------- */

static const Event *get_event(const void *userdata, size_t i) {
        const Rig *rig = userdata;

        return i < 2 ? rig->registrations[i].event : NULL;
}

static bool has_event(const void *userdata, const Event *event) {
        return event->id == 11;
}

static LedgerWants wants_of(const Rig *rig) {
        return (LedgerWants){ .userdata = rig, .get = get_event, .has = has_event };
}

static void test_base(void **state) {
        const LedgerWants wants = wants_of(*state);
        Rig *rig = *state;
        LedgerBase *base;
        LedgerNumbers n;

        count_hundred(counters(rig, 0, 0));
        counters(rig, 1, 1)->cut.is_consistent = false;
        for (uint32_t slot = 0; slot <= N_CPUS; slot++)
                for (size_t i = 0; i < 2; i++)
                        if (i + slot != 0 && !(i == 1 && slot == 1))
                                counters(rig, i, slot)->cut.is_consistent = true;
        assert_int_equal(ledger_base_new(&rig->ledger, &wants, &base), 0);
        assert_non_null(base);
        assert_true(rig->ledger.base_bytes > 0);
        assert_true(ledger_base_find(base, 11, 0, &n));
        assert_int_equal(n.occurred, 100);
        assert_int_equal(n.delivered, 70);
        assert_true(ledger_base_find(base, 11, 1, &n)); /* it had none */
        assert_int_equal(n.occurred, 0);
        assert_false(ledger_base_find(base, 12, 1, &n)); /* they were no sum then */
        assert_false(ledger_base_find(NULL, 11, 0, &n));
        assert_int_equal(ledger_base_missed(base, 11), 0);
        assert_null(ledger_base_free(&rig->ledger, base));
        assert_int_equal(rig->ledger.base_bytes, 0);
}

static void test_base_without_memory(void **state) {
        const LedgerWants wants = wants_of(*state);
        Rig *rig = *state;
        LedgerBase *base;
        unsigned n = 1;
        int r;

        count_hundred(counters(rig, 0, 0));
        count_hundred(counters(rig, 0, 1));
        for (;; n++) {
                until_failure = n;
                r = ledger_base_new(&rig->ledger, &wants, &base);
                if (until_failure > 0)
                        break;
                assert_int_equal(r, -ENOMEM);
                assert_null(base);
                assert_int_equal(rig->ledger.base_bytes, 0);
        }
        until_failure = 0;
        assert_true(n > 3);
        assert_int_equal(r, 0);
        ledger_base_free(&rig->ledger, base);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static bool has_no_subscriber(const void *userdata, const LedgerScope *scope, uint64_t id) {
        return false;
}

static void test_rows_without_memory(void **state) {
        const LedgerScope scope = { .is_all = true, .has_subscriber = has_no_subscriber };
        DispatcherReport report = { .n_late = 0 };
        Perfd__V1__Ledger *ledger = NULL;
        Rig *rig = *state;
        unsigned n = 1;
        int r;

        rig->registrations[0].enabled = true;
        for (uint32_t slot = 0; slot < N_CPUS; slot++)
                count_hundred(counters(rig, 0, slot));
        for (;; n++) {
                until_failure = n;
                r = ledger_make(&rig->ledger, &scope, &report, &ledger);
                if (until_failure > 0)
                        break;
                assert_int_equal(r, -ENOMEM);
                assert_null(ledger);
        }
        until_failure = 0;
        assert_true(n > 5);
        assert_int_equal(r, 0);
        assert_int_equal(ledger->n_rings, N_CPUS);
        assert_int_equal(ledger->rings[1]->cpu, 5);
        assert_false(ledger->truncated);
        perfd__v1__ledger__free_unpacked(ledger, NULL);
}

/* ---- events that are no more ------------------------------------------------------------------------------------- */

static void test_removed(void **state) {
        Rig *rig = *state;
        Registration *removed[] = { &rig->registrations[0], &rig->registrations[1] };
        const RemovedEvent *e;

        assert_int_equal(ledger_remember_removed(&rig->ledger, removed, 2, 0), 0); /* nobody is there */
        assert_null(rig->ledger.removed.first);
        count_hundred(counters(rig, 0, 0));
        assert_int_equal(ledger_remember_removed(&rig->ledger, removed, 1, 7), 0);
        assert_int_equal(ledger_remember_removed(&rig->ledger, removed + 1, 1, 9), 0);
        e = rig->ledger.removed.first;
        assert_ptr_equal(e->event, rig->registrations[0].event);
        assert_true(removed_concerns(e, 7));
        assert_false(removed_concerns(e, 8)); /* it came when the event had gone */
        ledger_forget_removed(&rig->ledger, 7);
        assert_ptr_equal(rig->ledger.removed.first, e);
        ledger_forget_removed(&rig->ledger, 8);
        assert_ptr_equal(rig->ledger.removed.first->event, rig->registrations[1].event);
        until_failure = 1;
        assert_int_equal(ledger_remember_removed(&rig->ledger, removed, 1, 12), 0);
        assert_int_equal(rig->ledger.removed.forgotten, 12); /* ledgers of streams up to that one say that they are not whole */
        ledger_forget_removed(&rig->ledger, UINT64_MAX);
        assert_null(rig->ledger.removed.first);
        assert_int_equal(rig->ledger.removed.n_bytes, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_adds_up, setup, teardown),
                cmocka_unit_test_setup_teardown(test_unwritten, setup, teardown),
                cmocka_unit_test_setup_teardown(test_without_counts, setup, teardown),
                cmocka_unit_test_setup_teardown(test_closed_and_standby, setup, teardown),
                cmocka_unit_test_setup_teardown(test_external, setup, teardown),
                cmocka_unit_test_setup_teardown(test_stalled, setup, teardown),
                cmocka_unit_test_setup_teardown(test_totals, setup, teardown),
                cmocka_unit_test_setup_teardown(test_base, setup, teardown),
                cmocka_unit_test_setup_teardown(test_base_without_memory, setup, teardown),
                cmocka_unit_test_setup_teardown(test_rows_without_memory, setup, teardown),
                cmocka_unit_test_setup_teardown(test_removed, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
