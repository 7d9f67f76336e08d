/*
 * A connection that has limited itself (Hello.limit), on a played kernel: its client gets what both the limit and the rules grant,
 * and cannot lift it.
 */
#include "tests/unit/supervisor-client.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/supervisor/configuration/configuration.h"

#define BODY(name) PERFD__V1__REQUEST__BODY_##name
#define RELAY 1000

#define EVENTS                                                                                                         \
        "version: 1\nrings:\n  size: 16KiB\ngroups:\n  all:\n    target: host\n    events:\n      - " RIG_TRACEPOINT      \
        "\n      - page-faults\n"
#define RULES(events)                                                                                                 \
        "access:\n  rules:\n    - users: [1000]\n      status: true\n      subscribe: [" events "]\n      own-processes: true\n" \
        "      stat: true\n"

static Perfd__V1__Empty empty = PERFD__V1__EMPTY__INIT;
static char *page_faults[] = { (char *)"page-*" }, *all[] = { (char *)"*" };

static Perfd__V1__Limit limit_to(char **events, const char *where) {
        Perfd__V1__Limit limit = PERFD__V1__LIMIT__INIT;

        limit.name = (char *)"collector-1";
        limit.events = events;
        limit.n_events = events != NULL;
        limit.where = (char *)where;
        return limit;
}

static void reload(Rig *rig, const char *yaml) {
        Perfd__V1__ReloadReply reply = PERFD__V1__RELOAD_REPLY__INIT;

        rig_write_config(rig, yaml);
        assert_int_equal(configuration_reload(&rig->supervisor.configuration, NULL, &reply, &rig->e), 0);
}

static void begin(Rig *rig, const char *yaml) {
        rig_start(rig);
        played_write_samples(true);
        reload(rig, yaml);
        rig_become(RELAY);
}

static Perfd__V1__SubscribeRequest request_for(char **event) {
        Perfd__V1__SubscribeRequest q = PERFD__V1__SUBSCRIBE_REQUEST__INIT;

        q.events = event;
        q.n_events = event != NULL;
        return q;
}

static void check_refused(Rig *rig, const Perfd__V1__Limit *limit, const Perfd__V1__SubscribeRequest *q, const char *reason) {
        RigStream s;

        assert_int_not_equal(rig_subscribe_limited(rig, &s, limit, q), PERFD__V1__STATUS__STATUS_OK);
        assert_string_equal(rig->e.text, reason);
}

/* Of all events those of the limit; of their samples those that both predicates match. */
static void test_samples(void **state) {
        char *tracepoint[] = { (char *)RIG_TRACEPOINT };
        Perfd__V1__Limit events = limit_to(page_faults, ""), cpu = limit_to(all, "sample.cpu == 4"), none = limit_to(NULL, "");
        Perfd__V1__SubscribeRequest every = request_for(NULL), named = request_for(tracepoint), escape = request_for(NULL);
        RigStream limited, of_cpu, whole;
        Rig rig;

        begin(&rig, EVENTS);
        escape.where = (char *)"sample.cpu != 4 || sample.cpu == 4";
        assert_int_equal(rig_subscribe_limited(&rig, &limited, &events, &every), PERFD__V1__STATUS__STATUS_OK);
        assert_int_equal(rig_subscribe_limited(&rig, &of_cpu, &cpu, &escape), PERFD__V1__STATUS__STATUS_OK);
        assert_int_equal(rig_subscribe(&rig, &whole, &every), PERFD__V1__STATUS__STATUS_OK); /* no subscription is shared with these */
        check_refused(&rig, &events, &named, "not-granted");
        check_refused(&rig, &none, &every, "not-granted");
        played_occur(3);
        rig_end(&limited);
        rig_end(&of_cpu);
        rig_end(&whole);
        assert_int_equal(limited.n_items, 3 * RIG_CPUS);
        assert_int_equal(of_cpu.n_items, 3 * 2);
        assert_int_equal(of_cpu.n_of_cpu[0], 3 * 2);
        assert_int_equal(whole.n_items, 3 * 2 * RIG_CPUS);
        rig_leave(&limited);
        rig_leave(&of_cpu);
        rig_leave(&whole);
        rig_stop(&rig);
}

