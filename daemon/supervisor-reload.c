/*
 * From one configuration to another as one change: everything new is resolved and opened first, so that a mistake anywhere
 * leaves everything as it was; what is the same in both is not touched, and what differs only in what can be changed while
 * it runs keeps its id and loses nothing.
 *
 * New events begin before old ones end, also those that take their place under the same name: until the last of what can
 * be refused has succeeded, nothing is gone that could not be brought back.
 */
#include "daemon/supervisor-reload.h"

#include <stdio.h>
#include <string.h>

#include "config/difference.h"
#include "daemon/base/log.h"
#include "daemon/base/printable.h"
#include "daemon/supervisor-kept.h"

void reload_deinit(Supervisor *s, Reload *w) {
        for (Registration *g = s->registrations; g; g = g->next)
                g->is_planned = false;
        registrations_free(s, w->added);
        for (size_t i = 0; i < w->n_replacements; i++)
                replacement_deinit(s, &w->replacements[i]);
        free(w->replacements);
        free(w->kept);
        free(w->removed);
}

/* A group of counters is opened in another way when it is sampled. */
static bool can_become(const EventSpec *a, const EventSpec *b) {
        bool samples_a = a->period || a->frequency, samples_b = b->period || b->frequency;

        return event_spec_can_become(a, b) && (samples_a == samples_b || a->event[0] != '{');
}

/* One of the new configuration's events: kept, replaced, or added (which a changed one is too, its old one going). */
static int reload_event(Supervisor *s, Reload *w, const Registration *fresh, bool *ret_add, Explanation *e) {
        Registration *running = supervisor_find(s, fresh->event->spec.name);
        const EventSpec *spec = &fresh->event->spec;
        int r;

        *ret_add = true;
        if (!running)
                return 0;
        if (!running->event->spec.configured)
                return refuse(e, REFUSED_EXISTS, "exists",
                              "a client has added an event called %s: remove it, or give the configured one another name",
                              spec->name);
        if (!can_become(&running->event->spec, spec))
                return 0;
        if (running->is_planned)
                return refuse(e, REFUSED_EXISTS, "exists", "%s is named twice", spec->name);
        *ret_add = false;
        running->is_planned = true;
        w->kept[w->n_kept++] = running;
        if (event_spec_equal(&running->event->spec, spec))
                return 0;
        r = replacement_prepare(s, running, spec, &w->replacements[w->n_replacements], e);
        w->n_replacements += r == 0;
        return r;
}

