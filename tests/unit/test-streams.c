/*
 * Streams from beginning to end, on a played kernel: what is written into rings comes to whoever asked for it, once, and its closing
 * ledger balances. Whoever is refused, hangs up or is too slow leaves nothing behind.
 */
#include "tests/unit/supervisor-client.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/supervisor/changes/changes.h"
#include "daemon/supervisor/ledger/losses.h"

#define SOFTWARE "page-faults"

static const char *const both[] = { RIG_TRACEPOINT, SOFTWARE };
static const char *const one[] = { "minor-faults" };

static Perfd__V1__SubscribeRequest all(Perfd__V1__Order order) {
        Perfd__V1__SubscribeRequest q = PERFD__V1__SUBSCRIBE_REQUEST__INIT;

        q.order = order;
        return q;
}

static void begin(Rig *rig) {
        rig_start(rig);
        played_write_samples(true);
        assert_int_equal(rig_add(rig, both, 2), 0);
}

static void subscribe(Rig *rig, RigStream *s, Perfd__V1__Order order) {
        Perfd__V1__SubscribeRequest q = all(order);

        assert_int_equal(rig_subscribe(rig, s, &q), PERFD__V1__STATUS__STATUS_OK);
}

/* Nothing of any stream is left. */
static void check_none(Rig *rig) {
        const Supervisor *s = &rig->supervisor;

        rig_turn(rig);
        assert_null(s->subscriptions.first);
        assert_null(s->subscriptions.subscribers);
        assert_int_equal(s->readers.n_subscribers, 0);
        assert_int_equal(s->readers.n_subscriptions, 0);
        assert_int_equal(s->control.n_given, 0);
}

/* Its ledger has these events on each CPU, and the numbers of the stream. */
static void check_ledger(const RigStream *s, size_t n_events, uint64_t each) {
        const Perfd__V1__Ledger *l = s->closing->packet->end->ledger;
        const Perfd__V1__SubscriberLedger *own = l->subscribers[0];

        assert_int_equal(l->n_subscribers, 1);
        assert_true(own->balanced);
        assert_int_equal(own->sent, s->n_items);
        assert_int_equal(own->matched, s->n_items + s->n_gaps);
        assert_int_equal(own->queued, 0);
        assert_int_equal(l->n_events, n_events * RIG_CPUS);
        for (size_t i = 0; i < l->n_events; i++) {
                assert_true(l->events[i]->balanced);
                assert_true(l->events[i]->exact);
                assert_int_equal(l->events[i]->since->occurred, each);
                assert_int_equal(l->events[i]->since->delivered + l->events[i]->since->filtered, each);
        }
        for (size_t i = 0; i < l->n_rings; i++)
                assert_true(l->rings[i]->balanced);
}

/* ---- whole ------------------------------------------------------------------------------------------------------- */

static void test_from_beginning_to_end(void **state) {
        for (Perfd__V1__Order order = PERFD__V1__ORDER__ORDER_TIME; order <= PERFD__V1__ORDER__ORDER_CPU; order++) {
                RigStream s;
                Rig rig;

                begin(&rig);
                played_occur(2); /* before it */
                subscribe(&rig, &s, order);
                rig_read(&s);
                assert_true(s.has_started);
                assert_int_equal(s.n_descriptors, 2);
                assert_int_equal(s.n_items, 0);
                for (int i = 0; i < 10; i++) {
                        played_occur(5);
                        rig_read(&s);
                }
                rig_end(&s);
                assert_int_equal(s.n_items, 50 * 2 * RIG_CPUS);
                assert_int_equal(s.n_of_cpu[0], s.n_of_cpu[1]);
                if (order == PERFD__V1__ORDER__ORDER_TIME)
                        assert_true(s.is_in_order);
                check_ledger(&s, 2, 50);
                rig_leave(&s);
                check_none(&rig);
                assert_int_equal(rig_occurred(&rig, SOFTWARE), 52 * RIG_CPUS);
                rig_stop(&rig);
        }
}

static void test_selected(void **state) {
        char *names[] = { (char *)RIG_TRACEPOINT }, *fields[] = { (char *)"vec" };
        Perfd__V1__SubscribeRequest q = all(PERFD__V1__ORDER__ORDER_CPU), none = q;
        RigStream s, unmatched;
        Rig rig;

        begin(&rig);
        q.events = none.events = names;
        q.n_events = none.n_events = q.n_fields = 1;
        q.fields = fields;
        q.where = (char *)"vec == 3";
        none.where = (char *)"vec > 3";
        assert_int_equal(rig_subscribe(&rig, &s, &q), PERFD__V1__STATUS__STATUS_OK);
        assert_int_equal(rig_subscribe(&rig, &unmatched, &none), PERFD__V1__STATUS__STATUS_OK);
        played_occur(4);
        rig_end(&s);
        rig_end(&unmatched);
        assert_int_equal(s.n_items, 4 * RIG_CPUS);
        assert_int_equal(s.last_field, 3);
        assert_int_equal(unmatched.n_items, 0);
        check_ledger(&s, 1, 4);
        check_ledger(&unmatched, 1, 4);
        rig_leave(&s);
        rig_leave(&unmatched);
        check_none(&rig);
        rig_stop(&rig);
}

