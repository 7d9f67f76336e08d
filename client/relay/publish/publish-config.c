/*
 * Names of hosts, streams and routes become parts of NATS subjects, so what NATS gives a meaning (dots, stars, spaces) is refused at
 * --check and not found by the server.
 */
#include "client/relay/publish/publish-config.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "client/relay/publish/publisher.h"
#include "client/relay/publish/server-url.h"
#include "config/config.h"
#include "config/document/node.h"
#include "config/parse/walk.h"
#include "config/text/words.h"
#include "daemon/base/array.h"
#include "daemon/base/glob.h"
#include "daemon/route/match.h"

#define NAME_MAX_BYTES 64

/* RecordKind, by its number. */
static const char *const kinds[] = {
#define RECORD_KIND(code, word) word,
#include "proto/record.def"
};

static bool name_is_token(const char *name) {
        size_t n = strlen(name);

        for (size_t i = 0; i < n; i++)
                if (!isalnum((unsigned char)name[i]) && name[i] != '-' && name[i] != '_')
                        return false;
        return n > 0 && n <= NAME_MAX_BYTES;
}

static void name_check_token(Build *b, ConfigPlace at, const char *what, const char *name) {
        if (!name_is_token(name))
                config_diagnostics_add(b->diagnostics, at, "%s: found %s, expected at most %d letters, digits, '-' and '_', because it "
                                       "becomes a part of NATS subjects", what, QUOTE(name), NAME_MAX_BYTES);
}

static const Node *item_at(const Node *section, const char *key, size_t i) {
        const Node *list = section->kind == NODE_MAP ? node_find(section, key) : NULL;

        return list && list->kind == NODE_LIST && i < list->n_children ? list->children[i] : list ? list : section;
}

void globs_check(Build *b, const Node *list, const char *key) {
        for (size_t i = 0; list && list->kind == NODE_LIST && i < list->n_children; i++) {
                const Node *item = list->children[i];
                Explanation e = EXPLANATION_NULL;

                if (item->kind == NODE_TEXT && glob_check(item->text, &e) != 0)
                        config_diagnostics_add(b->diagnostics, node_place(item, e.position), "%s: found %s, %s", key, QUOTE(item->text), e.text);
        }
}

static void records_check(Build *b, PublishRoute *route, const Node *section) {
        for (size_t i = 0; i < route->records.n; i++) {
                Nearest near = NEAREST_NULL;
                size_t kind = 0;

                while (kind < ARRAY_SIZE(kinds) && strcmp(kinds[kind], route->records.items[i]) != 0)
                        nearest_add(&near, route->records.items[i], kinds[kind++]);
                if (kind < ARRAY_SIZE(kinds))
                        route->kinds |= 1U << kind;
                else
                        config_diagnostics_add(b->diagnostics, item_at(section, "records", i)->at, "records: unknown kind of side record "
                                               "%s%s", QUOTE(route->records.items[i]), HINT(&near));
        }
}

static int route_check(Build *b, PublishRoute *route, const Node *section) {
        _cleanup_(filter_freep) Filter *filter = NULL;
        Explanation e = EXPLANATION_NULL;
        int r = route->where ? filter_parse(route->where, &filter, &e) ?: filter_check_names(filter, &e) : 0;

        if (r > 0)
                config_diagnostics_add(b->diagnostics, node_place(node_find(section, "where"), e.position), "where: %s", e.text);
        if (section->kind == NODE_MAP && node_find(section, "events") && route->events.n == 0)
                config_diagnostics_add(b->diagnostics, map_place(section, "events"), "events: found nothing, expected names of events or "
                                       "globs in a list");
        globs_check(b, section->kind == NODE_MAP ? node_find(section, "events") : NULL, "events");
        records_check(b, route, section);
        return r < 0 ? r : 0;
}

