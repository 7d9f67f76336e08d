/*
 * A relay.yaml with an error is read to its end all the same, and the files that it names are looked at too, so that one run says
 * everything. Predicates are parsed by perfd's parser, because perfd could only say that one is wrong to the first client that comes;
 * what they mean, and whether events have their fields, remains perfd's to say.
 */
#include "client/relay/relay-config.h"

#include <string.h>

#include "client/relay/endpoint.h"
#include "config/config.h"
#include "config/document/node.h"
#include "config/parse/file.h"
#include "config/parse/walk.h"
#include "config/text/words.h"
#include "config/value.h"
#include "daemon/base/array.h"
#include "daemon/base/glob.h"
#include "daemon/route/match.h"

static const char of_file[] = "", of_rule[] = "clients[].", of_route[] = "publish.routes.NAME.";

/* Which of these a key's value is a part of. */
static const char *key_part(const Key *k) {
        return strncmp(k->pattern, of_rule, strlen(of_rule)) == 0 ? of_rule
               : strncmp(k->pattern, of_route, strlen(of_route)) == 0 ? of_route : of_file;
}

static bool key_has_value(const Key *k) {
        return k->type != KEY_SECTION && k->type != KEY_RULES && k->type != KEY_NAMED;
}

static int set_defaults(const char *part, void *object) {
        Explanation e;
        int r = 0;

        for (size_t i = 0; i < n_relay_keys && r == 0; i++)
                if (relay_keys[i].default_text && key_part(&relay_keys[i]) == part)
                        r = value_decode(&relay_keys[i], relay_keys[i].default_text, object, &e);
        return r;
}

static void values_free(const char *part, void *object) {
        for (size_t i = 0; i < n_relay_keys; i++)
                if (key_has_value(&relay_keys[i]) && key_part(&relay_keys[i]) == part)
                        value_deinit(&relay_keys[i], object);
}

RelayConfig *relay_config_free(RelayConfig *c) {
        for (size_t i = 0; i < c->n_rules; i++) {
                pattern_free(c->rules[i].glob);
                values_free(of_rule, &c->rules[i]);
        }
        free(c->rules);
        for (size_t i = 0; i < c->publish.n_routes; i++) {
                free(c->publish.routes[i].name);
                values_free(of_route, &c->publish.routes[i]);
        }
        free(c->publish.routes);
        values_free(of_file, c);
        free(c->path);
        free(c);
        return NULL;
}

ConfigPlace relay_config_place(const RelayConfig *c, const char *pattern) {
        for (size_t i = 0; i < n_relay_keys; i++)
                if (strcmp(relay_keys[i].pattern, pattern) == 0 && c->set_at[i].path)
                        return c->set_at[i];
        return (ConfigPlace){ .path = c->path };
}

/* With `control` perfd is told no limit, so what stands beside it would be believed and not hold. */
static void control_check(Build *b, const RelayRule *rule, const Node *item) {
        static const char *const limits[] = { "where", "status", "raw", "queue" };

        for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
                ConfigPlace at = map_place(item, limits[i]);

                if (at.path)
                        config_diagnostics_add(b->diagnostics, at, "%s: it has no effect with 'control: true', by which the client may do "
                                "everything; remove one of them", limits[i]);
        }
        for (size_t i = 0; i < rule->events.n; i++)
                if (strcmp(rule->events.items[i], "*") != 0) {
                        config_diagnostics_add(b->diagnostics, map_place(item, "events"), "events: found %s, which has no effect with "
                                "'control: true', by which the client may do everything; remove one of them, or write ['*']",
                                               QUOTE(rule->events.items[i]));
                        return;
                }
}

static int where_check(Build *b, const RelayRule *rule, const Node *where) {
        _cleanup_(filter_freep) Filter *filter = NULL;
        Explanation e = EXPLANATION_NULL;
        int r = filter_parse(rule->where, &filter, &e) ?: filter_check_names(filter, &e);

        if (r > 0)
                config_diagnostics_add(b->diagnostics, node_place(where, e.position), "where: %s", e.text);
        return r < 0 ? r : 0;
}

