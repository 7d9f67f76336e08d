/*
 * The fields of one event, and what its numbers are called: as it runs, and as the kernel offers it. What runs comes first,
 * because only that can be watched; both are shown only if they differ, as when a name was given to another event.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/events/event-words.h"
#include "client/perfctl/events/fields.h"
#include "client/perfctl/events/near-event.h"
#include "client/perfctl/base/near.h"
#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/print/table.h"
#include "client/perfctl/base/text.h"

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

static void print_fields(Perfctl *p, const perfd_field *fields, size_t n_fields) {
        Table t;

        TABLE_INIT(&t, p->human, "FIELD", "KIND", ">SIZE", ">COUNT", "TYPE", "VALUES");
        for (size_t i = 0; i < n_fields; i++) {
                const perfd_field *f = &fields[i];

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
        if (n_fields > 0)
                table_print(&t, &p->out);
        table_deinit(&t);
}

static void print_running(Perfctl *p, const perfd_event_row *e) {
        bool is_named = strcmp(e->spec->name, e->spec->event) != 0;
        Output *o = &p->out;

        if (p->human) {
                text_put_string(o, e->spec->name);
                output_print(o, " (#%" PRIu32 ", %s)%s", e->id, e->enabled ? "enabled" : "disabled", is_named ? " is " : "");
                text_put_string(o, is_named ? e->spec->event : "");
                output_put_string(o, *e->place ? " at " : "");
                text_put_string(o, e->place);
                output_put_string(o, e->n_fields > 0 ? "\n" : ": no fields of its own\n");
        }
        print_fields(p, e->fields, e->n_fields);
        if (!p->human && e->n_fields == 0)
                (void)perfctl_fail(p, PERFCTL_OK, "%s has no fields of its own", e->spec->name);
}

static void print_offered(Perfctl *p, const perfd_available_row *a) {
        Output *o = &p->out;

        if (p->human && a->n_fields == 0) {
                text_put_string(o, a->event);
                output_put_string(o, " is a ");
                text_put_string(o, a->kind);
                output_print(o, " event and has no fields of its own%s", *a->help ? ": " : "");
                text_put_string(o, a->help);
                output_put_char(o, '\n');
        }
        print_fields(p, a->fields, a->n_fields);
        if (!p->human && a->n_fields == 0)
                (void)perfctl_fail(p, PERFCTL_OK, "%s has no fields of its own", a->event);
}

static bool same_fields(const perfd_event_row *e, const perfd_available_row *a) {
        bool same = e->n_fields == a->n_fields;

        for (size_t i = 0; i < e->n_fields && same; i++)
                same = strcmp(e->fields[i].name, a->fields[i].name) == 0 && strcmp(e->fields[i].type, a->fields[i].type) == 0;
        return same;
}

static void print_text(Perfctl *p, const perfd_event_row *e, const perfd_available_row *a) {
        if (e)
                print_running(p, e);
        if (e && a && p->human && !same_fields(e, a)) {
                output_print(&p->out, "\nWhat the kernel offers under this name is another event:\n");
                print_offered(p, a);
        }
        if (!e)
                print_offered(p, a);
}

/* What the kernel offers, and in "running" what runs; the fields at the top are those of either. */
static void print_json(Perfctl *p, const perfd_event_row *e, const perfd_available_row *a) {
        Json j = json_of(&p->out);

        json_begin(&j, '{');
        JSON_STRING(&j, "event", a ? a->event : e->spec->event);
        JSON_STRING(&j, "kind", a ? a->kind : "");
        JSON_STRING(&j, "unit", a ? a->unit : "");
        JSON_STRING(&j, "help", a ? a->help : "");
        fields_put_json(&j, a ? a->fields : e->fields, a ? a->n_fields : e->n_fields);
        json_put_name(&j, "running");
        if (e) {
                json_begin(&j, '{');
                JSON_STRING(&j, "name", e->spec->name);
                JSON_NUMBER(&j, "id", e->id);
                JSON_STRING(&j, "event", e->spec->event);
                JSON_STRING(&j, "group", e->spec->group);
                JSON_BOOL(&j, "enabled", e->enabled);
                JSON_STRING(&j, "place", e->place);
                fields_put_json(&j, e->fields, e->n_fields);
                json_end(&j, '}');
        } else
                json_put_null(&j);
        json_end(&j, '}');
        json_end_line(&j);
}

