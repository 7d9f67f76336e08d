/* For `fleet`: what is known of each stream, as rows. */
#include "client/perfctl/fleet-ledger.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/perfctl/json.h"
#include "client/perfctl/table.h"
#include "client/perfctl/terminal.h"

/* What is missing where nothing has expired is in no sum. 0 of a stream of which nobody says what has matched. */
static bool is_unbalanced(const FleetStream *s) {
        uint64_t matched, expired = fleet_stream_expired(s);

        if (!s->streams->is_from_oldest || !fleet_stream_matched(s, &matched))
                return false;
        return s->is_wrong || (expired > 0 && s->n_expired == 0) || matched != s->consumed + fleet_stream_lost(s) + expired;
}

static const char *state_of(const FleetStreams *l, const FleetStream *s) {
        if (s->consumed == 0 && s->n_damaged > 0 && s->last == 0)
                return "unreadable";
        if (s->has_end)
                return "ended";
        for (size_t i = 0; i < l->n; i++) { /* its relay has begun another one */
                const FleetMessage *a = &l->list[i]->about, *b = &s->about;

                if (strcmp(a->host, b->host) == 0 && strcmp(a->machine, b->machine) == 0 && strcmp(a->route, b->route) == 0 &&
                    l->list[i]->latest > s->latest)
                        return "cut";
        }
        return "open";
}

static void put_losses(const FleetStream *s, Json *j) {
        json_put_name(j, "lost");
        json_begin(j, '{');
        for (size_t i = 0; i < s->n_losses; i++) {
                json_put_name(j, s->losses[i].reason);
                json_put_number(j, s->losses[i].items);
        }
        if (fleet_stream_expired(s) > 0) {
                json_put_name(j, "expired");
                json_put_number(j, fleet_stream_expired(s));
        }
        json_end(j, '}');
}

static void ledger_print_row(FleetStreams *l, const FleetStream *s) {
        Json j = json_of(&l->p->out);
        uint64_t matched;

        json_begin(&j, '{');
        JSON_STRING(&j, "host", s->about.host);
        JSON_STRING(&j, "route", s->about.route);
        JSON_STRING(&j, "machine", s->about.machine);
        JSON_STRING(&j, "boot", s->about.boot);
        JSON_NUMBER(&j, "epoch", s->about.epoch);
        JSON_STRING(&j, "state", state_of(l, s));
        json_put_name(&j, "matched");
        if (fleet_stream_matched(s, &matched))
                json_put_number(&j, matched);
        else
                json_put_null(&j);
        JSON_NUMBER(&j, "consumed", s->consumed);
        put_losses(s, &j);
        JSON_NUMBER(&j, "expired_packets", s->n_expired);
        JSON_NUMBER(&j, "damaged_packets", s->n_damaged);
        JSON_NUMBER(&j, "messages", s->n_messages);
        JSON_NUMBER(&j, "bytes", s->n_bytes);
        JSON_NUMBER(&j, "latest", s->latest);
        json_end(&j, '}');
        json_end_line(&j);
}

static void losses_text(const FleetStream *s, char *to, size_t size) {
        size_t n = 0;

        (void)snprintf(to, size, "-");
        for (size_t i = 0; i < s->n_losses && n < size; i++)
                n += (size_t)snprintf(to + n, size - n, "%s%s %llu", n > 0 ? ", " : "", s->losses[i].reason,
                                      (unsigned long long)s->losses[i].items);
        if (fleet_stream_expired(s) > 0 && n < size)
                (void)snprintf(to + n, size - n, "%sexpired %llu", n > 0 ? ", " : "", (unsigned long long)fleet_stream_expired(s));
        else if (s->n_expired > 0 && n < size)
                (void)snprintf(to + n, size - n, "%sexpired %llu packets", n > 0 ? ", " : "", (unsigned long long)s->n_expired);
}

static void ledger_print_table(FleetStreams *l) {
        Table t;

        TABLE_INIT(&t, l->p->human, "HOST", "ROUTE", "MACHINE", "STATE", ">MATCHED", ">CONSUMED", "LOST");
        t.width = l->p->human ? terminal_width(STDOUT_FILENO) : 0;
        for (size_t i = 0; i < l->n; i++) {
                const FleetStream *s = l->list[i];
                char lost[256], machine[9];
                uint64_t matched;

                losses_text(s, lost, sizeof(lost));
                (void)snprintf(machine, sizeof(machine), "%.8s", s->about.machine);
                table_put(&t, s->about.host);
                table_put(&t, s->about.route);
                table_put(&t, machine);
                table_put(&t, state_of(l, s));
                if (fleet_stream_matched(s, &matched))
                        table_put_number(&t, matched);
                else
                        table_put(&t, "-");
                table_put_number(&t, s->consumed);
                table_put(&t, lost);
        }
        table_print(&t, &l->p->out);
        table_deinit(&t);
}

/* Unbalanced sums are a failure; losses that are known have a status of their own. */
int fleet_judge(const FleetStreams *l) {
        int r = l->has_lost ? PERFCTL_LOST : PERFCTL_OK;

        for (size_t i = 0; i < l->n; i++) {
                const FleetStream *s = l->list[i];

                if (is_unbalanced(s))
                        r = perfctl_fail(l->p, PERFCTL_FAILED, "route %s of %s does not balance", s->about.route, s->about.host);
                else if (r == PERFCTL_OK && (fleet_stream_lost(s) > 0 || s->n_expired > 0 || s->n_damaged > 0))
                        r = PERFCTL_LOST;
        }
        return r;
}

void fleet_ledger_print(FleetStreams *l) {
        for (size_t i = 0; l->p->json && i < l->n; i++)
                ledger_print_row(l, l->list[i]);
        if (!l->p->json)
                ledger_print_table(l);
}
