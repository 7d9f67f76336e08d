/* For verbs that read samples: a subscription to events that run, or that are added for the time of the verb. */
#pragma once

#include "client/perfctl/events/event-words.h"
#include "client/perfctl/base/perfctl.h"

/* A subscription and who hears of it, but for its events. */
typedef struct EventSubscription {
        const perfd_subscription *subscription;
        const perfd_callbacks *callbacks;
        void *userdata;
        /*
         * What else depends on which events these are: may change the subscription, and ask the client. 0, or an exit status after
         * a message. NULL: nothing does. Side records that it adds are left out again where they are not granted.
         */
        int (*choose)(void *userdata, const EventWords *words, perfd_subscription *subscription);
        int pid;         /* of a command: each event is added, and observes it from its exec on; 0: there is none */
        EventWords *ret_words; /* what the daemon was asked for */
        TypedNames *ret_typed; /* of it, what was added */
        bool *ret_lacks_records; /* those that choose() has added are not granted */
        uint64_t interval; /* ns, of tables: samples are to come within a quarter of it; 0: there are none */
        bool is_watched; /* somebody at a terminal waits for items, and is told why none may come */
} EventSubscription;

/*
 * To the verb's arguments and the values of its option `event`; p->client may be another one afterwards. ret_keeper: set if
 * events were added: they are removed when it is freed. 0, or an exit status after a message.
 */
int subscribe_to_events(Perfctl *p, const EventSubscription *s, perfd_client **ret_keeper);
