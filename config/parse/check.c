/*
 * What can only be known when every file has been read: names that stand twice, targets that no file has, values
 * that contradict each other. Names are sorted instead of searched, because there may be ten thousand.
 */
#include <errno.h>
#include <string.h>

#include "config/event-name/event-name.h"
#include "config/parse/parts.h"
#include "config/text/words.h"
#include "daemon/base/checkpoint.h"
#include "daemon/base/clock.h"
#include "daemon/base/duration.h"
#include "daemon/base/error-trail.h"

#define HINT_TARGETS_MAX 100 /* comparing ten thousand names with ten thousand takes minutes */

typedef struct NamedPlace {
        const char *name;
        ConfigPlace at;
        size_t index; /* in the order of reading */
} NamedPlace;

typedef struct NamedPlaces {
        NamedPlace *items;
        size_t n_items;
} NamedPlaces;

static int name_order(const void *left, const void *right) {
        const NamedPlace *a = left, *b = right;
        int order = strcmp(a->name, b->name);

        return order != 0 ? order : a->index < b->index ? -1 : a->index > b->index;
}

static int name_compare(const void *name, const void *item) {
        return strcmp(name, ((const NamedPlace *)item)->name);
}

/* Sorts, and says for each name but the first of its kind where the first one stands. */
static void names_check(Build *b, NamedPlaces *names, const char *what, const char *advice) {
        size_t first = 0;

        if (names->n_items > 1)
                qsort(names->items, names->n_items, sizeof(*names->items), name_order);
        for (size_t i = 1; i < names->n_items; i++) {
                const NamedPlace *n = &names->items[i], *before = &names->items[first];

                if (strcmp(n->name, before->name) != 0)
                        first = i;
                else if (n->at.file == before->at.file)
                        config_diagnostics_add(b->diagnostics, n->at, "%s %s is already in line %u; %s", what,
                                               QUOTE(n->name), before->at.line, advice);
                else
                        config_diagnostics_add(b->diagnostics, n->at, "%s %s is already in %s, line %u; %s", what,
                                               QUOTE(n->name), QUOTE(before->at.path), before->at.line, advice);
        }
}

static int names_init(NamedPlaces *names, size_t n) {
        *names = (NamedPlaces){ .items = calloc(n > 0 ? n : 1, sizeof(NamedPlace)) };
        return names->items ? 0 : error_origin(-ENOMEM);
}

static void names_deinit(NamedPlaces *names) {
        free(names->items);
        *names = (NamedPlaces){ .items = NULL };
}

static void names_add(NamedPlaces *names, const char *name, ConfigPlace at, size_t index) {
        names->items[names->n_items++] = (NamedPlace){ .name = name, .at = at, .index = index };
}

static void group_find_target(Build *b, ConfigGroup *g, const NamedPlaces *targets) {
        const NamedPlace *found = bsearch(g->target_name, targets->items, targets->n_items, sizeof(*targets->items),
                                          name_compare);
        size_t n_candidates = targets->n_items;
        Nearest near = NEAREST_NULL;

        if (found) {
                g->target = found->index;
                return;
        }
        if (b->is_partial || !g->target_at.path)
                return;
        if (targets->n_items > HINT_TARGETS_MAX || config_diagnostics_is_full(b->diagnostics))
                n_candidates = 0;
        for (size_t i = 0; i < n_candidates; i++)
                nearest_add(&near, g->target_name, targets->items[i].name);
        config_diagnostics_add(b->diagnostics, g->target_at, "target: found %s, which is not the name of a target in 'targets'%s",
                               QUOTE(g->target_name), HINT(&near));
}

static int targets_check(Build *b) {
        _cleanup_(names_deinit) NamedPlaces names = { .items = NULL };
        Config *c = b->config;
        int r;

        r = names_init(&names, c->n_targets);
        if (r < 0)
                return r;
        for (size_t i = 0; i < c->n_targets; i++)
                names_add(&names, c->targets[i].name, c->targets[i].at, i);
        names_check(b, &names, "target", "give one of them another name");
        r = checkpoint(NULL);
        for (size_t i = 0; i < c->n_groups && r == 0; i++) {
                group_find_target(b, &c->groups[i], &names);
                r = checkpoint(NULL);
        }
        return r;
}

