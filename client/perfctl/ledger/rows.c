/* Zero losses are left out of tables, where they would be most of the text, but never out of JSON. */
#include "client/perfctl/ledger/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/quantity.h"

void ledger_put_counts_json(Json *j, const char *name, const perfd_count *counts, size_t n) {
        json_put_name(j, name);
        json_begin(j, '{');
        for (size_t i = 0; i < n; i++)
                (json_put_name(j, counts[i].reason), json_put_number(j, counts[i].count));
        json_end(j, '}');
}

static void put_since_json(Json *j, const perfd_ledger_since *since) {
        json_put_name(j, "since");
        json_begin(j, '{');
        JSON_NUMBER(j, "occurred", since->occurred);
        JSON_NUMBER(j, "delivered", since->delivered);
        JSON_NUMBER(j, "filtered", since->filtered);
        ledger_put_counts_json(j, "lost", since->lost, since->n_lost);
        json_end(j, '}');
}

static void print_event_json(Output *o, const perfd_event_ledger *e) {
        Json j = json_of(o);

        json_begin(&j, '{');
        JSON_STRING(&j, "kind", "event");
        JSON_STRING(&j, "event", e->name);
        JSON_NUMBER(&j, "id", e->id);
        JSON_NUMBER(&j, "cpu", e->cpu);
        JSON_NUMBER(&j, "occurred", e->occurred);
        JSON_NUMBER(&j, "delivered", e->delivered);
        JSON_NUMBER(&j, "filtered", e->filtered);
        ledger_put_counts_json(&j, "lost", e->lost, e->n_lost);
        JSON_BOOL(&j, "balanced", e->balanced);
        JSON_BOOL(&j, "exact", e->exact);
        JSON_NUMBER(&j, "count", e->count);
        JSON_NUMBER(&j, "doubled", e->duplicates);
        JSON_BOOL(&j, "external", e->external);
        JSON_BOOL(&j, "removed", e->removed);
        JSON_BOOL(&j, "stalled", e->stalled);
        if (e->since)
                put_since_json(&j, e->since);
        json_end(&j, '}');
        json_end_line(&j);
}

static void print_ring_json(Output *o, const perfd_ring_ledger *r) {
        Json j = json_of(o);

        json_begin(&j, '{');
        JSON_STRING(&j, "kind", "ring");
        JSON_NUMBER(&j, "cpu", r->cpu);
        JSON_NUMBER(&j, "records", r->records);
        JSON_NUMBER(&j, "samples", r->samples);
        JSON_NUMBER(&j, "side_records", r->side_records);
        ledger_put_counts_json(&j, "lost", r->lost, r->n_lost);
        JSON_BOOL(&j, "balanced", r->balanced);
        JSON_BOOL(&j, "stalled", r->stalled);
        if (r->foreign_times > 0)
                JSON_NUMBER(&j, "foreign_times", r->foreign_times);
        if (r->n_lost_since > 0)
                ledger_put_counts_json(&j, "lost_since", r->lost_since, r->n_lost_since);
        json_end(&j, '}');
        json_end_line(&j);
}

static void print_subscriber_json(Output *o, const perfd_subscriber_ledger *s) {
        Json j = json_of(o);

        json_begin(&j, '{');
        JSON_STRING(&j, "kind", "subscriber");
        JSON_NUMBER(&j, "id", s->id);
        JSON_STRING(&j, "peer", s->peer);
        JSON_STRING(&j, "order", s->order);
        JSON_NUMBER(&j, "matched", s->matched);
        JSON_NUMBER(&j, "sent", s->sent);
        ledger_put_counts_json(&j, "dropped", s->dropped, s->n_dropped);
        JSON_NUMBER(&j, "queued", s->queued);
        JSON_BOOL(&j, "balanced", s->balanced);
        if (s->latency > 0)
                JSON_NUMBER(&j, "latency", s->latency);
        json_end(&j, '}');
        json_end_line(&j);
}

static void print_probe_json(Output *o, const perfd_probe_ledger *b) {
        Json j = json_of(o);

        json_begin(&j, '{');
        JSON_STRING(&j, "kind", "probe");
        JSON_STRING(&j, "event", b->name);
        JSON_NUMBER(&j, "id", b->id);
        JSON_BOOL(&j, "known", b->known);
        if (b->known) {
                JSON_NUMBER(&j, "hits", b->hits);
                JSON_NUMBER(&j, "missed", b->missed);
                if (b->missed_since > 0)
                        JSON_NUMBER(&j, "missed_since", b->missed_since);
        }
        json_end(&j, '}');
        json_end_line(&j);
}