/* What runs changes under the stream: it hears of what comes and goes, and misses nothing that stays. */
static void test_changes_meanwhile(void **state) {
        RigStream s;
        Rig rig;

        begin(&rig);
        subscribe(&rig, &s, PERFD__V1__ORDER__ORDER_TIME);
        played_occur(1);
        assert_int_equal(rig_add(&rig, one, 1), 0);
        played_occur(1);
        assert_int_equal(changes_set_filter(&rig.supervisor.changes, RIG_TRACEPOINT, "vec == 3", &rig.e), 0);
        assert_int_equal(changes_resize_rings(&rig.supervisor.changes, 32 * 1024, &rig.e), 0);
        played_occur(1);
        assert_int_equal(rig_remove(&rig, SOFTWARE), 0);
        played_occur(1);
        rig_end(&s);
        assert_int_equal(s.n_descriptors, 3);
        assert_int_equal(s.n_removed, 1);
        assert_int_equal(s.n_items, (4 + 3 + 3) * RIG_CPUS);
        assert_true(s.is_in_order);
        rig_leave(&s);
        check_none(&rig);
        rig_stop(&rig);
}

static void test_cpu_goes_meanwhile(void **state) {
        RigStream s;
        Rig rig;

        begin(&rig);
        subscribe(&rig, &s, PERFD__V1__ORDER__ORDER_TIME);
        played_occur(3);
        for (int is_online = 0; is_online < 2; is_online++) {
                played_set_cpu(PLAYED_CPU + 1, is_online);
                played_tell_cpu(PLAYED_CPU + 1, is_online);
                assert_int_equal(changes_on_hotplug(&rig.supervisor.changes), 0);
                played_occur(2);
                rig_read(&s);
        }
        rig_end(&s);
        assert_int_equal(s.n_of_cpu[0], 2 * (3 + 2 + 2));
        assert_int_equal(s.n_of_cpu[1], 2 * (3 + 2));
        rig_leave(&s);
        check_none(&rig);
        rig_stop(&rig);
}

/* Equal ones share a subscription, and each has all of it since its own beginning; the last of them ends it. */
static void test_shared(void **state) {
        RigStream s[3];
        Rig rig;

        begin(&rig);
        for (size_t i = 0; i < ARRAY_SIZE(s); i++) {
                subscribe(&rig, &s[i], PERFD__V1__ORDER__ORDER_TIME);
                played_occur(2); /* is still in the rings when the next one comes */
        }
        assert_int_equal(rig.supervisor.readers.n_subscriptions, 1);
        assert_int_equal(rig.supervisor.readers.n_subscribers, ARRAY_SIZE(s));
        played_occur(4);
        for (size_t i = 0; i < ARRAY_SIZE(s); i++) {
                assert_int_equal(rig.supervisor.readers.n_subscriptions, 1);
                rig_end(&s[i]);
                assert_int_equal(s[i].n_items, ((ARRAY_SIZE(s) - i) * 2 + 4) * 2 * RIG_CPUS);
                check_ledger(&s[i], 2, (ARRAY_SIZE(s) - i) * 2 + 4);
                rig_leave(&s[i]);
        }
        check_none(&rig);
        rig_stop(&rig);
}

/* What found the ring full is in the ledger of the stream as that, and on the log, once. */
static void test_lost(void **state) {
        const Perfd__V1__Ledger *l;
        RigStream s;
        Rig rig;

        begin(&rig);
        subscribe(&rig, &s, PERFD__V1__ORDER__ORDER_TIME);
        played_occur(3);
        played_lose(2);
        played_occur(1);
        rig_end(&s);
        assert_int_equal(s.n_items, 4 * 2 * RIG_CPUS);
        l = s.closing->packet->end->ledger;
        for (size_t i = 0; i < l->n_events; i++) {
                assert_int_equal(l->events[i]->since->occurred, 6);
                for (size_t k = 0; k < l->events[i]->n_lost; k++)
                        assert_int_equal(l->events[i]->lost[k]->count,
                                         strcmp(l->events[i]->lost[k]->reason, "kernel_ring") == 0 ? 2 : 0);
                assert_true(l->events[i]->balanced);
        }
        assert_int_equal(ledger_on_losses(&rig.supervisor.ledger), 0);
        rig_leave(&s);
        check_none(&rig);
        rig_stop(&rig);
}

/* ---- ends that nobody asked for ---------------------------------------------------------------------------------- */

