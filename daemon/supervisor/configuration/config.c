/* From the configuration to specs; and whether a configuration fits this host, by opening everything once. */
#include "daemon/supervisor/supervisor.h"

#include <stdio.h>
#include <string.h>

#include "daemon/supervisor/configuration/reload.h"
#include "daemon/supervisor/requests/requests.h"
#include "daemon/base/printable.h"

static int ids_copy(const ConfigIds *from, uint32_t **ret, size_t *ret_n) {
        if (from->n_ids == 0)
                return 0;
        *ret = malloc(from->n_ids * sizeof(**ret));
        if (!*ret)
                return error_origin(-ENOMEM);
        memcpy(*ret, from->ids, from->n_ids * sizeof(**ret));
        *ret_n = from->n_ids;
        return 0;
}

static int string_copy(const char *from, char **ret) {
        if (from && !(*ret = strdup(from)))
                return error_origin(-ENOMEM);
        return 0;
}

int spec_set_target(EventSpec *spec, const ConfigTarget *t) {
        int r;

        spec->no_inherit = !t->inherit;
        if (strcmp(t->name, "host") != 0 && (r = string_copy(t->name, &spec->target)) < 0)
                return r;
        if ((r = string_copy(t->cpus, &spec->cpus)) < 0 || (r = ids_copy(&t->pids, &spec->pids, &spec->n_pids)) < 0 ||
            (r = strings_copy(t->cgroups.items, t->cgroups.n, &spec->cgroups)) < 0 ||
            (r = strings_copy(t->containers.items, t->containers.n, &spec->containers)) < 0 ||
            (r = strings_copy(t->units.items, t->units.n, &spec->units)) < 0)
                return r;
        return ids_copy(&t->tids, &spec->tids, &spec->n_tids);
}

int spec_from_config(Supervisor *s, const Config *c, const ConfigEvent *from, EventSpec *ret) {
        EventSpec spec = { .period = from->period, .frequency = from->frequency, .callchain = from->callchain,
                           .disabled = !from->enabled, .include_self = from->include_self, .configured = true,
                           .maxactive = (uint32_t)from->maxactive, .interval = from->interval };
        int r;

        if ((r = string_copy(from->event, &spec.event)) < 0 || (r = string_copy(from->name, &spec.name)) < 0 ||
            (r = string_copy(from->group, &spec.group)) < 0 ||
            (r = string_copy(from->filter, &spec.filter)) < 0 || (r = string_copy(from->args, &spec.args)) < 0 ||
            (r = string_copy(from->fallback ? "cpu-clock" : NULL, &spec.fallback)) < 0 ||
            (r = strings_copy(from->attr.items, from->attr.n, &spec.attr)) < 0 ||
            (r = strings_copy(from->fields.items, from->fields.n, &spec.fields)) < 0 ||
            (r = spec_set_target(&spec, &c->targets[from->target])) < 0) {
                event_spec_deinit(&spec);
                return r;
        }
        *ret = spec;
        return 0;
}

/* Of its filter, of the item of its target that is refused, or else of the event. */
ConfigPlace place_of(const Config *c, const ConfigEvent *from, const Explanation *e) {
        if (e->reason && strcmp(e->reason, "bad-filter") == 0 && from->filter_at.path)
                return from->filter_at;
        return e->list ? config_item_place(c, from, e->list, e->item) : from->at;
}

void place_explanation(const Config *c, const ConfigEvent *from, Explanation *e) {
        ConfigPlace at = place_of(c, from, e);
        Explanation placed = *e;

        (void)snprintf(placed.text, sizeof(placed.text), "%s:%u:%u: %.*s", at.path, at.line, at.column,
                       (int)sizeof(e->text) - 200, e->text);
        printable_make(placed.text, sizeof(placed.text)); /* a client's path; and it may be cut in a character */
        *e = placed;
}

/* Resolves and opens one event of a configuration; may be several by a glob. Nothing is registered. */
static int prepare(Supervisor *s, const Config *c, const ConfigEvent *from, Registration **ret, Explanation *e) {
        _cleanup_(event_spec_deinit) EventSpec spec = EVENT_SPEC_NULL;
        Registration *list = NULL;
        int r = spec_from_config(s, c, from, &spec);

        if (r == 0)
                r = supervisor_resolve(s, &spec, &list, e);
        if (r == 0)
                r = supervisor_open_list(s, &list, e);
        if (r != 0) {
                registrations_free(s, list);
                return r;
        }
        *ret = list;
        return 0;
}

int supervisor_validate(Supervisor *s, const ConfigText *texts, size_t n, ConfigDiagnostics *m) {
        _cleanup_(config_unrefp) Config *c = NULL;
        int r = config_parse_all(texts, n, m, &c);

        if (r == 0)
                r = access_check(c, m);
        for (size_t i = 0; r == 0 && i < c->n_events; i++) {
                Explanation e = EXPLANATION_NULL;
                Registration *list = NULL;
                int found = prepare(s, c, &c->events[i], &list, &e);

                registrations_free(s, list);
                if (found < 0 || found == REFUSED_CANCELLED)
                        r = found;
                else if (found > 0)
                        reload_add_refusal(c, &c->events[i], found, &e, m);
        }
        return r == 0 ? config_diagnostics_finish(m) : r;
}
