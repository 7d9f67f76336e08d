/*
 * Requests that are answered with every event, where there are many: others are served in the middle, at every checkpoint here,
 * however soon it comes. What others ask meanwhile changes nothing of the answer, and who goes is not worked for.
 */
#include "tests/unit/supervisor-client.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/checkpoint.h"

#define MANY 400 /* events, of which a list takes long */
#define FEW 200
#define BODY(name) PERFD__V1__REQUEST__BODY_##name

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

typedef struct Meanwhile {
        CheckpointServe serve;
        void *userdata;
        unsigned n; /* checkpoints until now */
        bool is_serving;
        void (*happen)(unsigned n, void *context); /* before others are served */
        void *context;
} Meanwhile;

static Meanwhile meanwhile;

void __wrap_checkpoint_set(CheckpointServe serve, void *userdata);
void __wrap_checkpoint_set(CheckpointServe serve, void *userdata) {
        meanwhile.serve = serve;
        meanwhile.userdata = userdata;
}

int __wrap_checkpoint(Explanation *e);
int __wrap_checkpoint(Explanation *e) {
        int r;

        if (!meanwhile.serve || !meanwhile.happen || meanwhile.is_serving) /* the last: of what is answered in the middle */
                return 0;
        meanwhile.happen(++meanwhile.n, meanwhile.context);
        meanwhile.is_serving = true;
        r = meanwhile.serve(meanwhile.userdata, e);
        meanwhile.is_serving = false;
        return r;
}

static void in_the_middle(void (*happen)(unsigned n, void *context), void *context) {
        meanwhile.n = 0;
        meanwhile.happen = happen;
        meanwhile.context = context;
}

/* ---- the rig ----------------------------------------------------------------------------------------------------- */

static Perfd__V1__Empty empty = PERFD__V1__EMPTY__INIT;

/* n external events, "external:e0000" and so on. */
static void add(RigClient *c, unsigned n) {
        Perfd__V1__ExternalField field = PERFD__V1__EXTERNAL_FIELD__INIT, *fields[] = { &field };
        Perfd__V1__EventSpec specs[MANY], *list[MANY];
        Perfd__V1__AddRequest q = PERFD__V1__ADD_REQUEST__INIT;
        char names[MANY][32];

        field.name = (char *)"v";
        field.type = (char *)"u64";
        for (unsigned i = 0; i < n; i++) {
                perfd__v1__event_spec__init(&specs[i]);
                (void)snprintf(names[i], sizeof(names[i]), "external:e%04u", i);
                specs[i].event = names[i];
                specs[i].fields = fields;
                specs[i].n_fields = 1;
                list[i] = &specs[i];
        }
        q.events = list;
        q.n_events = n;
        rig_say(c, BODY(ADD), &q);
}

typedef struct Played {
        Rig rig;
        RigClient asks, other;
        Perfd__V1__Request request; /* of the other */
        unsigned when;              /* the checkpoint at which it is sent */
        unsigned answered;          /* the first one at which its answer was there; 0: none */
} Played;

static void begin(Played *p, unsigned n_events) {
        *p = (Played){ .when = 10 };
        in_the_middle(NULL, NULL);
        rig_start(&p->rig);
        rig_become(0);
        played_write_samples(true);
        rig_connect(&p->rig, &p->asks, true);
        rig_connect(&p->rig, &p->other, true);
        add(&p->asks, n_events);
        perfd__v1__request__init(&p->request);
}

static void end(Played *p) {
        in_the_middle(NULL, NULL);
        rig_hang_up(&p->asks);
        rig_hang_up(&p->other);
        rig_stop(&p->rig);
}

static void ask_meanwhile(unsigned n, void *context) {
        Played *p = context;

        if (n == p->when)
                rig_post(&p->other, &p->request);
        if (n > p->when && p->answered == 0 && rig_is_answered(&p->other))
                p->answered = n;
}

