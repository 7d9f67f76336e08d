/* For reload and plan: in which settings two configurations differ. What targets, groups and events say is no setting. */
#pragma once

#include "config/config.h"

typedef struct ConfigDifference {
        const Key *key;
        const char *before, *after; /* of the configurations, or of `texts`: sizes in bytes; see config_unit() */
        char texts[2][CONFIG_PRIORITY_SIZE];
        ConfigPlace at; /* where the one behind sets it; path NULL: it does not, so it is the default */
} ConfigDifference;

/*
 * The next setting, from row `*row` of the table of keys on, that is not the same in both; `*row` is then behind it. False:
 * there is none left.
 */
bool config_difference_next(const Config *before, const Config *after, size_t *row, ConfigDifference *ret);
/*
 * The same of access.rules: how many there are, and whether they are others ("2 rules, changed"), also by what users and groups mean
 * on this host. Not of those above, because an apply leaves the rules as they are.
 */
bool config_rules_difference(const Config *before, const Config *after, ConfigDifference *ret);
/* What the numbers of a difference are: " bytes", " ns", "". */
const char *config_unit(const Key *k);
