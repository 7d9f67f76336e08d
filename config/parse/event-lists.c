/*
 * Lists of an event whose items have names that no table of keys has: fields of struct perf_event_attr, and the fields
 * of an external event. They are kept as texts, "name=value" and "name:type", as a client of the daemon sends them.
 */
#include <stdio.h>
#include <string.h>

#include "config/attr/attr-setting.h"
#include "config/parse/parts.h"
#include "config/text/words.h"
#include "daemon/base/checkpoint.h"

#define FIELD_NAME_MAX 64

/* Whether an item of the list has this name before `sign`. */
static bool is_in(const Strings *list, const char *name, char sign) {
        size_t n = strlen(name);

        for (size_t i = 0; i < list->n; i++)
                if (strncmp(list->items[i], name, n) == 0 && list->items[i][n] == sign)
                        return true;
        return false;
}

static int joined_add(Strings *list, const char *name, char sign, const char *text) {
        _cleanup_free_ char *joined = NULL;

        if (asprintf(&joined, "%s%c%s", name, sign, text) < 0) {
                joined = NULL; /* asprintf(3) leaves it undefined */
                return error_origin(-ENOMEM);
        }
        return strings_add(list, joined);
}

static int setting_add(Build *b, const Node *key, const Node *value, Strings *to) {
        Explanation e = EXPLANATION_NULL;
        AttrSetting s;
        int r;

        if (value->kind != NODE_TEXT || node_is_empty(value)) {
                node_refuse(b, value, "attr", "the value of a field of perf_event_attr");
                return 0;
        }
        r = attr_setting_parse(key->text, value->text, &s, &e);
        if (r < 0)
                return r;
        if (r > 0) {
                config_diagnostics_add(b->diagnostics, e.position > 0 ? node_place(value, e.position) : key->at, "%s", e.text);
                return 0;
        }
        if (is_in(to, attr_field_name(s.field), '=')) {
                config_diagnostics_add(b->diagnostics, key->at, "attr %s is set twice", attr_field_name(s.field));
                return 0;
        }
        return joined_add(to, attr_field_name(s.field), '=', value->text);
}

int attr_build(Build *b, const Key *k, const Node *map, void *object) {
        Strings *to = (Strings *)((char *)object + k->offset);
        int r = 0;

        if (map->kind != NODE_MAP && !node_is_empty(map))
                node_refuse(b, map, key_label(k), k->range);
        for (size_t i = 0; map->kind == NODE_MAP && i + 1 < map->n_children && r == 0; i += 2) {
                r = checkpoint(NULL);
                if (r == 0)
                        r = setting_add(b, map->children[i], map->children[i + 1], to);
        }
        return r;
}

/* Says what is wrong with a field at its place. */
static bool field_check(Build *b, ConfigPlace name_at, const char *name, ConfigPlace type_at, const char *type,
                        const Strings *before) {
        static const char *const types[] = { "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "bool", "text",
                                             "bytes" };
        size_t length = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
        bool is_type = false;

        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
                is_type |= strcmp(types[i], type) == 0;
        if (!*name || name[length] || length > FIELD_NAME_MAX || (name[0] >= '0' && name[0] <= '9'))
                config_diagnostics_add(b->diagnostics, name_at, "fields: found %s, expected a name of up to %d letters, digits "
                                       "and _, not beginning with a digit", QUOTE(name), FIELD_NAME_MAX);
        else if (!is_type)
                config_diagnostics_add(b->diagnostics, type_at, "fields: found type %s, expected one of u8 u16 u32 u64 s8 s16 "
                                       "s32 s64 bool text bytes", QUOTE(type));
        else if (is_in(before, name, ':'))
                config_diagnostics_add(b->diagnostics, name_at, "fields: %s occurs twice", name);
        else if (before->n >= CONFIG_FIELDS_MAX)
                config_diagnostics_add(b->diagnostics, name_at, "fields: at most %d", CONFIG_FIELDS_MAX);
        else
                return true;
        return false;
}

static int fields_add_map(Build *b, const Node *map, Strings *to) {
        int r = 0;

        for (size_t i = 0; i + 1 < map->n_children && r == 0; i += 2) {
                const Node *name = map->children[i], *type = map->children[i + 1];

                r = checkpoint(NULL);
                if (r != 0)
                        break;
                if (type->kind != NODE_TEXT || node_is_empty(type))
                        node_refuse(b, type, "fields", "one of u8 u16 u32 u64 s8 s16 s32 s64 bool text bytes");
                else if (field_check(b, name->at, name->text, type->at, type->text, to))
                        r = joined_add(to, name->text, ':', type->text);
        }
        return r;
}

/* "name:type" or "name: type" */
static int fields_add_text(Build *b, const Node *item, Strings *to) {
        _cleanup_free_ char *name = strdup(item->text);
        size_t colon = strcspn(item->text, ":"), type;

        if (!name)
                return error_origin(-ENOMEM);
        if (item->text[colon] == '\0') {
                node_refuse(b, item, "fields", "name: type, such as user: text");
                return 0;
        }
        type = colon + 1 + strspn(item->text + colon + 1, " ");
        name[colon] = '\0';
        if (!field_check(b, item->at, name, node_place(item, (unsigned)type + 1), item->text + type, to))
                return 0;
        return joined_add(to, name, ':', item->text + type);
}

int fields_build(Build *b, const Key *k, const Node *node, void *object) {
        Strings *to = (Strings *)((char *)object + k->offset);
        int r = 0;

        if (node->kind == NODE_MAP)
                return fields_add_map(b, node, to);
        if (node->kind != NODE_LIST && !node_is_empty(node))
                node_refuse(b, node, key_label(k), k->range);
        for (size_t i = 0; node->kind == NODE_LIST && i < node->n_children && r == 0; i++) {
                const Node *item = node->children[i];

                r = checkpoint(NULL);
                if (r != 0)
                        break;
                if (item->kind == NODE_MAP)
                        r = fields_add_map(b, item, to);
                else if (item->kind == NODE_TEXT && !node_is_empty(item))
                        r = fields_add_text(b, item, to);
                else
                        node_refuse(b, item, key_label(k), "name: type, such as user: text");
        }
        return r;
}
