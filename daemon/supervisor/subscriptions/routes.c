/*
 * Who wants an event. Each event knows that, and each subscription what it wants, so that what comes and goes costs as much as
 * there is of it, and not all events times all subscriptions. Readers get a table for each event, which is rebuilt only when
 * who wants the event has changed.
 */
#include "daemon/reader/route-sample.h"
#include "daemon/supervisor/events/registration.h"
#include "daemon/supervisor/subscriptions/routes.h"
#include "daemon/supervisor/subscriptions/subscriptions.h"

void subscription_route_deinit(SubscriptionRoute *r) {
        match_program_unref(r->program);
        encode_plan_unref(r->encoding);
}

static bool group_is(const Subscriptions *s, uint32_t group, bool is_conditional) {
        for (uint32_t number = group * BATCH_BITS; number < (group + 1) * BATCH_BITS; number++)
                if (s->by_number[number])
                        return s->by_number[number]->asks_process == is_conditional;
        return true;
}

static int take_number_of(const Subscriptions *s, uint32_t group, uint32_t *ret) {
        for (uint32_t bit = 0; bit < BATCH_BITS; bit++)
                if (!s->by_number[group * BATCH_BITS + bit]) {
                        *ret = group * BATCH_BITS + bit;
                        return 0;
                }
        return REFUSED_EXHAUSTED;
}

/* There are few of them: half are root's, or anybody's who has few. */
static int check_conditional(const Subscriptions *s, uid_t uid, Explanation *e) {
        const size_t of_others = CONDITIONAL_MAX / 2, of_uid = CONDITIONAL_MAX / 4;
        size_t n = 0, own = 0;

        if (uid == 0)
                return 0;
        for (const Subscription *u = s->first; u; u = u->next)
                if (u->asks_process && u->payer && u->payer->uid != 0) {
                        n++;
                        own += u->payer->uid == uid;
                }
        if (own < of_uid && n < of_others)
                return 0;
        return refuse(e, REFUSED_EXHAUSTED, "too-many-subscribers",
                      "uid %u has %zu different subscriptions whose predicates use the process, and all uids except root %zu: "
                      "%zu and %zu are allowed; equal ones share", (unsigned)uid, own, n, of_uid, of_others);
}

int subscriptions_take_number(const Subscriptions *s, Subscription *u, uid_t uid, Explanation *e) {
        int r = u->asks_process ? check_conditional(s, uid, e) : 0;

        if (r != 0)
                return r;
        for (uint32_t i = 0; i < (u->asks_process ? CONDITIONAL_GROUPS : BATCH_GROUPS); i++) {
                uint32_t group = u->asks_process ? BATCH_GROUPS - 1 - i : i;

                if (group_is(s, group, u->asks_process) && take_number_of(s, group, &u->number) == 0)
                        return 0;
        }
        if (u->asks_process)
                return refuse(e, REFUSED_EXHAUSTED, "too-many-subscribers",
                              "%d different subscriptions whose predicates use the process are the limit, and fewer if there are "
                              "thousands of others; equal ones share", CONDITIONAL_MAX);
        return refuse(e, REFUSED_EXHAUSTED, "too-many-subscribers",
                      "%d different subscriptions are the limit; equal ones share", SUBSCRIPTIONS_MAX);
}

/* Of those that the event has, by what they write: two lists of fields may mean the same ones of this event. */
static EncodePlan *registration_find_equal(const Registration *g, const EncodePlan *plan) {
        for (size_t i = 0; i < g->n_encodings; i++)
                if (encode_plan_equals(g->encodings[i].plan, plan))
                        return g->encodings[i].plan;
        return NULL;
}

/* Of the fields that are asked for only those that the event has are given on: a subscription may name a thousand. */
static int encode_wanted(const Registration *g, const Subscription *u, bool all, EncodePlan **ret) {
        const size_t n_plan = g->event->plan ? g->event->plan->n_fields : 0;
        _cleanup_free_ char **wanted = calloc(n_plan + 1, sizeof(*wanted));
        size_t n = 0, at;

        if (!wanted)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < n_plan && !all && u->fields.list.n > 0; i++)
                if (name_set_find(&u->fields, g->event->plan->fields[i].name, &at))
                        wanted[n++] = u->fields.list.items[at];
        if (n == 0 && !all && u->fields.list.n > 0)
                wanted[n++] = u->fields.list.items[0]; /* it has none of them, and 0 names are all */
        *ret = encode_plan_new(g->event->plan, g->event->id, u->payload, wanted, n);
        if (*ret && u->tells_zero_tid && !g->event->external) /* whose tid 0 is nobody's */
                encode_plan_tell_zero_tid(*ret);
        return *ret ? 0 : error_origin(-ENOMEM);
}

int subscription_route_encode(SubscriptionRoute *route, const Subscription *u) {
        const Registration *g = route->registration;
        const bool is_choice = !route->has_all_fields && u->fields.list.n > 0;
        _cleanup_(encode_plan_unrefp) EncodePlan *plan = NULL;
        EncodePlan *known;
        int r = encode_wanted(g, u, route->has_all_fields, &plan);

        if (r < 0)
                return r;
        known = registration_find_equal(g, plan);
        if (!known && is_choice && g->n_encodings >= ENCODINGS_MAX) {
                route->has_all_fields = true;
                return subscription_route_encode(route, u);
        }
        route->encoding = known ? encode_plan_ref(known) : TAKE_PTR(plan);
        return 0;
}

