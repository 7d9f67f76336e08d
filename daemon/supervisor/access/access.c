/*
 * Who may what. A client is its uid, its gid and its groups at the moment of connect(2), as the kernel keeps them with the socket
 * (SO_PEERCRED, SO_PEERGROUPS): they came from the system's database when it logged in, and nobody has to ask that database,
 * which may be on another machine, in the middle of perfd's own thread.
 */
#include "daemon/supervisor/access/access.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/base/fd-limit.h"
#include "daemon/base/thread.h"
#include "daemon/route/match.h"

#define LIMIT_EVENTS_MAX 256 /* each is compared with the names of all events */

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

Access access_for(const Config *config, const Credentials *who) {
        Access a = { .is_limited = config->n_rules > 0, .is_ruled = config->n_rules > 0, .uid = who->uid };

        for (size_t i = 0; i < config->n_rules && !a.rule; i++)
                if (rule_is_for(&config->rules[i], who)) {
                        a.rule = &config->rules[i];
                        a.number = i + 1;
                }
        return a;
}

bool access_is_ruled(const Peer *peer) {
        return !peer->may_change && peer->uid != 0;
}

int access_of(const Config *config, const Connection *c, Access *ret, Explanation *e) {
        _cleanup_(credentials_deinit) Credentials own = CREDENTIALS_NULL;
        int r = 0;

        thread_assert(THREAD_MAIN);
        *ret = ACCESS_ALL;
        if (config->n_rules > 0 && access_is_ruled(connection_peer(c))) {
                r = connection_credentials(c, &own, e);
                if (r == 0)
                        *ret = access_for(config, &own);
        }
        ret->limit = connection_limit(c);
        ret->is_limited |= ret->limit != NULL;
        return r;
}

static bool names_match(char *const *names, size_t n, const char *name) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(names[i], name) == 0 || fnmatch(names[i], name, 0) == 0)
                        return true;
        return false;
}

bool access_list_has(const Strings *list, const char *name) {
        return names_match(list->items, list->n, name);
}

bool access_has_status(const Access *a) {
        return (!a->is_ruled || (a->rule && a->rule->status)) && (!a->limit || a->limit->status);
}

bool access_has_samples(const Access *a, const char *name) {
        return (!a->is_ruled || (a->rule && access_list_has(&a->rule->subscribe, name))) &&
               (!a->limit || names_match(a->limit->events, a->limit->n_events, name));
}

bool access_has_raw(const Access *a) {
        return !a->limit || a->limit->raw;
}

bool access_has_all_samples(const Access *a, const char *name) {
        return access_has_samples(a, name) && !(a->rule && a->rule->where) && !(a->limit && *a->limit->where);
}

bool access_has_counts(const Access *a, const char *name) {
        return access_has_status(a) || access_has_all_samples(a, name);
}

bool access_may_add(const Access *a) {
        return !a->limit && a->rule && (a->rule->stat || a->rule->own_processes);
}

bool access_may_emit(const Access *a, const char *name) {
        return !a->limit && (!a->is_ruled || (a->rule && access_list_has(&a->rule->emit, name)));
}

/* "status, to subscribe to sched:* and external:*": who is refused sees what is granted to him. */
static void put_part(char *to, size_t size, const char *what, const Strings *list) {
        size_t n = strlen(to);

        if (n + 1 < size)
                (void)snprintf(to + n, size - n, "%s%s", n > 0 ? ", " : "", what);
        for (size_t i = 0; list && i < list->n; i++) {
                n = strlen(to);
                if (n + 1 < size)
                        (void)snprintf(to + n, size - n, "%s%s", i == 0 ? " " : " and ", list->items[i]);
        }
}

static void put_grants(char *to, size_t size, const ConfigRule *rule) {
        *to = '\0';
        if (rule->status)
                put_part(to, size, "status", NULL);
        if (rule->subscribe.n > 0)
                put_part(to, size, "to subscribe to", &rule->subscribe);
        if (rule->emit.n > 0)
                put_part(to, size, "to emit", &rule->emit);
        if (rule->stat)
                put_part(to, size, "stat", NULL);
        if (rule->own_processes)
                put_part(to, size, "events on your own processes", NULL);
        if (!*to)
                put_part(to, size, "nothing", NULL);
        if (strlen(to) == size - 1)
                memcpy(to + size - 4, "...", 4);
}

