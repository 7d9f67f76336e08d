/* What this machine offers. Without --fields names only: thousands of formats are much to read for a list of names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/fields.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/table.h"

static void print_json(Perfctl *p, const perfd_available_row *a, bool fields) {
        Json j = json_of(&p->out);

        json_begin(&j, '{');
        JSON_STRING(&j, "event", a->event);
        JSON_STRING(&j, "kind", a->kind);
        JSON_STRING(&j, "unit", a->unit);
        JSON_STRING(&j, "help", a->help);
        if (fields)
                fields_put_json(&j, a->fields, a->n_fields);
        json_end(&j, '}');
        json_end_line(&j);
}

static void print_row(Table *t, const perfd_available_row *a, bool fields) {
        char names[2048] = "";
        size_t n = 0;

        table_put(t, a->event);
        table_put(t, a->kind);
        table_put(t, a->unit);
        table_put(t, a->help);
        for (size_t i = 0; fields && i < a->n_fields && n < sizeof(names); i++)
                n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i > 0 ? " " : "", a->fields[i].name);
        if (fields)
                table_put(t, names);
}

static void print_table(Perfctl *p, const perfd_result *result, bool fields) {
        const perfd_available_row *a;
        Table t;

        if (fields)
                TABLE_INIT(&t, p->human, "EVENT", "KIND", "UNIT", "HELP", "FIELDS");
        else
                TABLE_INIT(&t, p->human, "EVENT", "KIND", "UNIT", "HELP");
        for (size_t i = 0; (a = perfd_result_available(result, i)); i++)
                print_row(&t, a, fields);
        table_print(&t, &p->out);
        table_deinit(&t);
}

/* A word without a colon or a star is not a pattern that a tracepoint can match: what it may have been meant as. */
static int fail_nothing(Perfctl *p, const char *glob) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        const char *const around[][2] = { { "", ":*" }, { "*:", "" }, { "*", "*" } };
        char *form = NULL;
        int r;

        for (size_t i = 0; i < sizeof(around) / sizeof(*around) && !strpbrk(glob, ":*?["); i++) {
                must_have(asprintf(&form, "%s%s%s", around[i][0], glob, around[i][1]) < 0 ? NULL : form);
                perfd_result_freep(&result);
                result = NULL;
                if (perfd_available(p->client, form, false, &result) == 0 && perfd_result_available(result, 0))
                        break;
                free(form);
                form = NULL;
        }
        r = perfctl_fail(p, PERFCTL_OK, "no event of this machine matches '%s'%s%s%s", glob, form ? ", but there is '" : "",
                         form ? form : "", form ? "'" : "");
        free(form);
        return r;
}

static int available_run(Perfctl *p) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        bool fields = perfctl_get(p, "fields");
        const perfd_available_row *a;
        int r = perfctl_connect(p);

        if (r != 0)
                return r;
        if (perfd_available(p->client, p->n_arguments > 0 ? p->arguments[0] : NULL, fields, &result) != 0)
                return perfctl_fail_client(p, NULL);
        if (!p->json)
                print_table(p, result, fields);
        for (size_t i = 0; p->json && (a = perfd_result_available(result, i)); i++)
                print_json(p, a, fields);
        if (!perfd_result_available(result, 0))
                return fail_nothing(p, p->n_arguments > 0 ? p->arguments[0] : "*");
        if (perfd_result_is_truncated(result))
                return perfctl_fail(p, PERFCTL_FAILED, "more events match than fit in an answer: use a narrower glob");
        return PERFCTL_OK;
}

const Verb verb_available = {
        .name = "available",
        .arguments = "[GLOB]",
        .help = "list the events that this machine supports",
        .options = {
                { .name = "fields", .help = "with the names of their fields" },
        },
        .max_arguments = 1,
        .words = WORDS_OFFERED,
        .run = available_run,
};
