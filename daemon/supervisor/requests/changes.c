/* Requests that change what is traced, or say what a change would do: from messages to specs, from results to messages. */
#include "daemon/supervisor/requests/requests.h"

#include <stdio.h>
#include <string.h>

#include "config/parse/load.h"
#include "daemon/base/log.h"
#include "daemon/kernel/doctor/doctor.h"
#include "daemon/supervisor/changes/changes.h"
#include "daemon/supervisor/configuration/configuration.h"
#include "daemon/supervisor/events/own.h"
#include "daemon/supervisor/events/registered.h"
#include "daemon/supervisor/events/select.h"
#include "daemon/supervisor/events/specs.h"

static int refs_message(const EventRefs *from, Perfd__V1__EventRef ***ret, size_t *ret_n) {
        Perfd__V1__EventRef **refs = calloc(from->n + 1, sizeof(*refs));

        if (!refs)
                return error_origin(-ENOMEM);
        *ret = refs;
        for (size_t i = 0; i < from->n; i++) {
                refs[i] = malloc(sizeof(**refs));
                if (!refs[i])
                        return error_origin(-ENOMEM);
                perfd__v1__event_ref__init(refs[i]);
                (*ret_n)++;
                refs[i]->id = from->refs[i].id;
                if (!(refs[i]->name = strdup(from->refs[i].name)))
                        return error_origin(-ENOMEM);
        }
        return 0;
}

static char *note_of(const Registration *g, const char *name, bool has_interval) {
        char *note = NULL;
        int n = 0;

        if (g->probe && probe_is_unchecked(g->probe))
                n = asprintf(&note, "%.200s: perfd cannot check that an instruction begins there; in the middle of one, the probe "
                             "breaks the programs that it is in", name);
        else if (g->plan.n_attrs > 0 && g->plan.attrs[0].type == PERF_TYPE_BREAKPOINT && doctor_breakpoints_never_count())
                n = asprintf(&note, "%.200s: breakpoints open on this machine and never count, which `perfctl doctor` shows too: there will "
                             "be no samples", name);
        else if (!g->can_sample && !has_interval && !g->event->external)
                n = asprintf(&note, "%.200s: its PMU can only count, not sample: it is counted once a second", name);
        else
                note = strdup("");
        return n < 0 ? NULL : note;
}

/* What is to be said of events that were added. */
static int add_notes(const RequestContext *a, const EventRefs *refs, Strings *notes) {
        const Perfd__V1__AddRequest *q = a->request->add;
        bool has_interval = false;
        int r = 0;

        for (size_t i = 0; i < q->n_events; i++)
                has_interval = has_interval || q->events[i]->interval > 0;
        for (size_t i = 0; i < refs->n && r == 0; i++) {
                const Registration *g = events_find(a->requests->events, refs->refs[i].name);
                _cleanup_free_ char *note = g ? note_of(g, refs->refs[i].name, has_interval) : strdup("");

                if (!note)
                        return error_origin(-ENOMEM);
                r = *note ? strings_add(notes, note) : 0;
        }
        return r;
}

/* What the request says of itself, and what the rules let its client ask for. */
static int check_add(const RequestContext *a, const Perfd__V1__AddRequest *q, Explanation *e) {
        if (q->n_events == 0)
                return refuse(e, REFUSED_INVALID, "bad-request", "no event is named");
        if (q->keep && q->while_connected)
                return refuse(e, REFUSED_INVALID, "bad-request", "`keep` and `while_connected` exclude each other: an event is "
                        "persistent, or ends with its connection");
        if (q->share && !q->while_connected)
                return refuse(e, REFUSED_INVALID, "bad-request", "`share` needs `while_connected`: only events that end with "
                        "their connections are shared");
        return a->access.is_limited ? own_check_add(a->requests->events, &a->access, a->connection, q, e) : 0;
}

