/*
 * For handlers: the body of a response that is made piece by piece, as it goes on the wire, so that nobody makes, packs and frees a
 * message with half a million others in it in one step of main. Main thread only.
 */
#pragma once

#include "daemon/control/control.h"

enum {
        RESPONSE_E_TOO_LONG = 1, /* with this it would not fit in a frame */
};

typedef struct LongResponse {
        uint8_t *bytes; /* with room before the first piece, for what is before it in a frame */
        size_t n, size;
} LongResponse;

#define LONG_RESPONSE_NULL ((LongResponse){ .bytes = NULL })

void long_response_deinit(LongResponse *l);
/* One more of a repeated field of the body. RESPONSE_E_TOO_LONG, and what was added before stays; -ENOMEM. */
int long_response_add(LongResponse *l, unsigned field, const ProtobufCMessage *m);
/* As connection_respond(): of a request that is granted. What was made is the connection's, or freed. */
int connection_respond_long(Connection *c, uint64_t id, Perfd__V1__Response__BodyCase body, LongResponse *l);
