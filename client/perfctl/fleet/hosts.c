/* `fleet hosts`: a row for each relay, of its last word. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/perfctl/fleet/ledger.h"
#include "client/perfctl/print/json.h"
#include "client/perfctl/base/quantity.h"
#include "client/perfctl/print/table.h"
#include "client/perfctl/base/terminal.h"

static const char *const states[] = {
        [FLEET_PUBLISHING] = "publishing", [FLEET_WAITING] = "waiting", [FLEET_SILENT] = "silent",
        [FLEET_ENDED] = "ended",           [FLEET_REPLACED] = "replaced",
};

static uint64_t now_wall(void) {
        struct timespec now;

        (void)clock_gettime(CLOCK_REALTIME, &now);
        return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void put_counts(Json *j, const perfd_count *counts, size_t n) {
        json_put_name(j, "lost");
        json_begin(j, '{');
        for (size_t i = 0; i < n; i++) {
                json_put_name(j, counts[i].reason);
                json_put_number(j, counts[i].count);
        }
        json_end(j, '}');
}

static void put_routes(Json *j, const FleetRelay *r) {
        const perfd_route_status *route;

        json_put_name(j, "routes");
        json_begin(j, '[');
        for (size_t i = 0; (route = perfd_result_route_status(r->result, i)); i++) {
                json_begin(j, '{');
                JSON_STRING(j, "route", route->name);
                json_put_name(j, "events");
                json_begin(j, '[');
                for (size_t k = 0; k < route->n_events; k++)
                        json_put_string(j, route->events[k]);
                json_end(j, ']');
                JSON_STRING(j, "where", route->where);
                JSON_BOOL(j, "connected", route->connected);
                JSON_NUMBER(j, "since", route->since);
                JSON_STRING(j, "message", route->text);
                JSON_NUMBER(j, "epoch", route->epoch);
                JSON_NUMBER(j, "sequence", route->sequence);
                JSON_NUMBER(j, "matched", route->matched);
                JSON_NUMBER(j, "published", route->published);
                JSON_NUMBER(j, "held", route->held);
                put_counts(j, route->lost, route->n_lost);
                JSON_BOOL(j, "balanced", route->balanced);
                json_end(j, '}');
        }
        json_end(j, ']');
}

/* By how much times of this host can be wrong: of its readings, and of its wall time as it says itself; null if it does not. */
static void put_clock(Json *j, const perfd_wall_reading *clock) {
        json_put_name(j, "wall_error");
        if (clock)
                json_put_number(j, clock->error);
        else
                json_put_null(j);
        json_put_name(j, "host_error");
        if (clock && clock->host_error > 0)
                json_put_number(j, clock->host_error);
        else
                json_put_null(j);
        JSON_BOOL(j, "synchronized", clock && clock->synchronized);
}

static void print_json(Output *o, const FleetRelay *r, FleetState state, uint64_t now) {
        const perfd_relay_status *s = r->status;
        Json j = json_of(o);

        json_begin(&j, '{');
        JSON_STRING(&j, "host", s->host);
        JSON_STRING(&j, "machine", s->machine);
        JSON_STRING(&j, "boot", s->boot);
        JSON_STRING(&j, "state", states[state]);
        JSON_NUMBER(&j, "age", now > r->about.stored ? now - r->about.stored : 0);
        JSON_STRING(&j, "relay", s->relay);
        JSON_STRING(&j, "perfd", s->perfd);
        JSON_NUMBER(&j, "since", s->start);
        JSON_NUMBER(&j, "latest", r->about.stored);
        put_clock(&j, s->clock);
        JSON_NUMBER(&j, "published", s->published);
        put_counts(&j, s->lost, s->n_lost);
        JSON_NUMBER(&j, "messages", s->messages);
        JSON_NUMBER(&j, "bytes", s->bytes);
        JSON_NUMBER(&j, "held_bytes", s->held_bytes);
        JSON_NUMBER(&j, "spool_bytes", s->spool_bytes);
        put_routes(&j, r);
        json_end(&j, '}');
        json_end_line(&j);
}

static void put_when(Table *t, uint64_t wall) {
        time_t seconds = (time_t)(wall / 1000000000);
        struct tm parts;
        char text[32];

        if (!localtime_r(&seconds, &parts) || strftime(text, sizeof(text), "%F %T", &parts) == 0)
                (void)snprintf(text, sizeof(text), "-");
        table_put(t, text);
}

/* The first digits are enough for people. */
static void put_id(Table *t, const char *id) {
        char text[9];

        (void)snprintf(text, sizeof(text), "%.8s", id);
        table_put(t, text);
}

static void put_connected(Table *t, const FleetRelay *r) {
        const perfd_route_status *route;
        size_t n = 0, n_connected = 0;
        char text[48];

        for (; (route = perfd_result_route_status(r->result, n)); n++)
                n_connected += route->connected;
        (void)snprintf(text, sizeof(text), "%zu/%zu", n_connected, n);
        table_put(t, text);
}

static uint64_t held_by(const FleetRelay *r) {
        const perfd_route_status *route;
        uint64_t sum = 0;

        for (size_t i = 0; (route = perfd_result_route_status(r->result, i)); i++)
                sum += route->held;
        return sum;
}

static void put_row(Table *t, const FleetRelay *r, FleetState state, uint64_t now) {
        const perfd_relay_status *s = r->status;

        table_put(t, s->host);
        put_id(t, s->machine);
        put_id(t, s->boot);
        table_put(t, states[state]);
        table_put_time(t, now > r->about.stored ? now - r->about.stored : 0);
        put_connected(t, r);
        table_put_number(t, s->published);
        table_put_number(t, fleet_relay_lost(r));
        table_put_number(t, held_by(r));
        table_put_bytes(t, s->bytes);
        put_when(t, s->start);
}

int fleet_hosts_print(Perfctl *p, const char *stream, const FleetRelays *l) {
        uint64_t now = now_wall();
        int code = PERFCTL_OK;
        Table t;

        if (!l->has_stream)
                return perfctl_fail(p, PERFCTL_FAILED, "no relay has said anything of itself on this server, in '%s-status': an older one does "
                                    "not; --stream names another one", stream);
        TABLE_INIT(&t, p->human, "HOST", "MACHINE", "BOOT", "STATE", ">AGE", ">ROUTES", ">PUBLISHED", ">LOST", ">HELD", ">BYTES", "SINCE");
        t.width = p->human ? terminal_width(STDOUT_FILENO) : 0;
        for (size_t i = 0; i < l->n; i++) {
                const FleetRelay *r = &l->list[i];
                FleetState state = fleet_relay_state(l, r, now);

                if (state == FLEET_REPLACED)
                        continue;
                if (p->json)
                        print_json(&p->out, r, state, now);
                else
                        put_row(&t, r, state, now);
                code = fleet_relay_lost(r) > 0 ? PERFCTL_LOST : code;
        }
        if (!p->json)
                table_print(&t, &p->out);
        table_deinit(&t);
        return code;
}
