/*
 * The server pushes what there is, says how much it has sent when it has nothing to send, and waits where this side is slower (idle
 * heartbeats and flow control of JetStream). The numbers of a consumer's messages have no holes; where one is missing a new consumer
 * begins behind what was given last.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/perfctl/base/daemon-clock.h"
#include "client/perfctl/fleet/ordered.h"

#define NSEC_PER_MSEC UINT64_C(1000000)
#define NSEC_PER_SEC UINT64_C(1000000000)
#define HEARTBEAT (5 * NSEC_PER_SEC)
#define SILENCE (3 * HEARTBEAT)          /* the consumer is gone, or the server stands still */
#define FORGOTTEN_AFTER (60 * NSEC_PER_SEC) /* by the server, when nobody listens */
#define AGAIN_AFTER (NSEC_PER_SEC / 2)
#define ANSWER_MS 5000
#define ANSWER_AGAIN_MS 1000             /* of what is asked beside reading, so that signals are not left for long */
#define ANSWER_ASK_MS 500
#define FLOW_CONTROL "$JS.FC."

struct FleetOrdered {
        FleetConnection *connection;
        const char *stream, *subject;
        FleetPlace place;      /* of the next message */
        natsSubscription *subscription; /* NULL: of none, another is to be made */
        char name[NATS_NAME_SIZE];
        uint64_t delivered;    /* messages of this consumer that have come */
        uint64_t heard, asked; /* CLOCK_MONOTONIC, ns: something of it, and when it, or another, was asked for */
        bool has_said;         /* that another cannot be made */
};

/* ---- making it ---------------------------------------------------------------------------------------------------- */

void fleet_place_write(const FleetPlace *place, char to[static FLEET_PLACE_SIZE]) {
        time_t seconds = (time_t)(place->since / NSEC_PER_SEC);
        char date[40];
        struct tm utc;

        if (place->sequence > 0) {
                (void)snprintf(to, FLEET_PLACE_SIZE, "\"deliver_policy\":\"by_start_sequence\",\"opt_start_seq\":%" PRIu64, place->sequence);
                return;
        }
        (void)strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &utc));
        (void)snprintf(to, FLEET_PLACE_SIZE, "\"deliver_policy\":\"by_start_time\",\"opt_start_time\":\"%s.%09" PRIu64 "Z\"", date, place->since % NSEC_PER_SEC);
}

/* What the server answers to who wants one that pushes to `inbox`. */
static natsStatus request(const FleetOrdered *o, const char *inbox, int timeout, natsMsg **ret) {
        char subject[320], place[FLEET_PLACE_SIZE], body[1200];

        fleet_place_write(&o->place, place);
        (void)snprintf(subject, sizeof(subject), "$JS.API.CONSUMER.CREATE.%s", o->stream);
        (void)snprintf(body, sizeof(body), "{\"stream_name\":\"%s\",\"config\":{\"deliver_subject\":\"%s\",%s,\"ack_policy\":\"none\","
                       "\"replay_policy\":\"instant\",\"max_deliver\":1,\"flow_control\":true,\"idle_heartbeat\":%" PRIu64
                       ",\"inactive_threshold\":%" PRIu64 ",\"mem_storage\":true,\"num_replicas\":1,\"filter_subject\":\"%s\"}}",
                       o->stream, inbox, place, HEARTBEAT, FORGOTTEN_AFTER, o->subject);
        return natsConnection_RequestString(ret, o->connection->connection, subject, body, timeout);
}

/* Listens before it asks. NATS_OK: there is an answer. */
static natsStatus make(FleetOrdered *o, int timeout, natsMsg **ret) {
        natsInbox *inbox = NULL;
        natsStatus status = natsInbox_Create(&inbox);

        fleet_unsubscribe(&o->subscription);
        o->delivered = 0;
        o->heard = o->asked = clock_read(CLOCK_MONOTONIC);
        if (status == NATS_OK)
                status = natsConnection_SubscribeSync(&o->subscription, o->connection->connection, inbox);
        if (status == NATS_OK)
                status = request(o, inbox, timeout, ret);
        natsInbox_Destroy(inbox);
        return status;
}

