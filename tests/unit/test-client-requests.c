/* libperfd's requests against a played daemon: what each says on the wire, and what becomes of its answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/perfd.h"
#include "tests/unit/played-daemon.h"

typedef struct Pair {
        perfd_client *client;
        int daemon;
} Pair;

/* Connected and greeted; the hello had the id 1. */
static Pair pair_new(void) {
        int fds[2];
        Pair p;

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        p.daemon = fds[1];
        p.client = perfd_client_new("test 1");
        play_hello(p.daemon, 1);
        assert_int_equal(perfd_client_connect_fd(p.client, fds[0]), 0);
        play_request_free(play_request(p.daemon));
        return p;
}

static void pair_free(Pair *p) {
        perfd_client_free(p->client);
        close(p->daemon);
}

static perfd_event_spec whole_spec(void) {
        static const char *const cgroups[] = { "system.slice/*", "/a" }, *const containers[] = { "0123456789ab" };
        static const char *const units[] = { "nginx.service" }, *const attr[] = { "exclude-user=true", "pinned==" };
        static const char *const fields[] = { "user:text" };
        perfd_event_spec s = PERFD_EVENT_SPEC_INIT;

        s.event = "kprobe:vfs_read";
        s.cgroups = cgroups;
        s.n_cgroups = 2;
        s.containers = containers;
        s.n_containers = 1;
        s.units = units;
        s.n_units = 1;
        s.args = "file=%di:x64";
        s.maxactive = 40;
        s.interval = 1000000000;
        s.fallback = "cpu-clock";
        s.attr = attr;
        s.n_attr = 2;
        s.fields = fields;
        s.n_fields = 1;
        s.group = "io";
        return s;
}

/* The message that was sent, sent back in a list. */
static void check_list(Pair *p, Perfd__V1__EventSpec *sent) {
        Perfd__V1__Response r = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__ListReply reply = PERFD__V1__LIST_REPLY__INIT;
        Perfd__V1__EventState state = PERFD__V1__EVENT_STATE__INIT, *states[] = { &state };
        const perfd_event_row *row;
        perfd_result *result;

        state.spec = sent;
        state.fallen_back = true;
        state.place = (char *)"vfs_read+0x0";
        state.n_targets = 3;
        state.n_postponed = 9;
        state.n_ended = 10;
        state.persistent = true;
        state.pending = (char *)"no module";
        reply.events = states;
        reply.n_events = 1;
        r.id = 3;
        r.body_case = PERFD__V1__RESPONSE__BODY_LIST;
        r.list = &reply;
        play_response(p->daemon, &r);
        assert_int_equal(perfd_list(p->client, NULL, &result), 0);
        row = perfd_result_event(result, 0);
        assert_true(row->fallen_back);
        assert_string_equal(row->place, "vfs_read+0x0");
        assert_int_equal(row->n_targets, 3);
        assert_int_equal(row->n_postponed, 9);
        assert_int_equal(row->n_ended, 10);
        assert_true(row->persistent);
        assert_string_equal(row->pending, "no module");
        assert_string_equal(row->spec->group, "io");
        assert_int_equal(row->spec->n_cgroups, 2);
        assert_string_equal(row->spec->cgroups[1], "/a");
        assert_string_equal(row->spec->containers[0], "0123456789ab");
        assert_string_equal(row->spec->units[0], "nginx.service");
        assert_string_equal(row->spec->args, "file=%di:x64");
        assert_int_equal(row->spec->maxactive, 40);
        assert_int_equal(row->spec->interval, 1000000000);
        assert_string_equal(row->spec->fallback, "cpu-clock");
        assert_int_equal(row->spec->n_attr, 2);
        assert_string_equal(row->spec->attr[0], "exclude-user=true");
        assert_string_equal(row->spec->attr[1], "pinned==");
        assert_int_equal(row->spec->n_fields, 1);
        assert_string_equal(row->spec->fields[0], "user:text");
        perfd_result_free(result);
}

