/*
 * From one configuration to another as one change: everything new is resolved and opened first, so that an error anywhere
 * leaves everything as it was; what is the same in both is not touched, and what differs only in what can be changed while
 * it runs keeps its id and loses nothing.
 *
 * What the host does not have now, as a unit that starts later, refuses a start or a reload only where the configuration says
 * `strict`; an apply only if its client allows nothing else. Such an event is part of the new configuration, and pending.
 *
 * New events begin before old ones end, also those that take their place under the same name: until the last of what can
 * be refused has succeeded, nothing is gone that could not be brought back.
 */
#include "daemon/supervisor/configuration/reload.h"

#include <stdio.h>
#include <string.h>

#include "config/difference.h"
#include "config/parse/load.h"
#include "daemon/base/log.h"
#include "daemon/base/printable.h"
#include "daemon/supervisor/access/access.h"
#include "daemon/supervisor/changes/changes.h"
#include "daemon/supervisor/changes/persistent.h"
#include "daemon/supervisor/changes/replace.h"
#include "daemon/supervisor/configuration/configuration.h"
#include "daemon/supervisor/events/registered.h"
#include "daemon/supervisor/streams/access-change.h"
#include "daemon/supervisor/streams/sockets.h"

static int reload_commit(Configuration *s, Reload *w, Explanation *e) {
        Registration *added = TAKE_PTR(w->added);
        int r;

        r = added ? changes_register(s->changes, added, w->n_added, e) : 0;
        if (r != 0)
                return r;
        r = changes_replace(s->changes, w->replacements, w->n_replacements, e);
        if (r > 0 && added) {
                int undone = changes_unregister(s->changes, added, w->n_added);

                r = undone < 0 ? undone : r;
        }
        return r == 0 && w->n_removed > 0 ? changes_remove_selected(s->changes, w->removed, w->n_removed, e) : r;
}

/*
 * Said of what was started with, and not of the configuration before: whoever reloads twice hears it twice, and whoever takes it
 * back hears nothing.
 */
static void log_restart_needed(const Settings *s, const Config *c) {
        ConfigDifference d;

        for (size_t row = 0; config_difference_next(s->started_with, c, &row, &d);) {
                const char *unit = config_unit(d.key);
                char text[512];

                if (!d.key->restart)
                        continue;
                if (!sockets_advise(s, d.key->pattern, text, sizeof(text)))
                        (void)snprintf(text, sizeof(text), "%s%s takes effect after a restart: it is %s%s until then, and %s%s "
                                       "afterwards", d.key->pattern, d.at.path ? "" : ", which is no longer set,", d.before, unit, d.after, unit);
                if (d.at.path)
                        log_print(LOG_WARNING, MESSAGE_NEEDS_RESTART, "%s:%u:%u: %s", d.at.path, d.at.line, d.at.column, text);
                else
                        log_print(LOG_WARNING, MESSAGE_NEEDS_RESTART, "%s", text);
        }
}

/* Those that are there twice: under their names there is an old and a new one. */
static uint32_t reload_count_changed(const Configuration *s, const Reload *w) {
        uint32_t n = 0;

        for (const Registration *g = w->added; g; g = g->next)
                n += events_find(s->events, g->event->spec.name) != NULL;
        return n;
}

static int change_events(Configuration *s, Config *c, bool may_wait, Perfd__V1__ReloadReply *ret, Explanation *e) {
        Config *before = s->settings->config; /* may be `c`, and then has no other reference */
        Reload w = { .end = &w.added, .pending_end = &w.pending, .may_wait = may_wait };
        uint32_t n_changed = 0;
        int r = reload_prepare(s, c, &w, e);

        if (r == 0) {
                n_changed = reload_count_changed(s, &w);
                r = reload_commit(s, &w, e);
        }
        if (r == 0) {
                ret->added = (uint32_t)w.n_added - n_changed;
                ret->removed = (uint32_t)w.n_removed - n_changed;
                ret->changed = n_changed + (uint32_t)w.n_replacements;
                ret->kept = (uint32_t)(w.n_kept - w.n_replacements);
                log_restart_needed(s->settings, c);
                s->settings->config = config_ref(c);
                config_unref(before);
                for (const PendingEvent *p = w.pending; p; p = p->next)
                        pending_log(p);
                events_set_pending(s->events, TAKE_PTR(w.pending), true);
                r = subscriptions_update_memory(s->subscriptions);
        }
        reload_deinit(s, &w);
        return r;
}

