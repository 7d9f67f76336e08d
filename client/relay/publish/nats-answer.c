#include "client/relay/publish/nats-answer.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/text/words.h"

#define ANSWER_MAX 512 /* bytes that are looked at; real ones have about 100 */

/* err_code of nats-server, server/errors.json there; nats/status.h has the same numbers. */
enum {
        ACCOUNT_RESOURCES_EXCEEDED = 10002,
        INSUFFICIENT_RESOURCES = 10023,
        MEMORY_RESOURCES_EXCEEDED = 10028,
        NOT_ENABLED_FOR_ACCOUNT = 10039,
        STORAGE_RESOURCES_EXCEEDED = 10047,
        MESSAGE_EXCEEDS_MAXIMUM = 10054,
        STREAM_SUBJECT_OVERLAP = 10065,
        NOT_ENABLED = 10076,
        STORE_FAILED = 10077,
};

const char *nats_advice(long code) {
        switch (code) {
        case ACCOUNT_RESOURCES_EXCEEDED:
        case INSUFFICIENT_RESOURCES:
        case MEMORY_RESOURCES_EXCEEDED:
        case STORAGE_RESOURCES_EXCEEDED:
                return "JetStream has no room left: raise the limits of the account or of the server, or publish.max-bytes is too large for them";
        case NOT_ENABLED_FOR_ACCOUNT:
                return "the account of the relay has no JetStream: enable it for this account";
        case MESSAGE_EXCEEDS_MAXIMUM:
                return "raise max_msg_size of the stream to at least 600KB, or remove it";
        case STREAM_SUBJECT_OVERLAP:
                return "another stream has the subjects perfd.*.*, perfd.*.status.*.* or perfd-descriptors.>: name it in publish.stream, or take them from it";
        case NOT_ENABLED:
                return "the server runs without JetStream: add 'jetstream {}' to its configuration";
        case STORE_FAILED:
                return "the server cannot write the stream: its log says why, and the space of its disk may";
        default:
                return "";
        }
}

/* Behind "key" and its colon, white space aside; NULL: it is not there. */
static const char *find_value(const char *text, const char *key) {
        char quoted[32];

        (void)snprintf(quoted, sizeof(quoted), "\"%s\"", key);
        for (const char *at = text; (at = strstr(at, quoted));) {
                at += strlen(quoted);
                at += strspn(at, " ");
                if (*at == ':')
                        return at + 1 + strspn(at + 1, " ");
        }
        return NULL;
}

/* Names of streams that a relay makes have nothing that JSON would escape. */
static bool is_of_stream(const char *value, const char *stream) {
        size_t n = strlen(stream);

        return *value == '"' && strncmp(value + 1, stream, n) == 0 &&
               (value[n + 1] == '"' || strncmp(value + n + 1, "-descriptors\"", strlen("-descriptors\"")) == 0 ||
                strncmp(value + n + 1, "-status\"", strlen("-status\"")) == 0);
}

/* The text up to its quote, without the backslashes of those inside; or whatever is in its place. */
static void take_text(const char *value, char *to, size_t size) {
        const char *from = *value == '"' ? value + 1 : value;
        size_t n = 0;

        for (; *from && *from != '"' && n + 1 < size; from++) {
                from += from[0] == '\\' && from[1];
                to[n++] = *from;
        }
        to[n] = '\0';
}

/* All errors of storing have one code. */
static bool is_full(long code, const char *description) {
        return code == STORE_FAILED && strncmp(description, "maximum ", strlen("maximum ")) == 0;
}

static void explain_error(const char *text, char ret[static NATS_TEXT_SIZE]) {
        const char *number = find_value(text, "err_code"), *description = find_value(text, "description"), *advice;
        long code = number ? strtol(number, NULL, 10) : 0;
        char said[120] = "";

        if (description && *description == '"')
                take_text(description, said, sizeof(said));
        advice = is_full(code, said) ? "the stream is full and its policy is to discard what is new: raise its limits, purge it, or let it discard "
                                       "the oldest" : nats_advice(code);
        (void)snprintf(ret, NATS_TEXT_SIZE, "JetStream refuses a message, %s%s%s", QUOTE(said[0] ? said : text), *advice ? ": " : "", advice);
}

bool nats_answer_read(const char *bytes, size_t n, const char *stream, char text[static NATS_TEXT_SIZE]) {
        char answer[ANSWER_MAX + 1], name[80];
        const char *of, *sequence;

        n = n < ANSWER_MAX ? n : ANSWER_MAX;
        if (n > 0)
                memcpy(answer, bytes, n);
        answer[n] = '\0';
        of = find_value(answer, "stream");
        sequence = find_value(answer, "seq");
        if (find_value(answer, "error")) {
                explain_error(answer, text);
                return false;
        }
        if (!of || !sequence || !isdigit((unsigned char)*sequence)) {
                (void)snprintf(text, NATS_TEXT_SIZE, "what answers to a message is not JetStream: %s", QUOTE(answer));
                return false;
        }
        if (is_of_stream(of, stream))
                return true;
        take_text(of, name, sizeof(name));
        (void)snprintf(text, NATS_TEXT_SIZE, "messages are stored in the stream %s, and publish.stream is %s: take the subjects perfd.*.* from "
                       "one of them", QUOTE(name), QUOTE(stream));
        return false;
}
