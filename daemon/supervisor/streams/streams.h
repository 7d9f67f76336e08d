/* Streams, from their beginning to their end. Main thread only. */
#pragma once

#include "daemon/supervisor/ledger/ledger.h"
#include "daemon/supervisor/subscriptions/subscriptions.h"

typedef struct Streams {
        Settings *settings;
        Operations *operations;
        Readers *readers;
        Events *events;
        Subscriptions *subscriptions;
        Ledger *ledger;
} Streams;

/* What the dispatcher tells (CHANGE_NOTICES); userdata is the Streams. Negative: fatal. */
int streams_on_notices(void *userdata);
