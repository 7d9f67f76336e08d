/* What publishing to NATS does without NATS: addresses of servers, secrets, answers of JetStream, and the queue of what is not stored. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "client/relay/publish/message-queue.h"
#include "client/relay/publish/nats-answer.h"
#include "client/relay/publish/publish-access.h"
#include "client/relay/publish/secret-file.h"
#include "client/relay/publish/server-url.h"
#include "config/text/words.h"
#include "daemon/base/cleanup.h"

static void test_server_urls(void **state) {
        static const struct {
                const char *text, *address, *user, *password, *token;
                bool is_tls, is_loopback;
        } good[] = {
                { "nats://127.0.0.1", "nats://127.0.0.1:4222", "", "", "", false, true },
                { "tls://nats.example:1", "tls://nats.example:1", "", "", "", true, false },
                { "nats://[::1]:65535", "nats://[::1]:65535", "", "", "", false, true },
                { "nats://a:b@localhost", "nats://localhost:4222", "a", "b", "", false, true },
                { "tls://a%40b:%3a/@c@h", "tls://h:4222", "a@b", ":/@c", "", true, false },
                { "nats://token@[fe80::1]", "nats://[fe80::1]:4222", "", "", "token", false, false },
        };
        static const char *const bad[] = { "", "h", "http://h", "nats://", "nats://:1", "nats://h:", "nats://h:0", "nats://h:65536", "nats://h:1x",
                                           "nats://h/", "nats://h,i", "nats://[::1", "nats://[::1]x", "nats://[1.2.3.4]", "nats://a b",
                                           "nats://@h", "nats://a:@h", "nats://:b@h", "nats://a%4@h", "nats://a%00@h", "nats://a%22@h", "nats://a\\@h" };
        ServerUrl url;

        for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
                assert_null(server_url_parse(good[i].text, &url));
                assert_string_equal(url.address, good[i].address);
                assert_string_equal(url.user, good[i].user);
                assert_string_equal(url.password, good[i].password);
                assert_string_equal(url.token, good[i].token);
                assert_true(url.is_tls == good[i].is_tls && server_url_is_loopback(&url) == good[i].is_loopback);
                assert_true(url.has_user_info == (strchr(good[i].text, '@') != NULL));
                server_url_forget(&url);
                assert_true(url.user[0] == '\0' && url.password[0] == '\0' && url.token[0] == '\0');
        }
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_non_null(server_url_parse(bad[i], &url));
}

/* A message does not show who somebody is to another host. */
static void test_quotes(void **state) {
        assert_string_equal(QUOTE("nats://a:b@h:1"), "'nats://***@h:1'");
        assert_string_equal(QUOTE("nats://a@b:c/@h"), "'nats://***@h'");
        assert_string_equal(QUOTE("nats://h:1"), "'nats://h:1'");
        assert_string_equal(QUOTE("a@b"), "'a@b'");
        assert_string_equal(QUOTE("://@"), "'://***@'");
}

static void test_secrets(void **state) {
        static const char *const bad[] = { "", "\n", "a\nb", "a\n\n", "a\"b", "a\\b", "a\tb" };
        char to[SECRET_SIZE], text[SECRET_SIZE + 1];

        assert_null(secret_take_line("a b", 3, to));
        assert_string_equal(to, "a b");
        assert_null(secret_take_line("a\r\n", 3, to));
        assert_string_equal(to, "a");
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_non_null(secret_take_line(bad[i], strlen(bad[i]), to));
        assert_non_null(secret_take_line("a\0b", 3, to));
        memset(text, 'a', sizeof(text));
        assert_null(secret_take_line(text, SECRET_SIZE - 1, to));
        assert_non_null(secret_take_line(text, SECRET_SIZE, to));
        assert_non_null(secret_file_read("/nonexistent", to));
}

static void test_access(void **state) {
        PublishAccess a = { .servers = STRINGS_NULL }, b = { .servers = STRINGS_NULL };

        assert_int_equal(strings_add(&a.servers, "nats://h"), 0);
        a.user = strdup("u");
        a.digest[7] = 1;
        assert_int_equal(publish_access_copy(&a, &b), 0);
        assert_true(publish_access_equal(&a, &b));
        b.digest[7] = 2;
        assert_false(publish_access_equal(&a, &b));
        b.digest[7] = 1;
        b.token_file = strdup("t");
        assert_false(publish_access_equal(&a, &b));
        publish_access_deinit(&a);
        publish_access_deinit(&b);
}

static bool read_answer(const char *answer, char text[static NATS_TEXT_SIZE]) {
        return nats_answer_read(answer, strlen(answer), "perfd", text);
}

