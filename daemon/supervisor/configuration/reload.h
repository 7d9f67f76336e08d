/* Between supervisor/configuration/reload.c, supervisor/configuration/reload-prepare.c and supervisor/configuration/plan.c: what another configuration changes. Main thread only. */
#pragma once

#include "daemon/supervisor/changes/changes.h"
#include "daemon/supervisor/changes/extend.h"
#include "daemon/supervisor/changes/persistent.h"
#include "daemon/supervisor/changes/replace.h"
#include "daemon/supervisor/configuration/retry.h"
#include "daemon/supervisor/events/configured.h"
#include "daemon/supervisor/configuration/configuration.h"

typedef struct Reload {
        Registration *added, **end; /* resolved and opened; where the next one goes */
        size_t n_added;
        Registration **kept; /* registrations that the new configuration has as well, also those that are replaced */
        size_t n_kept;
        Replacement *replacements;
        size_t n_replacements;
        Registration **removed; /* also those whose name is in `added`: they are changed by a new event */
        size_t n_removed;
        bool may_wait;         /* what cannot be opened now is pending, and refuses nothing */
        PendingEvent *pending, **pending_end;
} Reload;

typedef enum ReloadKind {
        RELOAD_ADD,    /* also what takes the place of another one of its name */
        RELOAD_KEEP,
        RELOAD_CHANGE, /* while it runs */
} ReloadKind;

/* What an event means, or several by a glob. */
int reload_resolve(Configuration *s, const Config *c, const ConfigEvent *from, Registration **ret, Explanation *e);
/* What becomes of one that was resolved. ret_running: of its name, or NULL. Refused: a client has added that. */
int reload_find(const Configuration *s, const Registration *fresh, Registration **ret_running, ReloadKind *ret, Explanation *e);

/* With `end` at its `added`. Then all that was resolved is taken, and the end says what is removed. In a trial nothing is opened. */
int reload_begin(const Configuration *s, Reload *w);
/* `fresh` moves, also if it is refused. */
int reload_take(Configuration *s, Reload *w, Registration *fresh, Explanation *e);
int reload_end(const Configuration *s, Reload *w, Explanation *e);
/* All of it, with `may_wait`. */
int reload_prepare(Configuration *s, const Config *c, Reload *w, Explanation *e);
void reload_deinit(Configuration *s, Reload *w);
/* The text, with its drop-ins, as a Config. Refused: with every error in it. */
int reload_parse(const ConfigText *texts, size_t n, Config **ret, Explanation *e);
/* perfd's own, from its files; its warnings are logged, and added to `notes`, unless that is NULL. */
int reload_load(const Configuration *s, Strings *notes, Config **ret, Explanation *e);
/* It is part of the change, though it was refused with this. -ENOMEM */
int reload_add_pending(Configuration *s, const Config *c, const ConfigEvent *from, Reload *w, const Explanation *e);
/* Every event of the configuration as one that is pending, for no reason yet. The list grows also when it fails: -ENOMEM. */
int reload_all_pending(Configuration *s, const Config *c, PendingEvent **list);
