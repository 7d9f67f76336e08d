/* For the verbs that change the configuration: what they did. */
#pragma once

#include "client/perfctl/print/json.h"
#include "client/perfctl/base/perfctl.h"

/* One line: how many events were added, removed, changed and kept. */
void reload_print(Perfctl *p, const perfd_result *result);
/* "needs_restart": the settings of a reload, an apply or a status that take effect only when perfd is restarted. */
void reload_put_restart_json(Json *j, const perfd_result *result);
/*
 * What the daemon has refused of these files, as an exit status, and what else is wrong with them; of an event that may come, there is
 * another way than to wait: --allow-pending.
 */
int reload_fail(const Perfctl *p, const perfd_config_text *texts, size_t n, const char *allow_pending);
/* plan.c: also what `apply` does on all of several hosts before it changes one. */
int plan_run(Perfctl *p);
