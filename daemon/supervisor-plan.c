/*
 * What another configuration would change, found by preparing that change as a reload does, and closing it all again: so a
 * plan can not say anything else than what is done then.
 */
#include "daemon/supervisor-reload.h"

#include <string.h>

#include "config/difference.h"
#include "daemon/model/spec-difference.h"
#include "daemon/supervisor-registered.h"
#include "daemon/supervisor-requests.h"

static int difference_new(const char *field, const char *before, const char *after, Perfd__V1__Difference ***list,
                          size_t *n) {
        Perfd__V1__Difference **more = reallocarray(*list, *n + 1, sizeof(*more)), *d;
        int r;

        if (!more)
                return error_origin(-ENOMEM);
        *list = more;
        d = malloc(sizeof(*d));
        if (!d)
                return error_origin(-ENOMEM);
        perfd__v1__difference__init(d);
        more[(*n)++] = d;
        r = string_set(&d->field, field);
        if (r == 0)
                r = string_set(&d->before, before);
        return r == 0 ? string_set(&d->after, after) : r;
}

static int add_differences(const EventSpec *before, const EventSpec *after, Perfd__V1__PlannedEvent *m) {
        SpecDifference *list = NULL;
        size_t n = 0;
        int r = event_spec_differences(before, after, &list, &n);

        for (size_t i = 0; i < n && r == 0; i++)
                r = difference_new(list[i].field, list[i].before, list[i].after, &m->differences, &m->n_differences);
        spec_differences_free(list, n);
        return r;
}

typedef struct PlannedList {
        Perfd__V1__PlannedEvent ***events;
        size_t *n;
} PlannedList;

/* before: of the running event, or NULL. after: as it would be; NULL: gone. */
static int planned_new(PlannedList list, const Registration *running, const EventSpec *after, bool replaced) {
        const EventSpec *spec = after ? after : &running->event->spec;
        Perfd__V1__PlannedEvent **more = reallocarray(*list.events, *list.n + 1, sizeof(*more)), *m;
        int r;

        if (!more)
                return error_origin(-ENOMEM);
        *list.events = more;
        m = malloc(sizeof(*m));
        if (!m)
                return error_origin(-ENOMEM);
        perfd__v1__planned_event__init(m);
        more[(*list.n)++] = m;
        m->id = running ? running->event->id : 0;
        m->replaced = replaced;
        if ((r = string_set(&m->name, spec->name)) < 0 || (r = string_set(&m->event, spec->event)) < 0 ||
            (r = string_set(&m->group, event_spec_group(spec))) < 0)
                return r;
        return running && after ? add_differences(&running->event->spec, after, m) : 0;
}

static int plan_added(const Supervisor *s, const Reload *w, Perfd__V1__PlanReply *ret) {
        PlannedList added = { &ret->added, &ret->n_added }, changed = { &ret->changed, &ret->n_changed };
        int r = 0;

        for (const Registration *g = w->added; g && r == 0; g = g->next) {
                const Registration *running = supervisor_find(s, g->event->spec.name);

                r = planned_new(running ? changed : added, running, &g->event->spec, running != NULL);
        }
        return r;
}

static int plan_kept(const Reload *w, Perfd__V1__PlanReply *ret) {
        PlannedList changed = { &ret->changed, &ret->n_changed }, kept = { &ret->kept, &ret->n_kept };
        size_t next = 0; /* replacements are in the order of what is kept */
        int r = 0;

        for (size_t i = 0; i < w->n_kept && r == 0; i++) {
                const Registration *running = w->kept[i];

                if (next < w->n_replacements && w->replacements[next].registration == running)
                        r = planned_new(changed, running, &w->replacements[next++].event->spec, false);
                else
                        r = planned_new(kept, running, &running->event->spec, false);
        }
        return r;
}

/* What another one takes the name of is replaced. */
static int plan_removed(const Reload *w, Perfd__V1__PlanReply *ret) {
        PlannedList removed = { &ret->removed, &ret->n_removed };
        Index added = INDEX_NULL;
        int r = names_add_list(&added, w->added);

        for (size_t i = 0; i < w->n_removed && r == 0; i++)
                if (!names_find(&added, w->removed[i]->event->spec.name))
                        r = planned_new(removed, w->removed[i], NULL, false);
        index_deinit(&added);
        return r;
}

static int plan_settings(const Config *before, const Config *after, Perfd__V1__PlanReply *ret) {
        ConfigDifference d;
        int r = 0;

        for (size_t row = 0; r == 0 && config_difference_next(before, after, &row, &d);) {
                r = difference_new(d.key->pattern, d.before, d.after, &ret->settings, &ret->n_settings);
                if (r == 0)
                        ret->settings[ret->n_settings - 1]->restart = d.key->restart;
        }
        return r;
}

int supervisor_plan(Supervisor *s, const char *yaml, const char *path, Perfd__V1__PlanReply *ret, Explanation *e) {
        _cleanup_(config_unrefp) Config *c = NULL;
        Reload w = { .end = &w.added };
        int r;

        thread_assert(THREAD_MAIN);
        r = reload_parse(yaml, path, &c, e);
        if (r != 0)
                return r;
        r = reload_prepare(s, c, &w, e);
        if (r == 0)
                r = plan_added(s, &w, ret);
        if (r == 0)
                r = plan_kept(&w, ret);
        if (r == 0)
                r = plan_removed(&w, ret);
        if (r == 0)
                r = plan_settings(s->config, c, ret);
        reload_deinit(s, &w);
        return r;
}
