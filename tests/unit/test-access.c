/*
 * Rules of access and samples of clients, on a played kernel: a client of the stream socket gets what the first rule that is for it
 * grants, and not more, also when the rules change under it.
 */
#include "tests/unit/supervisor-client.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/supervisor/configuration/configuration.h"

#define BODY(name) PERFD__V1__REQUEST__BODY_##name
#define READER 1000
#define COUNTER 1001
#define OTHER 1002

#define EVENTS                                                                                                         \
        "version: 1\nrings:\n  size: 16KiB\ngroups:\n  all:\n    target: host\n    events:\n      - " RIG_TRACEPOINT      \
        "\n      - page-faults\n"
#define RULES(events)                                                                                                 \
        "access:\n  rules:\n    - users: [1000]\n      status: true\n      subscribe: [" events "]\n"                   \
        "      where: 'sample.cpu == 4'\n"                                                                               \
        "    - users: [1001]\n      stat: true\n      own-processes: true\n      emit: ['external:deploy']\n"

static Perfd__V1__Empty empty = PERFD__V1__EMPTY__INIT;

static int reload(Rig *rig, const char *yaml) {
        Perfd__V1__ReloadReply reply = PERFD__V1__RELOAD_REPLY__INIT;

        rig_write_config(rig, yaml);
        return configuration_reload(&rig->supervisor.configuration, NULL, &reply, &rig->e);
}

static void begin(Rig *rig) {
        rig_start(rig);
        played_write_samples(true);
        assert_int_equal(reload(rig, EVENTS RULES("'irq:*'")), 0);
}

static int subscribe_as(Rig *rig, RigStream *s, uint32_t uid, const char *event) {
        Perfd__V1__SubscribeRequest q = PERFD__V1__SUBSCRIBE_REQUEST__INIT;
        char *names[] = { (char *)event };

        rig_become(uid);
        q.events = names;
        q.n_events = event != NULL;
        return rig_subscribe(rig, s, &q);
}

