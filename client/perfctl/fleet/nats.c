/*
 * NATS JetStream, by an ordered consumer, which begins again by itself where messages got lost on the way; or by a durable one,
 * whose place in the stream the server keeps. The server gives what was not acknowledged again, but new messages before it: what a reader
 * that was killed had been given is therefore read first, by an ordered consumer, and counts as acknowledged with what follows it.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/fleet/durable.h"


struct FleetSource {
        FleetConnection *connection;
        FleetRead read;
        char subject[160], stream[96];
        FleetOrdered *ordered; /* this one is read first */
        FleetDurable *durable;
        uint64_t ordered_end; /* with a durable one: what comes behind this sequence number is its own */
        natsMsg *message;     /* the last one that was given */
        natsMsg *found;       /* descriptors, the same */
        natsMsg *unacknowledged; /* the last one in the order of the stream; those before it are too */
        uint64_t unacknowledged_sequence;
        size_t n_held;
        bool is_resumed, is_through;
        uint64_t n_dropped;
        uint64_t last, sequence; /* of JetStream: of what was stored when it was opened, and of the last one that was given */
};

bool fleet_is_built(void) {
        return true;
}

/* ---- opening ------------------------------------------------------------------------------------------------------ */

/* Where a reader begins that has not read before. */
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

/* What was given before, and not acknowledged, is read first. */
static int open_durable(FleetSource *s, const StreamAnswer *stream) {
        FleetResumed resumed;
        int r = fleet_claim(s->connection, s->stream, s->read.durable);

        if (r == 0)
                r = fleet_durable_open(s->connection, s->stream, s->read.durable, s->subject, place_of(&s->read, stream->last), &s->durable, &resumed);
        if (r != 0)
                return r;
        s->is_resumed = resumed.is_resumed;
        if (s->is_resumed && resumed.floor > 0 && stream->first > resumed.floor + 1)
                s->n_dropped = stream->first - resumed.floor - 1;
        if (!s->is_resumed || resumed.delivered <= resumed.floor)
                return 0;
        s->ordered_end = resumed.delivered;
        return fleet_ordered_open(s->connection, s->stream, s->subject, (FleetPlace){ .sequence = resumed.floor + 1 }, &s->ordered);
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
        return open_durable(s, &answer);
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
        if (s->ordered)
                fleet_ordered_lose(s->ordered);
        if (s->durable)
                fleet_durable_lose(s->durable);
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
                r = s->ordered ? fleet_ordered_next(s->ordered, timeout, &s->message, &about) : fleet_durable_next(s->durable, timeout, &s->message, &about);
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
        return s->durable ? fleet_durable_taken(s->durable) : 0;
}

size_t fleet_source_held(const FleetSource *s) {
        return s->durable ? s->n_held : 0;
}

size_t fleet_source_fetched(const FleetSource *s) {
        return s->durable ? fleet_durable_waiting(s->durable) : 0;
}

void fleet_source_acknowledge(FleetSource *s) {
        put_away(s);
        if (s->unacknowledged)
                fleet_durable_acknowledge(s->durable, natsMsg_GetReply(s->unacknowledged));
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
        end_ordered(s);
        fleet_durable_close(s->durable);
        free(s);
}
