/* For the files of `fleet` that know libnats. */
#pragma once

#include <nats/nats.h>

#include "client/nats/stream-answer.h"
#include "client/perfctl/fleet/source.h"

struct FleetConnection {
        const Perfctl *p;
        char *url; /* as it may be shown */
        natsConnection *connection;
        jsCtx *js;
        natsSubscription *claim; /* of a durable consumer */
        uint64_t looked;     /* CLOCK_MONOTONIC, ns: when the connection was looked at */
        uint64_t lost;       /* the same, since when it is not there; 0: it is */
        uint64_t reconnects; /* so many have been said */
};

/* What the calling thread's last call of libnats says, with the exit status. */
int fleet_fail(const FleetConnection *c, const char *what, natsStatus status);

/* On stderr: that the server is away, and that it is back. True: it has been away since the last call. */
bool fleet_connection_look(FleetConnection *c);

/* claim.c: a durable consumer is ours until the end of the connection. 0, or an exit status after a message: another reader has it. */
int fleet_claim(FleetConnection *c, const char *stream, const char *durable);
/* Again, after the server was away. */
int fleet_claim_check(const FleetConnection *c, const char *stream, const char *durable);
#define FLEET_CLAIM "perfd-reader.%s.%s" /* the subject: of which stream and consumer */
#define FLEET_CLAIM_SIZE 384
/* request.c: until signals are looked at, or so many ms. FLEET_E_NONE */
int fleet_wait(int timeout);
/* The value of a header, as long as the message is there; NULL: it has none. And natsSubscription_Destroy() alone can crash while messages come. */
const char *fleet_header(natsMsg *m, const char *name);
void fleet_unsubscribe(natsSubscription **subscription);

/*
 * request.c: whether the server answers as JetStream does, about a stream, before libnats asks. 0; an exit status after a message;
 * FLEET_E_NONE: there is no such stream.
 */
int fleet_check_stream(FleetConnection *c, const char *stream, StreamAnswer *ret);
/* The same, of the last message with a subject, which need not be there. */
int fleet_check_message(FleetConnection *c, const char *stream, const char *of);

/* What JetStream answers to a question about `what`. 0, or an exit status after a message. */
int fleet_request(const FleetConnection *c, const char *subject, const char *body, const char *what, natsMsg **ret);
/* Of what was asked: that the answer is none of JetStream; and that nobody answers for it. The exit status. */
int fleet_refuse(const FleetConnection *c, const char *what, const char *why);
int fleet_no_jetstream(const FleetConnection *c);

/* message.c: the message as libperfd takes it, as long as it is there. */
perfd_fleet_message fleet_message_of(natsMsg *m);
/* Where it belongs to. False: it is none of a relay. What else is in a packet, libperfd judges. The caller fills in when it was stored. */
bool fleet_message_read(natsMsg *m, FleetMessage *ret);
bool fleet_message_read_status(natsMsg *m, FleetMessage *ret);
