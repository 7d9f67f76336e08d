#include "client/perfctl/fleet/durable.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/daemon-clock.h"

#define NSEC_PER_SEC UINT64_C(1000000000)
#define ASKED_MESSAGES 32                 /* at a time */
#define ASKED_FOR (5 * NSEC_PER_SEC)      /* so long a request waits at the server for messages */
#define ANSWER_LATE (2 * NSEC_PER_SEC)    /* when it has not said by then that it is over, it has got lost */
#define ANSWER_MS 1000
#define HELD_MAX 4096                     /* messages that are not acknowledged, until the server waits */
#define CONSUMER_NOT_FOUND 10014          /* err_code of nats-server, server/errors.json there */

struct FleetDurable {
        FleetConnection *connection;
        const char *stream, *name, *subject;
        natsSubscription *subscription;
        natsInbox *inbox;
        uint64_t wanted;      /* messages that the last request still waits for */
        uint64_t asked;       /* CLOCK_MONOTONIC, ns: when that was */
        uint64_t expected;    /* which of its own messages is next; 0: not known */
        uint64_t n_taken;
        char acknowledged[256]; /* the subject of the last acknowledgement; "": there was none */
};

/* ---- opening ------------------------------------------------------------------------------------------------------ */

/* 0, and what is said of the consumer; or an exit status after a message. */
static int ask(const FleetDurable *d, const char *verb, const char *body, ConsumerAnswer *ret) {
        natsMsg *answer = NULL;
        char subject[640];
        const char *no;
        int r;

        (void)snprintf(subject, sizeof(subject), "$JS.API.CONSUMER.%s.%s.%s", verb, d->stream, d->name);
        r = fleet_request(d->connection, subject, body, d->name, &answer);
        if (r != 0)
                return r;
        no = consumer_answer_read(natsMsg_GetData(answer), (size_t)natsMsg_GetDataLength(answer), ret);
        natsMsg_Destroy(answer);
        return no ? fleet_refuse(d->connection, d->name, no) : 0;
}

static int make(const FleetDurable *d, FleetPlace place, ConsumerAnswer *ret) {
        char text[FLEET_PLACE_SIZE], body[1200];

        fleet_place_write(&place, text);
        (void)snprintf(body, sizeof(body), "{\"stream_name\":\"%s\",\"config\":{\"durable_name\":\"%s\",%s,\"ack_policy\":\"all\","
                       "\"replay_policy\":\"instant\",\"max_ack_pending\":%d,\"filter_subject\":\"%s\"}}",
                       d->stream, d->name, text, HELD_MAX, d->subject);
        return ask(d, "DURABLE.CREATE", body, ret);
}

/* One that was made for other messages, or by another program, has another place in the stream than this reader means. */
static int check(const FleetDurable *d, const ConsumerAnswer *a) {
        const Perfctl *p = d->connection->p;

        if (a->is_error)
                return perfctl_fail(p, PERFCTL_UNREACHABLE, "%s: JetStream: %s", d->name, a->description);
        if (a->pushes || !a->acknowledges_all)
                return perfctl_fail(p, PERFCTL_FAILED, "--durable %s: the consumer of this name was not made by perfctl", d->name);
        if (strcmp(a->filter, d->subject) != 0)
                return perfctl_fail(p, PERFCTL_FAILED, "--durable %s reads %s, and this is %s: choose another name for it", d->name,
                                    a->filter[0] ? a->filter : "all subjects", d->subject);
        return 0;
}

static int listen(FleetDurable *d) {
        natsStatus status = natsInbox_Create(&d->inbox);

        if (status == NATS_OK)
                status = natsConnection_SubscribeSync(&d->subscription, d->connection->connection, d->inbox);
        return status == NATS_OK ? 0 : fleet_fail(d->connection, d->name, status);
}

int fleet_durable_open(FleetConnection *c, const char *stream, const char *name, const char *subject, FleetPlace place, FleetDurable **ret,
                       FleetResumed *ret_resumed) {
        FleetDurable *d = must_have(calloc(1, sizeof(*d)));
        ConsumerAnswer a;
        int r;

        *d = (FleetDurable){ .connection = c, .stream = stream, .name = name, .subject = subject };
        r = ask(d, "INFO", "", &a);
        ret_resumed->is_resumed = r == 0 && !a.is_error;
        if (r == 0 && a.is_error && a.code == CONSUMER_NOT_FOUND)
                r = make(d, place, &a);
        if (r == 0)
                r = check(d, &a);
        if (r == 0)
                r = listen(d);
        if (r != 0) {
                fleet_durable_close(d);
                return r;
        }
        ret_resumed->floor = a.floor;
        ret_resumed->delivered = a.last;
        d->expected = a.delivered + 1;
        *ret = d;
        return 0;
}

/*
 * The server takes note of an acknowledgement some time after it came, and says so only to who waits for it. The next reader of this name
 * may come before, and would be told that nothing was acknowledged.
 */