void ledger_print_json(Output *o, const perfd_result *ledger) {
        const perfd_probe_ledger *b;
        const perfd_event_ledger *e;
        const perfd_ring_ledger *r;
        const perfd_subscriber_ledger *s;

        for (size_t i = 0; (e = perfd_result_event_ledger(ledger, i)); i++)
                print_event_json(o, e);
        for (size_t i = 0; (r = perfd_result_ring_ledger(ledger, i)); i++)
                print_ring_json(o, r);
        for (size_t i = 0; (s = perfd_result_subscriber_ledger(ledger, i)); i++)
                print_subscriber_json(o, s);
        for (size_t i = 0; (b = perfd_result_probe_ledger(ledger, i)); i++)
                print_probe_json(o, b);
        if (perfd_result_is_truncated(ledger))
                output_put_string(o, "{\"kind\":\"truncated\"}\n");
        if (perfd_result_is_limited(ledger))
                output_put_string(o, "{\"kind\":\"limited\"}\n");
}

void ledger_put_counts(Table *t, const perfd_count *counts, size_t n) {
        char *text;
        size_t size;
        FILE *f = must_have(open_memstream(&text, &size));
        bool any = false;

        for (size_t i = 0; i < n; i++)
                if (counts[i].count > 0) {
                        fprintf(f, "%s%s %" PRIu64, any ? ", " : "", counts[i].reason, counts[i].count);
                        any = true;
                }
        must_have(fclose(f) == 0 ? text : NULL);
        table_put(t, any ? text : "-");
        free(text);
}

bool ledger_has_unwritten(const perfd_count *counts, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(counts[i].reason, "kernel_unwritten") == 0 && counts[i].count > 0)
                        return true;
        return false;
}

/* Whoever loses so has nothing to make larger. */
const char *ledger_explain_unwritten(const perfd_count *counts, size_t n) {
        if (!ledger_has_unwritten(counts, n))
                return NULL;
        return "kernel_unwritten: the kernel counted these and wrote no record of them, interrupted by a change of perf events, "
               "because it shows nobody what that process does, or because a tracepoint such as sched:sched_wakeup "
               "names a process of the target while another one runs; no setting of perfd avoids it";
}

static void put_balanced(Table *t, bool balanced, bool stalled) {
        table_put(t, stalled ? "stalled" : balanced ? "yes" : "NO");
}

/* Of a limited ledger only what was lost is known. */
static void put_known(Table *t, const perfd_result *ledger, uint64_t number) {
        if (perfd_result_is_limited(ledger))
                table_put(t, "-");
        else
                table_put_number(t, number);
}

/* At the end of a stream: what happened while it was there. */
static void print_events(Output *o, bool human, size_t width, const perfd_result *ledger) {
        const perfd_event_ledger *e;
        Table t;

        TABLE_INIT(&t, human, "EVENT", ">CPU", ">HITS", ">DELIVERED", ">FILTERED", "LOST", "EXACT", "BALANCED");
        t.width = width;
        t.n_keys = 2;
        for (size_t i = 0; (e = perfd_result_event_ledger(ledger, i)); i++) {
                table_put(&t, e->name);
                if (e->external)
                        table_put(&t, "-");
                else
                        table_put_number(&t, e->cpu);
                put_known(&t, ledger, e->since ? e->since->occurred : e->occurred);
                put_known(&t, ledger, e->since ? e->since->delivered : e->delivered);
                put_known(&t, ledger, e->since ? e->since->filtered : e->filtered);
                ledger_put_counts(&t, e->since ? e->since->lost : e->lost, e->since ? e->since->n_lost : e->n_lost);
                table_put(&t, e->exact ? "yes" : "no");
                put_balanced(&t, e->balanced, e->stalled);
        }
        table_print(&t, o);
        table_deinit(&t);
}

static void print_rings(Output *o, bool human, size_t width, const perfd_result *ledger) {
        const perfd_ring_ledger *r;
        Table t;

        TABLE_INIT(&t, human, "RING", ">CPU", ">RECORDS", ">SAMPLES", ">SIDE RECORDS", "LOST", "BALANCED");
        t.width = width;
        t.n_keys = 2;
        for (size_t i = 0; (r = perfd_result_ring_ledger(ledger, i)); i++) {
                table_put(&t, "ring");
                table_put_number(&t, r->cpu);
                put_known(&t, ledger, r->records);
                put_known(&t, ledger, r->samples);
                put_known(&t, ledger, r->side_records);
                ledger_put_counts(&t, r->n_lost_since > 0 ? r->lost_since : r->lost, r->n_lost_since > 0 ? r->n_lost_since : r->n_lost);
                put_balanced(&t, r->balanced, r->stalled);
        }
        table_print(&t, o);
        table_deinit(&t);
}

