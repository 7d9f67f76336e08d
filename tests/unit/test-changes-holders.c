/*
 * Temporary events that several connections hold, on a played kernel: each lives until the last of them is gone, nothing of it
 * changes when one leaves, and each uid that holds it is charged.
 */
#include "tests/unit/supervisor-client.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/supervisor/events/holders.h"

#define BODY(name) PERFD__V1__REQUEST__BODY_##name
#define N_MANY 200
#define ANN 1000
#define BOB 1001

typedef struct Wanted {
        Perfd__V1__EventSpec spec, *specs[2];
        Perfd__V1__AddRequest request;
} Wanted;

static Perfd__V1__AddRequest *want(Wanted *w, const char *event, const char *name) {
        w->spec = (Perfd__V1__EventSpec)PERFD__V1__EVENT_SPEC__INIT;
        w->spec.event = (char *)event;
        w->spec.name = (char *)name;
        w->specs[0] = &w->spec;
        w->request = (Perfd__V1__AddRequest)PERFD__V1__ADD_REQUEST__INIT;
        w->request.events = w->specs;
        w->request.n_events = 1;
        w->request.while_connected = w->request.share = true;
        return &w->request;
}

static void connect_as(Rig *rig, RigClient *c, uint32_t uid) {
        rig_become(uid);
        rig_connect(rig, c, true);
}

static void begin_two(Rig *rig, RigClient *a, RigClient *b) {
        rig_start(rig);
        connect_as(rig, a, 0);
        connect_as(rig, b, 0);
}

static size_t holders_of(Rig *rig, const char *name) {
        return rig_find(rig, name) ? rig_find(rig, name)->n_holders : 0;
}

/* The first, the one in the middle and the last leave: the fds and what they have counted stay until then. */
static void test_until_the_last(void **state) {
        RigClient c[3];
        Wanted w;
        Rig rig;
        int fd;

        rig_start(&rig);
        for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
                connect_as(&rig, &c[i], 0);
                rig_say(&c[i], BODY(ADD), want(&w, RIG_TRACEPOINT, NULL));
        }
        rig_say(&c[0], BODY(ADD), want(&w, RIG_TRACEPOINT, NULL)); /* once more: it is one holder */
        assert_int_equal(holders_of(&rig, RIG_TRACEPOINT), 3);
        assert_int_equal(played_count_open(), 2 * RIG_CPUS);
        fd = rig_find(&rig, RIG_TRACEPOINT)->opened.fds[0].fd;
        played_occur(5);
        rig_hang_up(&c[0]);
        rig_check_opened(&rig, RIG_TRACEPOINT, true);
        played_occur(7);
        rig_hang_up(&c[2]);
        rig_check_opened(&rig, RIG_TRACEPOINT, true);
        assert_int_equal(rig_find(&rig, RIG_TRACEPOINT)->opened.fds[0].fd, fd);
        assert_int_equal(rig_occurred(&rig, RIG_TRACEPOINT), 12 * RIG_CPUS);
        rig_hang_up(&c[1]);
        assert_null(rig_find(&rig, RIG_TRACEPOINT));
        assert_int_equal(played_count_open(), RIG_CPUS);
        rig_stop(&rig);
}

static void test_many(void **state) {
        static RigClient c[N_MANY];
        Wanted w;
        Rig rig;

        rig_start(&rig);
        rig.supervisor.control.limits.connections = rig.supervisor.control.limits.changers = 2 * N_MANY;
        rig.supervisor.control.limits.connections_per_uid = rig.supervisor.control.limits.sockets = 2 * N_MANY;
        for (size_t i = 0; i < N_MANY; i++) {
                connect_as(&rig, &c[i], 0);
                rig_say(&c[i], BODY(ADD), want(&w, "page-faults", NULL));
        }
        assert_int_equal(holders_of(&rig, "page-faults"), N_MANY);
        assert_int_equal(played_count_open(), 2 * RIG_CPUS);
        for (size_t i = 0; i < N_MANY; i++) {
                rig_check_opened(&rig, "page-faults", true);
                rig_hang_up(&c[(i * 7) % N_MANY]);
        }
        assert_null(rig_find(&rig, "page-faults"));
        rig_stop(&rig);
}