/* NULL; or why it is no answer, which ends the reader. */
static const char *read_answer(natsMsg *answer, ConsumerAnswer *ret) {
        const char *no = consumer_answer_read(natsMsg_GetData(answer), (size_t)natsMsg_GetDataLength(answer), ret);

        natsMsg_Destroy(answer);
        return no;
}

int fleet_ordered_open(FleetConnection *c, const char *stream, const char *subject, FleetPlace place, FleetOrdered **ret) {
        FleetOrdered *o = must_have(calloc(1, sizeof(*o)));
        ConsumerAnswer a = { .is_error = false };
        natsMsg *answer = NULL;
        natsStatus status;
        const char *no;
        int r = 0;

        *o = (FleetOrdered){ .connection = c, .stream = stream, .subject = subject, .place = place };
        status = make(o, ANSWER_MS, &answer);
        no = status == NATS_OK ? read_answer(answer, &a) : NULL;
        if (status == NATS_NO_RESPONDERS)
                r = fleet_no_jetstream(c);
        else if (status != NATS_OK)
                r = fleet_fail(c, subject, status);
        else if (no)
                r = fleet_refuse(c, subject, no);
        else if (a.is_error)
                r = perfctl_fail(c->p, PERFCTL_UNREACHABLE, "%s: JetStream: %s", subject, a.description);
        if (r != 0) {
                fleet_ordered_close(o);
                return r;
        }
        memcpy(o->name, a.name, sizeof(o->name));
        *ret = o;
        return 0;
}

void fleet_ordered_close(FleetOrdered *o) {
        if (!o)
                return;
        fleet_unsubscribe(&o->subscription);
        free(o);
}

/* ---- making another one ------------------------------------------------------------------------------------------- */

void fleet_ordered_lose(FleetOrdered *o) {
        fleet_unsubscribe(&o->subscription);
}

static int say_again(FleetOrdered *o, const char *why) {
        if (!o->has_said)
                (void)perfctl_fail(o->connection->p, 0, "%s: %s: trying again", o->subject, why);
        o->has_said = true;
        return FLEET_E_NONE;
}

/* A stream that has not come as far is another one, of the same name: it is read from its beginning. */
static int look_at_stream(FleetOrdered *o) {
        StreamAnswer stream;
        natsMsg *answer = NULL;
        char subject[160];
        const char *no;

        (void)snprintf(subject, sizeof(subject), "$JS.API.STREAM.INFO.%s", o->stream);
        if (natsConnection_RequestString(&answer, o->connection->connection, subject, "", ANSWER_AGAIN_MS) != NATS_OK)
                return FLEET_E_NONE; /* whether the server is there is said by fleet_connection_look() */
        no = stream_answer_read(natsMsg_GetData(answer), (size_t)natsMsg_GetDataLength(answer), o->stream, &stream);
        natsMsg_Destroy(answer);
        if (no)
                return fleet_refuse(o->connection, o->stream, no);
        if (stream.is_error)
                return say_again(o, stream.description);
        if (o->place.sequence > stream.last + 1)
                o->place.sequence = 1;
        return 0;
}

/* 0: there is another one; FLEET_E_NONE: not yet. */
static int make_again(FleetOrdered *o) {
        ConsumerAnswer a;
        natsMsg *answer = NULL;
        const char *no;
        int r;

        o->asked = clock_read(CLOCK_MONOTONIC);
        r = look_at_stream(o);
        if (r != 0)
                return r;
        if (make(o, ANSWER_AGAIN_MS, &answer) != NATS_OK) {
                fleet_unsubscribe(&o->subscription);
                return FLEET_E_NONE;
        }
        no = read_answer(answer, &a);
        if (no || a.is_error)
                fleet_unsubscribe(&o->subscription);
        if (no)
                return fleet_refuse(o->connection, o->subject, no);
        if (a.is_error)
                return say_again(o, a.description);
        memcpy(o->name, a.name, sizeof(o->name));
        o->has_said = false;
        return 0;
}

/* ---- reading ------------------------------------------------------------------------------------------------------ */

/* Who pushes waits for this, on a subject of its own choice. */
static void answer_flow_control(FleetOrdered *o, const char *subject) {
        if (subject && strncmp(subject, FLOW_CONTROL, strlen(FLOW_CONTROL)) == 0)
                (void)natsConnection_Publish(o->connection->connection, subject, NULL, 0); /* a connection that is lost is made again */
}

