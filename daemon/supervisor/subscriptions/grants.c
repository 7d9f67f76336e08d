/*
 * What access.rules, and the limit of a connection, grant of a subscription. A rule's predicate is joined to the client's own condition, which readers evaluate,
 * and the dispatcher what asks for the process: so a sample that is not granted reaches no stream, and nothing is asked twice.
 */
#include "daemon/supervisor/subscriptions/grants.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/printable.h"
#include "daemon/supervisor/events/own.h"
#include "daemon/supervisor/events/specs.h"

bool subscription_grants(const Subscription *u, const Event *event) {
        const SubscriptionGrant *g = u->grant;

        if (!g || own_is_of(&event->spec, g->own_uid))
                return true;
        if ((g->where || g->within_where) && event->spec.interval > 0) /* no condition is asked of its counts */
                return false;
        return access_list_has(&g->events, event->spec.name) && (g->within.n == 0 || access_list_has(&g->within, event->spec.name));
}

SubscriptionGrant *subscription_grant_free(SubscriptionGrant *g) {
        if (!g)
                return NULL;
        strings_deinit(&g->events);
        strings_deinit(&g->within);
        free(g->within_where);
        filter_free(g->own_filter);
        free(g->where);
        free(g);
        return NULL;
}

const Filter *subscription_filter(const Subscription *u, const Event *event) {
        const SubscriptionGrant *g = u->grant;
        bool is_own = g && g->where && own_is_of(&event->spec, g->own_uid);

        return is_own && !u->asks_process ? g->own_filter : u->filter; /* what asks for processes is one for all of a subscription */
}

int subscription_blame(const Subscription *u, const Event *event, int r, Explanation *e) {
        const SubscriptionGrant *g = u->grant;
        _cleanup_(match_program_unrefp) MatchProgram *program = NULL;
        Explanation own = EXPLANATION_NULL;
        char text[400];
        int own_r;

        if (r <= 0 || !g || !g->where || !e || subscription_filter(u, event) == g->own_filter)
                return r;
        own_r = g->own_filter ? filter_compile(g->own_filter, event->plan, event->spec.name, &program, &own) : 0;
        if (own_r != 0) {
                *e = own;
                return own_r;
        }
        (void)snprintf(text, sizeof(text), "%.390s", e->text);
        printable_make(text, sizeof(text)); /* it may be cut in a character */
        e->position = 0;
        return refuse(e, r, e->reason, "the predicate of the access rule that decides for you, and not your own, does not fit %.80s, which is "
                      "for perfd's administrator to correct: %s", event->spec.name, text);
}

/*
 * Both are whole conditions, so that neither can reach into the other; in the normal spelling, without escapes. *asked gets what
 * the client asks for.
 */
static int join_filter(const char *where, Subscription *u, Filter **asked, Explanation *e) {
        _cleanup_(filter_freep) Filter *rule = NULL;
        _cleanup_free_ char *own = NULL, *granted = NULL, *joined = NULL;
        int r = filter_parse(where, &rule, e);

        if (r != 0 || !u->filter) { /* it was parsed when the configuration was read */
                if (r == 0)
                        u->filter = TAKE_PTR(rule);
                return r;
        }
        own = filter_canonical(u->filter);
        granted = filter_canonical(rule);
        if (!own || !granted || asprintf(&joined, "(%s) && (%s)", own, granted) < 0) {
                joined = NULL; /* asprintf(3) leaves it undefined */
                return error_origin(-ENOMEM);
        }
        filter_free(*asked);
        *asked = TAKE_PTR(u->filter);
        r = filter_parse(joined, &u->filter, e);
        if (r > 0) {
                e->position = 0; /* in what the client has not written */
                return refuse(e, r, "bad-expression", "`where` and that of the access rule, or of the connection's limit, are too "
                        "long together: use a shorter predicate");
        }
        return r;
}

/* The condition that the client asks for itself is kept for its own events, of which a limit leaves none, and for messages. */
static int join_filters(Subscription *u, Explanation *e) {
        _cleanup_(filter_freep) Filter *before = NULL;
        SubscriptionGrant *g = u->grant;
        int r = g->where ? join_filter(g->where, u, &g->own_filter, e) : 0;

        return r == 0 && g->within_where ? join_filter(g->within_where, u, g->where ? &before : &g->own_filter, e) : r;
}

static int check_names(const Access *a, const Subscription *u, Explanation *e) {
        const Strings *names = &u->patterns.list;
        char what[128], own[24];

        (void)snprintf(own, sizeof(own), "~%u/", (unsigned)a->uid);
        for (size_t i = 0; i < names->n; i++) {
                const char *name = names->items[i];

                if (name[strcspn(name, "*?[\\")] || access_has_samples(a, name) ||
                    (access_may_add(a) && strncmp(name, own, strlen(own)) == 0))
                        continue;
                (void)snprintf(what, sizeof(what), "to subscribe to %.80s", name);
                printable_make(what, sizeof(what)); /* it may be cut in a character */
                return access_refuse(a, what, e);
        }
        return 0;
}

static bool names_have(char *const *names, size_t n, const char *text) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(names[i], text) == 0)
                        return true;
        return false;
}

