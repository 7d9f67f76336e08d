/*
 * From what a user wrote to what would be opened: a name, a glob or a group becomes registrations that are not yet
 * registered, with plan, attrs and layout. What each kind of name means is in supervisor/resolve/sources.c.
 */

#include "config/text/name.h"
#include "daemon/base/checkpoint.h"
#include "daemon/supervisor/events/own.h"
#include "daemon/supervisor/events/registered.h"
#include "daemon/supervisor/events/sigtrap.h"
#include "daemon/supervisor/resolve/external.h"
#include "daemon/supervisor/resolve/functions.h"
#include "daemon/supervisor/resolve/sources.h"

#include <string.h>

/* ---- one registration -------------------------------------------------------------------------------------------- */

/* A service that is restarted has a new cgroup of the same name. */
static bool spec_is_dynamic(const EventSpec *spec) {
        return spec->cgroups.n > 0 || spec->containers.n > 0 || spec->units.n > 0;
}

void registration_allow_absence(Registration *r) {
        r->may_be_absent = r->is_dynamic;
}

/* The attrs of all sources, one behind the other. */
static int take_attrs(Registration *g, const Source *sources, size_t n) {
        size_t n_attrs = 0;

        for (size_t i = 0; i < n; i++)
                n_attrs += sources[i].n_attrs;
        g->plan.attrs = calloc(n_attrs + 1, sizeof(*g->plan.attrs));
        g->plan.config3 = calloc(n_attrs + 1, sizeof(*g->plan.config3));
        if (!g->plan.attrs || !g->plan.config3)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < sources[i].n_attrs; k++) {
                        g->plan.config3[g->plan.n_attrs] = sources[i].config3;
                        g->plan.attrs[g->plan.n_attrs++] = sources[i].attrs[k];
                }
        return 0;
}

static int add_members(Registration *g, const Source *sources, size_t n) {
        for (size_t i = 0; i < n; i++) {
                const char *unit = sources[i].unit ? sources[i].unit : attr_unit(&sources[i].attrs[0]);
                int r = event_add_member(g->event, sources[i].event, unit, sources[i].scale);

                if (r < 0)
                        return r;
        }
        return 0;
}

int plan_layout_new(const AttrPlan *plan, SampleLayout **ret) {
        _cleanup_free_ SampleLayout *layout = malloc(sizeof(*layout));
        int r = layout ? sample_layout_init(layout, &plan->attrs[0]) : error_origin(-ENOMEM);

        if (r != 0)
                return r;
        if (plan->hides_read)
                sample_layout_hide_read(layout);
        *ret = TAKE_PTR(layout);
        return 0;
}

/* perf_event_enable_on_exec() looks at a task's events only: on whole CPUs it would never be enabled. */
static int check_exec(const EventSpec *spec, const struct perf_event_attr *attr, Explanation *e) {
        if (!attr->enable_on_exec || spec->n_pids || spec->n_tids)
                return 0;
        return refuse(e, REFUSED_INVALID, "bad-attr", "%s: attr enable-on-exec needs pids or tids: whole CPUs and cgroups have "
                "no exec", spec->name);
}

/*
 * `spec` moves, and probe and CPU list of the first source do. With n above 1, or is_group, they are the members of one
 * group. Nothing is registered.
 */
static int registration_new(Resolver *s, uint32_t id, EventSpec *spec, Source *sources, size_t n, bool is_group,
                            const EventModifiers *modifiers, Registration **ret, Explanation *e) {
        Registration *g = calloc(1, sizeof(*g));
        int r;

        if (!g)
                return error_origin(-ENOMEM);
        g->plan = (AttrPlan){ .is_group = is_group, .is_probe = sources[0].is_pmu_probe,
                              .has_ip = sources[0].probe && !spec->args,
                              .wants_group_sample = modifiers->group_sample, .precise_max = modifiers->precise_max };
        if (!spec->period && !spec->frequency) {
                spec->period = sources[0].period;
                spec->frequency = sources[0].frequency;
        }
        g->fallen_back = sources[0].fallen_back;
        g->can_sample = sources[0].can_sample;
        g->is_dynamic = spec_is_dynamic(spec);
        g->exclude_self = !spec->include_self;
        g->event = event_new(id, spec, sources[0].fields, (uint32_t)s->readers->n_cpus + 1);
        r = g->event ? take_attrs(g, sources, n) : error_origin(-ENOMEM);
        if (r == 0)
                r = add_members(g, sources, n);
        if (r == 0)
                r = attr_plan(&s->readers->attr, g->event, &g->plan, g->can_sample, e);
        if (r == 0)
                r = check_exec(&g->event->spec, &g->plan.attrs[0], e);
        if (r == 0)
                r = plan_layout_new(&g->plan, &g->layout);
        g->probe = TAKE_PTR(sources[0].probe);
        g->cpus = TAKE_PTR(sources[0].cpus);
        if (r != 0) {
                registration_free(s->events, g);
                return r;
        }
        *ret = g;
        return 0;
}

