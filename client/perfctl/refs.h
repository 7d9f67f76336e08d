/* For the verbs that change events: what they changed. */
#pragma once

#include "client/perfctl/perfctl.h"

/* One line for each: name and id; or {"name":...,"id":N}. */
void refs_print(Perfctl *p, const perfd_result *result);

typedef int (*RefsChange)(perfd_client *client, const char *const *names, size_t n_names, perfd_result **ret_result);

/* Connects, changes p->arguments, prints what was changed. An exit status. */
int refs_change(Perfctl *p, RefsChange change);
