/* For the verbs that change the configuration: what they did. */
#pragma once

#include "client/perfctl/perfctl.h"

/* One line: how many events were added, removed, changed and kept. */
void reload_print(Perfctl *p, const perfd_result *result);
