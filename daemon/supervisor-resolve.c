/*
 * From what a user wrote to what would be opened: a name or a glob becomes registrations that are not yet registered,
 * with plan, sample type and layout. Each kind of event has one function here, which is what a new kind adds.
 */
#include "daemon/supervisor.h"

#include "config/name.h"

#include <string.h>

Registration *registration_free(Supervisor *s, Registration *r) {
        if (!r)
                return NULL;
        opened_close(s, &r->opened);
        opened_close(s, &r->pending);
        event_unref(r->event);
        free(r);
        return NULL;
}

void registrations_free(Supervisor *s, Registration *list) {
        for (Registration *next; list; list = next) {
                next = list->next;
                registration_free(s, list);
        }
}

/* A registration of `spec` (moves) for one source. */
static int registration_new(Supervisor *s, EventSpec *spec, Plan *plan, AttrSource source, Registration **ret,
                            Explanation *e) {
        Registration *r = calloc(1, sizeof(*r));
        int error;

        if (!r)
                return -ENOMEM;
        r->source = source;
        r->event = event_new(++s->last_event_id, spec, plan, (uint32_t)s->n_cpus);
        if (!r->event) {
                registration_free(s, r);
                return -ENOMEM;
        }
        error = attr_plan_event(r->event, source, e);
        if (error == 0)
                error = sample_layout_init_type(&r->layout, r->event->sample_type);
        if (error != 0) {
                registration_free(s, r);
                return error;
        }
        r->exclude_self = !r->event->spec.include_self;
        *ret = r;
        return 0;
}

static int resolve_software(Supervisor *s, EventSpec *spec, const EventName *name, Registration **ret, Explanation *e) {
        return registration_new(s, spec, NULL, (AttrSource){ PERF_TYPE_SOFTWARE, name->config }, ret, e);
}

static int resolve_tracepoint(Supervisor *s, EventSpec *spec, const char *group, const char *name, Registration **ret,
                              Explanation *e) {
        _cleanup_(plan_unrefp) Plan *plan = NULL;
        int r = tracing_load(&s->tracing, group, name, &plan, e);

        if (r != 0)
                return r;
        return registration_new(s, spec, plan, (AttrSource){ PERF_TYPE_TRACEPOINT, plan->type }, ret, e);
}

/* One of a glob's matches: a spec of its own, named like the event. */
static int resolve_match(Supervisor *s, const EventSpec *spec, const char *event, Registration **ret, Explanation *e) {
        _cleanup_(event_spec_deinit) EventSpec own = EVENT_SPEC_NULL;
        _cleanup_free_ char *group = strdup(event);
        char *name;
        int r;

        if (!group)
                return -ENOMEM;
        name = strchr(group, ':');
        *name++ = '\0';
        r = event_spec_copy(spec, &own);
        if (r < 0)
                return r;
        free(own.event);
        free(own.name);
        own.event = strdup(event);
        own.name = strdup(event);
        if (!own.event || !own.name)
                return -ENOMEM;
        return resolve_tracepoint(s, &own, group, name, ret, e);
}

static int resolve_glob(Supervisor *s, EventSpec *spec, const EventName *name, Registration **ret, Explanation *e) {
        Registration *list = NULL, **end = &list;
        char **names = NULL;
        size_t n = 0;
        int r;

        if (strcmp(spec->name, spec->event) != 0)
                return refuse(e, REFUSED_INVALID, "bad-event",
                              "%s can name several events, which can not all be called %s: leave the name out",
                              spec->event, spec->name);
        r = tracing_match(&s->tracing, name->group, name->name, &names, &n, e);
        for (size_t i = 0; i < n && r == 0; i++) {
                r = resolve_match(s, spec, names[i], end, e);
                if (r == 0)
                        end = &(*end)->next;
        }
        if (r == 0) {
                event_spec_deinit(spec);
                *ret = list;
        } else
                registrations_free(s, list);
        tracing_names_free(names);
        return r;
}

int supervisor_resolve(Supervisor *s, EventSpec *spec, Registration **ret_list, Explanation *e) {
        _cleanup_(event_name_deinit) EventName name = EVENT_NAME_NULL;
        int r;

        if (!spec->event || !*spec->event)
                return refuse(e, REFUSED_INVALID, "bad-event", "no event is named");
        r = event_name_parse(spec->event, &name, e);
        if (r != 0)
                return r;
        if (!spec->name && !(spec->name = strdup(spec->event)))
                return -ENOMEM;
        r = event_name_is_glob(&name) ? 0 : name_check("the event's name", spec->name, e);
        if (r != 0)
                return r;
        if (name.kind == EVENT_NAME_SOFTWARE)
                return resolve_software(s, spec, &name, ret_list, e);
        if (event_name_is_glob(&name))
                return resolve_glob(s, spec, &name, ret_list, e);
        return resolve_tracepoint(s, spec, name.group, name.name, ret_list, e);
}