static int rule_check(Build *b, RelayRule *rule, const Node *item) {
        const Node *name = node_find(item, "name");
        Explanation e = EXPLANATION_NULL;
        int r = 0;

        if (rule->events.n > CONFIG_GRANTS_MAX)
                config_diagnostics_add(b->diagnostics, map_place(item, "events"), "events: found %zu, expected at most %d; use globs",
                                       rule->events.n, CONFIG_GRANTS_MAX);
        if (rule->control)
                control_check(b, rule, item);
        else if (rule->where)
                r = where_check(b, rule, node_find(item, "where"));
        if (!rule->control && rule->where && rule->events.n == 0)
                config_diagnostics_add(b->diagnostics, map_place(item, "where"), "where: it has no effect without 'events'");
        globs_check(b, node_find(item, "events"), "events");
        if (r == 0 && rule->name)
                r = glob_check(rule->name, &e) ?: glob_compile(rule->name, &rule->glob, &e);
        if (r > 0)
                config_diagnostics_add(b->diagnostics, node_place(name, e.position), "name: found %s, %s", QUOTE(rule->name), e.text);
        return r < 0 ? r : 0;
}

static int rule_build(Build *b, RelayConfig *c, const Node *item) {
        RelayRule *rule;
        int r;

        if (item->kind != NODE_MAP) {
                node_refuse(b, item, "clients", "a mapping with keys such as 'name' and 'events'");
                return 0;
        }
        if (!ARRAY_ROOM(c->rules, c->n_rules))
                return error_origin(-ENOMEM);
        rule = &c->rules[c->n_rules++];
        *rule = (RelayRule){ .at = item->at };
        r = set_defaults(of_rule, rule);
        if (r == 0)
                r = section_build(b, "clients[]", item, rule);
        return r == 0 ? rule_check(b, rule, item) : r;
}

/*
 * Whether what matches `name` matches the rule too. Of a glob that is sure if it is the same, or the rule's only wildcards are stars:
 * these match what another glob is written with as they match what that stands for.
 */
static bool rule_covers(const RelayRule *rule, const char *name) {
        if (!rule->glob || !rule->name)
                return false;
        if (text_is_glob(name) && strpbrk(rule->name, "?[\\"))
                return strcmp(rule->name, name) == 0;
        return glob_match(rule->glob, name);
}

/* The first item that matches decides, so one behind it that only matches the same names never does. */
static void order_check(Build *b, const RelayConfig *c, const Node *item) {
        const RelayRule *last = &c->rules[c->n_rules - 1];

        for (size_t i = 0; i + 1 < c->n_rules && last->name; i++)
                if (rule_covers(&c->rules[i], last->name)) {
                        config_diagnostics_add_warning(b->diagnostics, map_place(item, "name"), "name: the item of %s, in line %u, matches "
                                "what %s does, and decides, because it is first: put this one before it", QUOTE(c->rules[i].name),
                                c->rules[i].at.line, QUOTE(last->name));
                        return;
                }
}

static int rules_build(Build *b, const Key *k, const Node *list, void *object) {
        RelayConfig *c = object;
        int r = 0;

        if (list->kind != NODE_LIST)
                node_refuse(b, list, key_label(k), k->range);
        else if (list->n_children == 0)
                config_diagnostics_add(b->diagnostics, list->at, "%s: found nothing, expected %s", key_label(k), k->range);
        for (size_t i = 0; list->kind == NODE_LIST && i < list->n_children && r == 0; i++) {
                if (i >= RELAY_RULES_MAX) {
                        config_diagnostics_add(b->diagnostics, list->children[i]->at, "%s: at most %d", key_label(k), RELAY_RULES_MAX);
                        break;
                }
                r = rule_build(b, c, list->children[i]);
                if (r == 0 && c->n_rules > 0 && list->children[i]->kind == NODE_MAP)
                        order_check(b, c, list->children[i]);
        }
        return r;
}

/* The items of a list in a section; NULL: there is none. */
static const Node *find_list(const Node *root, const char *section, const char *key) {
        const Node *map = root && root->kind == NODE_MAP ? node_find(root, section) : NULL;
        const Node *list = map && map->kind == NODE_MAP ? node_find(map, key) : NULL;

        return list && list->kind == NODE_LIST ? list : NULL;
}

