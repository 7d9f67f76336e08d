/* Specs from and to messages. Strings and arrays are malloc'ed, for free_unpacked(). */
#include "daemon/supervisor/events/configured.h"

#include <stdio.h>
#include <string.h>

#include "config/text/name.h"
#include "config/value.h"
#include "daemon/base/log.h"
#include "daemon/supervisor/events/specs.h"

#define PID_MAX_LIMIT 4194304 /* include/linux/threads.h, where a long has 64 bits */
#define KEY_OF_EVENT "groups.NAME.events[]."

int string_set(char **to, const char *from) {
        if (!from)
                return 0;
        *to = strdup(from);
        return *to ? 0 : error_origin(-ENOMEM);
}

int numbers_set(uint32_t **to, size_t *ret_n, const uint32_t *from, size_t n) {
        if (n == 0)
                return 0;
        *to = malloc(n * sizeof(**to));
        if (!*to)
                return error_origin(-ENOMEM);
        memcpy(*to, from, n * sizeof(**to));
        *ret_n = n;
        return 0;
}

static int strings_set(char ***to, size_t *ret_n, const Strings *from) {
        if (from->n == 0)
                return 0;
        *to = calloc(from->n, sizeof(**to));
        if (!*to)
                return error_origin(-ENOMEM);
        for (; *ret_n < from->n; (*ret_n)++)
                if (!((*to)[*ret_n] = strdup(from->items[*ret_n])))
                        return error_origin(-ENOMEM);
        return 0;
}

static int target_message(const EventSpec *from, Perfd__V1__Target **ret) {
        Perfd__V1__Target *t;
        int r;

        if (!from->target && event_spec_is_host(from) && !from->cpus)
                return 0;
        t = malloc(sizeof(*t));
        if (!t)
                return error_origin(-ENOMEM);
        perfd__v1__target__init(t);
        *ret = t;
        t->no_inherit = from->no_inherit;
        if ((r = string_set(&t->name, from->target)) < 0 || (r = string_set(&t->cpus, from->cpus)) < 0 ||
            (r = numbers_set(&t->pids, &t->n_pids, from->pids, from->n_pids)) < 0)
                return r;
        if ((r = strings_set(&t->cgroups, &t->n_cgroups, &from->cgroups)) < 0 ||
            (r = strings_set(&t->containers, &t->n_containers, &from->containers)) < 0 ||
            (r = strings_set(&t->units, &t->n_units, &from->units)) < 0)
                return r;
        return numbers_set(&t->tids, &t->n_tids, from->tids, from->n_tids);
}

/* "exclude-user=true" is a name and a value. */
static int attr_message(const Strings *from, Perfd__V1__EventSpec *m) {
        m->attr = calloc(from->n + 1, sizeof(*m->attr));
        if (!m->attr)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < from->n; i++) {
                const char *text = from->items[i], *equals = strchr(text, '=');
                Perfd__V1__AttrSetting *a = malloc(sizeof(*a));

                if (!a)
                        return error_origin(-ENOMEM);
                perfd__v1__attr_setting__init(a);
                m->attr[m->n_attr++] = a;
                a->name = strndup(text, equals ? (size_t)(equals - text) : strlen(text));
                a->value = strdup(equals ? equals + 1 : "true");
                if (!a->name || !a->value)
                        return error_origin(-ENOMEM);
        }
        return 0;
}

/* "user:text" */
static int fields_message(const Strings *from, Perfd__V1__EventSpec *m) {
        m->fields = calloc(from->n + 1, sizeof(*m->fields));
        if (!m->fields)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < from->n; i++) {
                const char *text = from->items[i], *colon = strchr(text, ':');
                Perfd__V1__ExternalField *f = malloc(sizeof(*f));

                if (!f)
                        return error_origin(-ENOMEM);
                perfd__v1__external_field__init(f);
                m->fields[m->n_fields++] = f;
                f->name = strndup(text, colon ? (size_t)(colon - text) : strlen(text));
                f->type = strdup(colon ? colon + 1 : "");
                if (!f->name || !f->type)
                        return error_origin(-ENOMEM);
        }
        return 0;
}

int spec_message(const EventSpec *from, Perfd__V1__EventSpec **ret) {
        Perfd__V1__EventSpec *m = malloc(sizeof(*m));
        int r;

        if (!m)
                return error_origin(-ENOMEM);
        perfd__v1__event_spec__init(m);
        *ret = m;
        m->period = from->period;
        m->frequency = from->frequency;
        m->callchain = (Perfd__V1__Callchain)from->callchain; /* the same bits */
        m->disabled = from->disabled;
        m->include_self = from->include_self;
        m->added_by_case = from->has_uid ? PERFD__V1__EVENT_SPEC__ADDED_BY_UID : PERFD__V1__EVENT_SPEC__ADDED_BY__NOT_SET;
        m->uid = from->uid;
        m->maxactive = from->maxactive;
        m->interval = from->interval;
        if ((r = string_set(&m->event, from->event)) < 0 || (r = string_set(&m->name, from->name)) < 0 ||
            (r = string_set(&m->group, event_spec_group(from))) < 0 ||
            (r = string_set(&m->filter, from->filter)) < 0 || (r = string_set(&m->args, from->args)) < 0 ||
            (r = string_set(&m->fallback, from->fallback)) < 0 || (r = attr_message(&from->attr, m)) < 0 ||
            (r = fields_message(&from->fields, m)) < 0)
                return r;
        return target_message(from, &m->target);
}

