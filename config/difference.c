/* Settings are compared as the texts that show them: what looks the same is the same, and a new type needs one case. */
#include "config/difference.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* A switch over the types of settings. */
static const char *setting_text(const Key *k, const Config *c, char buffer[static CONFIG_PRIORITY_SIZE]) {
        const void *value = (const char *)c + k->offset;
        const char *text;

        switch (k->type) {
        case KEY_COUNT:
        case KEY_SIZE:
        case KEY_RING_SIZE:
        case KEY_DURATION:
                (void)snprintf(buffer, CONFIG_PRIORITY_SIZE, "%llu", (unsigned long long)*(const uint64_t *)value);
                return buffer;
        case KEY_PRIORITY:
                return config_priority_text(*(const ThreadPriority *)value, buffer);
        case KEY_MODE:
                (void)snprintf(buffer, CONFIG_PRIORITY_SIZE, "%04o", (unsigned)*(const mode_t *)value);
                return buffer;
        case KEY_BOOL:
                return *(const bool *)value ? "true" : "false";
        case KEY_CHOICE:
                return key_choice_word(k, *(const int *)value);
        case KEY_PATH:
        case KEY_ACCOUNT:
        case KEY_CPUS:
                text = *(const char *const *)value;
                return text ? text : "all"; /* no list of CPUs */
        default:
                assert(false); /* a setting of a new type needs a case above */
                return "";
        }
}

static bool is_setting(const Key *k) {
        return key_owner(k) == OWNER_CONFIG && k->type != KEY_SECTION && k->type != KEY_NAMED && k->type != KEY_RULES;
}

bool config_difference_next(const Config *before, const Config *after, size_t *row, ConfigDifference *ret) {
        while (*row < n_config_keys) {
                const Key *k = &config_keys[(*row)++];

                if (!is_setting(k))
                        continue;
                ret->before = setting_text(k, before, ret->texts[0]);
                ret->after = setting_text(k, after, ret->texts[1]);
                if (strcmp(ret->before, ret->after) == 0)
                        continue;
                ret->key = k;
                ret->at = after->set_at[key_index(k)];
                return true;
        }
        return false;
}

const char *config_unit(const Key *k) {
        return k->type == KEY_SIZE || k->type == KEY_RING_SIZE ? " bytes" : k->type == KEY_DURATION ? " ns" : "";
}
