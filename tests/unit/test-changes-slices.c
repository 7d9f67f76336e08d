/*
 * What readers and main do with fds of many children, on a played kernel where each call of such an fd takes long: how many of them
 * are made before others have the CPU, and that the ledger is exact all the same, whatever occurs in between.
 */
#include <stdio.h>

#include "tests/unit/supervisor-client.h"

#include "daemon/supervisor/changes/changes.h"
#include "daemon/supervisor/readers/budgets.h"
#include "daemon/supervisor/readers/publish.h"

#define EVENTS 40
#define CALL (400 * NSEC_PER_USEC)
#define MOST_OF_LIMITED 3 /* the calls that begin within 1 ms, */
#define MOST_OF_OTHERS 27 /* and within 10 ms, looked at each 1 ms */
#define SOMEBODY 4001

static const char *name_of(unsigned i) {
        static char names[4][32];

        (void)snprintf(names[i % 4], sizeof(names[0]), "e%u=page-faults", i);
        return names[i % 4];
}

static void begin(Rig *rig) {
        rig_start(rig);
        played_write_samples(true);
        for (unsigned i = 0; i < EVENTS; i++)
                assert_int_equal(rig_add(rig, (const char *const[]){ name_of(i) }, 1), 0);
}

static Registration *event_of(Rig *rig, unsigned i) {
        char name[32];

        (void)snprintf(name, sizeof(name), "e%u", i);
        return rig_find(rig, name);
}

static int cut(Rig *rig) {
        return readers_cut(&rig->supervisor.readers, NULL);
}

/* How many calls are made at once, at most, by a request of this uid. */
static unsigned most_of(Rig *rig, uint64_t uid, RigChange change) {
        const uint64_t before = readers_charge(&rig->supervisor.readers, uid);
        unsigned most;

        played_take(CALL);
        assert_int_equal(change(rig), 0);
        most = played_most_at_once();
        played_take(0);
        (void)readers_charge(&rig->supervisor.readers, before);
        return most;
}

static void test_calls_at_once(void **state) {
        static const RigChange changes[] = { cut, rig_disable_all, rig_enable_all };

        for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
                Rig rig;

                begin(&rig);
                if (changes[i] == rig_enable_all)
                        assert_int_equal(rig_disable_all(&rig), 0);
                assert_in_range(most_of(&rig, SOMEBODY, changes[i]), 1, MOST_OF_LIMITED);
                if (changes[i] != cut)
                        assert_int_equal(changes[i] == rig_enable_all ? rig_disable_all(&rig) : rig_enable_all(&rig), 0);
                assert_in_range(most_of(&rig, 0, changes[i]), MOST_OF_LIMITED + 1, MOST_OF_OTHERS);
                rig_stop(&rig);
        }
}

/* Of fds that are about to be closed main reads the counts itself, for streams that go on. */
static void test_reads_of_main(void **state) {
        Perfd__V1__SubscribeRequest q = PERFD__V1__SUBSCRIBE_REQUEST__INIT;
        Perfd__V1__SelectRequest select = PERFD__V1__SELECT_REQUEST__INIT;
        char *names[] = { (char *)"e*" };
        RigStream stream;
        RigClient c;
        Rig rig;

        begin(&rig);
        rig_become(0);
        rig_connect(&rig, &c, true);
        q.order = PERFD__V1__ORDER__ORDER_CPU;
        assert_int_equal(rig_subscribe(&rig, &stream, &q), PERFD__V1__STATUS__STATUS_OK);
        played_occur(2);
        rig_read(&stream);
        select.names = names;
        select.n_names = 1;
        played_take(CALL);
        rig_say(&c, PERFD__V1__REQUEST__BODY_REMOVE, &select);
        assert_in_range(played_most_at_once(), MOST_OF_LIMITED + 1, MOST_OF_OTHERS);
        played_take(0);
        rig_end(&stream);
        assert_int_equal(stream.n_items, 2 * EVENTS * RIG_CPUS);
        assert_int_equal(stream.closing->packet->end->ledger->n_events, EVENTS * RIG_CPUS);
        for (size_t i = 0; i < EVENTS * RIG_CPUS; i++) {
                const Perfd__V1__EventLedger *row = stream.closing->packet->end->ledger->events[i];

                assert_true(row->balanced && row->exact);
                assert_int_equal(row->occurred, 2);
        }
        rig_leave(&stream);
        rig_hang_up(&c);
        rig_stop(&rig);
}

/* ---- one place, whatever occurs in the pauses -------------------------------------------------------------------- */

#define EACH 10 /* in one of so many pauses, of which the first pass has more */

typedef struct Happening {
        unsigned n_pauses, n; /* how often all events have occurred in them, */
        unsigned most;        /* which is bounded: a ring has room for four times */
} Happening;

