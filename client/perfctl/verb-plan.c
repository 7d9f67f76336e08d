/* What `apply` would do, from the daemon that would do it; nothing is changed. */
#include <stdio.h>
#include <stdlib.h>

#include "client/perfctl/input-file.h"
#include "client/perfctl/json.h"
#include "client/perfctl/reload.h"
#include "client/perfctl/table.h"

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
        for (size_t i = 0; (e = perfd_result_planned(result, i)); i++) {
                table_put(&t, change_name(e));
                table_put(&t, e->name);
                if (e->id)
                        table_put_number(&t, e->id);
                else
                        table_put(&t, t.human ? "-" : "");
                table_put(&t, e->event);
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

static int plan_bytes(Perfctl *p, const char *bytes, size_t n) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        const perfd_planned_row *e;
        const perfd_difference *d;
        int r = perfctl_connect(p);

        if (r != 0)
                return r;
        if (perfd_plan_apply(p->client, bytes, n, p->arguments[0], perfctl_get(p, "allow-pending") != NULL, &result) != 0)
                return reload_fail(
                        p,
                        "`apply` would change nothing; with --allow-pending, in both, all else is changed, and this event is "
                        "opened when it can be");
        if (!p->json)
                print_table(p, result);
        for (size_t i = 0; p->json && (e = perfd_result_planned(result, i)); i++)
                print_event_json(p, e);
        for (size_t i = 0; p->json && (d = perfd_result_setting(result, i)); i++)
                print_setting_json(p, d);
        return PERFCTL_OK;
}

static int plan_run(Perfctl *p) {
        char *bytes = NULL;
        size_t n = 0;
        int r = input_file_read(p, p->arguments[0], &bytes, &n);

        if (r != 0)
                return r;
        r = plan_bytes(p, bytes, n);
        free(bytes);
        return r;
}

const Verb verb_plan = {
        .name = "plan",
        .arguments = "FILE",
        .help = "show what `apply` would add, remove, change and keep",
        .options = {
                { .name = "allow-pending", .help = "events that cannot be opened now stay pending" },
        },
        .min_arguments = 1,
        .max_arguments = 1,
        .words = WORDS_FILES,
        .run = plan_run,
};
