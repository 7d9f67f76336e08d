/*
 * Groups and events. Counters of a group are written as a list but are one event, "{a,b,c}", called as the group: that
 * is what they are to perf_event_open(2), to subscribers and in lists.
 */
#include <string.h>

#include "config/event-name/event-name.h"
#include "config/parse/parts.h"
#include "config/value.h"
#include "daemon/base/array.h"
#include "daemon/base/checkpoint.h"

static bool has_room(Build *b, ConfigPlace at) {
        if (b->config->n_events < CONFIG_EVENTS_MAX)
                return true;
        config_diagnostics_add(b->diagnostics, at, "too many events: at most %d", CONFIG_EVENTS_MAX);
        return false;
}

/* Takes it, also when it fails, and gives it its own text as a name if it has none. -ENOMEM. */
static int event_take_in(Build *b, ConfigEvent *event) {
        Config *c = b->config;

        if (!event->name) {
                event->name = strdup(event->event);
                event->name_at = event->name_at.path ? (ConfigPlace){ .path = NULL } : event->at; /* refused, or not there */
        }
        if (!event->name || !ARRAY_ROOM(c->events, c->n_events)) {
                values_deinit(OWNER_EVENT, event);
                return error_origin(-ENOMEM);
        }
        c->events[c->n_events++] = *event;
        return 0;
}

static int event_build(Build *b, const Node *item) {
        ConfigEvent event = { .group = b->config->groups[b->config->n_groups - 1].name };
        bool set;
        int r;

        if (item->kind == NODE_LIST || item->kind == NODE_BROKEN || node_is_empty(item)) {
                node_refuse(b, item, "events", "the name of an event, or a mapping with the key 'event'");
                return 0;
        }
        r = values_set_defaults(OWNER_EVENT, &event);
        if (r == 0)
                r = item->kind == NODE_MAP
                            ? section_build(b, "groups.NAME.events[]", item, &event)
                            : text_build(b, key_find("groups.NAME.events[]", "event"), item, &event, &set);
        event.at = map_place(item, "event");
        if (!event.at.path)
                event.at = item->at;
        event.filter_at = map_place(item, "filter");
        event.name_at = map_place(item, "name");
        if (r == 0)
                r = event_check(b, &event, item);
        if (r == 0 && event.event)
                return event_take_in(b, &event);
        values_deinit(OWNER_EVENT, &event);
        return r;
}

int events_build(Build *b, const Key *k, const Node *list, void *object) {
        int r = 0;

        if (list->kind != NODE_LIST && !node_is_empty(list))
                node_refuse(b, list, "events", k->range);
        for (size_t i = 0; list->kind == NODE_LIST && i < list->n_children && r == 0; i++) {
                if (!has_room(b, list->children[i]->at))
                        break;
                r = checkpoint(NULL);
                if (r == 0)
                        r = event_build(b, list->children[i]);
        }
        return r;
}

/* "{a,b,c}"; NULL: no memory. */
static char *counters_join(const Strings *counters) {
        size_t length = strlen("{}") + 1, n = 0;
        char *text;

        for (size_t i = 0; i < counters->n; i++)
                length += strlen(counters->items[i]) + 1;
        text = malloc(length);
        if (!text)
                return NULL;
        text[n++] = '{';
        for (size_t i = 0; i < counters->n; i++) {
                if (i > 0)
                        text[n++] = ',';
                n = (size_t)(stpcpy(text + n, counters->items[i]) - text);
        }
        memcpy(text + n, "}", sizeof("}"));
        return text;
}

/* The counters of `g`, which stand at `at`, as an event. */
static int counters_build(Build *b, const ConfigGroup *g, ConfigPlace at) {
        _cleanup_(event_names_deinit) EventNames names = EVENT_NAMES_NULL;
        ConfigEvent event = { .group = g->name, .at = at, .name_at = g->at };
        Explanation e = EXPLANATION_NULL;
        int r;

        if (!has_room(b, at))
                return 0;
        r = values_set_defaults(OWNER_EVENT, &event);
        if (r == 0) {
                event.interval = g->interval;
                event.event = counters_join(&g->counters);
                event.name = strdup(g->name);
                r = event.event && event.name ? event_names_parse(event.event, &names, &e) : error_origin(-ENOMEM);
        }
        if (r == 0)
                return event_take_in(b, &event);
        if (r > 0)
                config_diagnostics_add(b->diagnostics, at, "counters: %s", e.text);
        values_deinit(OWNER_EVENT, &event);
        return r > 0 ? 0 : r;
}

/* A group has events or counters. */
static int group_check(Build *b, const ConfigGroup *g, const Node *section) {
        const Node *counters = section->kind == NODE_MAP ? node_find(section, "counters") : NULL;
        const Node *list = section->kind == NODE_MAP ? node_find(section, "events") : NULL;
        ConfigPlace events = map_place(section, "events"), interval = map_place(section, "interval");

        if (!counters && !events.path && section->kind != NODE_BROKEN)
                config_diagnostics_add(b->diagnostics, section->at, "key 'events' is missing, expected %s, or 'counters'",
                                       key_find("groups.NAME", "events")->range);
        if (!counters && interval.path)
                config_diagnostics_add(b->diagnostics, interval,
                                       "interval: it belongs to counters, and the group has none; set the "
                                       "interval of each event");
        if (counters && events.path)
                config_diagnostics_add(b->diagnostics, config_place_later(counters->at, events),
                                       "a group has events or counters, not both; split it into two groups");
        if (counters && (node_is_empty(counters) || (counters->kind == NODE_LIST && counters->n_children == 0)))
                config_diagnostics_add(b->diagnostics, counters->at, "counters: found nothing, expected %s",
                                       key_find("groups.NAME", "counters")->range);
        if (list && list->kind == NODE_LIST && list->n_children == 0)
                config_diagnostics_add(b->diagnostics, list->at, "events: found nothing, expected %s",
                                       key_find("groups.NAME", "events")->range);
        return g->counters.n > 0 ? counters_build(b, g, counters->at) : 0;
}

int group_build(Build *b, const Node *key, const Node *section) {
        Config *c = b->config;
        ConfigGroup *g;
        int r;

        if (!ARRAY_ROOM(c->groups, c->n_groups))
                return error_origin(-ENOMEM);
        g = &c->groups[c->n_groups++];
        *g = (ConfigGroup){ .name = strdup(key->text), .at = key->at, .target_at = map_place(section, "target") };
        if (!g->name)
                return error_origin(-ENOMEM);
        r = values_set_defaults(OWNER_GROUP, g);
        if (r == 0)
                r = section_build(b, "groups.NAME", section, g);
        return r == 0 ? group_check(b, g, section) : r;
}
