/* What streams want, and who wants an event. Main thread only. */
#pragma once

#include "daemon/supervisor/access/access.h"
#include "daemon/supervisor/subscriptions/subscriptions.h"

bool subscription_selects(const Subscription *u, const Event *event); /* by its patterns: it need not have a route */
/* Refused: access.rules do not grant it (supervisor/access/access.h). */
int subscription_parse(const Perfd__V1__SubscribeRequest *q, const Access *access, nsec_t default_latency, Subscription **ret,
                       Explanation *e);
/* Each pattern and each field has to mean something now, or it is an error; later events may add to it. */
int subscription_check(const Subscriptions *s, const Subscription *u, Explanation *e);
/* Compiles it for every event that it selects. Refused if it fits none of them. */
int subscription_compile(const Subscriptions *s, Subscription *u, Explanation *e);

/* supervisor/subscriptions/constants.c: of one that is compiled. Refused: a comparison of its own that none of its events can fulfil. */
int subscription_check_constants(const Subscriptions *s, const Subscription *u, Explanation *e);

/* The descriptors of routes from *first on, as fields of a packet: as many as fit, at least one. -ENOMEM. */
int subscription_describe(const Subscription *u, size_t *first, uint8_t **ret_bytes, size_t *ret_n);
Subscription *subscription_free(Subscription *u);
DEFINE_CLEANUP(Subscription *, subscription_free)

/* supervisor/subscriptions/subscription.c: routes of a new event in all subscriptions, and descriptors to their subscribers. */
int subscriptions_route_event(Subscriptions *s, Registration *r);
/* Sends its descriptor again to all who have it. -ENOMEM */
int subscriptions_describe_event(Subscriptions *s, const Registration *r);
void subscriptions_tell_removed(Subscriptions *s, const Registration *g);
void subscriptions_free(Subscriptions *s);
