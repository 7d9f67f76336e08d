/* The table of verbs, in the order in which help shows them. */
#include "client/perfctl/base/verb.h"

const Verb *const verbs[] = {
        &verb_status, &verb_list,   &verb_available, &verb_show,   &verb_add,    &verb_remove,
        &verb_enable, &verb_disable, &verb_filter,   &verb_period, &verb_watch,  &verb_record, &verb_count, &verb_top,
        &verb_stat,   &verb_emit,   &verb_ledger,    &verb_metrics, &verb_fleet,   &verb_info, &verb_script,  &verb_flame,
        &verb_export, &verb_report, &verb_doctor,
        &verb_validate, &verb_plan, &verb_apply,     &verb_reload, &verb_stdio,  &verb_version,
        &verb_help,   &verb_complete, NULL,
};
