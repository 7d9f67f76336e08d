/* What access.rules grant of streams: when they begin, and when the rules change. Main thread only. */
#pragma once

#include "daemon/supervisor/access/access.h"
#include "daemon/supervisor/subscriptions/routes.h"
#include "daemon/supervisor/subscriptions/subscriptions.h"

bool subscription_grants(const Subscription *u, const Event *event);
/* What its samples have to match; NULL: they all do. */
const Filter *subscription_filter(const Subscription *u, const Event *event);
/*
 * Why that does not fit the event: `r` and `e` are what filter_compile() says. What the client has not written, the predicate of its
 * rule, is said to be the rule's, and has no position; of its own expression the position is that in what it has written.
 */
int subscription_blame(const Subscription *u, const Event *event, int r, Explanation *e);
SubscriptionGrant *subscription_grant_free(SubscriptionGrant *g);
/*
 * Of a subscription that is being made: what it selects is granted, and its condition joined to that of the rule. Refused: a name
 * in it is not granted, or nothing is.
 */
int subscription_limit(Subscription *u, const Access *a, const Perfd__V1__SubscribeRequest *q, Explanation *e);
/* Who asks for a stream. Refused as access_of() */
int subscriber_entry_remember_peer(SubscriberEntry *a, const Connection *c, Explanation *e);
/* Whether other rules still grant all that it may ever select. */
bool subscription_is_granted(const Subscription *u, const Access *a);
