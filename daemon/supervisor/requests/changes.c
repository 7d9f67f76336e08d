/* Requests that change what is traced, or say what a change would do: from messages to specs, from results to messages. */
#include "daemon/supervisor/requests/requests.h"

#include <string.h>

#include "config/parse/load.h"
#include "daemon/base/log.h"
#include "daemon/supervisor/changes/changes.h"
#include "daemon/supervisor/configuration/configuration.h"
#include "daemon/supervisor/events/own.h"
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

int handle_add(RequestContext *a, Explanation *e) {
        const Perfd__V1__AddRequest *q = a->request->add;
        AddOptions adding = { .owner = q->while_connected ? connection_id(a->connection) : 0, .keep = q->keep };
        EventSpec *specs = calloc(q->n_events + 1, sizeof(*specs));
        EventRefs refs = { .n = 0 };
        Strings notes = STRINGS_NULL;
        int r = 0;

        if (!specs)
                return error_origin(-ENOMEM);
        if (q->n_events == 0)
                r = refuse(e, REFUSED_INVALID, "bad-request", "no event is named");
        else if (q->keep && q->while_connected)
                r = refuse(e, REFUSED_INVALID, "bad-request", "`keep` and `while_connected` exclude each other: an event is "
                        "persistent, or ends with its connection");
        else if (a->access.is_limited)
                r = own_check_add(a->requests->events, &a->access, a->connection, q, e);
        for (size_t i = 0; i < q->n_events && r == 0; i++) {
                *e = EXPLANATION_NULL;
                r = spec_from_message(a->requests->events, q->events[i], &specs[i], e);
                if (r == 0 && e->text[0] && (notes.n == 0 || strcmp(notes.items[notes.n - 1], e->text) != 0))
                        r = strings_add(&notes, e->text);
                specs[i].has_uid = true; /* whatever the message says */
                specs[i].uid = connection_peer(a->connection)->uid;
                if (r == 0 && a->access.is_limited)
                        r = own_take_cgroups(a->requests->events, &a->access, connection_peer(a->connection)->gid, &specs[i], e);
                if (r == 0 && a->access.is_limited)
                        r = own_take_spec(&a->access, connection_peer(a->connection)->gid, &specs[i], e);
        }
        if (r == 0)
                r = changes_add(a->requests->changes, specs, q->n_events, &adding, &refs, e);
        if (r == 0) {
                Perfd__V1__AddReply *reply = malloc(sizeof(*reply));

                if (!reply)
                        r = error_origin(-ENOMEM);
                else {
                        perfd__v1__add_reply__init(reply);
                        a->response->body_case = PERFD__V1__RESPONSE__BODY_ADDED;
                        a->response->added = reply;
                        r = refs_message(&refs, &reply->events, &reply->n_events);
                        reply->notes = notes.items;
                        reply->n_notes = notes.n;
                        notes = STRINGS_NULL;
                }
        }
        strings_deinit(&notes);
        for (size_t i = 0; i < q->n_events; i++)
                event_spec_deinit(&specs[i]);
        free(specs);
        event_refs_deinit(&refs);
        return r;
}

static int answer_selected(RequestContext *a, EventRefs *refs) {
        Perfd__V1__SelectReply *reply = malloc(sizeof(*reply));
        int r;

        if (!reply)
                return error_origin(-ENOMEM);
        perfd__v1__select_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_SELECTED;
        a->response->selected = reply;
        r = refs_message(refs, &reply->events, &reply->n_events);
        event_refs_deinit(refs);
        return r;
}

int handle_remove(RequestContext *a, Explanation *e) {
        const Perfd__V1__SelectRequest *q = a->request->remove;
        EventRefs refs = { .n = 0 };
        int r = a->access.is_limited ? own_check_names(a->requests->events, &a->access, q->names, q->n_names, e) : 0;

        if (r == 0)
                r = changes_remove(a->requests->changes, q->names, q->n_names, &refs, e);
        return r == 0 ? answer_selected(a, &refs) : r;
}

int handle_enable(RequestContext *a, Explanation *e) {
        bool on = a->request->body_case == PERFD__V1__REQUEST__BODY_ENABLE;
        const Perfd__V1__SelectRequest *q = on ? a->request->enable : a->request->disable;
        EventRefs refs = { .n = 0 };
        int r = a->access.is_limited ? own_check_names(a->requests->events, &a->access, q->names, q->n_names, e) : 0;

        if (r == 0)
                r = changes_enable(a->requests->changes, q->names, q->n_names, on, &refs, e);
        return r == 0 ? answer_selected(a, &refs) : r;
}

int handle_set_filter(RequestContext *a, Explanation *e) {
        const Perfd__V1__SetFilterRequest *q = a->request->set_filter;

        _cleanup_free_ char *filter = NULL;
        int r = filter_from_message(q->filter, &filter, e);

        return r == 0 ? changes_set_filter(a->requests->changes, q->name ? q->name : "", filter, e) : r;
}