/* Metrics are not encrypted, and whoever reaches them reads them. */
static void loopback_check(Build *b, const RelayConfig *c, const Node *item, const Endpoint *endpoint) {
        if (!endpoint_is_loopback(endpoint)) {
                config_diagnostics_add(b->diagnostics, item->at, "metrics.listen: found %s, which other hosts reach, and metrics are served "
                        "without TLS; use an address of this host alone, such as 127.0.0.1:9464 or [::1]:9464, and let other hosts read "
                        "them by TLS: 'metrics: true' in an item of 'clients'", QUOTE(item->text));
                return;
        }
        for (size_t i = 0; i < c->listen.n; i++)
                if (strcmp(c->listen.items[i], item->text) == 0)
                        config_diagnostics_add(b->diagnostics, item->at, "metrics.listen: found %s, which listen.tls has too: use another "
                                "port", QUOTE(item->text));
}

/* Each address where it stands. */
static void addresses_check(Build *b, const Node *root, const RelayConfig *c, const char *section, const char *key, bool is_metrics) {
        const Node *list = find_list(root, section, key);

        for (size_t i = 0; list && i < list->n_children; i++) {
                const Node *item = list->children[i];
                Explanation e = EXPLANATION_NULL;
                Endpoint endpoint;

                if (item->kind != NODE_TEXT || node_is_empty(item))
                        continue;
                if (endpoint_parse(item->text, &endpoint, &e) != 0)
                        config_diagnostics_add(b->diagnostics, node_place(item, e.position), "%s.%s: %s", section, key, e.text);
                else if (is_metrics)
                        loopback_check(b, c, item, &endpoint);
        }
}

static void listen_check(Build *b, const Node *root, const RelayConfig *c) {
        const Node *section = root && root->kind == NODE_MAP ? node_find(root, "listen") : NULL;
        bool has_list = section && section->kind == NODE_MAP && node_find(section, "tls");

        addresses_check(b, root, c, "listen", "tls", false);
        addresses_check(b, root, c, "metrics", "listen", true);
        if (section && c->listen.n == 0 && !has_list)
                config_diagnostics_add_warning(b->diagnostics, section->at, "listen: without 'tls' the relay has only the sockets that "
                        "systemd gives it");
}

/* Clients need both `listen` and `clients`; a relay may also do without any, if there is something else to do. */
static void sections_check(Build *b, const Node *root, RelayConfig *c) {
        const bool is_map = root->kind == NODE_MAP;
        const Node *clients = is_map ? node_find(root, "clients") : NULL, *metrics = find_list(root, "metrics", "listen");

        c->has_listen = is_map && node_find(root, "listen");
        if (c->has_listen && !clients)
                config_diagnostics_add(b->diagnostics, root->at, "key 'clients' is missing, expected a list of clients");
        else if (!c->has_listen && clients)
                config_diagnostics_add(b->diagnostics, root->at, "key 'listen' is missing, by which these 'clients' connect; expected a "
                                       "mapping with the keys certificate, key and ca");
        else if (is_map && !c->has_listen && !node_find(root, "publish") && !(metrics && metrics->n_children > 0))
                config_diagnostics_add(b->diagnostics, root->at, "the relay would have nothing to do, expected at least one of the keys "
                                       "listen (with clients), publish and metrics");
}

static void settings_check(Build *b, const RelayConfig *c) {
        for (size_t i = 0; i < c->n_rules; i++)
                if (c->rules[i].control && !c->control) {
                        config_diagnostics_add(b->diagnostics, c->rules[i].at, "control: it needs perfd.control, the control socket of "
                                "perfd");
                        return;
                }
}

/* Relative to the directory of relay.yaml. -ENOMEM. */
static int path_complete(const RelayConfig *c, char **path) {
        const char *end = strrchr(c->path, '/');
        char *complete;

        if (!*path || **path == '/' || !end)
                return 0;
        if (asprintf(&complete, "%.*s/%s", (int)(end - c->path), c->path, *path) < 0)
                return error_origin(-ENOMEM);
        free(*path);
        *path = complete;
        return 0;
}