int spec_message_to_keep(const EventSpec *from, Perfd__V1__EventSpec **ret) {
        EventSpec spec = *from;

        if (spec.target) {
                spec.pids = spec.tids = NULL;
                spec.n_pids = spec.n_tids = 0;
                spec.cgroups = spec.containers = spec.units = STRINGS_NULL;
                spec.cpus = NULL;
                spec.no_inherit = false;
        }
        return spec_message(&spec, ret);
}

static int target_from_config(Events *s, const char *name, EventSpec *to, Explanation *e) {
        for (size_t i = 0; i < s->settings->config->n_targets; i++)
                if (strcmp(s->settings->config->targets[i].name, name) == 0)
                        return spec_set_target(to, &s->settings->config->targets[i]);
        return refuse(e, REFUSED_NOT_FOUND, "bad-target", "the configuration has no target called %s", name);
}

/* Ids that are named again go, which is noted: there may be a million of them. They are in range. */
static int drop_doubles(Events *s, uint32_t *ids, size_t *n) {
        _cleanup_free_ uint64_t *seen = NULL;
        size_t n_unique = 0;
        uint32_t again = 0;

        if (*n < 2)
                return 0;
        seen = calloc(PID_MAX_LIMIT / 64 + 1, sizeof(*seen));
        if (!seen)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < *n; i++) {
                const uint32_t id = ids[i];
                const uint64_t bit = (uint64_t)1 << id % 64;

                if (!(seen[id / 64] & bit))
                        ids[n_unique++] = id;
                else if (again == 0)
                        again = id;
                seen[id / 64] |= bit;
        }
        if (n_unique < *n)
                notes_add_duplicates(&s->operations->notes, again, *n - n_unique);
        *n = n_unique;
        return 0;
}

/* As the configuration takes it, folded to one line: what can be written there can be asked for here, and nothing else. */
static int text_from_message(const char *pattern, const char *reason, const char *text, char **to, Explanation *e) {
        int r = text && *text ? value_decode_to(pattern, text, to, e) : 0;

        if (r > 0)
                e->reason = reason;
        return r;
}

/* As a target of the configuration. */
static int check_count(const char *what, size_t n, size_t most, Explanation *e) {
        if (n <= most)
                return 0;
        return refuse(e, REFUSED_INVALID, "bad-target", "%s: found %zu, expected at most %zu for one event: split the event, or "
                "name a common cgroup or a glob", what, n, most);
}

static int check_ids(const EventSpec *spec, Explanation *e) {
        int r = check_count("pids", spec->n_pids, CONFIG_IDS_MAX, e);

        return r == 0 ? check_count("tids", spec->n_tids, CONFIG_IDS_MAX, e) : r;
}

static int check_names(const Perfd__V1__Target *m, Explanation *e) {
        int r = check_count("cgroups", m->n_cgroups, CONFIG_NAMES_MAX, e);

        if (r == 0)
                r = check_count("containers", m->n_containers, CONFIG_NAMES_MAX, e);
        return r == 0 ? check_count("units", m->n_units, CONFIG_NAMES_MAX, e) : r;
}

