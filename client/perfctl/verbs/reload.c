/* The daemon reads its configuration again; the whole of it comes to hold, or nothing does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/print/json.h"
#include "client/perfctl/base/quantity.h"
#include "client/perfctl/verbs/reload.h"

/* What perfd was not started with; an apply does not outlive it. */
static void tell_restart(const Perfctl *p, const perfd_result *result) {
        bool is_applied = p->n_arguments > 0;
        const perfd_difference *d;

        for (size_t i = 0; (d = perfd_result_setting(result, i)); i++)
                (void)perfctl_fail(p, PERFCTL_OK, "%s stays %s until perfd is started with %s", d->field,
                                   *d->before ? d->before : "unset", *d->after ? d->after : "none");
        if (!perfd_result_setting(result, 0))
                return;
        (void)perfctl_fail(
                p, PERFCTL_OK,
                is_applied
                        ? "for that, write it into the configuration that perfd is started with (config in "
                          "`perfctl status`), and restart it, as by `systemctl restart perfd`: what is applied ends with it"
                        : "for that, restart it, as by `systemctl restart perfd`");
}

void reload_put_restart_json(Json *j, const perfd_result *result) {
        const perfd_difference *d;

        json_put_name(j, "needs_restart");
        json_begin(j, '[');
        for (size_t i = 0; (d = perfd_result_setting(result, i)); i++) {
                json_begin(j, '{');
                JSON_STRING(j, "field", d->field);
                JSON_STRING(j, "before", d->before);
                JSON_STRING(j, "after", d->after);
                json_end(j, '}');
        }
        json_end(j, ']');
}

static void put_notes_json(Json *j, const perfd_result *result) {
        json_put_name(j, "notes");
        json_begin(j, '[');
        for (size_t i = 0; perfd_result_note(result, i); i++)
                json_put_string(j, perfd_result_note(result, i));
        json_end(j, ']');
}

void reload_print(Perfctl *p, const perfd_result *result) {
        const perfd_reload_row *row = perfd_result_reload(result);
        Json j = json_of(&p->out);
        char size[QUANTITY_SIZE];

        if (!p->json) {
                output_print(&p->out, "added %u, removed %u, changed %u, kept %u", row->added, row->removed, row->changed,
                             row->kept);
                if (row->pending > 0)
                        output_print(&p->out, ", pending %u", row->pending);
                if (row->ring_size > 0)
                        output_print(&p->out, ", rings of %s now", quantity_show_size(row->ring_size, size));
                output_print(&p->out, "\n");
                for (size_t i = 0; perfd_result_note(result, i); i++)
                        (void)perfctl_fail(p, PERFCTL_OK, "%s", perfd_result_note(result, i));
                if (row->pending > 0)
                        (void)perfctl_fail(p, PERFCTL_OK, "%u event%s cannot be opened now: `perfctl list` says why", row->pending,
                                           row->pending == 1 ? "" : "s");
                tell_restart(p, result);
                return;
        }
        json_begin(&j, '{');
        JSON_NUMBER(&j, "added", row->added);
        JSON_NUMBER(&j, "removed", row->removed);
        JSON_NUMBER(&j, "changed", row->changed);
        JSON_NUMBER(&j, "kept", row->kept);
        JSON_NUMBER(&j, "pending", row->pending);
        if (row->ring_size > 0)
                JSON_NUMBER(&j, "ring_size", row->ring_size);
        if (perfd_result_setting(result, 0))
                reload_put_restart_json(&j, result);
        if (perfd_result_note(result, 0))
                put_notes_json(&j, result);
        json_end(&j, '}');
        json_end_line(&j);
}

/* To who asks, whatever the configuration is. */
static bool is_forbidden(const char *reason) {
        return strcmp(reason, "read-only") == 0 || strcmp(reason, "not-granted") == 0;
}

#define OTHERS_MAX 20

static void print_place(const perfd_diagnostic_row *row, char *to, size_t size) {
        if (row->line > 0)
                (void)snprintf(to, size, "%s:%u:%u", row->path, row->line, row->column);
        else
                (void)snprintf(to, size, "%s", row->path);
}

/* The daemon has refused the whole for what it found first, and said that. */
static void tell_others(const Perfctl *p, const char *said, const perfd_config_text *texts, size_t n) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        const perfd_diagnostic_row *row;
        size_t n_told = 0, n_more = 0;

        if (perfd_validate_all(p->client, texts, n, &result) != 0)
                return; /* why the change was refused is said, and that is the failure */
        for (size_t kind = 0; kind < 2; kind++)
                for (size_t i = 0; (row = kind == 0 ? perfd_result_error(result, i) : perfd_result_warning(result, i)); i++) {
                        char place[512];

                        if (strstr(said, row->text) || (kind == 1 && (!*row->reason || perfctl_get(p, "allow-pending"))))
                                continue;
                        print_place(row, place, sizeof(place));
                        if (n_told++ < OTHERS_MAX)
                                (void)perfctl_fail(p, PERFCTL_FAILED, "also %s: %s", place, row->text);
                        else
                                n_more++;
                }
        if (n_more > 0)
                (void)perfctl_fail(p, PERFCTL_FAILED, "and %zu more: `perfctl validate` lists all", n_more);
}

int reload_fail(const Perfctl *p, const perfd_config_text *texts, size_t n, const char *allow_pending) {
        perfd_refusal why = perfd_client_error(p->client)->refusal;
        bool may_come = why == PERFD_REFUSED_NOT_FOUND || why == PERFD_REFUSED_DENIED || why == PERFD_REFUSED_EXHAUSTED ||
                        why == PERFD_REFUSED_UNSUPPORTED;
        bool is_asked = !is_forbidden(perfd_client_error(p->client)->reason);
        char *said = must_have(strdup(perfd_client_error(p->client)->message)); /* the next request has another */
        int r = perfctl_fail_client(p, NULL);

        if (is_asked)
                tell_others(p, said, texts, n);
        if (may_come && is_asked && !perfctl_get(p, "allow-pending"))
                (void)perfctl_fail(p, r, "%s", allow_pending);
        free(said);
        return r;
}

static int reload_run(Perfctl *p) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        int r = perfctl_connect(p);

        if (r != 0)
                return r;
        if (perfd_reload(p->client, &result) != 0)
                return perfctl_fail_client(p, NULL);
        reload_print(p, result);
        return PERFCTL_OK;
}

const Verb verb_reload = {
        .name = "reload",
        .arguments = "",
        .help = "reload the configuration of the daemon",
        .hosts = HOSTS_EACH,
        .run = reload_run,
};
