/*
 * What is a pair on the wire is one text for the caller, as he would write it on a command line or in YAML:
 * "exclude-user=true", "user:text". So it is the text that travels between programs, and only one place takes it apart.
 */
#include "client/wire/event-spec.h"

#include <errno.h>
#include <string.h>

#include "client/wire/caller-string.h"

/* "NAME<separator>VALUE" into two strings of the arena. */
static int split(const char *text, char separator, Arena *arena, char **ret_name, char **ret_value) {
        const char *at = text ? strchr(text, separator) : NULL;
        size_t size = text ? strlen(text) + 1 : 0;
        char *copy;

        if (!at || at == text)
                return PERFD_E_INVALID;
        copy = arena_push(arena, size, 1);
        if (!copy)
                return -ENOMEM;
        memcpy(copy, text, size);
        copy[at - text] = '\0';
        *ret_name = copy;
        *ret_value = copy + (at - text) + 1;
        return 0;
}

static int attr_encode(const perfd_event_spec *spec, Arena *arena, Perfd__V1__EventSpec *m, const char **ret_wrong) {
        Perfd__V1__AttrSetting *settings = arena_push(arena, spec->n_attr, sizeof(*settings));

        m->attr = arena_push(arena, spec->n_attr, sizeof(*m->attr));
        if (!settings || !m->attr)
                return -ENOMEM;
        for (size_t i = 0; i < spec->n_attr; i++) {
                int r;

                perfd__v1__attr_setting__init(&settings[i]);
                r = split(spec->attr[i], '=', arena, &settings[i].name, &settings[i].value);
                if (r != 0) {
                        *ret_wrong = wire_string(spec->attr[i]);
                        return r;
                }
                m->attr[m->n_attr++] = &settings[i];
        }
        return 0;
}

static int fields_encode(const perfd_event_spec *spec, Arena *arena, Perfd__V1__EventSpec *m, const char **ret_wrong) {
        Perfd__V1__ExternalField *fields = arena_push(arena, spec->n_fields, sizeof(*fields));

        m->fields = arena_push(arena, spec->n_fields, sizeof(*m->fields));
        if (!fields || !m->fields)
                return -ENOMEM;
        for (size_t i = 0; i < spec->n_fields; i++) {
                int r;

                perfd__v1__external_field__init(&fields[i]);
                r = split(spec->fields[i], ':', arena, &fields[i].name, &fields[i].type);
                if (r != 0) {
                        *ret_wrong = wire_string(spec->fields[i]);
                        return r;
                }
                m->fields[m->n_fields++] = &fields[i];
        }
        return 0;
}

static bool target_encode(const perfd_event_spec *spec, Perfd__V1__Target *t) {
        perfd__v1__target__init(t);
        t->name = wire_string(spec->target);
        t->cpus = wire_string(spec->cpus);
        t->pids = (uint32_t *)spec->pids;
        t->n_pids = spec->n_pids;
        t->tids = (uint32_t *)spec->tids;
        t->n_tids = spec->n_tids;
        t->no_inherit = spec->no_inherit;
        t->cgroups = (char **)spec->cgroups;
        t->n_cgroups = spec->n_cgroups;
        t->containers = (char **)spec->containers;
        t->n_containers = spec->n_containers;
        t->units = (char **)spec->units;
        t->n_units = spec->n_units;
        return *t->name || *t->cpus || t->n_pids > 0 || t->n_tids > 0 || t->no_inherit || t->n_cgroups > 0 ||
               t->n_containers > 0 || t->n_units > 0;
}

int spec_encode(const perfd_event_spec *spec, Arena *arena, WireSpec *ret, const char **ret_wrong) {
        Perfd__V1__EventSpec *m = &ret->message;
        int r;

        perfd__v1__event_spec__init(m);
        m->event = wire_string(spec->event);
        m->name = wire_string(spec->name);
        m->group = wire_string(spec->group);
        m->filter = wire_string(spec->filter);
        m->period = spec->period;
        m->frequency = spec->frequency;
        m->callchain = (Perfd__V1__Callchain)spec->callchain;
        m->disabled = spec->disabled;
        m->include_self = spec->include_self;
        m->args = wire_string(spec->args);
        m->maxactive = spec->maxactive;
        m->interval = spec->interval;
        m->fallback = wire_string(spec->fallback);
        if (target_encode(spec, &ret->target))
                m->target = &ret->target;
        r = attr_encode(spec, arena, m, ret_wrong);
        return r == 0 ? fields_encode(spec, arena, m, ret_wrong) : r;
}

static const char *join(Arena *arena, const char *name, char separator, const char *value) {
        size_t n = strlen(name), size = strlen(value) + 1;
        char *text = arena_push(arena, n + 1 + size, 1);

        if (!text)
                return NULL;
        memcpy(text, name, n);
        text[n] = separator;
        memcpy(text + n + 1, value, size);
        return text;
}

/* The pairs of the message as texts. */
static int pairs_decode(const Perfd__V1__EventSpec *m, Arena *arena, perfd_event_spec *spec) {
        const char **attr = arena_push(arena, m->n_attr, sizeof(*attr));
        const char **fields = arena_push(arena, m->n_fields, sizeof(*fields));

        if (!attr || !fields)
                return -ENOMEM;
        for (size_t i = 0; i < m->n_attr; i++)
                if (!(attr[i] = join(arena, m->attr[i]->name, '=', m->attr[i]->value)))
                        return -ENOMEM;
        for (size_t i = 0; i < m->n_fields; i++)
                if (!(fields[i] = join(arena, m->fields[i]->name, ':', m->fields[i]->type)))
                        return -ENOMEM;
        spec->attr = attr;
        spec->n_attr = m->n_attr;
        spec->fields = fields;
        spec->n_fields = m->n_fields;
        return 0;
}

const perfd_event_spec *spec_decode(const Perfd__V1__EventSpec *m, Arena *arena) {
        static const Perfd__V1__Target host = PERFD__V1__TARGET__INIT;
        const Perfd__V1__Target *t = m->target ? m->target : &host;
        perfd_event_spec *spec = arena_push(arena, 1, sizeof(*spec));

        if (!spec)
                return NULL;
        *spec = (perfd_event_spec){
                .size = sizeof(*spec),
                .event = m->event,
                .name = m->name,
                .group = m->group,
                .filter = m->filter,
                .target = t->name,
                .pids = t->pids,
                .n_pids = t->n_pids,
                .tids = t->tids,
                .n_tids = t->n_tids,
                .cpus = t->cpus,
                .no_inherit = t->no_inherit,
                .period = m->period,
                .frequency = m->frequency,
                .callchain = (perfd_callchain)(m->callchain & (PERFD_CALLCHAIN_BOTH | PERFD_CALLCHAIN_DWARF)),
                .disabled = m->disabled,
                .include_self = m->include_self,
                .cgroups = (const char *const *)t->cgroups,
                .n_cgroups = t->n_cgroups,
                .containers = (const char *const *)t->containers,
                .n_containers = t->n_containers,
                .units = (const char *const *)t->units,
                .n_units = t->n_units,
                .args = m->args,
                .maxactive = m->maxactive,
                .interval = m->interval,
                .fallback = m->fallback,
        };
        return pairs_decode(m, arena, spec) == 0 ? spec : NULL;
}
