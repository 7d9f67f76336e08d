/*
 * What an event's name means on this machine: one function for each kind, which is what a new kind adds. A name gives one
 * or more sources; each becomes an event of its own (the PMUs of a hybrid machine, the boxes of an uncore PMU), or they are
 * members of one group.
 */
#include "daemon/supervisor/resolve/sources.h"

#include <string.h>

#include "config/attr/attr-setting.h"
#include "daemon/base/checkpoint.h"
#include "daemon/kernel/event/open.h"
#include "daemon/kernel/pmu/pmu.h"
#include "daemon/supervisor/events/quota.h"

#define TRIAL_SITES_MAX 64 /* of a probe that are tried: the kernel takes longer for each than for the one before */

void source_deinit(Source *o) {
        free(o->attrs);
        plan_unref(o->fields);
        if (o->probe)
                closer_remove_probe(o->closer, o->probe);
        free(o->cpus);
        free(o->event);
        free(o->unit);
        *o = SOURCE_NULL;
}

void sources_deinit(Sources *list) {
        for (size_t i = 0; i < list->n; i++)
                source_deinit(&list->items[i]);
        free(list->items);
        *list = SOURCES_NULL;
}

/* A null source with one attr at the end of the list; its event is `text`. NULL: no memory. */
static Source *sources_add(Sources *list, const char *text, struct perf_event_attr attr) {
        Source *more = reallocarray(list->items, list->n + 1, sizeof(*more)), *o;

        if (!more)
                return NULL;
        list->items = more;
        o = &more[list->n];
        *o = (Source){ .attrs = malloc(sizeof(*o->attrs)), .n_attrs = 1, .event = strdup(text), .can_sample = true,
                       .scale = 1 };
        list->n++;
        if (!o->attrs || !o->event)
                return NULL;
        o->attrs[0] = attr;
        return o;
}

static int find_software(Resolver *s, const SourceRequest *q, Sources *list, Explanation *e) {
        struct perf_event_attr attr = attr_of_source(PERF_TYPE_SOFTWARE, q->name->config, &q->name->modifiers);

        return sources_add(list, q->text, attr) ? 0 : error_origin(-ENOMEM);
}

static int find_breakpoint(Resolver *s, const SourceRequest *q, Sources *list, Explanation *e) {
        return sources_add(list, q->text, attr_of_breakpoint(q->name)) ? 0 : error_origin(-ENOMEM);
}

static int find_tracepoint(Resolver *s, const SourceRequest *q, Sources *list, Explanation *e) {
        _cleanup_(plan_unrefp) Plan *plan = NULL;
        Source *o;
        int r = tracing_load(&s->host->tracing, q->name->group, q->name->name, &plan, e);

        if (r != 0)
                return r;
        o = sources_add(list, q->text, attr_of_source(PERF_TYPE_TRACEPOINT, plan->type, &q->name->modifiers));
        if (!o)
                return error_origin(-ENOMEM);
        o->fields = TAKE_PTR(plan);
        return 0;
}

static int first_online_cpu(const Resolver *s) {
        for (size_t slot = 0; slot < s->readers->n_cpus; slot++)
                if (s->readers->online[slot])
                        return (int)s->readers->cpus[slot];
        return -1;
}

/* ---- PMUs -------------------------------------------------------------------------------------------------------- */

/* Of a PMU that is none of the kernel's own, and puts nothing into programs only by being opened. */
static bool is_only_counted(const Resolver *s, const PmuEvent *p, const struct perf_event_attr *from) {
        struct perf_event_attr attr = *from;

        if (p->type < PERF_TYPE_MAX || strcmp(p->pmu, "kprobe") == 0 || strcmp(p->pmu, "uprobe") == 0)
                return false;
        attr.disabled = 1;
        attr.size = attr_least_size(&attr);
        return open_is_only_counted(&attr, first_online_cpu(s));
}

static int add_pmu_event(Resolver *s, Sources *list, const SourceRequest *q, const PmuEvent *p, const char *text, Explanation *e) {
        struct perf_event_attr attr = attr_of_source(p->type, p->config, &q->name->modifiers);
        Source *o;

        attr.config1 = p->config1;
        attr.config2 = p->config2;
        o = sources_add(list, text, attr);
        if (!o)
                return error_origin(-ENOMEM);
        o->config3 = p->config3;
        o->can_sample = !p->is_uncore && !is_only_counted(s, p, &attr);
        o->is_uncore = p->is_uncore;
        o->period = p->period;
        o->frequency = p->frequency;
        o->scale = p->scale;
        if ((p->cpus && !(o->cpus = strdup(p->cpus))) || (p->unit && !(o->unit = strdup(p->unit))))
                return error_origin(-ENOMEM);
        return 0;
}

