/*
 * Who may what. A client is its uid, its gid and its groups at the moment of connect(2), as the kernel keeps them with the socket
 * (SO_PEERCRED, SO_PEERGROUPS): they came from the system's database when it logged in, and nobody has to ask that database,
 * which may be on another machine, in the middle of perfd's own thread.
 *
 * The decision to doubt is that a rule's predicate is put in front of readers as a part of the client's own condition, instead of
 * being asked at the end of the way: so what is not granted never leaves the CPU on which it happened, and nothing is asked
 * twice.
 */
#include "daemon/supervisor/requests/access.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/fd-limit.h"
#include "daemon/base/log.h"
#include "daemon/base/printable.h"
#include "daemon/supervisor/ledger/ledger.h"
#include "daemon/supervisor/events/own.h"
#include "daemon/supervisor/requests/requests.h"

static bool ids_have(const uint32_t *ids, size_t n, uint32_t id) {
        for (size_t i = 0; i < n; i++)
                if (ids[i] == id)
                        return true;
        return false;
}

static bool rule_is_for(const ConfigRule *rule, const Credentials *c) {
        bool is_for = (rule->users.n == 0 && rule->groups.n == 0) || ids_have(rule->uids, rule->n_uids, c->uid) ||
                      ids_have(rule->gids, rule->n_gids, c->gid);

        for (size_t i = 0; i < c->n_groups && !is_for; i++)
                is_for = ids_have(rule->gids, rule->n_gids, c->groups[i]);
        return is_for;
}

static Access access_for(const Config *config, const Credentials *who) {
        Access a = { .is_limited = config->n_rules > 0, .uid = who->uid };

        for (size_t i = 0; i < config->n_rules && !a.rule; i++)
                if (rule_is_for(&config->rules[i], who)) {
                        a.rule = &config->rules[i];
                        a.number = i + 1;
                }
        return a;
}

static bool peer_is_ruled(const Peer *peer) {
        return !peer->may_change && peer->uid != 0;
}

int access_of(const Supervisor *s, const Connection *c, Access *ret, Explanation *e) {
        _cleanup_(credentials_deinit) Credentials own = CREDENTIALS_NULL;
        int r;

        thread_assert(THREAD_MAIN);
        if (s->access->n_rules == 0 || !peer_is_ruled(connection_peer(c))) {
                *ret = ACCESS_ALL;
                return 0;
        }
        r = connection_credentials(c, &own, e);
        if (r == 0)
                *ret = access_for(s->access, &own);
        return r;
}

static bool list_has(const Strings *list, const char *name) {
        for (size_t i = 0; i < list->n; i++)
                if (strcmp(list->items[i], name) == 0 || fnmatch(list->items[i], name, 0) == 0)
                        return true;
        return false;
}

bool access_has_status(const Access *a) {
        return !a->is_limited || (a->rule && a->rule->status);
}

bool access_has_samples(const Access *a, const char *name) {
        return !a->is_limited || (a->rule && list_has(&a->rule->subscribe, name));
}

bool access_may_add(const Access *a) {
        return a->is_limited && a->rule && (a->rule->stat || a->rule->own_processes);
}

bool access_may_emit(const Access *a, const char *name) {
        return !a->is_limited || (a->rule && list_has(&a->rule->emit, name));
}

int access_refuse(const Access *a, const char *what, Explanation *e) {
        if (!a->rule)
                return refuse(e, REFUSED_DENIED, "not-granted", "%s is not granted: no rule of access.rules in perfd's "
                              "configuration is for uid %u or one of its groups", what, (unsigned)a->uid);
        return refuse(e, REFUSED_DENIED, "not-granted", "%s is not granted to uid %u: rule %zu of access.rules decides "
                      "(%s:%u); `perfctl status` says what it grants", what, (unsigned)a->uid, a->number,
                      a->rule->at.path, a->rule->at.line);
}

/* proc(5): the owner of a folder of /proc/PID/task is the thread's effective uid. */
int access_check_emitter(const Access *a, uint32_t pid, uint32_t tid, Explanation *e) {
        WITH_FD_RESERVE;
        char path[64];
        struct stat st;

        if (!a->is_limited || (pid == 0 && tid == 0))
                return 0;
        (void)snprintf(path, sizeof(path), "/proc/%u/task/%u", pid, tid);
        if (stat(path, &st) == 0 && st.st_uid == a->uid)
                return 0;
        (void)snprintf(path, sizeof(path), "a sample about thread %u of process %u, which is not your own,", tid, pid);
        return access_refuse(a, path, e);
}

static int strings_message(const Strings *from, char ***ret, size_t *ret_n) {
        *ret = calloc(from->n + 1, sizeof(**ret));
        if (!*ret)
                return error_origin(-ENOMEM);
        for (; *ret_n < from->n; (*ret_n)++)
                if (!((*ret)[*ret_n] = strdup(from->items[*ret_n])))
                        return error_origin(-ENOMEM);
        return 0;
}

int access_message(const Access *a, Perfd__V1__Access **ret) {
        Perfd__V1__Access *m = malloc(sizeof(*m));
        const ConfigRule *rule = a->rule;
        char *place = NULL;
        int r;

        if (!m)
                return error_origin(-ENOMEM);
        perfd__v1__access__init(m);
        *ret = m;
        m->limited = a->is_limited;
        m->status = access_has_status(a);
        if (!rule)
                return 0;
        m->rule = (uint32_t)a->number;
        if (asprintf(&place, "%s:%u", rule->at.path, rule->at.line) < 0)
                return error_origin(-ENOMEM);
        m->place = place;
        m->stat = rule->stat;
        m->own_processes = rule->own_processes;
        r = string_set(&m->where, rule->where);
        if (r == 0)
                r = strings_message(&rule->subscribe, &m->subscribe, &m->n_subscribe);
        return r == 0 ? strings_message(&rule->emit, &m->emit, &m->n_emit) : r;
}

