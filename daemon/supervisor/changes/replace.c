/*
 * Make before break: the replacement of an event's fds is opened and enabled, but on standby, while its predecessor is active;
 * then each reader, at one place of its ring, makes the other active. A tracepoint fires without being preempted, and the
 * reader runs on the same CPU, so that this place is never in the middle of one: what fired before it came from the
 * predecessor, what fires behind it comes from the replacement, nothing from both and nothing from none.
 *
 * With another period each fd begins to count towards its first sample when it is enabled, and what its predecessor had
 * towards its next one is gone with it: so a sample more or less for each fd is all that a change can cost.
 */

#include <string.h>

#include "daemon/kernel/event/open.h"
#include "daemon/supervisor/changes/changes.h"
#include "daemon/supervisor/changes/persistent.h"
#include "daemon/supervisor/changes/replace.h"
#include "daemon/supervisor/events/open.h"
#include "daemon/supervisor/events/registered.h"
#include "daemon/supervisor/events/select.h"
#include "daemon/supervisor/readers/publish.h"
#include "daemon/supervisor/readers/switch.h"
#include "daemon/supervisor/subscriptions/subscription.h"

/* ---- what is to be ----------------------------------------------------------------------------------------------- */

void replacement_deinit(Changes *s, Replacement *p) {
        event_fds_close(s->events, &p->opened);
        event_unref(p->event);
        free(p->plan.attrs);
        free(p->plan.config3);
        free(p->layout);
        *p = REPLACEMENT_NULL;
}

static int text_copy(const char *from, char **ret) {
        *ret = from ? strdup(from) : NULL;
        return from && !*ret ? error_origin(-ENOMEM) : 0;
}

static int plan_copy(const AttrPlan *from, AttrPlan *ret) {
        AttrPlan p = *from;

        p.attrs = calloc(from->n_attrs + 1, sizeof(*p.attrs));
        p.config3 = calloc(from->n_attrs + 1, sizeof(*p.config3));
        *ret = p;
        if (!p.attrs || !p.config3)
                return error_origin(-ENOMEM);
        memcpy(p.attrs, from->attrs, from->n_attrs * sizeof(*p.attrs));
        memcpy(p.config3, from->config3, from->n_attrs * sizeof(*p.config3));
        ret->hides_read = false; /* attr_plan() says again */
        return 0;
}

static int prepare_rate(Changes *s, Replacement *p, Explanation *e) {
        int r = plan_copy(&p->registration->plan, &p->plan);

        p->has_rate = true;
        if (r == 0)
                r = attr_plan(&s->readers->attr, p->event, &p->plan, p->registration->can_sample, e);
        return r == 0 ? plan_layout_new(&p->plan, &p->layout) : r;
}

static bool same_rate(const EventSpec *a, const EventSpec *b) {
        return a->period == b->period && a->frequency == b->frequency && a->interval == b->interval;
}

static bool same_text(const char *a, const char *b) {
        return strcmp(a ? a : "", b ? b : "") == 0;
}

/* The event as it is, but for what can change while it runs. */
static int changed_event(Event *event, const EventSpec *wanted, Event **ret) {
        _cleanup_(event_spec_deinit) EventSpec spec = EVENT_SPEC_NULL;
        int r = event_spec_copy(&event->spec, &spec);

        if (r < 0)
                return r;
        free(spec.filter);
        free(spec.group);
        spec.filter = spec.group = NULL;
        spec.period = wanted->period;
        spec.frequency = wanted->frequency;
        spec.interval = wanted->interval;
        if ((r = text_copy(wanted->filter, &spec.filter)) < 0 || (r = text_copy(wanted->group, &spec.group)) < 0)
                return r;
        *ret = event_new_changed(event, &spec);
        return *ret ? 0 : error_origin(-ENOMEM);
}