static int route_build(Build *b, PublishConfig *p, const Node *key, const Node *section) {
        PublishRoute *route;
        int r;

        if (!ARRAY_ROOM(p->routes, p->n_routes))
                return error_origin(-ENOMEM);
        route = &p->routes[p->n_routes++];
        *route = (PublishRoute){ .at = key->at, .queue = (uint64_t)8 << 20, .name = strdup(key->text) };
        if (!route->name)
                return error_origin(-ENOMEM);
        name_check_token(b, key->at, "name of a route", route->name);
        if (strcmp(route->name, "status") == 0)
                config_diagnostics_add(b->diagnostics, key->at, "name of a route: 'status' is reserved for the state of the host; choose "
                                       "another one");
        r = section_build(b, "publish.routes.NAME", section, route);
        return r == 0 ? route_check(b, route, section) : r;
}

int publish_routes_build(Build *b, const Key *k, const Node *map, void *object) {
        PublishConfig *p = (PublishConfig *)((char *)object + k->offset);
        int r = 0;

        if (map->kind != NODE_MAP) {
                node_refuse(b, map, k->pattern, k->range);
                return 0;
        }
        if (map->n_children == 0)
                config_diagnostics_add(b->diagnostics, map->at, "%s: found nothing, expected %s", k->pattern, k->range);
        for (size_t i = 0; i + 1 < map->n_children && r == 0; i += 2) {
                if (p->n_routes >= PUBLISH_ROUTES_MAX) {
                        config_diagnostics_add(b->diagnostics, map->children[i]->at, "%s: at most %d", k->pattern, PUBLISH_ROUTES_MAX);
                        break;
                }
                r = route_build(b, p, map->children[i], map->children[i + 1]);
        }
        return r;
}

bool publish_has_secret(const PublishConfig *p) {
        bool has_secret = false;

        for (size_t i = 0; i < p->access.servers.n; i++) {
                ServerUrl url;

                has_secret = has_secret || (!server_url_parse(p->access.servers.items[i], &url) && url.has_user_info);
                server_url_forget(&url);
        }
        return has_secret;
}

/* By what the relay shows who it is: one of these. */
static void identity_check(Build *b, const Node *section, const PublishConfig *p) {
        const struct {
                const char *key, *value;
        } keys[] = { { "credentials", p->access.credentials }, { "user", p->access.user }, { "token-file", p->access.token_file } };
        const char *first = publish_has_secret(p) ? "user information in publish.servers" : NULL;

        for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
                if (keys[i].value && first)
                        config_diagnostics_add(b->diagnostics, map_place(section, keys[i].key), "publish.%s: the relay is one to a server, and "
                                               "there is %s already; remove one of them", keys[i].key, first);
                if (keys[i].value && !first)
                        first = (const char *const[]){ "publish.credentials", "publish.user", "publish.token-file" }[i];
        }
        if (p->access.user && secret_refuse(p->access.user))
                config_diagnostics_add(b->diagnostics, map_place(section, "user"), "publish.user: found a name %s", secret_refuse(p->access.user));
}

/* Neither is of use without the other. */
static void pair_check(Build *b, const Node *section, const char *one, const char *other, const char *value, const char *other_value) {
        if (value && !other_value && !node_find(section, other))
                config_diagnostics_add(b->diagnostics, map_place(section, one), "publish.%s: it needs publish.%s beside it", one, other);
        if (!value && other_value && !node_find(section, one))
                config_diagnostics_add(b->diagnostics, map_place(section, other), "publish.%s: it needs publish.%s beside it", other, one);
}

/* A password that goes to another host as it is; one that is not in relay.yaml is sent all the same. */
static void warn_of_clear_text(Build *b, ConfigPlace at, const PublishConfig *p, const ServerUrl *url) {
        if (!url->is_tls && !server_url_is_loopback(url) && (url->has_user_info || p->access.user || p->access.token_file))
                config_diagnostics_add_warning(b->diagnostics, at, "publish.servers: the password or token is sent without encryption to "
                                               "%s if that does not require TLS; write tls://", QUOTE(url->address));
}

