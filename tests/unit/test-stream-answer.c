/* What any program at the address of a NATS server can answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/nats/stream-answer.h"

#define N(array) (sizeof(array) / sizeof(array[0]))

/* Of a buffer that ends where the answer does, for tools that see what is read behind it. */
static const char *read_stream(const char *text, StreamAnswer *ret) {
        size_t n = strlen(text);
        char *bytes = malloc(n > 0 ? n : 1);
        const char *no;

        assert_non_null(bytes);
        memcpy(bytes, text, n);
        no = stream_answer_read(bytes, n, "perfd", ret);
        free(bytes);
        return no;
}

static void test_stream(void **state) {
        StreamAnswer a;

        assert_null(read_stream("{\"type\":\"x\",\"config\":{\"name\":\"perfd\",\"subjects\":[\"perfd.*.*\",\"}\"],"
                                "\"discard\":\"old\",\"max_msg_size\":-1,"
                                "\"no_ack\":false},\"state\":{\"messages\":3,\"first_seq\":18,\"last_seq\":20}}", &a));
        assert_false(a.is_error || a.discards_new || a.is_unacknowledged || a.is_sealed);
        assert_true(a.longest_message == 0 && a.messages == 3 && a.first == 18 && a.last == 20);
        assert_null(read_stream(" {\n\t\"config\" : { \"sealed\" : true , \"no_ack\": true, \"discard\": \"new\", "
                                "\"max_msg_size\": 6000, \"name\" : \"perfd\" } } ", &a));
        assert_true(a.discards_new && a.is_unacknowledged && a.is_sealed && a.longest_message == 6000 && a.messages == 0);
}

static void test_error(void **state) {
        StreamAnswer a;

        assert_null(read_stream("{\"error\":{\"code\":404,\"err_code\":10059,\"description\":\"stream not found\"}}", &a));
        assert_true(a.is_error && a.code == STREAM_NOT_FOUND);
        assert_string_equal(a.description, "stream not found");
        assert_null(read_stream("{\"error\":{\"description\":\"\x1b[31mno\\u0000pe\\\"\"}}", &a));
        assert_true(a.is_error && a.code == 0);
        assert_string_equal(a.description, "?[31mno\\u0000pe\\\"");
}

static void test_nonsense(void **state) {
        static const char *const answers[] = {
                "", " ", "{", "{}", "[]", "null", "7", "\"", "\"\\", "{\"", "{\"config", "{\"config\"", "{\"config\":", "{\"config\":{", "{\"config\":}",
                "{\"config\":null}", "{\"config\":{}}", "{\"config\":7}", "{\"config\":\"\"}", "{\"config\":[]}", "{\"config\":{\"name\":null,\"subjects\":null}}",
                "{\"config\":{\"name\":5}}", "{\"config\":{\"name\":\"perf\"}}", "{\"config\":{\"name\":\"perfd2\"}}", "{\"config\":{\"name\":\"perfd\"}",
                "{\"config\":{\"name\":\"perfd\"", "{\"error\":{}}", "{\"error\":null}", "{\"error\":\"x\"}", "{\"error\":[", "{\"error\":{\"err_code\":-1}}",
                "{\"error\":{\"err_code\":99999999999999999999}}", "{]", "{\"a\":1,,}", "{1:2}",
        };
        StreamAnswer a;

        for (size_t i = 0; i < N(answers); i++) {
                assert_non_null(read_stream(answers[i], &a));
                assert_non_null(consumer_answer_check(answers[i], strlen(answers[i])));
        }
        assert_non_null(stream_answer_read(NULL, 0, "perfd", &a));
}

/* Deep, and long. */
static void test_much(void **state) {
        size_t n = STREAM_ANSWER_MAX + 1;
        char *bytes = malloc(n);
        StreamAnswer a;

        assert_non_null(bytes);
        memset(bytes, '[', n);
        memcpy(bytes, "{\"config\":", 10);
        assert_non_null(stream_answer_read(bytes, n - 1, "perfd", &a));
        memset(bytes, ' ', n);
        memcpy(bytes, "{\"config\":{\"name\":\"perfd\"}", 26);
        bytes[n - 2] = '}';
        assert_null(stream_answer_read(bytes, n - 1, "perfd", &a));
        assert_non_null(stream_answer_read(bytes, n, "perfd", &a));
        free(bytes);
}

static const char *check_consumer(const char *text) {
        return consumer_answer_check(text, strlen(text));
}

static void test_consumer(void **state) {
        assert_null(check_consumer("{\"stream_name\":\"perfd\",\"name\":\"x\",\"config\":{\"deliver_subject\":\"_INBOX.1\"}}"));
        assert_null(check_consumer("{\"error\":{\"err_code\":10014}}"));
        assert_non_null(check_consumer("{\"stream\":\"perfd\",\"seq\":7}"));
        assert_non_null(check_consumer("{\"stream_name\":\"perfd\",\"name\":\"x\",\"config\":null}"));
        assert_non_null(check_consumer("{\"stream_name\":\"perfd\",\"name\":null,\"config\":{\"deliver_subject\":\"_INBOX.1\"}}"));
        assert_non_null(check_consumer("{\"stream_name\":\"perfd\",\"name\":\"x\",\"config\":{\"deliver_subject\":\"\"}}"));
}

static void test_message(void **state) {
        static const char *const wrong[] = { "{}", "{\"message\":null}", "{\"message\":5}", "{\"message\":{}}", "{\"message\":{\"subject\":7}}" };
        static const char right[] = "{\"message\":{\"subject\":\"perfd-descriptors.1.1\",\"seq\":1,\"data\":\"\"}}";

        assert_null(message_answer_check(right, strlen(right)));
        for (size_t i = 0; i < N(wrong); i++)
                assert_non_null(message_answer_check(wrong[i], strlen(wrong[i])));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_stream), cmocka_unit_test(test_error), cmocka_unit_test(test_nonsense), cmocka_unit_test(test_much),
                cmocka_unit_test(test_consumer), cmocka_unit_test(test_message),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
