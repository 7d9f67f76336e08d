/* What this machine offers. Without --fields names only: thousands of formats are much to read for a list of names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/events/event-words.h"
#include "client/perfctl/events/fields.h"
#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/print/table.h"

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

/* The next row from *at on of a kind; NULL: of any. */
static const perfd_available_row *next_row(const perfd_result *result, const char *kind, size_t *at) {
        const perfd_available_row *a;

        while ((a = perfd_result_available(result, (*at)++)))
                if (!kind || strcmp(a->kind, kind) == 0)
                        return a;
        return NULL;
}

static bool has_rows(const perfd_result *result, const char *kind) {
        return next_row(result, kind, &(size_t){ 0 });
}

static void print_table(Perfctl *p, const perfd_result *result, const char *kind, bool fields) {
        const perfd_available_row *a;
        Table t;

        if (fields)
                TABLE_INIT(&t, p->human, "EVENT", "KIND", "UNIT", "HELP", "FIELDS");
        else
                TABLE_INIT(&t, p->human, "EVENT", "KIND", "UNIT", "HELP");
        for (size_t i = 0; (a = next_row(result, kind, &i));)
                print_row(&t, a, fields);
        table_print(&t, &p->out);
        table_deinit(&t);
}

/* What is no pattern and the name of no event: all that contain it, as perf-list(1) has it. */
static int find_containing(Perfctl *p, const char *word, bool fields, perfd_result **result) {
        char *glob;
        int r;

        must_have(asprintf(&glob, "*%s*", word) < 0 ? NULL : glob);
        perfd_result_freep(result);
        *result = NULL;
        r = perfd_available(p->client, glob, fields, result);
        free(glob);
        return r == 0 ? 0 : perfctl_fail_client(p, NULL);
}

/* Of kinds of events, what `doctor` has found: "this kernel has no kprobe PMU: use a kernel with ...". false: they are there. */
static bool find_lack(Perfctl *p, const char *glob, char **ret_why) {
        static const char *const kinds[][2] = { { "kprobe", "kprobe_events" }, { "kretprobe", "kprobe_events" },
                                                { "uprobe", "uprobe_events" }, { "uretprobe", "uprobe_events" },
                                                { "usdt", "uprobe_events" }, { "hw", "hardware events" },
                                                { "hardware", "hardware events" }, { "cache", "hardware events" },
                                                { "hwcache", "hardware events" } };
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        const char *what = NULL;
        const perfd_doctor_row *row;
        size_t n = strcspn(glob, ":*");

        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
                if (n == strlen(kinds[i][0]) && strncmp(glob, kinds[i][0], n) == 0)
                        what = kinds[i][1];
        if (!what || perfd_doctor(p->client, &result) != 0)
                return false;
        for (size_t i = 0; (row = perfd_result_doctor(result, i)); i++)
                if (strcmp(row->what, what) == 0 && !row->works) {
                        must_have(asprintf(ret_why, "%s%s%s", row->found, *row->remedy ? ": " : "", row->remedy) < 0 ? NULL : *ret_why);
                        return true;
                }
        return false;
}

/* Nothing is listed. */
static int fail_nothing(Perfctl *p, const char *glob) {
        char *why = NULL;
        int r;

        if (find_lack(p, glob, &why))
                r = perfctl_fail(p, PERFCTL_FAILED, "no event of this machine matches '%s': %s", glob, why);
        else
                r = perfctl_fail(p, PERFCTL_FAILED, "no event of this machine matches '%s'", glob);
        free(why);
        return r;
}

/* "sched_switch", as `add` and `show` take it. */
static int find_without_group(Perfctl *p, const char *name, bool fields, perfd_result **result) {
        char *glob;
        int r;

        perfd_result_freep(result);
        *result = NULL;
        must_have(asprintf(&glob, "*:%s", name) < 0 ? NULL : glob);
        r = perfd_available(p->client, glob, fields, result);
        free(glob);
        return r == 0 ? 0 : perfctl_fail_client(p, NULL);
}

static void free_glob(char **glob) {
        free(*glob);
}

/* What a user means by a word: events that match it, have the name in some group, or contain it. */
static int find(Perfctl *p, const char *glob, const char *kind, bool fields, perfd_result **result) {
        int r = 0;

        if (perfd_available(p->client, glob, fields, result) != 0)
                return perfctl_fail_client(p, NULL);
        if (glob && !has_rows(*result, kind) && !strpbrk(glob, ":*?["))
                r = find_without_group(p, glob, fields, result);
        if (r == 0 && glob && *glob && !has_rows(*result, kind) && !strpbrk(glob, "*?["))
                r = find_containing(p, glob, fields, result);
        return r;
}

/* "software:page-faults", "tracepoint:sched:*", "sw". A kind alone of which this machine has nothing is a word like others. */
static int find_of_kind(Perfctl *p, const char **kind, const char *glob, bool fields, perfd_result **result) {
        const char *rest = glob ? event_words_kind(glob, kind) : NULL;
        int r = find(p, *kind && !*rest ? NULL : rest, *kind, fields, result);

        if (r != 0 || !*kind || *rest || has_rows(*result, *kind))
                return r;
        *kind = NULL;
        perfd_result_freep(result);
        *result = NULL;
        return find(p, glob, NULL, fields, result);
}

static int available_run(Perfctl *p) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        __attribute__((cleanup(free_glob))) char *glob = NULL;
        const char *kind = NULL;
        bool fields = perfctl_get(p, "fields");
        const perfd_available_row *a;
        int r = p->n_arguments > 0 ? event_words_glob(p, p->arguments[0], &glob) : 0;

        if (r == 0)
                r = perfctl_connect(p);
        if (r == 0)
                r = find_of_kind(p, &kind, glob, fields, &result);
        if (r != 0)
                return r;
        if (!p->json)
                print_table(p, result, kind, fields);
        for (size_t i = 0; p->json && (a = next_row(result, kind, &i));)
                print_json(p, a, fields);
        if (!has_rows(result, kind))
                return glob ? fail_nothing(p, glob) : perfctl_fail(p, PERFCTL_OK, "this machine offers no event");
        if (perfd_result_is_truncated(result))
                return perfctl_fail(p, PERFCTL_FAILED, "more events match than fit in an answer: use a narrower glob");
        return PERFCTL_OK;
}

const Verb verb_available = {
        .name = "available",
        .arguments = "[GLOB]",
        .help = "list the events of this machine, or those that contain a word",
        .options = {
                { .name = "fields", .help = "with the names of their fields" },
        },
        .max_arguments = 1,
        .words = WORDS_OFFERED,
        .hosts = HOSTS_EACH,
        .run = available_run,
};
