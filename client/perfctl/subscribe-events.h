/* For verbs that read samples: a subscription to events that run, or that are added for the time of the verb. */
#pragma once

#include "client/perfctl/event-words.h"
#include "client/perfctl/perfctl.h"

/* What was added for the verb has a name of its own if another event has the one that was typed. */
typedef struct TypedNames {
        EventWords names, events; /* one of the others each */
} TypedNames;

/* As it was typed; else the name itself. */
const char *typed_names_find(const TypedNames *t, const char *name);
void typed_names_deinit(TypedNames *t);

/* A subscription and who hears of it, but for its events. */
typedef struct EventSubscription {
        const perfd_subscription *subscription;
        const perfd_callbacks *callbacks;
        void *userdata;
        /*
         * What else depends on which events these are: may change the subscription, and ask the client. 0, or an exit status after
         * a message. NULL: nothing does.
         */
        int (*choose)(void *userdata, const EventWords *words, perfd_subscription *subscription);
        int pid;         /* of a command: each event is added, and observes it from its exec on; 0: there is none */
        EventWords *ret_words; /* what the daemon was asked for */
        TypedNames *ret_typed; /* of it, what was added */
        uint64_t interval; /* ns, of tables: samples are to come within a quarter of it; 0: there are none */
        bool is_watched; /* somebody at a terminal waits for items, and is told why none may come */
} EventSubscription;

/*
 * To the verb's arguments and the values of its option `event`; p->client may be another one afterwards. ret_keeper: set if
 * events were added: they are removed when it is freed. 0, or an exit status after a message.
 */
int subscribe_to_events(Perfctl *p, const EventSubscription *s, perfd_client **ret_keeper);