/* What the events are refused for, before anything of them is there. */
static int try_events(Configuration *s, const Config *c, bool may_wait, Explanation *e) {
        Reload w = { .end = &w.added, .pending_end = &w.pending, .may_wait = may_wait };
        int r;

        operations_set_trying(s->operations, true);
        r = reload_prepare(s, c, &w, e);
        reload_deinit(s, &w);
        operations_set_trying(s->operations, false);
        return r;
}

/*
 * The rings first: new events are opened into them. But what of the events is refused is found before that, because rings are
 * taken back only by another change of all events; that remains for what only opening all of them shows.
 */
static int configuration_change_config(Configuration *s, Config *c, bool may_wait, Perfd__V1__ReloadReply *ret, Explanation *e) {
        size_t before = s->settings->config->ring_size, after = c->ring_size;
        int r = after != before ? try_events(s, c, may_wait, e) : 0;

        if (r == 0 && after != before)
                r = changes_resize_rings(s->changes, after, e);
        if (r != 0)
                return r;
        r = change_events(s, c, may_wait, ret, e);
        if (r > 0 && after != before) {
                int undone = changes_resize_rings(s->changes, before, NULL);

                if (undone > 0)
                        log_print(LOG_ERR, MESSAGE_RINGS_RESIZED, "the ring buffers keep their new size: the old one is now "
                                "refused");
                r = undone < 0 ? undone : r;
        }
        if (r == 0) {
                operations_set_final(s->operations); /* what cannot be opened stays pending; what the change is about has been done */
                r = configuration_retry_persistent(s);
        }
        if (r == 0) {
                ret->pending = (uint32_t)events_count_pending(s->events);
                ret->ring_size = after != before ? after : 0;
        }
        return r;
}

/* Where enabling all of them as one is refused, each is tried on its own. */
static int add_one_by_one(Configuration *s) {
        PendingEvent *list = NULL;
        int r = reload_all_pending(s, s->settings->config, &list);

        if (r < 0) {
                pending_free_list(list);
                return r;
        }
        events_set_pending(s->events, list, true);
        return configuration_retry_pending(s);
}

int configuration_apply_initial(Configuration *s, Explanation *e) {
        Perfd__V1__ReloadReply reply = PERFD__V1__RELOAD_REPLY__INIT;
        int r = configuration_change_config(s, s->settings->config, !s->settings->config->strict, &reply, e);

        return refusal_may_pass(r) && !s->settings->config->strict ? add_one_by_one(s) : r;
}

#define MORE_MISTAKES_SIZE 80 /* of a list, for what it has no room for */

static int refuse_errors(const ConfigDiagnostics *m, const char *path, Explanation *e) {
        size_t used = 0, n_left = 0;
        char line[sizeof(e->text)];

        (void)refuse(e, REFUSED_INVALID, "bad-config", "%s is not valid", path);
        for (size_t i = 0; i < m->n_items; i++) {
                size_t n = m->items[i].warning ? 0 : config_diagnostic_text(&m->items[i], line, sizeof(line) - MORE_MISTAKES_SIZE);

                if (m->items[i].warning)
                        continue;
                if (n_left > 0 || used + n + 1 + MORE_MISTAKES_SIZE > sizeof(e->text)) { /* whole ones, and how many there is no room for */
                        n_left++;
                        continue;
                }
                used += (size_t)snprintf(e->text + used, sizeof(e->text) - used, "%s%s", used > 0 ? "\n" : "", line);
        }
        if (n_left > 0)
                (void)snprintf(e->text + used, sizeof(e->text) - used, "%sand %zu more errors: `perfctl validate` lists all",
                               used > 0 ? "\n" : "", n_left);
        utf8_mend(e->text); /* one that is longer than all the room is cut, perhaps in a character */
        return REFUSED_INVALID;
}

/* What reading it has said. */
static int refuse_config(int r, const ConfigDiagnostics *m, const char *path, Explanation *e) {
        if (r == REFUSED_CANCELLED)
                return refuse(e, r, "cancelled", "it was not read completely: perfd is stopping, or the request was cancelled");
        return r > 0 ? refuse_errors(m, path, e) : r;
}

