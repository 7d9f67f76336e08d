/*
 * A list of a target leaves out what stands there twice, and `cgroup` is one more of `cgroups`: so places follow what the
 * lists have, and not the nodes of the file.
 */
#include "config/target.h"

#include <string.h>

#include "config/value.h"
#include "daemon/base/array.h"

typedef struct PlacedKey {
        const char *name; /* of the key in a target */
        size_t places;    /* index in ConfigTarget.places */
} PlacedKey;

static const PlacedKey placed[] = {
        { "pids", 0 },       { "tids", 1 },  { "cgroups", 2 }, { "cgroup", 2 },
        { "containers", 3 }, { "units", 4 }, { "cpus", 5 },
};

/* NULL: it has no places. */
static const PlacedKey *placed_find(const char *name) {
        for (size_t i = 0; i < ARRAY_SIZE(placed); i++)
                if (strcmp(placed[i].name, name) == 0)
                        return &placed[i];
        return NULL;
}

static size_t count_items(const ConfigTarget *t, const Key *k) {
        const void *value = (const char *)t + k->offset;

        switch (k->type) {
        case KEY_IDS:
                return ((const ConfigIds *)value)->n_ids;
        case KEY_CPUS:
                return *(char *const *)value != NULL;
        default:
                return ((const Strings *)value)->n;
        }
}

void target_deinit(ConfigTarget *t) {
        values_deinit(OWNER_TARGET, t);
        for (size_t i = 0; i < ARRAY_SIZE(t->places); i++)
                free(t->places[i].items);
        free(t->name);
        *t = (ConfigTarget){ .name = NULL };
}

int target_add_place(ConfigTarget *t, const Key *k, ConfigPlace at) {
        const PlacedKey *p = placed_find(key_below(k, "targets.NAME"));
        ConfigPlaces *places = p ? &t->places[p->places] : NULL;

        if (!p || places->n == count_items(t, k))
                return 0;
        if (!ARRAY_ROOM(places->items, places->n))
                return error_origin(-ENOMEM);
        places->items[places->n++] = at;
        return 0;
}

ConfigPlace config_item_place(const Config *c, const ConfigEvent *event, const char *key, size_t i) {
        const PlacedKey *p = placed_find(key);
        const ConfigPlaces *places = p ? &c->targets[event->target].places[p->places] : NULL;

        return places && i < places->n ? places->items[i] : event->at;
}
