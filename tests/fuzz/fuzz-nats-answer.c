/*
 * Any bytes as what a NATS server answers to a message: it is stored, or there is a text of one line why not. As what it says of streams
 * and consumers: what is taken of it can stand in subjects and on a terminal. And as the address of a server, of which nothing secret is
 * in a message.
 */
#include <assert.h>
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/nats/stream-answer.h"
#include "client/relay/publish/nats-answer.h"
#include "client/relay/publish/server-url.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* Of its own length, so that a read behind it is seen. */
static char *copy_of(const uint8_t *bytes, size_t length) {
        char *copy = malloc(length > 0 ? length : 1);

        assert(copy);
        if (length > 0)
                memcpy(copy, bytes, length);
        return copy;
}

static bool is_printable(const char *text) {
        while (isprint((unsigned char)*text))
                text++;
        return !*text;
}

static void check_answer(const uint8_t *bytes, size_t length) {
        char *copy = copy_of(bytes, length), text[NATS_TEXT_SIZE] = "";

        if (!nats_answer_read(copy, length, "perfd", text))
                assert(text[0] && strlen(text) < NATS_TEXT_SIZE && !strpbrk(text, "\n\r\x1b"));
        free(copy);
}

static void check_words_of_server(const uint8_t *bytes, size_t length) {
        char *copy = copy_of(bytes, length), *text = strndup((const char *)bytes, length);
        ConsumerAnswer consumer;
        StreamAnswer stream;
        Delivery delivery;

        assert(text);
        (void)stream_answer_read(copy, length, "perfd", &stream);
        assert(is_printable(stream.description));
        if (!consumer_answer_read(copy, length, &consumer) && !consumer.is_error)
                assert(consumer.name[0] && !strpbrk(consumer.name, ".*> \\"));
        assert(is_printable(consumer.description) && is_printable(consumer.name) && is_printable(consumer.filter));
        if (delivery_read(text, &delivery))
                assert(delivery.consumer[0] && !strchr(delivery.consumer, '.') && delivery.sequence > 0 && delivery.consumer_sequence > 0);
        free(text);
        free(copy);
}

static void check_url(const uint8_t *bytes, size_t length) {
        char *text = strndup((const char *)bytes, length);
        ServerUrl url;

        assert(text);
        if (!server_url_parse(text, &url)) {
                assert(url.host[0] && url.port > 0 && url.port < 65536 && strstr(url.address, url.host) && !strchr(url.address, '@'));
                assert(url.has_user_info == (url.token[0] || (url.user[0] && url.password[0])));
                assert(!secret_refuse(url.user) && !secret_refuse(url.password) && !secret_refuse(url.token));
        }
        free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        check_answer(bytes, length);
        check_words_of_server(bytes, length);
        check_url(bytes, length);
        return 0;
}
