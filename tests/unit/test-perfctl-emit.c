/* perfctl emit: what it sends, what it says of values that a field cannot have, and with which status it ends. */
#include <time.h>

#include "tests/unit/perfctl-rig.h"

/* Of external:deploy with the fields user:text, code:s32, ok:bool, version:u32, serial:u64. */
static void emit_start(Ran *r, const char *const *words) {
        Perfd__V1__EventState event = PERFD__V1__EVENT_STATE__INIT;
        Perfd__V1__EventSpec spec = PERFD__V1__EVENT_SPEC__INIT;
        Perfd__V1__ExternalField fields[5], *list[5];
        static const char *const names[] = { "user", "code", "ok", "version", "serial" };
        static const char *const types[] = { "text", "s32", "bool", "u32", "u64" };

        for (int i = 0; i < 5; i++) {
                perfd__v1__external_field__init(&fields[i]);
                fields[i].name = (char *)names[i];
                fields[i].type = (char *)types[i];
                list[i] = &fields[i];
        }
        spec.event = spec.name = (char *)"external:deploy";
        spec.fields = list;
        spec.n_fields = 5;
        event.spec = &spec;
        run_start(r, words);
        run_greet(r);
        play_request_free(play_request(r->daemon));
        play_listed(r, 2, &event);
}

static void test_emit(void **state) {
        Perfd__V1__Response yes = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__EmitReply reply = PERFD__V1__EMIT_REPLY__INIT;
        const Perfd__V1__ExternalSample *sample;
        Perfd__V1__Request *request;
        Ran r;

        emit_start(&r,
                   WORDS("emit", "external:deploy", "code=-0x1F", "ok=true", "user=a=b c", "version=7", "serial=0", "--time", "55", "--pid", "9"));
        request = play_request(r.daemon);
        assert_int_equal(request->emit->n_samples, 1);
        sample = request->emit->samples[0];
        assert_string_equal(sample->event, "external:deploy");
        assert_int_equal(sample->time, 55);
        assert_int_equal(sample->pid, 9);
        assert_int_equal(sample->tid, 9);
        assert_int_equal(sample->n_values, 5);
        assert_int_equal(sample->values[3]->number, 7);
        assert_int_equal(sample->values[0]->text.len, 5);
        assert_memory_equal(sample->values[0]->text.data, "a=b c", 5);
        assert_true(sample->values[1]->signed_number == -31);
        assert_int_equal(sample->values[2]->number, 1);
        play_request_free(request);
        reply.taken = 1;
        yes.id = 3;
        yes.body_case = PERFD__V1__RESPONSE__BODY_EMITTED;
        yes.emitted = &reply;
        play_response(r.daemon, &yes);
        run_end(&r);
        assert_ran(&r, PERFCTL_OK, "external:deploy\t0\n", "");
}