/* Every member of a spec that came later than the first version: to the wire, and from there into a row again. */
static void test_whole_spec(void **state) {
        Perfd__V1__Response r = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__AddReply reply = PERFD__V1__ADD_REPLY__INIT;
        perfd_event_spec spec = whole_spec();
        Perfd__V1__Request *request;
        Pair p = pair_new();

        r.id = 2;
        r.body_case = PERFD__V1__RESPONSE__BODY_ADDED;
        r.added = &reply;
        play_response(p.daemon, &r);
        assert_int_equal(perfd_add_temporary(p.client, &spec, 1, NULL), 0);
        request = play_request(p.daemon);
        assert_true(request->add->while_connected);
        assert_string_equal(request->add->events[0]->attr[0]->name, "exclude-user");
        assert_string_equal(request->add->events[0]->attr[0]->value, "true");
        assert_string_equal(request->add->events[0]->fields[0]->name, "user");
        assert_string_equal(request->add->events[0]->fields[0]->type, "text");
        assert_string_equal(request->add->events[0]->target->cgroups[0], "system.slice/*");
        check_list(&p, request->add->events[0]);
        play_request_free(request);
        play_request_free(play_request(p.daemon));

        spec.attr = (const char *const[]){ "pinned" };
        spec.n_attr = 1;
        assert_int_equal(perfd_add(p.client, &spec, 1, NULL), PERFD_E_INVALID);
        assert_string_equal(perfd_client_error(p.client)->message,
                            "'pinned' is neither NAME=VALUE, as attr needs it, nor NAME:TYPE, as fields do");
        spec.n_attr = 0;
        spec.fields = (const char *const[]){ ":text" };
        assert_int_equal(perfd_add(p.client, &spec, 1, NULL), PERFD_E_INVALID);
        pair_free(&p);
}

static void test_add_persistent(void **state) {
        Perfd__V1__Response r = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__AddReply reply = PERFD__V1__ADD_REPLY__INIT;
        perfd_event_spec spec = whole_spec();
        Perfd__V1__Request *request;
        Pair p = pair_new();

        r.id = 2;
        r.body_case = PERFD__V1__RESPONSE__BODY_ADDED;
        r.added = &reply;
        play_response(p.daemon, &r);
        assert_int_equal(perfd_add_persistent(p.client, &spec, 1, NULL), 0);
        request = play_request(p.daemon);
        assert_true(request->add->keep && !request->add->while_connected);
        play_request_free(request);
        pair_free(&p);
}

static void test_set_period(void **state) {
        Perfd__V1__Response r = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__Request *request;
        Pair p = pair_new();

        r.id = 2;
        play_response(p.daemon, &r);
        assert_int_equal(perfd_set_period(p.client, "x", UINT64_MAX, 7), 0);
        request = play_request(p.daemon);
        assert_int_equal(request->body_case, PERFD__V1__REQUEST__BODY_SET_PERIOD);
        assert_string_equal(request->set_period->name, "x");
        assert_true(request->set_period->period == UINT64_MAX && request->set_period->frequency == 7);
        play_request_free(request);
        pair_free(&p);
}