/* What only the daemon knows of a configuration that is right else: its rules. */
static int check_rules(int r, const Config *c, ConfigDiagnostics *m) {
        if (r == 0)
                r = access_check(c, m);
        if (r == 0)
                r = config_diagnostics_finish(m);
        return r == 0 && m->n_errors > 0 ? REFUSED_INVALID : r;
}

/* notes: for who asked, or NULL. -ENOMEM */
static int tell_warning(const ConfigDiagnostic *m, Strings *notes) {
        char line[1024];

        (void)config_diagnostic_text(m, line, sizeof(line));
        utf8_mend(line);
        log_print(LOG_WARNING, MESSAGE_BAD_CONFIG, "%s", line);
        return notes ? strings_add(notes, line) : 0;
}

int reload_load(const Configuration *s, Strings *notes, Config **ret, Explanation *e) {
        ConfigDiagnostics diagnostics = CONFIG_DIAGNOSTICS_NULL;
        int r;

        if (!s->settings->config_path)
                return refuse(e, REFUSED_INVALID, "bad-config", "perfd runs without a configuration: start it with --config to "
                        "reload one");
        r = config_load(s->settings->config_path, &diagnostics, ret);
        r = check_rules(r, r == 0 ? *ret : NULL, &diagnostics);
        if (r > 0)
                *ret = config_unref(*ret);
        r = refuse_config(r, &diagnostics, s->settings->config_path, e);
        for (size_t i = 0; i < diagnostics.n_items && r == 0; i++)
                r = tell_warning(&diagnostics.items[i], notes);
        config_diagnostics_deinit(&diagnostics);
        if (r < 0)
                *ret = config_unref(*ret);
        return r;
}

/* Others than before, of which no event and no restart tells. */
static int note_rules(const Config *before, const Config *after, Strings *notes) {
        ConfigDifference d;
        char text[128];

        if (!notes || !config_rules_difference(before, after, &d))
                return 0;
        (void)snprintf(text, sizeof(text), "%s: %s -> %s", d.key->pattern, d.before, d.after);
        return strings_add(notes, text);
}

static int reload_file(Configuration *s, Strings *notes, Perfd__V1__ReloadReply *ret, Explanation *e) {
        _cleanup_(config_unrefp) Config *c = NULL;
        int r;

        thread_assert(THREAD_MAIN);
        r = reload_load(s, notes, &c, e);
        if (r == 0)
                r = note_rules(s->settings->access, c, notes);
        if (r != 0)
                return r;
        s->settings->loads_own_config = true;
        r = configuration_change_config(s, c, !c->strict, ret, e);
        s->settings->loads_own_config = false;
        return r == 0 ? streams_change_access(s->streams, c) : r; /* which an apply leaves alone: without rules all would be everybody's */
}

/* `systemctl status` shows it until a reload succeeds, whoever asked for this one. */
static void tell_outcome(Configuration *s, int r, const Explanation *e) {
        char text[600];

        if (r < 0 || r == REFUSED_CANCELLED)
                return;
        (void)snprintf(text, sizeof(text), "not reloaded, nothing has changed: %.*s", (int)strcspn(e->text, "\n"), e->text);
        notifier_set_status(s->notifier, r == 0 ? NULL : text);
}

int configuration_reload(Configuration *s, Strings *notes, Perfd__V1__ReloadReply *ret, Explanation *e) {
        int r = reload_file(s, notes, ret, e);

        tell_outcome(s, r, e);
        return r;
}

int reload_parse(const ConfigText *texts, size_t n, Config **ret, Explanation *e) {
        ConfigDiagnostics diagnostics = CONFIG_DIAGNOSTICS_NULL;
        int r = config_parse_all(texts, n, &diagnostics, ret);

        r = check_rules(r, r == 0 ? *ret : NULL, &diagnostics);
        if (r > 0)
                *ret = config_unref(*ret);
        r = refuse_config(r, &diagnostics, texts[0].path, e);
        config_diagnostics_deinit(&diagnostics);
        return r;
}

int configuration_apply(Configuration *s, const ConfigText *texts, size_t n, bool may_wait, Perfd__V1__ReloadReply *ret,
                        Explanation *e) {
        _cleanup_(config_unrefp) Config *c = NULL;
        int r;

        thread_assert(THREAD_MAIN);
        r = reload_parse(texts, n, &c, e);
        return r == 0 ? configuration_change_config(s, c, may_wait, ret, e) : r;
}