static int groups_check(Build *b) {
        _cleanup_(names_deinit) NamedPlaces names = { .items = NULL };
        Config *c = b->config;
        int r;

        r = names_init(&names, c->n_groups);
        if (r < 0)
                return r;
        for (size_t i = 0; i < c->n_groups; i++)
                names_add(&names, c->groups[i].name, c->groups[i].at, i);
        names_check(b, &names, "group", "give one of them another name");
        return checkpoint(NULL);
}

/* What a client emits has no process or CPU to choose: its samples say where they are from. */
static void external_check(Build *b, const ConfigEvent *e) {
        const ConfigTarget *t = &b->config->targets[e->target];

        if (strncmp(e->event, "external:", strlen("external:")) == 0 && strcmp(t->name, "host") != 0)
                config_diagnostics_add(b->diagnostics, e->at,
                                       "%s is emitted by clients and cannot have a target, but its group has "
                                       "%s; move it to a group without a target",
                                       QUOTE(e->event), QUOTE(t->name));
}

/* Path NULL: never. */
static ConfigPlace last_set(const Build *b, const char *section, const char *key) {
        return b->config->set_at[key_index(key_find(section, key))];
}

/*
 * Whether Linux opens it only with a clock that is safe in an NMI: all but software events (PERF_PMU_CAP_NO_NMI). Of hardware events
 * each PMU says so itself, which is seen when they are opened.
 */
static bool needs_nmi_safe_clock(const EventName *n) {
        return n->kind == EVENT_NAME_BREAKPOINT || (event_name_has_fields(n) && n->kind != EVENT_NAME_EXTERNAL);
}

/* Said once, at the clock: it is that which has to be another one. */
static int clock_check(Build *b) {
        const Config *c = b->config;
        ConfigPlace at = last_set(b, "", "clock");
        bool fits = true;
        int r = 0;

        if (clock_is_nmi_safe(c->clock) || !at.path)
                return 0;
        for (size_t i = 0; i < c->n_events && r == 0 && fits; i++) {
                _cleanup_(event_names_deinit) EventNames names = EVENT_NAMES_NULL;
                const ConfigEvent *event = &c->events[i];

                r = event->event ? event_names_parse(event->event, &names, NULL) : 0;
                for (size_t k = 0; k < names.n_members && r == 0 && fits; k++)
                        fits = !needs_nmi_safe_clock(&names.members[k]);
                if (r == 0 && !fits)
                        config_diagnostics_add(b->diagnostics, at, "clock: with %s the kernel opens software events, but no "
                                               "tracepoints, probes and breakpoints, such as %s of group %s: expected monotonic "
                                               "or monotonic-raw", config_clock_name(c), QUOTE(event->event), QUOTE(event->group));
                if (r == 0)
                        r = checkpoint(NULL);
        }
        return r;
}

/* Also hands each event the target of its group: both are in the order of reading. */
static int events_check(Build *b) {
        _cleanup_(names_deinit) NamedPlaces names = { .items = NULL };
        Config *c = b->config;
        size_t group = 0;
        int r;

        r = names_init(&names, c->n_events);
        if (r < 0)
                return r;
        for (size_t i = 0; i < c->n_events && r == 0; i++) {
                ConfigEvent *e = &c->events[i];

                while (c->groups[group].name != e->group)
                        group++;
                e->target = c->groups[group].target;
                external_check(b, e);
                if (e->name_at.path)
                        names_add(&names, e->name, e->name_at, i);
                r = checkpoint(NULL);
        }
        if (r == 0)
                names_check(b, &names, "event name", "give one of them another 'name'");
        return r;
}

