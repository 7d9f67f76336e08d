/* How many texts a request may have, and what they may hold: every text field of every request is filled with what it may not hold, one at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/text/text.h"
#include "daemon/base/cleanup.h"
#include "daemon/control/control.h"

/* A message in which exactly the text field number `*left` is `text`; it counts down to it. NULL: there are not so many. */
static ProtobufCMessage *message_with(const ProtobufCMessageDescriptor *d, unsigned *left, const char *text,
                                      const ProtobufCFieldDescriptor **ret_field) {
        ProtobufCMessage *m = calloc(1, d->sizeof_message);

        protobuf_c_message_init(d, m);
        for (unsigned i = 0; i < d->n_fields; i++) {
                const ProtobufCFieldDescriptor *f = &d->fields[i];
                bool is_list = f->label == PROTOBUF_C_LABEL_REPEATED;
                void *value = NULL, *at = (char *)m + f->offset;

                if (f->type == PROTOBUF_C_TYPE_STRING && (*left)-- == 0) {
                        value = strdup(text);
                        *ret_field = f;
                } else if (f->type == PROTOBUF_C_TYPE_MESSAGE)
                        value = message_with(f->descriptor, left, text, ret_field);
                if (!value)
                        continue;
                if (is_list) {
                        void **items = calloc(1, sizeof(*items));

                        items[0] = value;
                        *(void ***)at = items;
                        *(size_t *)((char *)m + f->quantifier_offset) = 1;
                } else {
                        *(void **)at = value;
                        if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
                                *(uint32_t *)((char *)m + f->quantifier_offset) = f->id;
                }
                return m;
        }
        protobuf_c_message_free_unpacked(m, NULL);
        return NULL;
}

static bool is_word_of(const char *name, const char *words) {
        const char *at = strstr(words, name);

        return at && (at == words || at[-1] == ' ') && (at[strlen(name)] == ' ' || !at[strlen(name)]);
}

/* How many there are. */
static unsigned check_all(const char *text, bool is_right, bool is_right_folded) {
        unsigned n = 0;

        for (;; n++) {
                const ProtobufCFieldDescriptor *field = NULL;
                unsigned left = n;
                ProtobufCMessage *m = message_with(&perfd__v1__request__descriptor, &left, text, &field);
                Perfd__V1__Request *request = (Perfd__V1__Request *)m;
                Explanation e = EXPLANATION_NULL;
                int r;

                if (!m)
                        return n;
                r = request_check_texts(request, &e);
                if (request->body_case == PERFD__V1__REQUEST__BODY_EMIT || is_word_of(field->name, "yaml"))
                        assert_int_equal(r, 0); /* others look at them */
                else
                        assert_int_equal(r, (is_word_of(field->name, "where filter args") ? is_right_folded : is_right)
                                                    ? 0
                                                    : REFUSED_INVALID);
                if (r != 0) {
                        assert_string_equal(e.reason, "bad-text");
                        assert_memory_equal(e.text, field->name, strlen(field->name));
                        assert_null(strpbrk(e.text, "\n\x1b"));
                        assert_true(e.position > 0);
                }
                protobuf_c_message_free_unpacked(m, NULL);
        }
}

static void test_every_text(void **state) {
        _cleanup_free_ char *long_text = malloc(TEXT_MAX + 2);
        unsigned n = check_all("sched:sched_switch", true, true);

        memset(long_text, 'a', TEXT_MAX + 1);
        long_text[TEXT_MAX + 1] = '\0';
        assert_true(n > 25);
        assert_int_equal(check_all("", true, true), n);
        assert_int_equal(check_all("caf\xc3\xa9", true, true), n);
        assert_int_equal(check_all("a\nb", false, true), n);
        assert_int_equal(check_all("a\tb\r", false, true), n);
        assert_int_equal(check_all("a\x1b[2J", false, false), n);
        assert_int_equal(check_all("\x7f", false, false), n);
        assert_int_equal(check_all("\xc2\x9b", false, false), n);
        assert_int_equal(check_all("\xff", false, false), n);
        assert_int_equal(check_all("a\xe2\x80\xae" "b", false, false), n);
        assert_int_equal(check_all("\xe2\x81\xa9", false, false), n);
        assert_int_equal(check_all("\xe2\x80\xa8", false, false), n);
        assert_int_equal(check_all("sched\xe2\x80\x8b", false, false), n); /* of no width */
        assert_int_equal(check_all("sched\xc2\xad", false, false), n);
        assert_int_equal(check_all(long_text, false, true), n); /* others say how long filters and predicates may be */
}