/* As many as the request names, with what is noted of each. On failure the caller deinits those that are filled. */
static int take_specs(const RequestContext *a, const Perfd__V1__AddRequest *q, EventSpec *specs, Strings *notes, Explanation *e) {
        const gid_t gid = connection_peer(a->connection)->gid;
        int r = 0;

        for (size_t i = 0; i < q->n_events && r == 0; i++) {
                *e = EXPLANATION_NULL;
                r = spec_from_message(a->requests->events, q->events[i], &specs[i], e);
                if (r == 0 && e->text[0] && (notes->n == 0 || strcmp(notes->items[notes->n - 1], e->text) != 0))
                        r = strings_add(notes, e->text);
                specs[i].has_uid = true; /* whatever the message says */
                specs[i].uid = connection_peer(a->connection)->uid;
                if (r == 0 && a->access.is_limited)
                        r = own_take_cgroups(a->requests->events, &a->access, gid, &specs[i], e);
                if (r == 0 && a->access.is_limited)
                        r = own_take_spec(&a->access, gid, &specs[i], e);
        }
        return r;
}

/* Takes the notes. */
static int answer_added(RequestContext *a, const EventRefs *refs, Strings *notes) {
        Perfd__V1__AddReply *reply = malloc(sizeof(*reply));

        if (!reply)
                return error_origin(-ENOMEM);
        perfd__v1__add_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_ADDED;
        a->response->added = reply;
        reply->notes = notes->items;
        reply->n_notes = notes->n;
        *notes = STRINGS_NULL;
        return refs_message(refs, &reply->events, &reply->n_events);
}

int handle_add(RequestContext *a, Explanation *e) {
        const Perfd__V1__AddRequest *q = a->request->add;
        AddOptions adding = { .owner = q->while_connected ? connection_id(a->connection) : 0,
                              .is_shared = q->share,
                              .keep = q->keep };
        EventSpec *specs = calloc(q->n_events + 1, sizeof(*specs));
        EventRefs refs = { .n = 0 };
        Strings notes = STRINGS_NULL;
        int r;

        if (!specs)
                return error_origin(-ENOMEM);
        r = check_add(a, q, e);
        if (r == 0)
                r = take_specs(a, q, specs, &notes, e);
        if (r == 0)
                r = changes_add(a->requests->changes, specs, q->n_events, &adding, &refs, e);
        if (r == 0 && e->text[0])
                r = strings_add(&notes, e->text);
        if (r == 0)
                r = add_notes(a, &refs, &notes);
        if (r == 0)
                r = answer_added(a, &refs, &notes);
        strings_deinit(&notes);
        for (size_t i = 0; i < q->n_events; i++)
                event_spec_deinit(&specs[i]);
        free(specs);
        event_refs_deinit(&refs);
        return r;
}

/* note: what is to be said of it, or "". */
static int answer_selected(RequestContext *a, EventRefs *refs, const char *note) {
        _cleanup_(strings_deinit) Strings notes = STRINGS_NULL;
        Perfd__V1__SelectReply *reply = malloc(sizeof(*reply));
        int r;

        if (!reply)
                return error_origin(-ENOMEM);
        perfd__v1__select_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_SELECTED;
        a->response->selected = reply;
        r = refs_message(refs, &reply->events, &reply->n_events);
        event_refs_deinit(refs);
        if (r == 0 && *note)
                r = strings_add(&notes, note);
        reply->notes = notes.items;
        reply->n_notes = notes.n;
        notes = STRINGS_NULL;
        return r;
}

int handle_remove(RequestContext *a, Explanation *e) {
        const Perfd__V1__SelectRequest *q = a->request->remove;
        EventRefs refs = { .n = 0 };
        int r = a->access.is_limited ? own_check_names(a->requests->events, &a->access, q->names, q->n_names, e) : 0;

        if (r == 0)
                r = changes_remove(a->requests->changes, q->names, q->n_names, &refs, e);
        return r == 0 ? answer_selected(a, &refs, e->text) : r;
}