static int target_from_message(Events *s, const Perfd__V1__Target *m, EventSpec *to, Explanation *e) {
        int r;

        if (!m)
                return 0;
        if (m->name && *m->name) {
                if (m->n_pids || m->n_tids || m->n_cgroups || m->n_containers || m->n_units || (m->cpus && *m->cpus))
                        return refuse(e, REFUSED_INVALID, "bad-target", "the name of a target (%s) excludes pids, tids, cgroups "
                                "and cpus: its configuration contains them", m->name);
                return target_from_config(s, m->name, to, e);
        }
        for (size_t i = 0; i < m->n_pids + m->n_tids; i++) {
                uint32_t id = i < m->n_pids ? m->pids[i] : m->tids[i - m->n_pids];

                if (id == 0 || id > PID_MAX_LIMIT)
                        return refuse(e, REFUSED_INVALID, "bad-target", "%u is not a pid or tid: they are from 1 to %d", id,
                                      PID_MAX_LIMIT);
        }
        if ((m->n_pids || m->n_tids) && (m->n_cgroups || m->n_containers || m->n_units))
                return refuse(e, REFUSED_INVALID, "bad-target", "tasks and cgroups exclude each other: the target of an event "
                        "has one of them");
        to->no_inherit = m->no_inherit;
        r = check_names(m, e);
        if (r != 0)
                return r;
        r = text_from_message("targets.NAME.cpus", "bad-target", m->cpus, &to->cpus, e);
        if (r != 0)
                return r;
        if ((r = numbers_set(&to->pids, &to->n_pids, m->pids, m->n_pids)) < 0 ||
            (r = strings_copy(m->cgroups, m->n_cgroups, &to->cgroups)) < 0 ||
            (r = strings_copy(m->containers, m->n_containers, &to->containers)) < 0 ||
            (r = strings_copy(m->units, m->n_units, &to->units)) < 0)
                return r;
        r = numbers_set(&to->tids, &to->n_tids, m->tids, m->n_tids);
        if (r == 0)
                r = drop_doubles(s, to->pids, &to->n_pids);
        if (r == 0)
                r = drop_doubles(s, to->tids, &to->n_tids);
        return r == 0 ? check_ids(to, e) : r;
}

static int add_joined(Strings *to, const char *name, char between, const char *value) {
        _cleanup_free_ char *text = NULL;

        if (asprintf(&text, "%s%c%s", name ? name : "", between, value ? value : "") < 0)
                return error_origin(-ENOMEM);
        return strings_add(to, text);
}

static int lists_from_message(const Perfd__V1__EventSpec *m, EventSpec *to) {
        int r = 0;

        for (size_t i = 0; i < m->n_attr && r == 0; i++)
                r = add_joined(&to->attr, m->attr[i]->name, '=', m->attr[i]->value);
        for (size_t i = 0; i < m->n_fields && r == 0; i++)
                r = add_joined(&to->fields, m->fields[i]->name, ':', m->fields[i]->type);
        return r;
}

/* The group that all events without one are in has no name of its own. */
static int group_from_message(const Perfd__V1__EventSpec *m, EventSpec *to, Explanation *e) {
        int r;

        if (!m->group || !*m->group || strcmp(m->group, EVENT_GROUP_DEFAULT) == 0)
                return 0;
        r = name_check("the group's name", m->group, e);
        return r == 0 ? string_set(&to->group, m->group) : r;
}

int filter_from_message(const char *text, char **to, Explanation *e) {
        return text_from_message(KEY_OF_EVENT "filter", "bad-filter", text, to, e);
}

/* 0 is what is not set. */
static int number_check(const char *pattern, uint64_t number, Explanation *e) {
        int r = number ? value_check_number(pattern, number, e) : 0;

        if (r > 0)
                e->reason = "bad-event";
        return r;
}

int rate_check(uint64_t period, uint64_t frequency, Explanation *e) {
        int r = number_check(KEY_OF_EVENT "period", period, e);

        return r == 0 ? number_check(KEY_OF_EVENT "frequency", frequency, e) : r;
}

static int numbers_check(const Perfd__V1__EventSpec *m, Explanation *e) {
        int r = rate_check(m->period, m->frequency, e);

        if (r == 0)
                r = number_check(KEY_OF_EVENT "maxactive", m->maxactive, e);
        return r == 0 ? number_check(KEY_OF_EVENT "interval", m->interval, e) : r;
}

int spec_from_message(Events *s, const Perfd__V1__EventSpec *m, EventSpec *to, Explanation *e) {
        int r;

        if (m->callchain > CALLCHAIN_KERNEL + CALLCHAIN_USER + CALLCHAIN_DWARF)
                return refuse(e, REFUSED_INVALID, "bad-request", "callchain %d is unknown", (int)m->callchain);
        to->period = m->period;
        to->frequency = m->frequency;
        to->callchain = m->callchain;
        to->disabled = m->disabled;
        to->include_self = m->include_self;
        to->has_uid = m->added_by_case == PERFD__V1__EVENT_SPEC__ADDED_BY_UID;
        to->uid = to->has_uid ? m->uid : 0;
        to->maxactive = m->maxactive;
        to->interval = m->interval;
        r = numbers_check(m, e);
        if (r != 0)
                return r;
        if ((r = string_set(&to->event, m->event)) < 0 ||
            (r = string_set(&to->name, m->name && *m->name ? m->name : NULL)) < 0 ||
            (r = string_set(&to->fallback, m->fallback && *m->fallback ? m->fallback : NULL)) < 0 ||
            (r = lists_from_message(m, to)) < 0)
                return r;
        r = filter_from_message(m->filter, &to->filter, e);
        if (r == 0)
                r = text_from_message(KEY_OF_EVENT "args", "bad-args", m->args, &to->args, e);
        if (r == 0)
                r = group_from_message(m, to, e);
        return r == 0 ? target_from_message(s, m->target, to, e) : r;
}
