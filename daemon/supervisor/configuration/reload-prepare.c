/*
 * What another configuration changes: everything new is resolved and opened here, so that an error anywhere leaves everything
 * as it was. What the host does not have now, as a unit that starts later, is pending where the change allows it, and is part
 * of the configuration all the same.
 */
#include "daemon/supervisor/configuration/reload.h"

#include <string.h>

#include "daemon/base/log.h"
#include "daemon/supervisor/changes/replace.h"
#include "daemon/supervisor/events/open.h"
#include "daemon/supervisor/events/registered.h"
#include "daemon/supervisor/events/specs.h"

void reload_deinit(Configuration *s, Reload *w) {
        for (Registration *g = s->events->registrations; g; g = g->next)
                g->is_planned = false;
        registrations_free(s->events, w->added);
        for (size_t i = 0; i < w->n_replacements; i++)
                replacement_deinit(s->changes, &w->replacements[i]);
        free(w->replacements);
        free(w->kept);
        free(w->removed);
        pending_free_list(w->pending);
}

/* A group of counters is opened in another way when it is sampled. */
static bool can_become(const EventSpec *a, const EventSpec *b) {
        bool samples_a = a->period || a->frequency, samples_b = b->period || b->frequency;

        return event_spec_can_become(a, b) && (samples_a == samples_b || a->event[0] != '{');
}

int reload_find(const Configuration *s, const Registration *fresh, Registration **ret_running, ReloadKind *ret, Explanation *e) {
        Registration *running = events_find(s->events, fresh->event->spec.name);
        const EventSpec *spec = &fresh->event->spec;

        *ret_running = running;
        *ret = RELOAD_ADD;
        if (!running)
                return 0;
        if (!running->event->spec.configured)
                return refuse(e, REFUSED_EXISTS, "exists",
                              "a client has added an event called %s: remove it, or rename the configured one",
                              spec->name);
        if (can_become(&running->event->spec, spec))
                *ret = event_spec_equal(&running->event->spec, spec) ? RELOAD_KEEP : RELOAD_CHANGE;
        return 0;
}

/* Of a trial: what the event would be, of which the fds were tried. */
static int replacement_plan(Registration *running, const Registration *fresh, Replacement *ret) {
        *ret = REPLACEMENT_NULL;
        ret->registration = running;
        ret->event = event_ref(fresh->event);
        return 0;
}

/* A plan tries what is new before it takes it. */
static bool is_tried_already(const Configuration *s) {
        return operations_is_trial(s->operations) && !s->operations->is_trying;
}

static int reload_keep(Configuration *s, Reload *w, Registration *running, const Registration *fresh, ReloadKind kind,
                       Explanation *e) {
        Replacement *r = &w->replacements[w->n_replacements];
        int error = 0;

        if (running->is_planned)
                return refuse(e, REFUSED_EXISTS, "exists", "%s is named twice", fresh->event->spec.name);
        running->is_planned = true;
        w->kept[w->n_kept++] = running;
        if (kind == RELOAD_CHANGE)
                error = is_tried_already(s) ? replacement_plan(running, fresh, r)
                                            : replacement_prepare(s->changes, running, &fresh->event->spec, r, e);
        w->n_replacements += error == 0 && kind == RELOAD_CHANGE;
        return error;
}

static int reload_add(Configuration *s, Reload *w, Registration *g, Explanation *e) {
        int r = 0;

        if (w->may_wait)
                registration_allow_absence(g);
        if (w->n_added == MAX_EVENTS)
                r = refuse(e, REFUSED_EXHAUSTED, "too-many-events", "there are more than %d events, the limit of a "
                        "daemon", MAX_EVENTS);
        else if (!is_tried_already(s))
                r = events_open_list(s->events, &g, e);
        if (r != 0 || !g) { /* refused, or left out */
                registration_free(s->events, g);
                return r;
        }
        *w->end = g;
        w->end = &g->next;
        w->n_added++;
        return 0;
}

/* Kept, replaced, or added, which a changed one is too, its old one going. */
int reload_take(Configuration *s, Reload *w, Registration *fresh, Explanation *e) {
        Registration *running;
        ReloadKind kind;
        int r = reload_find(s, fresh, &running, &kind, e);

        if (r == 0 && kind == RELOAD_ADD)
                return reload_add(s, w, fresh, e);
        if (r == 0)
                r = reload_keep(s, w, running, fresh, kind, e);
        registration_free(s->events, fresh);
        return r;
}

int reload_resolve(Configuration *s, const Config *c, const ConfigEvent *from, Registration **ret, Explanation *e) {
        _cleanup_(event_spec_deinit) EventSpec spec = EVENT_SPEC_NULL;
        int r = spec_from_config(c, from, &spec);

        return r == 0 ? resolver_resolve(s->resolver, &spec, ret, e) : r;
}

