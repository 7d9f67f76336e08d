/*
 * For this folder: what the thread that connects and sends (nats-thread.c), the threads of libnats, and the relay (nats.c) share, behind
 * `lock`.
 */
#pragma once

#include <nats/nats.h>
#include <pthread.h>

#include "client/relay/publish/message-queue.h"
#include "client/relay/publish/nats-answer.h"
#include "client/relay/publish/nats-streams.h"
#include "client/relay/publish/publisher.h"
#include "client/relay/publish/refused.h"
#include "client/relay/publish/server-url.h"
#include "daemon/base/clock.h"
#include "daemon/base/thread.h"

#define WINDOW_MESSAGES 256 /* that are not acknowledged */

typedef struct Nats {
        Publisher publisher; /* fd: of epoll(7), for both below */
        int bell, watch;     /* eventfd(2); timerfd_create(2), for servers that stand still where libnats has no limit */
        PublishConfig config; /* its own stream and its limits, and nothing else: the thread may outlive the relay's configuration */
        PublisherCallbacks callbacks;
        Thread thread;

        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool is_stopping;
        PublishAccess access;
        bool is_other;            /* `access`, since the thread has connected */
        MessageQueue queue;
        NatsLimits limits;        /* of the server that the thread is connected to */
        RefusedPackets refused;
        nsec_t progress;          /* when something was acknowledged last, or the window was empty */
        size_t window;            /* messages */
        natsConnection *connection; /* the one that is used; of others nothing is heard any more */
        bool is_lost;
        bool is_doubtful;         /* it was lost: while there is something to store, a connection alone is no news */
        unsigned port;            /* of the server that the thread connects to, or is connected to */
        nsec_t busy_since;        /* the thread may wait for that server's socket; 0: it does not */
        char server[SERVER_HOST_MAX + 32];
        bool has_rung;            /* the bell, since the relay looked last */
        bool has_notice, is_connected;
        char notice[NATS_TEXT_SIZE];

        natsSubscription *acknowledgements; /* the thread's */
        char inbox[64];
} Nats;

/* The thread: until is_stopping. `userdata` is the Nats. */
int nats_run(void *userdata);
