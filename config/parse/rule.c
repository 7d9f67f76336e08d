/*
 * The rules of access as they are written. A later file that has any replaces all of an earlier one: in a list of which the
 * first match decides, nobody could tell where rules of several files would stand.
 */
#include "config/rule.h"

#include "config/parse/parts.h"
#include "config/value.h"
#include "daemon/base/array.h"
#include "daemon/base/checkpoint.h"

/* A list that names nobody would be for nobody, or, if it were as one that is not written, for everybody. */
static void list_check(Build *b, const Node *item, const char *key, const Strings *list, size_t most) {
        const Node *n = node_find(item, key);
        const Key *k = key_find("access.rules[]", key);

        if (n && (node_is_empty(n) || (n->kind == NODE_LIST && n->n_children == 0)))
                config_diagnostics_add(b->diagnostics, n->at, "%s: found nothing, expected %s", key, k->range);
        if (n && list->n > most)
                config_diagnostics_add(b->diagnostics, n->at, "%s: found %zu, expected at most %zu; use globs, or add another rule",
                                       key, list->n, most);
}

static void rule_check(Build *b, const ConfigRule *rule, const Node *item) {
        list_check(b, item, "users", &rule->users, CONFIG_NAMES_MAX);
        list_check(b, item, "groups", &rule->groups, CONFIG_NAMES_MAX);
        list_check(b, item, "subscribe", &rule->subscribe, CONFIG_GRANTS_MAX);
        list_check(b, item, "emit", &rule->emit, CONFIG_GRANTS_MAX);
        if (rule->where && !node_find(item, "subscribe"))
                config_diagnostics_add(b->diagnostics, rule->where_at, "where: it has no effect without 'subscribe'");
}

static int rule_build(Build *b, const Node *item) {
        Config *c = b->config;
        ConfigRule *rule;
        int r;

        if (item->kind != NODE_MAP) {
                node_refuse(b, item, "rules", "a mapping with keys such as 'users', 'groups' and 'subscribe'");
                return 0;
        }
        if (!ARRAY_ROOM(c->rules, c->n_rules))
                return error_origin(-ENOMEM);
        rule = &c->rules[c->n_rules++];
        *rule = (ConfigRule){ .at = item->at, .where_at = map_place(item, "where") };
        r = values_set_defaults(OWNER_RULE, rule);
        if (r == 0)
                r = section_build(b, "access.rules[]", item, rule);
        if (r == 0)
                rule_check(b, rule, item);
        return r;
}

int rules_build(Build *b, const Key *k, const Node *list, void *object) {
        int r = 0;

        rules_free(b->config);
        if (list->kind != NODE_LIST)
                node_refuse(b, list, key_label(k), k->range);
        else if (list->n_children == 0)
                config_diagnostics_add(b->diagnostics, list->at, "%s: found nothing, expected %s", key_label(k), k->range);
        for (size_t i = 0; list->kind == NODE_LIST && i < list->n_children && r == 0; i++) {
                if (i >= CONFIG_RULES_MAX) {
                        config_diagnostics_add(b->diagnostics, list->children[i]->at, "%s: at most %d rules", key_label(k),
                                               CONFIG_RULES_MAX);
                        break;
                }
                r = checkpoint(NULL);
                if (r == 0)
                        r = rule_build(b, list->children[i]);
        }
        return r;
}