static void test_position(void **state) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Perfd__V1__SetFilterRequest set = PERFD__V1__SET_FILTER_REQUEST__INIT;
        Explanation e;

        request.body_case = PERFD__V1__REQUEST__BODY_SET_FILTER;
        request.set_filter = &set;
        set.name = (char *)"a";
        set.filter = (char *)"pid == 1\x1b";
        assert_int_equal(request_check_texts(&request, &e), REFUSED_INVALID);
        assert_string_equal(e.text, "filter: found 'pid == 1\\x1b', which contains a control character");
        assert_int_equal(e.position, 9);
}

static uint8_t *packed(const Perfd__V1__Request *q, size_t *ret_n) {
        uint8_t *bytes = malloc(perfd__v1__request__get_packed_size(q) + 1);

        *ret_n = perfd__v1__request__pack(q, bytes);
        return bytes;
}

static void check_size(const Perfd__V1__Request *q, int expected) {
        size_t n;
        _cleanup_free_ uint8_t *bytes = packed(q, &n);
        Explanation e = EXPLANATION_NULL;
        uint64_t id;

        assert_int_equal(request_check_size(bytes, n, true, &id, &e), expected);
        if (expected == 0)
                return;
        assert_int_equal(id, 77);
        assert_string_equal(e.reason, "too-many-values");
}

/* A message in a list of a message is counted as it is unpacked: each. */
static void test_size(void **state) {
        Perfd__V1__Request q = PERFD__V1__REQUEST__INIT;
        Perfd__V1__SubscribeRequest subscribe = PERFD__V1__SUBSCRIBE_REQUEST__INIT;
        Perfd__V1__AddRequest add = PERFD__V1__ADD_REQUEST__INIT;
        Perfd__V1__EmitRequest emit = PERFD__V1__EMIT_REQUEST__INIT;
        Perfd__V1__EventSpec spec = PERFD__V1__EVENT_SPEC__INIT;
        Perfd__V1__AttrSetting attr = PERFD__V1__ATTR_SETTING__INIT;
        Perfd__V1__ExternalSample sample = PERFD__V1__EXTERNAL_SAMPLE__INIT;
        _cleanup_free_ char **texts = calloc(REQUEST_VALUES_MAX, sizeof(*texts));
        _cleanup_free_ void **items = calloc(REQUEST_EMIT_VALUES_MAX, sizeof(*items));
        Perfd__V1__EventSpec *specs[] = { &spec };

        q.id = 77;
        q.body_case = PERFD__V1__REQUEST__BODY_SUBSCRIBE;
        q.subscribe = &subscribe;
        for (size_t i = 0; i < REQUEST_VALUES_MAX; i++)
                texts[i] = (char *)"x";
        subscribe.events = texts;
        subscribe.n_events = REQUEST_VALUES_MAX - 1; /* and subscribe itself */
        check_size(&q, 0);
        subscribe.n_events++;
        check_size(&q, REFUSED_EXHAUSTED);

        q.body_case = PERFD__V1__REQUEST__BODY_ADD;
        q.add = &add;
        add.events = specs;
        add.n_events = 1;
        for (size_t i = 0; i < REQUEST_VALUES_MAX; i++)
                items[i] = &attr;
        spec.attr = (Perfd__V1__AttrSetting **)items;
        spec.n_attr = REQUEST_VALUES_MAX - 2;
        check_size(&q, 0);
        spec.n_attr++;
        check_size(&q, REFUSED_EXHAUSTED);

        q.body_case = PERFD__V1__REQUEST__BODY_EMIT;
        q.emit = &emit;
        for (size_t i = 0; i < REQUEST_EMIT_VALUES_MAX; i++)
                items[i] = &sample;
        emit.samples = (Perfd__V1__ExternalSample **)items;
        emit.n_samples = REQUEST_EMIT_VALUES_MAX - 1;
        check_size(&q, 0);
        emit.n_samples++;
        check_size(&q, REFUSED_EXHAUSTED);

}