static int reload_prepare_event(Configuration *s, const Config *c, const ConfigEvent *from, Reload *w, Explanation *e) {
        Registration *list = NULL, *next;
        int r = reload_resolve(s, c, from, &list, e);

        for (Registration *g = list; g; g = next) {
                next = g->next;
                g->next = NULL;
                if (r == 0)
                        r = reload_take(s, w, g, e);
                else
                        registration_free(s->events, g);
        }
        return r;
}

/* What an event has brought into the change goes out again. */
static void reload_forget(Configuration *s, Reload *w, const Reload *before) {
        registrations_free(s->events, *before->end);
        *before->end = NULL;
        w->end = before->end;
        w->n_added = before->n_added;
        for (; w->n_kept > before->n_kept; w->n_kept--)
                w->kept[w->n_kept - 1]->is_planned = false;
        for (; w->n_replacements > before->n_replacements; w->n_replacements--)
                replacement_deinit(s->changes, &w->replacements[w->n_replacements - 1]);
}

/* It runs as it is configured, though what it was found by is gone: a file that was replaced, a module that is in use. */
static bool reload_keeps_running(Configuration *s, Reload *w, const EventSpec *spec) {
        Registration *running = events_find(s->events, spec->name);
        EventSpec as_opened = *spec;

        if (!running || !running->event->spec.configured || running->is_planned)
                return false;
        if (!spec->period && !spec->frequency) { /* what it has is the event's default */
                as_opened.period = running->event->spec.period;
                as_opened.frequency = running->event->spec.frequency;
        }
        if (!event_spec_equal(&running->event->spec, &as_opened))
                return false;
        running->is_planned = true;
        w->kept[w->n_kept++] = running;
        return true;
}

/* *end: behind the last one of a list. */
static int add_pending(const EventSpec *spec, const ConfigPlace *place, const Explanation *why, PendingEvent ***end) {
        Perfd__V1__EventSpec *message = NULL;
        int r = spec_message_to_keep(spec, &message);

        if (r == 0) {
                r = pending_new(message, place, why, *end);
                if (r == 0)
                        *end = &(**end)->next;
                return r;
        }
        if (message)
                perfd__v1__event_spec__free_unpacked(message, NULL);
        return r;
}

int reload_add_pending(Configuration *s, const Config *c, const ConfigEvent *from, Reload *w, const Explanation *e) {
        _cleanup_(event_spec_deinit) EventSpec spec = EVENT_SPEC_NULL;
        ConfigPlace at;
        int r = spec_from_config(c, from, &spec);

        if (r < 0)
                return r;
        if (reload_keeps_running(s, w, &spec)) {
                if (!operations_is_trial(s->operations))
                        log_print_with(LOG_WARNING, MESSAGE_EVENT_UNCHANGED,
                                       LOG_FIELDS({ "EVENT", spec.name }, { "REASON", e->reason }), "%s remains as it is: %s",
                                       spec.name, e->text);
                return 0;
        }
        at = place_of(c, from, e);
        return add_pending(&spec, &at, e, &w->pending_end);
}

int reload_all_pending(Configuration *s, const Config *c, PendingEvent **list) {
        PendingEvent **end = list;
        int r = 0;

        for (size_t i = 0; i < c->n_events && r == 0; i++) {
                _cleanup_(event_spec_deinit) EventSpec spec = EVENT_SPEC_NULL;

                r = spec_from_config(c, &c->events[i], &spec);
                if (r == 0)
                        r = add_pending(&spec, &c->events[i].at, NULL, &end);
        }
        return r;
}

/* Everything configured that is not kept goes. */
static void reload_find_removed(const Configuration *s, Reload *w) {
        for (size_t i = 0; i < w->n_kept; i++)
                w->kept[i]->is_selected = true;
        for (Registration *g = s->events->registrations; g; g = g->next)
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

int reload_begin(const Configuration *s, Reload *w) {
        w->kept = calloc(s->events->n_registrations + 1, sizeof(*w->kept));
        w->replacements = calloc(s->events->n_registrations + 1, sizeof(*w->replacements));
        w->removed = calloc(s->events->n_registrations + 1, sizeof(*w->removed));
        if (!w->kept || !w->replacements || !w->removed)
                return error_origin(-ENOMEM);
        return 0;
}

int reload_end(const Configuration *s, Reload *w, Explanation *e) {
        int r = check_names(w, e);

        if (r == 0)
                reload_find_removed(s, w);
        return r;
}

int reload_prepare(Configuration *s, const Config *c, Reload *w, Explanation *e) {
        int r = reload_begin(s, w);

        for (size_t i = 0; i < c->n_events && r == 0; i++) {
                const Reload before = *w;

                r = reload_prepare_event(s, c, &c->events[i], w, e);
                if (w->may_wait && refusal_may_pass(r)) {
                        reload_forget(s, w, &before);
                        r = reload_add_pending(s, c, &c->events[i], w, e);
                } else if (r > 0)
                        place_explanation(c, &c->events[i], e);
        }
        return r == 0 ? reload_end(s, w, e) : r;
}