static void servers_check(Build *b, const Node *section, const PublishConfig *p) {
        bool has_tls = false;

        for (size_t i = 0; i < p->access.servers.n; i++) {
                const ConfigPlace at = item_at(section, "servers", i)->at;
                ServerUrl url;
                const char *no = server_url_parse(p->access.servers.items[i], &url);

                if (no)
                        config_diagnostics_add(b->diagnostics, at, "publish.servers: found %s, %s; expected an address such as "
                                               "'nats://127.0.0.1:4222' or 'tls://nats.example:4222'", QUOTE(p->access.servers.items[i]), no);
                else
                        warn_of_clear_text(b, at, p, &url);
                has_tls = has_tls || url.is_tls;
                server_url_forget(&url);
        }
        if (p->access.servers.n == 0 && node_find(section, "servers") && node_find(section, "servers")->kind == NODE_LIST)
                config_diagnostics_add(b->diagnostics, map_place(section, "servers"), "publish.servers: found nothing, expected addresses "
                                       "such as 'nats://127.0.0.1:4222' in a list");
        if (has_tls && !node_find(section, "ca"))
                config_diagnostics_add(b->diagnostics, section->at, "key 'ca' is missing, which tls:// in publish.servers needs: the CA that "
                                       "has signed the certificates of servers; /etc/ssl/certs/ca-certificates.crt has those of the Web");
}

static void spool_check(Build *b, const Node *section) {
        const Node *spool = node_find(section, "spool");

        if (spool && spool->kind == NODE_MAP && node_find(spool, "disk") && !node_find(spool, "path"))
                config_diagnostics_add(b->diagnostics, map_place(spool, "disk"), "publish.spool.disk: it has no effect without "
                                       "'path', the directory of these files");
}

/* A dot would begin the next part of a subject. */
static int host_set_default(PublishConfig *p) {
        char name[NAME_MAX_BYTES + 1] = "";

        (void)gethostname(name, sizeof(name) - 1); /* truncated: as good */
        for (char *c = name; *c; c++)
                if (!isalnum((unsigned char)*c) && *c != '-')
                        *c = '_';
        p->host = strdup(name[0] ? name : "localhost");
        return p->host ? 0 : error_origin(-ENOMEM);
}

int publish_check(Build *b, const Node *root, PublishConfig *p) {
        const Node *section = root && root->kind == NODE_MAP ? node_find(root, "publish") : NULL;

        if (!section || section->kind != NODE_MAP)
                return 0;
        if (!nats_is_built())
                config_diagnostics_add(b->diagnostics, section->at, "publish: this perfd-relay was built without NATS; build it again with "
                                       "the Debian package libnats-dev installed, or remove this key");
        servers_check(b, section, p);
        identity_check(b, section, p);
        pair_check(b, section, "user", "password-file", p->access.user, p->access.password_file);
        pair_check(b, section, "certificate", "key", p->access.certificate, p->access.key);
        spool_check(b, section);
        if (p->stream && node_find(section, "stream"))
                name_check_token(b, map_place(section, "stream"), "publish.stream", p->stream);
        if (p->host)
                name_check_token(b, map_place(section, "host"), "publish.host", p->host);
        return p->host ? 0 : host_set_default(p);
}

static bool texts_equal(const char *a, const char *b) {
        return a && b ? strcmp(a, b) == 0 : a == b;
}

bool publish_config_equal(const PublishConfig *a, const PublishConfig *b) {
        bool is_equal = a->n_routes == b->n_routes && texts_equal(a->stream, b->stream) &&
                        texts_equal(a->host, b->host) && a->max_bytes == b->max_bytes && a->max_age == b->max_age && a->spool == b->spool &&
                        texts_equal(a->spool_path, b->spool_path) && a->spool_disk == b->spool_disk;

        for (size_t i = 0; is_equal && i < a->n_routes; i++) {
                const PublishRoute *x = &a->routes[i], *y = &b->routes[i];

                is_equal = texts_equal(x->name, y->name) && strings_equal(&x->events, &y->events) && texts_equal(x->where, y->where) &&
                           strings_equal(&x->fields, &y->fields) && strings_equal(&x->records, &y->records) && x->queue == y->queue;
        }
        return is_equal;
}
