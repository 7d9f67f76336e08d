/* The fields of one event that the kernel offers, and what its numbers are called. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/fields.h"
#include "client/perfctl/near.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/table.h"

static void put_values(Table *t, const perfd_field *f) {
        char *text;
        size_t size;
        FILE *out = must_have(open_memstream(&text, &size));

        if (f->n_values > 0)
                fputs(f->flags ? "flags: " : "", out);
        for (size_t i = 0; i < f->n_values; i++)
                fprintf(out, f->flags || f->hex ? "%s%s=0x%" PRIx64 : "%s%s=%" PRIu64, i > 0 ? " " : "",
                        f->values[i].name, f->values[i].value);
        must_have(fclose(out) == 0 ? text : NULL);
        table_put(t, text);
        free(text);
}

static void print_table(Perfctl *p, const perfd_available_row *a) {
        Table t;

        TABLE_INIT(&t, p->human, "FIELD", "KIND", ">SIZE", ">COUNT", "TYPE", "VALUES");
        for (size_t i = 0; i < a->n_fields; i++) {
                const perfd_field *f = &a->fields[i];

                table_put(&t, f->name);
                table_put(&t, field_kind_name(f->kind));
                table_put_number(&t, f->size);
                if (f->count == 0 && p->human)
                        table_put(&t, "any");
                else
                        table_put_number(&t, f->count);
                table_put(&t, f->type);
                put_values(&t, f);
        }
        if (a->n_fields > 0)
                table_print(&t, &p->out);
        else if (p->human)
                output_print(&p->out, "%s is a %s event and has no fields of its own%s%s\n", a->event, a->kind,
                             *a->help ? ": " : "", a->help);
        table_deinit(&t);
}

static void print_json(Perfctl *p, const perfd_available_row *a) {
        Json j = json_of(&p->out);

        json_begin(&j, '{');
        JSON_STRING(&j, "event", a->event);
        JSON_STRING(&j, "kind", a->kind);
        JSON_STRING(&j, "unit", a->unit);
        JSON_STRING(&j, "help", a->help);
        fields_put_json(&j, a->fields, a->n_fields);
        json_end(&j, '}');
        json_end_line(&j);
}

static int fail_unknown(Perfctl *p, const char *event) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *all = NULL;
        const perfd_available_row *a;
        Near near = near_of(event);

        if (perfd_available(p->client, "", false, &all) != 0)
                return perfctl_fail_client(p, NULL);
        for (size_t i = 0; (a = perfd_result_available(all, i)); i++)
                near_add(&near, a->event);
        if (near.best)
                return perfctl_fail(p, PERFCTL_FAILED, "the kernel offers no event '%s', did you mean '%s'?", event,
                                    near.best);
        return perfctl_fail(p, PERFCTL_FAILED, "the kernel offers no event '%s': `perfctl available` lists them", event);
}

static int show_run(Perfctl *p) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        const perfd_available_row *a;
        int r = perfctl_connect(p);

        if (r != 0)
                return r;
        if (perfd_available(p->client, p->arguments[0], true, &result) != 0)
                return perfctl_fail_client(p, NULL);
        for (size_t i = 0; (a = perfd_result_available(result, i)); i++)
                if (strcmp(a->event, p->arguments[0]) == 0)
                        break;
        if (!a)
                return fail_unknown(p, p->arguments[0]);
        if (p->json)
                print_json(p, a);
        else
                print_table(p, a);
        return PERFCTL_OK;
}

const Verb verb_show = {
        .name = "show",
        .arguments = "EVENT",
        .help = "the fields of an event, with their types and the names of values",
        .min_arguments = 1,
        .max_arguments = 1,
        .words = WORDS_OFFERED,
        .run = show_run,
};
