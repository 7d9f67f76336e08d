#include "config/rule.h"

#include "config/value.h"

static void rule_deinit(ConfigRule *r) {
        values_deinit(OWNER_RULE, r);
        free(r->uids);
        free(r->gids);
}

void rules_free(Config *c) {
        for (size_t i = 0; i < c->n_rules; i++)
                rule_deinit(&c->rules[i]);
        free(c->rules);
        c->rules = NULL;
        c->n_rules = 0;
}
