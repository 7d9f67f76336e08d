/*
 * The configuration and what is traced because of it. A reload is one change: everything new is resolved and opened
 * first, so that a mistake anywhere leaves everything as it was; what is the same in both is not touched, and what
 * differs only in its filter keeps its id and loses nothing.
 */
#include "daemon/supervisor.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"

static int ids_copy(const ConfigIds *from, uint32_t **ret, size_t *ret_n) {
        if (from->n_ids == 0)
                return 0;
        *ret = malloc(from->n_ids * sizeof(**ret));
        if (!*ret)
                return -ENOMEM;
        memcpy(*ret, from->ids, from->n_ids * sizeof(**ret));
        *ret_n = from->n_ids;
        return 0;
}

static int string_copy(const char *from, char **ret) {
        if (from && !(*ret = strdup(from)))
                return -ENOMEM;
        return 0;
}

int spec_set_target(EventSpec *spec, const ConfigTarget *t) {
        int r;

        spec->no_inherit = !t->inherit;
        if (strcmp(t->name, "host") != 0 && (r = string_copy(t->name, &spec->target)) < 0)
                return r;
        if ((r = string_copy(t->cpus, &spec->cpus)) < 0 || (r = ids_copy(&t->pids, &spec->pids, &spec->n_pids)) < 0 ||
            (r = strings_copy(t->cgroups.items, t->cgroups.n, &spec->cgroups)) < 0 ||
            (r = strings_copy(t->containers.items, t->containers.n, &spec->containers)) < 0 ||
            (r = strings_copy(t->units.items, t->units.n, &spec->units)) < 0)
                return r;
        return ids_copy(&t->tids, &spec->tids, &spec->n_tids);
}

static int spec_from_config(const Config *c, const ConfigEvent *from, EventSpec *ret) {
        EventSpec spec = { .period = from->period, .frequency = from->frequency, .callchain = from->callchain,
                           .disabled = !from->enabled, .include_self = from->include_self, .configured = true,
                           .maxactive = (uint32_t)from->maxactive, .interval = from->interval };
        int r;

        if ((r = string_copy(from->event, &spec.event)) < 0 || (r = string_copy(from->name, &spec.name)) < 0 ||
            (r = string_copy(from->group, &spec.group)) < 0 ||
            (r = string_copy(from->filter, &spec.filter)) < 0 || (r = string_copy(from->args, &spec.args)) < 0 ||
            (r = string_copy(from->fallback ? "cpu-clock" : NULL, &spec.fallback)) < 0 ||
            (r = strings_copy(from->attr.items, from->attr.n, &spec.attr)) < 0 ||
            (r = strings_copy(from->fields.items, from->fields.n, &spec.fields)) < 0 ||
            (r = spec_set_target(&spec, &c->targets[from->target])) < 0) {
                event_spec_deinit(&spec);
                return r;
        }
        *ret = spec;
        return 0;
}

/* Where in the configuration a refused event stands, in front of why it was refused. */
static void place_explanation(const ConfigEvent *from, Explanation *e) {
        const ConfigPlace *at = e->reason && strcmp(e->reason, "bad-filter") == 0 && from->filter_at.path ? &from->filter_at
                                                                                                          : &from->at;
        Explanation placed = *e;

        (void)snprintf(placed.text, sizeof(placed.text), "%s:%u:%u: %.*s", at->path, at->line, at->column,
                       (int)sizeof(e->text) - 200, e->text);
        *e = placed;
}

/* Resolves and opens one event of a configuration; may be several by a glob. Nothing is registered. */
static int prepare(Supervisor *s, const Config *c, const ConfigEvent *from, Registration **ret, Explanation *e) {
        _cleanup_(event_spec_deinit) EventSpec spec = EVENT_SPEC_NULL;
        Registration *list = NULL;
        int r = spec_from_config(c, from, &spec);

        if (r == 0)
                r = supervisor_resolve(s, &spec, &list, e);
        if (r == 0)
                r = supervisor_open_list(s, &list, e);
        if (r != 0) {
                registrations_free(s, list);
                return r;
        }
        *ret = list;
        return 0;
}

int supervisor_validate(Supervisor *s, const char *yaml, ConfigMistakes *m) {
        _cleanup_(config_unrefp) Config *c = NULL;
        int r = config_parse("<yaml>", yaml, strlen(yaml), m, &c);

        for (size_t i = 0; r == 0 && i < c->n_events; i++) {
                Explanation e = EXPLANATION_NULL;
                Registration *list = NULL;
                int found = prepare(s, c, &c->events[i], &list, &e);

                registrations_free(s, list);
                if (found < 0)
                        r = found;
                if (found > 0)
                        config_mistakes_add(m, found == REFUSED_INVALID && c->events[i].filter_at.path ? c->events[i].filter_at
                                                                                                        : c->events[i].at,
                                            "%s", e.text);
        }
        if (r == 0)
                r = config_mistakes_finish(m);
        return r;
}

