#include "client/perfctl/hosts/ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/perfctl/print/json.h"
#include "client/perfctl/ledger/rows.h"
#include "client/perfctl/base/terminal.h"

static void add_lost(HostSum *s, const char *reason, uint64_t count) {
        size_t i = 0;

        while (i < s->n_lost && strcmp(s->lost[i].reason, reason) != 0)
                i++;
        if (i == s->n_lost) {
                s->lost = must_have(reallocarray(s->lost, s->n_lost + 1, sizeof(*s->lost)));
                s->lost[s->n_lost++] = (HostLoss){ .reason = must_have(strdup(reason)) };
        }
        s->lost[i].count += count;
}

void host_sum_take_end(HostSum *s, const char *text) {
        char reason[64], name[64];
        int exact, balanced, n;
        uint64_t count;

        if (sscanf(text, "%63s %d %d%n", reason, &exact, &balanced, &n) != 3)
                return;
        free(s->reason);
        s->reason = must_have(strdup(reason));
        s->has_end = true;
        s->is_inexact |= !exact;
        s->is_unbalanced |= !balanced;
        for (text += n; sscanf(text, " %63s %" SCNu64 "%n", name, &count, &n) == 2; text += n)
                add_lost(s, name, count);
}

/* Of a stream without a closing ledger it is known only what its gaps have said. */
void host_sum_take_sum(HostSum *s, const char *text) {
        uint64_t printed, received, missed;
        char reason[32] = "outbox";

        if (sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %31s", &printed, &received, &missed, reason) < 3)
                return;
        s->printed += printed;
        s->received += received;
        s->missed += missed;
        if (s->has_end)
                return;
        s->is_inexact = true;
        free(s->reason);
        s->reason = NULL;
        if (missed > 0)
                add_lost(s, reason, missed);
}

void host_sum_deinit(HostSum *s) {
        for (size_t i = 0; i < s->n_lost; i++)
                free(s->lost[i].reason);
        free(s->lost);
        free(s->reason);
        *s = (HostSum){ .lost = NULL };
}

static HostSum add_up(const HostSum *const *sums, size_t n) {
        HostSum all = { .lost = NULL };

        for (size_t i = 0; i < n; i++) {
                const HostSum *s = sums[i];

                all.printed += s->printed;
                all.received += s->received;
                all.missed += s->missed;
                all.disconnected += s->disconnected;
                all.away += s->away;
                all.is_inexact |= s->is_inexact;
                all.is_unbalanced |= s->is_unbalanced;
                for (size_t k = 0; k < s->n_lost; k++)
                        add_lost(&all, s->lost[k].reason, s->lost[k].count);
        }
        return all;
}

/* perfd's own form of counts. malloc; the names stay those of `s`. */
static perfd_count *counts_of(const HostSum *s) {
        perfd_count *counts = must_have(calloc(s->n_lost + 1, sizeof(*counts)));

        for (size_t i = 0; i < s->n_lost; i++)
                counts[i] = (perfd_count){ .reason = s->lost[i].reason, .count = s->lost[i].count };
        return counts;
}

static const char *reason_of(const HostSum *s, int status) {
        if (s->reason)
                return s->reason;
        return s->disconnected > 0 && status != PERFCTL_FAILED && status != PERFCTL_UNREACHABLE ? "disconnected" : "failed";
}

/* What both kinds of rows have. */
static void put_sum_json(Json *j, const char *counted, const HostSum *s) {
        perfd_count *counts = counts_of(s);

        json_put_name(j, counted);
        json_put_number(j, s->printed);
        JSON_NUMBER(j, "received", s->received);
        JSON_NUMBER(j, "missed", s->missed);
        ledger_put_counts_json(j, "lost", counts, s->n_lost);
        JSON_BOOL(j, "loss_exact", !s->is_inexact);
        JSON_BOOL(j, "balanced", !s->is_unbalanced);
        JSON_NUMBER(j, "disconnected", s->disconnected);
        JSON_NUMBER(j, "away", s->away);
        free(counts);
}

static void print_json(Output *o, const char *counted, const char *const *names, const HostSum *const *sums, const int *statuses,
                       size_t n, const HostSum *all) {
        Json j = json_of(o);

        for (size_t i = 0; i < n; i++) {
                json_begin(&j, '{');
                JSON_STRING(&j, "host", names[i]);
                JSON_STRING(&j, "kind", "host");
                put_sum_json(&j, counted, sums[i]);
                JSON_STRING(&j, "reason", reason_of(sums[i], statuses[i]));
                JSON_NUMBER(&j, "status", (uint64_t)statuses[i]);
                json_end(&j, '}');
                json_end_line(&j);
        }
        json_begin(&j, '{');
        JSON_STRING(&j, "kind", "sum");
        JSON_NUMBER(&j, "hosts", n);
        put_sum_json(&j, counted, all);
        json_end(&j, '}');
        json_end_line(&j);
}

static void put_row(Table *t, const char *name, const HostSum *s, const char *reason) {
        perfd_count *counts = counts_of(s);

        table_put(t, name);
        table_put_number(t, s->printed);
        table_put_number(t, s->received);
        ledger_put_counts(t, counts, s->n_lost);
        table_put(t, s->is_inexact ? "no" : "yes");
        table_put(t, s->is_unbalanced ? "NO" : "yes");
        table_put_number(t, s->disconnected);
        table_put_time(t, s->away);
        table_put(t, reason);
        free(counts);
}

static void print_table(const char *counted, const char *const *names, const HostSum *const *sums, const int *statuses, size_t n,
                        const HostSum *all) {
        static Output err;
        Table t;

        output_init(&err, STDERR_FILENO);
        TABLE_INIT(&t, true, "HOST", strcmp(counted, "counted") == 0 ? ">COUNTED" : ">PRINTED", ">RECEIVED", "LOST", "EXACT", "BALANCED",
                   ">DISCONNECTED", ">AWAY", "END");
        t.width = terminal_width(STDERR_FILENO);
        for (size_t i = 0; i < n; i++)
                put_row(&t, names[i], sums[i], reason_of(sums[i], statuses[i]));
        put_row(&t, "sum", all, "-");
        output_put_char(&err, '\n');
        table_print(&t, &err);
        table_deinit(&t);
        output_flush(&err);
}

void host_ledger_print(Perfctl *p, const char *counted, const char *const *names, const HostSum *const *sums, const int *statuses,
                       size_t n) {
        HostSum all = add_up(sums, n);

        output_flush(&p->out);
        if (p->json)
                print_json(&p->out, counted, names, sums, statuses, n, &all);
        else
                print_table(counted, names, sums, statuses, n, &all);
        host_sum_deinit(&all);
}