static int prepare(Changes *s, Registration *g, const EventSpec *wanted, Replacement *p, Explanation *e) {
        const EventSpec *before = &g->event->spec;
        Registration planned = *g;
        int r;

        p->registration = g;
        r = changed_event(g->event, wanted, &p->event);
        if (r < 0)
                return r;
        p->needs_fds = !same_rate(before, wanted) || !same_text(before->filter, wanted->filter);
        planned.event = p->event;
        if (!same_rate(before, wanted)) {
                r = prepare_rate(s, p, e);
                planned.plan = p->plan;
        }
        if (r == 0 && p->needs_fds)
                r = events_open(s->events, &planned, wanted->filter, &p->opened, e);
        return r;
}

int replacement_prepare(Changes *s, Registration *r, const EventSpec *wanted, Replacement *ret, Explanation *e) {
        Replacement p = REPLACEMENT_NULL;
        int error;

        thread_assert(THREAD_MAIN);
        assert(event_spec_can_become(&r->event->spec, wanted));
        error = prepare(s, r, wanted, &p, e);
        if (error != 0)
                replacement_deinit(s, &p);
        else
                *ret = p;
        return error;
}

/* ---- the change-over --------------------------------------------------------------------------------------------- */

/* `pending` of those that have one; with `only_enabled` of those that are to count. */
static size_t list_pending(const Replacement *list, size_t n, bool only_enabled, PerfFdSet **ret) {
        size_t n_pending = 0;

        for (size_t i = 0; i < n; i++)
                if (list[i].needs_fds && (!only_enabled || list[i].registration->enabled))
                        ret[n_pending++] = &list[i].registration->pending;
        return n_pending;
}

static void release_layout(Readers *s, void *layout) {
        if (!s->answering.is_abandoned)
                free(layout);
}

/* The readers forget what is pending, replaced or refused, and it is closed. */
static int retire(Changes *s, const Replacement *list, size_t n, bool is_replaced) {
        _cleanup_free_ PerfFdSet **pending = calloc(n + 1, sizeof(*pending));
        _cleanup_free_ PerfFdSet *old = calloc(n + 1, sizeof(*old));
        size_t n_pending;
        int error;

        if (!pending || !old)
                return error_origin(-ENOMEM);
        n_pending = list_pending(list, n, false, pending);
        error = is_replaced ? event_fds_cut_over(s->readers, pending, n_pending)
                            : event_fds_disable(s->readers, pending, n_pending);
        if (is_replaced)
                events_end_succession(s->events);
        for (size_t i = 0; i < n && error == 0; i++)
                error = registration_keep_counts(s->events, list[i].registration, &list[i].registration->pending, true);
        if (error != 0)
                return error;
        for (size_t i = 0; i < n; i++) {
                old[i] = list[i].registration->pending;
                list[i].registration->pending = PERF_FD_SET_NULL;
        }
        error = readers_publish(s->readers);
        if (error != 0)
                return error;
        for (size_t i = 0; i < n; i++) {
                event_fds_close(s->events, &old[i]);
                readers_defer(s->readers, release_layout, list[i].registration->pending_layout); /* nobody reads its records any more */
                list[i].registration->pending_layout = NULL;
        }
        return 0;
}

/* Nothing is changed yet but what can be taken back. Refused: it was. */
static int make(Changes *s, Replacement *list, size_t n, Explanation *e) {
        _cleanup_free_ PerfFdSet **pending = calloc(n + 1, sizeof(*pending));
        int error;

        if (!pending)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < n; i++) {
                event_fds_set_successor(&list[i].opened, true);
                list[i].registration->pending = list[i].opened;
                list[i].opened = PERF_FD_SET_NULL;
                list[i].registration->pending_layout = TAKE_PTR(list[i].layout);
        }
        error = readers_publish(s->readers);
        for (size_t i = 0; i < n && error == 0; i++)
                error = event_fds_follow_exec(&list[i].registration->pending, &list[i].registration->opened);
        if (error != 0)
                return error;
        error = event_fds_enable(s->readers, pending, list_pending(list, n, true, pending),
                              n == 1 ? list[0].registration->event->spec.name : "one of the events", e);
        if (error > 0) {
                int undone = retire(s, list, n, false);

                return undone < 0 ? undone : error;
        }
        return error;
}