static int registration_use_encoding(Registration *g, const SubscriptionRoute *route) {
        EventEncoding *more;

        for (size_t i = 0; i < g->n_encodings; i++)
                if (g->encodings[i].plan == route->encoding) {
                        g->encodings[i].n_users++;
                        return 0;
                }
        more = reallocarray(g->encodings, g->n_encodings + 1, sizeof(*more));
        if (!more)
                return error_origin(-ENOMEM);
        g->encodings = more;
        more[g->n_encodings++] = (EventEncoding){ .plan = encode_plan_ref(route->encoding), .n_users = 1 };
        return 0;
}

static void encoding_deinit(EventEncoding *e) {
        encode_plan_unref(e->plan);
}

static void registration_leave_encoding(Registration *g, const EncodePlan *plan) {
        size_t i = 0;

        while (g->encodings[i].plan != plan)
                i++;
        if (--g->encodings[i].n_users > 0)
                return;
        encoding_deinit(&g->encodings[i]);
        g->encodings[i] = g->encodings[--g->n_encodings];
}

int registration_add_route(Subscription *u, size_t at) {
        SubscriptionRoute *route = &u->routes[at];
        Registration *g = route->registration;

        if (g->n_routes == g->n_routes_allocated) {
                size_t n = g->n_routes ? 2 * g->n_routes : 4;
                EventRoute *more = reallocarray(g->routes, n, sizeof(*more));

                if (!more)
                        return error_origin(-ENOMEM);
                g->routes = more;
                g->n_routes_allocated = n;
        }
        g->free_routes = registration_free_routes;
        if (registration_use_encoding(g, route) < 0)
                return error_origin(-ENOMEM);
        route->at = g->n_routes;
        g->routes[g->n_routes++] = (EventRoute){ u, at };
        g->table = route_table_unref(g->table);
        return 0;
}

static void registration_remove_route(const SubscriptionRoute *route) {
        Registration *g = route->registration;
        EventRoute last = g->routes[--g->n_routes];

        registration_leave_encoding(g, route->encoding);
        g->routes[route->at] = last;
        last.subscription->routes[last.at].at = route->at;
        g->table = route_table_unref(g->table);
}

int subscription_link(Subscription *u) {
        for (size_t i = 0; i < u->n_routes; i++)
                if (registration_add_route(u, i) < 0) {
                        while (i > 0)
                                registration_remove_route(&u->routes[--i]);
                        return error_origin(-ENOMEM);
                }
        return 0;
}

void subscription_unlink(Subscription *u) {
        for (size_t i = 0; i < u->n_routes; i++) {
                registration_remove_route(&u->routes[i]);
                if (u->routes[i].program) /* a reader has it until it is through what lies in its ring */
                        match_program_end(u->routes[i].program);
        }
}

void registration_unroute(Registration *g) {
        for (size_t i = 0; i < g->n_routes; i++) {
                Subscription *u = g->routes[i].subscription;
                SubscriptionRoute *route = &u->routes[g->routes[i].at], *last = &u->routes[--u->n_routes];

                subscription_route_deinit(route);
                if (route == last)
                        continue;
                *route = *last;
                route->registration->routes[route->at].at = g->routes[i].at;
        }
        registration_free_routes(g);
}

void registration_free_routes(Registration *g) {
        for (size_t i = 0; i < g->n_encodings; i++)
                encoding_deinit(&g->encodings[i]);
        free(g->encodings);
        free(g->routes);
        g->encodings = NULL;
        g->routes = NULL;
        g->n_encodings = g->n_routes = g->n_routes_allocated = 0;
        g->table = route_table_unref(g->table);
}

/* 0 is none. */
static nsec_t lesser_latency(nsec_t a, nsec_t b) {
        return a == 0 || (b > 0 && b < a) ? b : a;
}

static void table_drop_references(RouteTable *t) {
        for (size_t i = 0; i < t->n_routes; i++)
                match_program_unref((MatchProgram *)t->routes[i].program);
        for (size_t i = 0; i < t->n_encodings; i++)
                encode_plan_unref(t->encodings[i]);
}

static uint32_t table_find_encoding(const RouteTable *t, const EncodePlan *plan) {
        uint32_t i = 0;

        while (t->encodings[i] != plan)
                i++;
        return i;
}

int registration_route_table(Registration *g, RouteTable **ret) {
        RouteTable *t;

        if (g->table || g->n_routes == 0) {
                *ret = route_table_ref(g->table);
                return 0;
        }
        t = route_table_new(g->n_routes, g->n_encodings);
        if (!t)
                return error_origin(-ENOMEM);
        t->deinit = table_drop_references;
        for (; t->n_encodings < g->n_encodings; t->n_encodings++)
                t->encodings[t->n_encodings] = encode_plan_ref(g->encodings[t->n_encodings].plan);
        for (; t->n_routes < g->n_routes; t->n_routes++) {
                const Subscription *u = g->routes[t->n_routes].subscription;
                const SubscriptionRoute *route = &u->routes[g->routes[t->n_routes].at];

                t->needs_comm |= route->program && match_needs_comm(route->program);
                if (u->asks_process)
                        t->conditional_groups |= 1ULL << BATCH_GROUP(u->number);
                t->latency = lesser_latency(t->latency, u->latency);
                t->routes[t->n_routes] = (Route){ .number = u->number, .program = match_program_ref(route->program),
                                                  .encoding = table_find_encoding(t, route->encoding) };
        }
        if (route_table_prepare(t, g->event->external) < 0) {
                route_table_unref(t);
                return error_origin(-ENOMEM);
        }
        g->table = t;
        *ret = route_table_ref(t);
        return 0;
}
