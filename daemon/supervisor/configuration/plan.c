/*
 * What another configuration would change, found by preparing that change as a reload does, and closing it all again: so a
 * plan cannot say anything else than what is done then.
 *
 * That may take long, and others change what runs in the middle of it (supervisor/operations/operations.c). So first everything is
 * resolved, and what a reload would open of it is tried, once, without regard for what becomes of the rest. Then, when nothing is
 * left that was not tried, what changes is found in one go.
 */
#include "daemon/supervisor/configuration/reload.h"
#include "daemon/supervisor/events/configured.h"

#include <string.h>

#include "config/difference.h"
#include "daemon/base/index.h"
#include "daemon/model/spec-difference.h"
#include "daemon/supervisor/events/quota.h"
#include "daemon/supervisor/events/registered.h"
#include "daemon/supervisor/changes/replace.h"
#include "daemon/supervisor/configuration/configuration.h"
#include "daemon/supervisor/events/open.h"
#include "daemon/supervisor/events/specs.h"
#include "daemon/supervisor/streams/sockets.h"

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

static int plan_added(const Configuration *s, const Reload *w, Perfd__V1__PlanReply *ret) {
        PlannedList added = { &ret->added, &ret->n_added }, changed = { &ret->changed, &ret->n_changed };
        int r = 0;

        for (const Registration *g = w->added; g && r == 0; g = g->next) {
                const Registration *running = events_find(s->events, g->event->spec.name);

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

static int plan_pending(const Reload *w, Perfd__V1__PlanReply *ret) {
        int r = 0;

        for (const PendingEvent *p = w->pending; p && r == 0; p = p->next) {
                Perfd__V1__PlannedEvent **more = reallocarray(ret->pending, ret->n_pending + 1, sizeof(*more)), *m;
                _cleanup_free_ char *why = NULL;

                if (more)
                        ret->pending = more;
                m = more ? malloc(sizeof(*m)) : NULL;
                if (!m)
                        return error_origin(-ENOMEM);
                perfd__v1__planned_event__init(m);
                more[ret->n_pending++] = m;
                if (asprintf(&why, "%s%s", p->place, p->why) < 0) {
                        why = NULL;
                        return error_origin(-ENOMEM);
                }
                if ((r = string_set(&m->name, p->spec->name)) == 0 && (r = string_set(&m->event, p->spec->event)) == 0 &&
                    (r = string_set(&m->group, p->spec->group)) == 0 && (r = string_set(&m->why, why)) == 0)
                        r = string_set(&m->reason, p->reason ? p->reason : "");
        }
        return r;
}

/* at_restart: those that hold when perfd has been restarted, or those that hold at once. The list grows also when it fails. */
static int add_settings(const Config *before, const Config *after, bool at_restart, Perfd__V1__Difference ***list, size_t *n) {
        ConfigDifference d;
        int r = 0;

        for (size_t row = 0; r == 0 && config_difference_next(before, after, &row, &d);) {
                if (at_restart != d.key->restart)
                        continue;
                r = difference_new(d.key->pattern, d.before, d.after, list, n);
                if (r == 0)
                        (*list)[*n - 1]->restart = d.key->restart;
        }
        return r;
}

/* An apply leaves those in effect that there are. */
static int add_rules(const Configuration *s, const Config *c, Perfd__V1__PlanReply *ret) {
        ConfigDifference d;

        return config_rules_difference(s->settings->access, c, &d)
                       ? difference_new(d.key->pattern, d.before, d.after, &ret->settings, &ret->n_settings) : 0;
}

/* ---- trying ------------------------------------------------------------------------------------------------------ */

typedef struct Tried {
        Registration *fresh; /* NULL: left out, or taken */
        const ConfigEvent *from;
        bool as_new, as_change;
} Tried;

/* What would be pending. */
typedef struct TriedInVain {
        const ConfigEvent *from;
        Explanation why;
} TriedInVain;

typedef struct Trial {
        const Config *config;
        bool may_wait;
        TriedInVain *pending;
        size_t n_pending, n_pending_allocated;
        Tried *list;
        size_t n, n_allocated;
        Index names;
} Trial;

static void trial_deinit(Configuration *s, Trial *t) {
        for (size_t i = 0; i < t->n; i++)
                registration_free(s->events, t->list[i].fresh);
        free(t->list);
        free(t->pending);
        index_deinit(&t->names);
}

/*
 * An event of the configuration was refused, one of whose registrations is or would be at i. Where it may wait, nothing of it stays,
 * as in a reload; else all is refused, with its place.
 */
static int trial_refuse(Configuration *s, Trial *t, size_t i, const ConfigEvent *from, int refusal, Explanation *e) {
        if (refusal < 0 || !t->may_wait || !refusal_may_pass(refusal)) {
                if (refusal > 0)
                        place_explanation(t->config, from, e);
                return refusal;
        }
        if (t->n_pending == t->n_pending_allocated) {
                size_t n = 2 * t->n_pending + 16;
                TriedInVain *more = reallocarray(t->pending, n, sizeof(*more));

                if (!more)
                        return error_origin(-ENOMEM);
                t->pending = more;
                t->n_pending_allocated = n;
        }
        t->pending[t->n_pending++] = (TriedInVain){ .from = from, .why = *e };
        *e = EXPLANATION_NULL;
        while (i > 0 && t->list[i - 1].from == from)
                i--;
        for (; i < t->n && t->list[i].from == from; i++)
                if (t->list[i].fresh) {
                        index_remove(&t->names, index_key_of_name(t->list[i].fresh->event->spec.name), t->list[i].fresh);
                        t->list[i].fresh = registration_free(s->events, t->list[i].fresh);
                }
        return 0;
}

/* `fresh` moves. */
static int trial_add(Configuration *s, Trial *t, Registration *fresh, const ConfigEvent *from, Explanation *e) {
        const char *name = fresh->event->spec.name;
        int r = 0;

        if (names_find(&t->names, name))
                r = refuse(e, REFUSED_EXISTS, "exists", "%s is named twice", name);
        else if (t->n >= MAX_EVENTS + s->events->n_registrations) /* more than can be kept and added */
                r = refuse(e, REFUSED_EXHAUSTED, "too-many-events", "there are more than %d events, the limit of a "
                        "daemon", MAX_EVENTS);
        if (r == 0 && t->n == t->n_allocated) {
                size_t n = 2 * t->n + 16;
                Tried *more = reallocarray(t->list, n, sizeof(*more));

                r = more ? 0 : error_origin(-ENOMEM);
                t->list = more ? more : t->list;
                t->n_allocated = more ? n : t->n_allocated;
        }
        if (r == 0)
                r = names_add_list(&t->names, fresh);
        if (r == 0)
                t->list[t->n++] = (Tried){ .fresh = fresh, .from = from };
        else
                registration_free(s->events, fresh);
        return r;
}

/* The event that it replaces has to stay meanwhile, so that what can take long is waited for before. */
static int try_change(Configuration *s, Tried *one, Explanation *e) {
        const Registration *fresh = one->fresh;
        Replacement replacement = REPLACEMENT_NULL;
        Registration *running;
        ReloadKind kind;
        int r = 0;

        if (!fresh->event->external)
                r = events_wait_for_trial_room(s->events, fresh->event->spec.name, fresh->plan.n_attrs, e);
        if (r == 0)
                r = reload_find(s, fresh, &running, &kind, e);
        if (r != 0 || kind != RELOAD_CHANGE)
                return r; /* it is another case by now: there is another look */
        operations_set_pinned(s->operations, true);
        r = replacement_prepare(s->changes, running, &fresh->event->spec, &replacement, e);
        operations_set_pinned(s->operations, false);
        replacement_deinit(s->changes, &replacement);
        one->as_change = true;
        return r;
}

static int try_new(Configuration *s, Trial *t, Tried *one, Explanation *e) {
        const Registration *fresh = one->fresh;
        const uint64_t key = index_key_of_name(fresh->event->spec.name);
        int r = events_open_list(s->events, &one->fresh, e);

        one->as_new = true;
        if (!one->fresh) /* left out: it is free to be named again */
                index_remove(&t->names, key, fresh);
        return r;
}

/* ret_tried: the host was asked, and others may have had their turn. Each is tried once in each way. */
static int try_one(Configuration *s, Trial *t, Tried *one, bool *ret_tried, Explanation *e) {
        Registration *running;
        ReloadKind kind = RELOAD_KEEP;
        int r = one->fresh ? reload_find(s, one->fresh, &running, &kind, e) : 0;

        if (r == 0 && kind == RELOAD_ADD && !one->as_new) {
                *ret_tried = true;
                r = try_new(s, t, one, e);
        } else if (r == 0 && kind == RELOAD_CHANGE && !one->as_change) {
                *ret_tried = true;
                r = try_change(s, one, e);
        }
        return r;
}

static int trial_add_event(Configuration *s, Trial *t, const ConfigEvent *from, Explanation *e) {
        Registration *list = NULL, *next;
        bool tried;
        int r = reload_resolve(s, t->config, from, &list, e);
        size_t first = t->n;

        for (Registration *g = list; g; g = next) {
                next = g->next;
                g->next = NULL;
                if (t->may_wait)
                        registration_allow_absence(g);
                if (r == 0)
                        r = trial_add(s, t, g, from, e);
                else
                        registration_free(s->events, g);
        }
        for (size_t i = first; i < t->n && r == 0; i++)
                r = try_one(s, t, &t->list[i], &tried, e);
        return r == 0 ? 0 : trial_refuse(s, t, first, from, r, e);
}

/* Until a look at all of them finds nothing to try. So nothing changes any more until there is another checkpoint. */
static int trial_run(Configuration *s, Trial *t, Explanation *e) {
        bool tried = true;
        int r = 0;

        for (size_t i = 0; i < t->config->n_events && r == 0; i++)
                r = trial_add_event(s, t, &t->config->events[i], e);
        while (tried && r == 0) {
                tried = false;
                for (size_t i = 0; i < t->n && r == 0; i++) {
                        r = try_one(s, t, &t->list[i], &tried, e);
                        if (r != 0)
                                r = trial_refuse(s, t, i, t->list[i].from, r, e);
                }
        }
        return r;
}

/* ---- what it comes to -------------------------------------------------------------------------------------------- */

static int take_all(Configuration *s, Trial *t, Reload *w, Explanation *e) {
        int r = reload_begin(s, w);

        for (size_t i = 0; i < t->n && r == 0; i++) {
                if (t->list[i].fresh)
                        r = reload_take(s, w, TAKE_PTR(t->list[i].fresh), e);
                if (r > 0)
                        place_explanation(t->config, t->list[i].from, e);
        }
        for (size_t i = 0; i < t->n_pending && r == 0; i++)
                r = reload_add_pending(s, t->config, t->pending[i].from, w, &t->pending[i].why);
        return r == 0 ? reload_end(s, w, e) : r;
}

static int plan_all(Configuration *s, const Config *c, const Reload *w, Perfd__V1__PlanReply *ret) {
        int r = plan_added(s, w, ret);

        if (r == 0)
                r = plan_kept(w, ret);
        if (r == 0)
                r = plan_removed(w, ret);
        if (r == 0)
                r = plan_pending(w, ret);
        if (r == 0)
                r = add_settings(s->settings->config, c, false, &ret->settings, &ret->n_settings);
        return r == 0 ? add_settings(s->settings->started_with, c, true, &ret->settings, &ret->n_settings) : r;
}

int configuration_add_restart_settings(const Settings *s, Perfd__V1__Difference ***list, size_t *n) {
        ConfigDifference d;
        char text[512];
        int r = 0;

        for (size_t row = 0; r == 0 && config_difference_next(s->started_with, s->config, &row, &d);) {
                if (!d.key->restart || sockets_advise(s, d.key->pattern, text, sizeof(text)))
                        continue;
                r = difference_new(d.key->pattern, d.before, d.after, list, n);
                if (r == 0)
                        (*list)[*n - 1]->restart = true;
        }
        return r;
}

int configuration_add_restarts(const Settings *s, Perfd__V1__ReloadReply *ret) {
        Strings notes = { .items = ret->notes, .n = ret->n_notes };
        ConfigDifference d;
        char text[512];
        int r = 0;

        for (size_t row = 0; r == 0 && config_difference_next(s->started_with, s->config, &row, &d);)
                if (d.key->restart && sockets_advise(s, d.key->pattern, text, sizeof(text)))
                        r = strings_add(&notes, text);
        ret->notes = notes.items;
        ret->n_notes = notes.n;
        return r == 0 ? configuration_add_restart_settings(s, &ret->settings, &ret->n_settings) : r;
}

int configuration_plan(Configuration *s, const ConfigText *texts, size_t n, bool may_wait, Perfd__V1__PlanReply *ret,
                       Explanation *e) {
        _cleanup_(config_unrefp) Config *c = NULL;
        Trial trial = { .names = INDEX_NULL };
        Reload w = { .end = &w.added, .pending_end = &w.pending };
        int r;

        thread_assert(THREAD_MAIN);
        r = n > 0 ? reload_parse(texts, n, &c, e) : reload_load(s, NULL, &c, e);
        if (r != 0)
                return r;
        trial.config = c;
        trial.may_wait = w.may_wait = n > 0 ? may_wait : !c->strict;
        r = trial_run(s, &trial, e);
        if (r == 0)
                r = take_all(s, &trial, &w, e);
        if (r == 0)
                r = plan_all(s, c, &w, ret);
        if (r == 0 && n == 0)
                r = add_rules(s, c, ret);
        reload_deinit(s, &w);
        trial_deinit(s, &trial);
        return r;
}
