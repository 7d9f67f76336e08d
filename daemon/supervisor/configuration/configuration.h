/* The configuration as a change. Main thread only. */
#pragma once
#include "config/parse/load.h"
#include "daemon/supervisor/changes/changes.h"
#include "daemon/supervisor/notify/notifier.h"

typedef struct Configuration {
        Settings *settings;
        Host *host;
        Operations *operations;
        Notifier *notifier;
        Readers *readers;
        Events *events;
        Resolver *resolver;
        Subscriptions *subscriptions;
        Streams *streams;
        Changes *changes;
} Configuration;


/* supervisor/configuration/validate.c: a YAML text against this host: everything is opened once, disabled, and closed. 0, REFUSED_INVALID or _CANCELLED, negative. */
int configuration_validate(Configuration *s, const ConfigText *texts, size_t n, ConfigDiagnostics *m);
/* supervisor/configuration/reload.c: from what is configured to another configuration, all of it or, refused, nothing. */
int configuration_apply_initial(Configuration *s, Explanation *e); /* the one that it was started with */
/* notes: gets what is to be said to who asked, warnings and that the rules have changed; or NULL. The caller's to deinit, also if refused. */
int configuration_reload(Configuration *s, Strings *notes, Perfd__V1__ReloadReply *ret, Explanation *e);
/*
 * A text, with its drop-ins, as the configuration until the next reload. may_wait: what cannot be opened now is pending,
 * and refuses nothing.
 */
int configuration_apply(Configuration *s, const ConfigText *texts, size_t n, bool may_wait, Perfd__V1__ReloadReply *ret,
                        Explanation *e);
/* What that would do, or, of no text, a reload. The reply's strings and arrays are malloc'ed, for free_unpacked(), also when it fails. */
int configuration_plan(Configuration *s, const ConfigText *texts, size_t n, bool may_wait, Perfd__V1__PlanReply *ret,
                       Explanation *e);
/*
 * Settings of the configuration that holds now which perfd was started without, and that a restart would let hold, but for those of
 * sockets that systemd has made. The list grows also when it fails. -ENOMEM
 */
int configuration_add_restart_settings(const Settings *s, Perfd__V1__Difference ***list, size_t *n);
/* The same to a reply, with notes of what to do for those. */
int configuration_add_restarts(const Settings *s, Perfd__V1__ReloadReply *ret);
