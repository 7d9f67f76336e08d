/* The running events. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/events/event-words.h"
#include "client/perfctl/print/json.h"
#include "client/perfctl/ledger/rows.h"
#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/base/quantity.h"
#include "client/perfctl/command-line/rate.h"
#include "client/perfctl/events/refs.h"
#include "client/perfctl/events/running-events.h"
#include "client/perfctl/print/table.h"

static const char *callchain_name(perfd_callchain callchain) {
        static const char *const names[] = { "", "kernel", "user", "kernel,user", "dwarf", "kernel,dwarf", "user,dwarf", "kernel,user,dwarf" };

        return names[callchain & (PERFD_CALLCHAIN_BOTH | PERFD_CALLCHAIN_DWARF)];
}

static void put_ids(FILE *f, const char *what, const uint32_t *ids, size_t n) {
        for (size_t i = 0; i < n; i++)
                fprintf(f, "%s%" PRIu32, i > 0 ? "," : what, ids[i]);
        if (n > 0)
                fputc(' ', f);
}

static void put_names(FILE *f, const char *what, const char *const *names, size_t n) {
        for (size_t i = 0; i < n; i++)
                fprintf(f, "%s%s", i > 0 ? "," : what, names[i]);
        if (n > 0)
                fputc(' ', f);
}

/* Who has the event, and who of them is no more: an fd on a task that has ended stays. */
static void put_n_targets(FILE *f, const perfd_event_row *e) {
        if (e->n_ended == 0)
                fprintf(f, "(%" PRIu64 ") ", e->n_targets);
        else if (e->n_ended < e->n_targets)
                fprintf(f, "(%" PRIu64 ", %" PRIu64 " ended) ", e->n_targets, e->n_ended);
        else
                fprintf(f, "(%" PRIu64 ", %s) ", e->n_targets, e->n_targets > 1 ? "all ended" : "ended");
}

/* "host", "nginx", "pid 1,2 cpu 0-3", "cgroup a/b (2)" where two have events of it, "pid 1 (3, 1 ended)" of a process with threads */
static void put_target(Table *t, const perfd_event_row *e) {
        const perfd_event_spec *s = e->spec;
        char *text;
        size_t size;
        FILE *f = must_have(open_memstream(&text, &size));

        if (*s->target)
                fprintf(f, "%s ", s->target);
        put_ids(f, "pid ", s->pids, s->n_pids);
        put_ids(f, "tid ", s->tids, s->n_tids);
        put_names(f, "cgroup ", s->cgroups, s->n_cgroups);
        put_names(f, "container ", s->containers, s->n_containers);
        put_names(f, "unit ", s->units, s->n_units);
        if (*s->cpus)
                fprintf(f, "cpu %s ", s->cpus);
        if (s->no_inherit)
                fputs("no-inherit ", f);
        if (e->n_targets > 0)
                put_n_targets(f, e);
        must_have(fclose(f) == 0 ? text : NULL);
        if (size > 0)
                text[size - 1] = '\0';
        table_put(t, size > 0 ? text : "host");
        free(text);
}

static void put_rate(Table *t, const perfd_event_row *e) {
        const perfd_event_spec *s = e->spec;
        char text[40] = "", interval[QUANTITY_SIZE];

        if (s->interval > 0)
                (void)snprintf(text, sizeof(text), "every %s", quantity_show_time(s->interval, interval));
        else if (s->frequency > 0)
                (void)snprintf(text, sizeof(text), "%" PRIu64 " Hz", s->frequency);
        else if (s->period > 0 && rate_is_clock(e->fallen_back ? s->fallback : s->event))
                (void)snprintf(text, sizeof(text), "1/%s", quantity_show_time(s->period, interval));
        else if (s->period > 0)
                (void)snprintf(text, sizeof(text), "1/%" PRIu64, s->period);
        table_put(t, *text || !t->human ? text : "-");
}

static void put_word(Table *t, const char *word) {
        table_put(t, *word || !t->human ? word : "-");
}

/* What is counted instead, where it is. */
static void put_event(Table *t, const perfd_event_row *e) {
        char *text = NULL;

        if (!e->fallen_back) {
                table_put(t, e->spec->event);
                return;
        }
        must_have(asprintf(&text, "%s -> %s", e->spec->event, e->spec->fallback) < 0 ? NULL : text);
        table_put(t, text);
        free(text);
}

static void put_counts(Table *t, const perfd_event_row *e) {
        if (e->limited) {
                table_put(t, "-");
                table_put(t, "-");
                put_word(t, "");
                return;
        }
        table_put_number(t, e->delivered);
        table_put_number(t, e->lost);
        if (e->n_losses > 0)
                ledger_put_counts(t, e->losses, e->n_losses);
        else
                put_word(t, "");
}

