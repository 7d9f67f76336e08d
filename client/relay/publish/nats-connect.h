/* For nats.c: a connection to one server, with TLS and with what says who the relay is. Blocks. */
#pragma once

#include <nats/nats.h>

#include "client/relay/publish/nats-answer.h"
#include "client/relay/publish/publish-access.h"
#include "client/relay/publish/server-url.h"

typedef struct NatsCallbacks {
        natsConnectionHandler closed;
        natsErrHandler error;
        void *userdata;
} NatsCallbacks;

/*
 * Files are read now, so that renewed ones are taken. The name in the server's certificate is verified. False: `text` says why not, and
 * what to do.
 */
bool nats_connect(const PublishAccess *a, const ServerUrl *url, const NatsCallbacks *callbacks, natsConnection **ret,
                  char text[static NATS_TEXT_SIZE]);
/* The status of libnats, what it says of it on this thread, and what to do. */
void nats_explain(natsStatus status, const char *what, char text[static NATS_TEXT_SIZE]);