/* Five lists are one, in their order; and what would change beside events. */
static void test_plan(void **state) {
        static const perfd_change changes[] = { PERFD_CHANGE_ADDED, PERFD_CHANGE_REMOVED, PERFD_CHANGE_CHANGED, PERFD_CHANGE_KEPT,
                                                PERFD_CHANGE_PENDING };
        Perfd__V1__Response r = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__PlanReply reply = PERFD__V1__PLAN_REPLY__INIT;
        Perfd__V1__PlannedEvent events[5], *lists[5];
        Perfd__V1__Difference d = PERFD__V1__DIFFERENCE__INIT, *ds[] = { &d };
        perfd_result *result;
        Perfd__V1__Request *request;
        Pair p = pair_new();

        for (size_t i = 0; i < 5; i++) {
                perfd__v1__planned_event__init(&events[i]);
                events[i].id = (uint32_t)i;
                lists[i] = &events[i];
        }
        d.field = (char *)"filter";
        d.before = (char *)"a";
        d.restart = true;
        events[2].differences = ds;
        events[2].n_differences = 1;
        events[2].replaced = true;
        events[2].name = events[2].group = (char *)"n";
        reply.added = &lists[0];
        reply.removed = &lists[1];
        reply.changed = &lists[2];
        reply.kept = &lists[3];
        reply.pending = &lists[4];
        events[4].why = (char *)"not here";
        events[4].reason = (char *)"unknown-event";
        reply.n_added = reply.n_removed = reply.n_changed = reply.n_kept = reply.n_pending = 1;
        reply.settings = ds;
        reply.n_settings = 1;
        r.id = 2;
        r.body_case = PERFD__V1__RESPONSE__BODY_PLAN;
        r.plan = &reply;
        play_response(p.daemon, &r);
        assert_int_equal(perfd_plan_apply(p.client, "yaml, but longer", 4, "f.yaml", true, &result), 0);
        request = play_request(p.daemon);
        assert_true(request->plan->may_wait);
        assert_string_equal(request->plan->yaml, "yaml");
        assert_string_equal(request->plan->path, "f.yaml");
        for (size_t i = 0; i < 5; i++) {
                const perfd_planned_row *row = perfd_result_planned(result, i);

                assert_true(row->change == changes[i] && row->id == i && row->replaced == (i == 2));
                assert_int_equal(row->n_differences, i == 2);
        }
        assert_null(perfd_result_planned(result, 5));
        assert_string_equal(perfd_result_planned(result, 4)->why, "not here");
        assert_string_equal(perfd_result_planned(result, 4)->reason, "unknown-event");
        assert_string_equal(perfd_result_planned(result, 0)->why, "");
        assert_string_equal(perfd_result_planned(result, 2)->differences[0].before, "a");
        assert_string_equal(perfd_result_planned(result, 2)->differences[0].after, "");
        assert_true(perfd_result_setting(result, 0)->restart && !perfd_result_setting(result, 1));
        perfd_result_free(result);
        play_request_free(request);
        pair_free(&p);
}

static void test_apply(void **state) {
        Perfd__V1__Response r = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__ReloadReply reply = PERFD__V1__RELOAD_REPLY__INIT;
        Perfd__V1__Request *request;
        perfd_result *result;
        Pair p = pair_new();

        assert_int_equal(perfd_apply(p.client, "a\0b", 3, NULL, false, NULL), PERFD_E_INVALID); /* nothing is sent */
        assert_int_equal(perfd_client_error(p.client)->position, 2);
        assert_int_equal(perfd_plan(p.client, "a\0b", 3, NULL, NULL), PERFD_E_INVALID);
        reply.changed = 5;
        r.id = 2;
        r.body_case = PERFD__V1__RESPONSE__BODY_RELOADED;
        r.reloaded = &reply;
        play_response(p.daemon, &r);
        assert_int_equal(perfd_apply(p.client, NULL, 0, NULL, true, &result), 0);
        request = play_request(p.daemon);
        assert_int_equal(request->body_case, PERFD__V1__REQUEST__BODY_APPLY);
        assert_string_equal(request->apply->yaml, "");
        assert_int_equal(perfd_result_reload(result)->changed, 5);
        perfd_result_free(result);
        play_request_free(request);
        pair_free(&p);
}

