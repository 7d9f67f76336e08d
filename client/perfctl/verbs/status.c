/* How the daemon is: one line for each fact, then a row for each reader. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "client/perfctl/print/json.h"
#include "client/perfctl/ledger/rows.h"
#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/verbs/reload.h"
#include "client/perfctl/print/table.h"

static void print_list_json(Json *j, const char *name, char *const *list, size_t n) {
        json_put_name(j, name);
        json_begin(j, '[');
        for (size_t i = 0; i < n; i++)
                json_put_string(j, list[i]);
        json_end(j, ']');
}

static void print_limit_json(Json *j, const perfd_limit *l) {
        json_put_name(j, "limit");
        json_begin(j, '{');
        JSON_STRING(j, "name", l->name);
        JSON_BOOL(j, "status", l->status);
        print_list_json(j, "subscribe", l->subscribe, l->n_subscribe);
        JSON_STRING(j, "where", l->where);
        JSON_BOOL(j, "raw", l->raw);
        JSON_NUMBER(j, "queue_bytes", l->queue_bytes);
        json_end(j, '}');
}

static void print_access_json(Json *j, const perfd_access *a) {
        json_put_name(j, "access");
        json_begin(j, '{');
        JSON_BOOL(j, "limited", a->is_limited);
        JSON_NUMBER(j, "rule", a->rule);
        JSON_STRING(j, "place", a->place);
        JSON_BOOL(j, "status", a->status);
        print_list_json(j, "subscribe", a->subscribe, a->n_subscribe);
        JSON_STRING(j, "where", a->where);
        print_list_json(j, "emit", a->emit, a->n_emit);
        JSON_BOOL(j, "stat", a->stat);
        JSON_BOOL(j, "own_processes", a->own_processes);
        if (a->limit)
                print_limit_json(j, a->limit);
        json_end(j, '}');
}

static void print_json(Perfctl *p, const perfd_result *result, const perfd_status_row *s) {
        Json j = json_of(&p->out);
        const perfd_cpu_row *cpu;

        json_begin(&j, '{');
        JSON_STRING(&j, "version", s->version);
        JSON_NUMBER(&j, "pid", s->pid);
        JSON_NUMBER(&j, "uptime", s->uptime);
        JSON_STRING(&j, "clock", s->clock);
        JSON_NUMBER(&j, "time", s->time);
        JSON_STRING(&j, "kernel", s->kernel);
        JSON_STRING(&j, "config", s->config);
        JSON_STRING(&j, "applied", s->applied);
        JSON_STRING(&j, "applied_without", s->applied_without);
        JSON_NUMBER(&j, "config_read", s->config_read);
        JSON_BOOL(&j, "config_changed", s->config_changed);
        if (perfd_result_setting(result, 0))
                reload_put_restart_json(&j, result);
        JSON_STRING(&j, "state_unstored", s->state_unstored);
        JSON_NUMBER(&j, "events", s->n_events);
        JSON_NUMBER(&j, "enabled", s->n_enabled);
        JSON_NUMBER(&j, "subscribers", s->n_subscribers);
        JSON_NUMBER(&j, "connections", s->n_connections);
        JSON_NUMBER(&j, "ring_size", s->ring_size);
        JSON_NUMBER(&j, "rss", s->rss);
        JSON_NUMBER(&j, "fds", s->n_fds);
        JSON_NUMBER(&j, "samples", s->n_samples);
        JSON_NUMBER(&j, "lost", s->n_lost);
        ledger_put_counts_json(&j, "losses", s->losses, s->n_losses);
        JSON_BOOL(&j, "loss_exact", s->loss_exact);
        JSON_NUMBER(&j, "closing", s->n_closing);
        JSON_NUMBER(&j, "fallen_back", s->n_fallen_back);
        JSON_NUMBER(&j, "pending", s->n_pending);
        JSON_NUMBER(&j, "dispatcher_stalled", s->dispatcher_stalled);
        JSON_NUMBER(&j, "tasks_forgotten", s->n_tasks_forgotten);
        if (s->access)
                print_access_json(&j, s->access);
        json_put_name(&j, "cpus");
        json_begin(&j, '[');
        for (size_t i = 0; (cpu = perfd_result_cpu(result, i)); i++) {
                json_begin(&j, '{');
                JSON_NUMBER(&j, "cpu", cpu->cpu);
                JSON_NUMBER(&j, "records", cpu->n_records);
                JSON_NUMBER(&j, "wakeups", cpu->n_wakeups);
                JSON_NUMBER(&j, "batches", cpu->n_batches);
                JSON_NUMBER(&j, "cpu_time", cpu->cpu_time);
                JSON_NUMBER(&j, "pool_waits", cpu->n_pool_waits);
                JSON_NUMBER(&j, "failovers", cpu->n_failovers);
                JSON_NUMBER(&j, "stalled", cpu->stalled);
                json_end(&j, '}');
        }
        json_end(&j, ']');
        json_end(&j, '}');
        json_end_line(&j);
}

static void put_fact(Table *t, const char *name, const char *value) {
        table_put(t, name);
        table_put(t, value);
}

static void put_number(Table *t, const char *name, uint64_t value) {
        table_put(t, name);
        table_put_number(t, value);
}

static void put_bytes(Table *t, const char *name, uint64_t value) {
        table_put(t, name);
        table_put_bytes(t, value);
}

static void put_list(Table *t, const char *name, char *const *list, size_t n) {
        for (size_t i = 0; i < n; i++)
                put_fact(t, name, list[i]);
        if (n == 0)
                put_fact(t, name, "no");
}

/* What this connection may at most, as by a relay. */
static void put_limit(Table *t, const perfd_limit *l) {
        char bytes[24];

        (void)snprintf(bytes, sizeof(bytes), "%" PRIu64, l->queue_bytes);
        put_fact(t, "limited-to", *l->name ? l->name : "-");
        put_fact(t, "limit-status", l->status ? "yes" : "no");
        put_list(t, "limit-subscribe", l->subscribe, l->n_subscribe);
        put_fact(t, "limit-where", l->where);
        put_fact(t, "limit-raw", l->raw ? "yes" : "no");
        put_fact(t, "limit-queue", l->queue_bytes ? bytes : "-");
}