static void take_rate(Replacement *p) {
        Registration *g = p->registration;
        AttrPlan plan = g->plan;
        SampleLayout *layout = g->layout;

        g->plan = p->plan;
        p->plan = plan;
        g->layout = g->pending_layout;
        g->pending_layout = layout;
}

/* The event is what its replacement was prepared for. */
static void take(Replacement *p) {
        Registration *g = p->registration;
        Event *before = g->event;
        PerfFdSet speaking = g->opened;

        g->event = p->event;
        p->event = before;
        if (!p->needs_fds)
                return;
        g->opened = g->pending;
        g->pending = speaking;
        if (p->has_rate)
                take_rate(p);
}

int changes_replace(Changes *s, Replacement *list, size_t n, Explanation *e) {
        bool needs_fds = false;
        int error;

        thread_assert(THREAD_MAIN);
        for (size_t i = 0; i < n; i++)
                needs_fds |= list[i].needs_fds;
        error = needs_fds ? make(s, list, n, e) : 0;
        if (error != 0)
                return error;
        for (size_t i = 0; i < n && error == 0; i++) {
                take(&list[i]);
                if (list[i].has_rate) /* before the first sample with the new period */
                        error = subscriptions_describe_event(s->subscriptions, list[i].registration);
        }
        if (error == 0 && needs_fds)
                error = readers_publish(s->readers);
        if (error == 0 && needs_fds)
                error = retire(s, list, n, true);
        return error;
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static int find_one(const Changes *s, const char *name, const char *what, Registration **ret, Explanation *e) {
        _cleanup_free_ Registration **selected = NULL;
        size_t n;
        int error = events_select(s->events, (char *const[]){ (char *)name }, 1, &selected, &n, e);

        if (error != 0)
                return error;
        if (n > 1)
                return refuse(e, REFUSED_INVALID, "bad-request", "%s selects %zu events: %s can only be changed one by "
                        "one", name, n,
                              what);
        *ret = selected[0];
        return 0;
}

static int replace_one(Changes *s, Registration *g, const EventSpec *wanted, Explanation *e) {
        const PersistentChange change = { .subjects = &g, .n_subjects = 1, .spec = wanted };
        Replacement p = REPLACEMENT_NULL;
        int error = replacement_prepare(s, g, wanted, &p, e);

        if (error == 0)
                error = persistent_write(s, &change, e);
        if (error == 0) {
                error = changes_replace(s, &p, 1, e);
                if (error > 0) {
                        int restored = persistent_restore(s, &change);

                        error = restored < 0 ? restored : error;
                }
        }
        replacement_deinit(s, &p);
        return error;
}

int changes_set_filter(Changes *s, const char *name, const char *filter, Explanation *e) {
        EventSpec wanted;
        Registration *g = NULL;
        int error;

        thread_assert(THREAD_MAIN);
        error = find_one(s, name, "filters", &g, e);
        if (error != 0)
                return error;
        if (filter && (g->event->external || g->plan.attrs[0].type != PERF_TYPE_TRACEPOINT))
                return refuse(e, REFUSED_INVALID, "bad-event", "%s has no fields for a kernel filter: only tracepoints and "
                        "probes with arguments have some", g->event->spec.name);
        wanted = g->event->spec;
        wanted.filter = (char *)filter;
        return replace_one(s, g, &wanted, e);
}

int changes_set_period(Changes *s, const char *name, uint64_t period, uint64_t frequency, Explanation *e) {
        EventSpec wanted;
        Registration *g = NULL;
        int error;

        thread_assert(THREAD_MAIN);
        if (!period && !frequency)
                return refuse(e, REFUSED_INVALID, "bad-request", "neither a period nor a frequency is given");
        error = find_one(s, name, "periods", &g, e);
        if (error != 0)
                return error;
        if (g->event->external)
                return refuse(e, REFUSED_INVALID, "bad-event", "clients emit %s: it has no period", g->event->spec.name);
        wanted = g->event->spec;
        wanted.period = period;
        wanted.frequency = frequency;
        return replace_one(s, g, &wanted, e);
}