int handle_enable(RequestContext *a, Explanation *e) {
        bool on = a->request->body_case == PERFD__V1__REQUEST__BODY_ENABLE;
        const Perfd__V1__SelectRequest *q = on ? a->request->enable : a->request->disable;
        EventRefs refs = { .n = 0 };
        int r = a->access.is_limited ? own_check_names(a->requests->events, &a->access, q->names, q->n_names, e) : 0;

        if (r == 0)
                r = changes_enable(a->requests->changes, q->names, q->n_names, on, &refs, e);
        return r == 0 ? answer_selected(a, &refs, e->text) : r;
}

int handle_set_filter(RequestContext *a, Explanation *e) {
        const Perfd__V1__SetFilterRequest *q = a->request->set_filter;

        _cleanup_free_ char *filter = NULL;
        int r = filter_from_message(q->filter, &filter, e);

        return r == 0 ? changes_set_filter(a->requests->changes, q->name ? q->name : "", filter, e) : r;
}

static int diagnostic_message(const ConfigDiagnostic *from, Perfd__V1__ConfigDiagnostic **ret) {
        Perfd__V1__ConfigDiagnostic *m = malloc(sizeof(*m));
        int r;

        if (!m)
                return error_origin(-ENOMEM);
        perfd__v1__config_diagnostic__init(m);
        *ret = m;
        m->line = from->line;
        m->column = from->column;
        if ((r = string_set(&m->path, from->path)) < 0 || (r = string_set(&m->text, from->text)) < 0)
                return r;
        return string_set(&m->reason, from->reason ? from->reason : "");
}

static int diagnostics_message(const ConfigDiagnostics *from, Perfd__V1__ValidateReply *to) {
        int r = 0;

        to->errors = calloc(from->n_items + 1, sizeof(*to->errors));
        to->warnings = calloc(from->n_items + 1, sizeof(*to->warnings));
        if (!to->errors || !to->warnings)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < from->n_items && r == 0; i++) {
                Perfd__V1__ConfigDiagnostic *m = NULL;

                r = diagnostic_message(&from->items[i], &m);
                if (m && from->items[i].warning)
                        to->warnings[to->n_warnings++] = m;
                else if (m)
                        to->errors[to->n_errors++] = m;
        }
        return r;
}

static const char *path_or_yaml(const char *path) {
        return path && *path ? path : "<yaml>";
}

static ConfigText config_text(const char *path, const char *yaml) {
        return (ConfigText){ .path = path_or_yaml(path), .bytes = yaml ? yaml : "", .length = yaml ? strlen(yaml) : 0 };
}

/* The main text and its drop-ins; malloc'ed. */
static int config_texts_new(ConfigText first, Perfd__V1__ConfigText *const *drop_ins, size_t n, ConfigText **ret, Explanation *e) {
        ConfigText *texts;

        if (n > CONFIG_DROP_INS_MAX)
                return refuse(e, REFUSED_INVALID, "bad-config", "%zu drop-ins, expected at most %d", n, CONFIG_DROP_INS_MAX);
        texts = calloc(n + 1, sizeof(*texts));
        if (!texts)
                return error_origin(-ENOMEM);
        texts[0] = first;
        for (size_t i = 0; i < n; i++)
                texts[i + 1] = config_text(drop_ins[i]->path, drop_ins[i]->yaml);
        *ret = texts;
        return 0;
}

int handle_validate(RequestContext *a, Explanation *e) {
        const Perfd__V1__ValidateRequest *q = a->request->validate;
        ConfigDiagnostics diagnostics = CONFIG_DIAGNOSTICS_NULL;
        Perfd__V1__ValidateReply *reply = malloc(sizeof(*reply));
        _cleanup_free_ ConfigText *texts = NULL;
        int r;

        if (!reply)
                return error_origin(-ENOMEM);
        perfd__v1__validate_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_VALIDATED;
        a->response->validated = reply;
        r = config_texts_new(config_text(q->path, q->yaml), q->drop_ins, q->n_drop_ins, &texts, e);
        if (r != 0)
                return r;
        reply->n_files = (uint32_t)q->n_drop_ins + 1;
        r = configuration_validate(a->requests->configuration, texts, q->n_drop_ins + 1, &diagnostics);
        if (r >= 0 && r != REFUSED_CANCELLED)
                r = diagnostics_message(&diagnostics, reply);
        config_diagnostics_deinit(&diagnostics);
        return r;
}

