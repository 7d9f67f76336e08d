/* What access.rules grant of streams: when they begin, and when the rules change. Main thread only. */
#pragma once

#include "daemon/supervisor/access/access.h"
#include "daemon/supervisor/streams/routes.h"

bool subscription_grants(const Subscription *u, const Event *event);
/* What its samples have to match; NULL: they all do. */
const Filter *subscription_filter(const Subscription *u, const Event *event);
SubscriptionGrant *subscription_grant_free(SubscriptionGrant *g);
/*
 * Of a subscription that is being made: what it selects is granted, and its condition joined to that of the rule. Refused: a name
 * in it is not granted, or nothing is.
 */
int subscription_limit(Subscription *u, const Access *a, uint32_t records, Explanation *e);
/* Who asks for a stream. Refused as access_of() */
int admission_remember_peer(Admission *a, const Connection *c, Explanation *e);
/*
 * Behind a reload: other rules hold. Streams that they do not grant as they are end with the reason "not-granted"; what a stream
 * may have is never less than it asked for, and never more than it was granted. Negative: fatal.
 */
int supervisor_change_access(Supervisor *s, Config *c);