/* ---- subscriptions ----------------------------------------------------------------------------------------------- */

bool subscription_grants(const Subscription *u, const Event *event) {
        const SubscriptionGrant *g = u->grant;

        if (!g || own_is_of(&event->spec, g->own_uid))
                return true;
        if (g->where && event->spec.interval > 0) /* no condition is asked of its counts */
                return false;
        return list_has(&g->events, event->spec.name);
}

SubscriptionGrant *subscription_grant_free(SubscriptionGrant *g) {
        if (!g)
                return NULL;
        strings_deinit(&g->events);
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

/* Both are whole conditions, so that neither can reach into the other; in the normal spelling, without escapes. */
static int join_filter(const char *where, Subscription *u, Explanation *e) {
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
        u->grant->own_filter = TAKE_PTR(u->filter);
        r = filter_parse(joined, &u->filter, e);
        if (r > 0) {
                e->position = 0; /* in what the client has not written */
                return refuse(e, r, "bad-expression", "`where` and what the rule of access.rules joins to it are too "
                              "long together: use a shorter condition");
        }
        return r;
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

/* Side records are of the whole host, and no condition is asked of them. */
static bool has_side_records(const ConfigRule *rule) {
        bool all = false;

        for (size_t i = 0; i < rule->subscribe.n; i++)
                all = all || strcmp(rule->subscribe.items[i], "*") == 0;
        return all && !rule->where;
}

int access_limit(const Access *a, uint32_t records, Subscription *u, Explanation *e) {
        int r;

        if (!a->is_limited)
                return 0;
        if (!a->rule || (a->rule->subscribe.n == 0 && !access_may_add(a)))
                return access_refuse(a, "to subscribe", e);
        if (records != 0 && !has_side_records(a->rule))
                return access_refuse(a, "to subscribe to side records, which needs all events without a predicate,", e);
        r = check_names(a, u, e);
        if (r != 0)
                return r;
        u->grant = calloc(1, sizeof(*u->grant));
        if (!u->grant)
                return error_origin(-ENOMEM);
        u->grant->own_uid = access_may_add(a) ? a->uid : 0;
        r = strings_copy(a->rule->subscribe.items, a->rule->subscribe.n, &u->grant->events);
        if (r == 0)
                r = string_set(&u->grant->where, a->rule->where);
        return r == 0 && a->rule->where ? join_filter(a->rule->where, u, e) : r;
}

/* ---- behind a reload --------------------------------------------------------------------------------------------- */

int access_remember(const Connection *c, Admission *a, Explanation *e) {
        a->is_ruled = peer_is_ruled(connection_peer(c));
        return a->is_ruled ? connection_credentials(c, &a->peer, e) : 0;
}

static bool strings_have(const Strings *list, const char *text) {
        for (size_t i = 0; i < list->n; i++)
                if (strcmp(list->items[i], text) == 0)
                        return true;
        return false;
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
                covers = list_has(&rule->subscribe, asked->items[i]) || (own && strncmp(asked->items[i], own, strlen(own)) == 0);
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

static bool is_still_granted(const Access *a, const Subscription *u) {
        const char *where = u->grant ? u->grant->where : NULL;

        if (!a->is_limited)
                return true;
        if (!a->rule || !rule_covers(a, u) || (u->records != 0 && !has_side_records(a->rule)))
                return false;
        if (!a->rule->where)
                return true;
        return where && strcmp(where, a->rule->where) == 0 && !has_interval(u); /* one of its events has got an interval since */
}

/* Each once: the dispatcher takes a moment to end them. */
static int end_streams(Supervisor *s) {
        StreamEnd *ends = NULL;
        size_t n = 0;
        int r;

        for (Admission *a = s->admissions; a; a = a->next) {
                const Access access = a->is_ruled ? access_for(s->access, &a->peer) : ACCESS_ALL;
                StreamEnd *more;

                if (a->is_ending || is_still_granted(&access, s->by_number[a->number]))
                        continue;
                more = reallocarray(ends, n + 1, sizeof(*more));
                if (!more) {
                        free(ends);
                        return error_origin(-ENOMEM);
                }
                ends = more;
                ends[n++] = (StreamEnd){ .id = a->id, .reason = "not-granted" };
                a->is_ending = true;
                log_print(LOG_NOTICE, MESSAGE_ACCESS_ENDED,
                          "the stream of subscriber %llu ends: the rules of access for uid %u are others now",
                          (unsigned long long)a->id, (unsigned)a->peer.uid);
        }
        r = n > 0 ? supervisor_close_streams(s, ends, n) : 0;
        free(ends);
        return r;
}

int access_change(Supervisor *s, Config *c) {
        Config *before = s->access;

        s->access = config_ref(c);
        config_unref(before);
        own_recheck(s);
        return end_streams(s);
}

/* ---- the configuration ------------------------------------------------------------------------------------------- */

int access_check(const Config *c, ConfigDiagnostics *m) {
        for (size_t i = 0; i < c->n_rules; i++) {
                const ConfigRule *rule = &c->rules[i];
                _cleanup_(filter_freep) Filter *filter = NULL;
                Explanation e = EXPLANATION_NULL;
                int r = rule->where ? filter_parse(rule->where, &filter, &e) : 0;

                if (r < 0)
                        return r;
                if (r > 0)
                        config_diagnostics_add(m, rule->where_at, "where: at byte %u: %s", e.position, e.text);
        }
        return 0;
}
