/* For nats.c: the streams of JetStream that hold messages and descriptors, made where they are not there. Blocks. */
#pragma once

#include <nats/nats.h>

#include "client/relay/publish/nats-answer.h"
#include "client/relay/publish/publish-config.h"

/* What the streams that are there take. */
typedef struct NatsLimits {
        bool discards_new;                       /* one of them refuses what comes when it is full, perhaps a long message and not the short
                                                  * one behind it */
        int64_t messages, descriptors, statuses; /* bytes of a message with its headers, at most */
} NatsLimits;

/* False: `text` says why not, and what to do. */
bool nats_streams_prepare(natsConnection *connection, const PublishConfig *p, NatsLimits *ret, char text[static NATS_TEXT_SIZE]);