static void occur(void *userdata) {
        Happening *h = userdata;

        if (h->n_pauses++ % EACH > 0 || h->n >= h->most)
                return;
        h->n++;
        played_occur(1);
}

static uint64_t read_of(const EventCut *c) {
        return c->delivered + c->filtered;
}

static void check_one_place(Rig *rig, uint64_t least) {
        for (uint32_t slot = 0; slot < RIG_CPUS; slot++) {
                const EventCut *first = &event_of(rig, 0)->event->counters[slot].cut;

                assert_true(read_of(first) >= least);
                for (unsigned i = 0; i < EVENTS; i++) {
                        const EventCut *c = &event_of(rig, i)->event->counters[slot].cut;

                        assert_true(c->is_consistent && !c->is_approximate);
                        assert_int_equal(read_of(c), read_of(first));
                        assert_int_equal(c->count, read_of(c));
                }
        }
}

static void test_one_place(void **state) {
        for (unsigned most = 0; most <= 4; most++) {
                Happening h = { .most = most };
                unsigned at_once;
                Rig rig;

                begin(&rig);
                played_occur(1);
                for (uint32_t slot = 0; slot < RIG_CPUS; slot++)
                        played_run_reader(&rig.supervisor.readers.by_slot[slot]);
                played_set_happening(occur, &h);
                at_once = most_of(&rig, SOMEBODY, cut);
                played_set_happening(NULL, NULL);
                assert_true(h.n_pauses >= RIG_CPUS * (EVENTS / MOST_OF_LIMITED));
                assert_int_equal(h.n, most);
                check_one_place(&rig, 1 + most);
                if (most <= 3) /* who occurs also in the last pass of those that are sliced is read in one piece */
                        assert_in_range(at_once, 1, MOST_OF_LIMITED);
                played_occur(1);
                assert_int_equal(cut(&rig), 0);
                check_one_place(&rig, 2 + most);
                rig_stop(&rig);
        }
}

/* ---- what is told in the middle ---------------------------------------------------------------------------------- */

#define LOST 3

#define LONG_CALL (11 * NSEC_PER_MSEC) /* main serves others behind each */

typedef struct Asker {
        RigClient *client;
        unsigned n; /* lists that were asked for in pauses of readers */
} Asker;

static Perfd__V1__Request list_request(void) {
        static Perfd__V1__ListRequest q = PERFD__V1__LIST_REQUEST__INIT;
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;

        request.body_case = PERFD__V1__REQUEST__BODY_LIST;
        request.list = &q;
        return request;
}

static void ask(void *userdata) {
        Asker *a = userdata;
        Perfd__V1__Request request = list_request();

        rig_post(a->client, &request);
        a->n++;
}

static void check_lost(RigClient *c, uint64_t lost) {
        Perfd__V1__ServerMessage *m = rig_receive(c);

        assert_non_null(m);
        assert_int_equal(m->response->list->n_events, EVENTS);
        for (size_t i = 0; i < EVENTS; i++)
                assert_int_equal(m->response->list->events[i]->lost, lost);
        perfd__v1__server_message__free_unpacked(m, NULL);
}

/*
 * Losses are those of the last cut for who asks while main keeps what old fds have counted: these are in that cut, and are not to be
 * counted once more, until there is another one.
 */
static void test_losses_in_a_replace(void **state) {
        Perfd__V1__SetPeriodRequest period = PERFD__V1__SET_PERIOD_REQUEST__INIT;
        Perfd__V1__Request request = list_request();
        RigClient asks, changes;
        Asker a = { .client = &asks };
        Rig rig;

        begin(&rig);
        rig_become(0);
        rig_connect(&rig, &asks, true);
        rig_connect(&rig, &changes, true);
        played_occur(2);
        played_lose(LOST);
        rig_send(&asks, &request);
        check_lost(&asks, LOST * RIG_CPUS);
        period.name = (char *)"e0";
        period.period = 7;
        played_set_happening(ask, &a);
        played_take(LONG_CALL);
        rig_say(&changes, PERFD__V1__REQUEST__BODY_SET_PERIOD, &period);
        played_take(0);
        played_set_happening(NULL, NULL);
        assert_true(a.n > 0);
        for (unsigned i = 0; i < a.n; i++)
                check_lost(&asks, LOST * RIG_CPUS);
        rig_hang_up(&changes);
        rig_hang_up(&asks);
        rig_stop(&rig);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_calls_at_once),
                cmocka_unit_test(test_reads_of_main),
                cmocka_unit_test(test_one_place),
                cmocka_unit_test(test_losses_in_a_replace),
        };

        thread_become(THREAD_MAIN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
