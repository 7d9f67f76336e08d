/* For `fleet`: the messages that relays have published (PROTOCOL.md, NATS), in the order in which they are stored. One thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "client/perfctl/perfctl.h"

#define FLEET_WORD_SIZE 65

typedef struct FleetMessage {
        char host[FLEET_WORD_SIZE], route[FLEET_WORD_SIZE], machine[FLEET_WORD_SIZE], boot[FLEET_WORD_SIZE], descriptors[FLEET_WORD_SIZE];
        uint64_t epoch, sequence, part, n_parts;
        uint64_t stored;    /* ns since 1970, when JetStream has */
        int64_t wall_offset;
        const uint8_t *bytes; /* until the next call */
        size_t length;
} FleetMessage;

typedef struct FleetSource FleetSource;

/* What perfctl was built with. */
bool fleet_is_built(void);
/* Those of a route, NULL: of all; from the oldest one on, or only what comes from now on. 0, or an exit status after a message. */
int fleet_source_open(const Perfctl *p, const char *url, const char *stream, const char *route, bool is_from_oldest, FleetSource **ret);
/*
 * The next one, for which it waits at most so many ms. 0: there is one; FLEET_E_NONE: none has come; FLEET_E_ALIEN: it is no message of a
 * relay; or an exit status after a message.
 */
enum { FLEET_E_NONE = -1, FLEET_E_ALIEN = -2 };
int fleet_source_next(FleetSource *s, int timeout, FleetMessage *ret);
/* All that was stored when it was opened has been given. */
bool fleet_source_is_through(const FleetSource *s);
/* The packet of descriptors with this digest, in malloc'ed memory. False: JetStream does not have all of it. */
bool fleet_source_find_descriptors(FleetSource *s, const char *digest, uint8_t **ret_bytes, size_t *ret_length);
/* Takes NULL. */
void fleet_source_close(FleetSource *s);
