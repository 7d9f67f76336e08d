/*
 * What an event of a PMU asks of the kernel. Those of many PMUs of one kind that
 * lack the event, or have no CPU now, are left out as long as one has it.
 */
#include "daemon/kernel/pmu/pmu.h"

#include "daemon/base/array.h"
#include "config/text/words.h"
#include "daemon/base/cleanup.h"
#include "daemon/kernel/pmu/sysfs.h"
#include "daemon/kernel/pmu/terms.h"

#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pmu_event_deinit(PmuEvent *p) {
        free(p->pmu);
        free(p->cpus);
        free(p->name);
        free(p->unit);
        *p = (PmuEvent){ .pmu = NULL };
}

void pmu_events_free(PmuEvent *events, size_t n) {
        for (size_t i = 0; i < n; i++)
                pmu_event_deinit(&events[i]);
        free(events);
}

/* A fresh PmuEvent; `cpus` is "" if it has CPUs of its own but none of them is online. */
static int pmu_event_init(const char *root, const char *pmu, PmuEvent *ret, Explanation *e) {
        PmuEvent event = { .scale = 1 };
        bool is_pmu;
        int r = pmu_sysfs_type(root, pmu, &is_pmu, &event.type, e);

        if (r == 0)
                r = pmu_sysfs_read(root, pmu, NULL, "cpumask", &event.cpus, e);
        event.is_uncore = event.cpus != NULL;
        if (r == 0 && !event.cpus)
                r = pmu_sysfs_read(root, pmu, NULL, "cpus", &event.cpus, e);
        if (r == 0 && !(event.pmu = strdup(pmu)))
                r = error_origin(-ENOMEM);
        if (r == 0)
                *ret = event;
        else
                pmu_event_deinit(&event);
        return r;
}

static int load_formats(const char *root, const char *pmu, PmuFormats *ret, Explanation *e) {
        _cleanup_(strings_deinitp) Strings names = STRINGS_NULL;
        int r = pmu_sysfs_list(root, pmu, "format", &names, e);

        for (size_t i = 0; i < names.n && r == 0; i++) {
                _cleanup_free_ char *text = NULL;

                r = pmu_sysfs_read(root, pmu, "format", names.items[i], &text, e);
                if (r == 0 && text)
                        r = pmu_formats_add(ret, names.items[i], text);
        }
        return r;
}

static int read_suffixed(const char *root, const char *pmu, const char *event, const char *suffix, char **ret,
                         Explanation *e) {
        _cleanup_free_ char *file = NULL;

        if (asprintf(&file, "%s.%s", event, suffix) < 0)
                return error_origin(-ENOMEM);
        return pmu_sysfs_read(root, pmu, "events", file, ret, e);
}

/* In what the event's count is to be read. */
static int load_unit(const char *root, const char *event, PmuEvent *p, Explanation *e) {
        _cleanup_free_ char *scale = NULL;
        char *end;
        int r = read_suffixed(root, p->pmu, event, "unit", &p->unit, e);

        if (r == 0)
                r = read_suffixed(root, p->pmu, event, "scale", &scale, e);
        if (r != 0 || !scale)
                return r;
        p->scale = strtod(scale, &end);
        if (end == scale || *end || !isfinite(p->scale) || p->scale <= 0)
                return refuse(e, REFUSED_UNSUPPORTED, "bad-pmu", "the scale of %s/%s/ is %s, which is not a number",
                              QUOTE(p->pmu), QUOTE(event), QUOTE(scale));
        return 0;
}

static bool is_in(const Strings *names, const char *name) {
        for (size_t i = 0; i < names->n; i++)
                if (strcmp(names->items[i], name) == 0)
                        return true;
        return false;
}

/* The one of the user's terms that names a file of events/; with a value it is a term of format/ before it is that. */
static int find_alias(const EventName *name, const char *pmu, const PmuFormats *formats, const Strings *events,
                      const char **ret, Explanation *e) {
        const char *alias = NULL;

        for (size_t i = 0; i < name->n_terms; i++) {
                const EventTerm *term = &name->terms[i];
                int r;

                if (!is_in(events, term->name) || (term->text && pmu_formats_find(formats, term->name)))
                        continue;
                if (!term->text && !alias) {
                        alias = term->name;
                        continue;
                }
                if (term->text)
                        r = refuse(e, REFUSED_INVALID, "bad-term", "%s is an event of %s and takes no value",
                                   QUOTE(term->name), QUOTE(pmu));
                else
                        r = refuse(e, REFUSED_INVALID, "bad-term", "%s and %s are two events of %s", QUOTE(alias),
                                   QUOTE(term->name), QUOTE(pmu));
                if (e)
                        e->position = (unsigned)term->position + 1;
                return r;
        }
        *ret = alias;
        return 0;
}

