/*
 * A switch or a cutover that is interrupted in the middle, on a played kernel where each call takes so long that its reader pauses
 * behind it: the reader does not answer, or its client goes away, or perfd is to stop, while some of the fds are switched and others
 * are not. In each of its pauses.
 */
#include "tests/unit/supervisor-client.h"

#include "daemon/base/cleanup.h"
#include "daemon/supervisor/changes/changes.h"
#include "daemon/supervisor/readers/publish.h"

#define BODY(name) PERFD__V1__REQUEST__BODY_##name
#define SLOT 1u
#define SOFTWARE "page-faults"
#define CALL (20 * NSEC_PER_MSEC)
#define WAITS 3 /* of main, until the reader goes on */

static const char *const both[] = { RIG_TRACEPOINT, SOFTWARE };

static void begin(Rig *rig) {
        rig_start(rig);
        rig_become(0);
        assert_int_equal(rig_add(rig, both, 2), 0);
        played_occur(3);
}

static int set_filter(Rig *rig) {
        return changes_set_filter(&rig->supervisor.changes, RIG_TRACEPOINT, "vec == 3", &rig->e);
}

/* Everything is on, and counts. */
static void check_on(Rig *rig) {
        uint64_t before = rig_occurred(rig, SOFTWARE), traced = rig_occurred(rig, RIG_TRACEPOINT);

        rig_check_opened(rig, RIG_TRACEPOINT, true);
        rig_check_opened(rig, SOFTWARE, true);
        rig_check_carriers(rig, true);
        assert_int_equal(played_count_open(), 3 * RIG_CPUS);
        played_occur(2);
        assert_int_equal(rig_occurred(rig, SOFTWARE), before + 2 * RIG_CPUS);
        assert_int_equal(rig_occurred(rig, RIG_TRACEPOINT), traced + 2 * RIG_CPUS);
}

static void check_off(Rig *rig) {
        rig_check_opened(rig, RIG_TRACEPOINT, false);
        rig_check_opened(rig, SOFTWARE, false);
        assert_int_equal(rig_enable_all(rig), 0);
        check_on(rig);
}

static void check_filtered(Rig *rig) {
        for (uint32_t slot = 0; slot < RIG_CPUS; slot++)
                assert_string_equal(played_fd(rig_find(rig, RIG_TRACEPOINT)->opened.fds[slot].fd)->filter, "vec == 3");
        check_on(rig);
}

typedef struct Change {
        RigChange prepare, change; /* prepare: NULL, nothing */
        void (*check)(Rig *rig);
} Change;

static const Change changes[] = {
        { NULL, rig_disable_all, check_off },
        { rig_disable_all, rig_enable_all, check_on },
        { NULL, set_filter, check_filtered },
};

/* ---- its reader does not answer ---------------------------------------------------------------------------------- */

static bool stop_in(const Change *c, unsigned n, unsigned waits) {
        const Answering *a;
        Reader *reader;
        bool has_stopped;
        Rig rig;

        begin(&rig);
        a = &rig.supervisor.readers.answering.readers[SLOT];
        reader = &rig.supervisor.readers.by_slot[SLOT];
        if (c->prepare)
                assert_int_equal(c->prepare(&rig), 0);
        played_take(CALL);
        played_stop_in_pause(SLOT, n, waits);
        assert_int_equal(c->change(&rig), 0);
        has_stopped = played_n_stopped() > 0;
        assert_int_equal(reader_is_stalled(a), has_stopped && waits == 0);
        if (reader_is_stalled(a)) {
                played_continue_reader(reader);
                assert_int_equal(changes_on_answers(&rig.supervisor.changes), 0);
        }
        played_stop_in_pause(SLOT, 0, 0);
        played_take(0);
        assert_false(reader_is_stalled(a));
        assert_int_equal(rig.supervisor.readers.answering.n + rig.supervisor.readers.answering.n_fds, 0);
        assert_null(rig.supervisor.readers.answering.deferred);
        c->check(&rig);
        rig_stop(&rig);
        return has_stopped;
}

/* For ever, or until others have been served: main takes it for stalled, or waits. */
static void test_reader_stops(void **state) {
        for (size_t i = 0; i < ARRAY_SIZE(changes); i++)
                for (unsigned waits = 0; waits <= WAITS; waits += WAITS) {
                        unsigned n = 0;

                        while (stop_in(&changes[i], n + 1, waits))
                                n++;
                        assert_true(n >= 2 * 2); /* two passes, of two fds */
                }
}

