/* For the supervisor: the ends of streams. Main thread only. */
#pragma once

#include "daemon/supervisor/ledger/ledger.h"
#include "daemon/supervisor/streams/streams.h"

typedef struct StreamEnd {
        uint64_t id;
        const char *reason; /* static */
} StreamEnd;

/* Streams end, all at one cut, each with the ledger of what it has asked for; who is gone does not. */
int streams_close(Streams *s, const StreamEnd *ends, size_t n);
int streams_close_all(Streams *s, const char *reason);

/* What it gets, for the ledger; borrowed. */
LedgerWants subscription_wants(const Subscription *u);
/* Of a cut at which a stream of it begins. -ENOMEM */
int subscription_cut_scope(const Subscription *u, CutScope **ret);
/* LedgerScope.has_subscriber, userdata is the Streams. */
bool streams_has_subscriber(const void *userdata, const LedgerScope *scope, uint64_t id);
