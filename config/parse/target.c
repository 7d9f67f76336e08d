/* Targets: which of their keys can stand together, because one fd of perf_event_open(2) has one pid or one cgroup. */
#include <string.h>

#include "config/parse/parts.h"
#include "config/target.h"
#include "config/value.h"
#include "daemon/base/array.h"

/* "host" is every process on every CPU: it may be written, but not made smaller. */
static void host_check(Build *b, const Node *section) {
        if (section->kind == NODE_MAP && section->n_children > 0)
                config_diagnostics_add(b->diagnostics, section->at, "target 'host' is the whole host and cannot have keys: rename "
                        "this target");
}

/* A list without items is no list: what it would have restricted is everything. */
static void empty_check(Build *b, const Node *section, const char *key) {
        const Node *n = section->kind == NODE_MAP ? node_find(section, key) : NULL;

        if (n && (node_is_empty(n) || (n->kind == NODE_LIST && n->n_children == 0)))
                config_diagnostics_add_warning(b->diagnostics, n->at, "%s: empty, so the target is every process of the host", key);
}

static void target_check(Build *b, const ConfigTarget *t, const Node *section) {
        static const char *const places[] = { "cgroups", "cgroup", "containers", "units" };
        static const char *const tasks[] = { "pids", "tids" };
        bool has_tasks = t->pids.n_ids > 0 || t->tids.n_ids > 0;
        bool has_places = t->cgroups.n > 0 || t->containers.n > 0 || t->units.n > 0;
        ConfigPlace last_task = { .path = NULL }, last_place = { .path = NULL };

        for (size_t i = 0; !has_tasks && !has_places && i < ARRAY_SIZE(tasks); i++)
                empty_check(b, section, tasks[i]);
        for (size_t i = 0; !has_tasks && !has_places && i < ARRAY_SIZE(places); i++)
                empty_check(b, section, places[i]);
        for (size_t i = 0; i < ARRAY_SIZE(tasks); i++)
                last_task = config_place_later(last_task, map_place(section, tasks[i]));
        for (size_t i = 0; i < ARRAY_SIZE(places); i++)
                last_place = config_place_later(last_place, map_place(section, places[i]));
        if (has_tasks && has_places)
                config_diagnostics_add(b->diagnostics, config_place_later(last_task, last_place),
                                       "pids and tids exclude cgroups, containers and units: perf_event_open(2) takes one of "
                                       "them; split it into two targets");
        else if (map_place(section, "inherit").path && !has_tasks)
                config_diagnostics_add_warning(b->diagnostics, map_place(section, "inherit"),
                                               "inherit: it has no effect without pids and tids: every process %s is traced",
                                               has_places ? "of these cgroups" : "of the host");
}

int target_build(Build *b, const Node *key, const Node *section) {
        Config *c = b->config;
        ConfigTarget t = { .at = key->at };
        int r;

        r = values_set_defaults(OWNER_TARGET, &t);
        if (r == 0)
                r = section_build(b, "targets.NAME", section, &t);
        if (r == 0 && strcmp(key->text, "host") == 0)
                host_check(b, section);
        else if (r == 0)
                target_check(b, &t, section);
        if (r == 0 && strcmp(key->text, "host") != 0) {
                t.name = strdup(key->text);
                if (t.name && ARRAY_ROOM(c->targets, c->n_targets)) {
                        c->targets[c->n_targets++] = t;
                        return 0;
                }
                r = error_origin(-ENOMEM);
        }
        target_deinit(&t);
        return r;
}