static void test_emit(void **state) {
        Perfd__V1__Response r = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__EmitReply reply = PERFD__V1__EMIT_REPLY__INIT;
        perfd_external_value values[] = {
                { .kind = PERFD_UNSIGNED, .number = UINT64_MAX },
                { .kind = PERFD_SIGNED, .number = (uint64_t)-7 },
                { .kind = PERFD_TEXT, .text = { "a\0b", 3 } },
        };
        perfd_external_sample samples[] = { PERFD_EXTERNAL_SAMPLE_INIT, PERFD_EXTERNAL_SAMPLE_INIT };
        Perfd__V1__Request *request;
        perfd_result *result;
        Pair p = pair_new();

        samples[0].event = "external:deploy";
        samples[0].time = 5;
        samples[0].pid = 1;
        samples[0].tid = 2;
        samples[0].cpu = 3;
        samples[0].values = values;
        samples[0].n_values = 3;
        samples[1].event = "external:empty";
        samples[1].time = UINT64_MAX;
        reply.taken = 2;
        reply.late = 1;
        reply.lost = 4;
        r.id = 2;
        r.body_case = PERFD__V1__RESPONSE__BODY_EMITTED;
        r.emitted = &reply;
        play_response(p.daemon, &r);
        assert_int_equal(perfd_emit(p.client, samples, 2, &result), 0);
        assert_int_equal(perfd_result_emitted(result)->taken, 2);
        assert_int_equal(perfd_result_emitted(result)->late, 1);
        assert_int_equal(perfd_result_emitted(result)->lost, 4);
        perfd_result_free(result);

        request = play_request(p.daemon);
        assert_int_equal(request->emit->n_samples, 2);
        assert_string_equal(request->emit->samples[0]->event, "external:deploy");
        assert_int_equal(request->emit->samples[0]->cpu, 3);
        assert_int_equal(request->emit->samples[0]->n_values, 3);
        assert_true(request->emit->samples[0]->values[0]->number == UINT64_MAX);
        assert_int_equal(request->emit->samples[0]->values[1]->value_case,
                         PERFD__V1__EXTERNAL_VALUE__VALUE_SIGNED_NUMBER);
        assert_true(request->emit->samples[0]->values[1]->signed_number == -7);
        assert_int_equal(request->emit->samples[0]->values[2]->text.len, 3);
        assert_true(request->emit->samples[1]->time == UINT64_MAX);
        assert_int_equal(request->emit->samples[1]->n_values, 0);
        play_request_free(request);

        values[1].kind = 77;
        assert_int_equal(perfd_emit(p.client, samples, 2, NULL), PERFD_E_INVALID);
        values[1].kind = PERFD_SIGNED;
        samples[1].size = 3;
        assert_int_equal(perfd_emit(p.client, samples, 2, NULL), PERFD_E_INVALID);
        pair_free(&p);
}

static void test_kernel_names(void **state) {
        static const uint64_t addresses[] = { 0xffffffff81000010, 7 };
        Perfd__V1__Response r = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__KernelNamesReply reply = PERFD__V1__KERNEL_NAMES_REPLY__INIT;
        Perfd__V1__KernelName names[2] = { PERFD__V1__KERNEL_NAME__INIT, PERFD__V1__KERNEL_NAME__INIT };
        Perfd__V1__KernelName *list[2] = { &names[0], &names[1] };
        const perfd_kernel_name *name;
        Perfd__V1__Request *request;
        perfd_result *result;
        Pair p = pair_new();

        (void)state;
        names[0].symbol = (ProtobufCBinaryData){ .data = (uint8_t *)"ext4_read", .len = 9 };
        names[0].module = (ProtobufCBinaryData){ .data = (uint8_t *)"ext4", .len = 4 };
        names[0].offset = 16;
        names[0].size = 64;
        reply.names = list;
        reply.n_names = 2;
        r.id = 2;
        r.body_case = PERFD__V1__RESPONSE__BODY_KERNEL_NAMES;
        r.kernel_names = &reply;
        play_response(p.daemon, &r);
        assert_int_equal(perfd_kernel_names(p.client, addresses, 2, &result), 0);
        request = play_request(p.daemon);
        assert_int_equal(request->body_case, PERFD__V1__REQUEST__BODY_KERNEL_NAMES);
        assert_int_equal(request->kernel_names->n_addresses, 2);
        assert_int_equal(request->kernel_names->addresses[0], addresses[0]);
        play_request_free(request);
        name = perfd_result_kernel_name(result, 0);
        assert_int_equal(name->symbol.length, 9);
        assert_memory_equal(name->symbol.bytes, "ext4_read", 9);
        assert_int_equal(name->module.length, 4);
        assert_memory_equal(name->module.bytes, "ext4", 4);
        assert_int_equal(name->offset, 16);
        assert_int_equal(name->size, 64);
        assert_int_equal(perfd_result_kernel_name(result, 1)->symbol.length, 0);
        assert_null(perfd_result_kernel_name(result, 2));
        perfd_result_free(result);
        pair_free(&p);
}

