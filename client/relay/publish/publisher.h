/*
 * A system that stores messages, as routes see it: messages go in in the order in which they are to be stored, and come back when
 * they are. Another system beside NATS is another function that opens one. The relay's thread, but for what an implementation says.
 */
#pragma once

#include <stdbool.h>

#include "client/relay/publish/message.h"
#include "client/relay/publish/publish-config.h"
#include "daemon/base/error.h"

typedef struct Publisher Publisher;

/* Called by publisher->dispatch(). */
typedef struct PublisherCallbacks {
        void (*stored)(void *userdata, Message *m);                          /* or refused, see is_refused; owns it again */
        void (*changed)(void *userdata, bool is_connected, const char *text); /* to which server; or why not */
        void *userdata;
} PublisherCallbacks;

struct Publisher {
        int fd; /* readable: dispatch() has something to do */
        /* Takes it. It is stored once, however often it has to be sent, and after all that were published before. */
        void (*publish)(Publisher *p, Message *m);
        void (*dispatch)(Publisher *p);
        /* Other servers, or other secrets: it goes on there, with what is not stored. -ENOMEM: as before. */
        int (*reload)(Publisher *p, const PublishAccess *access);
        /* What is not stored is thrown away. */
        void (*close)(Publisher *p);
};

/* It keeps copies of the settings. -errno. Connecting goes on behind it, for as long as there is no server. */
int nats_open(const PublishConfig *config, const PublisherCallbacks *callbacks, Publisher **ret);
/* False: this program has no NATS in it, and nats_open() fails. */
bool nats_is_built(void);
