/* What texts of requests may hold: every text field of every request is filled with what it may not hold, one at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/text.h"
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
        assert_string_equal(e.text, "filter: found 'pid == 1\\x1b', which has a control character in it");
        assert_int_equal(e.position, 9);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_text), cmocka_unit_test(test_position) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