static int fail_unknown(Perfctl *p, const char *event) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *all = NULL, *list = NULL;
        const perfd_available_row *a;
        const perfd_event_row *e;
        const char *best;
        Near near = near_of(event);

        if (perfd_available(p->client, "", false, &all) != 0 || perfd_list(p->client, "", &list) != 0)
                return perfctl_fail_client(p, NULL);
        for (size_t i = 0; (e = perfd_result_event(list, i)); i++) {
                if (*e->pending && strcmp(e->spec->name, event) == 0)
                        return perfctl_fail(p, PERFCTL_FAILED, "'%s' is pending, because it cannot be opened now: %s",
                                            event, e->pending);
                near_add(&near, e->spec->name);
        }
        for (size_t i = 0; (a = perfd_result_available(all, i)); i++)
                near_add(&near, a->event);
        best = near.best ? near.best : near_event_find(all, event);
        if (best)
                return perfctl_fail(p, PERFCTL_FAILED, "no event '%s' runs, and the kernel offers none, did you mean '%s'?", event, best);
        return perfctl_fail(p, PERFCTL_FAILED,
                            "no event '%s' runs, and the kernel offers none: `perfctl list` and `perfctl available` list them",
                            event);
}

/* By its name, or by "#ID". */
static const perfd_event_row *find_running(const perfd_result *list, const char *name) {
        const perfd_event_row *e;

        for (size_t i = 0; (e = perfd_result_event(list, i)); i++)
                if (!*e->pending && (*name == '#' || strcmp(e->spec->name, name) == 0))
                        return e;
        return NULL;
}

static const perfd_available_row *find_offered(const perfd_result *result, const char *event) {
        const perfd_available_row *a;

        for (size_t i = 0; (a = perfd_result_available(result, i)); i++)
                if (strcmp(a->event, event) == 0)
                        return a;
        return NULL;
}

static int show(Perfctl *p, const char *event, bool *ret_known) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *list = NULL, *result = NULL;
        const perfd_available_row *a;
        const perfd_event_row *e;

        if (perfd_list_with_fields(p->client, event, &list) != 0 || perfd_available(p->client, event, true, &result) != 0)
                return perfctl_fail_client(p, NULL);
        e = find_running(list, event);
        a = find_offered(result, event);
        *ret_known = e || a;
        if (e || a)
                (p->json ? print_json : print_text)(p, e, a);
        return PERFCTL_OK;
}

/* As it is; or as other tools call it, or without its group. */
static int show_run(Perfctl *p) {
        __attribute__((cleanup(event_words_deinit))) EventWords words = EVENT_WORDS_NULL;
        bool is_known = false;
        int r = perfctl_connect(p);

        if (r == 0)
                r = show(p, p->arguments[0], &is_known);
        if (r != 0 || is_known)
                return r;
        r = event_words_add(&words, p, p->arguments[0]);
        if (r == 0)
                r = event_words_find(&words, p, EVENT_WHERE_OFFERED);
        if (r == 0 && words.n == 1 && strcmp(words.names[0], p->arguments[0]) != 0)
                r = show(p, words.names[0], &is_known);
        return r != 0 || is_known ? r : fail_unknown(p, p->arguments[0]);
}

const Verb verb_show = {
        .name = "show",
        .arguments = "EVENT",
        .help = "show the fields of an event, with their types and names of values",
        .min_arguments = 1,
        .max_arguments = 1,
        .words = WORDS_SHOWN,
        .hosts = HOSTS_EACH,
        .run = show_run,
};
