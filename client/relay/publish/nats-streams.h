/* For nats.c: the streams of JetStream that hold messages and descriptors, made where they are not there. Blocks. */
#pragma once

#include <nats/nats.h>

#include "client/relay/publish/nats-answer.h"
#include "client/relay/publish/publish-config.h"

/*
 * *ret_discards_new: one of them refuses what comes when it is full, perhaps a long message and not the short one behind it. False:
 * `text` says why not, and what to do.
 */
bool nats_streams_prepare(natsConnection *connection, const PublishConfig *p, bool *ret_discards_new, char text[static NATS_TEXT_SIZE]);