/* The list of all, each once, in their order. */
static void check_list(const Perfd__V1__ServerMessage *m, unsigned n) {
        assert_int_equal(m->response->status, PERFD__V1__STATUS__STATUS_OK);
        assert_int_equal(m->response->list->n_events, n);
        for (unsigned i = 0; i < n; i++) {
                char name[32];

                (void)snprintf(name, sizeof(name), "external:e%04u", i);
                assert_string_equal(m->response->list->events[i]->spec->name, name);
                assert_int_equal(m->response->list->events[i]->n_fields, 1);
        }
}

static void list_and_check(Played *p, unsigned n) {
        Perfd__V1__ListRequest q = PERFD__V1__LIST_REQUEST__INIT;
        Perfd__V1__ServerMessage *m;

        q.fields = true;
        m = rig_ask(&p->asks, BODY(LIST), &q);
        check_list(m, n);
        perfd__v1__server_message__free_unpacked(m, NULL);
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

/* Who only looks is answered at once. */
static void test_look_meanwhile(void **state) {
        Played p;

        begin(&p, MANY);
        p.request.body_case = BODY(STATUS);
        p.request.status = &empty;
        in_the_middle(ask_meanwhile, &p);
        list_and_check(&p, MANY);
        assert_int_equal(p.answered, p.when + 1);
        assert_in_range(meanwhile.n, 2 * MANY, 3 * MANY); /* for each name, and for each event */
        end(&p);
}

/* What would change the list comes behind it. */
static void test_change_meanwhile(void **state) {
        Perfd__V1__SelectRequest all = PERFD__V1__SELECT_REQUEST__INIT;
        char *names[] = { (char *)"external:*" };
        Perfd__V1__ServerMessage *m;
        Played p;

        begin(&p, MANY);
        all.names = names;
        all.n_names = 1;
        p.request.body_case = BODY(REMOVE);
        p.request.remove = &all;
        in_the_middle(ask_meanwhile, &p);
        list_and_check(&p, MANY);
        assert_int_equal(p.answered, 0);
        in_the_middle(NULL, NULL);
        rig_turn(&p.rig);
        m = rig_receive(&p.other);
        assert_non_null(m);
        assert_int_equal(m->response->selected->n_events, MANY);
        perfd__v1__server_message__free_unpacked(m, NULL);
        list_and_check(&p, 0);
        end(&p);
}

static void hang_up(unsigned n, void *context) {
        Played *p = context;

        if (n == p->when)
                rig_close(&p->asks);
}

/* A request of a client that goes in the middle of it. */
static void check_gone(Played *p, Perfd__V1__Request *request) {
        in_the_middle(hang_up, p);
        rig_post(&p->asks, request);
        rig_turn(&p->rig);
        assert_int_equal(meanwhile.n, p->when);
        in_the_middle(NULL, NULL);
        rig_connect(&p->rig, &p->asks, true);
}

static void test_client_goes(void **state) {
        Perfd__V1__SubscribeRequest subscribe = PERFD__V1__SUBSCRIBE_REQUEST__INIT;
        Perfd__V1__LedgerRequest ledger = PERFD__V1__LEDGER_REQUEST__INIT;
        Perfd__V1__ListRequest list = PERFD__V1__LIST_REQUEST__INIT;
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Played p;

        begin(&p, MANY);
        request.body_case = BODY(LIST);
        request.list = &list;
        check_gone(&p, &request);
        p.when = MANY + 10; /* where events are described */
        check_gone(&p, &request);
        request.body_case = BODY(LEDGER);
        request.ledger = &ledger;
        p.when = 10;
        check_gone(&p, &request);
        request.body_case = BODY(SUBSCRIBE);
        request.subscribe = &subscribe;
        p.when = MANY + 1; /* behind the first packet of descriptors */
        check_gone(&p, &request);
        assert_null(p.rig.supervisor.subscriptions.first);
        assert_null(p.rig.supervisor.subscriptions.subscribers);
        list_and_check(&p, MANY);
        end(&p);
}

static void list_meanwhile(unsigned n, void *context) {
        Played *p = context;

        ask_meanwhile(n, context);
        if (n == p->when + 1)
                assert_true(rig_is_answered(&p->other));
}

/* A short one needs no turn of its own, also in the middle of a change. */
static void test_short(void **state) {
        Perfd__V1__ListRequest q = PERFD__V1__LIST_REQUEST__INIT;
        Perfd__V1__LedgerRequest ledger = PERFD__V1__LEDGER_REQUEST__INIT;
        Perfd__V1__ServerMessage *m;
        Played p;

        begin(&p, FEW);
        q.fields = true;
        p.request.body_case = BODY(LIST);
        p.request.list = &q;
        in_the_middle(list_meanwhile, &p);
        rig_say(&p.asks, BODY(LEDGER), &ledger);
        assert_int_equal(p.answered, p.when + 1);
        m = rig_receive(&p.other);
        check_list(m, FEW);
        perfd__v1__server_message__free_unpacked(m, NULL);
        end(&p);
}

/* A name means one event, however many there are. */
static void test_name(void **state) {
        Perfd__V1__ListRequest q = PERFD__V1__LIST_REQUEST__INIT;
        Perfd__V1__LedgerRequest ledger = PERFD__V1__LEDGER_REQUEST__INIT;
        Perfd__V1__ServerMessage *m;
        Played p;

        begin(&p, MANY);
        q.glob = (char *)"external:e0007";
        p.request.body_case = BODY(LIST);
        p.request.list = &q;
        in_the_middle(list_meanwhile, &p);
        rig_say(&p.asks, BODY(LEDGER), &ledger);
        m = rig_receive(&p.other);
        assert_int_equal(m->response->list->n_events, 1);
        assert_string_equal(m->response->list->events[0]->spec->name, q.glob);
        perfd__v1__server_message__free_unpacked(m, NULL);
        end(&p);
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

/* Samples of others that are emitted in the middle of a subscription are not its own, and its descriptors come before all items. */
static void test_emit_meanwhile(void **state) {
        Perfd__V1__SubscribeRequest q = PERFD__V1__SUBSCRIBE_REQUEST__INIT;
        Perfd__V1__ExternalSample sample = PERFD__V1__EXTERNAL_SAMPLE__INIT, *samples[] = { &sample };
        Perfd__V1__ExternalValue value = PERFD__V1__EXTERNAL_VALUE__INIT, *values[] = { &value };
        Perfd__V1__EmitRequest emit = PERFD__V1__EMIT_REQUEST__INIT;
        RigStream stream;
        Played p;

        begin(&p, MANY);
        value.value_case = PERFD__V1__EXTERNAL_VALUE__VALUE_NUMBER;
        sample.event = (char *)"external:e0001";
        sample.values = values;
        sample.n_values = 1;
        sample.time = clock_now(CLOCK_MONOTONIC);
        sample.cpu = PLAYED_CPU;
        emit.samples = samples;
        emit.n_samples = 1;
        p.when = MANY + 1;
        p.request.body_case = BODY(EMIT);
        p.request.emit = &emit;
        in_the_middle(ask_meanwhile, &p);
        assert_int_equal(rig_subscribe(&p.rig, &stream, &q), PERFD__V1__STATUS__STATUS_OK);
        assert_in_range(meanwhile.n, MANY + 1, 2 * MANY);
        in_the_middle(NULL, NULL);
        rig_turn(&p.rig);
        assert_true(rig_is_answered(&p.other));
        rig_say(&p.asks, BODY(EMIT), &emit);
        rig_end(&stream);
        assert_int_equal(stream.n_descriptors, MANY);
        assert_int_equal(stream.n_items, 1);
        rig_leave(&stream);
        end(&p);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_look_meanwhile),
                cmocka_unit_test(test_change_meanwhile),
                cmocka_unit_test(test_client_goes),
                cmocka_unit_test(test_short),
                cmocka_unit_test(test_name),
                cmocka_unit_test(test_emit_meanwhile),
        };

        thread_become(THREAD_MAIN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