static int apply_terms(const char *root, const EventName *name, PmuEvent *p, Explanation *e) {
        _cleanup_(strings_deinitp) Strings events = STRINGS_NULL;
        _cleanup_(pmu_formats_deinit) PmuFormats formats = PMU_FORMATS_NULL;
        PmuTerms t = { .pmu = p->pmu, .formats = &formats, .terms = name->terms, .n_terms = name->n_terms };
        _cleanup_free_ char *text = NULL;
        EventTerm *alias = NULL;
        size_t n_alias = 0;
        int r = load_formats(root, p->pmu, &formats, e);

        if (r == 0)
                r = pmu_sysfs_events(root, p->pmu, &events, e);
        if (r == 0)
                r = find_alias(name, p->pmu, &formats, &events, &t.alias_name, e);
        if (r == 0 && t.alias_name) {
                r = pmu_sysfs_read(root, p->pmu, "events", t.alias_name, &text, e);
                if (r == 0 && text)
                        r = pmu_terms_parse(text, t.alias_name, &alias, &n_alias, e);
                if (r == 0)
                        r = load_unit(root, t.alias_name, p, e);
        }
        if (r == 0) {
                t.alias = alias;
                t.n_alias = n_alias;
                t.events = events.items;
                t.n_events = events.n;
                r = pmu_terms_apply(&t, p, e);
        }
        pmu_terms_free(alias, n_alias);
        return r;
}

typedef struct PmuEvents {
        PmuEvent *items;
        size_t n;
} PmuEvents;

static void pmu_events_deinit(PmuEvents *events) {
        pmu_events_free(events->items, events->n);
}

/* Takes over what *p owns, or frees it: of a PMU without CPUs nothing can be opened. */
static int add_event(PmuEvents *events, PmuEvent *p) {
        bool is_online = !p->cpus || *p->cpus;

        if (is_online && ARRAY_ROOM(events->items, events->n)) {
                events->items[events->n++] = *p;
                return 0;
        }
        pmu_event_deinit(p);
        return is_online ? error_origin(-ENOMEM) : 0;
}

int pmu_resolve(const char *root, const EventName *name, PmuEvent **ret, size_t *ret_n, Explanation *e) {
        _cleanup_(strings_deinitp) Strings pmus = STRINGS_NULL;
        _cleanup_(pmu_events_deinit) PmuEvents events = { .n = 0 };
        Explanation lacking = EXPLANATION_NULL;
        int r = pmu_sysfs_find(root, name->group, &pmus, e);

        for (size_t i = 0; i < pmus.n && r == 0; i++) {
                Explanation why = EXPLANATION_NULL;
                PmuEvent event;

                r = pmu_event_init(root, pmus.items[i], &event, e);
                if (r != 0)
                        break;
                r = apply_terms(root, name, &event, &why);
                if (r == 0)
                        r = add_event(&events, &event);
                else {
                        pmu_event_deinit(&event);
                        if (r == REFUSED_NOT_FOUND) {
                                if (!lacking.reason)
                                        lacking = why;
                                r = 0;
                        } else if (e)
                                *e = why;
                }
        }
        if (r != 0)
                return r;
        if (events.n == 0 && lacking.reason) {
                if (e)
                        *e = lacking;
                return REFUSED_NOT_FOUND;
        }
        if (events.n == 0)
                return refuse(e, REFUSED_UNSUPPORTED, "no-cpus", "no CPU of PMU %s is online", QUOTE(name->group));
        *ret = TAKE_PTR(events.items);
        *ret_n = events.n;
        events.n = 0;
        return 0;
}

/* The kernel's fixed events on one of several core PMUs: perf_event_open(2), PERF_PMU_TYPE_SHIFT. */
static void set_core_config(const EventName *name, bool is_hybrid, PmuEvent *p) {
        uint32_t pmu_type = p->type;

        p->type = name->kind == EVENT_NAME_HARDWARE ? PERF_TYPE_HARDWARE
                  : name->kind == EVENT_NAME_CACHE  ? PERF_TYPE_HW_CACHE
                                                    : PERF_TYPE_RAW;
        p->config = name->config;
        if (is_hybrid && p->type == PERF_TYPE_RAW)
                p->type = pmu_type; /* a raw event has no room for the PMU's type */
        else if (is_hybrid)
                p->config |= (uint64_t)pmu_type << PERF_PMU_TYPE_SHIFT;
        if (!is_hybrid)
                free(TAKE_PTR(p->cpus));
        p->is_uncore = false;
}

int pmu_core(const char *root, const EventName *name, PmuEvent **ret, size_t *ret_n, Explanation *e) {
        _cleanup_(strings_deinitp) Strings pmus = STRINGS_NULL, core = STRINGS_NULL;
        _cleanup_(pmu_events_deinit) PmuEvents events = { .n = 0 };
        int r = pmu_sysfs_pmus(root, &pmus, e);

        if (r == 0)
                r = pmu_sysfs_core(root, &pmus, &core, e);
        for (size_t i = 0; i < core.n && r == 0; i++) {
                PmuEvent event;

                r = pmu_event_init(root, core.items[i], &event, e);
                if (r != 0)
                        break;
                set_core_config(name, core.n > 1, &event);
                r = add_event(&events, &event);
        }
        if (r != 0)
                return r;
        *ret = TAKE_PTR(events.items);
        *ret_n = events.n;
        events.n = 0;
        return 0;
}
