/*
 * A look at what a server answers before libnats takes it: libnats 3.4 ends the program where an answer has no name or no configuration.
 * One that answers first as JetStream does, and otherwise later, is not found out by this.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/nats/stream-answer.h"
#include "client/perfctl/fleet-nats.h"

#define ANSWER_MS 5000

static int request(FleetConnection *c, const char *subject, const char *body, const char *what, natsMsg **ret) {
        natsStatus status = natsConnection_RequestString(ret, c->connection, subject, body, ANSWER_MS);

        if (status == NATS_NO_RESPONDERS)
                return perfctl_fail(c->p, PERFCTL_UNREACHABLE, "%s has no JetStream, at least not for this user: `jetstream {}` in "
                                    "the configuration of nats-server turns it on, or its option -js", c->url);
        return status == NATS_OK ? 0 : fleet_fail(c, what, status);
}

static int refuse(const FleetConnection *c, const char *what, const char *why) {
        return perfctl_fail(c->p, PERFCTL_UNREACHABLE, "%s: %s: is this a NATS server with JetStream?", what, why);
}

int fleet_check_stream(FleetConnection *c, const char *stream, StreamAnswer *ret) {
        natsMsg *answer = NULL;
        char subject[160];
        const char *no;
        int r;

        (void)snprintf(subject, sizeof(subject), "$JS.API.STREAM.INFO.%s", stream);
        r = request(c, subject, "", "JetStream", &answer);
        if (r != 0)
                return r;
        no = stream_answer_read(natsMsg_GetData(answer), (size_t)natsMsg_GetDataLength(answer), stream, ret);
        natsMsg_Destroy(answer);
        if (no)
                return refuse(c, stream, no);
        if (ret->is_error && ret->code == STREAM_NOT_FOUND)
                return FLEET_E_NONE;
        return ret->is_error ? perfctl_fail(c->p, PERFCTL_UNREACHABLE, "JetStream: %s", ret->description) : 0;
}

/* Of a consumer that the server removes after a second, because nobody listens to what it gives. */
int fleet_check_consumer(FleetConnection *c, const char *stream, const char *filter) {
        natsInbox *inbox = NULL;
        natsMsg *answer = NULL;
        char subject[320], body[800];
        const char *no;
        int r;

        if (natsInbox_Create(&inbox) != NATS_OK)
                must_have(NULL);
        (void)snprintf(subject, sizeof(subject), "$JS.API.CONSUMER.CREATE.%s", stream);
        (void)snprintf(body, sizeof(body), "{\"stream_name\":\"%s\",\"config\":{\"deliver_subject\":\"%s\",\"deliver_policy\":\"new\","
                       "\"ack_policy\":\"none\",\"replay_policy\":\"instant\",\"max_deliver\":1,\"inactive_threshold\":1000000000,"
                       "\"mem_storage\":true,\"num_replicas\":1,\"filter_subject\":\"%s\"}}", stream, (const char *)inbox, filter);
        natsInbox_Destroy(inbox);
        r = request(c, subject, body, filter, &answer);
        if (r != 0)
                return r;
        no = consumer_answer_check(natsMsg_GetData(answer), (size_t)natsMsg_GetDataLength(answer));
        natsMsg_Destroy(answer);
        return no ? refuse(c, filter, no) : 0;
}

int fleet_check_message(FleetConnection *c, const char *stream, const char *of) {
        char subject[160], body[256];
        natsMsg *answer = NULL;
        const char *no;
        int r;

        (void)snprintf(subject, sizeof(subject), "$JS.API.STREAM.MSG.GET.%s", stream);
        (void)snprintf(body, sizeof(body), "{\"last_by_subj\":\"%s\"}", of);
        r = request(c, subject, body, of, &answer);
        if (r != 0)
                return r;
        no = message_answer_check(natsMsg_GetData(answer), (size_t)natsMsg_GetDataLength(answer));
        natsMsg_Destroy(answer);
        return no ? refuse(c, of, no) : 0;
}
