/* For `fleet`: what is known of each stream, as rows. */
#include "client/perfctl/fleet/ledger.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/perfctl/print/json.h"
#include "client/perfctl/print/table.h"
#include "client/perfctl/base/terminal.h"

#define EACH_STREAM(fleet, s) (size_t i_ = 0; (s = perfd_fleet_get_stream(fleet, i_)); i_++)

static const char *state_of(const perfd_fleet_stream *s) {
        if (s->packets == 0 && s->damaged + s->undescribed > 0)
                return "unreadable";
        return s->state == PERFD_FLEET_ENDED ? "ended" : s->state == PERFD_FLEET_CUT ? "cut" : "open";
}

static void put_losses(const perfd_fleet_stream *s, Json *j) {
        json_put_name(j, "lost");
        json_begin(j, '{');
        for (size_t i = 0; i < s->n_lost; i++) {
                json_put_name(j, s->lost[i].reason);
                json_put_number(j, s->lost[i].count);
        }
        json_end(j, '}');
}

static void ledger_print_row(Output *o, const perfd_fleet_stream *s) {
        Json j = json_of(o);

        json_begin(&j, '{');
        JSON_STRING(&j, "host", s->host);
        JSON_STRING(&j, "route", s->route);
        JSON_STRING(&j, "machine", s->machine);
        JSON_STRING(&j, "boot", s->boot);
        JSON_NUMBER(&j, "epoch", s->epoch);
        JSON_STRING(&j, "state", state_of(s));
        json_put_name(&j, "matched");
        if (s->has_matched)
                json_put_number(&j, s->matched);
        else
                json_put_null(&j);
        JSON_NUMBER(&j, "consumed", s->consumed);
        put_losses(s, &j);
        JSON_NUMBER(&j, "expired_packets", s->missing);
        JSON_NUMBER(&j, "damaged_packets", s->damaged + s->undescribed);
        JSON_NUMBER(&j, "messages", s->messages);
        JSON_NUMBER(&j, "bytes", s->bytes);
        JSON_NUMBER(&j, "latest", s->last_stored);
        json_end(&j, '}');
        json_end_line(&j);
}

static void losses_text(const perfd_fleet_stream *s, char *to, size_t size) {
        size_t n = 0;

        (void)snprintf(to, size, "-");
        for (size_t i = 0; i < s->n_lost && n < size; i++)
                n += (size_t)snprintf(to + n, size - n, "%s%s %llu", n > 0 ? ", " : "", s->lost[i].reason, (unsigned long long)s->lost[i].count);
        if (s->missing > 0 && !s->has_matched && n < size)
                (void)snprintf(to + n, size - n, "%sexpired %llu packets", n > 0 ? ", " : "", (unsigned long long)s->missing);
}

static void ledger_print_table(Perfctl *p, const perfd_fleet *fleet) {
        const perfd_fleet_stream *s;
        Table t;

        TABLE_INIT(&t, p->human, "HOST", "ROUTE", "MACHINE", "STATE", ">MATCHED", ">CONSUMED", "LOST");
        t.width = p->human ? terminal_width(STDOUT_FILENO) : 0;
        for EACH_STREAM(fleet, s) {
                char lost[256], machine[9];

                losses_text(s, lost, sizeof(lost));
                (void)snprintf(machine, sizeof(machine), "%.8s", s->machine);
                table_put(&t, s->host);
                table_put(&t, s->route);
                table_put(&t, machine);
                table_put(&t, state_of(s));
                if (s->has_matched)
                        table_put_number(&t, s->matched);
                else
                        table_put(&t, "-");
                table_put_number(&t, s->consumed);
                table_put(&t, lost);
        }
        table_print(&t, &p->out);
        table_deinit(&t);
}

/* Unbalanced sums are a failure; losses, also those of which nobody knows whether they are any, have a status of their own. */
int fleet_judge(const Perfctl *p, const FleetStreams *l) {
        int r = l->has_lost ? PERFCTL_LOST : PERFCTL_OK;
        const perfd_fleet_stream *s;

        for EACH_STREAM(l->fleet, s)
                if (s->has_matched && !s->balanced)
                        r = perfctl_fail(p, PERFCTL_FAILED, "route %s of %s does not balance", s->route, s->host);
                else if (r == PERFCTL_OK && fleet_stream_may_lack(s))
                        r = PERFCTL_LOST;
        return r;
}

void fleet_ledger_print(Perfctl *p, const perfd_fleet *fleet) {
        const perfd_fleet_stream *s;

        if (!p->json) {
                ledger_print_table(p, fleet);
                return;
        }
        for EACH_STREAM(fleet, s)
                ledger_print_row(&p->out, s);
}
