#include "client/relay/publish/nats-streams.h"

#include <stdio.h>
#include <string.h>

#include "client/nats/stream-answer.h"
#include "client/relay/publish/nats-connect.h"
#include "config/text/words.h"
#include "daemon/base/clock.h"

#define ANSWER_WITHIN_MSEC 2000
#define DUPLICATES_WINDOW (600 * NSEC_PER_SEC)
#define DESCRIPTORS_BYTES ((int64_t)256 << 20)
#define STATUS_BYTES ((int64_t)64 << 20)
#define STATUS_MESSAGES 4 /* of each boot of a host */

typedef struct Ask {
        natsConnection *connection;
        jsCtx *js;
        const PublishConfig *config;
        NatsLimits *limits;
} Ask;

static bool fail(natsStatus s, jsErrCode code, const char *name, char text[static NATS_TEXT_SIZE]) {
        const char *advice = nats_advice(code);
        char what[120], reason[NATS_TEXT_SIZE];

        if (!*advice && s == NATS_TIMEOUT)
                advice = "may the user of the relay publish to $JS.API.STREAM.INFO.* and CREATE.*, and subscribe to _INBOX.>?";
        if (!*advice && s == NATS_NO_RESPONDERS)
                advice = nats_advice(JSNotEnabledErr);
        (void)snprintf(what, sizeof(what), "stream %s", QUOTE(name));
        nats_explain(s, what, reason);
        (void)snprintf(text, NATS_TEXT_SIZE, "%.*s%s%s", *advice ? 150 : NATS_TEXT_SIZE, reason, *advice ? ": " : "", advice);
        return false;
}

/* One that is there is left as it is: its limits are then another one's. */
static bool look_at(const StreamAnswer *a, const char *name, NatsLimits *l, int64_t *limit, char text[static NATS_TEXT_SIZE]) {
        l->discards_new = l->discards_new || a->discards_new;
        if (a->longest_message > 0 && a->longest_message < *limit)
                *limit = a->longest_message;
        if (!a->is_unacknowledged && !a->is_sealed)
                return true;
        (void)snprintf(text, NATS_TEXT_SIZE, "stream %s %s: change that, or name another one in publish.stream", QUOTE(name),
                       a->is_sealed ? "is sealed and takes no messages" : "acknowledges nothing (no_ack), so that what is stored cannot be known");
        return false;
}

/* Not js_GetStreamInfo() of libnats: of a short answer its members are NULL, and a long one it copies several times. */
static bool ask(natsConnection *connection, const char *name, StreamAnswer *ret, char text[static NATS_TEXT_SIZE]) {
        char subject[160];
        natsMsg *answer = NULL;
        const char *no;
        natsStatus s;

        (void)snprintf(subject, sizeof(subject), "$JS.API.STREAM.INFO.%s", name);
        s = natsConnection_RequestString(&answer, connection, subject, "", ANSWER_WITHIN_MSEC);
        if (s != NATS_OK)
                return fail(s, 0, name, text);
        no = stream_answer_read(natsMsg_GetData(answer), (size_t)natsMsg_GetDataLength(answer), name, ret);
        if (no)
                (void)snprintf(text, NATS_TEXT_SIZE, "stream %s: %s: is this a NATS server with JetStream?", QUOTE(name), no);
        natsMsg_Destroy(answer);
        return !no;
}

static bool refuse(const StreamAnswer *a, const char *name, char text[static NATS_TEXT_SIZE]) {
        const char *advice = nats_advice(a->code);

        (void)snprintf(text, NATS_TEXT_SIZE, "stream %s: %s%s%s", QUOTE(name), QUOTE(a->description), *advice ? ": " : "", advice);
        return false;
}

static bool make_stream(Ask *q, jsStreamConfig *config, int64_t *limit, char text[static NATS_TEXT_SIZE]) {
        StreamAnswer answer;
        jsErrCode code = 0;
        natsStatus s;

        if (!ask(q->connection, config->Name, &answer, text))
                return false;
        if (answer.is_error && answer.code == STREAM_NOT_FOUND) {
                s = js_AddStream(NULL, q->js, config, NULL, &code); /* NULL: what it answers, is asked for below */
                if (s != NATS_OK)
                        return fail(s, code, config->Name, text);
                if (!ask(q->connection, config->Name, &answer, text))
                        return false;
        }
        return answer.is_error ? refuse(&answer, config->Name, text) : look_at(&answer, config->Name, q->limits, limit, text);
}

static bool make_messages(Ask *q, char text[static NATS_TEXT_SIZE]) {
        const PublishConfig *p = q->config;
        jsStreamConfig config;

        (void)jsStreamConfig_Init(&config); /* fails only for NULL */
        config.Name = p->stream;
        config.Subjects = (const char *[]){ "perfd.*.*" };
        config.SubjectsLen = 1;
        config.MaxBytes = (int64_t)p->max_bytes;
        config.MaxAge = (int64_t)p->max_age;
        config.Duplicates = (int64_t)(p->max_age < DUPLICATES_WINDOW ? p->max_age : DUPLICATES_WINDOW);
        return make_stream(q, &config, &q->limits->messages, text);
}

static bool make_descriptors(Ask *q, char text[static NATS_TEXT_SIZE]) {
        const PublishConfig *p = q->config;
        jsStreamConfig config;
        char name[96];

        (void)snprintf(name, sizeof(name), "%s-descriptors", p->stream);
        (void)jsStreamConfig_Init(&config);
        config.Name = name;
        config.Subjects = (const char *[]){ "perfd-descriptors.>" };
        config.SubjectsLen = 1;
        config.MaxMsgsPerSubject = 1;
        config.MaxBytes = DESCRIPTORS_BYTES;
        return make_stream(q, &config, &q->limits->descriptors, text);
}

/* One of its own: the limit for each subject would drop samples in theirs. */
static bool make_status(Ask *q, char text[static NATS_TEXT_SIZE]) {
        const PublishConfig *p = q->config;
        jsStreamConfig config;
        char name[96];

        (void)snprintf(name, sizeof(name), "%s-status", p->stream);
        (void)jsStreamConfig_Init(&config);
        config.Name = name;
        config.Subjects = (const char *[]){ "perfd.*.status.*.*" };
        config.SubjectsLen = 1;
        config.MaxMsgsPerSubject = STATUS_MESSAGES;
        config.MaxBytes = STATUS_BYTES;
        config.MaxAge = (int64_t)p->max_age;
        return make_stream(q, &config, &q->limits->statuses, text);
}

bool nats_streams_prepare(natsConnection *connection, const PublishConfig *p, NatsLimits *l, char text[static NATS_TEXT_SIZE]) {
        int64_t most = natsConnection_GetMaxPayload(connection); /* of the server */
        Ask q = { .connection = connection, .config = p, .limits = l };
        jsOptions options;
        natsStatus s;
        bool is_fine;

        *l = (NatsLimits){ .messages = most, .descriptors = most, .statuses = most };
        (void)jsOptions_Init(&options);
        options.Wait = ANSWER_WITHIN_MSEC;
        s = natsConnection_JetStream(&q.js, connection, &options);
        is_fine = s == NATS_OK ? make_messages(&q, text) && make_descriptors(&q, text) && make_status(&q, text)
                               : fail(s, 0, p->stream, text);
        jsCtx_Destroy(q.js);
        return is_fine;
}
