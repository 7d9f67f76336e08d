/* Specs own their strings; counters are aligned so that two CPUs never write one cache line. */
#include "daemon/model/event.h"

#include <errno.h>
#include <string.h>

void event_spec_deinit(EventSpec *s) {
        free(s->event);
        free(s->name);
        free(s->target);
        free(s->pids);
        free(s->tids);
        free(s->cpus);
        free(s->filter);
        *s = EVENT_SPEC_NULL;
}

static int string_copy(const char *from, char **ret) {
        *ret = from ? strdup(from) : NULL;
        return from && !*ret ? -ENOMEM : 0;
}

static int numbers_copy(const uint32_t *from, size_t n, uint32_t **ret) {
        *ret = NULL;
        if (n == 0)
                return 0;
        *ret = malloc(n * sizeof(**ret));
        if (!*ret)
                return -ENOMEM;
        memcpy(*ret, from, n * sizeof(**ret));
        return 0;
}

int event_spec_copy(const EventSpec *from, EventSpec *ret) {
        EventSpec s = *from;
        int r = 0;

        s.event = s.name = s.target = s.cpus = s.filter = NULL;
        s.pids = s.tids = NULL;
        if ((r = string_copy(from->event, &s.event)) < 0 || (r = string_copy(from->name, &s.name)) < 0 ||
            (r = string_copy(from->target, &s.target)) < 0 || (r = string_copy(from->cpus, &s.cpus)) < 0 ||
            (r = string_copy(from->filter, &s.filter)) < 0 ||
            (r = numbers_copy(from->pids, from->n_pids, &s.pids)) < 0 ||
            (r = numbers_copy(from->tids, from->n_tids, &s.tids)) < 0) {
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

bool event_spec_equal(const EventSpec *a, const EventSpec *b) {
        return string_equal(a->event, b->event) && string_equal(a->name, b->name) &&
               string_equal(a->target, b->target) && string_equal(a->cpus, b->cpus) &&
               string_equal(a->filter, b->filter) && numbers_equal(a->pids, a->n_pids, b->pids, b->n_pids) &&
               numbers_equal(a->tids, a->n_tids, b->tids, b->n_tids) && a->no_inherit == b->no_inherit &&
               a->period == b->period && a->frequency == b->frequency && a->callchain == b->callchain &&
               a->disabled == b->disabled && a->include_self == b->include_self;
}

Event *event_new(uint32_t id, EventSpec *spec, Plan *plan, uint32_t n_cpus) {
        Event *e = calloc(1, sizeof(*e));

        if (!e)
                return NULL;
        e->counters = aligned_alloc(64, n_cpus * sizeof(*e->counters));
        if (!e->counters) {
                free(e);
                return NULL;
        }
        memset(e->counters, 0, n_cpus * sizeof(*e->counters));
        e->n_refs = 1;
        e->id = id;
        e->n_cpus = n_cpus;
        e->plan = plan_ref(plan);
        e->spec = *spec;
        *spec = EVENT_SPEC_NULL;
        return e;
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
        free(e->counters);
        free(e);
        return NULL;
}
