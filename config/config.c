/*
 * The object's life. A Config is written only while it is under construction, with one reference; shared it is never
 * written again, so the threads that hold it need no lock.
 */
#include "config/config.h"

#include <stdio.h>
#include <string.h>

#include "config/rule.h"
#include "config/target.h"
#include "config/value.h"
#include "daemon/base/array.h"

Config *config_default(void) {
        _cleanup_(config_unrefp) Config *c = calloc(1, sizeof(*c));
        ConfigTarget *host;

        if (!c)
                return NULL;
        c->n_refs = 1;
        c->version = 1;
        if (values_set_defaults(OWNER_CONFIG, c) < 0 || !ARRAY_ROOM(c->targets, c->n_targets))
                return NULL;
        host = &c->targets[c->n_targets++];
        *host = (ConfigTarget){ .name = strdup("host") };
        if (!host->name || values_set_defaults(OWNER_TARGET, host) < 0)
                return NULL;
        return TAKE_PTR(c);
}

Config *config_ref(Config *c) {
        if (c)
                atomic_fetch_add_explicit(&c->n_refs, 1, memory_order_relaxed);
        return c;
}

Config *config_unref(Config *c) {
        if (!c || atomic_fetch_sub_explicit(&c->n_refs, 1, memory_order_acq_rel) > 1)
                return NULL;
        for (size_t i = 0; i < c->n_events; i++)
                values_deinit(OWNER_EVENT, &c->events[i]);
        free(c->events);
        for (size_t i = 0; i < c->n_groups; i++) {
                values_deinit(OWNER_GROUP, &c->groups[i]);
                free(c->groups[i].name);
        }
        free(c->groups);
        for (size_t i = 0; i < c->n_targets; i++)
                target_deinit(&c->targets[i]);
        free(c->targets);
        rules_free(c);
        for (size_t i = 0; i < c->n_paths; i++)
                free(c->paths[i]);
        free(c->paths);
        file_stamps_deinit(&c->stamps);
        values_deinit(OWNER_CONFIG, c);
        free(c);
        return NULL;
}

bool config_is_current(const Config *c) {
        return file_stamps_are_current(&c->stamps);
}

const char *config_clock_name(const Config *c) {
        return key_choice_word(key_find("", "clock"), c->clock);
}

char *config_priority_text(ThreadPriority p, char buffer[static CONFIG_PRIORITY_SIZE]) {
        static const char *const words[] = { [THREAD_NICE] = "nice", [THREAD_FIFO] = "fifo" };

        if (p.policy == THREAD_NORMAL)
                (void)snprintf(buffer, CONFIG_PRIORITY_SIZE, "normal");
        else
                (void)snprintf(buffer, CONFIG_PRIORITY_SIZE, "%s:%d", words[p.policy], p.value);
        return buffer;
}