static void print_subscribers(Output *o, bool human, size_t width, const perfd_result *ledger) {
        const perfd_subscriber_ledger *s;
        char latency[QUANTITY_SIZE];
        Table t;

        TABLE_INIT(&t, human, "SUBSCRIBER", ">ID", "ORDER", ">MATCHED", ">SENT", "DROPPED", ">QUEUED", "BALANCED", ">LATENCY",
                   "PEER");
        t.width = width;
        t.n_keys = 2;
        for (size_t i = 0; (s = perfd_result_subscriber_ledger(ledger, i)); i++) {
                table_put(&t, "subscriber");
                table_put_number(&t, s->id);
                table_put(&t, s->order);
                table_put_number(&t, s->matched);
                table_put_number(&t, s->sent);
                ledger_put_counts(&t, s->dropped, s->n_dropped);
                table_put_number(&t, s->queued);
                put_balanced(&t, s->balanced, false);
                table_put(&t, s->latency > 0 ? quantity_show_time(s->latency, latency) : "-");
                table_put(&t, s->peer);
        }
        table_print(&t, o);
        table_deinit(&t);
}

/* What the kernel does not count for a kind of probe is not 0. */
static void print_probes(Output *o, bool human, size_t width, const perfd_result *ledger) {
        const perfd_probe_ledger *b;
        Table t;

        TABLE_INIT(&t, human, "PROBE", ">ID", ">HITS", ">MISSED", "EVENT");
        t.width = width;
        t.n_keys = 2;
        for (size_t i = 0; (b = perfd_result_probe_ledger(ledger, i)); i++) {
                table_put(&t, "probe");
                table_put_number(&t, b->id);
                if (b->known) {
                        put_known(&t, ledger, b->hits);
                        table_put_number(&t, b->missed);
                } else {
                        table_put(&t, "unknown");
                        table_put(&t, "unknown");
                }
                table_put(&t, b->name);
        }
        table_print(&t, o);
        table_deinit(&t);
}

void ledger_print_tables(Output *o, bool human, size_t width, const perfd_result *ledger) {
        const struct {
                const void *first;
                void (*print)(Output *o, bool human, size_t width, const perfd_result *ledger);
        } tables[] = {
                { perfd_result_event_ledger(ledger, 0), print_events },
                { perfd_result_ring_ledger(ledger, 0), print_rings },
                { perfd_result_subscriber_ledger(ledger, 0), print_subscribers },
                { perfd_result_probe_ledger(ledger, 0), print_probes },
        };
        bool any = false;

        for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
                if (!tables[i].first)
                        continue;
                if (human && any)
                        output_put_char(o, '\n');
                tables[i].print(o, human, width, ledger);
                any = true;
        }
        if (perfd_result_is_truncated(ledger))
                output_put_string(o, human ? "\nthe rows of events are incomplete: there are too many\n" : "truncated\n");
        if (perfd_result_is_limited(ledger))
                output_put_string(o, human ? "\nthe rows have only what was lost: a rule of access.rules limits the samples\n" : "limited\n");
}

typedef struct Judgement {
        size_t n_unbalanced, n_stalled; /* rows; those of a reader that does not answer are known not to balance */
        uint32_t stalled_cpu;           /* of the last one */
} Judgement;

static void judge_row(Judgement *j, bool balanced, bool stalled, uint32_t cpu) {
        if (stalled) {
                j->n_stalled++;
                j->stalled_cpu = cpu;
        } else {
                j->n_unbalanced += !balanced;
        }
}

static Judgement judge_rows(const perfd_result *ledger) {
        const perfd_event_ledger *e;
        const perfd_ring_ledger *r;
        const perfd_subscriber_ledger *s;
        Judgement j = { .n_unbalanced = 0 };

        for (size_t i = 0; (e = perfd_result_event_ledger(ledger, i)); i++)
                judge_row(&j, e->balanced, e->stalled, e->cpu);
        for (size_t i = 0; (r = perfd_result_ring_ledger(ledger, i)); i++)
                judge_row(&j, r->balanced, r->stalled, r->cpu);
        for (size_t i = 0; (s = perfd_result_subscriber_ledger(ledger, i)); i++)
                judge_row(&j, s->balanced, false, 0);
        return j;
}

int ledger_judge(const Perfctl *p, const perfd_result *ledger) {
        const Judgement j = judge_rows(ledger);

        if (j.n_unbalanced > 0)
                return perfctl_fail(p, PERFCTL_FAILED,
                                    "the ledger does not balance in %zu rows: samples are unaccounted for, which is a bug in perfd",
                                    j.n_unbalanced);
        if (j.n_stalled > 0)
                return perfctl_fail(p, PERFCTL_FAILED,
                                    "%zu rows cannot balance now: perfd's reader of CPU %" PRIu32 " does not answer, as while a "
                                    "debugger stops it; \"perfctl status\" says since when. Ask again when it does",
                                    j.n_stalled, j.stalled_cpu);
        return PERFCTL_OK;
}
