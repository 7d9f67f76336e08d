/* What any program at the address of a NATS server can answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
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
        ConsumerAnswer c;
        StreamAnswer a;

        for (size_t i = 0; i < N(answers); i++) {
                assert_non_null(read_stream(answers[i], &a));
                assert_non_null(consumer_answer_read(answers[i], strlen(answers[i]), &c));
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

static const char *read_consumer(const char *text, ConsumerAnswer *ret) {
        return consumer_answer_read(text, strlen(text), ret);
}

static void test_consumer(void **state) {
        static const char *const wrong[] = {
                "{\"stream\":\"perfd\",\"seq\":7}", "{\"stream_name\":\"perfd\",\"name\":null}", "{\"stream_name\":\"perfd\",\"name\":\"\"}",
                "{\"stream_name\":\"perfd\",\"name\":\"a.b\"}", "{\"stream_name\":\"perfd\",\"name\":\"a b\"}", "{\"name\":\"x\"}",
                "{\"stream_name\":\"perfd\",\"name\":\"a\\u0000\"}",
        };
        char longest[NATS_NAME_SIZE + 64];
        ConsumerAnswer a;

        assert_null(read_consumer("{\"stream_name\":\"perfd\",\"name\":\"x\",\"config\":{},\"delivered\":{\"consumer_seq\":7,\"stream_seq\":9},"
                                  "\"num_pending\":3}", &a));
        assert_true(!a.is_error && a.delivered == 7 && a.pending == 3);
        assert_string_equal(a.name, "x");
        assert_null(read_consumer("{\"error\":{\"err_code\":10014,\"description\":\"consumer not found\"}}", &a));
        assert_true(a.is_error && a.code == 10014);
        assert_string_equal(a.description, "consumer not found");
        for (size_t i = 0; i < N(wrong); i++)
                assert_non_null(read_consumer(wrong[i], &a));
        for (int n = NATS_NAME_SIZE - 1; n <= NATS_NAME_SIZE; n++) {
                (void)snprintf(longest, sizeof(longest), "{\"stream_name\":\"perfd\",\"name\":\"%0*d\"}", n, 0);
                assert_int_equal(read_consumer(longest, &a) == NULL, n < NATS_NAME_SIZE);
        }
}

static void test_delivery(void **state) {
        static const char *const wrong[] = {
                "", "x", "$JS.ACK.", "$JS.ACK.s.c.1.2.3.4", "$JS.ACK.s.c.1.2.3.4.5.6", "$JS.ACK.s..1.2.3.4.5", "$JS.ACK.s.c.1.0.3.4.5", "$JS.ACK.s.c.1.2.0.4.5",
                "$JS.ACK.s.c.1.-2.3.4.5", "$JS.ACK.s.c.1.2x.3.4.5", "$JS.ACK.s.c.1.99999999999999999999.3.4.5", "$JS.ACK.d.h.s.c.1.2.3.4.",
                "$JS.ACK.d.h.s.c.1.2.3.4.5.r.x.y.z", "$JS.FC.s.c.1.2.3.4.5",
        };
        static const char *const right[] = { "$JS.ACK.s.c.1.2.3.4.5", "$JS.ACK.d.h.s.c.1.2.3.4.5", "$JS.ACK.d.h.s.c.1.2.3.4.5.random" };
        Delivery d;

        assert_false(delivery_read(NULL, &d));
        for (size_t i = 0; i < N(wrong); i++)
                assert_false(delivery_read(wrong[i], &d));
        for (size_t i = 0; i < N(right); i++) {
                assert_true(delivery_read(right[i], &d));
                assert_string_equal(d.consumer, "c");
                assert_true(d.sequence == 2 && d.consumer_sequence == 3 && d.stored == 4 && d.pending == 5);
        }
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
                cmocka_unit_test(test_consumer), cmocka_unit_test(test_delivery),
                cmocka_unit_test(test_message),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