static void settle(const FleetDurable *d) {
        natsMsg *answer = NULL;
        natsStatus status;

        if (!d->acknowledged[0])
                return;
        status = natsConnection_RequestString(&answer, d->connection->connection, d->acknowledged, "+ACK", ANSWER_MS);
        natsMsg_Destroy(answer);
        if (status != NATS_OK)
                (void)perfctl_fail(d->connection->p, 0, "--durable %s: the server does not say that it has noted what was read (%s): its next "
                                   "reader may read some of it again", d->name, natsStatus_GetText(status));
}

void fleet_durable_close(FleetDurable *d) {
        if (!d)
                return;
        settle(d);
        fleet_unsubscribe(&d->subscription);
        natsInbox_Destroy(d->inbox);
        free(d);
}

/* ---- reading ------------------------------------------------------------------------------------------------------ */

void fleet_durable_lose(FleetDurable *d) {
        d->wanted = 0;
        d->expected = 0;
}

/* The server may be away: libnats connects again, and says in the end if it could not. */
static int ask_for_messages(FleetDurable *d) {
        char subject[640], body[80];
        natsStatus status;

        (void)snprintf(subject, sizeof(subject), "$JS.API.CONSUMER.MSG.NEXT.%s.%s", d->stream, d->name);
        (void)snprintf(body, sizeof(body), "{\"batch\":%d,\"expires\":%" PRIu64 "}", ASKED_MESSAGES, ASKED_FOR);
        status = natsConnection_PublishRequestString(d->connection->connection, subject, d->inbox, body);
        d->wanted = ASKED_MESSAGES;
        d->asked = clock_read(CLOCK_MONOTONIC);
        return status == NATS_OK ? 0 : fleet_fail(d->connection, "the next messages", status);
}

/* The numbers of a consumer's messages have no holes, unless another one asks for them, too. */
static void look_for_others(FleetDurable *d, uint64_t number) {
        if (d->expected > 0 && number > d->expected) {
                if (d->n_taken == 0)
                        (void)perfctl_fail(d->connection->p, 0, "--durable %s: messages were given to another reader of this consumer; what "
                                           "was in them is missing here", d->name);
                d->n_taken += number - d->expected;
        }
        d->expected = number + 1;
}

/* What the server says where it gives no message. Nothing is there, or it cannot say now, which it may soon. */
static bool may_pass(const char *status, const char *text) {
        static const char *const passing[] = { "Server Shutdown", "Leadership Change", "Exceeded MaxAckPending", "Exceeded MaxWaiting" };

        if (strcmp(status, "404") == 0 || strcmp(status, "408") == 0 || strcmp(status, "503") == 0)
                return true;
        for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
                if (strcasestr(text, passing[i]))
                        return true;
        return false;
}

/* FLEET_E_NONE; or an exit status after a message. */
static int take_word_of_server(FleetDurable *d, natsMsg *m, int timeout) {
        const char *status = fleet_header(m, "Status"), *text = fleet_header(m, "Description");
        char why[120];

        if (status && strcmp(status, "100") == 0)
                return FLEET_E_NONE;
        d->wanted = 0;
        if (!status)
                return fleet_refuse(d->connection, "the next message", "it does not say which one it is");
        if (!may_pass(status, text ? text : ""))
                return perfctl_fail(d->connection->p, PERFCTL_UNREACHABLE, "the next messages: JetStream: %s",
                                    stream_answer_text(text ? text : status, why, sizeof(why)));
        return strcmp(status, "408") == 0 ? FLEET_E_NONE : fleet_wait(timeout);
}

int fleet_durable_next(FleetDurable *d, int timeout, natsMsg **ret, Delivery *ret_about) {
        uint64_t now = clock_read(CLOCK_MONOTONIC);
        natsMsg *m = NULL;
        natsStatus status;
        int r = d->wanted == 0 || now > d->asked + ASKED_FOR + ANSWER_LATE ? ask_for_messages(d) : 0;

        if (r != 0)
                return r;
        status = natsSubscription_NextMsg(&m, d->subscription, timeout);
        if (status == NATS_TIMEOUT)
                return FLEET_E_NONE;
        if (status != NATS_OK)
                return fleet_fail(d->connection, "the next messages", status);
        if (!delivery_read(natsMsg_GetReply(m), ret_about)) {
                r = take_word_of_server(d, m, timeout);
                natsMsg_Destroy(m);
                return r;
        }
        d->wanted -= d->wanted > 0;
        look_for_others(d, ret_about->consumer_sequence);
        *ret = m;
        return 0;
}

size_t fleet_durable_waiting(FleetDurable *d) {
        int n = 0, n_bytes;

        return natsSubscription_GetPending(d->subscription, &n, &n_bytes) == NATS_OK && n > 0 ? (size_t)n : 0;
}

uint64_t fleet_durable_taken(const FleetDurable *d) {
        return d->n_taken;
}

void fleet_durable_acknowledge(FleetDurable *d, const char *reply) {
        natsStatus status = natsConnection_PublishString(d->connection->connection, reply, "+ACK");

        if (status == NATS_OK)
                (void)snprintf(d->acknowledged, sizeof(d->acknowledged), "%s", reply);
}