static void print_table(Perfctl *p, const perfd_result *result) {
        bool any_unwritten = false;
        const perfd_event_row *e;
        Table t;

        TABLE_INIT(&t, p->human, "NAME", ">ID", "EVENT", "GROUP", "STATE", "TARGET", "RATE", "CALLCHAIN", "ORIGIN", ">FDS",
                   ">DELIVERED", ">LOST", "LOSSES", "FILTER", "LOCATION");
        for (size_t i = 0; (e = perfd_result_event(result, i)); i++) {
                table_put(&t, e->spec->name);
                if (*e->pending)
                        table_put(&t, t.human ? "-" : "");
                else
                        table_put_number(&t, e->id);
                put_event(&t, e);
                table_put(&t, e->spec->group);
                table_put(&t, *e->pending ? "pending" : e->enabled ? "enabled" : "disabled");
                put_target(&t, e);
                put_rate(&t, e);
                put_word(&t, callchain_name(e->spec->callchain));
                table_put(&t, e->configured ? "config" : e->persistent ? "persistent" : "client");
                table_put_number(&t, e->n_fds);
                put_counts(&t, e);
                any_unwritten = any_unwritten || ledger_has_unwritten(e->losses, e->n_losses);
                put_word(&t, e->spec->filter);
                put_word(&t, *e->pending ? e->pending : *e->absent ? e->absent : e->place);
        }
        table_print(&t, &p->out);
        table_deinit(&t);
        if (any_unwritten)
                (void)perfctl_fail(p, PERFCTL_OK, "kernel_unwritten is the kernel's, and no setting of perfd avoids it: `perfctl ledger` says why");
}

static void put_ids_json(Json *j, const char *name, const uint32_t *ids, size_t n) {
        json_put_name(j, name);
        json_begin(j, '[');
        for (size_t i = 0; i < n; i++)
                json_put_number(j, ids[i]);
        json_end(j, ']');
}

static void put_names_json(Json *j, const char *name, const char *const *names, size_t n) {
        json_put_name(j, name);
        json_begin(j, '[');
        for (size_t i = 0; i < n; i++)
                json_put_string(j, names[i]);
        json_end(j, ']');
}

static void print_json(Perfctl *p, const perfd_event_row *e) {
        Json j = json_of(&p->out);

        json_begin(&j, '{');
        JSON_STRING(&j, "name", e->spec->name);
        JSON_NUMBER(&j, "id", e->id);
        JSON_STRING(&j, "event", e->spec->event);
        JSON_STRING(&j, "group", e->spec->group);
        JSON_BOOL(&j, "enabled", e->enabled);
        JSON_BOOL(&j, "configured", e->configured);
        JSON_BOOL(&j, "kept", e->persistent);
        json_put_name(&j, "uid");
        if (e->has_uid)
                json_put_number(&j, e->uid);
        else
                json_put_null(&j);
        JSON_STRING(&j, "waiting", e->pending);
        JSON_STRING(&j, "absent", e->absent);
        JSON_STRING(&j, "target", e->spec->target);
        put_ids_json(&j, "pids", e->spec->pids, e->spec->n_pids);
        put_ids_json(&j, "tids", e->spec->tids, e->spec->n_tids);
        put_names_json(&j, "cgroups", e->spec->cgroups, e->spec->n_cgroups);
        put_names_json(&j, "containers", e->spec->containers, e->spec->n_containers);
        put_names_json(&j, "units", e->spec->units, e->spec->n_units);
        JSON_STRING(&j, "cpus", e->spec->cpus);
        JSON_BOOL(&j, "no_inherit", e->spec->no_inherit);
        JSON_STRING(&j, "filter", e->spec->filter);
        JSON_NUMBER(&j, "period", e->spec->period);
        JSON_NUMBER(&j, "frequency", e->spec->frequency);
        JSON_STRING(&j, "callchain", callchain_name(e->spec->callchain));
        JSON_BOOL(&j, "include_self", e->spec->include_self);
        JSON_STRING(&j, "args", e->spec->args);
        JSON_NUMBER(&j, "maxactive", e->spec->maxactive);
        JSON_NUMBER(&j, "interval", e->spec->interval);
        JSON_STRING(&j, "fallback", e->spec->fallback);
        put_names_json(&j, "attr", e->spec->attr, e->spec->n_attr);
        put_names_json(&j, "fields", e->spec->fields, e->spec->n_fields);
        JSON_BOOL(&j, "fallen_back", e->fallen_back);
        JSON_STRING(&j, "place", e->place);
        JSON_NUMBER(&j, "targets", e->n_targets);
        JSON_NUMBER(&j, "ended", e->n_ended);
        JSON_NUMBER(&j, "fds", e->n_fds);
        JSON_BOOL(&j, "limited", e->limited);
        JSON_NUMBER(&j, "delivered", e->delivered);
        JSON_NUMBER(&j, "lost", e->lost);
        ledger_put_counts_json(&j, "losses", e->losses, e->n_losses);
        JSON_NUMBER(&j, "postponed", e->n_postponed);
        json_end(&j, '}');
        json_end_line(&j);
}