/* "uncore_imc/cas/" on the box uncore_imc_1 is "uncore_imc_1/cas/". */
static char *text_on_pmu(const PmuEvent *p, const char *text) {
        const char *terms = strchr(text, '/');
        char *own;

        if (!terms)
                return asprintf(&own, "%s/%s/", p->pmu, text) < 0 ? NULL : own;
        return asprintf(&own, "%s%s", p->pmu, terms) < 0 ? NULL : own;
}

static int add_pmu_events(Resolver *s, Sources *list, const SourceRequest *q, const PmuEvent *events, size_t n, Explanation *e) {
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++) {
                _cleanup_free_ char *text = n > 1 ? text_on_pmu(&events[i], q->text) : strdup(q->text);

                r = text ? add_pmu_event(s, list, q, &events[i], text, e) : error_origin(-ENOMEM);
        }
        return r;
}

static int find_pmu(Resolver *s, const SourceRequest *q, Sources *list, Explanation *e) {
        PmuEvent *events = NULL;
        size_t n = 0;
        int r = pmu_resolve(PMU_ROOT, q->name, &events, &n, e);

        if (r == 0)
                r = add_pmu_events(s, list, q, events, n, e);
        pmu_events_free(events, n);
        return r;
}

/* Hardware, cache and raw events: of the core PMU, or of each where a machine has several. */
static int find_core(Resolver *s, const SourceRequest *q, Sources *list, Explanation *e) {
        static const uint32_t types[] = {
                [EVENT_NAME_HARDWARE] = PERF_TYPE_HARDWARE,
                [EVENT_NAME_CACHE] = PERF_TYPE_HW_CACHE,
                [EVENT_NAME_RAW] = PERF_TYPE_RAW,
        };
        PmuEvent *events = NULL;
        size_t n = 0;
        int r = pmu_core(PMU_ROOT, q->name, &events, &n, e);

        if (r == 0 && n > 1)
                r = add_pmu_events(s, list, q, events, n, e);
        else if (r == 0 && !sources_add(list, q->text, attr_of_source(types[q->name->kind], q->name->config,
                                                                      &q->name->modifiers)))
                r = error_origin(-ENOMEM);
        pmu_events_free(events, n);
        return r;
}

/* ---- probes ------------------------------------------------------------------------------------------------------ */

static bool fields_alike(const Plan *a, const Plan *b) {
        if (a->n_fields != b->n_fields || a->min_size != b->min_size)
                return false;
        for (size_t i = 0; i < a->n_fields; i++) {
                const PlanField *x = &a->fields[i], *y = &b->fields[i];

                if (strcmp(x->name, y->name) != 0 || x->kind != y->kind || x->place != y->place ||
                    x->offset != y->offset || x->element_size != y->element_size || x->count != y->count)
                        return false;
        }
        return true;
}

/* One site as an attr. Those of a dynamic event have fields, which have to be the same at each site. */
static int add_site(Resolver *s, const SourceRequest *q, Source *o, const ProbeAttr *site, Explanation *e) {
        _cleanup_(plan_unrefp) Plan *plan = NULL;
        struct perf_event_attr *attr = &o->attrs[o->n_attrs];
        int r;

        if (!site->is_dynamic) {
                *attr = attr_of_source(site->type, site->config, &q->name->modifiers);
                attr->config1 = site->config1;
                attr->config2 = site->config2;
                o->n_attrs++;
                return 0;
        }
        r = tracing_load(&s->host->tracing, site->group, site->name, &plan, e);
        if (r != 0)
                return r;
        if (o->fields && !fields_alike(o->fields, plan))
                return refuse(e, REFUSED_UNSUPPORTED, "bad-args", "%s has sites whose arguments differ in type: select arguments "
                        "by `args`, each with a type", q->text);
        *attr = attr_of_source(PERF_TYPE_TRACEPOINT, plan->type, &q->name->modifiers);
        o->n_attrs++;
        if (!o->fields)
                o->fields = TAKE_PTR(plan);
        return 0;
}

typedef struct SitesOf {
        const Resolver *resolver;
        const char *what;
} SitesOf;