static int diagnostic_message(const ConfigDiagnostic *from, Perfd__V1__ConfigMistake **ret) {
        Perfd__V1__ConfigMistake *m = malloc(sizeof(*m));
        int r;

        if (!m)
                return error_origin(-ENOMEM);
        perfd__v1__config_mistake__init(m);
        *ret = m;
        m->line = from->line;
        m->column = from->column;
        if ((r = string_set(&m->path, from->path)) < 0 || (r = string_set(&m->text, from->text)) < 0)
                return r;
        return string_set(&m->reason, from->reason ? from->reason : "");
}

static int mistakes_message(const ConfigDiagnostics *from, Perfd__V1__ValidateReply *to) {
        int r = 0;

        to->mistakes = calloc(from->n_items + 1, sizeof(*to->mistakes));
        to->warnings = calloc(from->n_items + 1, sizeof(*to->warnings));
        if (!to->mistakes || !to->warnings)
                return error_origin(-ENOMEM);
        for (size_t i = 0; i < from->n_items && r == 0; i++) {
                Perfd__V1__ConfigMistake *m = NULL;

                r = diagnostic_message(&from->items[i], &m);
                if (m && from->items[i].warning)
                        to->warnings[to->n_warnings++] = m;
                else if (m)
                        to->mistakes[to->n_mistakes++] = m;
        }
        return r;
}

static const char *path_or_yaml(const char *path) {
        return path && *path ? path : "<yaml>";
}

static ConfigText config_text(const char *path, const char *yaml) {
        return (ConfigText){ .path = path_or_yaml(path), .bytes = yaml ? yaml : "", .length = yaml ? strlen(yaml) : 0 };
}

int handle_validate(RequestContext *a, Explanation *e) {
        const Perfd__V1__ValidateRequest *q = a->request->validate;
        ConfigDiagnostics mistakes = CONFIG_DIAGNOSTICS_NULL;
        Perfd__V1__ValidateReply *reply = malloc(sizeof(*reply));
        _cleanup_free_ ConfigText *texts = NULL;
        int r;

        if (!reply)
                return error_origin(-ENOMEM);
        perfd__v1__validate_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_VALIDATED;
        a->response->validated = reply;
        if (q->n_drop_ins > CONFIG_DROP_INS_MAX)
                return refuse(e, REFUSED_INVALID, "bad-config", "%zu drop-ins, expected at most %d", q->n_drop_ins,
                              CONFIG_DROP_INS_MAX);
        texts = calloc(q->n_drop_ins + 1, sizeof(*texts));
        if (!texts)
                return error_origin(-ENOMEM);
        texts[0] = config_text(q->path, q->yaml);
        for (size_t i = 0; i < q->n_drop_ins; i++)
                texts[i + 1] = config_text(q->drop_ins[i]->path, q->drop_ins[i]->yaml);
        reply->n_files = (uint32_t)q->n_drop_ins + 1;
        r = configuration_validate(a->requests->configuration, texts, q->n_drop_ins + 1, &mistakes);
        if (r >= 0 && r != REFUSED_CANCELLED)
                r = mistakes_message(&mistakes, reply);
        config_diagnostics_deinit(&mistakes);
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

        if (!reply)
                return error_origin(-ENOMEM);
        perfd__v1__plan_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_PLAN;
        a->response->plan = reply;
        return configuration_plan(a->requests->configuration, q->yaml ? q->yaml : "", path_or_yaml(q->path), q->may_wait, reply, e);
}

int handle_apply(RequestContext *a, Explanation *e) {
        const Perfd__V1__ApplyRequest *q = a->request->apply;
        Perfd__V1__ReloadReply *reply = malloc(sizeof(*reply));
        int r;

        if (!reply)
                return error_origin(-ENOMEM);
        perfd__v1__reload_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_RELOADED;
        a->response->reloaded = reply;
        r = configuration_apply(a->requests->configuration, q->yaml ? q->yaml : "", path_or_yaml(q->path), q->may_wait, reply, e);
        return r == 0 ? configuration_add_restart_settings(a->requests->configuration, reply) : r;
}

int handle_reload(RequestContext *a, Explanation *e) {
        Perfd__V1__ReloadReply *reply = malloc(sizeof(*reply));
        int r;

        if (!reply)
                return error_origin(-ENOMEM);
        perfd__v1__reload_reply__init(reply);
        a->response->body_case = PERFD__V1__RESPONSE__BODY_RELOADED;
        a->response->reloaded = reply;
        r = configuration_reload(a->requests->configuration, reply, e);
        return r == 0 ? configuration_add_restart_settings(a->requests->configuration, reply) : r;
}
