/*
 * Any bytes as what a NATS server answers to a message: it is stored, or there is a text of one line why not. And as the address of a
 * server, of which nothing secret is in a message.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/relay/publish/nats-answer.h"
#include "client/relay/publish/server-url.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void check_answer(const uint8_t *bytes, size_t length) {
        char *copy = malloc(length > 0 ? length : 1), text[NATS_TEXT_SIZE] = "";

        assert(copy);
        if (length > 0)
                memcpy(copy, bytes, length); /* of its own length, so that a read behind it is seen */
        if (!nats_answer_read(copy, length, "perfd", text))
                assert(text[0] && strlen(text) < NATS_TEXT_SIZE && !strpbrk(text, "\n\r\x1b"));
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
        check_url(bytes, length);
        return 0;
}
