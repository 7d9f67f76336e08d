/*
 * For the supervisor: who wants which event. Each event knows the subscriptions that select it, and each subscription its
 * events. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/glob.h"
#include "daemon/base/name-set.h"
#include "daemon/base/strings.h"
#include "daemon/encode/item.h"
#include "daemon/model/snapshot.h"
#include "daemon/route/match.h"
#include "daemon/supervisor/subscriptions/memory.h"

#define PATTERNS_MAX 10000 /* of one subscription: as many as there are events */
#define GLOBS_MAX 256      /* of them: each is matched with the name of every event, also of those that come later */
#define FIELDS_MAX 1024    /* of one subscription */
#define ENCODINGS_MAX 64 /* of one event: choices of payload and fields, and one more for all fields with each payload */

typedef struct Subscriptions Subscriptions;
typedef struct Registration Registration; /* supervisor/supervisor.h */
typedef struct Subscription Subscription;

/* What access.rules and the connection's own limit grant of a subscription; its `filter` has their predicates in it already. */
typedef struct SubscriptionGrant {
        Strings events; /* names and globs of the rule; "*" without one */
        Strings within; /* those of the limit; none: there is no limit */
        char *within_where; /* the predicate of the limit; NULL: none */
        char *where;    /* as the rule has it; NULL: none */
        uint32_t own_uid; /* whose own events are granted too; 0: nobody's */
        Filter *own_filter; /* with `where` or `within_where`: what the client asks for itself; NULL: nothing */
} SubscriptionGrant;

/* Of an event: who wants it. */
typedef struct EventRoute {
        Subscription *subscription;
        size_t at; /* in its routes */
} EventRoute;

/* Of an event: how it is encoded for some of them. */
typedef struct EventEncoding {
        EncodePlan *plan;
        size_t n_users;
} EventEncoding;

/* Of a subscription: an event that it selects. */
typedef struct SubscriptionRoute {
        Registration *registration;
        size_t at;             /* in its routes */
        MatchProgram *program; /* NULL: always */
        EncodePlan *encoding;
        bool has_all_fields;   /* and not those of the subscription, because the event has ENCODINGS_MAX already */
} SubscriptionRoute;

typedef struct SubscriptionGlob {
        const char *text; /* of the patterns' */
        Pattern *glob;
} SubscriptionGlob;

/* What one or more subscribers with the same wishes want: one number, one program for each event. */
struct Subscription {
        Subscription *next, *before;
        uint32_t number;
        unsigned n_subscribers;
        uint64_t since; /* generation of the first snapshot with it */
        char *key;      /* canonical: equal keys share */
        uint64_t key_hash; /* of it: most of them differ far behind their beginning */
        size_t n_bytes;   /* that its texts take, as they are charged */
        NameSet patterns; /* of event names; none: every event */
        SubscriptionGrant *grant; /* NULL: all */
        SubscriptionGlob *globs; /* those of them that are more than a name */
        size_t n_globs;
        Filter *filter;
        bool asks_process; /* it does: the dispatcher decides which samples it gets, and its number is of a conditional group */
        bool tells_zero_tid; /* perfd is in a pid namespace */
        Payload payload;
        NameSet fields;   /* none: all */
        uint32_t records; /* bits of RecordKind */
        nsec_t latency;   /* how long a sample may lie in its ring; 0: nothing was asked for */
        SubscriptionRoute *routes;
        size_t n_routes, n_routes_allocated;
        struct UidMemory *payer; /* of the uid that subscribed first; NULL: nothing is charged yet */
        size_t charged;          /* for the routes that it had then */
        ConditionCost cost;      /* of its condition, charged to the same; 0: it has none */
};

void subscription_route_deinit(SubscriptionRoute *r);
/* One that another subscription has for this event already, or a new one. -ENOMEM */
int subscription_route_encode(SubscriptionRoute *route, const Subscription *u);
/* The event knows of the route that the subscription has at `at`. -ENOMEM */
int registration_add_route(Subscription *u, size_t at);
/* The events that it was compiled for know of it; until it is unlinked, and over. -ENOMEM: none of them does. */
int subscription_link(Subscription *u);
void subscription_unlink(Subscription *u);
/* Who wants the event now, of which the caller gets a reference; NULL: nobody. -ENOMEM */
int registration_route_table(Registration *g, RouteTable **ret);
/*
 * For one that is not linked yet. As long as there are few subscriptions, all that readers decide are of group 0; those that the
 * dispatcher decides have groups of their own, from the other end. REFUSED_EXHAUSTED.
 */
int subscriptions_take_number(const Subscriptions *s, Subscription *u, uid_t uid, Explanation *e);
/* Nobody wants it any more. */
void registration_unroute(Registration *g);
/* Without a word to the subscriptions, which are gone, or never knew of it. */
void registration_free_routes(Registration *g);