static int reload_prepare_event(Supervisor *s, const Config *c, const ConfigEvent *from, Reload *w, Explanation *e) {
        _cleanup_(event_spec_deinit) EventSpec spec = EVENT_SPEC_NULL;
        Registration *list = NULL, *next;
        int r = spec_from_config(s, c, from, &spec);

        if (r == 0)
                r = supervisor_resolve(s, &spec, &list, e);
        for (Registration *g = list; g; g = next) {
                bool add = false;

                next = g->next;
                g->next = NULL;
                if (r == 0)
                        r = reload_event(s, w, g, &add, e);
                if (r == 0 && add && w->n_added == MAX_EVENTS)
                        r = refuse(e, REFUSED_EXHAUSTED, "too-many-events", "there are more than the %d events of a daemon", MAX_EVENTS);
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
        for (size_t i = 0; i < w->n_kept; i++)
                w->kept[i]->is_selected = true;
        for (Registration *g = s->registrations; g; g = g->next)
                if (g->event->spec.configured && !g->is_selected)
                        w->removed[w->n_removed++] = g;
        for (size_t i = 0; i < w->n_kept; i++)
                w->kept[i]->is_selected = false;
}

static int compare_names(const void *a, const void *b) {
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* What two globs mean both would be there twice. */
static int check_names(const Reload *w, Explanation *e) {
        _cleanup_free_ const char **names = calloc(w->n_added + 1, sizeof(*names));
        size_t n = 0;

        if (!names)
                return error_origin(-ENOMEM);
        for (const Registration *g = w->added; g; g = g->next)
                names[n++] = g->event->spec.name;
        qsort(names, n, sizeof(*names), compare_names);
        for (size_t i = 1; i < n; i++)
                if (strcmp(names[i - 1], names[i]) == 0)
                        return refuse(e, REFUSED_EXISTS, "exists", "%s is named twice", names[i]);
        return 0;
}

int reload_prepare(Supervisor *s, const Config *c, Reload *w, Explanation *e) {
        int r = 0;

        w->kept = calloc(s->n_registrations + 1, sizeof(*w->kept));
        w->replacements = calloc(s->n_registrations + 1, sizeof(*w->replacements));
        w->removed = calloc(s->n_registrations + 1, sizeof(*w->removed));
        if (!w->kept || !w->replacements || !w->removed)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < c->n_events && r == 0; i++) {
                r = reload_prepare_event(s, c, &c->events[i], w, e);
                if (r > 0)
                        place_explanation(c, &c->events[i], e);
        }
        if (r == 0)
                r = check_names(w, e);
        if (r == 0)
                reload_find_removed(s, w);
        return r;
}

static int reload_commit(Supervisor *s, Reload *w, Explanation *e) {
        Registration *added = TAKE_PTR(w->added);
        int r;

        r = added ? supervisor_register(s, added, w->n_added, e) : 0;
        if (r != 0)
                return r;
        r = supervisor_replace(s, w->replacements, w->n_replacements, e);
        if (r > 0 && added) {
                int undone = supervisor_unregister(s, added, w->n_added);

                r = undone < 0 ? undone : r;
        }
        return r == 0 && w->n_removed > 0 ? supervisor_remove_selected(s, w->removed, w->n_removed, e) : r;
}

/*
 * Said of what was started with, and not of the configuration before: whoever reloads twice hears it twice, and whoever takes it
 * back hears nothing.
 */
static void log_restart_needed(const Config *started_with, const Config *c) {
        ConfigDifference d;

        for (size_t row = 0; config_difference_next(started_with, c, &row, &d);) {
                const char *unit = config_unit(d.key);
                char text[512];

                if (!d.key->restart)
                        continue;
                (void)snprintf(text, sizeof(text), "%s%s needs a restart: it is %s%s until then and %s%s afterwards",
                               d.key->pattern, d.at.path ? "" : ", which is not set any more,", d.before, unit, d.after, unit);
                if (d.at.path)
                        log_print(LOG_WARNING, "%s:%u:%u: %s", d.at.path, d.at.line, d.at.column, text);
                else
                        log_print(LOG_WARNING, "%s", text);
        }
}

/* Those that are there twice: under their names there is an old and a new one. */
static uint32_t reload_count_changed(const Supervisor *s, const Reload *w) {
        uint32_t n = 0;

        for (const Registration *g = w->added; g; g = g->next)
                n += supervisor_find(s, g->event->spec.name) != NULL;
        return n;
}

static int change_events(Supervisor *s, Config *c, Perfd__V1__ReloadReply *ret, Explanation *e) {
        Config *before = s->config; /* may be `c`, and then has no other reference */
        Reload w = { .end = &w.added };
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
                log_restart_needed(s->started_with, c);
                s->config = config_ref(c);
                config_unref(before);
                r = supervisor_update_memory(s);
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

static int refuse_mistakes(const ConfigMistakes *m, const char *path, Explanation *e) {
        size_t used = 0;

        (void)refuse(e, REFUSED_INVALID, "bad-config", "%s is not valid", path);
        for (size_t i = 0; i < m->n_items && used + 1 < sizeof(e->text); i++) {
                if (m->items[i].warning)
                        continue;
                if (used > 0)
                        e->text[used++] = '\n';
                used += config_mistake_text(&m->items[i], e->text + used, sizeof(e->text) - used);
        }
        utf8_mend(e->text); /* the last one may be cut in a character */
        return REFUSED_INVALID;
}

/* What reading it has said. */
static int refuse_config(int r, const ConfigMistakes *m, const char *path, Explanation *e) {
        if (r == REFUSED_CANCELLED)
                return refuse(e, r, "cancelled", "it was not read to its end: perfd is stopping, or nobody waits for it any more");
        return r > 0 ? refuse_mistakes(m, path, e) : r;
}

int supervisor_reload(Supervisor *s, Perfd__V1__ReloadReply *ret, Explanation *e) {
        _cleanup_(config_unrefp) Config *c = NULL;
        ConfigMistakes mistakes = CONFIG_MISTAKES_NULL;
        int r;

        thread_assert(THREAD_MAIN);
        if (!s->config_path)
                return refuse(e, REFUSED_INVALID, "bad-config", "perfd runs without a configuration: start it with --config");
        r = config_load(s->config_path, &mistakes, &c);
        r = refuse_config(r, &mistakes, s->config_path, e);
        config_mistakes_deinit(&mistakes);
        if (r == 0)
                r = supervisor_change_config(s, c, ret, e);
        return r == 0 ? supervisor_retry_waiting(s) : r;
}

int reload_parse(const char *yaml, const char *path, Config **ret, Explanation *e) {
        ConfigMistakes mistakes = CONFIG_MISTAKES_NULL;
        int r = config_parse(path, yaml, strlen(yaml), &mistakes, ret);

        r = refuse_config(r, &mistakes, path, e);
        config_mistakes_deinit(&mistakes);
        return r;
}

int supervisor_apply(Supervisor *s, const char *yaml, const char *path, Perfd__V1__ReloadReply *ret, Explanation *e) {
        _cleanup_(config_unrefp) Config *c = NULL;
        int r;

        thread_assert(THREAD_MAIN);
        r = reload_parse(yaml, path, &c, e);
        if (r == 0)
                r = supervisor_change_config(s, c, ret, e);
        return r == 0 ? supervisor_retry_waiting(s) : r;
}