/* Now is that of the streams' clock. */
static void test_emit_now(void **state) {
        Perfd__V1__Response yes = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__StatusReply status = PERFD__V1__STATUS_REPLY__INIT;
        Perfd__V1__EmitReply reply = PERFD__V1__EMIT_REPLY__INIT;
        Perfd__V1__Request *request;
        struct timespec ts;
        uint64_t before;
        Ran r;

        emit_start(&r, WORDS("emit", "external:deploy", "code=0", "ok=0", "user=", "version=0", "serial=0", "--json"));
        clock_gettime(CLOCK_REALTIME, &ts);
        before = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
        request = play_request(r.daemon);
        assert_int_equal(request->body_case, PERFD__V1__REQUEST__BODY_STATUS);
        play_request_free(request);
        status.clock = (char *)"realtime";
        yes.id = 3;
        yes.body_case = PERFD__V1__RESPONSE__BODY_DAEMON;
        yes.daemon = &status;
        play_response(r.daemon, &yes);
        request = play_request(r.daemon);
        clock_gettime(CLOCK_REALTIME, &ts);
        assert_in_range(request->emit->samples[0]->time, before,
                        (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec);
        play_request_free(request);
        reply.taken = reply.late = 1;
        yes.id = 4;
        yes.body_case = PERFD__V1__RESPONSE__BODY_EMITTED;
        yes.emitted = &reply;
        play_response(r.daemon, &yes);
        run_end(&r);
        assert_ran(&r, PERFCTL_OK, "{\"taken\":1,\"late\":1,\"lost\":0}\n", "");
}

/* A sample that is not taken: lost, which is a failure, or of an event that is disabled, which is none. */
static void test_emit_not_taken(void **state) {
        static const char lost[] = "perfctl: emit: the sample is lost: perfd has more samples to deliver than it has room for; it is "
                                   "in the ledger as batch_pool\n";
        Perfd__V1__Response yes = PERFD__V1__RESPONSE__INIT;
        Perfd__V1__EmitReply reply = PERFD__V1__EMIT_REPLY__INIT;

        yes.id = 3;
        yes.body_case = PERFD__V1__RESPONSE__BODY_EMITTED;
        yes.emitted = &reply;
        for (unsigned i = 0; i < 4; i++) {
                bool json = i & 1;
                Ran r;

                reply.lost = i / 2;
                emit_start(&r, json ? WORDS("emit", "external:deploy", "code=0", "ok=0", "user=", "version=0",
                                            "serial=0", "--time=5", "--json")
                                    : WORDS("emit", "external:deploy", "code=0", "ok=0", "user=", "version=0",
                                            "serial=0", "--time=5"));
                play_request_free(play_request(r.daemon));
                play_response(r.daemon, &yes);
                run_end(&r);
                assert_ran(&r, PERFCTL_FAILED,
                           !json ? "" : reply.lost ? "{\"taken\":0,\"late\":0,\"lost\":1}\n" : "{\"taken\":0,\"late\":0,\"lost\":0}\n",
                           reply.lost ? lost : "perfctl: emit: not accepted: external:deploy is disabled, `perfctl enable external:deploy` "
                                               "enables it\n");
        }
}

static void test_emit_mistakes(void **state) {
        static const struct {
                const char *words[8];
                int code;
                const char *message;
        } cases[] = {
                { { "emit", "external:deploy", "cod=1" },
                  PERFCTL_USAGE,
                  "external:deploy has no field 'cod', did you mean 'code'?" },
                { { "emit", "external:deploy", "code=1x", "ok=1", "user=a" },
                  PERFCTL_USAGE,
                  "'code=1x' is not a value of type s32: expected a whole number such as 31 or 0x1f, from -2147483648 "
                  "to 2147483647" },
                { { "emit", "external:deploy", "code=0x1g", "ok=1", "user=a" },
                  PERFCTL_USAGE,
                  "'code=0x1g' is not a value of type s32: expected a whole number such as 31 or 0x1f, from -2147483648 "
                  "to 2147483647" },
                { { "emit", "external:deploy", "code=2147483648", "ok=1", "user=a" },
                  PERFCTL_USAGE,
                  "'code=2147483648' is not a value of type s32: expected a whole number such as 31 or 0x1f, from -2147483648 "
                  "to 2147483647" },
                { { "emit", "external:deploy", "code=1", "version=-1", "ok=1", "user=a" },
                  PERFCTL_USAGE,
                  "'version=-1' is not a value of type u32: expected a whole number such as 31 or 0x1f, from 0 to 4294967295" },
                { { "emit", "external:deploy", "serial=18446744073709551616", "ok=1", "user=a" },
                  PERFCTL_USAGE,
                  "'serial=18446744073709551616' is not a value of type u64: expected a whole number such as 31 or 0x1f, from 0 to "
                  "18446744073709551615" },
                { { "emit", "external:deploy", "code=1", "ok=yes", "user=a" },
                  PERFCTL_USAGE,
                  "'ok=yes' is not a value of type bool: expected true, false, 1 or 0" },
                { { "emit", "external:deploy", "code" }, PERFCTL_USAGE, "'code' has no value: write code=VALUE" },
                { { "emit", "external:deploy", "code=1", "code=2" }, PERFCTL_USAGE, "'code' was already given" },
                { { "emit", "external:deploy", "code=1", "user=a" },
                  PERFCTL_USAGE,
                  "the field ok has no value: a sample has all of external:deploy's 5 fields" },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                char message[256];
                Ran r;

                (void)snprintf(message, sizeof(message), "perfctl: emit: %s\n", cases[i].message);
                emit_start(&r, cases[i].words);
                assert_null(play_request(r.daemon)); /* nothing is sent */
                run_end(&r);
                assert_ran(&r, cases[i].code, "", message);
        }
}

/* Of an event that is not listed perfd is asked: it is not there, or may not be emitted by who asks. */
static void test_emit_unknown(void **state) {
        static const struct {
                const char *name, *reason, *message;
        } rows[] = {
                { "external:restart", "unknown-event", "no event is called 'external:restart': `perfctl add external:NAME --field ...` adds one" },
                { "external:restart", "not-granted", "perfd says why" },
                { "external:deplo", "not-granted", "perfd says why" },
                { "external:deplo", "unknown-event", "no event is called 'external:deplo': did you mean 'external:deploy'?" },
                { "dpeloy", "unknown-event", "no event is called 'dpeloy': did you mean 'external:deploy'?" },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                Perfd__V1__Response no = PERFD__V1__RESPONSE__INIT;
                Perfd__V1__Request *q;
                char message[256];
                Ran r;

                no.id = 3;
                no.status = PERFD__V1__STATUS__STATUS_DENIED;
                no.reason = (char *)rows[i].reason;
                no.message = (char *)"perfd says why";
                (void)snprintf(message, sizeof(message), "perfctl: emit: %s\n", rows[i].message);
                emit_start(&r, WORDS("emit", rows[i].name, "code=1"));
                q = play_request(r.daemon);
                assert_non_null(q);
                assert_string_equal(q->emit->samples[0]->event, rows[i].name);
                assert_int_equal(q->emit->samples[0]->n_values, 0);
                play_request_free(q);
                play_response(r.daemon, &no);
                run_end(&r);
                assert_ran(&r, PERFCTL_FAILED, "", message);
        }
}

/* What only the daemon finds has the status of what perfctl finds itself. */
static void test_emit_refused(void **state) {
        static const char message[] = "field user: the sample is longer than 30720 bytes";
        static const struct {
                const char *reason;
                int code;
        } rows[] = { { "bad-value", PERFCTL_USAGE }, { "bad-time", PERFCTL_FAILED } };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                Perfd__V1__Response no = PERFD__V1__RESPONSE__INIT;
                Ran r;

                no.id = 3;
                no.status = PERFD__V1__STATUS__STATUS_INVALID;
                no.reason = (char *)rows[i].reason;
                no.message = (char *)message;
                emit_start(&r, WORDS("emit", "external:deploy", "code=0", "ok=0", "version=4294967295",
                                     "serial=18446744073709551615", "user=a", "--time=5"));
                play_request_free(play_request(r.daemon));
                play_response(r.daemon, &no);
                run_end(&r);
                assert_ran(&r, rows[i].code, "", "perfctl: emit: field user: the sample is longer than 30720 bytes\n");
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_emit),           cmocka_unit_test(test_emit_now),
                cmocka_unit_test(test_emit_not_taken), cmocka_unit_test(test_emit_mistakes),
                cmocka_unit_test(test_emit_refused),     cmocka_unit_test(test_emit_unknown),
        };

        return cmocka_run_group_tests(tests, open_listener, close_listener);
}
