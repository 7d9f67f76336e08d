/*
 * NATS JetStream, by an ordered consumer, which begins again by itself where messages got lost on the way; or by a durable one,
 * whose place in the stream the server keeps. The server gives what was not acknowledged again, but new messages before it: what a reader
 * that was killed had been given is therefore read first, by an ordered consumer, and counts as acknowledged with what follows it.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/fleet-ordered.h"
#include "client/perfctl/signals.h"

#define FETCH_MESSAGES 32
#define HELD_MAX 4096                      /* messages that are not acknowledged, until the server waits */

struct FleetSource {
        FleetConnection *connection;
        FleetRead read;
        char subject[160], stream[96];
        FleetOrdered *ordered; /* this one is read first */
        natsSubscription *durable;
        uint64_t ordered_end; /* with a durable one: what comes behind this sequence number is its own */
        natsMsg *message;     /* the last one that was given */
        natsMsg *found;       /* descriptors, the same */
        natsMsgList fetched;  /* of the durable consumer */
        int n_given;          /* of these */
        natsMsg *unacknowledged; /* the last one in the order of the stream; those before it are too */
        uint64_t unacknowledged_sequence;
        size_t n_held;
        bool is_resumed, is_through;
        uint64_t n_dropped;
        uint64_t expected;    /* of the durable consumer: which one is next; 0: not known */
        uint64_t n_taken; /* of its messages another reader has got */
        uint64_t last, sequence; /* of JetStream: of what was stored when it was opened, and of the last one that was given */
};

bool fleet_is_built(void) {
        return true;
}

/* ---- opening ------------------------------------------------------------------------------------------------------ */

/* With a durable consumer it is never `from now`: that one has a place already. */
static FleetPlace place_of(const FleetRead *read, uint64_t last) {
        switch (read->begin) {
        case FLEET_FROM_OLDEST:
                return (FleetPlace){ .sequence = 1 };
        case FLEET_FROM_NOW:
                return (FleetPlace){ .sequence = last + 1 };
        case FLEET_FROM_TIME:
                break;
        }
        return (FleetPlace){ .since = read->since };
}

static jsDeliverPolicy policy_of(const FleetRead *read) {
        return read->begin == FLEET_FROM_OLDEST ? js_DeliverAll : read->begin == FLEET_FROM_NOW ? js_DeliverNew : js_DeliverByStartTime;
}

/* js_PullSubscribe() would remove what it makes at the end. */
static natsStatus durable_make(FleetSource *s, jsConsumerInfo **ret) {
        jsConsumerConfig config;
        natsStatus status = jsConsumerConfig_Init(&config);

        if (status != NATS_OK)
                return status;
        config.Durable = s->read.durable;
        config.AckPolicy = js_AckAll;
        config.DeliverPolicy = policy_of(&s->read);
        if (config.DeliverPolicy == js_DeliverByStartTime)
                config.OptStartTime = (int64_t)s->read.since;
        config.FilterSubject = s->subject;
        config.MaxAckPending = HELD_MAX;
        return js_AddConsumer(ret, s->connection->js, s->stream, &config, NULL, NULL);
}

/* One that was made for other messages, or by another program, has another place in the stream than this reader means. */
static int durable_check(const FleetSource *s, const jsConsumerConfig *c) {
        const Perfctl *p = s->connection->p;

        if (!c || c->DeliverSubject || c->AckPolicy != js_AckAll)
                return perfctl_fail(p, PERFCTL_FAILED, "--durable %s: the consumer of this name was not made by perfctl", s->read.durable);
        if (!c->FilterSubject || strcmp(c->FilterSubject, s->subject) != 0)
                return perfctl_fail(p, PERFCTL_FAILED, "--durable %s reads %s, and this is %s: choose another name for it", s->read.durable,
                                    c->FilterSubject ? c->FilterSubject : "all subjects", s->subject);
        return 0;
}

/* `first`: the oldest message that there is. */
static int durable_open(FleetSource *s, uint64_t first) {
        jsCtx *js = s->connection->js;
        jsConsumerInfo *info = NULL;
        uint64_t floor, delivered;
        jsSubOptions options;
        natsStatus status = js_GetConsumerInfo(&info, js, s->stream, s->read.durable, NULL, NULL);
        int r;

        s->is_resumed = status == NATS_OK;
        if (status == NATS_NOT_FOUND)
                status = durable_make(s, &info);
        if (status != NATS_OK)
                return fleet_fail(s->connection, s->read.durable, status);
        r = durable_check(s, info->Config);
        floor = info->AckFloor.Stream;
        delivered = info->Delivered.Stream;
        s->expected = info->Delivered.Consumer + 1;
        jsConsumerInfo_Destroy(info);
        if (r != 0)
                return r;
        if (s->is_resumed && floor > 0 && first > floor + 1)
                s->n_dropped = first - floor - 1;
        status = jsSubOptions_Init(&options);
        options.Stream = s->stream;
        options.Consumer = s->read.durable;
        options.ManualAck = true;
        if (status == NATS_OK)
                status = js_PullSubscribe(&s->durable, js, s->subject, s->read.durable, NULL, &options, NULL);
        if (status != NATS_OK)
                return fleet_fail(s->connection, s->read.durable, status);
        if (!s->is_resumed || delivered <= floor)
                return 0;
        s->ordered_end = delivered;
        return fleet_ordered_open(s->connection, s->stream, s->subject, (FleetPlace){ .sequence = floor + 1 }, &s->ordered);
}