/* What is another event, or one that was changed, is nobody else's; nor is one that does not end with a connection. */
static void test_not_equal(void **state) {
        Perfd__V1__SelectRequest select = PERFD__V1__SELECT_REQUEST__INIT;
        Perfd__V1__SetPeriodRequest period = PERFD__V1__SET_PERIOD_REQUEST__INIT;
        char *names[] = { (char *)"page-faults" };
        Perfd__V1__AddRequest *q;
        RigClient a, b;
        Wanted w;
        Rig rig;

        begin_two(&rig, &a, &b);
        select.names = names;
        select.n_names = 1;
        period.name = names[0];
        period.period = 3;
        rig_say(&a, BODY(ADD), want(&w, "page-faults", NULL));
        q = want(&w, "page-faults", NULL);
        q->share = false;
        rig_say_refused(&b, BODY(ADD), q, "exists");
        rig_say_refused(&b, BODY(ADD), want(&w, "minor-faults", "page-faults"), "exists");
        q = want(&w, "page-faults", NULL);
        w.spec.period = 2;
        rig_say_refused(&b, BODY(ADD), q, "exists");
        q = want(&w, "page-faults", NULL);
        w.spec.disabled = true;
        rig_say_refused(&b, BODY(ADD), q, "exists");
        rig_say(&a, BODY(DISABLE), &select);
        rig_say_refused(&b, BODY(ADD), want(&w, "page-faults", NULL), "exists");
        rig_say(&a, BODY(ENABLE), &select);
        rig_say(&b, BODY(ADD), want(&w, "page-faults", NULL));
        rig_hang_up(&b);
        rig_say(&a, BODY(SET_PERIOD), &period);
        connect_as(&rig, &b, 0);
        rig_say_refused(&b, BODY(ADD), want(&w, "page-faults", NULL), "exists");
        assert_int_equal(holders_of(&rig, "page-faults"), 1);
        q = want(&w, "minor-faults", NULL);
        q->while_connected = false;
        rig_say_refused(&a, BODY(ADD), q, "bad-request");
        q->share = false;
        rig_say(&a, BODY(ADD), q);
        rig_say_refused(&b, BODY(ADD), want(&w, "minor-faults", NULL), "exists");
        rig_say(&b, BODY(REMOVE), &select); /* of another client: it is gone for all */
        assert_null(rig_find(&rig, "page-faults"));
        rig_hang_up(&a);
        rig_hang_up(&b);
        rig_stop(&rig);
}

/* Each uid counts it once, by however many connections it holds it; who has no room does not hold it, nor anything else of the request. */
static void test_quota(void **state) {
        Perfd__V1__EventSpec more = PERFD__V1__EVENT_SPEC__INIT;
        RigClient ann, bob[2];
        Perfd__V1__AddRequest *q;
        Wanted w;
        Rig rig;

        rig_start(&rig);
        rig.supervisor.settings.config->events_per_uid = 1;
        connect_as(&rig, &ann, ANN);
        rig_say(&ann, BODY(ADD), want(&w, "page-faults", NULL));
        rig_say_refused(&ann, BODY(ADD), want(&w, "minor-faults", NULL), "too-many-events");
        connect_as(&rig, &bob[0], BOB);
        connect_as(&rig, &bob[1], BOB);
        q = want(&w, "page-faults", NULL);
        more.event = (char *)"minor-faults";
        w.specs[1] = &more;
        q->n_events = 2;
        rig_say_refused(&bob[0], BODY(ADD), q, "too-many-events");
        assert_int_equal(holders_of(&rig, "page-faults"), 1);
        rig_say(&bob[0], BODY(ADD), want(&w, "page-faults", NULL));
        rig_say(&bob[1], BODY(ADD), want(&w, "page-faults", NULL));
        rig_say_refused(&bob[0], BODY(ADD), want(&w, "minor-faults", NULL), "too-many-events");
        rig_hang_up(&ann);
        rig_check_opened(&rig, "page-faults", true);
        connect_as(&rig, &ann, ANN); /* she has left it, and has room for another one, which he has not */
        rig_say(&ann, BODY(ADD), want(&w, "minor-faults", NULL));
        rig_say_refused(&bob[1], BODY(ADD), want(&w, "minor-faults", NULL), "too-many-events");
        rig_say_refused(&ann, BODY(ADD), want(&w, "page-faults", NULL), "too-many-events");
        rig_hang_up(&bob[0]);
        rig_check_opened(&rig, "page-faults", true);
        rig_hang_up(&bob[1]);
        assert_null(rig_find(&rig, "page-faults"));
        rig_hang_up(&ann);
        rig_stop(&rig);
}

