/* Specs own their strings; counters are aligned so that two CPUs never write one cache line. */
#include "daemon/model/event.h"

#include <errno.h>
#include <string.h>

#include "daemon/base/error-trail.h"

void event_spec_deinit(EventSpec *s) {
        free(s->event);
        free(s->name);
        free(s->group);
        free(s->target);
        free(s->pids);
        free(s->tids);
        strings_deinit(&s->cgroups);
        strings_deinit(&s->containers);
        strings_deinit(&s->units);
        free(s->cpus);
        free(s->filter);
        free(s->args);
        free(s->fallback);
        strings_deinit(&s->attr);
        strings_deinit(&s->fields);
        *s = EVENT_SPEC_NULL;
}

const char *event_spec_group(const EventSpec *s) {
        return s->group ? s->group : EVENT_GROUP_DEFAULT;
}

unsigned event_spec_callchain(const EventSpec *s) {
        const unsigned walked = s->callchain & (CALLCHAIN_KERNEL | CALLCHAIN_USER);

        if (!(s->callchain & CALLCHAIN_DWARF))
                return walked;
        return walked == CALLCHAIN_USER ? 0 : CALLCHAIN_KERNEL;
}

bool event_spec_is_host(const EventSpec *s) {
        return s->n_pids == 0 && s->n_tids == 0 && s->cgroups.n == 0 && s->containers.n == 0 && s->units.n == 0;
}

static int string_copy(const char *from, char **ret) {
        *ret = from ? strdup(from) : NULL;
        return from && !*ret ? error_origin(-ENOMEM) : 0;
}

static int numbers_copy(const uint32_t *from, size_t n, uint32_t **ret) {
        *ret = NULL;
        if (n == 0)
                return 0;
        *ret = malloc(n * sizeof(**ret));
        if (!*ret)
                return error_origin(-ENOMEM);
        memcpy(*ret, from, n * sizeof(**ret));
        return 0;
}

static int lists_copy(const EventSpec *from, EventSpec *to) {
        int r;

        if ((r = strings_copy(from->cgroups.items, from->cgroups.n, &to->cgroups)) < 0 ||
            (r = strings_copy(from->containers.items, from->containers.n, &to->containers)) < 0 ||
            (r = strings_copy(from->units.items, from->units.n, &to->units)) < 0 ||
            (r = strings_copy(from->attr.items, from->attr.n, &to->attr)) < 0)
                return r;
        return strings_copy(from->fields.items, from->fields.n, &to->fields);
}

int event_spec_copy(const EventSpec *from, EventSpec *ret) {
        EventSpec s = *from;
        int r = 0;

        s.event = s.name = s.group = s.target = s.cpus = s.filter = s.args = s.fallback = NULL;
        s.pids = s.tids = NULL;
        s.cgroups = s.containers = s.units = s.attr = s.fields = STRINGS_NULL;
        if ((r = string_copy(from->event, &s.event)) < 0 || (r = string_copy(from->name, &s.name)) < 0 ||
            (r = string_copy(from->group, &s.group)) < 0 || (r = string_copy(from->target, &s.target)) < 0 ||
            (r = string_copy(from->cpus, &s.cpus)) < 0 || (r = string_copy(from->filter, &s.filter)) < 0 ||
            (r = string_copy(from->args, &s.args)) < 0 || (r = string_copy(from->fallback, &s.fallback)) < 0 ||
            (r = numbers_copy(from->pids, from->n_pids, &s.pids)) < 0 ||
            (r = numbers_copy(from->tids, from->n_tids, &s.tids)) < 0 || (r = lists_copy(from, &s)) < 0) {
                event_spec_deinit(&s);
                return r;
        }
        *ret = s;
        return 0;
}

