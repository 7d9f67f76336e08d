/* For `fleet`: what is known of each stream, and of each host, as rows. */
#include "client/perfctl/fleet-ledger.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/perfctl/json.h"
#include "client/perfctl/table.h"
#include "client/perfctl/terminal.h"

/* Whether all that matched is accounted for: 0 of a stream that goes on, or was cut off, which nobody can say of. */
static bool is_unbalanced(const FleetStream *s) {
        return s->is_broken || (s->streams->is_from_oldest && s->has_end && s->matched != s->consumed + fleet_stream_lost(s) + fleet_stream_expired(s));
}

static const char *state_of(const FleetStreams *l, const FleetStream *s) {
        if (s->is_broken)
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
        if (s->n_expired > 0 && s->has_end) {
                json_put_name(j, "expired");
                json_put_number(j, fleet_stream_expired(s));
        }
        json_end(j, '}');
}

static void ledger_print_row(FleetStreams *l, const FleetStream *s) {
        Json j = json_of(&l->p->out);

        json_begin(&j, '{');
        JSON_STRING(&j, "host", s->about.host);
        JSON_STRING(&j, "route", s->about.route);
        JSON_STRING(&j, "machine", s->about.machine);
        JSON_STRING(&j, "boot", s->about.boot);
        JSON_NUMBER(&j, "epoch", s->about.epoch);
        JSON_STRING(&j, "state", state_of(l, s));
        json_put_name(&j, "matched");
        if (s->has_end)
                json_put_number(&j, s->matched);
        else
                json_put_null(&j);
        JSON_NUMBER(&j, "consumed", s->consumed);
        put_losses(s, &j);
        JSON_NUMBER(&j, "expired_packets", s->n_expired);
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
        if (s->n_expired > 0 && n < size && s->has_end)
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

                losses_text(s, lost, sizeof(lost));
                (void)snprintf(machine, sizeof(machine), "%.8s", s->about.machine);
                table_put(&t, s->about.host);
                table_put(&t, s->about.route);
                table_put(&t, machine);
                table_put(&t, state_of(l, s));
                if (s->has_end)
                        table_put_number(&t, s->matched);
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
        int r = PERFCTL_OK;

        for (size_t i = 0; i < l->n; i++) {
                const FleetStream *s = l->list[i];

                if (is_unbalanced(s))
                        r = perfctl_fail(l->p, PERFCTL_FAILED, "route %s of %s does not balance", s->about.route, s->about.host);
                else if (r == PERFCTL_OK && (fleet_stream_lost(s) > 0 || s->n_expired > 0))
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

static void put_when(Table *t, uint64_t wall) {
        time_t seconds = (time_t)(wall / 1000000000);
        struct tm parts;
        char text[32];

        if (!localtime_r(&seconds, &parts) || strftime(text, sizeof(text), "%F %T", &parts) == 0)
                (void)snprintf(text, sizeof(text), "-");
        table_put(t, text);
}

/* ---- hosts -------------------------------------------------------------------------------------------------------- */

typedef struct HostSum {
        const FleetStream *first; /* of its streams */
        const char *state;        /* of the newest of them */
        uint64_t n_streams, n_bytes, consumed, lost, n_expired, since, latest;
} HostSum;

static HostSum sum_of(const FleetStreams *l, size_t first) {
        HostSum h = { .first = l->list[first], .since = UINT64_MAX };

        for (size_t i = first; i < l->n; i++) {
                const FleetStream *s = l->list[i];

                if (strcmp(s->about.host, h.first->about.host) != 0 || strcmp(s->about.machine, h.first->about.machine) != 0)
                        continue;
                if (s->latest >= h.latest)
                        h.state = state_of(l, s);
                h.n_streams++;
                h.n_bytes += s->n_bytes;
                h.consumed += s->consumed;
                h.lost += fleet_stream_lost(s) + fleet_stream_expired(s);
                h.n_expired += s->n_expired;
                h.since = s->about.stored < h.since ? s->about.stored : h.since;
                h.latest = s->latest > h.latest ? s->latest : h.latest;
        }
        return h;
}

static bool is_first_of_host(const FleetStreams *l, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(l->list[i]->about.host, l->list[n]->about.host) == 0 &&
                    strcmp(l->list[i]->about.machine, l->list[n]->about.machine) == 0)
                        return false;
        return true;
}

static void host_print_json(Output *o, const HostSum *h) {
        Json j = json_of(o);

        json_begin(&j, '{');
        JSON_STRING(&j, "host", h->first->about.host);
        JSON_STRING(&j, "machine", h->first->about.machine);
        JSON_STRING(&j, "state", h->state);
        JSON_NUMBER(&j, "streams", h->n_streams);
        JSON_NUMBER(&j, "bytes", h->n_bytes);
        JSON_NUMBER(&j, "consumed", h->consumed);
        JSON_NUMBER(&j, "lost", h->lost);
        JSON_NUMBER(&j, "expired_packets", h->n_expired);
        JSON_NUMBER(&j, "since", h->since);
        JSON_NUMBER(&j, "latest", h->latest);
        json_end(&j, '}');
        json_end_line(&j);
}

void fleet_hosts_print(FleetStreams *l) {
        Table t;

        TABLE_INIT(&t, l->p->human, "HOST", "MACHINE", "STATE", ">STREAMS", ">BYTES", ">CONSUMED", ">LOST", "SINCE", "LATEST");
        t.width = l->p->human ? terminal_width(STDOUT_FILENO) : 0;
        for (size_t i = 0; i < l->n; i++) {
                HostSum h;
                char machine[9];

                if (!is_first_of_host(l, i))
                        continue;
                h = sum_of(l, i);
                if (l->p->json) {
                        host_print_json(&l->p->out, &h);
                        continue;
                }
                (void)snprintf(machine, sizeof(machine), "%.8s", h.first->about.machine);
                table_put(&t, h.first->about.host);
                table_put(&t, machine);
                table_put(&t, h.state);
                table_put_number(&t, h.n_streams);
                table_put_bytes(&t, h.n_bytes);
                table_put_number(&t, h.consumed);
                table_put_number(&t, h.lost);
                put_when(&t, h.since);
                put_when(&t, h.latest);
        }
        if (!l->p->json)
                table_print(&t, &l->p->out);
        table_deinit(&t);
}