/* Side records are of the whole host, and no condition is asked of them. */
static bool has_side_records(const Access *a) {
        const ConfigRule *rule = a->rule;
        const Perfd__V1__Limit *limit = a->limit;

        return (!a->is_ruled || (rule && names_have(rule->subscribe.items, rule->subscribe.n, "*") && !rule->where)) &&
               (!limit || (names_have(limit->events, limit->n_events, "*") && !*limit->where));
}

static bool has_any_event(const Access *a) {
        return (!a->is_ruled || (a->rule && (a->rule->subscribe.n > 0 || access_may_add(a)))) && (!a->limit || a->limit->n_events > 0);
}

static int grant_new(const Access *a, SubscriptionGrant **ret) {
        SubscriptionGrant *g = *ret = calloc(1, sizeof(*g));
        char *all[] = { (char *)"*" };
        int r;

        if (!g)
                return error_origin(-ENOMEM);
        g->own_uid = access_may_add(a) ? a->uid : 0;
        r = a->is_ruled ? strings_copy(a->rule->subscribe.items, a->rule->subscribe.n, &g->events) : strings_copy(all, 1, &g->events);
        if (r == 0 && a->is_ruled)
                r = string_set(&g->where, a->rule->where);
        if (r == 0 && a->limit)
                r = strings_copy(a->limit->events, a->limit->n_events, &g->within);
        if (r == 0 && a->limit && *a->limit->where)
                r = string_set(&g->within_where, a->limit->where);
        return r;
}

/*
 * A stream by CPU takes a process for what it was known to be when the sample arrived, which for some time after a fork is the one
 * that had its pid before: that must not decide whose samples somebody gets.
 */
static int check_order(const Access *a, const char *where, const Perfd__V1__SubscribeRequest *q, Explanation *e) {
        _cleanup_(filter_freep) Filter *filter = NULL;
        int r = where && (StreamOrder)q->order == STREAM_BY_CPU ? filter_parse(where, &filter, e) : 0;

        if (r != 0 || !filter || !filter_asks_process(filter))
                return r;
        return access_refuse(a, "to subscribe by CPU, where a predicate that is joined to yours asks for the user, program, cgroup, "
                             "container or unit (subscribe in the order of time),", e);
}

int subscription_limit(Subscription *u, const Access *a, const Perfd__V1__SubscribeRequest *q, Explanation *e) {
        int r;

        if (!a->is_limited)
                return 0;
        if (!has_any_event(a))
                return access_refuse(a, "to subscribe", e);
        if (q->records != 0 && !has_side_records(a))
                return access_refuse(a, "to subscribe to side records, which needs all events without a predicate,", e);
        if (u->payload != PAYLOAD_FIELDS && !access_has_raw(a))
                return access_refuse(a, "to subscribe to raw bytes", e);
        r = check_names(a, u, e);
        if (r != 0)
                return r;
        r = grant_new(a, &u->grant);
        if (r == 0)
                r = check_order(a, u->grant->where, q, e) ?: check_order(a, u->grant->within_where, q, e);
        return r == 0 ? join_filters(u, e) : r;
}

/* ---- behind a reload --------------------------------------------------------------------------------------------- */

int subscriber_entry_remember_peer(SubscriberEntry *a, const Connection *c, Explanation *e) {
        a->is_ruled = access_is_ruled(connection_peer(c));
        return a->is_ruled ? connection_credentials(c, &a->peer, e) : 0;
}

static bool strings_have(const Strings *list, const char *text) {
        return names_have(list->items, list->n, text);
}

/* Whether all that a stream may ever select is granted: globs are not compared but as they are written. */
static bool rule_covers(const Access *a, const Subscription *u) {
        const ConfigRule *rule = a->rule;
        const Strings *asked = &u->patterns.list;
        bool covers = asked->n > 0 && u->n_globs == 0;
        char prefix[24], *own = access_may_add(a) ? prefix : NULL; /* of the names of its own events */

        (void)snprintf(prefix, sizeof(prefix), "~%u/", (unsigned)a->uid);
        if (strings_have(&rule->subscribe, "*"))
                return true;
        for (size_t i = 0; i < asked->n && covers; i++)
                covers = access_list_has(&rule->subscribe, asked->items[i]) ||
                         (own && strncmp(asked->items[i], own, strlen(own)) == 0);
        if (covers || !u->grant)
                return covers;
        for (size_t i = 0; i < u->grant->events.n; i++)
                if (!strings_have(&rule->subscribe, u->grant->events.items[i]))
                        return false;
        return true;
}

static bool has_interval(const Subscription *u) {
        for (size_t i = 0; i < u->n_routes; i++)
                if (u->routes[i].registration->event->spec.interval > 0 && !u->routes[i].registration->event->spec.is_granted)
                        return true;
        return false;
}

bool subscription_is_granted(const Subscription *u, const Access *a) {
        const char *where = u->grant ? u->grant->where : NULL;

        if (!a->is_ruled)
                return true;
        if (!a->rule || !rule_covers(a, u) || (u->records != 0 && !has_side_records(a)))
                return false;
        if (!a->rule->where)
                return true;
        return where && strcmp(where, a->rule->where) == 0 && !has_interval(u); /* one of its events has got an interval since */
}
