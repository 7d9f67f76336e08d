/*
 * Walks a document along the table of keys. The walk knows sections and lists, but no key by its name;
 * where one key's sense depends on another's, the parts of Build look (parts.h). Values that cross files, such as
 * the name of a target, are only collected: check.c looks at them when all files are there.
 */
#include "config/parse/walk.h"

#include <string.h>

#include "config/target.h"
#include "config/text/words.h"
#include "config/value.h"
#include "daemon/base/checkpoint.h"

static const char *node_kind_word(const Node *n) {
        return n->kind == NODE_LIST ? "a list" : n->kind == NODE_MAP ? "a mapping" : "one value";
}

void node_refuse(Build *b, const Node *n, const char *label, const char *expected) {
        if (n->kind == NODE_BROKEN)
                return;
        if (node_is_empty(n))
                config_diagnostics_add(b->diagnostics, n->at, "%s: found nothing, expected %s", label, expected);
        else if (n->kind == NODE_TEXT)
                config_diagnostics_add(b->diagnostics, n->at, "%s: found %s, expected %s", label, QUOTE(n->text), expected);
        else
                config_diagnostics_add(b->diagnostics, n->at, "%s: found %s, expected %s", label, node_kind_word(n),
                                       expected);
}

static void key_refuse(Build *b, const Node *key, const char *pattern) {
        Nearest near = NEAREST_NULL;

        if (strcmp(key->text, "<<") == 0) {
                config_diagnostics_add(b->diagnostics, key->at, "key '<<': merge keys are not supported; remove it");
                return;
        }
        for (size_t i = 0; !config_diagnostics_is_full(b->diagnostics) && i < b->n_keys; i++) {
                const char *last = key_below(&b->keys[i], pattern);

                if (last)
                        nearest_add(&near, key->text, last);
        }
        for (size_t i = 0; !near.word && strlen(key->text) >= 3 && i < b->n_keys; i++) {
                const char *last = key_below(&b->keys[i], pattern);

                if (last && strncmp(last, key->text, strlen(key->text)) == 0) /* "freq" */
                        near.word = last;
        }
        config_diagnostics_add(b->diagnostics, key->at, "unknown key %s%s", QUOTE(key->text), HINT(&near));
}

ConfigPlace node_place(const Node *n, unsigned position) {
        ConfigPlace at = n->at;

        if (position > 0 && n->shift >= 0)
                at.column += (unsigned)n->shift + position - 1;
        return at;
}

static bool is_value(Build *b, const Key *k, const Node *n) {
        if (n->kind == NODE_TEXT && !node_is_empty(n))
                return true;
        node_refuse(b, n, key_label(k), k->range);
        return false;
}

/* What decoding it has said. */
static int value_say(Build *b, const Node *n, int r, const Explanation *e) {
        if (r > 0)
                config_diagnostics_add(b->diagnostics, node_place(n, e->position), "%s", e->text);
        else if (r == 0 && e->text[0])
                config_diagnostics_add_warning(b->diagnostics, n->at, "%s", e->text);
        return r < 0 ? r : 0;
}

int text_build(Build *b, const Key *k, const Node *n, void *object, bool *ret_set) {
        Explanation e;
        int r;

        *ret_set = false;
        if (!is_value(b, k, n))
                return 0;
        r = value_decode(k, n->text, object, &e);
        if (r == 0 && key_owner(k) == OWNER_TARGET)
                r = target_add_place(object, k, n->at);
        *ret_set = r == 0;
        return value_say(b, n, r, &e);
}

ConfigPlace map_place(const Node *map, const char *key) {
        const Node *n = map->kind == NODE_MAP ? node_find(map, key) : NULL;

        return n ? n->at : (ConfigPlace){ .path = NULL };
}

/* What goes into a list; one that is full is not read on. */
static int item_build(Build *b, const Key *k, const Node *n, void *object, Index *known, bool *ret_full) {
        Explanation e;
        int r;

        if (!is_value(b, k, n))
                return 0;
        r = value_add(k, n->text, object, known, &e);
        *ret_full = r == REFUSED_EXHAUSTED;
        if (r == 0 && key_owner(k) == OWNER_TARGET)
                r = target_add_place(object, k, n->at);
        return value_say(b, n, r, &e);
}

static int list_build(Build *b, const Key *k, const Node *n, void *object) {
        _cleanup_(index_deinit) Index known = INDEX_NULL;
        bool is_full = false;
        int r;

        if (node_is_empty(n))
                return 0;
        if (n->kind != NODE_LIST)
                node_refuse(b, n, key_label(k), k->range);
        r = value_index(k, object, &known);
        for (size_t i = 0; n->kind == NODE_LIST && i < n->n_children && r == 0 && !is_full; i++) {
                r = checkpoint(NULL);
                if (r == 0)
                        r = item_build(b, k, n->children[i], object, &known, &is_full);
        }
        return r;
}

/* Keys that must be there and are not. Without an item of its own, such a key is missing at the start of the map. */
static void section_check_required(Build *b, const char *pattern, const Node *map, const bool *seen) {
        for (size_t i = 0; i < b->n_keys; i++) {
                const char *last = key_below(&b->keys[i], pattern);

                if (last && b->keys[i].required && !seen[i])
                        config_diagnostics_add(b->diagnostics, map->at, "key '%s' is missing, expected %s", last,
                                               b->keys[i].range);
        }
}

static int value_build(Build *b, const Key *k, const Node *key, const Node *value, void *object);

int section_build(Build *b, const char *pattern, const Node *map, void *object) {
        bool seen[KEYS_MAX] = { false };
        int r = 0;

        if (map->kind != NODE_MAP && !node_is_empty(map)) {
                node_refuse(b, map, *pattern ? pattern : "the file", "a mapping of keys to values");
                return 0;
        }
        for (size_t i = 0; map->kind == NODE_MAP && i + 1 < map->n_children && r == 0; i += 2) {
                const Key *k = key_find_in(b->keys, b->n_keys, pattern, map->children[i]->text);

                r = checkpoint(NULL);
                if (r == 0 && !k) {
                        key_refuse(b, map->children[i], pattern);
                        continue;
                }
                if (r == 0) {
                        seen[k - b->keys] = true;
                        r = value_build(b, k, map->children[i], map->children[i + 1], object);
                }
        }
        if (r == 0)
                section_check_required(b, pattern, map, seen);
        return r;
}

/* A switch over the types of keys that mean nothing for others. */
static int value_build(Build *b, const Key *k, const Node *key, const Node *value, void *object) {
        bool set = false;
        int r;

        if (b->parts[k->type])
                return b->parts[k->type](b, k, value, object);
        switch (k->type) {
        case KEY_SECTION:
                return section_build(b, k->pattern, value, object);
        case KEY_IDS:
        case KEY_CHOICES:
        case KEY_CGROUPS:
        case KEY_WORDS:
        case KEY_ACCOUNTS:
        case KEY_COUNTERS:
                return list_build(b, k, value, object);
        default:
                r = text_build(b, k, value, object, &set);
                if (set && key_owner(k) == OWNER_CONFIG)
                        b->set_at[k - b->keys] = value->at;
                return r;
        }
}
