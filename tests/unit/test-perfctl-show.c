/* `show` as a process, whose daemon is played on a socket: an event that runs, one that the kernel offers, both, and neither. */
#include "tests/unit/perfctl-rig.h"

static Perfd__V1__FieldDescriptor field = { .base = PROTOBUF_C_MESSAGE_INIT(&perfd__v1__field_descriptor__descriptor),
                                            .name = (char *)"vec", .type = (char *)"unsigned int",
                                            .delimiter = (char *)"" };
static Perfd__V1__FieldDescriptor *fields[] = { &field };

static void answer_list(Ran *r, uint64_t id, bool runs) {
        Perfd__V1__Response yes = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__ListReply list = PERFD__V1__LIST_REPLY__INIT;
        Perfd__V1__EventState state = PERFD__V1__EVENT_STATE__INIT, *states[] = { &state };
        Perfd__V1__EventSpec spec = PERFD__V1__EVENT_SPEC__INIT;

        spec.event = spec.name = (char *)"irq:softirq_entry";
        spec.group = (char *)"default";
        state.id = 7;
        state.spec = &spec;
        state.enabled = true;
        state.fields = fields;
        state.n_fields = 1;
        list.events = states;
        list.n_events = runs;
        yes.id = id;
        yes.body_case = PERFD__V1__RESPONSE__BODY_LIST;
        yes.list = &list;
        play_request_free(play_request(r->daemon));
        play_response(r->daemon, &yes);
}

static void answer_available(Ran *r, uint64_t id, bool is_offered) {
        Perfd__V1__Response yes = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__AvailableReply reply = PERFD__V1__AVAILABLE_REPLY__INIT;
        Perfd__V1__AvailableEvent event = PERFD__V1__AVAILABLE_EVENT__INIT, *events[] = { &event };

        event.event = (char *)"irq:softirq_entry";
        event.kind = (char *)"tracepoint";
        event.unit = (char *)"events";
        event.fields = fields;
        event.n_fields = 1;
        reply.events = events;
        reply.n_events = is_offered;
        yes.id = id;
        yes.body_case = PERFD__V1__RESPONSE__BODY_AVAILABLE;
        yes.available = &reply;
        play_request_free(play_request(r->daemon));
        play_response(r->daemon, &yes);
}

static void show(Ran *r, const char *const *words, bool runs, bool is_offered) {
        run_start(r, words);
        run_greet(r);
        answer_list(r, 2, runs);
        answer_available(r, 3, is_offered);
        run_end(r);
        assert_string_equal(r->message, "");
        assert_int_equal(r->code, PERFCTL_OK);
}

#define OFFERED "{\"event\":\"irq:softirq_entry\",\"kind\":\"tracepoint\",\"unit\":\"events\",\"help\":\"\""

static void test_json(void **state) {
        Ran r;

        show(&r, WORDS("--json", "show", "irq:softirq_entry"), false, true);
        assert_non_null(strstr(r.text, OFFERED));
        assert_non_null(strstr(r.text, "\"name\":\"vec\""));
        assert_non_null(strstr(r.text, "\"running\":null}\n"));
        show(&r, WORDS("--json", "show", "irq:softirq_entry"), true, true);
        assert_non_null(strstr(r.text, OFFERED));
        assert_non_null(strstr(r.text, "\"running\":{\"name\":\"irq:softirq_entry\",\"id\":7,\"event\":\"irq:softirq_entry\","
                                       "\"group\":\"default\",\"enabled\":true,\"place\":\"\""));
}

static void test_text(void **state) {
        Ran r;

        show(&r, WORDS("show", "irq:softirq_entry"), true, false);
        assert_non_null(strstr(r.text, "vec"));
        show(&r, WORDS("show", "irq:softirq_entry"), false, true);
        assert_non_null(strstr(r.text, "vec"));
        assert_non_null(strstr(r.text, "unsigned int"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_json),
                cmocka_unit_test(test_text),
        };

        return cmocka_run_group_tests(tests, open_listener, close_listener);
}