/* Raw bytes, side records, shared memory, and long queues have to be granted. */
static void test_kinds(void **state) {
        Perfd__V1__Limit limit = limit_to(all, ""), cpu = limit_to(all, "sample.cpu == 4");
        Perfd__V1__SubscribeRequest raw = request_for(NULL), records = request_for(NULL), ring = request_for(NULL), queue = request_for(NULL);
        RigStream s;
        Rig rig;

        begin(&rig, EVENTS);
        raw.payload = PERFD__V1__PAYLOAD__PAYLOAD_BOTH;
        records.records = 1U << 0;
        ring.ring_bytes = 1 << 20;
        queue.queue_bytes = 2 << 20;
        limit.queue_bytes = 1 << 20;
        check_refused(&rig, &limit, &raw, "not-granted");
        check_refused(&rig, &limit, &ring, "not-granted");
        check_refused(&rig, &limit, &queue, "not-granted");
        check_refused(&rig, &cpu, &records, "not-granted");
        limit.raw = true;
        queue.queue_bytes = 1 << 20;
        queue.payload = PERFD__V1__PAYLOAD__PAYLOAD_BOTH;
        queue.records = 1U << 0;
        assert_int_equal(rig_subscribe_limited(&rig, &s, &limit, &queue), PERFD__V1__STATUS__STATUS_OK);
        rig_end(&s);
        rig_leave(&s);
        rig_stop(&rig);
}

/* Rules and limit: what one of them does not grant is not granted, and rules that change are minded. */
static void test_rules(void **state) {
        char *tracepoint[] = { (char *)RIG_TRACEPOINT };
        Perfd__V1__Limit limit = limit_to(page_faults, "sample.cpu == 4"), other = limit_to(tracepoint, "");
        Perfd__V1__SubscribeRequest every = request_for(NULL), named = request_for(tracepoint);
        RigStream s;
        Rig rig;

        begin(&rig, EVENTS RULES("'page-*', 'irq:*'"));
        check_refused(&rig, &limit, &named, "not-granted"); /* which the rule grants */
        assert_int_equal(rig_subscribe_limited(&rig, &s, &limit, &every), PERFD__V1__STATUS__STATUS_OK);
        played_occur(2);
        reload(&rig, EVENTS RULES("'page-*', 'irq:*', 'sched:*'"));
        rig_read(&s);
        assert_string_equal(s.end, "");
        reload(&rig, EVENTS RULES("'sched:*'"));
        rig_read(&s);
        assert_string_equal(s.end, "not-granted");
        assert_int_equal(s.n_items, 2);
        rig_leave(&s);
        check_refused(&rig, &other, &named, "not-granted"); /* which the limit grants */
        rig_stop(&rig);
}

static void say_hello(RigClient *c, Perfd__V1__Limit *limit, const char *refusal) {
        Perfd__V1__Hello hello = PERFD__V1__HELLO__INIT;

        hello.protocol = PERFD_PROTOCOL;
        hello.program = (char *)"relay";
        hello.limit = limit;
        if (refusal)
                rig_say_refused(c, BODY(HELLO), &hello, refusal);
        else
                rig_say(c, BODY(HELLO), &hello);
}

static void check_changes_nothing(RigClient *c) {
        Perfd__V1__AddRequest add = PERFD__V1__ADD_REQUEST__INIT;
        Perfd__V1__SelectRequest select = PERFD__V1__SELECT_REQUEST__INIT;
        Perfd__V1__EventSpec spec = PERFD__V1__EVENT_SPEC__INIT, *specs[] = { &spec };
        Perfd__V1__ExternalSample sample = PERFD__V1__EXTERNAL_SAMPLE__INIT, *samples[] = { &sample };
        Perfd__V1__EmitRequest emit = PERFD__V1__EMIT_REQUEST__INIT;

        spec.event = (char *)"minor-faults";
        spec.interval = 1000000000;
        add.events = specs;
        add.n_events = 1;
        add.while_connected = true;
        select.names = page_faults;
        select.n_names = 1;
        rig_say_refused(c, BODY(ADD), &add, "not-granted");
        rig_say_refused(c, BODY(REMOVE), &select, "not-granted");
        rig_say_refused(c, BODY(DISABLE), &select, "not-granted");
        rig_say_refused(c, BODY(RELOAD), &empty, "not-granted");
        sample.event = (char *)"external:deploy";
        emit.samples = samples;
        emit.n_samples = 1;
        rig_say_refused(c, BODY(EMIT), &emit, "not-granted");
}

