/* What `apply` or `reload` would do, from the daemon that would do it; nothing is changed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/events/drop-ins.h"
#include "client/perfctl/print/json.h"
#include "client/perfctl/verbs/reload.h"
#include "client/perfctl/print/table.h"

static const char *change_name(const perfd_planned_row *e) {
        static const char *const names[] = { "added", "removed", "changed", "kept", "pending" };

        return e->replaced ? "replaced" : names[e->change];
}

static void write_difference(FILE *f, const perfd_difference *d) {
        fprintf(f, "%s: %s -> %s", d->field, *d->before ? d->before : "none", *d->after ? d->after : "none");
}

static void put_differences(Table *t, const perfd_planned_row *e) {
        char *text;
        size_t size;
        FILE *f = must_have(open_memstream(&text, &size));

        if (e->why)
                fputs(e->why, f);
        for (size_t i = 0; i < e->n_differences; i++) {
                fputs(i > 0 ? "; " : "", f);
                write_difference(f, &e->differences[i]);
        }
        must_have(fclose(f) == 0 ? text : NULL);
        table_put(t, *text || !t->human ? text : "-");
        free(text);
}

/* As an event's row, so that there is one table. */
static void put_setting(Table *t, const perfd_difference *d) {
        const perfd_planned_row row = { .differences = d, .n_differences = 1 };

        table_put(t, d->restart ? "restart" : "setting");
        for (int i = 0; i < 4; i++)
                table_put(t, t->human ? "-" : "");
        put_differences(t, &row);
}

static void print_table(Perfctl *p, const perfd_result *result) {
        const perfd_planned_row *e;
        const perfd_difference *d;
        Table t;

        TABLE_INIT(&t, p->human, "CHANGE", "NAME", ">ID", "EVENT", "GROUP", "DIFFERENCES");
        t.n_keys = 2;
        for (size_t i = 0; (e = perfd_result_planned(result, i)); i++) {
                table_put(&t, change_name(e));
                table_put(&t, e->name);
                if (e->id)
                        table_put_number(&t, e->id);
                else
                        table_put(&t, t.human ? "-" : "");
                table_put(&t, t.human && strcmp(e->event, e->name) == 0 ? "-" : e->event);
                table_put(&t, e->group);
                put_differences(&t, e);
        }
        for (size_t i = 0; (d = perfd_result_setting(result, i)); i++)
                put_setting(&t, d);
        table_print(&t, &p->out);
        table_deinit(&t);
}

static void put_difference_json(Json *j, const perfd_difference *d) {
        JSON_STRING(j, "field", d->field);
        JSON_STRING(j, "before", d->before);
        JSON_STRING(j, "after", d->after);
}

static void print_event_json(Perfctl *p, const perfd_planned_row *e) {
        Json j = json_of(&p->out);

        json_begin(&j, '{');
        JSON_STRING(&j, "change", change_name(e));
        JSON_STRING(&j, "name", e->name);
        JSON_NUMBER(&j, "id", e->id);
        JSON_STRING(&j, "event", e->event);
        JSON_STRING(&j, "group", e->group);
        JSON_STRING(&j, "why", e->why);
        JSON_STRING(&j, "reason", e->reason);
        json_put_name(&j, "differences");
        json_begin(&j, '[');
        for (size_t i = 0; i < e->n_differences; i++) {
                json_begin(&j, '{');
                put_difference_json(&j, &e->differences[i]);
                json_end(&j, '}');
        }
        json_end(&j, ']');
        json_end(&j, '}');
        json_end_line(&j);
}

static void print_setting_json(Perfctl *p, const perfd_difference *d) {
        Json j = json_of(&p->out);

        json_begin(&j, '{');
        JSON_STRING(&j, "change", "setting");
        put_difference_json(&j, d);
        JSON_BOOL(&j, "restart", d->restart);
        json_end(&j, '}');
        json_end_line(&j);
}

static int print_plan(Perfctl *p, const perfd_result *result) {
        const perfd_planned_row *e;
        const perfd_difference *d;

        if (!p->json)
                print_table(p, result);
        for (size_t i = 0; p->json && (e = perfd_result_planned(result, i)); i++)
                print_event_json(p, e);
        for (size_t i = 0; p->json && (d = perfd_result_setting(result, i)); i++)
                print_setting_json(p, d);
        return PERFCTL_OK;
}

static int plan_files(Perfctl *p, const ConfigFiles *files) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        perfd_config_text *texts;
        int r = perfctl_connect(p);

        if (r != 0)
                return r;
        config_files_tell_skipped(p, files);
        texts = config_files_texts(files);
        r = perfd_plan_all(p->client, texts, files->n, perfctl_get(p, "allow-pending") != NULL, &result);
        r = r == 0 ? print_plan(p, result)
                   : reload_fail(p, texts, files->n, "`apply` would change nothing; with --allow-pending, in both, all else is changed, "
                                 "and this event is opened when it can be");
        free(texts);
        return r;
}

static int plan_reload(Perfctl *p) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        int r;

        if (perfctl_get(p, "allow-pending") || perfctl_get(p, "no-drop-ins"))
                return perfctl_fail(p, PERFCTL_USAGE, "--allow-pending and --no-drop-ins are of a FILE: without one this is what "
                                    "`reload` would do");
        r = perfctl_connect(p);
        if (r != 0)
                return r;
        return perfd_plan_reload(p->client, &result) == 0 ? print_plan(p, result) : perfctl_fail_client(p, NULL);
}

int plan_run(Perfctl *p) {
        ConfigFiles files;
        int r;

        if (p->n_arguments == 0)
                return plan_reload(p);
        r = config_files_read(p, p->arguments[0], !perfctl_get(p, "no-drop-ins"), &files);
        if (r == 0)
                r = plan_files(p, &files);
        config_files_deinit(&files);
        return r;
}

const Verb verb_plan = {
        .name = "plan",
        .arguments = "[FILE]",
        .help = "show what `apply` of FILE, or `reload`, would change",
        .options = {
                { .name = "allow-pending", .help = "events that cannot be opened now stay pending" },
                { .name = "no-drop-ins", .help = "FILE alone" },
        },
        .max_arguments = 1,
        .words = WORDS_FILES,
        .hosts = HOSTS_EACH,
        .run = plan_run,
};