int handle_set_period(RequestContext *a, Explanation *e) {
        const Perfd__V1__SetPeriodRequest *q = a->request->set_period;

        int r = rate_check(q->period, q->frequency, e);

        return r == 0 ? changes_set_period(a->requests->changes, q->name ? q->name : "", q->period, q->frequency, e) : r;
}

int handle_plan(RequestContext *a, Explanation *e) {
        const Perfd__V1__PlanRequest *q = a->request->plan;
        Perfd__V1__PlanReply *reply = malloc(sizeof(*reply));
        _cleanup_free_ ConfigText *texts = NULL;
        int r;

        if (!reply)
                return error_origin(-ENOMEM);
        perfd__v1__plan_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_PLAN;
        a->response->plan = reply;
        if (q->reload && !connection_peer(a->connection)->may_change) /* the files are perfd's, and perhaps nobody else's to read */
                return refuse(e, REFUSED_DENIED, "read-only", "a plan of a reload reads perfd's own configuration, and this is the stream "
                              "socket: use the control socket");
        if (q->reload)
                return configuration_plan(a->requests->configuration, NULL, 0, true, reply, e);
        r = config_texts_new(config_text(q->path, q->yaml), q->drop_ins, q->n_drop_ins, &texts, e);
        if (r != 0)
                return r;
        reply->n_files = (uint32_t)q->n_drop_ins + 1;
        return configuration_plan(a->requests->configuration, texts, q->n_drop_ins + 1, q->may_wait, reply, e);
}

/* What the text says and is not in effect, though no restart is needed for it. */
static int note_rules(const Settings *s, Perfd__V1__ReloadReply *reply) {
        char *note;

        if (!settings_lack_rules(s))
                return 0;
        reply->notes = calloc(1, sizeof(*reply->notes));
        if (!reply->notes)
                return error_origin(-ENOMEM);
        if (asprintf(&note, "access.rules are not applied: only perfd's own configuration, at its start and by a reload, has rules "
                     "that hold; %zu of it stay in effect", s->access->n_rules) < 0)
                return error_origin(-ENOMEM);
        reply->notes[reply->n_notes++] = note;
        return 0;
}

int handle_apply(RequestContext *a, Explanation *e) {
        const Perfd__V1__ApplyRequest *q = a->request->apply;
        Perfd__V1__ReloadReply *reply = malloc(sizeof(*reply));
        _cleanup_free_ ConfigText *texts = NULL;
        int r;

        if (!reply)
                return error_origin(-ENOMEM);
        perfd__v1__reload_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_RELOADED;
        a->response->reloaded = reply;
        r = config_texts_new(config_text(q->path, q->yaml), q->drop_ins, q->n_drop_ins, &texts, e);
        if (r == 0)
                r = configuration_apply(a->requests->configuration, texts, q->n_drop_ins + 1, q->may_wait, reply, e);
        reply->n_files = (uint32_t)q->n_drop_ins + 1;
        if (r == 0)
                r = note_rules(a->requests->settings, reply);
        return r == 0 ? configuration_add_restarts(a->requests->settings, reply) : r;
}

int handle_reload(RequestContext *a, Explanation *e) {
        Perfd__V1__ReloadReply *reply = malloc(sizeof(*reply));
        Strings notes = STRINGS_NULL;
        int r;

        if (!reply)
                return error_origin(-ENOMEM);
        perfd__v1__reload_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_RELOADED;
        a->response->reloaded = reply;
        r = configuration_reload(a->requests->configuration, &notes, reply, e);
        reply->notes = notes.items;
        reply->n_notes = notes.n;
        return r == 0 ? configuration_add_restarts(a->requests->settings, reply) : r;
}
