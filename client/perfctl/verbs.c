/* The table of verbs, in the order in which help shows them. */
#include "client/perfctl/verb.h"

#include <string.h>

const Verb *const verbs[] = {
        &verb_status, &verb_list,   &verb_available, &verb_show,   &verb_add,    &verb_remove,
        &verb_enable, &verb_disable, &verb_filter,   &verb_period, &verb_watch,  &verb_count,
        &verb_stat,   &verb_emit,   &verb_ledger,    &verb_doctor, &verb_validate, &verb_plan,
        &verb_apply,  &verb_reload, &verb_version,   &verb_help,   &verb_complete, NULL,
};

const Verb *verb_find(const char *name) {
        for (size_t i = 0; verbs[i]; i++)
                if (strcmp(verbs[i]->name, name) == 0)
                        return verbs[i];
        return NULL;
}
