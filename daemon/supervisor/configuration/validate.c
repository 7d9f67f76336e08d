/* Whether a configuration fits this host, by opening everything once. */

#include "daemon/supervisor/configuration/configuration.h"
#include "daemon/supervisor/access/access.h"
#include "daemon/supervisor/configuration/reload.h"
#include "daemon/supervisor/events/configured.h"
#include "daemon/supervisor/events/open.h"
#include "daemon/supervisor/events/registered.h"

/* Resolves and opens one event of a configuration; may be several by a glob. Nothing is registered. */
static int prepare(Configuration *s, const Config *c, const ConfigEvent *from, Registration **ret, Explanation *e) {
        _cleanup_(event_spec_deinit) EventSpec spec = EVENT_SPEC_NULL;
        Registration *list = NULL;
        int r = spec_from_config(c, from, &spec);

        if (r == 0)
                r = resolver_resolve(s->resolver, &spec, &list, e);
        if (r == 0)
                r = events_open_list(s->events, &list, e);
        if (r != 0) {
                registrations_free(s->events, list);
                return r;
        }
        *ret = list;
        return 0;
}

int configuration_validate(Configuration *s, const ConfigText *texts, size_t n, ConfigDiagnostics *m) {
        _cleanup_(config_unrefp) Config *c = NULL;
        int r = config_parse_all(texts, n, m, &c);

        if (r == 0)
                r = access_check(c, m);
        for (size_t i = 0; r == 0 && i < c->n_events; i++) {
                Explanation e = EXPLANATION_NULL;
                Registration *list = NULL;
                int found = prepare(s, c, &c->events[i], &list, &e);

                registrations_free(s->events, list);
                if (found < 0 || found == REFUSED_CANCELLED)
                        r = found;
                else if (found > 0)
                        config_event_refuse(c, &c->events[i], found, &e, m);
        }
        return r == 0 ? config_diagnostics_finish(m) : r;
}