static void connect_as(Rig *rig, RigClient *c, uint32_t uid) {
        rig_become(uid);
        rig_connect(rig, c, uid == 0);
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

static void test_subscribe(void **state) {
        RigStream s, root;
        Rig rig;

        begin(&rig);
        assert_int_equal(subscribe_as(&rig, &s, READER, "page-faults"), PERFD__V1__STATUS__STATUS_DENIED);
        assert_string_equal(rig.e.text, "not-granted");
        assert_int_equal(subscribe_as(&rig, &s, OTHER, NULL), PERFD__V1__STATUS__STATUS_DENIED);
        assert_int_equal(subscribe_as(&rig, &s, READER, "irq:*"), PERFD__V1__STATUS__STATUS_OK);
        assert_int_equal(subscribe_as(&rig, &root, 0, NULL), PERFD__V1__STATUS__STATUS_OK);
        played_occur(3);
        rig_end(&s);
        rig_end(&root);
        assert_int_equal(s.n_of_cpu[0], 3); /* of the CPU of its predicate */
        assert_int_equal(s.n_of_cpu[1], 0);
        assert_int_equal(root.n_items, 3 * 2 * RIG_CPUS);
        rig_leave(&s);
        rig_leave(&root);
        rig_stop(&rig);
}

/* By CPU a process may be taken for the one that had its pid before: that decides no grant. */
static void test_order(void **state) {
        static const char by_uid[] = EVENTS "access:\n  rules:\n    - users: [1000]\n      subscribe: ['*']\n"
                                            "      where: 'sample.uid == 1000'\n";
        Perfd__V1__SubscribeRequest q = PERFD__V1__SUBSCRIBE_REQUEST__INIT;
        RigStream s;
        Rig rig;

        begin(&rig);
        rig_become(READER);
        q.order = PERFD__V1__ORDER__ORDER_CPU;
        assert_int_equal(rig_subscribe(&rig, &s, &q), PERFD__V1__STATUS__STATUS_OK); /* the predicate asks for the CPU */
        assert_int_equal(reload(&rig, by_uid), 0);
        rig_read(&s);
        assert_string_equal(s.end, "not-granted");
        rig_leave(&s);
        assert_int_equal(rig_subscribe(&rig, &s, &q), PERFD__V1__STATUS__STATUS_DENIED);
        q.order = PERFD__V1__ORDER__ORDER_TIME;
        assert_int_equal(rig_subscribe(&rig, &s, &q), PERFD__V1__STATUS__STATUS_OK);
        rig_end(&s);
        rig_leave(&s);
        rig_stop(&rig);
}

/* Other rules hold at once: what they grant goes on. */
static void test_rules_change(void **state) {
        RigStream s, root;
        Rig rig;

        begin(&rig);
        assert_int_equal(subscribe_as(&rig, &s, READER, "irq:*"), PERFD__V1__STATUS__STATUS_OK);
        assert_int_equal(subscribe_as(&rig, &root, 0, NULL), PERFD__V1__STATUS__STATUS_OK);
        played_occur(2);
        assert_int_equal(reload(&rig, EVENTS RULES("'irq:*', 'page-*'")), 0);
        rig_read(&s);
        assert_string_equal(s.end, "");
        played_occur(2);
        assert_int_equal(reload(&rig, EVENTS RULES("'page-*'")), 0);
        rig_read(&s);
        assert_string_equal(s.end, "not-granted");
        assert_int_equal(s.n_items, 4);
        played_occur(1);
        rig_end(&root);
        assert_int_equal(root.n_items, 5 * 2 * RIG_CPUS);
        rig_leave(&s);
        rig_leave(&root);
        rig_stop(&rig);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static void test_status(void **state) {
        Perfd__V1__LedgerRequest ledger = PERFD__V1__LEDGER_REQUEST__INIT;
        Perfd__V1__ServerMessage *m;
        RigClient looker, other;
        Rig rig;

        begin(&rig);
        connect_as(&rig, &looker, READER);
        connect_as(&rig, &other, OTHER);
        rig_say(&looker, BODY(LEDGER), &ledger);
        rig_say_refused(&other, BODY(LEDGER), &ledger, "not-granted");
        m = rig_ask(&looker, BODY(STATUS), &empty);
        assert_true(m->response->daemon->access->limited);
        assert_true(m->response->daemon->access->status);
        assert_int_equal(m->response->daemon->access->n_subscribe, 1);
        assert_int_equal(m->response->daemon->n_cpus, RIG_CPUS);
        perfd__v1__server_message__free_unpacked(m, NULL);
        m = rig_ask(&other, BODY(STATUS), &empty);
        assert_true(m->response->daemon->access->limited);
        assert_int_equal(m->response->daemon->n_cpus, 0); /* no more than what it may do */
        perfd__v1__server_message__free_unpacked(m, NULL);
        rig_hang_up(&looker);
        rig_hang_up(&other);
        rig_stop(&rig);
}

static Perfd__V1__ServerMessage *list_as(Rig *rig, uint32_t uid, const char *name) {
        Perfd__V1__ListRequest q = PERFD__V1__LIST_REQUEST__INIT;
        Perfd__V1__ServerMessage *m;
        RigClient c;

        connect_as(rig, &c, uid);
        q.glob = (char *)name;
        m = rig_ask(&c, BODY(LIST), &q);
        rig_hang_up(&c);
        assert_int_equal(m->response->body_case, PERFD__V1__RESPONSE__BODY_LIST);
        assert_int_equal(m->response->list->n_events, 1);
        return m;
}

static void check_counts(Rig *rig, uint32_t uid, const char *name, uint64_t n) {
        Perfd__V1__ServerMessage *m = list_as(rig, uid, name);
        const Perfd__V1__EventState *e = m->response->list->events[0];

        assert_true(e->id > 0 && e->enabled);
        assert_int_equal(e->limited, n == 0);
        assert_int_equal(e->delivered, n);
        assert_int_equal(e->lost, 0);
        assert_int_equal(e->n_losses, 0);
        perfd__v1__server_message__free_unpacked(m, NULL);
}

/* How often an event occurred is told to who may see all of it. */
static void test_counts(void **state) {
        static const char rules[] =
                EVENTS "access:\n  rules:\n"
                "    - users: [1000]\n      subscribe: ['irq:*']\n      where: 'sample.cpu == 4'\n"
                "    - users: [1001]\n      emit: ['irq:*']\n"
                "    - users: [1002]\n      subscribe: ['irq:*']\n"
                "    - users: [1003]\n      status: true\n      subscribe: ['irq:*']\n      where: 'sample.cpu == 4'\n";
        RigStream root;
        Rig rig;

        begin(&rig);
        assert_int_equal(reload(&rig, rules), 0);
        assert_int_equal(subscribe_as(&rig, &root, 0, "irq:*"), PERFD__V1__STATUS__STATUS_OK);
        played_occur(3);
        check_counts(&rig, 0, "irq:*", UINT64_C(3) * RIG_CPUS);
        check_counts(&rig, 1000, "irq:*", 0);
        check_counts(&rig, 1001, "irq:*", 0);
        check_counts(&rig, 1002, "irq:*", UINT64_C(3) * RIG_CPUS);
        check_counts(&rig, 1003, "irq:*", UINT64_C(3) * RIG_CPUS);
        rig_end(&root);
        rig_leave(&root);
        rig_stop(&rig);
}

static void check_add_refused(RigClient *c, Perfd__V1__AddRequest *q, const char *why) {
        Perfd__V1__ServerMessage *m = rig_ask(c, BODY(ADD), q);

        assert_string_equal(m->response->reason, "not-granted");
        assert_non_null(strstr(m->response->message, why));
        perfd__v1__server_message__free_unpacked(m, NULL);
}

/* Counts alone, and processes of its own, for as long as it is connected. */
static void test_add(void **state) {
        static const char elsewhere[] = EVENTS RULES("'irq:*'");
        Perfd__V1__EventSpec spec = PERFD__V1__EVENT_SPEC__INIT, *specs[] = { &spec };
        Perfd__V1__AddRequest q = PERFD__V1__ADD_REQUEST__INIT;
        Perfd__V1__Target target = PERFD__V1__TARGET__INIT;
        uint32_t pid = 1;
        RigClient c, looker;
        Rig rig;

        begin(&rig);
        connect_as(&rig, &looker, READER);
        connect_as(&rig, &c, COUNTER);
        q.events = specs;
        q.n_events = 1;
        q.while_connected = true;
        spec.event = (char *)"minor-faults";
        rig_say_refused(&c, BODY(ADD), &q, "not-granted"); /* sampled */
        spec.interval = 1000000000;
        rig_say_refused(&looker, BODY(ADD), &q, "not-granted");
        spec.include_self = true;
        rig_say_refused(&c, BODY(ADD), &q, "not-granted");
        spec.include_self = false;
        rig_say(&c, BODY(ADD), &q);
        rig_check_opened(&rig, "~1001/minor-faults", true);
        spec.event = (char *)"cpu-clock";
        spec.interval = 0;
        spec.target = &target;
        target.pids = &pid;
        target.n_pids = 1;
        rig_say_refused(&c, BODY(ADD), &q, "not-granted"); /* that of init is not its own */
        pid = (uint32_t)getpid();
        spec.frequency = 20000;
        check_add_refused(&c, &q, "a frequency of more than 10000 Hz");
        spec.frequency = 0;
        spec.period = 99999; /* ns: the kernel would interrupt its CPU for each */
        check_add_refused(&c, &q, "a period of less than 100000 ns");
        assert_int_equal(reload(&rig, elsewhere), 0);
        rig_check_opened(&rig, "~1001/minor-faults", true);
        assert_int_equal(reload(&rig, EVENTS "access:\n  rules:\n    - users: [1001]\n      status: true\n"), 0);
        rig_turn(&rig);
        assert_null(rig_find(&rig, "~1001/minor-faults")); /* it is not granted any more */
        rig_hang_up(&looker);
        rig_hang_up(&c);
        rig_stop(&rig);
}

/* ---- samples of clients ------------------------------------------------------------------------------------------ */

static void add_external(Rig *rig) {
        Perfd__V1__ExternalField number = PERFD__V1__EXTERNAL_FIELD__INIT, text = PERFD__V1__EXTERNAL_FIELD__INIT;
        Perfd__V1__ExternalField *fields[] = { &text, &number };
        Perfd__V1__EventSpec spec = PERFD__V1__EVENT_SPEC__INIT, *specs[] = { &spec };
        Perfd__V1__AddRequest q = PERFD__V1__ADD_REQUEST__INIT;
        RigClient root;

        number.name = (char *)"step";
        number.type = (char *)"u32";
        text.name = (char *)"what";
        text.type = (char *)"text";
        spec.fields = fields;
        spec.n_fields = 2;
        q.events = specs;
        q.n_events = 1;
        connect_as(rig, &root, 0);
        spec.event = (char *)"external:other";
        rig_say(&root, BODY(ADD), &q);
        spec.event = (char *)"external:deploy";
        rig_say(&root, BODY(ADD), &q);
        rig_hang_up(&root);
}

static void emit_about(RigClient *c, uint32_t pid, const char *event, uint64_t time, uint64_t step, const char *reason) {
        Perfd__V1__ExternalValue text = PERFD__V1__EXTERNAL_VALUE__INIT, number = PERFD__V1__EXTERNAL_VALUE__INIT;
        Perfd__V1__ExternalValue *values[] = { &text, &number };
        Perfd__V1__ExternalSample sample = PERFD__V1__EXTERNAL_SAMPLE__INIT, *samples[] = { &sample };
        Perfd__V1__EmitRequest q = PERFD__V1__EMIT_REQUEST__INIT;

        text.value_case = PERFD__V1__EXTERNAL_VALUE__VALUE_TEXT;
        text.text = (ProtobufCBinaryData){ .len = 2, .data = (uint8_t *)"go" };
        number.value_case = PERFD__V1__EXTERNAL_VALUE__VALUE_NUMBER;
        number.number = step;
        sample.event = (char *)event;
        sample.time = time;
        sample.pid = sample.tid = pid;
        sample.cpu = PLAYED_CPU;
        sample.values = values;
        sample.n_values = 2;
        q.samples = samples;
        q.n_samples = 1;
        if (reason)
                rig_say_refused(c, BODY(EMIT), &q, reason);
        else
                rig_say(c, BODY(EMIT), &q);
}

static void emit(RigClient *c, const char *event, uint64_t time, uint64_t step, const char *reason) {
        emit_about(c, 0, event, time, step, reason);
}

static void test_emit(void **state) {
        RigClient c, looker;
        RigStream s;
        Rig rig;

        begin(&rig);
        add_external(&rig);
        connect_as(&rig, &c, COUNTER);
        connect_as(&rig, &looker, READER);
        assert_int_equal(subscribe_as(&rig, &s, 0, "external:*"), PERFD__V1__STATUS__STATUS_OK);
        emit(&looker, "external:deploy", clock_now(CLOCK_MONOTONIC), 1, "not-granted");
        emit(&c, "external:other", clock_now(CLOCK_MONOTONIC), 1, "not-granted");
        emit(&c, "external:\xe2\x80\xae" "deploy", clock_now(CLOCK_MONOTONIC), 1, "bad-text");
        emit_about(&c, 1, "external:deploy", clock_now(CLOCK_MONOTONIC), 1, "not-granted"); /* init is another one's */
        emit(&c, "external:deploy", 0, 1, "bad-time");
        emit(&c, "external:deploy", clock_now(CLOCK_MONOTONIC), UINT64_C(1) << 40, "bad-value");
        for (uint64_t step = 1; step <= 5; step++)
                emit(&c, "external:deploy", clock_now(CLOCK_MONOTONIC), step, NULL);
        rig_end(&s);
        assert_int_equal(s.n_items, 5);
        assert_int_equal(s.last_field, 5);
        rig_leave(&s);
        rig_hang_up(&looker);
        rig_hang_up(&c);
        rig_stop(&rig);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_subscribe),
                cmocka_unit_test(test_order),
                cmocka_unit_test(test_rules_change),
                cmocka_unit_test(test_status),
                cmocka_unit_test(test_counts),
                cmocka_unit_test(test_add),
                cmocka_unit_test(test_emit),
        };

        thread_become(THREAD_MAIN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