/* They are told in the order in which they were asked for, whichever of them was there. */
static void test_order(void **state) {
        static const char *const events[] = { "minor-faults", "page-faults", "major-faults" };
        Perfd__V1__EventSpec specs[ARRAY_SIZE(events)], *list[ARRAY_SIZE(events)];
        Perfd__V1__AddRequest q = PERFD__V1__ADD_REQUEST__INIT;
        Perfd__V1__ServerMessage *m;
        RigClient a, b;
        Wanted w;
        Rig rig;

        begin_two(&rig, &a, &b);
        rig_say(&a, BODY(ADD), want(&w, "page-faults", NULL));
        for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
                specs[i] = (Perfd__V1__EventSpec)PERFD__V1__EVENT_SPEC__INIT;
                specs[i].event = (char *)events[i];
                list[i] = &specs[i];
        }
        q.events = list;
        q.n_events = ARRAY_SIZE(events);
        q.while_connected = q.share = true;
        m = rig_ask(&b, BODY(ADD), &q);
        assert_int_equal(m->response->status, PERFD__V1__STATUS__STATUS_OK);
        assert_int_equal(m->response->added->n_events, ARRAY_SIZE(events));
        for (size_t i = 0; i < ARRAY_SIZE(events); i++)
                assert_string_equal(m->response->added->events[i]->name, events[i]);
        assert_int_equal(m->response->added->n_notes, 0);
        perfd__v1__server_message__free_unpacked(m, NULL);
        rig_hang_up(&b);
        assert_non_null(rig_find(&rig, "page-faults"));
        assert_null(rig_find(&rig, "major-faults"));
        rig_hang_up(&a);
        rig_stop(&rig);
}

/* Nobody holds what was to be held beside something that cannot be opened; and a glob's event that was there is held as well. */
static void test_refused_and_globs(void **state) {
        static const char glob[] = "irq:softirq_e*";
        Perfd__V1__EventSpec bad = PERFD__V1__EVENT_SPEC__INIT;
        Perfd__V1__AddRequest *q;
        RigClient a, b;
        Wanted w;
        Rig rig;

        begin_two(&rig, &a, &b);
        rig_say(&a, BODY(ADD), want(&w, glob, NULL));
        q = want(&w, glob, NULL);
        bad.event = (char *)"no-such-event";
        w.specs[1] = &bad;
        q->n_events = 2;
        rig_say_refused(&b, BODY(ADD), q, "unknown-event");
        assert_int_equal(holders_of(&rig, RIG_TRACEPOINT), 1);
        q = want(&w, glob, NULL);
        q->share = false;
        rig_say(&b, BODY(ADD), q);
        assert_int_equal(holders_of(&rig, RIG_TRACEPOINT), 2);
        rig_hang_up(&a);
        rig_check_opened(&rig, RIG_TRACEPOINT, true);
        rig_hang_up(&b);
        assert_null(rig_find(&rig, RIG_TRACEPOINT));
        rig_stop(&rig);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_until_the_last), cmocka_unit_test(test_many),  cmocka_unit_test(test_not_equal),
                cmocka_unit_test(test_quota),          cmocka_unit_test(test_order), cmocka_unit_test(test_refused_and_globs),
        };

        thread_become(THREAD_MAIN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
