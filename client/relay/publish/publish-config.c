/*
 * Names of hosts, streams and routes become parts of NATS subjects, so what NATS gives a meaning (dots, stars, spaces) is refused at
 * --check and not found by the server.
 */
#include "client/relay/publish/publish-config.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "client/relay/publish/publisher.h"
#include "config/config.h"
#include "config/document/node.h"
#include "config/parse/walk.h"
#include "config/text/words.h"
#include "daemon/base/array.h"
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

static void servers_check(Build *b, const Node *section, const PublishConfig *p) {
        for (size_t i = 0; i < p->servers.n; i++) {
                const char *url = p->servers.items[i];

                if (strncmp(url, "nats://", strlen("nats://")) != 0 || url[strlen("nats://")] == '\0' || strchr(url, ','))
                        config_diagnostics_add(b->diagnostics, item_at(section, "servers", i)->at, "publish.servers: found %s, expected "
                                               "an address such as 'nats://127.0.0.1:4222'", QUOTE(url));
        }
        if (p->servers.n == 0 && node_find(section, "servers"))
                config_diagnostics_add(b->diagnostics, map_place(section, "servers"), "publish.servers: found nothing, expected addresses "
                                       "such as 'nats://127.0.0.1:4222' in a list");
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
        bool is_equal = a->n_routes == b->n_routes && strings_equal(&a->servers, &b->servers) && texts_equal(a->stream, b->stream) &&
                        texts_equal(a->host, b->host) && a->max_bytes == b->max_bytes && a->max_age == b->max_age && a->spool == b->spool;

        for (size_t i = 0; is_equal && i < a->n_routes; i++) {
                const PublishRoute *x = &a->routes[i], *y = &b->routes[i];

                is_equal = texts_equal(x->name, y->name) && strings_equal(&x->events, &y->events) && texts_equal(x->where, y->where) &&
                           strings_equal(&x->fields, &y->fields) && strings_equal(&x->records, &y->records) && x->queue == y->queue;
        }
        return is_equal;
}