static int paths_complete(RelayConfig *c) {
        PublishAccess *access = &c->publish.access;
        char **paths[] = { &c->certificate, &c->key, &c->ca, &c->crl, &access->ca, &access->certificate, &access->key,
                           &access->credentials, &access->password_file, &access->token_file, &c->publish.spool_path };
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(paths) && r == 0; i++)
                r = path_complete(c, paths[i]);
        return r;
}

static int feed(RelayConfig *c, const char *bytes, size_t length, ConfigDiagnostics *m) {
        static const BuildPart parts[_KEY_TYPE_MAX] = { [KEY_RULES] = rules_build, [KEY_NAMED] = publish_routes_build };
        Build b = { .diagnostics = m, .parts = parts, .keys = relay_keys, .n_keys = n_relay_keys, .set_at = c->set_at };
        _cleanup_(document_deinit) Document d = DOCUMENT_NULL;
        int r = document_decode(c->path, 0, bytes, length, m, &d);

        if (r == 0 && !d.root)
                config_diagnostics_add(m, (ConfigPlace){ .path = c->path, .line = 1, .column = 1 }, "the file is empty, expected version: 1 "
                        "and at least one of the keys listen (with clients), publish and metrics");
        if (r == 0 && d.root)
                r = section_build(&b, "", d.root, c);
        if (r == 0) {
                if (d.root)
                        sections_check(&b, d.root, c);
                listen_check(&b, d.root, c);
                settings_check(&b, c);
                r = publish_check(&b, d.root, &c->publish) ?: paths_complete(c);
        }
        return r;
}

static int config_new(const char *path, RelayConfig **ret) {
        RelayConfig *c = calloc(1, sizeof(*c));

        if (!c)
                return error_origin(-ENOMEM);
        c->path = strdup(path);
        if (!c->path || set_defaults(of_file, c) < 0) {
                relay_config_free(c);
                return error_origin(-ENOMEM);
        }
        *ret = c;
        return 0;
}

/* What was said has places, which point into the configuration: a copy of their path is in each (diagnostic.h). */
int relay_config_parse(const char *path, const char *bytes, size_t length, ConfigDiagnostics *m, RelayConfig **ret) {
        _cleanup_(relay_config_freep) RelayConfig *c = NULL;
        int r = config_new(path, &c);

        if (r == 0)
                r = feed(c, bytes, length, m);
        if (r < 0)
                return r;
        if (r == 0)
                *ret = TAKE_PTR(c);
        return m->n_errors > 0 ? REFUSED_INVALID : r;
}

int relay_config_load(const char *path, ConfigDiagnostics *m, RelayConfig **ret) {
        _cleanup_free_ char *bytes = NULL;
        size_t length = 0;
        struct stat st;
        int r = config_file_read(m, (ConfigPlace){ .path = path }, CONFIG_FILE_MAX, &bytes, &length, &st);

        if (r == 0)
                r = relay_config_parse(path, bytes, length, m, ret);
        if (r >= 0 && *ret && (st.st_mode & 027) != 0 && publish_has_secret(&(*ret)->publish)) {
                config_diagnostics_add(m, (ConfigPlace){ .path = path }, "the file has mode %04o and a secret in publish.servers: others can "
                                       "read it; use publish.credentials, password-file or token-file, or `chmod 0640` this file with the "
                                       "group of who runs the relay", (unsigned)(st.st_mode & 07777));
                r = REFUSED_INVALID;
        }
        return r;
}

static bool texts_equal(const char *a, const char *b) {
        return a && b ? strcmp(a, b) == 0 : a == b;
}

bool relay_config_has_metrics_clients(const RelayConfig *c) {
        for (size_t i = 0; i < c->n_rules; i++)
                if (c->rules[i].metrics)
                        return true;
        return false;
}

bool relay_rule_grants_same(const RelayRule *a, const RelayRule *b) {
        return strings_equal(&a->events, &b->events) && texts_equal(a->where, b->where) && a->status == b->status &&
               a->raw == b->raw && a->metrics == b->metrics && a->control == b->control && a->queue == b->queue;
}