/* A spec of its own for one of several that a name stands for, called as it is. */
static int spec_for_one(const EventSpec *spec, const char *event, EventSpec *ret) {
        EventSpec own = EVENT_SPEC_NULL;
        int r = event_spec_copy(spec, &own);

        if (r < 0)
                return r;
        free(own.event);
        free(own.name);
        own.event = strdup(event);
        own.name = strdup(event);
        if (!own.event || !own.name) {
                event_spec_deinit(&own);
                return error_origin(-ENOMEM);
        }
        *ret = own;
        return 0;
}

static int refuse_name(const EventSpec *spec, Explanation *e) {
        return refuse(e, REFUSED_INVALID, "bad-event",
                      "%s can select several events, which cannot all be called %s: omit the name", spec->event,
                      spec->name);
}

/* One name that is no glob: one registration, or one for each PMU that has the event. */
static int resolve_name(Resolver *s, EventSpec *spec, const EventName *name, Registration **ret, Explanation *e) {
        _cleanup_(sources_deinit) Sources sources = SOURCES_NULL;
        uint32_t id = ++s->events->last_event_id;
        SourceRequest q = { .spec = spec, .name = name, .text = spec->event, .id = id };
        Registration *list = NULL, **end = &list;
        int r;

        r = resolver_find_sources(s, &q, &sources, e);
        if (r != 0)
                return r;
        if (sources.n == 1)
                return registration_new(s, id, spec, &sources.items[0], 1, false, &name->modifiers, ret, e);
        if (strcmp(spec->name, spec->event) != 0)
                return refuse_name(spec, e);
        for (size_t i = 0; i < sources.n && r == 0; i++) {
                _cleanup_(event_spec_deinit) EventSpec own = EVENT_SPEC_NULL;

                r = spec_for_one(spec, sources.items[i].event, &own);
                if (r == 0)
                        r = registration_new(s, i == 0 ? id : ++s->events->last_event_id, &own, &sources.items[i], 1, false,
                                             &name->modifiers, end, e);
                if (r == 0)
                        end = &(*end)->next;
        }
        if (r != 0)
                registrations_free(s->events, list);
        else
                *ret = list;
        return r;
}

/* ---- globs and groups -------------------------------------------------------------------------------------------- */

/* One of a glob's matches. */
static int resolve_match(Resolver *s, const EventSpec *spec, const char *event, Registration **ret, Explanation *e) {
        _cleanup_(event_spec_deinit) EventSpec own = EVENT_SPEC_NULL;
        _cleanup_(event_name_deinit) EventName name = EVENT_NAME_NULL;
        int r = spec_for_one(spec, event, &own);

        if (r == 0)
                r = event_name_parse(event, &name, e);
        return r == 0 ? resolve_name(s, &own, &name, ret, e) : r;
}

static int find_functions(Resolver *s, const EventSpec *spec, const EventName *name, char ***ret, size_t *ret_n, Explanation *e) {
        _cleanup_(credentials_deinit) Credentials own = CREDENTIALS_NULL;
        const Credentials *client;
        int r = operations_client(s->operations, &own, &client, e);

        return r == 0 ? functions_match(name, spec->event, client, ret, ret_n, e) : r;
}

static int resolve_glob(Resolver *s, EventSpec *spec, const EventName *name, Registration **ret, Explanation *e) {
        Registration *list = NULL, **end = &list;
        const bool is_of_file = functions_is_glob(name);
        char **names = NULL;
        size_t n = 0;
        int r;

        if (is_of_file)
                r = find_functions(s, spec, name, &names, &n, e);
        else
                r = tracing_match(&s->host->tracing, name->group, name->name, &names, &n, e);
        if (r == 0 && is_of_file && strcmp(names[0], spec->event) == 0) { /* the function is called so */
                functions_free(names, n);
                return resolve_name(s, spec, name, ret, e);
        }
        if (r == 0 && strcmp(spec->name, spec->event) != 0)
                r = refuse_name(spec, e);
        for (size_t i = 0; i < n && r == 0; i++) {
                Explanation why = EXPLANATION_NULL;

                r = resolve_match(s, spec, names[i], end, &why);
                if (r == REFUSED_NOT_FOUND && (list || i + 1 < n)) { /* gone since it was listed: a probe of somebody's, a module */
                        r = 0;
                        continue;
                }
                if (r > 0 && e)
                        *e = why;
                if (r != 0)
                        break;
                (*end)->of_glob = !is_of_file;
                (*end)->like_first = end != &list && !is_of_file;
                end = &(*end)->next;
        }
        if (r != 0)
                registrations_free(s->events, list);
        else
                *ret = list;
        functions_free(names, n); /* names of tracepoints too */
        return r;
}

