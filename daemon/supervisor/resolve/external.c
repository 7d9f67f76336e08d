/* External events: their plans are made of the fields that are written, and they have no fds. */
#include "daemon/supervisor/resolve/external.h"

#include <stdlib.h>

#include "daemon/model/external-plan.h"
#include "daemon/supervisor/events/registered.h"

int resolver_resolve_external(Resolver *s, uint32_t id, EventSpec *spec, Registration **ret, Explanation *e) {
        _cleanup_(plan_unrefp) Plan *plan = NULL;
        Registration *g;
        int r;

        if (!event_spec_is_host(spec) || spec->target || spec->no_inherit || spec->include_self || spec->cpus ||
            spec->period || spec->frequency || spec->callchain || spec->filter || spec->interval || spec->attr.n)
                return refuse(e, REFUSED_INVALID, "bad-event", "clients emit %s: it has fields, and cannot have a target, "
                        "period, frequency, callchain, filter, interval, attr or include-self", spec->event);
        r = external_plan_new(spec->name, &spec->fields, &plan, e);
        if (r != 0)
                return r;
        g = calloc(1, sizeof(*g));
        if (!g)
                return error_origin(-ENOMEM);
        g->event = event_new(id, spec, plan, (uint32_t)s->readers->n_cpus + 1);
        if (!g->event) {
                registration_free(s->events, g);
                return error_origin(-ENOMEM);
        }
        g->event->external = g->event->exact = true;
        g->event->period = 1;
        *ret = g;
        return 0;
}
