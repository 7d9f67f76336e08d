/* What is subscribed to, and by target. Main thread only. */
#pragma once

#include "daemon/supervisor/events/events.h"
#include "daemon/supervisor/subscriptions/memory.h"
#include "daemon/supervisor/subscriptions/routes.h"

typedef struct Subscriptions {
        Settings *settings;
        Operations *operations;
        Readers *readers;
        Events *events;

        Subscription *first;
        Subscription *by_number[SUBSCRIPTIONS_MAX]; /* the same; NULL: the number is free */
        bool owes_snapshot;          /* some have ended since the last one */
        SubscriberEntry *subscribers; /* all of them */
        uint64_t last_subscriber_id;
        SubscriberMemory memory;
} Subscriptions;