int access_refuse(const Access *a, const char *what, Explanation *e) {
        char grants[200];

        if (a->limit)
                return refuse(e, REFUSED_DENIED, "not-granted", "%s is not granted to %s on this connection, which its first request "
                              "has limited%s: a relay takes the limit from `clients` of relay.yaml(5)", what,
                              *a->limit->name ? a->limit->name : "you", a->is_ruled ? ", and which access.rules may limit too" : "");
        if (!a->rule)
                return refuse(e, REFUSED_DENIED, "not-granted", "%s is not granted: no rule of access.rules in perfd's "
                        "configuration matches uid %u or one of its groups; perfd's administrator can write one, see perfd.yaml(5), "
                        "Access rules", what, (unsigned)a->uid);
        put_grants(grants, sizeof(grants), a->rule);
        return refuse(e, REFUSED_DENIED, "not-granted", "%s is not granted to uid %u: rule %zu of access.rules decides "
                      "(%s:%u), which grants %s; see perfd.yaml(5), Access rules", what, (unsigned)a->uid, a->number,
                      a->rule->at.path, a->rule->at.line, grants);
}

int access_refuse_change(const Access *a, const char *what, Explanation *e) {
        return refuse(e, REFUSED_DENIED, "not-granted", "%s is not granted to %s on this connection, which its first request has limited "
                      "to reading events that run: a relay does that for each client without 'control: true' in relay.yaml(5)", what,
                      *a->limit->name ? a->limit->name : "you");
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
        _cleanup_free_ char *path = NULL;
        char *place = NULL;
        int r;

        if (!m)
                return error_origin(-ENOMEM);
        perfd__v1__access__init(m);
        *ret = m;
        m->limited = a->is_limited;
        m->status = access_has_status(a);
        if (a->limit && !(m->limit = limit_copy(a->limit)))
                return error_origin(-ENOMEM);
        if (!rule)
                return 0;
        m->rule = (uint32_t)a->number;
        path = realpath(rule->at.path, NULL); /* it is as on the command line before the first reload */
        if (asprintf(&place, "%s:%u", path ? path : rule->at.path, rule->at.line) < 0)
                return error_origin(-ENOMEM);
        m->place = place;
        m->stat = rule->stat && !a->limit;
        m->own_processes = rule->own_processes && !a->limit;
        if (rule->where && !(m->where = strdup(rule->where)))
                return error_origin(-ENOMEM);
        r = strings_message(&rule->subscribe, &m->subscribe, &m->n_subscribe);
        return r == 0 && !a->limit ? strings_message(&rule->emit, &m->emit, &m->n_emit) : r;
}

/* ---- the limit of a connection ----------------------------------------------------------------------------------- */

int access_check_limit(const Perfd__V1__Limit *limit, Explanation *e) {
        _cleanup_(filter_freep) Filter *filter = NULL;

        if (limit->n_events > LIMIT_EVENTS_MAX)
                return refuse(e, REFUSED_INVALID, "bad-request", "a limit names %zu events, and may name %d: use globs",
                              limit->n_events, LIMIT_EVENTS_MAX);
        return *limit->where ? filter_parse(limit->where, &filter, e) ?: filter_check_names(filter, e) : 0;
}

/* ---- the configuration ------------------------------------------------------------------------------------------- */

int access_check(const Config *c, ConfigDiagnostics *m) {
        for (size_t i = 0; i < c->n_rules; i++) {
                const ConfigRule *rule = &c->rules[i];
                _cleanup_(filter_freep) Filter *filter = NULL;
                Explanation e = EXPLANATION_NULL;
                int r = rule->where ? filter_parse(rule->where, &filter, &e) ?: filter_check_names(filter, &e) : 0;

                if (r < 0)
                        return r;
                if (r > 0)
                        config_diagnostics_add(m, rule->where_at, "where: at byte %u: %s", e.position, e.text);
        }
        return 0;
}
