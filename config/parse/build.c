/* The life of a configuration under construction, and which part of it builds what. */
#include "config/parse/build.h"

#include <string.h>

#include "config/parse/parts.h"
#include "config/text/name.h"
#include "daemon/base/array.h"
#include "daemon/base/checkpoint.h"
#include "daemon/base/clock.h"

/* Targets or groups by name. */
static int named_build(Build *b, const Key *k, const Node *map, void *object) {
        bool is_group = strcmp(k->pattern, "groups") == 0;
        const char *what = is_group ? "name of a group" : "name of a target";
        int r = 0;

        if (map->kind != NODE_MAP && !node_is_empty(map))
                node_refuse(b, map, k->pattern, "a mapping of names");
        for (size_t i = 0; map->kind == NODE_MAP && i + 1 < map->n_children && r == 0; i += 2) {
                const Node *key = map->children[i], *section = map->children[i + 1];
                Explanation e = EXPLANATION_NULL;

                if ((is_group ? b->config->n_groups : b->config->n_targets) >= CONFIG_TARGETS_MAX) {
                        config_diagnostics_add(b->diagnostics, key->at, "%s: at most %d", k->pattern, CONFIG_TARGETS_MAX);
                        break;
                }
                if (name_check(what, key->text, &e) != 0)
                        config_diagnostics_add(b->diagnostics, node_place(key, e.position), "%s", e.text);
                r = checkpoint(NULL);
                if (r == 0)
                        r = is_group ? group_build(b, key, section) : target_build(b, key, section);
        }
        return r;
}

static const BuildPart parts[_KEY_TYPE_MAX] = {
        [KEY_NAMED] = named_build, [KEY_EVENTS] = events_build, [KEY_RULES] = rules_build,
        [KEY_ATTR] = attr_build,   [KEY_FIELDS] = fields_build,
};

int build_init(Build *b, ConfigDiagnostics *m) {
        *b = (Build){ .config = config_default(), .diagnostics = m, .parts = parts };
        if (!b->config)
                return error_origin(-ENOMEM);
        b->keys = config_keys;
        b->n_keys = n_config_keys;
        b->set_at = b->config->set_at;
        b->config->read_at = clock_now(CLOCK_REALTIME);
        return 0;
}

void build_deinit(Build *b) {
        config_unref(b->config);
        *b = BUILD_NULL;
}

int build_add_file(Build *b, const char *path, ConfigPlace *ret) {
        Config *c = b->config;

        if (!ARRAY_ROOM(c->paths, c->n_paths))
                return error_origin(-ENOMEM);
        c->paths[c->n_paths] = strdup(path);
        if (!c->paths[c->n_paths])
                return error_origin(-ENOMEM);
        *ret = (ConfigPlace){ .path = c->paths[c->n_paths], .file = (unsigned)c->n_paths };
        c->n_paths++;
        return 0;
}

int build_feed(Build *b, const char *bytes, size_t length) {
        _cleanup_(document_deinit) Document d = DOCUMENT_NULL;
        unsigned file = (unsigned)b->config->n_paths - 1;
        const char *path = b->config->paths[file];
        const Key *version = key_find("", "version");
        int r;

        r = document_decode(path, file, bytes, length, b->diagnostics, &d);
        if (r == REFUSED_INVALID)
                b->is_partial = true;
        if (r != 0)
                return r == REFUSED_INVALID ? 0 : r;
        if (d.root)
                r = section_build(b, "", d.root, b->config);
        if (r == 0 && file == 0 && (!d.root || (d.root->kind == NODE_MAP && !node_find(d.root, "version"))))
                config_diagnostics_add(b->diagnostics, (ConfigPlace){ .path = path, .file = file, .line = 1, .column = 1 },
                                       "key 'version' is missing, expected %s", version->range);
        return r;
}

int build_finish(Build *b, Config **ret) {
        int r = build_check_references(b);

        if (r == 0)
                r = config_diagnostics_finish(b->diagnostics);
        if (r == 0 && b->diagnostics->n_errors > 0)
                r = REFUSED_INVALID;
        if (r == 0)
                *ret = TAKE_PTR(b->config);
        build_deinit(b);
        return r;
}