/* Each takes an fd at least. */
static int check_sites(void *userdata, size_t n, Explanation *e) {
        const SitesOf *o = userdata;

        return events_check_trial_quota(o->resolver->events, o->what, n, e);
}

static int find_probe(Resolver *s, const SourceRequest *q, Sources *list, Explanation *e) {
        const EventSpec *spec = q->spec;
        SitesOf sites = { .resolver = s, .what = q->text };
        ProbeRequest request = { .name = q->name, .args = spec->args, .maxactive = spec->maxactive, .id = q->id,
                                 .index = &s->host->kernel_symbols, .check_sites = check_sites, .userdata = &sites,
                                 .sites_max = operations_is_trial(s->operations) ? TRIAL_SITES_MAX : 0,
                                 .inherits = (spec->n_pids > 0 || spec->n_tids > 0) && !spec->no_inherit };
        _cleanup_(credentials_deinit) Credentials own = CREDENTIALS_NULL;
        struct perf_event_attr *more;
        Probe *probe = NULL;
        Source *o;
        int r = operations_client(s->operations, &own, &request.client, e);

        if (r == 0)
                r = probe_define(&s->host->tracing, &request, &probe, e);
        if (r == 0 && probe_is_unchecked(probe))
                notes_add_unchecked(&s->operations->notes, q->text);
        o = r == 0 ? sources_add(list, q->text, (struct perf_event_attr){ 0 }) : NULL;
        more = o ? reallocarray(o->attrs, probe_n_attrs(probe) + 1, sizeof(*more)) : NULL;
        if (!more) {
                closer_remove_probe(s->operations->closer, probe);
                return r != 0 ? r : error_origin(-ENOMEM);
        }
        o->attrs = more;
        o->n_attrs = 0;
        o->probe = probe;
        o->closer = s->operations->closer;
        for (size_t i = 0; i < probe_n_attrs(probe) && r == 0; i++) {
                ProbeAttr site = probe_attr(probe, i);

                o->is_pmu_probe = !site.is_dynamic;
                r = i > 0 ? checkpoint(e) : 0;
                if (r == 0)
                        r = add_site(s, q, o, &site, e);
        }
        return r;
}

static const struct {
        int (*find)(Resolver *s, const SourceRequest *q, Sources *list, Explanation *e);
} kinds[_EVENT_NAME_KIND_MAX] = {
        [EVENT_NAME_TRACEPOINT] = { find_tracepoint },
        [EVENT_NAME_SOFTWARE] = { find_software },
        [EVENT_NAME_HARDWARE] = { find_core },
        [EVENT_NAME_CACHE] = { find_core },
        [EVENT_NAME_RAW] = { find_core },
        [EVENT_NAME_PMU] = { find_pmu },
        [EVENT_NAME_BREAKPOINT] = { find_breakpoint },
        [EVENT_NAME_KPROBE] = { find_probe },
        [EVENT_NAME_UPROBE] = { find_probe },
        [EVENT_NAME_USDT] = { find_probe },
};

/* cycles, where the user says what may stand in for it. */
static bool falls_back(const Resolver *s, const SourceRequest *q, const Source *o) {
        struct perf_event_attr attr = o->attrs[0];

        if (!q->spec->fallback || q->name->kind != EVENT_NAME_HARDWARE || q->name->config != PERF_COUNT_HW_CPU_CYCLES)
                return false;
        attr.size = sizeof(attr);
        attr.disabled = 1;
        return open_is_missing(&attr, first_online_cpu(s));
}

int resolver_find_sources(Resolver *s, const SourceRequest *q, Sources *ret, Explanation *e) {
        EventModifiers imprecise = q->name->modifiers;
        Sources list = SOURCES_NULL;
        int r;

        thread_assert(THREAD_MAIN);
        assert(kinds[q->name->kind].find);
        r = kinds[q->name->kind].find(s, q, &list, e);
        if (r == 0 && list.n == 1 && falls_back(s, q, &list.items[0])) {
                imprecise.precise = 0;
                list.items[0].attrs[0] = attr_of_source(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, &imprecise);
                list.items[0].fallen_back = true;
        }
        for (size_t i = 0; i < list.n && r == 0; i++)
                if (list.items[i].is_uncore && !event_spec_is_host(q->spec))
                        r = refuse(e, REFUSED_INVALID, "bad-target", "%s is counted only for whole CPUs: it cannot be attributed "
                                "to a task or cgroup", list.items[i].event);
        if (r != 0)
                sources_deinit(&list);
        else
                *ret = list;
        return r;
}