/* Members are one source each; what stands behind the braces is in all of them. */
static int resolve_group(Resolver *s, EventSpec *spec, const EventNames *names, Registration **ret, Explanation *e) {
        _cleanup_(sources_deinit) Sources members = SOURCES_NULL;
        uint32_t id = ++s->events->last_event_id;
        int r = 0;

        members.items = calloc(names->n_members, sizeof(*members.items));
        if (!members.items)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < names->n_members && r == 0; i++) {
                _cleanup_(sources_deinit) Sources found = SOURCES_NULL;
                SourceRequest q = { .spec = spec, .name = &names->members[i], .text = names->texts[i], .id = id };

                r = i > 0 ? checkpoint(e) : 0;
                if (r == 0)
                        r = resolver_find_sources(s, &q, &found, e);
                if (r == 0 && (found.n != 1 || found.items[0].n_attrs != 1))
                        r = refuse(e, REFUSED_INVALID, "bad-group", "%s is counted by %zu PMUs here, and a group uses one: name "
                                "the event of that PMU, such as %s", q.text, found.n, found.items[0].event);
                if (r == 0) {
                        members.items[members.n++] = found.items[0];
                        found.items[0] = SOURCE_NULL;
                }
        }
        return r == 0 ? registration_new(s, id, spec, members.items, members.n, true, &names->members[0].modifiers, ret, e)
                      : r;
}

/* What goes only with some kinds of events. */
static int check_spec(const EventSpec *spec, const EventNames *names, Explanation *e) {
        EventNameKind kind = names->members[0].kind;
        bool is_probe = kind == EVENT_NAME_KPROBE || kind == EVENT_NAME_UPROBE || kind == EVENT_NAME_USDT;

        if (spec->args && !is_probe)
                return refuse(e, REFUSED_INVALID, "bad-event", "%s: only probes have args; the fields of a tracepoint are fixed",
                              spec->event);
        if (spec->maxactive && (kind != EVENT_NAME_KPROBE || !names->members[0].is_return))
                return refuse(e, REFUSED_INVALID, "bad-event", "%s: only kretprobes have maxactive", spec->event);
        if (spec->fallback && strcmp(spec->fallback, "cpu-clock") != 0)
                return refuse(e, REFUSED_INVALID, "bad-event", "%s: fallback %s is unknown: only cpu-clock is "
                        "possible", spec->event,
                              spec->fallback);
        if (spec->fallback && (kind != EVENT_NAME_HARDWARE || names->members[0].config != PERF_COUNT_HW_CPU_CYCLES))
                return refuse(e, REFUSED_INVALID, "bad-event", "%s: only cycles can fall back to a clock", spec->event);
        if (spec->fields.n && kind != EVENT_NAME_EXTERNAL)
                return refuse(e, REFUSED_INVALID, "bad-event", "%s: only external events declare fields", spec->event);
        return 0;
}

int resolver_resolve(Resolver *s, EventSpec *spec, Registration **ret_list, Explanation *e) {
        _cleanup_(event_names_deinit) EventNames names = EVENT_NAMES_NULL;
        bool is_glob;
        int r = checkpoint(e); /* of each event that is named: what is refused may never come to another one */

        if (r != 0)
                return r;
        if (!spec->event || !*spec->event)
                return refuse(e, REFUSED_INVALID, "bad-event", "no event is named");
        r = event_names_parse(spec->event, &names, e);
        if (r != 0)
                return r;
        if (!spec->name && !(spec->name = strdup(spec->event)))
                return error_origin(-ENOMEM);
        is_glob = !names.is_group && (event_name_is_glob(&names.members[0]) || functions_is_glob(&names.members[0]));
        r = is_glob || strcmp(spec->name, spec->event) == 0 ? 0 : name_check("the event's name", spec->name, e);
        if (r == 0)
                r = check_spec(spec, &names, e);
        if (r == 0)
                r = sigtrap_check_client(s->events, spec, e);
        if (r != 0)
                return r;
        if (names.is_group)
                r = resolve_group(s, spec, &names, ret_list, e);
        else if (names.members[0].kind == EVENT_NAME_EXTERNAL)
                r = resolver_resolve_external(s, ++s->events->last_event_id, spec, ret_list, e);
        else
                r = is_glob ? resolve_glob(s, spec, &names.members[0], ret_list, e)
                            : resolve_name(s, spec, &names.members[0], ret_list, e);
        if (r == 0 && (r = own_name(*ret_list)) < 0) {
                registrations_free(s->events, *ret_list);
                *ret_list = NULL;
        }
        return r;
}