/* What is no message of the stream: a word of the server about its consumer. False: there is no such consumer any more, or it lacks some. */
static bool take_word_of_server(FleetOrdered *o, natsMsg *m) {
        const char *status = fleet_header(m, "Status"), *last = fleet_header(m, "Nats-Last-Consumer");

        if (!status || strcmp(status, "100") != 0)
                return false;
        answer_flow_control(o, natsMsg_GetReply(m));
        answer_flow_control(o, fleet_header(m, "Nats-Consumer-Stalled"));
        return !last || strtoull(last, NULL, 10) == o->delivered;
}

/* 0: it is the next one, and the caller's. FLEET_E_NONE: it is none, and gone. */
static int take(FleetOrdered *o, natsMsg *m, Delivery *about) {
        bool is_next = false;

        o->heard = clock_read(CLOCK_MONOTONIC);
        if (!delivery_read(natsMsg_GetReply(m), about)) {
                if (!take_word_of_server(o, m))
                        fleet_ordered_lose(o);
        } else if (strcmp(about->consumer, o->name) == 0) {
                is_next = about->consumer_sequence == o->delivered + 1 && about->sequence >= o->place.sequence && about->sequence < UINT64_MAX;
                if (!is_next)
                        fleet_ordered_lose(o);
        }
        if (!is_next) {
                natsMsg_Destroy(m);
                return FLEET_E_NONE;
        }
        o->delivered = about->consumer_sequence;
        o->place.sequence = about->sequence + 1;
        return 0;
}

static int step(FleetOrdered *o, int timeout, natsMsg **ret, Delivery *about) {
        natsMsg *m = NULL;
        natsStatus status = natsSubscription_NextMsg(&m, o->subscription, timeout);

        if (status == NATS_OK) {
                int r = take(o, m, about);

                *ret = r == 0 ? m : NULL;
                return r;
        }
        if (status == NATS_SLOW_CONSUMER || (status == NATS_TIMEOUT && clock_read(CLOCK_MONOTONIC) > o->heard + SILENCE))
                fleet_ordered_lose(o);
        else if (status != NATS_TIMEOUT)
                return fleet_fail(o->connection, "the next message", status);
        return FLEET_E_NONE;
}

/* The time of a server that answers nonsense is this reader's, too. */
static int wait_to_make_again(FleetOrdered *o, uint64_t now, int timeout) {
        uint64_t again = o->asked + AGAIN_AFTER;
        int left = again > now ? (int)((again - now) / NSEC_PER_MSEC) + 1 : 0;
        int r = left == 0 ? make_again(o) : fleet_wait(left < timeout ? left : timeout);

        return r == 0 ? FLEET_E_NONE : r;
}

int fleet_ordered_next(FleetOrdered *o, int timeout, natsMsg **ret, Delivery *ret_about) {
        uint64_t now = clock_read(CLOCK_MONOTONIC), end = now + (uint64_t)timeout * NSEC_PER_MSEC;
        int r;

        do {
                int left = (int)((end - now) / NSEC_PER_MSEC);

                if (!o->subscription)
                        return wait_to_make_again(o, now, left);
                r = step(o, left, ret, ret_about);
                now = clock_read(CLOCK_MONOTONIC);
        } while (r == FLEET_E_NONE && now < end);
        return r;
}

/* What was to come can have expired meanwhile, or can be none of the subject. Of what it has sent, some can be on its way. */
bool fleet_ordered_is_through(FleetOrdered *o) {
        ConsumerAnswer a;
        natsMsg *answer = NULL;
        char subject[640];

        (void)snprintf(subject, sizeof(subject), "$JS.API.CONSUMER.INFO.%s.%s", o->stream, o->name);
        if (!o->subscription || natsConnection_RequestString(&answer, o->connection->connection, subject, "", ANSWER_ASK_MS) != NATS_OK)
                return false;
        return !read_answer(answer, &a) && !a.is_error && strcmp(a.name, o->name) == 0 && a.pending == 0 && a.delivered <= o->delivered;
}