/* ---- reload ------------------------------------------------------------------------------------------------------ */

typedef struct Refilter {
        Registration *registration;
        Opened replacement;
        char *filter;
} Refilter;

typedef struct Reload {
        Registration *added, **end; /* where the next one goes */
        size_t n_added;
        Registration **kept; /* registrations that the new configuration has as well, refiltered ones included */
        size_t n_kept;
        Refilter *refilters;
        size_t n_refilters;
        char **removed; /* names; borrowed */
        size_t n_removed;
} Reload;

static void reload_deinit(Supervisor *s, Reload *w) {
        registrations_free(s, w->added);
        for (size_t i = 0; i < w->n_refilters; i++) {
                opened_close(s, &w->refilters[i].replacement);
                free(w->refilters[i].filter);
        }
        free(w->refilters);
        free(w->kept);
        free(w->removed);
}

/* The running event that is the same but for its filter, if there is one. */
static bool same_but_filter(const EventSpec *a, const EventSpec *b) {
        EventSpec x = *a, y = *b;

        x.filter = y.filter = NULL;
        return event_spec_equal(&x, &y);
}

static int reload_refilter(Supervisor *s, Reload *w, Registration *g, const char *filter, Explanation *e) {
        Refilter *f = &w->refilters[w->n_refilters];
        int r;

        *f = (Refilter){ .registration = g };
        r = string_copy(filter, &f->filter);
        if (r == 0)
                r = supervisor_open(s, g, filter, &f->replacement, e);
        w->n_refilters++;
        return r;
}

/* One of the new configuration's events: kept, refiltered, or added (which a changed one is too, its old one going). */
static int reload_event(Supervisor *s, Reload *w, const Registration *fresh, bool *ret_add, Explanation *e) {
        Registration *running = supervisor_find(s, fresh->event->spec.name);
        const EventSpec *spec = &fresh->event->spec;

        *ret_add = true;
        if (!running)
                return 0;
        if (!running->event->spec.configured)
                return refuse(e, REFUSED_EXISTS, "exists",
                              "a client has added an event called %s: remove it, or give the configured one another name",
                              spec->name);
        if (!same_but_filter(&running->event->spec, spec))
                return 0;
        *ret_add = false;
        w->kept[w->n_kept++] = running;
        if (event_spec_equal(&running->event->spec, spec))
                return 0;
        return reload_refilter(s, w, running, spec->filter, e);
}

static int reload_prepare_event(Supervisor *s, const Config *c, const ConfigEvent *from, Reload *w, Explanation *e) {
        _cleanup_(event_spec_deinit) EventSpec spec = EVENT_SPEC_NULL;
        Registration *list = NULL, *next;
        int r = spec_from_config(c, from, &spec);

        if (r == 0)
                r = supervisor_resolve(s, &spec, &list, e);
        for (Registration *g = list; g; g = next) {
                bool add = false;

                next = g->next;
                g->next = NULL;
                if (r == 0)
                        r = reload_event(s, w, g, &add, e);
                if (r == 0 && add)
                        r = supervisor_open_list(s, &g, e);
                if (r == 0 && add && g) {
                        *w->end = g;
                        w->end = &g->next;
                        w->n_added++;
                } else
                        registration_free(s, g);
        }
        return r;
}

/* Everything configured that is not kept goes. */
static void reload_find_removed(const Supervisor *s, Reload *w) {
        for (const Registration *g = s->registrations; g; g = g->next) {
                bool kept = !g->event->spec.configured;

                for (size_t i = 0; i < w->n_kept && !kept; i++)
                        kept = w->kept[i] == g;
                if (!kept)
                        w->removed[w->n_removed++] = g->event->spec.name;
        }
}

static int reload_prepare(Supervisor *s, const Config *c, Reload *w, Explanation *e) {
        int r = 0;

        w->kept = calloc(s->n_registrations + 1, sizeof(*w->kept));
        w->refilters = calloc(s->n_registrations + 1, sizeof(*w->refilters));
        w->removed = calloc(s->n_registrations + 1, sizeof(*w->removed));
        if (!w->kept || !w->refilters || !w->removed)
                return -ENOMEM;
        for (size_t i = 0; i < c->n_events && r == 0; i++) {
                r = reload_prepare_event(s, c, &c->events[i], w, e);
                if (r > 0)
                        place_explanation(&c->events[i], e);
        }
        if (r == 0)
                reload_find_removed(s, w);
        return r;
}

