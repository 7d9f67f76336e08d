/* For the verbs that change events: what they changed. */
#pragma once

#include "client/perfctl/base/perfctl.h"

/* One line for each: name and id; or {"name":...,"id":N}. */
void refs_print(Perfctl *p, const perfd_result *result);

/* A line of its own. */
void ref_print(Perfctl *p, const char *name, uint32_t id);
/* The running event of this name or "#ID", which was changed by a request that answers nothing. An exit status. */
int refs_print_named(Perfctl *p, const char *name);

typedef int (*RefsChange)(perfd_client *client, const char *const *names, size_t n_names, perfd_result **ret_result);

/*
 * Asks for p->arguments, and if one of them is no running event, for what `add` would call them: "sched_switch", "uprobe:bash:readline".
 * 0, or an exit status after a message.
 */
int refs_ask(Perfctl *p, RefsChange change, perfd_result **ret_result);
/* The running event that is meant by this word, in the same way; malloc'ed, to be freed in every case. The word itself if there is none. */
int refs_name(Perfctl *p, const char *name, char **ret);
/* Connects, changes p->arguments, prints what was changed. An exit status. */
int refs_change(Perfctl *p, RefsChange change);