static void work_on(void *userdata) {
        Rig *rig = userdata;

        counter_add(&rig->supervisor.readers.by_slot[SLOT].n_slices, 1);
}

/* For 10 s, in which it does one slice after the other: it has much to do, and is waited for. */
static void test_reader_works_on(void **state) {
        Rig rig;

        begin(&rig);
        played_take(CALL);
        played_set_happening(work_on, &rig);
        played_stop_in_pause(SLOT, 1, 400); /* of 25 ms */
        assert_int_equal(rig_disable_all(&rig), 0);
        assert_int_equal(played_n_stopped(), 1);
        assert_int_equal(rig.supervisor.readers.answering.n, 0);
        played_set_happening(NULL, NULL);
        played_take(0);
        check_off(&rig);
        assert_false(rig_find(&rig, SOFTWARE)->event->counters[SLOT].unsure);
        rig_stop(&rig);
}

/* ---- its client goes away, or perfd is to stop ------------------------------------------------------------------- */

typedef struct Interruption {
        RigClient client;
        bool stops; /* perfd */
        unsigned n; /* how often main has waited */
} Interruption;

/* While main waits for the reader that is in the middle. */
static void interrupt(void *userdata) {
        Interruption *i = userdata;

        if (played_n_stopped() == 0 || i->n++ > 0)
                return;
        if (i->stops)
                operations_set_due(&i->client.rig->supervisor.operations, CHANGE_STOP);
        else
                rig_close(&i->client);
}

typedef struct Request {
        Perfd__V1__Request__BodyCase kind;
        bool is_disabled; /* before it */
        void (*check)(Rig *rig);
} Request;

static const Request requests[] = {
        { BODY(DISABLE), false, check_off },
        { BODY(ENABLE), true, check_on },
        { BODY(SET_FILTER), false, check_filtered },
};

static void send_request(RigClient *c, Perfd__V1__Request__BodyCase kind) {
        Perfd__V1__SetFilterRequest filter = PERFD__V1__SET_FILTER_REQUEST__INIT;
        Perfd__V1__SelectRequest select = PERFD__V1__SELECT_REQUEST__INIT;
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        char *names[] = { (char *)"*" };

        select.names = names;
        select.n_names = 1;
        filter.name = (char *)RIG_TRACEPOINT;
        filter.filter = (char *)"vec == 3";
        request.body_case = kind;
        if (kind == BODY(SET_FILTER))
                request.set_filter = &filter;
        else
                request.disable = &select;
        rig_send(c, &request);
}

static int no_stop(void *userdata) {
        return 0;
}

static bool interrupt_in(const Request *q, bool stops, unsigned n) {
        Interruption i = { .stops = stops };
        const Readers *readers;
        bool has_stopped;
        Rig rig;

        begin(&rig);
        readers = &rig.supervisor.readers;
        operations_set_handler(&rig.supervisor.operations, CHANGE_STOP, no_stop, NULL); /* rig_stop() does that */
        if (q->is_disabled)
                assert_int_equal(rig_disable_all(&rig), 0);
        rig_connect(&rig, &i.client, true);
        played_take(CALL);
        played_set_happening(interrupt, &i);
        played_stop_in_pause(SLOT, n, WAITS);
        send_request(&i.client, q->kind);
        has_stopped = played_n_stopped() > 0;
        assert_int_equal(i.n > 0, has_stopped);
        played_set_happening(NULL, NULL);
        played_stop_in_pause(SLOT, 0, 0);
        played_take(0);
        if (!has_stopped || stops) {
                Perfd__V1__ServerMessage *m = rig_receive(&i.client);

                assert_non_null(m); /* who waits is answered */
                assert_int_equal(m->response->status, PERFD__V1__STATUS__STATUS_OK);
                perfd__v1__server_message__free_unpacked(m, NULL);
                rig_hang_up(&i.client);
        }
        assert_int_equal(readers->answering.n + readers->answering.n_fds, 0);
        q->check(&rig); /* it was done as a whole */
        rig_stop(&rig);
        return has_stopped;
}

static void test_interrupted(void **state) {
        for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
                for (int stops = 0; stops < 2; stops++) {
                        unsigned n = 0;

                        while (interrupt_in(&requests[i], stops, n + 1))
                                n++;
                        assert_true(n >= 2 * 2);
                }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_reader_stops),
                cmocka_unit_test(test_reader_works_on),
                cmocka_unit_test(test_interrupted),
        };

        thread_become(THREAD_MAIN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
