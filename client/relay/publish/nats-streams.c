#include "client/relay/publish/nats-streams.h"

#include <stdio.h>
#include <string.h>

#include "client/relay/publish/nats-connect.h"
#include "config/text/words.h"
#include "daemon/base/clock.h"

#define ANSWER_WITHIN_MSEC 2000
#define DUPLICATES_WINDOW (600 * NSEC_PER_SEC)
#define DESCRIPTORS_BYTES ((int64_t)256 << 20)
#define STATUS_BYTES ((int64_t)64 << 20)
#define STATUS_MESSAGES 4 /* of each boot of a host */

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
static bool look_at(const jsStreamConfig *c, NatsLimits *l, int64_t *limit, char text[static NATS_TEXT_SIZE]) {
        l->discards_new = l->discards_new || c->Discard == js_DiscardNew;
        if (c->MaxMsgSize > 0 && c->MaxMsgSize < *limit)
                *limit = c->MaxMsgSize;
        if (!c->NoAck && !c->Sealed)
                return true;
        (void)snprintf(text, NATS_TEXT_SIZE, "stream %s %s: change that, or name another one in publish.stream", QUOTE(c->Name),
                       c->Sealed ? "is sealed and takes no messages" : "acknowledges nothing (no_ack), so that what is stored cannot be known");
        return false;
}

static bool make_stream(jsCtx *js, jsStreamConfig *config, NatsLimits *l, int64_t *limit, char text[static NATS_TEXT_SIZE]) {
        jsStreamInfo *info = NULL;
        jsErrCode code = 0;
        natsStatus s = js_GetStreamInfo(&info, js, config->Name, NULL, &code);
        bool is_fine;

        if (s == NATS_NOT_FOUND) {
                code = 0;
                s = js_AddStream(&info, js, config, NULL, &code);
        }
        is_fine = s == NATS_OK ? look_at(info->Config, l, limit, text) : fail(s, code, config->Name, text);
        jsStreamInfo_Destroy(info);
        return is_fine;
}

static bool make_messages(jsCtx *js, const PublishConfig *p, NatsLimits *l, char text[static NATS_TEXT_SIZE]) {
        jsStreamConfig config;

        (void)jsStreamConfig_Init(&config); /* fails only for NULL */
        config.Name = p->stream;
        config.Subjects = (const char *[]){ "perfd.*.*" };
        config.SubjectsLen = 1;
        config.MaxBytes = (int64_t)p->max_bytes;
        config.MaxAge = (int64_t)p->max_age;
        config.Duplicates = (int64_t)(p->max_age < DUPLICATES_WINDOW ? p->max_age : DUPLICATES_WINDOW);
        return make_stream(js, &config, l, &l->messages, text);
}

static bool make_descriptors(jsCtx *js, const PublishConfig *p, NatsLimits *l, char text[static NATS_TEXT_SIZE]) {
        jsStreamConfig config;
        char name[96];

        (void)snprintf(name, sizeof(name), "%s-descriptors", p->stream);
        (void)jsStreamConfig_Init(&config);
        config.Name = name;
        config.Subjects = (const char *[]){ "perfd-descriptors.>" };
        config.SubjectsLen = 1;
        config.MaxMsgsPerSubject = 1;
        config.MaxBytes = DESCRIPTORS_BYTES;
        return make_stream(js, &config, l, &l->descriptors, text);
}

/* One of its own: the limit for each subject would drop samples in theirs. */
static bool make_status(jsCtx *js, const PublishConfig *p, NatsLimits *l, char text[static NATS_TEXT_SIZE]) {
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
        return make_stream(js, &config, l, &l->statuses, text);
}

bool nats_streams_prepare(natsConnection *connection, const PublishConfig *p, NatsLimits *l, char text[static NATS_TEXT_SIZE]) {
        int64_t most = natsConnection_GetMaxPayload(connection); /* of the server */
        jsOptions options;
        jsCtx *js = NULL;
        natsStatus s;
        bool is_fine;

        *l = (NatsLimits){ .messages = most, .descriptors = most, .statuses = most };
        (void)jsOptions_Init(&options);
        options.Wait = ANSWER_WITHIN_MSEC;
        s = natsConnection_JetStream(&js, connection, &options);
        is_fine = s == NATS_OK ? make_messages(js, p, l, text) && make_descriptors(js, p, l, text) && make_status(js, p, l, text)
                               : fail(s, 0, p->stream, text);
        jsCtx_Destroy(js);
        return is_fine;
}
