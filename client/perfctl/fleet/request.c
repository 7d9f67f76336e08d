/*
 * Questions to JetStream, whose answers are read by client/nats/: libnats 3.4 ends the program where one has no name or no configuration.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/nats/stream-answer.h"
#include "client/perfctl/fleet/nats.h"
#include "client/perfctl/base/signals.h"

#define ANSWER_MS 5000

int fleet_no_jetstream(const FleetConnection *c) {
        return perfctl_fail(c->p, PERFCTL_UNREACHABLE, "%s has no JetStream, at least not for this user: `jetstream {}` in "
                            "the configuration of nats-server turns it on, or its option -js", c->url);
}

int fleet_request(const FleetConnection *c, const char *subject, const char *body, const char *what, natsMsg **ret) {
        natsStatus status = natsConnection_RequestString(ret, c->connection, subject, body, ANSWER_MS);

        if (status == NATS_NO_RESPONDERS)
                return fleet_no_jetstream(c);
        return status == NATS_OK ? 0 : fleet_fail(c, what, status);
}

int fleet_refuse(const FleetConnection *c, const char *what, const char *why) {
        return perfctl_fail(c->p, PERFCTL_UNREACHABLE, "%s: %s: is this a NATS server with JetStream?", what, why);
}

int fleet_check_stream(FleetConnection *c, const char *stream, StreamAnswer *ret) {
        natsMsg *answer = NULL;
        char subject[160];
        const char *no;
        int r;

        (void)snprintf(subject, sizeof(subject), "$JS.API.STREAM.INFO.%s", stream);
        r = fleet_request(c, subject, "", "JetStream", &answer);
        if (r != 0)
                return r;
        no = stream_answer_read(natsMsg_GetData(answer), (size_t)natsMsg_GetDataLength(answer), stream, ret);
        natsMsg_Destroy(answer);
        if (no)
                return fleet_refuse(c, stream, no);
        if (ret->is_error && ret->code == STREAM_NOT_FOUND)
                return FLEET_E_NONE;
        return ret->is_error ? perfctl_fail(c->p, PERFCTL_UNREACHABLE, "JetStream: %s", ret->description) : 0;
}

int fleet_check_message(FleetConnection *c, const char *stream, const char *of) {
        char subject[160], body[256];
        natsMsg *answer = NULL;
        const char *no;
        int r;

        (void)snprintf(subject, sizeof(subject), "$JS.API.STREAM.MSG.GET.%s", stream);
        (void)snprintf(body, sizeof(body), "{\"last_by_subj\":\"%s\"}", of);
        r = fleet_request(c, subject, body, of, &answer);
        if (r != 0)
                return r;
        no = message_answer_check(natsMsg_GetData(answer), (size_t)natsMsg_GetDataLength(answer));
        natsMsg_Destroy(answer);
        return no ? fleet_refuse(c, of, no) : 0;
}

int fleet_wait(int timeout) {
        struct pollfd end = { .fd = signals_fd(), .events = POLLIN };

        (void)poll(&end, 1, timeout);
        return FLEET_E_NONE;
}

const char *fleet_header(natsMsg *m, const char *name) {
        const char *value;

        return natsMsgHeader_Get(m, name, &value) == NATS_OK ? value : NULL;
}

void fleet_unsubscribe(natsSubscription **subscription) {
        if (*subscription)
                (void)natsSubscription_Unsubscribe(*subscription);
        natsSubscription_Destroy(*subscription);
        *subscription = NULL;
}
