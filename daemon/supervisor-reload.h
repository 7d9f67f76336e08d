/* Between supervisor-reload.c, supervisor-reload-prepare.c and supervisor-plan.c: what another configuration changes. Main thread only. */
#pragma once

#include "daemon/supervisor.h"

typedef struct Reload {
        Registration *added, **end; /* resolved and opened; where the next one goes */
        size_t n_added;
        Registration **kept; /* registrations that the new configuration has as well, also those that are replaced */
        size_t n_kept;
        Replacement *replacements;
        size_t n_replacements;
        Registration **removed; /* also those whose name is in `added`: they are changed by a new event */
        size_t n_removed;
        bool may_wait;         /* what can not be opened now is pending, and refuses nothing */
        PendingEvent *pending;
} Reload;

/* With `end` at its `added`, and `may_wait`. */
int reload_prepare(Supervisor *s, const Config *c, Reload *w, Explanation *e);
void reload_deinit(Supervisor *s, Reload *w);
/* The text as a Config. Refused: with every mistake in it. */
int reload_parse(const char *yaml, const char *path, Config **ret, Explanation *e);
/* Refused with this: it may be another answer when the host has changed. A mistake stays one. */
bool reload_may_come(int r);
/* Every event of the configuration as one that is pending, for no reason yet. The list grows also when it fails: -ENOMEM. */
int reload_all_pending(Supervisor *s, const Config *c, PendingEvent **list);