static bool string_equal(const char *a, const char *b) {
        return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool numbers_equal(const uint32_t *a, size_t n_a, const uint32_t *b, size_t n_b) {
        return n_a == n_b && (n_a == 0 || memcmp(a, b, n_a * sizeof(*a)) == 0);
}

bool event_spec_same_target(const EventSpec *a, const EventSpec *b) {
        return string_equal(a->target, b->target) && string_equal(a->cpus, b->cpus) &&
               numbers_equal(a->pids, a->n_pids, b->pids, b->n_pids) &&
               numbers_equal(a->tids, a->n_tids, b->tids, b->n_tids) && strings_equal(&a->cgroups, &b->cgroups) &&
               strings_equal(&a->containers, &b->containers) && strings_equal(&a->units, &b->units) &&
               a->no_inherit == b->no_inherit;
}

bool event_spec_equal(const EventSpec *a, const EventSpec *b) {
        return string_equal(a->event, b->event) && string_equal(a->name, b->name) &&
               strcmp(event_spec_group(a), event_spec_group(b)) == 0 && event_spec_same_target(a, b) &&
               string_equal(a->filter, b->filter) && string_equal(a->args, b->args) &&
               string_equal(a->fallback, b->fallback) && strings_equal(&a->attr, &b->attr) &&
               strings_equal(&a->fields, &b->fields) && a->maxactive == b->maxactive && a->interval == b->interval &&
               a->period == b->period && a->frequency == b->frequency && a->callchain == b->callchain &&
               a->disabled == b->disabled && a->include_self == b->include_self;
}

bool event_spec_can_become(const EventSpec *a, const EventSpec *b) {
        EventSpec x = *a, y = *b;

        x.filter = y.filter = x.group = y.group = NULL;
        x.period = y.period = x.frequency = y.frequency = 0;
        x.interval = y.interval = 0;
        return event_spec_equal(&x, &y);
}

Event *event_new(uint32_t id, EventSpec *spec, Plan *plan, uint32_t n_slots) {
        Event *e = calloc(1, sizeof(*e));

        if (!e)
                return NULL;
        e->counters = aligned_alloc(64, n_slots * sizeof(*e->counters));
        if (!e->counters) {
                free(e);
                return NULL;
        }
        memset(e->counters, 0, n_slots * sizeof(*e->counters));
        e->n_refs = 1;
        e->id = id;
        e->n_slots = n_slots;
        e->plan = plan_ref(plan);
        e->spec = *spec;
        *spec = EVENT_SPEC_NULL;
        return e;
}

Event *event_new_changed(Event *from, EventSpec *spec) {
        Event *e = malloc(sizeof(*e));

        if (!e)
                return NULL;
        *e = (Event){ .n_refs = 1, .origin = event_ref(from->origin ? from->origin : from), .id = from->id, .spec = *spec,
                      .plan = plan_ref(from->plan), .external = from->external, .members = from->members,
                      .n_members = from->n_members, .exact = from->exact, .in_ns = from->in_ns, .period = from->period,
                      .n_slots = from->n_slots, .counters = from->counters, .closed_reads = from->closed_reads };
        *spec = EVENT_SPEC_NULL;
        return e;
}

static void free_numbers(Event *e) {
        for (size_t i = 0; i < e->n_members; i++) {
                free(e->members[i].event);
                free(e->members[i].unit);
        }
        free(e->members);
        free(e->closed_reads);
        free(e->counters);
}

int event_add_member(Event *e, const char *event, const char *unit, double scale) {
        EventCounter *more = reallocarray(e->members, e->n_members + 1, sizeof(*more));
        ReadCount *reads;

        if (!more)
                return error_origin(-ENOMEM);
        e->members = more;
        reads = calloc((e->n_members + 1) * (size_t)e->n_slots, sizeof(*reads));
        more[e->n_members] = (EventCounter){ .event = strdup(event), .unit = strdup(unit), .scale = scale };
        if (!reads || !more[e->n_members].event || !more[e->n_members].unit) {
                free(reads);
                free(more[e->n_members].event);
                free(more[e->n_members].unit);
                return error_origin(-ENOMEM);
        }
        free(e->closed_reads); /* nothing is closed yet */
        e->closed_reads = reads;
        e->n_members++;
        return 0;
}

Event *event_ref(Event *e) {
        if (e)
                atomic_fetch_add_explicit(&e->n_refs, 1, memory_order_relaxed);
        return e;
}

Event *event_unref(Event *e) {
        if (!e || atomic_fetch_sub_explicit(&e->n_refs, 1, memory_order_acq_rel) > 1)
                return NULL;
        event_spec_deinit(&e->spec);
        plan_unref(e->plan);
        if (e->origin)
                event_unref(e->origin);
        else
                free_numbers(e);
        free(e);
        return NULL;
}
