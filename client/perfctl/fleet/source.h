/* For `fleet`: the messages that relays have published (PROTOCOL.md, NATS), in the order in which they are stored. One thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "client/perfctl/base/perfctl.h"

#define FLEET_WORD_SIZE 65

typedef struct FleetMessage {
        char host[FLEET_WORD_SIZE], route[FLEET_WORD_SIZE]; /* of the subject */
        perfd_fleet_message raw;  /* for libperfd, until the next call */
        /* Only of a status. */
        char machine[FLEET_WORD_SIZE], boot[FLEET_WORD_SIZE];
        uint64_t epoch, sequence;
        uint64_t stored;      /* ns since 1970, when JetStream has */
        const uint8_t *bytes; /* until the next call */
        size_t length;
} FleetMessage;

/* Where one begins that has not read before. */
typedef enum FleetBegin {
        FLEET_FROM_OLDEST,
        FLEET_FROM_NOW,
        FLEET_FROM_TIME,
} FleetBegin;

typedef struct FleetRead {
        const char *stream;  /* of JetStream */
        const char *host, *route; /* parts of the subject; NULL: all */
        bool is_status;      /* what relays say of themselves, which is in a stream beside it */
        FleetBegin begin;
        uint64_t since;      /* of FLEET_FROM_TIME: ns since 1970 */
        const char *durable; /* the name of a consumer that goes on where it has stopped; NULL: none */
} FleetRead;

typedef struct FleetConnection FleetConnection;
typedef struct FleetSource FleetSource;

/* What perfctl was built with. */
bool fleet_is_built(void);
/* To --nats, with --credentials and --tls. 0, or an exit status after a message. */
int fleet_connect(const Perfctl *p, FleetConnection **ret);
/* Takes NULL. What was opened with it has to be closed before. */
void fleet_disconnect(FleetConnection *c);
/* 0; FLEET_E_NONE: there is no stream of status messages; or an exit status after a message. */
int fleet_source_open(FleetConnection *c, const FleetRead *read, FleetSource **ret);
/*
 * The next one, for which it waits at most so many ms. 0: there is one; FLEET_E_NONE: none has come; FLEET_E_ALIEN: it is no message of a
 * relay; or an exit status after a message.
 */
enum { FLEET_E_NONE = -1, FLEET_E_ALIEN = -2 };
int fleet_source_next(FleetSource *s, int timeout, FleetMessage *ret);
/* All that was stored when it was opened has been given, or is not there any more. */
bool fleet_source_is_through(const FleetSource *s);
/* When nothing has come: the server is asked whether something is to come; if it does not answer, that is not known. */
void fleet_source_ask(FleetSource *s);
/* Of a durable consumer: it has read before; and how many messages, of any route, JetStream has dropped since. */
bool fleet_source_is_resumed(const FleetSource *s);
uint64_t fleet_source_dropped(const FleetSource *s);
/* How many messages of a durable consumer another reader has got since this one was opened. */
uint64_t fleet_source_taken(const FleetSource *s);
/* How many messages of a durable consumer were given and are not acknowledged. */
size_t fleet_source_held(const FleetSource *s);
/* And how many have come and are to be given: a reader that ends without them leaves them to the next one. */
size_t fleet_source_fetched(const FleetSource *s);
/* What it has given is done with. Only of a durable consumer; else nothing. */
void fleet_source_acknowledge(FleetSource *s);
/* The last one with this subject in the stream of descriptors. 0: until the next call; FLEET_E_NONE: there is none; an exit status. */
int fleet_source_find(FleetSource *s, const char *subject, perfd_fleet_message *ret);
/* Takes NULL. */
void fleet_source_close(FleetSource *s);