static int open_stream(FleetSource *s) {
        const FleetRead *read = &s->read;
        StreamAnswer answer;
        int r = fleet_check_stream(s->connection, s->stream, &answer);

        if (r == FLEET_E_NONE && !read->is_status)
                return perfctl_fail(s->connection->p, PERFCTL_FAILED, "this server has no stream '%s': has a relay published to it? --stream "
                                    "names another one", s->stream);
        if (r != 0)
                return r;
        s->last = answer.last;
        s->is_through = read->begin == FLEET_FROM_NOW || answer.messages == 0;
        if (!read->durable)
                return fleet_ordered_open(s->connection, s->stream, s->subject, place_of(read, answer.last), &s->ordered);
        r = fleet_claim(s->connection, s->stream, read->durable);
        return r == 0 ? durable_open(s, answer.first) : r;
}

int fleet_source_open(FleetConnection *c, const FleetRead *read, FleetSource **ret) {
        FleetSource *s = must_have(calloc(1, sizeof(*s)));
        const char *host = read->host ? read->host : "*";
        int r;

        s->connection = c;
        s->read = *read;
        if (read->is_status)
                (void)snprintf(s->subject, sizeof(s->subject), "perfd.%s.status.*.*", host);
        else
                (void)snprintf(s->subject, sizeof(s->subject), "perfd.%s.%s", host, read->route ? read->route : "*");
        (void)snprintf(s->stream, sizeof(s->stream), "%s%s", read->stream, read->is_status ? "-status" : "");
        r = open_stream(s);
        if (r == 0) {
                fleet_source_ask(s);
                *ret = s;
        } else {
                fleet_source_close(s);
        }
        return r;
}

/* ---- reading ------------------------------------------------------------------------------------------------------ */

/* natsSubscription_Destroy() alone can crash while messages come (libnats 3.4). */
static void unsubscribe(natsSubscription **subscription) {
        if (*subscription)
                (void)natsSubscription_Unsubscribe(*subscription);
        natsSubscription_Destroy(*subscription);
        *subscription = NULL;
}

/* Until signals are looked at, for as long as nothing answers at once. */
int fleet_wait(int timeout) {
        struct pollfd end = { .fd = signals_fd(), .events = POLLIN };

        (void)poll(&end, 1, timeout);
        return FLEET_E_NONE;
}

/* A server that ends says so to whom it owes messages, and so does one of several that is not the consumer's any more. */
static bool may_pass(natsStatus status) {
        const char *text = status == NATS_ERR ? nats_GetLastError(NULL) : NULL;

        return status == NATS_NO_RESPONDERS || status == NATS_CONNECTION_DISCONNECTED || status == NATS_NO_SERVER ||
               (text && (strstr(text, "Server Shutdown") || strstr(text, "Leadership Change")));
}

/* The server may be away: libnats connects again, and says in the end if it could not. */
static int fetch(FleetSource *s, int timeout) {
        natsStatus status;

        if (s->n_given < s->fetched.Count)
                return 0;
        natsMsgList_Destroy(&s->fetched);
        s->fetched = (natsMsgList){ .Count = 0 };
        s->n_given = 0;
        status = natsSubscription_Fetch(&s->fetched, s->durable, FETCH_MESSAGES, timeout, NULL);
        if (status == NATS_OK && s->fetched.Count > 0)
                return 0;
        if (status == NATS_OK || status == NATS_TIMEOUT)
                return FLEET_E_NONE;
        if (may_pass(status))
                return fleet_wait(timeout);
        return fleet_fail(s->connection, "the next messages", status);
}

/* The numbers of a consumer's messages have no holes, unless another one asks for them, too. */
static void look_for_others(FleetSource *s, uint64_t number) {
        if (s->expected > 0 && number > s->expected) {
                if (s->n_taken == 0)
                        (void)perfctl_fail(s->connection->p, 0, "--durable %s: messages were given to another reader of this consumer; what "
                                           "was in them is missing here", s->read.durable);
                s->n_taken += number - s->expected;
        }
        s->expected = number + 1;
}