static void test_answers(void **state) {
        static const char *const stored[] = { "{\"stream\":\"perfd\",\"seq\":7}", "{\"stream\":\"perfd\", \"seq\":1,\"duplicate\": true}",
                                              "{\"type\":\"x\",\"stream\" : \"perfd-descriptors\",\"domain\":\"d\",\"seq\":12}" };
        static const char *const others[] = { "", "{}", "perfd", "{\"stream\":\"perfd\"}", "{\"stream\":\"perfd\",\"seq\":\"\"}", "{\"seq\":1}",
                                              "{\"stream\":\"perf\",\"seq\":1}", "{\"stream\":\"perfd2\",\"seq\":1}", "{\"stream\":perfd,\"seq\":1}",
                                              "{\"stream\":\"perfd\",\"seq\":1,\"error\":{}}", "\"error\":", "\"stream\":", "\"stream\":\"", "\"seq\"" };
        char text[NATS_TEXT_SIZE];

        for (size_t i = 0; i < ARRAY_SIZE(stored); i++)
                assert_true(read_answer(stored[i], text));
        for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
                text[0] = '\0';
                assert_false(read_answer(others[i], text));
                assert_true(text[0] != '\0' && !strpbrk(text, "\n\r\x1b"));
        }
        assert_false(read_answer("{\"error\":{\"code\":503,\"err_code\":10077,\"description\":\"maximum bytes exceeded\"},\"stream\":\"perfd\",\"seq\":0}", text));
        assert_string_equal(text, "JetStream refuses a message, 'maximum bytes exceeded': the stream is full and its policy is to discard what "
                                  "is new: raise its limits, purge it, or let it discard the oldest");
        assert_false(read_answer("{\"error\":{\"code\":503,\"err_code\":10077,\"description\":\"error opening msg block file [\\\"/s/1.blk\\\"]\"}}", text));
        assert_string_equal(text, "JetStream refuses a message, 'error opening msg block file [\"/s/1.blk\"]': the server cannot write the stream: "
                                  "its log says why, and the space of its disk may");
        assert_false(read_answer("{\"stream\":\"other\",\"seq\":1}", text));
        assert_non_null(strstr(text, "stored in the stream 'other', and publish.stream is 'perfd'"));
        assert_false(nats_answer_read(NULL, 0, "perfd", text));
}

static void push(MessageQueue *q, unsigned n) {
        while (n-- > 0) {
                Message *m = message_new((const uint8_t *)"abc", 3);

                assert_non_null(m);
                message_queue_push(q, m);
        }
}

/* The numbers of a list, which is freed: "1 3 ". */
static const char *numbers(Message *m, char to[static 64]) {
        to[0] = '\0';
        for (Message *next; m; m = next) {
                next = m->next;
                (void)snprintf(to + strlen(to), 64 - strlen(to), "%u ", (unsigned)m->number);
                message_free(m);
        }
        return to;
}

static void test_queue(void **state) {
        char text[64];
        MessageQueue q;

        message_queue_init(&q);
        push(&q, 4);
        assert_true(message_queue_send(&q)->number == 1 && message_queue_send(&q)->number == 2);
        assert_true(q.n_sent == 2 && q.sent == 2 * message_size(q.first));
        assert_true(message_queue_store(&q, 2) && !message_queue_store(&q, 2) && !message_queue_store(&q, 0) && !message_queue_store(&q, 5));
        assert_int_equal(q.n_sent, 1);
        assert_string_equal(numbers(message_queue_take_stored(&q), text), "2 ");
        message_queue_rewind(&q);
        assert_true(q.unsent == q.first && q.n_sent == 0 && q.sent == 0);
        assert_true(message_queue_store(&q, 1)); /* by the connection before */
        assert_true(q.unsent->number == 3 && q.n_sent == 0 && q.sent == 0);
        assert_true(message_queue_store(&q, 4)); /* the last one, and not sent yet */
        assert_true(message_queue_send(&q)->number == 3 && !q.unsent);
        push(&q, 1);
        assert_true(q.unsent->number == 5 && message_queue_store(&q, 5) && !q.unsent);
        push(&q, 1);
        assert_true(message_queue_send(&q)->number == 6 && q.n_sent == 2);
        assert_true(message_queue_store(&q, 3) && message_queue_store(&q, 6) && !q.first && q.n_sent == 0 && q.sent == 0);
        assert_string_equal(numbers(message_queue_take_stored(&q), text), "1 4 5 3 6 ");
        assert_null(message_queue_take_stored(&q));
        push(&q, 3);
        assert_true(message_queue_store(&q, 8));
        message_queue_deinit(&q);
        assert_true(!q.first && !q.stored && !q.unsent);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_server_urls), cmocka_unit_test(test_quotes),  cmocka_unit_test(test_secrets),
                cmocka_unit_test(test_access),      cmocka_unit_test(test_answers), cmocka_unit_test(test_queue),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