static void test_doctor(void **state) {
        Perfd__V1__Response r = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__DoctorReply reply = PERFD__V1__DOCTOR_REPLY__INIT;
        Perfd__V1__DoctorRow row = PERFD__V1__DOCTOR_ROW__INIT, *rows[] = { &row };
        perfd_result *result;
        Pair p = pair_new();

        row.topic = (char *)"probes";
        row.what = (char *)"kprobes";
        row.found = (char *)"no such PMU";
        row.remedy = (char *)"CONFIG_KPROBES";
        reply.rows = rows;
        reply.n_rows = 1;
        r.id = 2;
        r.body_case = PERFD__V1__RESPONSE__BODY_DOCTOR;
        r.doctor = &reply;
        play_response(p.daemon, &r);
        assert_int_equal(perfd_doctor(p.client, &result), 0);
        assert_string_equal(perfd_result_doctor(result, 0)->topic, "probes");
        assert_string_equal(perfd_result_doctor(result, 0)->what, "kprobes");
        assert_string_equal(perfd_result_doctor(result, 0)->found, "no such PMU");
        assert_string_equal(perfd_result_doctor(result, 0)->remedy, "CONFIG_KPROBES");
        assert_false(perfd_result_doctor(result, 0)->works);
        assert_null(perfd_result_doctor(result, 1));
        perfd_result_free(result);
        pair_free(&p);
}

/* What is not known of a probe does not make the ledger wrong. */
static void test_ledger(void **state) {
        Perfd__V1__Response r = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__Ledger ledger = PERFD__V1__LEDGER__INIT;
        Perfd__V1__ProbeLedger probe = PERFD__V1__PROBE_LEDGER__INIT, *probes[] = { &probe };
        perfd_result *result;
        Pair p = pair_new();

        probe.id = 4;
        probe.name = (char *)"kprobe:vfs_read";
        probe.hits = 100;
        probe.missed = 2;
        probe.known = true;
        ledger.probes = probes;
        ledger.n_probes = 1;
        r.id = 2;
        r.body_case = PERFD__V1__RESPONSE__BODY_LEDGER;
        r.ledger = &ledger;
        play_response(p.daemon, &r);
        assert_int_equal(perfd_ledger(p.client, &result), 0);
        assert_int_equal(perfd_result_probe_ledger(result, 0)->id, 4);
        assert_string_equal(perfd_result_probe_ledger(result, 0)->name, "kprobe:vfs_read");
        assert_int_equal(perfd_result_probe_ledger(result, 0)->hits, 100);
        assert_int_equal(perfd_result_probe_ledger(result, 0)->missed, 2);
        assert_true(perfd_result_probe_ledger(result, 0)->known);
        assert_null(perfd_result_probe_ledger(result, 1));
        assert_true(perfd_result_is_balanced(result));
        perfd_result_free(result);
        pair_free(&p);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_whole_spec),
                cmocka_unit_test(test_add_persistent),
                cmocka_unit_test(test_set_period),
                cmocka_unit_test(test_plan),
                cmocka_unit_test(test_apply),
                cmocka_unit_test(test_emit),
                cmocka_unit_test(test_doctor),
                cmocka_unit_test(test_kernel_names),
                cmocka_unit_test(test_ledger),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
