/* From the configuration to specs, and from what is refused of a spec to its place in the configuration. */
#include "daemon/supervisor/events/configured.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int spec_from_config(const Config *c, const ConfigEvent *from, EventSpec *ret) {
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

bool refusal_may_pass(int r) {
        return r == REFUSED_NOT_FOUND || r == REFUSED_DENIED || r == REFUSED_EXHAUSTED || r == REFUSED_UNSUPPORTED;
}

void config_event_refuse(const Config *c, const ConfigEvent *event, int refusal, const Explanation *e, ConfigDiagnostics *m) {
        ConfigPlace at = place_of(c, event, e);

        if (c->strict || !refusal_may_pass(refusal))
                config_diagnostics_add(m, at, "%s", e->text);
        else
                config_diagnostics_add_pending(m, at, e->reason, e->text);
}