static void test_hangs_up(void **state) {
        RigStream s, other;
        Rig rig;

        begin(&rig);
        subscribe(&rig, &s, PERFD__V1__ORDER__ORDER_TIME);
        subscribe(&rig, &other, PERFD__V1__ORDER__ORDER_CPU);
        played_occur(4);
        rig_leave(&s);
        assert_int_equal(rig.supervisor.readers.n_subscribers, 1);
        played_occur(4);
        rig_end(&other);
        assert_int_equal(other.n_items, 8 * 2 * RIG_CPUS);
        rig_leave(&other);
        check_none(&rig);
        rig_stop(&rig);
}

/* It does not read, and wanted to be disconnected then; another one wants what is newest. */
static void test_too_slow(void **state) {
        Perfd__V1__SubscribeRequest ends = all(PERFD__V1__ORDER__ORDER_CPU), drops = ends;
        RigStream quick, slow, lossy;
        Rig rig;

        begin(&rig);
        ends.queue_bytes = drops.queue_bytes = 1;
        ends.overflow = PERFD__V1__OVERFLOW__OVERFLOW_DISCONNECT;
        drops.overflow = PERFD__V1__OVERFLOW__OVERFLOW_DROP_OLDEST;
        subscribe(&rig, &quick, PERFD__V1__ORDER__ORDER_CPU);
        assert_int_equal(rig_subscribe(&rig, &slow, &ends), PERFD__V1__STATUS__STATUS_OK);
        assert_int_equal(rig_subscribe(&rig, &lossy, &drops), PERFD__V1__STATUS__STATUS_OK);
        for (int i = 0; i < 400; i++) {
                played_occur(50);
                rig_read(&quick);
        }
        rig_read(&slow);
        assert_string_equal(slow.end, "overflow");
        assert_true(slow.n_items > 0 && slow.n_items < 400 * 50 * 2 * RIG_CPUS);
        rig_end(&quick);
        rig_end(&lossy);
        assert_int_equal(quick.n_items, 400 * 50 * 2 * RIG_CPUS);
        assert_true(lossy.n_gaps > 0);
        assert_int_equal(lossy.n_items + lossy.n_gaps, quick.n_items);
        check_ledger(&lossy, 2, 400 * 50);
        rig_leave(&quick);
        rig_leave(&slow);
        rig_leave(&lossy);
        check_none(&rig);
        rig_stop(&rig);
}

/* As by systemd: events are disabled, and each stream gets its closing ledger before the loop ends. */
static void test_shutdown(void **state) {
        RigStream s;
        Rig rig;

        begin(&rig);
        subscribe(&rig, &s, PERFD__V1__ORDER__ORDER_TIME);
        played_occur(3);
        assert_int_equal(raise(SIGTERM), 0);
        rig_read(&s);
        assert_string_equal(s.end, "shutdown");
        assert_int_equal(s.n_items, 3 * 2 * RIG_CPUS);
        check_ledger(&s, 2, 3);
        rig_leave(&s);
        assert_int_equal(sd_event_get_state(rig.supervisor.operations.event), SD_EVENT_FINISHED);
        rig_stop(&rig);
}

/* ---- refused ----------------------------------------------------------------------------------------------------- */

static void test_refused(void **state) {
        char *nothing[] = { (char *)"nothing" }, *field[] = { (char *)"colour" };
        Perfd__V1__SubscribeRequest q[7];
        static const char *const reasons[ARRAY_SIZE(q)] = { "unknown-event", "bad-expression", "unknown-field", "bad-latency", "queue-memory",
                                               "bad-ring", "bad-request" };
        _cleanup_free_ char *before = NULL;
        Rig rig;

        begin(&rig);
        before = rig_picture(&rig);
        for (size_t i = 0; i < ARRAY_SIZE(q); i++)
                q[i] = all(PERFD__V1__ORDER__ORDER_TIME);
        q[0].events = nothing;
        q[1].where = (char *)"vec = = 3";
        q[2].fields = field;
        q[0].n_events = q[2].n_fields = 1;
        q[3].latency = 1;
        q[4].queue_bytes = UINT64_C(1) << 50;
        q[5].ring_bytes = 1000;
        q[6].order = (Perfd__V1__Order)7;
        for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
                _cleanup_free_ char *after = NULL;
                RigStream s;

                assert_int_not_equal(rig_subscribe(&rig, &s, &q[i]), PERFD__V1__STATUS__STATUS_OK);
                assert_string_equal(rig.e.text, reasons[i]);
                check_none(&rig);
                after = rig_picture(&rig);
                assert_string_equal(after, before);
        }
        rig_stop(&rig);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_from_beginning_to_end),
                cmocka_unit_test(test_selected),
                cmocka_unit_test(test_changes_meanwhile),
                cmocka_unit_test(test_cpu_goes_meanwhile),
                cmocka_unit_test(test_shared),
                cmocka_unit_test(test_lost),
                cmocka_unit_test(test_hangs_up),
                cmocka_unit_test(test_too_slow),
                cmocka_unit_test(test_shutdown),
                cmocka_unit_test(test_refused),
        };

        thread_become(THREAD_MAIN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
