/*
 * Which message of a stream JetStream has delivered: it says so in the subject that an acknowledgement is sent to, $JS.ACK.*, in one of two
 * forms (nats-server's ADR-15). Pure, any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define NATS_NAME_SIZE 257 /* of a stream or a consumer, with its end: JS.MAX_NAME_LEN of nats-server */

typedef struct Delivery {
        char consumer[NATS_NAME_SIZE];
        uint64_t sequence;          /* in the stream */
        uint64_t consumer_sequence; /* so many has the consumer delivered */
        uint64_t stored;            /* ns since 1970 */
        uint64_t pending;           /* how many it has behind this one */
} Delivery;

/* False: it is no message of JetStream. NULL is none. */
bool delivery_read(const char *reply, Delivery *ret);