static int reload_commit(Supervisor *s, Reload *w, Explanation *e) {
        EventRefs refs = { .n = 0 };
        int r = 0;

        if (w->n_removed > 0)
                r = supervisor_remove(s, w->removed, w->n_removed, &refs, e);
        event_refs_deinit(&refs);
        if (r == 0 && w->added)
                r = supervisor_register(s, TAKE_PTR(w->added), w->n_added, e);
        for (size_t i = 0; i < w->n_refilters && r == 0; i++)
                r = supervisor_refilter(s, w->refilters[i].registration, &w->refilters[i].replacement,
                                        TAKE_PTR(w->refilters[i].filter), e);
        return r;
}

static void log_restart_needed(const Config *old, const Config *new) {
        if (old->batch_pool != new->batch_pool || old->clock != new->clock ||
            strcmp(old->control_path, new->control_path) != 0 || strcmp(old->stream_path, new->stream_path) != 0)
                log_print(LOG_WARNING, "listen, clock and batches have changed: that needs a restart");
}

static int change_events(Supervisor *s, Config *c, Perfd__V1__ReloadReply *ret, Explanation *e) {
        Config *before = s->config; /* may be `c`, and then has no other reference */
        Reload w = { .end = &w.added };
        uint32_t n_changed = 0;
        int r = reload_prepare(s, c, &w, e);

        for (Registration *g = w.added; g && r == 0; g = g->next)
                n_changed += supervisor_find(s, g->event->spec.name) != NULL;
        if (r == 0)
                r = reload_commit(s, &w, e);
        if (r == 0) {
                ret->added = (uint32_t)w.n_added - n_changed;
                ret->removed = (uint32_t)w.n_removed - n_changed;
                ret->changed = n_changed + (uint32_t)w.n_refilters;
                ret->kept = (uint32_t)(w.n_kept - w.n_refilters);
                log_restart_needed(before, c);
                s->config = config_ref(c);
                config_unref(before);
        }
        reload_deinit(s, &w);
        return r;
}

/* The rings first: what of the events is refused then leaves the rings as they were, too. */
static int supervisor_change_config(Supervisor *s, Config *c, Perfd__V1__ReloadReply *ret, Explanation *e) {
        size_t before = s->config->ring_size, after = c->ring_size;
        int r = after != before ? supervisor_resize_rings(s, after, e) : 0;

        if (r != 0)
                return r;
        r = change_events(s, c, ret, e);
        if (r > 0 && after != before) {
                int undone = supervisor_resize_rings(s, before, NULL);

                if (undone > 0)
                        log_print(LOG_ERR, "the rings keep their new size: the old one is refused now");
                r = undone < 0 ? undone : r;
        }
        return r;
}

int supervisor_apply_config(Supervisor *s, Explanation *e) {
        Perfd__V1__ReloadReply reply = PERFD__V1__RELOAD_REPLY__INIT;

        return supervisor_change_config(s, s->config, &reply, e);
}

static void explain_mistakes(const ConfigMistakes *m, Explanation *e) {
        size_t used = 0;

        for (size_t i = 0; i < m->n_items && used < sizeof(e->text); i++)
                if (!m->items[i].warning)
                        used += (size_t)snprintf(e->text + used, sizeof(e->text) - used, "%s%s:%u:%u: %s", used ? "\n" : "",
                                                 m->items[i].path, m->items[i].line, m->items[i].column, m->items[i].text);
}

int supervisor_reload(Supervisor *s, Perfd__V1__ReloadReply *ret, Explanation *e) {
        _cleanup_(config_unrefp) Config *c = NULL;
        ConfigMistakes mistakes = CONFIG_MISTAKES_NULL;
        int r;

        thread_assert(THREAD_MAIN);
        if (!s->config_path)
                return refuse(e, REFUSED_INVALID, "bad-config", "perfd runs without a configuration: start it with --config");
        r = config_load(s->config_path, &mistakes, &c);
        if (r > 0) {
                (void)refuse(e, REFUSED_INVALID, "bad-config", "%s is not valid", s->config_path);
                explain_mistakes(&mistakes, e);
        }
        config_mistakes_deinit(&mistakes);
        return r == 0 ? supervisor_change_config(s, c, ret, e) : r;
}