/* The file, and what is written beside it and then renamed, are no sockets. */
static void state_check(Build *b, ConfigPlace at) {
        const char *sockets[] = { b->config->control_path, b->config->stream_path }, *state = b->config->state_path;

        for (size_t i = 0; i < ARRAY_SIZE(sockets); i++)
                if (strncmp(sockets[i], state, strlen(state)) == 0 &&
                    (!sockets[i][strlen(state)] || strcmp(sockets[i] + strlen(state), ".new") == 0)) {
                        config_diagnostics_add(
                                b->diagnostics, at,
                                "state: the file %s, which is written with .new behind its name "
                                "and then renamed, would replace the socket %s; give them different paths",
                                QUOTE(state), QUOTE(sockets[i]));
                        return;
                }
}

/* Behind what says nothing: slashes, and "." as a folder. */
static const char *path_skip(const char *path) {
        while (path[0] == '/' && (path[1] == '/' || (path[1] == '.' && path[2] == '/')))
                path += path[1] == '/' ? 1 : 2;
        return path;
}

/* As far as it can be told by what is written. */
static bool path_is_same(const char *a, const char *b) {
        for (;; a++, b++) {
                a = path_skip(a);
                b = path_skip(b);
                if (*a != *b || !*a)
                        return *a == *b;
        }
}

static void socket_check(Build *b, const char *key, const char *path) {
        const char *name = strrchr(path, '/');
        ConfigPlace at = last_set(b, "listen", key);

        if (at.path && name && (strcmp(name, "/..") == 0 || strcmp(name, "/.") == 0))
                config_diagnostics_add(b->diagnostics, at, "listen.%s: %s is a directory, expected the path of a "
                        "socket", key, QUOTE(path));
}

/* Contradictions are said where the later of both was written; the defaults do not contradict each other. */
static void settings_check(Build *b) {
        ConfigPlace socket = config_place_later(last_set(b, "listen", "stream"), last_set(b, "listen", "control"));
        ConfigPlace per_uid = last_set(b, "connections", "per-uid");
        ConfigPlace memory_per_uid = last_set(b, "subscribers", "memory-per-uid");
        ConfigPlace default_latency = last_set(b, "subscribers", "default-latency");
        char found[DURATION_SIZE], least[DURATION_SIZE];
        ConfigPlace state = config_place_later(last_set(b, "", "state"), socket);
        Config *c = b->config;

        socket_check(b, "control", c->control_path);
        socket_check(b, "stream", c->stream_path);
        if (path_is_same(c->control_path, c->stream_path) && socket.path)
                config_diagnostics_add(b->diagnostics, socket,
                                       "listen: control and stream have the same path %s, expected different paths",
                                       QUOTE(c->control_path));
        if (state.path)
                state_check(b, state);
        if (c->connections_per_uid > c->connections_max && per_uid.path)
                config_diagnostics_add(b->diagnostics, per_uid,
                                       "connections.per-uid: found '%llu', expected at most connections.max, %llu",
                                       (unsigned long long)c->connections_per_uid,
                                       (unsigned long long)c->connections_max);
        if (c->subscriber_memory_per_uid > c->subscriber_memory && memory_per_uid.path)
                config_diagnostics_add(b->diagnostics, memory_per_uid,
                                       "subscribers.memory-per-uid: found '%llu', expected at most subscribers.memory, %llu",
                                       (unsigned long long)c->subscriber_memory_per_uid, (unsigned long long)c->subscriber_memory);
        if (c->subscriber_default_latency < c->subscriber_latency && !default_latency.path)
                c->subscriber_default_latency = c->subscriber_latency;
        else if (c->subscriber_default_latency < c->subscriber_latency)
                config_diagnostics_add(b->diagnostics, default_latency,
                                       "subscribers.default-latency: found '%s', expected at least subscribers.latency, %s",
                                       duration_text(c->subscriber_default_latency, found), duration_text(c->subscriber_latency, least));
}

int build_check_references(Build *b) {
        int r;

        settings_check(b);
        r = targets_check(b);
        if (r == 0)
                r = groups_check(b);
        if (r == 0)
                r = events_check(b);
        if (r == 0)
                r = clock_check(b);
        if (r == 0)
                r = rules_resolve(b);
        return r;
}