static int next_of_durable(FleetSource *s, int timeout, Delivery *about) {
        int r = fetch(s, timeout);

        if (r != 0)
                return r;
        s->message = s->fetched.Msgs[s->n_given];
        s->fetched.Msgs[s->n_given++] = NULL;
        if (!delivery_read(natsMsg_GetReply(s->message), about))
                return fleet_refuse(s->connection, "the next message", "it does not say which one it is");
        look_for_others(s, about->consumer_sequence);
        return 0;
}

/* The one that was given last is kept until it is acknowledged, if it can be. */
static void put_away(FleetSource *s) {
        if (s->message && s->durable && !s->ordered && s->sequence >= s->unacknowledged_sequence) {
                natsMsg_Destroy(s->unacknowledged);
                s->unacknowledged = s->message;
                s->unacknowledged_sequence = s->sequence;
        } else {
                natsMsg_Destroy(s->message);
        }
        s->message = NULL;
}

/* What was on its way is given again. */
static int go_on_after_loss(FleetSource *s) {
        s->expected = 0;
        if (s->ordered)
                fleet_ordered_lose(s->ordered);
        return s->durable ? fleet_claim_check(s->connection, s->stream, s->read.durable) : 0;
}

/* It is read, or not needed. */
static void end_ordered(FleetSource *s) {
        fleet_ordered_close(s->ordered);
        s->ordered = NULL;
}

int fleet_source_next(FleetSource *s, int timeout, FleetMessage *ret) {
        Delivery about = { .sequence = 0 };
        int r;

        put_away(s);
        r = fleet_connection_look(s->connection) ? go_on_after_loss(s) : 0;
        if (r == 0)
                r = s->ordered ? fleet_ordered_next(s->ordered, timeout, &s->message, &about) : next_of_durable(s, timeout, &about);
        if (r != 0)
                return r;
        s->sequence = about.sequence;
        ret->stored = about.stored;
        if (s->ordered && s->durable && s->sequence > s->ordered_end) { /* it comes again, by the durable consumer */
                natsMsg_Destroy(s->message);
                s->message = NULL;
                end_ordered(s);
                return FLEET_E_NONE;
        }
        s->n_held++;
        s->is_through = s->is_through || s->sequence >= s->last || about.pending == 0;
        return (s->read.is_status ? fleet_message_read_status : fleet_message_read)(s->message, ret) ? 0 : FLEET_E_ALIEN;
}

bool fleet_source_is_through(const FleetSource *s) {
        return s->is_through;
}

void fleet_source_ask(FleetSource *s) {
        if (!s->ordered || (s->is_through && !s->durable) || !fleet_ordered_is_through(s->ordered))
                return;
        s->is_through = true;
        if (s->durable)
                end_ordered(s);
}

/* ---- a durable consumer ------------------------------------------------------------------------------------------- */

bool fleet_source_is_resumed(const FleetSource *s) {
        return s->is_resumed;
}

uint64_t fleet_source_dropped(const FleetSource *s) {
        return s->n_dropped;
}

uint64_t fleet_source_taken(const FleetSource *s) {
        return s->n_taken;
}

size_t fleet_source_held(const FleetSource *s) {
        return s->durable ? s->n_held : 0;
}

size_t fleet_source_fetched(const FleetSource *s) {
        return (size_t)(s->fetched.Count - s->n_given);
}

/* One that does not arrive has no effect but that the server gives the messages again. */
void fleet_source_acknowledge(FleetSource *s) {
        put_away(s);
        if (s->unacknowledged)
                (void)natsMsg_Ack(s->unacknowledged, NULL);
        natsMsg_Destroy(s->unacknowledged);
        s->unacknowledged = NULL;
        s->n_held = 0;
}

/* ---- descriptors -------------------------------------------------------------------------------------------------- */

int fleet_source_find(FleetSource *s, const char *subject, perfd_fleet_message *ret) {
        char stream[96];
        natsStatus status;
        int r;

        natsMsg_Destroy(s->found);
        s->found = NULL;
        (void)snprintf(stream, sizeof(stream), "%s-descriptors", s->read.stream);
        r = fleet_check_message(s->connection, stream, subject);
        if (r != 0)
                return r;
        status = js_GetLastMsg(&s->found, s->connection->js, stream, subject, NULL, NULL);
        if (status == NATS_NOT_FOUND || (status == NATS_OK && !s->found)) /* the second one is another answer than before */
                return FLEET_E_NONE;
        if (status != NATS_OK)
                return fleet_fail(s->connection, subject, status);
        *ret = fleet_message_of(s->found);
        return 0;
}

void fleet_source_close(FleetSource *s) {
        if (!s)
                return;
        natsMsg_Destroy(s->message);
        natsMsg_Destroy(s->found);
        natsMsg_Destroy(s->unacknowledged);
        natsMsgList_Destroy(&s->fetched);
        end_ordered(s);
        unsubscribe(&s->durable);
        if (s->durable || s->read.durable) /* acknowledgements that are on their way */
                (void)natsConnection_FlushTimeout(s->connection->connection, 1000);
        free(s);
}