/* protobuf-c keeps what it does not know, and looks at each number of a field, of which the last one is taken. */
static void test_size_of_fields(void **state) {
        static const struct {
                uint8_t field[3];
                size_t size, most;
                const char *text;
        } cases[] = {
                { { 0xa0, 0x06, 1 }, 3, REQUEST_UNKNOWN_MAX, "the request has more than 1000 fields that perfd does not know: it "
                        "is for a newer version, or is not a request" }, /* field 100 */
                { { 0x08, 77 }, 2, REQUEST_NUMBERS_MAX, "the request has more than 262144 numbers that are not packed: split it "
                        "into several requests" }, /* Request.id */
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const size_t size = cases[i].size, n = size * (cases[i].most + 1);
                _cleanup_free_ uint8_t *bytes = malloc(2 + n);
                Explanation e = EXPLANATION_NULL;
                uint64_t id;

                memcpy(bytes, (const uint8_t[]){ 0x08, 77 }, 2);
                for (size_t k = 0; k <= cases[i].most; k++)
                        memcpy(bytes + 2 + size * k, cases[i].field, size);
                assert_int_equal(request_check_size(bytes + 2, n - size, true, &id, &e), 0);
                assert_int_equal(request_check_size(bytes, 2 + n, true, &id, &e), REFUSED_EXHAUSTED);
                assert_int_equal(id, 77);
                assert_string_equal(e.reason, "too-many-values");
                assert_string_equal(e.text, cases[i].text);
        }
}

/* What may not emit may not have what it takes to emit either. */
static void test_size_of_emit(void **state) {
        uint8_t bytes[3 + 3 * (REQUEST_UNKNOWN_MAX + 1)] = { 0x80 | (PERFD__V1__REQUEST__BODY_EMIT << 3 & 0x7f) | 2,
                                                              PERFD__V1__REQUEST__BODY_EMIT >> 4, 0 }; /* an empty EmitRequest */
        Explanation e = EXPLANATION_NULL;
        uint64_t id;

        for (size_t i = 0; i <= REQUEST_UNKNOWN_MAX; i++)
                memcpy(bytes + 3 + 3 * i, (const uint8_t[]){ 0xa0, 0x06, 1 }, 3);
        assert_int_equal(request_check_size(bytes, sizeof(bytes), true, &id, &e), 0);
        assert_int_equal(request_check_size(bytes, sizeof(bytes), false, &id, &e), REFUSED_EXHAUSTED);
}

/* Unpacked, a text ends there, and what is behind it would be looked at by nobody. */
static void test_nul(void **state) {
        Perfd__V1__Request q = PERFD__V1__REQUEST__INIT;
        Perfd__V1__ValidateRequest validate = PERFD__V1__VALIDATE_REQUEST__INIT;
        _cleanup_free_ uint8_t *bytes = NULL;
        Explanation e = EXPLANATION_NULL;
        uint64_t id;
        size_t n;

        q.id = 77;
        q.body_case = PERFD__V1__REQUEST__BODY_VALIDATE;
        q.validate = &validate;
        validate.yaml = (char *)"version: 1\nQzzz: [";
        bytes = packed(&q, &n);
        assert_int_equal(request_check_size(bytes, n, true, &id, &e), 0);
        *(uint8_t *)memchr(bytes, 'Q', n) = '\0';
        assert_int_equal(request_check_size(bytes, n, true, &id, &e), REFUSED_INVALID);
        assert_int_equal(id, 77);
        assert_string_equal(e.reason, "bad-text");
        assert_string_equal(e.text, "yaml: contains a NUL character, which would end the text");
        assert_int_equal(e.position, 12);
}

/* What is no protobuf is left to protobuf-c, and nothing is read behind its end. */
static void test_size_of_anything(void **state) {
        const size_t n = REQUEST_VALUES_MAX + 1000;
        uint64_t dice = 1, id;
        Explanation e = EXPLANATION_NULL;

        for (int round = 0; round < 200; round++) {
                _cleanup_free_ uint8_t *bytes = malloc(n);

                for (size_t i = 0; i < n; i++) {
                        dice = dice * 6364136223846793005 + 1442695040888963407;
                        bytes[i] = round % 2 ? (uint8_t)(dice >> 56) : (uint8_t[]){ 0x0a, 0x22, 0x80, 0xff, 0, 1, 2, 0x82 }[dice >> 61];
                }
                (void)request_check_size(bytes, n - (size_t)round, true, &id, &e);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_text), cmocka_unit_test(test_position), cmocka_unit_test(test_size),
                                            cmocka_unit_test(test_size_of_fields), cmocka_unit_test(test_size_of_emit),
                                            cmocka_unit_test(test_nul),
                                            cmocka_unit_test(test_size_of_anything) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