/* What rules grant, which is all that somebody may see who has no more. */
static void put_access(Table *t, const perfd_access *a) {
        char rule[24];

        if (a->limit)
                put_limit(t, a->limit);
        if (a->limit && a->rule == 0) /* access.rules say nothing */
                return;
        (void)snprintf(rule, sizeof(rule), "rule %u", a->rule);
        put_fact(t, "access", a->rule ? rule : "no rule");
        put_fact(t, "rule-at", a->place);
        put_fact(t, "may-status", a->status ? "yes" : "no");
        put_list(t, "may-subscribe", a->subscribe, a->n_subscribe);
        put_fact(t, "where", a->where);
        put_list(t, "may-emit", a->emit, a->n_emit);
        put_fact(t, "may-stat", a->stat ? "yes" : "no");
        put_fact(t, "own-processes", a->own_processes ? "yes" : "no");
}

/* What holds, and since when; what to do if that is not what is on disk. */
static void put_config(Table *t, const perfd_status_row *s) {
        const char *changed = "no";
        char read[40] = "-";
        time_t seconds = (time_t)(s->config_read / 1000000000);
        struct tm tm;

        if (*s->applied)
                changed = !t->human    ? "replaced"
                          : *s->config ? "replaced by an apply: `perfctl reload` returns to it"
                                       : "replaced by an apply";
        else if (s->config_changed)
                changed = t->human ? "yes: `perfctl reload` reads it again" : "yes";
        if (s->config_read > 0 && localtime_r(&seconds, &tm))
                (void)strftime(read, sizeof(read), "%Y-%m-%d %H:%M:%S", &tm);
        put_fact(t, "config", *s->config || !t->human ? s->config : "none");
        put_fact(t, "applied", *s->applied || !t->human ? s->applied : "-");
        if (*s->applied_without)
                put_fact(t, "applied-without", s->applied_without);
        put_fact(t, "config-read", read);
        put_fact(t, "config-changed", changed);
        if (*s->state_unstored)
                put_fact(t, "state-unstored", s->state_unstored);
}

