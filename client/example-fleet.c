/* libperfd(3)'s example of fleets: the ledger of what relays have published to NATS. Build with: cc example-fleet.c -lperfd -lnats */
#include <inttypes.h>
#include <nats/nats.h>
#include <stdio.h>

#include "client/perfd.h"

static const char *get_header(void *message, const char *name) {
        const char *value;

        return natsMsgHeader_Get(message, name, &value) == NATS_OK ? value : NULL;
}

static perfd_fleet_message message_of(natsMsg *from) {
        perfd_fleet_message m = PERFD_FLEET_MESSAGE_INIT;

        m.subject = natsMsg_GetSubject(from);
        m.header = get_header;
        m.userdata = from;
        m.bytes = natsMsg_GetData(from);
        m.length = (size_t)natsMsg_GetDataLength(from);
        return m;
}

static int fail(const char *what, natsStatus status) {
        fprintf(stderr, "%s: %s\n", what, natsStatus_GetText(status));
        return -1;
}

/* A stream whose first messages are not there any more. */
static int describe(perfd_fleet *fleet, jsCtx *js) {
        const char *subject = perfd_fleet_needed(fleet);
        perfd_fleet_message message;
        natsMsg *m = NULL;
        natsStatus status = js_GetLastMsg(&m, js, "perfd-descriptors", subject, NULL, NULL);
        int r;

        if (status != NATS_OK && status != NATS_NOT_FOUND)
                return fail(subject, status);
        if (status == NATS_OK)
                message = message_of(m);
        r = perfd_fleet_describe(fleet, status == NATS_OK ? &message : NULL);
        natsMsg_Destroy(m);
        return r;
}

static int take(perfd_fleet *fleet, jsCtx *js, natsMsg *m) {
        perfd_fleet_message message = message_of(m);
        int r;

        while ((r = perfd_fleet_take(fleet, &message)) == PERFD_E_NEEDED)
                while ((r = describe(fleet, js)) != 0)
                        if (r != PERFD_E_NEEDED)
                                return r;
        return r;
}

/* Until what was the last message when it began. */
static int read_all(perfd_fleet *fleet, jsCtx *js, natsSubscription *subscription, uint64_t last) {
        uint64_t sequence = 0;
        int r = 0;

        while (r == 0 && sequence < last) {
                jsMsgMetaData *about = NULL;
                natsMsg *m = NULL;
                natsStatus status = natsSubscription_NextMsg(&m, subscription, 10000);

                if (status == NATS_OK)
                        status = natsMsg_GetMetaData(&about, m);
                if (status == NATS_OK) {
                        sequence = about->Sequence.Stream;
                        r = take(fleet, js, m);
                } else
                        r = fail("the next message", status);
                jsMsgMetaData_Destroy(about);
                natsMsg_Destroy(m);
        }
        return r;
}

static int read_stream(perfd_fleet *fleet, jsCtx *js) {
        natsSubscription *subscription = NULL;
        jsStreamInfo *stream = NULL;
        jsSubOptions options;
        natsStatus status = js_GetStreamInfo(&stream, js, "perfd", NULL, NULL);
        uint64_t last;
        int r;

        if (status != NATS_OK)
                return fail("the stream perfd", status);
        last = stream->State.Msgs > 0 ? stream->State.LastSeq : 0;
        jsStreamInfo_Destroy(stream);
        jsSubOptions_Init(&options);
        options.Ordered = true;
        options.Stream = "perfd";
        options.Config.DeliverPolicy = js_DeliverAll;
        status = js_SubscribeSync(&subscription, js, "perfd.*.*", NULL, &options, NULL);
        if (status != NATS_OK)
                return fail("perfd.*.*", status);
        r = read_all(fleet, js, subscription, last);
        natsSubscription_Unsubscribe(subscription); /* Destroy() alone can crash while messages come (libnats 3.4) */
        natsSubscription_Destroy(subscription);
        return r;
}

static void print(const perfd_fleet *fleet) {
        static const char *const states[] = { "open", "ended", "cut" };
        const perfd_fleet_stream *s;

        for (size_t i = 0; (s = perfd_fleet_get_stream(fleet, i)); i++) {
                printf("%s %s %s consumed %" PRIu64, s->host, s->route, states[s->state], s->consumed);
                for (size_t k = 0; k < s->n_lost; k++)
                        printf(" %s %" PRIu64, s->lost[k].reason, s->lost[k].count);
                if (s->has_matched)
                        printf(" matched %" PRIu64 "%s", s->matched, s->balanced ? "" : ", does not balance");
                printf("\n");
        }
}

int main(int argc, char **argv) {
        perfd_fleet_options options = PERFD_FLEET_OPTIONS_INIT;
        perfd_fleet_callbacks callbacks = PERFD_FLEET_CALLBACKS_INIT; /* none: items are only counted */
        natsConnection *connection = NULL;
        perfd_fleet *fleet = NULL;
        jsCtx *js = NULL;
        natsStatus status = natsConnection_ConnectTo(&connection, argc > 1 ? argv[1] : "nats://127.0.0.1:4222");
        int r = -1;

        options.from_oldest = true;
        options.missing = "expired"; /* an ordered consumer gets all that the server has */
        if (status == NATS_OK)
                status = natsConnection_JetStream(&js, connection, NULL);
        if (status != NATS_OK)
                fail("NATS", status);
        else if (perfd_fleet_new(&options, &callbacks, NULL, &fleet) == 0)
                r = read_stream(fleet, js);
        if (r == 0)
                print(fleet);
        perfd_fleet_free(fleet);
        jsCtx_Destroy(js);
        natsConnection_Destroy(connection);
        nats_Close();
        return r == 0 ? 0 : 1;
}
