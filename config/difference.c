/* Settings are compared as the texts that show them: what looks the same is the same, and a new type needs one case. */
#include "config/difference.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/duration.h"

/* A switch over the types of settings. */
static const char *setting_text(const Key *k, const Config *c, char buffer[static CONFIG_PRIORITY_SIZE]) {
        const void *value = (const char *)c + k->offset;
        const char *text;

        switch (k->type) {
        case KEY_COUNT:
        case KEY_SIZE:
        case KEY_RING_SIZE:
                (void)snprintf(buffer, CONFIG_PRIORITY_SIZE, "%llu", (unsigned long long)*(const uint64_t *)value);
                return buffer;
        case KEY_DURATION:
                return duration_text(*(const uint64_t *)value, buffer);
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

static bool texts_equal(const char *a, const char *b) {
        return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool ids_equal(const uint32_t *a, size_t n_a, const uint32_t *b, size_t n_b) {
        return n_a == n_b && (n_a == 0 || memcmp(a, b, n_a * sizeof(*a)) == 0);
}

static bool rules_equal(const ConfigRule *a, const ConfigRule *b) {
        return strings_equal(&a->users, &b->users) && strings_equal(&a->groups, &b->groups) &&
               ids_equal(a->uids, a->n_uids, b->uids, b->n_uids) && ids_equal(a->gids, a->n_gids, b->gids, b->n_gids) &&
               a->status == b->status && strings_equal(&a->subscribe, &b->subscribe) && texts_equal(a->where, b->where) &&
               strings_equal(&a->emit, &b->emit) && a->stat == b->stat && a->own_processes == b->own_processes;
}

static const char *rules_text(size_t n, bool is_changed, char buffer[static CONFIG_PRIORITY_SIZE]) {
        (void)snprintf(buffer, CONFIG_PRIORITY_SIZE, "%zu rule%s%s", n, n == 1 ? "" : "s", is_changed ? ", changed" : "");
        return buffer;
}

bool config_rules_difference(const Config *before, const Config *after, ConfigDifference *ret) {
        const bool same_number = before->n_rules == after->n_rules;
        bool equal = same_number;

        for (size_t i = 0; i < after->n_rules && equal; i++)
                equal = rules_equal(&before->rules[i], &after->rules[i]);
        if (equal)
                return false;
        ret->key = key_find("access", "rules");
        ret->before = rules_text(before->n_rules, false, ret->texts[0]);
        ret->after = rules_text(after->n_rules, same_number, ret->texts[1]);
        ret->at = after->set_at[key_index(ret->key)];
        return true;
}

const char *config_unit(const Key *k) {
        return k->type == KEY_SIZE || k->type == KEY_RING_SIZE ? " bytes" : "";
}