static void write_globs(FILE *f, const char *what, char *const *globs, size_t n) {
        for (size_t i = 0; i < n; i++)
                fprintf(f, "%s%s", i > 0 ? ", " : what, globs[i]);
}

/* By which rule there is less in the list than there may be; NULL: all that runs is in it. Malloc'ed. */
static char *rule_text(const perfd_access *a) {
        char *text;
        size_t size;
        FILE *f;

        if (!a || !a->is_limited || a->status)
                return NULL;
        f = must_have(open_memstream(&text, &size));
        if (a->limit) {
                write_globs(f, "this connection is limited to ", a->limit->subscribe, a->limit->n_subscribe);
                fputs(a->limit->n_subscribe > 0 ? ", and lists no other event" : "this connection is limited to no event", f);
        } else if (a->rule == 0)
                fputs("no rule of access.rules is for this user, so that none are listed", f);
        else {
                bool may_add = a->stat || a->own_processes, has_names = a->n_subscribe + a->n_emit > 0;

                fprintf(f, "rule %" PRIu32 " of access.rules (%s) lets this user see ", a->rule, a->place);
                write_globs(f, "", a->subscribe, a->n_subscribe);
                write_globs(f, a->n_subscribe > 0 ? ", " : "", a->emit, a->n_emit);
                if (may_add)
                        fprintf(f, "%swhat it has added itself", has_names ? ", and " : "");
                fputs(may_add || has_names ? ", and no other event" : "no event", f);
        }
        must_have(fclose(f) == 0 ? text : NULL);
        return text;
}

/* Nobody may take what he sees for all that there is. */
static int tell_rule(Perfctl *p, bool *ret_told) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        char *text;

        *ret_told = false;
        if (perfd_status(p->client, &result) != 0)
                return perfctl_fail_client(p, NULL);
        text = rule_text(perfd_result_status(result)->access);
        if (text)
                (void)perfctl_fail(p, PERFCTL_OK, "%s", text);
        *ret_told = text;
        free(text);
        return PERFCTL_OK;
}

/* What matches a word as it is written, or else as `add` takes it: "sched_switch". 0, or an exit status after a message. */
static int find(Perfctl *p, const char *word, perfd_result **ret) {
        char *name = NULL;
        int r;

        if (perfd_list(p->client, word, ret) != 0)
                return perfctl_fail_client(p, NULL);
        if (!word || !*word || perfd_result_event(*ret, 0) || running_is_glob(word) || running_is_reference(word))
                return 0;
        r = refs_name(p, word, &name);
        if (r == 0 && strcmp(name, word) != 0) {
                perfd_result_freep(ret);
                *ret = NULL;
                r = perfd_list(p->client, name, ret) == 0 ? 0 : perfctl_fail_client(p, NULL);
        }
        free(name);
        return r;
}

/* "hw" and "tracepoint" are kinds of what may run, and not patterns of names. */
static int fail_nothing(const Perfctl *p, const char *word) {
        const char *kind = NULL, *rest = event_words_kind(word, &kind);

        if (kind && !*rest)
                return perfctl_fail(p, PERFCTL_FAILED, "no running event matches '%s': `perfctl available %s` lists the events of this "
                                    "machine of that kind", word, word);
        return perfctl_fail(p, PERFCTL_FAILED, "no running event matches '%s'", word);
}

static int list_run(Perfctl *p) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        const perfd_event_row *e;
        int r = perfctl_connect(p);
        bool told = false;

        if (r != 0)
                return r;
        r = find(p, p->n_arguments > 0 ? p->arguments[0] : NULL, &result);
        if (r != 0)
                return r;
        if (!p->json)
                print_table(p, result);
        for (size_t i = 0; p->json && (e = perfd_result_event(result, i)); i++)
                print_json(p, e);
        if (p->human || !perfd_result_event(result, 0))
                r = tell_rule(p, &told);
        if (r != 0 || told)
                return r;
        if (!perfd_result_event(result, 0) && p->n_arguments > 0)
                return fail_nothing(p, p->arguments[0]);
        if (!perfd_result_event(result, 0))
                return perfctl_fail(p, PERFCTL_OK, "no running events");
        return PERFCTL_OK;
}

const Verb verb_list = {
        .name = "list",
        .arguments = "[GLOB]",
        .help = "list the running events",
        .max_arguments = 1,
        .words = WORDS_SELECTED,
        .hosts = HOSTS_EACH,
        .run = list_run,
};
