/* For the supervisor: the ends of streams. Main thread only. */
#pragma once

#include "daemon/supervisor/ledger/ledger.h"
#include "daemon/supervisor/streams/streams.h"

typedef struct StreamEnd {
        uint64_t id;
        const char *reason; /* static */
} StreamEnd;

/* Streams end, all at one cut, each with the ledger of what it has asked for; who is gone does not. */
int supervisor_close_streams(Streams *s, const StreamEnd *ends, size_t n);
int supervisor_close_all_streams(Streams *s, const char *reason);

/* What it gets, for the ledger; borrowed. */
LedgerWants subscription_wants(const Subscription *u);
/* LedgerScope.has_subscriber, userdata is the supervisor. */
bool supervisor_has_subscriber(const void *userdata, const LedgerScope *scope, uint64_t id);