/* What of it does not hold yet. */
static void put_restart(Table *t, const perfd_result *result) {
        const perfd_difference *d;
        char *text;
        size_t size;
        FILE *f;

        if (!perfd_result_setting(result, 0))
                return;
        f = must_have(open_memstream(&text, &size));
        for (size_t i = 0; (d = perfd_result_setting(result, i)); i++)
                fprintf(f, "%s%s: %s -> %s", i > 0 ? "; " : "", d->field, *d->before ? d->before : "none", *d->after ? d->after : "none");
        must_have(fclose(f) == 0 ? text : NULL);
        put_fact(t, "needs-restart", text);
        free(text);
}

static void print_facts(Perfctl *p, const perfd_result *result, const perfd_status_row *s) {
        Table t;

        TABLE_INIT(&t, p->human, "NAME", "VALUE");
        put_fact(&t, "version", s->version);
        if (s->access && s->access->is_limited)
                put_access(&t, s->access);
        if (s->access && !s->access->status) {
                put_fact(&t, "clock", s->clock);
                table_print(&t, &p->out);
                table_deinit(&t);
                return;
        }
        put_number(&t, "pid", s->pid);
        table_put(&t, "uptime");
        table_put_time(&t, s->uptime);
        put_fact(&t, "clock", s->clock);
        put_fact(&t, "kernel", s->kernel);
        put_config(&t, s);
        put_restart(&t, result);
        put_number(&t, "events", s->n_events);
        put_number(&t, "enabled", s->n_enabled);
        put_number(&t, "subscribers", s->n_subscribers);
        put_number(&t, "connections", s->n_connections);
        put_bytes(&t, "ring-size", s->ring_size);
        put_bytes(&t, "rss", s->rss);
        put_number(&t, "fds", s->n_fds);
        put_number(&t, "samples", s->n_samples);
        put_number(&t, "lost", s->n_lost);
        table_put(&t, "losses");
        ledger_put_counts(&t, s->losses, s->n_losses);
        put_fact(&t, "loss-exact", s->loss_exact ? "yes" : "no");
        put_number(&t, "closing", s->n_closing);
        put_number(&t, "fallen-back", s->n_fallen_back);
        put_number(&t, "pending", s->n_pending);
        put_number(&t, "tasks-forgotten", s->n_tasks_forgotten);
        table_put(&t, "dispatcher-stalled");
        if (s->dispatcher_stalled > 0 || !p->human)
                table_put_time(&t, s->dispatcher_stalled);
        else
                table_put(&t, "-");
        table_print(&t, &p->out);
        table_deinit(&t);
}

static void print_cpus(Perfctl *p, const perfd_result *result) {
        const perfd_cpu_row *cpu;
        Table t;

        TABLE_INIT(&t, p->human, "CPU", ">RECORDS", ">WAKEUPS", ">BATCHES", ">CPU TIME", ">BUFFER STALLS", ">FAILOVERS",
                   ">STALLED");
        for (size_t i = 0; (cpu = perfd_result_cpu(result, i)); i++) {
                char name[24];

                (void)snprintf(name, sizeof(name), "cpu%u", cpu->cpu);
                table_put(&t, name);
                table_put_number(&t, cpu->n_records);
                table_put_number(&t, cpu->n_wakeups);
                table_put_number(&t, cpu->n_batches);
                table_put_time(&t, cpu->cpu_time);
                table_put_number(&t, cpu->n_pool_waits);
                table_put_number(&t, cpu->n_failovers);
                if (cpu->stalled > 0 || !p->human)
                        table_put_time(&t, cpu->stalled);
                else
                        table_put(&t, "-");
        }
        if (p->human)
                output_put_char(&p->out, '\n');
        table_print(&t, &p->out);
        table_deinit(&t);
}

static int status_run(Perfctl *p) {
        __attribute__((cleanup(perfd_result_freep))) perfd_result *result = NULL;
        int r = perfctl_connect(p);

        if (r != 0)
                return r;
        if (perfd_status(p->client, &result) != 0)
                return perfctl_fail_client(p, NULL);
        if (p->json)
                print_json(p, result, perfd_result_status(result));
        else {
                print_facts(p, result, perfd_result_status(result));
                if (perfd_result_cpu(result, 0))
                        print_cpus(p, result);
        }
        return PERFCTL_OK;
}

const Verb verb_status = {
        .name = "status",
        .arguments = "",
        .help = "show the state of the daemon: version, events, memory, readers",
        .hosts = HOSTS_EACH,
        .run = status_run,
};