/* How often others' samples occur is not told to whom a predicate limits; whole events are counted. */
static void test_counts(void **state) {
        Perfd__V1__Limit limits[] = { limit_to(page_faults, "sample.cpu == 4"), limit_to(page_faults, "") };
        Perfd__V1__ListRequest list = PERFD__V1__LIST_REQUEST__INIT;
        Perfd__V1__SubscribeRequest every = request_for(NULL);
        RigStream whole;
        Rig rig;

        begin(&rig, EVENTS);
        assert_int_equal(rig_subscribe(&rig, &whole, &every), PERFD__V1__STATUS__STATUS_OK);
        played_occur(3);
        for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
                const Perfd__V1__EventState *event;
                Perfd__V1__ServerMessage *m;
                RigClient c;

                rig_connect(&rig, &c, i == 0);
                say_hello(&c, &limits[i], NULL);
                m = rig_ask(&c, BODY(LIST), &list);
                assert_int_equal(m->response->list->n_events, 1);
                event = m->response->list->events[0];
                assert_int_equal(event->limited, i == 0);
                assert_int_equal(event->delivered, i == 0 ? 0 : 3 * RIG_CPUS);
                perfd__v1__server_message__free_unpacked(m, NULL);
                rig_hang_up(&c);
        }
        rig_end(&whole);
        rig_leave(&whole);
        rig_stop(&rig);
}

/* What can never match is told to who wrote it: not of the predicate of the limit. */
static void test_constants(void **state) {
        Perfd__V1__Limit cpu = limit_to(all, "sample.cpu == 4"), nothing = limit_to(all, "sample.cpu == 99999");
        Perfd__V1__SubscribeRequest every = request_for(NULL), never = request_for(NULL);
        RigStream s;
        Rig rig;

        begin(&rig, EVENTS);
        never.where = (char *)"sample.cpu == 99999";
        check_refused(&rig, NULL, &never, "bad-expression");
        check_refused(&rig, &cpu, &never, "bad-expression");
        assert_int_equal(rig_subscribe_limited(&rig, &s, &nothing, &every), PERFD__V1__STATUS__STATUS_OK);
        rig_end(&s);
        rig_leave(&s);
        rig_stop(&rig);
}

/* Also on the control socket, and for one whose rule grants to add. */
static void test_requests(void **state) {
        Perfd__V1__Limit limit = limit_to(page_faults, "");
        Perfd__V1__LedgerRequest ledger = PERFD__V1__LEDGER_REQUEST__INIT;
        Perfd__V1__ListRequest list = PERFD__V1__LIST_REQUEST__INIT;
        Perfd__V1__ServerMessage *m;
        RigClient stream, control;
        Rig rig;

        begin(&rig, EVENTS RULES("'*'"));
        rig_connect(&rig, &stream, false);
        rig_connect(&rig, &control, true);
        say_hello(&stream, &limit, NULL);
        say_hello(&control, &limit, NULL);
        check_changes_nothing(&stream);
        check_changes_nothing(&control);
        say_hello(&stream, NULL, NULL); /* as the client behind it does */
        rig_say_refused(&stream, BODY(LEDGER), &ledger, "not-granted");
        m = rig_ask(&stream, BODY(LIST), &list);
        assert_int_equal(m->response->list->n_events, 1);
        assert_string_equal(m->response->list->events[0]->spec->name, "page-faults");
        perfd__v1__server_message__free_unpacked(m, NULL);
        m = rig_ask(&stream, BODY(STATUS), &empty);
        assert_true(m->response->daemon->access->limited);
        assert_false(m->response->daemon->access->stat);
        assert_string_equal(m->response->daemon->access->limit->name, "collector-1");
        assert_int_equal(m->response->daemon->n_cpus, 0);
        perfd__v1__server_message__free_unpacked(m, NULL);
        rig_hang_up(&stream);
        rig_hang_up(&control);
        rig_stop(&rig);
}

/* Once; and what it cannot mean is said. */
static void test_hello(void **state) {
        Perfd__V1__Limit wide = limit_to(all, ""), bad = limit_to(all, "sample.cpu =="), many = limit_to(all, "");
        char *names[257];
        RigClient c;
        Rig rig;

        begin(&rig, EVENTS);
        wide.status = true;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                names[i] = (char *)"*";
        many.events = names;
        many.n_events = ARRAY_SIZE(names);
        rig_connect(&rig, &c, false);
        say_hello(&c, &many, "bad-request");
        say_hello(&c, &bad, "bad-expression");
        say_hello(&c, &wide, NULL);
        say_hello(&c, &wide, "bad-request");
        rig_say(&c, BODY(STATUS), &empty);
        rig_hang_up(&c);
        rig_stop(&rig);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_samples), cmocka_unit_test(test_kinds), cmocka_unit_test(test_rules),
                cmocka_unit_test(test_requests), cmocka_unit_test(test_hello), cmocka_unit_test(test_counts), cmocka_unit_test(test_constants),
        };

        thread_become(THREAD_MAIN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
